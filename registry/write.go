package registry

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/internal/placeholder"
	"github.com/catalogd/catalogd/problem"
)

// compileWrite checks the declarations that depend on the tool's effect, and parses its idempotency key.
func (e *Entry) compileWrite() (problems problem.List) {
	t := &e.tool
	errorf := func(code problem.Code, field, format string, args ...any) {
		problems.Errorf(code, t.At(field), "tools."+t.Name+"."+field, format, args...)
	}
	if t.Effect != Write {
		says := `effect: "write"`
		if t.Discovered() { // a discovered tool's effect is in the lock
			says = "`catalogd lock --effect write " + t.Name + "`"
		}
		const text = `%s is for tools with effect: "write", and this one has effect: %q; leave it out, or say %s`
		if t.Idempotent && (t.Binding.HTTP == nil || t.Binding.HTTP.Retry == nil) { // which needs it of a POST
			errorf(problem.ContradictoryField, "idempotent", text, "idempotent", t.Effect, says)
		}
		if t.IdempotencyKey != "" {
			errorf(problem.ContradictoryField, "idempotencyKey", text, "idempotencyKey", t.Effect, says)
		}
		return problems
	}
	if at, ok := t.StoredSecret(); ok {
		errorf(problem.StoredSecret, at, `%s is declared as a secret, and the arguments and results of a tool with effect: "write" are stored; `+
			`take it out: a binding gets secrets by reference, as {secret: "env:NAME"} in its headers or env`, at)
	}
	if t.IdempotencyKey != "" {
		e.key = placeholder.Parse(t.IdempotencyKey, func(name string) bool { _, ok := t.Args.Field(name); return ok })
		for _, err := range checkTemplate(e.key, t.Args) {
			errorf(problem.BadPlaceholder, "idempotencyKey", "%v", err)
		}
	}
	return problems
}

// StoredSecret returns the path of an argument, or of a part of the result, that is declared as a secret,
// such as args.login.password. A write tool may have none, because its arguments and results are stored.
func (t *Tool) StoredSecret() (at string, ok bool) {
	path, ok := t.Args.Secret()
	field := "args"
	if !ok && t.Result != nil {
		path, ok = t.Result.Secret()
		field = "result"
	}
	return strings.Join(append([]string{field}, path...), "."), ok
}

// checkTemplate returns the errors in the template of an idempotency key.
func checkTemplate(key placeholder.Template, args contract.Spec) (wrong []error) {
	sample := ""
	for _, p := range key {
		if p.Arg == "" {
			sample += p.Literal
			continue
		}
		sample += "x"
		wrong = append(wrong, placeholder.Check(args, p.Arg, placeholder.Place{Whole: "an idempotency key", Part: "a part of an idempotency key"})...)
	}
	if key.First() == "" {
		wrong = append(wrong, fmt.Errorf("the idempotency key %q has no argument in it, so that each call would count as a repetition of the first; write {name} for an argument", sample))
	}
	if err := CheckIdempotencyKey(sample); err != nil {
		wrong = append(wrong, fmt.Errorf("the idempotency key can't be %w", err))
	}
	return wrong
}

// maxIdempotencyKey is the maximum length of an idempotency key in bytes.
const maxIdempotencyKey = 256

// CheckIdempotencyKey returns an error if a text can't be an idempotency key. A key is 1 to 256 bytes of
// UTF-8 without control characters and without white space at either end, so that headers, environment
// variables and JSON transmit it unchanged. The error's text completes "an idempotency key can't be ...".
func CheckIdempotencyKey(key string) error {
	switch {
	case key == "":
		return errors.New("empty")
	case len(key) > maxIdempotencyKey:
		return fmt.Errorf("%d bytes long: it may have %d", len(key), maxIdempotencyKey)
	case unfit(key):
		return errors.New("a text with a control character, or one that is not UTF-8")
	case strings.TrimSpace(key) != key:
		return errors.New("a text that begins or ends with a blank")
	}
	return nil
}

// unfit reports whether a text is not UTF-8 or has a control character.
func unfit(key string) bool {
	return !utf8.ValidString(key) || strings.ContainsFunc(key, unicode.IsControl)
}

// IdempotencyKey returns the idempotency key that the tool's declaration makes from the checked arguments of
// a call; it is empty if the tool declares none. The error is an *Error: InvalidArguments with a Violation if
// an argument of the key is empty or the key is invalid (see CheckIdempotencyKey).
func (e *Entry) IdempotencyKey(args contract.Args) (string, error) {
	if e.key == nil {
		return "", nil
	}
	key, err := e.key.Expand(args)
	if err != nil {
		return "", &Error{Code: Internal, Msg: "can't make the idempotency key", Err: err}
	}
	var longest, last, size string
	for _, p := range e.key {
		if p.Arg == "" {
			continue
		}
		v, _ := args.Lookup(p.Arg)
		value, _ := placeholder.Text(v)
		switch {
		case value == "":
			return "", noKey(p.Arg, "an empty string", "a string that is not empty")
		case unfit(value):
			return "", noKey(p.Arg, "a string with a control character", "a string without one")
		}
		if last = p.Arg; len(value) > len(size) {
			longest, size = p.Arg, value
		}
	}
	switch {
	case len(key) > maxIdempotencyKey:
		return "", noKey(longest, fmt.Sprintf("%d bytes", len(size)), fmt.Sprintf("%d bytes less", len(key)-maxIdempotencyKey))
	case strings.TrimLeftFunc(key, unicode.IsSpace) != key:
		return "", noKey(e.key.First(), "a string that begins with a blank", "one that does not")
	case strings.TrimSpace(key) != key:
		return "", noKey(last, "a string that ends with a blank", "one that does not")
	}
	return key, nil
}

// noKey returns the error for an argument that can't be a part of an idempotency key.
func noKey(arg, got, expected string) *Error {
	v := contract.Violation{
		Pointer: "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(arg), Got: got,
		Expected: expected + ", because it is a part of the tool's idempotency key",
	}
	return &Error{Code: InvalidArguments, Msg: v.String(), Violations: []contract.Violation{v}}
}
