package binding

import (
	"fmt"
	"strings"

	"github.com/agnivade/levenshtein"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// maxElement is the size that Linux allows one element of a command line, without its final NUL.
const maxElement = 128<<10 - 1

// argv is a command line's template. Each declared element becomes exactly one element of every command line: values are
// never split, joined or read again.
type argv []element

// element is a sequence of literals and placeholders; without placeholders it is one literal.
type element []part

// part is a literal, or the argument whose value stands in its place.
type part struct {
	literal string
	arg     string
}

// newArgv parses the declared elements and holds their placeholders against the tool's arguments.
func newArgv(c *check, field string, elements []string, joined bool) argv {
	out := make(argv, len(elements))
	for i, text := range elements {
		at := fmt.Sprintf("%s.%d", field, i)
		if strings.ContainsRune(text, 0) {
			c.errorf(problem.BadBinding, at, "the element holds a NUL byte, which no command line can carry")
		}
		e := parseElement(text, func(name string) bool { _, ok := c.tool.Args.Field(name); return ok })
		for _, p := range e {
			if p.arg == "" {
				continue
			}
			c.placeholder(at, p.arg)
			if len(e) > 1 && !joined {
				c.errorf(problem.BadPlaceholder, at, "{%s} stands inside the element %q; give it an element of its own, or set joined: true", p.arg, text)
			}
		}
		out[i] = e
	}
	return out
}

// placeholder checks that the argument is declared, always there, and one value.
func (c *check) placeholder(at, name string) {
	f, ok := c.argument(at, name, fmt.Sprintf(" (for the text {%s} write {{%s}})", name, name))
	if !ok {
		return
	}
	if !f.Always() {
		c.errorf(problem.BadPlaceholder, at, "argument %q is optional and has no default, so a command line could miss it; make it required (%s!:) or give it a default", name, name)
	}
	if t := notScalar(f); t != "" {
		c.errorf(problem.BadPlaceholder, at, "argument %q can be %s, which is not one element of a command line; use string, int, number or bool, or stdin: \"json\"", name, t)
	}
}

// argument looks up a declared argument by name, and reports it as missing with the nearest one.
func (c *check) argument(at, name, hint string) (contract.Field, bool) {
	f, ok := c.tool.Args.Field(name)
	if ok {
		return f, true
	}
	if near := nearest(name, c.tool.Args.Fields); near != "" {
		hint = fmt.Sprintf("; did you mean %q?", near) + hint
	}
	c.errorf(problem.BadPlaceholder, at, "there is no argument %q%s", name, hint)
	return contract.Field{}, false
}

// nearest is the declared name with the fewest changes from name, at most a third of its length and at least one.
func nearest(name string, fields []contract.Field) string {
	best, limit := "", max(1, len(name)/3)+1
	for _, f := range fields {
		if d := levenshtein.ComputeDistance(strings.ToLower(name), strings.ToLower(f.Name)); d < limit {
			best, limit = f.Name, d
		}
	}
	return best
}

// notScalar names the first type of the argument that is not a single value, or is empty.
func notScalar(f contract.Field) string {
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

// parseElement reads {name} as a placeholder and {{name}} as the text {name}. A name is what an identifier looks like, or
// any declared name; other braces are text.
func parseElement(text string, isDeclared func(string) bool) element {
	var e element
	var literal strings.Builder
	flush := func() {
		if literal.Len() > 0 {
			e = append(e, part{literal: literal.String()})
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
		if name, rest, ok := enclosed(text, "{{", "}}", isDeclared); ok {
			literal.WriteString("{" + name + "}")
			text = rest
			continue
		}
		if name, rest, ok := enclosed(text, "{", "}", isDeclared); ok {
			flush()
			e = append(e, part{arg: name})
			text = rest
			continue
		}
		literal.WriteByte('{')
		text = text[1:]
	}
	flush()
	if e == nil {
		e = element{{}}
	}
	return e
}

func enclosed(text, begin, end string, isDeclared func(string) bool) (name, rest string, ok bool) {
	inner, ok := strings.CutPrefix(text, begin)
	if !ok {
		return "", "", false
	}
	name, rest, ok = strings.Cut(inner, end)
	return name, rest, ok && (isIdentifier(name) || isDeclared(name))
}

func isIdentifier(s string) bool {
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

// used adds the arguments that the template takes.
func (a argv) used(into map[string]bool) {
	for _, e := range a {
		for _, p := range e {
			if p.arg != "" {
				into[p.arg] = true
			}
		}
	}
}

// expand fills in the arguments. It refuses values that no command line can carry, and those that the command would take
// for an option: an element that begins with a placeholder must not come to begin with a dash, unless an element -- stands
// before it.
func (a argv) expand(args contract.Args) ([]string, error) {
	out := make([]string, len(a))
	var refused violations
	options := true
	for i, e := range a {
		text, err := e.expand(args)
		if err != nil {
			return nil, err
		}
		first := e.first()
		switch {
		case strings.ContainsRune(text, 0):
			refused.add(first, "a string with a NUL byte", "a string without one, because it becomes part of a command line")
		case len(text) > maxElement:
			refused.add(first, fmt.Sprintf("%d bytes", len(text)), fmt.Sprintf("at most %d bytes, because it becomes one element of a command line", maxElement))
		case options && e[0].arg != "" && strings.HasPrefix(text, "-"):
			refused.add(first, "a value that begins with -", "one that does not, because the command would take it for an option "+
				`(the author of the tool can allow it: with an element "--" before {`+first+"}, or with joined: true and --flag={"+first+"})")
		}
		if len(e) == 1 && e[0].literal == "--" {
			options = false
		}
		out[i] = text
	}
	return out, refused.err()
}

func (e element) expand(args contract.Args) (string, error) {
	if len(e) == 1 && e[0].arg == "" {
		return e[0].literal, nil
	}
	var b strings.Builder
	for _, p := range e {
		if p.arg == "" {
			b.WriteString(p.literal)
			continue
		}
		value, err := scalar(args, p.arg)
		if err != nil {
			return "", err
		}
		b.WriteString(value)
	}
	return b.String(), nil
}

// first is the first argument in the element, or empty.
func (e element) first() string {
	for _, p := range e {
		if p.arg != "" {
			return p.arg
		}
	}
	return ""
}

// scalar is the text of an argument: a string as it is, a number with its digits, a boolean as true or false.
func scalar(args contract.Args, name string) (string, error) {
	v, ok := args.Lookup(name)
	if !ok {
		return "", &registry.Error{Code: registry.Internal, Msg: fmt.Sprintf("argument %q is missing after the check", name)}
	}
	s, ok := text(v)
	if !ok {
		return "", &registry.Error{Code: registry.Internal, Msg: fmt.Sprintf("argument %q is no single value after the check", name)}
	}
	return s, nil
}
