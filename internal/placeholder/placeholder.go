// Package placeholder is for texts in which {name} stands for an argument of a tool: the elements of a
// command line, and idempotency keys. A Template is parsed and checked against the tool's contract once, when
// a catalog is loaded, and expanded with the checked arguments of each call.
package placeholder

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/agnivade/levenshtein"

	"github.com/catalogd/catalogd/contract"
)

// Template is a sequence of literals and placeholders. It is immutable.
type Template []Part

// Part is a literal, or the argument whose value stands in its place.
type Part struct {
	Literal string
	Arg     string
}

// Parse reads {name} as a placeholder and {{name}} as the text {name}. A name is what an identifier looks
// like, or any declared name; other braces are text. The Template has at least one part.
func Parse(text string, declared func(name string) bool) Template {
	var t Template
	var literal strings.Builder
	flush := func() {
		if literal.Len() > 0 {
			t = append(t, Part{Literal: literal.String()})
			literal.Reset()
		}
	}
	for len(text) > 0 {
		if text[0] != '{' {
			n := strings.IndexByte(text, '{')
			if n < 0 {
				n = len(text)
			}
			literal.WriteString(text[:n])
			text = text[n:]
			continue
		}
		if name, rest, ok := enclosed(text, "{{", "}}", declared); ok {
			literal.WriteString("{" + name + "}")
			text = rest
			continue
		}
		if name, rest, ok := enclosed(text, "{", "}", declared); ok {
			flush()
			t = append(t, Part{Arg: name})
			text = rest
			continue
		}
		literal.WriteByte('{')
		text = text[1:]
	}
	flush()
	if t == nil {
		t = Template{{}}
	}
	return t
}

func enclosed(text, begin, end string, declared func(string) bool) (name, rest string, ok bool) {
	inner, ok := strings.CutPrefix(text, begin)
	if !ok {
		return "", "", false
	}
	name, rest, ok = strings.Cut(inner, end)
	return name, rest, ok && (IsName(name) || declared(name))
}

// IsName reports whether s looks like the name of an argument: an identifier, in which - may stand.
func IsName(s string) bool {
	for i, r := range s {
		switch {
		case r == '_', r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z':
		case i > 0 && (r == '-' || r >= '0' && r <= '9'):
		default:
			return false
		}
	}
	return s != ""
}

// First is the first argument in the template, or empty.
func (t Template) First() string {
	for _, p := range t {
		if p.Arg != "" {
			return p.Arg
		}
	}
	return ""
}

// Expand puts the arguments in their places. What Check has let through has a value for each; an error is a
// fault of catalogd's own.
func (t Template) Expand(args contract.Args) (string, error) {
	if len(t) == 1 && t[0].Arg == "" {
		return t[0].Literal, nil
	}
	var b strings.Builder
	for _, p := range t {
		if p.Arg == "" {
			b.WriteString(p.Literal)
			continue
		}
		v, ok := args.Lookup(p.Arg)
		if !ok {
			return "", fmt.Errorf("argument %q is missing after the check", p.Arg)
		}
		s, ok := Text(v)
		if !ok {
			return "", fmt.Errorf("argument %q is not a single value after the check", p.Arg)
		}
		b.WriteString(s)
	}
	return b.String(), nil
}

// Text is a decoded single value as text: a string as it is, a number with its digits, a boolean as true or
// false.
func Text(v any) (string, bool) {
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

// Place is where a template stands, in the words of messages.
type Place struct {
	// Whole is what would miss an argument that is left out: "a command line". Part is what a value becomes:
	// "one element of a command line". Instead says what else takes values that are no single ones; it may be
	// empty.
	Whole, Part, Instead string
	// Optional is what is written for an argument that may be left out, with NAME for its name; it may be empty.
	Optional string
}

func (at Place) instead(name string) string {
	if at.Optional == "" {
		return ""
	}
	return ", or write " + strings.ReplaceAll(at.Optional, "NAME", name)
}

// Check returns what is wrong with a placeholder for the argument of that name: it is not declared, may be
// left out, or may be no single value.
func Check(spec contract.Spec, name string, at Place) []error {
	f, err := Argument(spec, name, fmt.Sprintf(" (for the text {%s} write {{%s}})", name, name))
	if err != nil {
		return []error{err}
	}
	var wrong []error
	if !f.Always() {
		wrong = append(wrong, fmt.Errorf("argument %q is optional and has no default, so %s could miss it; make it required (%s!:) or give it a default%s", name, at.Whole, name, at.instead(name)))
	}
	if t := NotScalar(f); t != "" {
		wrong = append(wrong, fmt.Errorf("argument %q can be %s, which is not %s; use string, int, number or bool%s", name, t, at.Part, at.Instead))
	}
	return wrong
}

// Argument looks up a declared argument by name. The error for one that is not there names the nearest, and
// ends in hint.
func Argument(spec contract.Spec, name, hint string) (contract.Field, error) {
	f, ok := spec.Field(name)
	if ok {
		return f, nil
	}
	if near := nearest(name, spec.Fields); near != "" {
		hint = fmt.Sprintf("; did you mean %q?", near) + hint
	}
	return f, fmt.Errorf("there is no argument %q%s", name, hint)
}

// nearest is the declared name with the fewest changes from name, at most a third of its length and at least
// one.
func nearest(name string, fields []contract.Field) string {
	best, limit := "", max(1, len(name)/3)+1
	for _, f := range fields {
		if d := levenshtein.ComputeDistance(strings.ToLower(name), strings.ToLower(f.Name)); d < limit {
			best, limit = f.Name, d
		}
	}
	return best
}

// NotScalar names the first type of the argument that is not a single value, or is empty.
func NotScalar(f contract.Field) string {
	if len(f.Types) == 0 {
		return "anything"
	}
	for _, t := range f.Types {
		switch t {
		case "string", "integer", "number", "boolean":
		case "null":
			return "null"
		default:
			return "an " + t
		}
	}
	return ""
}
