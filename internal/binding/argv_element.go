package binding

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/internal/placeholder"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// element is one declared element: its literals and placeholders in their order.
type element []part

// part is a literal, or a placeholder for arg.
type part struct {
	literal, arg string
	// mark is 0 for {name}, '?' for {name?} and '*' for {name*}.
	mark byte
	// option is TEXT of {name?TEXT} and {name*TEXT}: an element of its own before each value.
	option string
}

// produced is one element of a command line. begins says that its text begins with the value of arg, which a
// JSON pointer leads to.
type produced struct {
	text, arg, pointer string
	begins             bool
}

// parseElement reads {name}, {name?}, {name*}, {name?TEXT} and {name*TEXT} as placeholders, and each of them
// in double braces as the text in single ones. A name is what an identifier looks like, or any declared name;
// other braces are text. The element has at least one part.
func parseElement(text string, declared func(string) bool) (e element) {
	var literal strings.Builder
	flush := func() {
		if literal.Len() > 0 {
			e = append(e, part{literal: literal.String()})
			literal.Reset()
		}
	}
	for len(text) > 0 {
		if inner, rest, ok := braced(text, "{{", "}}"); ok {
			if _, ok := parsePart(inner, declared); ok {
				literal.WriteString("{" + inner + "}")
				text = rest
				continue
			}
		}
		if inner, rest, ok := braced(text, "{", "}"); ok {
			if p, ok := parsePart(inner, declared); ok {
				flush()
				e = append(e, p)
				text = rest
				continue
			}
		}
		literal.WriteByte(text[0])
		text = text[1:]
	}
	flush()
	if e == nil {
		e = element{{}}
	}
	return e
}

func braced(text, begin, end string) (inner, rest string, ok bool) {
	if inner, ok = strings.CutPrefix(text, begin); !ok {
		return "", "", false
	}
	return strings.Cut(inner, end)
}

func parsePart(inner string, declared func(string) bool) (part, bool) {
	if declared(inner) || placeholder.IsName(inner) {
		return part{arg: inner}, true
	}
	i := strings.IndexAny(inner, "?*")
	if i < 0 || strings.Contains(inner, "{") || !declared(inner[:i]) && !placeholder.IsName(inner[:i]) {
		return part{}, false
	}
	return part{arg: inner[:i], mark: inner[i], option: inner[i+1:]}, true
}

// check reports what is wrong with the placeholders of an element.
func (e element) check(c *check, at, text string, joined bool) {
	lists := 0
	for _, p := range e {
		if p.arg == "" {
			continue
		}
		switch {
		case len(e) > 1 && p.option != "":
			c.errorf(problem.BadPlaceholder, at, "{%s%c%s} makes elements of its own, and stands inside the element %q; give it an element of its own", p.arg, p.mark, p.option, text)
		case len(e) > 1 && !joined:
			c.errorf(problem.BadPlaceholder, at, "{%s} stands inside the element %q; give it an element of its own, or set joined: true", p.arg, text)
		case p.option == "--":
			c.errorf(problem.BadPlaceholder, at, `{%s%c--} would make an element "--" that a call can leave out; write "--" as an element of its own`, p.arg, p.mark)
		}
		if p.mark == '*' {
			lists++
		}
		p.check(c, at)
	}
	if lists > 1 {
		c.errorf(problem.BadPlaceholder, at, "the element %q has %d lists, and stands once for each item of one; give each an element of its own", text, lists)
	}
}

// check reports what is wrong with a placeholder: an undeclared argument, or one whose values don't fit.
func (p part) check(c *check, at string) {
	if p.mark == 0 {
		for _, err := range placeholder.Check(c.tool.Args, p.arg, commandLine) {
			c.errorf(problem.BadPlaceholder, at, "%v", err)
		}
		return
	}
	f, err := placeholder.Argument(c.tool.Args, p.arg, fmt.Sprintf(" (for the text {%[1]s%[2]c%[3]s} write {{%[1]s%[2]c%[3]s}})", p.arg, p.mark, p.option))
	switch {
	case err != nil:
		c.errorf(problem.BadPlaceholder, at, "%v", err)
	case p.mark == '*' && !slices.Equal(f.Types, []string{"array"}):
		c.errorf(problem.BadPlaceholder, at, "argument %q is not always a list, which {%s*} is for; declare it as a list, or write {%s?}", p.arg, p.arg, p.arg)
	case p.mark == '*':
		if kind := itemKind(c.tool.Args, p.arg); kind != "" {
			c.errorf(problem.BadPlaceholder, at, "an item of argument %q can be %s, which is not one element of a command line; use string, int, number or bool", p.arg, kind)
		}
	case placeholder.NotScalar(f) != "":
		c.errorf(problem.BadPlaceholder, at, "argument %q can be %s, which is not one element of a command line; use string, int, number or bool, or {%s*} for a list", p.arg, placeholder.NotScalar(f), p.arg)
	case p.option != "" && slices.Contains(f.Types, "boolean") && len(f.Types) > 1:
		c.errorf(problem.BadPlaceholder, at, "argument %q can be a boolean or something else, so {%s?%s} is a flag or an option with a value; declare one of them", p.arg, p.arg, p.option)
	}
}

// itemKind names a type of the list's items that is no single value, or is empty. A schema that states no
// type, or refers to another, is "anything"; a call is checked all the same.
func itemKind(spec contract.Spec, name string) string {
	var schema struct {
		Properties map[string]struct {
			Items struct{ Type json.RawMessage }
		}
	}
	if json.Unmarshal(spec.Schema, &schema) != nil {
		return "anything"
	}
	var types []string
	raw := schema.Properties[name].Items.Type
	if json.Unmarshal(raw, &types) != nil {
		var one string
		if json.Unmarshal(raw, &one) == nil {
			types = []string{one}
		}
	}
	return placeholder.NotScalar(contract.Field{Types: types})
}

// expand returns the elements that a declared element becomes for a call. It is none where an argument with a
// mark is absent, a list is empty, or a flag is false.
func (e element) expand(args contract.Args, refused *violations) ([]produced, error) {
	items := []any{nil}
	for _, p := range e {
		v, ok := args.Lookup(p.arg)
		switch {
		case p.mark == 0:
		case !ok:
			return nil, nil
		case p.mark == '*':
			items, _ = v.([]any)
		case p.option != "" && v == false:
			return nil, nil
		case p.option != "" && v == true:
			return []produced{{text: p.option, arg: p.arg, pointer: pointerOf(p.arg)}}, nil
		}
	}
	var out []produced
	for i, item := range items {
		one := produced{}
		for n, p := range e {
			if p.option != "" {
				out = append(out, produced{text: p.option, arg: p.arg, pointer: pointerOf(p.arg)})
			}
			text := p.literal
			if p.arg != "" {
				v, _ := args.Lookup(p.arg)
				pointer := pointerOf(p.arg)
				if p.mark == '*' {
					v, pointer = item, fmt.Sprintf("%s/%d", pointer, i)
				}
				var ok bool
				if text, ok = placeholder.Text(v); !ok && p.mark == '*' {
					refused.at(pointer, "a value that is no text, number or boolean", "one, because it becomes one element of a command line")
				} else if !ok {
					return nil, &registry.Error{Code: registry.Internal, Msg: fmt.Sprintf("argument %q is not a single value after the check", p.arg)}
				}
				if one.arg == "" {
					one.arg, one.pointer, one.begins = p.arg, pointer, n == 0
				}
			}
			one.text += text
		}
		out = append(out, one)
	}
	return out, nil
}
