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

// compileWrite checks what only a tool with a side effect may declare and what it may not, and parses its
// idempotency key.
func (e *Entry) compileWrite() (problems problem.List) {
	t := &e.tool
	errorf := func(code problem.Code, field, format string, args ...any) {
		problems.Errorf(code, t.At(field), "tools."+t.Name+"."+field, format, args...)
	}
	if t.Effect != Write {
		says := `effect: "write"`
		if t.Annotations != nil { // a discovered tool's effect stands in the lock
			says = "`catalogd lock --effect write " + t.Name + "`"
		}
		const text = `%s is for tools with effect: "write", and this one has effect: %q; leave it out, or say %s`
		if t.Idempotent {
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

// StoredSecret is the path of an argument, or of a part of the result, that is declared as a secret, such as
// args.login.password. A tool with a side effect may have none, since what it is given and answers is stored.
func (t *Tool) StoredSecret() (at string, ok bool) {
	path, ok := t.Args.Secret()
	field := "args"
	if !ok && t.Result != nil {
		path, ok = t.Result.Secret()
		field = "result"
	}
	return strings.Join(append([]string{field}, path...), "."), ok
}

// checkTemplate returns what is wrong with the template of an idempotency key.
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

// maxIdempotencyKey is how many bytes an idempotency key may have.
const maxIdempotencyKey = 256

// CheckIdempotencyKey returns why a text can't be an idempotency key. A key has 1 to 256 bytes of UTF-8, and
// nothing that a header, an environment variable or JSON would not carry as it is: no control character, and
// no blank at either end.
func CheckIdempotencyKey(key string) error {
	switch {
	case key == "":
		return errors.New("empty")
	case len(key) > maxIdempotencyKey:
		return fmt.Errorf("%d bytes long: it may have %d", len(key), maxIdempotencyKey)
	case unfit(key):
		return errors.New("a text with a control character, or one that is no UTF-8")
	case strings.TrimSpace(key) != key:
		return errors.New("a text that begins or ends with a blank")
	}
	return nil
}

func unfit(key string) bool {
	return !utf8.ValidString(key) || strings.ContainsFunc(key, unicode.IsControl)
}

// IdempotencyKey is the key that the tool's declaration makes of the checked arguments of a call; empty where
// it declares none. The error is an *Error: InvalidArguments with a Violation where the arguments make no key
// (see CheckIdempotencyKey), or leave one of its arguments empty.
func (e *Entry) IdempotencyKey(args contract.Args) (string, error) {
	if e.key == nil {
		return "", nil
	}
	key, err := e.key.Expand(args)
	if err != nil {
		return "", &Error{Code: Internal, Msg: "the idempotency key could not be made", Err: err}
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
			return "", noKey(p.Arg, "an empty string", "a value that names something")
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

// noKey says what is wrong with an argument that is a part of an idempotency key.
func noKey(arg, got, expected string) *Error {
	v := contract.Violation{
		Pointer: "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(arg), Got: got,
		Expected: expected + ", because it is a part of the tool's idempotency key",
	}
	return &Error{Code: InvalidArguments, Msg: v.String(), Violations: []contract.Violation{v}}
}
