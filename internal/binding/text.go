package binding

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/internal/strictjson"
	"github.com/catalogd/catalogd/registry"
)

const (
	// defaultMaxOutput caps a tool's output, in bytes.
	defaultMaxOutput = 1 << 20
	// maxTail caps the part of an error's output that a model sees, in bytes.
	maxTail = 4 << 10
)

// violations are the reasons why valid arguments can't be carried by this binding.
type violations []contract.Violation

func (v *violations) add(arg, got, expected string) { v.at(pointerOf(arg), got, expected) }

func (v *violations) at(pointer, got, expected string) {
	*v = append(*v, contract.Violation{Pointer: pointer, Got: got, Expected: expected})
}

// pointerOf returns the JSON pointer of an argument.
func pointerOf(arg string) string {
	return "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(arg)
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
	return &registry.Error{Code: registry.InvalidArguments, Msg: strings.Join(lines, "\n"), Violations: v, Unsent: true}
}

// compactJSON writes decoded JSON on one line, with sorted keys, numbers with all their digits, and no HTML
// escaping.
func compactJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// escape matches a terminal's control sequences: CSI, OSC and the other strings, and the short ones.
var escape = regexp.MustCompile("\x1b(?:\\[[0-?]*[ -/]*[@-~]|[\\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\\\)?|[ -/]*[0-~])")

// plain returns output for a model: invalid UTF-8 is replaced (U+FFFD), and terminal sequences and control
// characters except newline, carriage return and tab are removed.
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

// shown is plain, or only replaces invalid UTF-8 where the tool declares its text raw.
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

// head returns the beginning of s and tail its end, at most maxTail bytes of whole characters, with a note
// where text was cut.
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

// textResult is a result of these texts without the empty ones; it always has at least one.
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

// jsonResult converts a tool's JSON output to a result: an object is structured content, and any value is
// text too. Of a key that an object has twice, the last value counts. It is false for output that is not
// exactly one JSON value.
func jsonResult(out string) (*registry.Result, bool) {
	data, err := strictjson.Unambiguous([]byte(strings.TrimSpace(strings.ToValidUTF8(out, "\uFFFD"))))
	if err != nil {
		return nil, false
	}
	var b bytes.Buffer
	if err := json.Compact(&b, data); err != nil {
		return nil, false
	}
	r := &registry.Result{Content: []json.RawMessage{registry.Text(b.String())}}
	if data[0] == '{' {
		r.Structured = b.Bytes()
	}
	return r, true
}

// outputResult is the result of a tool that reports no error. kind is text, json or content. Output that
// should be JSON and is not becomes an error that the model sees, with the beginning of the output; for a
// tool with a side effect the error says that the effect happened. Output that should be content and is not
// is withheld.
func outputResult(out, what, kind string, raw, write bool) (*registry.Result, error) {
	switch kind {
	case "json":
		if r, ok := jsonResult(out); ok {
			return r, nil
		}
		if write {
			return nil, hidden(registry.ResultInvalid, registry.OutcomeSucceeded, what+" was to be one JSON value, and is not")
		}
		return textResult(true, fmt.Sprintf("%s was to be one JSON value, and is not. It begins:\n%s", what, head(plain(out)))), nil
	case "content":
		r, err := contentResult(out, raw)
		if err == nil {
			return r, nil
		}
		msg := fmt.Sprintf("%s was to be content of MCP, and is not: %v", what, err)
		if write {
			return nil, hidden(registry.ResultInvalid, registry.OutcomeSucceeded, msg)
		}
		return nil, &registry.Error{Code: registry.ResultInvalid, Msg: msg + ". The tool has run; its result is withheld"}
	}
	return textResult(false, shown(out, raw)), nil
}
