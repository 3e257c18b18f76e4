package binding

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/registry"
)

const (
	// defaultMaxOutput caps what a tool may answer, in bytes.
	defaultMaxOutput = 1 << 20
	// maxTail caps how much of an error's output a model is shown, in bytes.
	maxTail = 4 << 10
)

// violations are the reasons why checked arguments can't be carried by this binding.
type violations []contract.Violation

func (v *violations) add(arg, got, expected string) {
	pointer := "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(arg)
	*v = append(*v, contract.Violation{Pointer: pointer, Got: got, Expected: expected})
}

// err is nil without violations.
func (v violations) err() error {
	if len(v) == 0 {
		return nil
	}
	lines := make([]string, len(v))
	for i, one := range v {
		lines[i] = one.String()
	}
	return &registry.Error{Code: registry.InvalidArguments, Msg: strings.Join(lines, "\n"), Violations: v}
}

// text is a decoded single value as text: a string as it is, a number with its digits.
func text(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case json.Number:
		return v.String(), true
	case bool:
		return fmt.Sprint(v), true
	}
	return "", false
}

// compactJSON writes decoded JSON on one line, keys sorted, numbers with their digits, nothing escaped for HTML.
func compactJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// escape is a terminal's control sequence: CSI, OSC and the other strings, and the short ones.
var escape = regexp.MustCompile("\x1b(?:\\[[0-?]*[ -/]*[@-~]|[\\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\\\)?|[ -/]*[0-~])")

// plain is output as a model may read it: invalid UTF-8 replaced (U+FFFD), terminal sequences and control characters
// taken out, but for newline, carriage return and tab.
func plain(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if strings.IndexFunc(s, control) < 0 {
		return s
	}
	s = escape.ReplaceAllString(s, "")
	return strings.Map(func(r rune) rune {
		if control(r) {
			return -1
		}
		return r
	}, s)
}

// shown is plain, or all of s that is UTF-8 where the tool declares its text raw.
func shown(s string, raw bool) string {
	if raw {
		return strings.ToValidUTF8(s, "\uFFFD")
	}
	return plain(s)
}

func control(r rune) bool {
	switch r {
	case '\n', '\r', '\t':
		return false
	}
	return r < 0x20 || r >= 0x7f && r < 0xa0
}

// head is the beginning of s and tail its end, at most maxTail bytes of whole characters, saying so where they cut.
func head(s string) string {
	if len(s) <= maxTail {
		return s
	}
	cut := maxTail
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return fmt.Sprintf("%s\n[cut: %d bytes in all]", s[:cut], len(s))
}

func tail(s string) string {
	if len(s) <= maxTail {
		return s
	}
	cut := len(s) - maxTail
	for cut < len(s) && !utf8.RuneStart(s[cut]) {
		cut++
	}
	return "[cut]\n" + s[cut:]
}

// textResult is a result of these texts; empty ones are left out, but one is always there.
func textResult(isError bool, texts ...string) *registry.Result {
	r := &registry.Result{IsError: isError}
	for _, s := range texts {
		if s != "" {
			r.Content = append(r.Content, registry.Text(s))
		}
	}
	if r.Content == nil {
		r.Content = []json.RawMessage{registry.Text("")}
	}
	return r
}

// jsonResult makes a result of a tool's JSON output: an object is structured content, and everything is there as text.
// Output that is not exactly one JSON value is an error that the model sees, with the beginning of it.
func jsonResult(out, what string) *registry.Result {
	out = strings.TrimSpace(strings.ToValidUTF8(out, "\uFFFD"))
	if !json.Valid([]byte(out)) {
		return textResult(true, fmt.Sprintf("%s was to be one JSON value, and is not. It begins:\n%s", what, head(plain(out))))
	}
	var b bytes.Buffer
	if err := json.Compact(&b, []byte(out)); err != nil {
		return textResult(true, fmt.Sprintf("%s is not JSON: %v", what, err))
	}
	r := &registry.Result{Content: []json.RawMessage{registry.Text(b.String())}}
	if out[0] == '{' {
		r.Structured = b.Bytes()
	}
	return r
}

// tooLarge says that there is no result because it passed the cap.
func tooLarge(what string, limit int64) *registry.Error {
	return &registry.Error{
		Code: registry.OutputTooLarge,
		Msg:  fmt.Sprintf("%s is larger than %d bytes, the most that this tool may answer; ask for less", what, limit),
	}
}
