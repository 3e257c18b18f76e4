package binding

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/internal/placeholder"
	"github.com/catalogd/catalogd/internal/secret"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// setting is the value of one header or query parameter: fixed, a secret, or a text over the arguments.
type setting struct {
	name  string
	value secret.Value
	// text is set where arguments stand in the value.
	text placeholder.Template
}

// newSetting parses a declared value and checks its placeholders. lists says that a list which stands alone
// becomes several values.
func (c *check) newSetting(at, name string, v secret.Value, join joins, lists bool) setting {
	s := setting{name: name, value: v}
	if v.Secret != "" {
		return s
	}
	parsed := placeholder.Parse(v.Literal, func(name string) bool { return dotted(name) || c.declared(name) })
	for _, p := range parsed {
		if p.Arg == "" {
			continue
		}
		s.text = parsed
		if !dotted(p.Arg) {
			if _, err := placeholder.Argument(c.tool.Args, p.Arg, fmt.Sprintf(" (for the text {%s} write {{%s}})", p.Arg, p.Arg)); err != nil {
				c.errorf(problem.BadPlaceholder, at, "%v", err)
				continue
			}
		}
		f, ok := c.field(at, p.Arg)
		if !ok {
			continue
		}
		kind := notOneText(f)
		_, joined := join[p.Arg]
		switch {
		case kind == "an array" && (joined || lists && len(parsed) == 1):
		case kind == "an array" && lists:
			c.errorf(problem.BadPlaceholder, at, "argument %q can be a list, which stands beside other text; write {%s} alone to repeat the parameter, or declare a separator (join: %s: \",\")", p.Arg, p.Arg, quoted(p.Arg))
		case kind == "an array":
			c.errorf(problem.BadPlaceholder, at, "argument %q can be a list, and this is one text; declare a separator (join: %s: \",\")", p.Arg, quoted(p.Arg))
		case kind != "":
			c.errorf(problem.BadPlaceholder, at, "argument %q can be %s, which is not a text; use string, int, number or bool, or one of its fields ({%s.NAME})", p.Arg, kind, p.Arg)
		}
	}
	if s.text == nil { // {{name}} is the text {name}
		s.value.Literal = parsed[0].Literal
	}
	return s
}

// quoted returns the name as a label of CUE.
func quoted(name string) string {
	if strings.Contains(name, ".") {
		return `"` + name + `"`
	}
	return name
}

// dotted reports whether a name in braces is one of a field inside of an argument.
func dotted(name string) bool {
	return strings.Contains(name, ".") && !strings.ContainsFunc(name, func(r rune) bool {
		return r != '.' && r != '_' && r != '-' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
}

// notOneText names the first type of the field that is not one text, or is empty. null leaves the text out.
func notOneText(f contract.Field) string {
	f.Types = slices.DeleteFunc(slices.Clone(f.Types), func(t string) bool { return t == "null" })
	return placeholder.NotScalar(f)
}

// used adds the arguments that stand in the value.
func (s setting) used(c *check, into map[string]bool) {
	for _, p := range s.text {
		if p.Arg != "" {
			into[c.topArgument(p.Arg)] = true
		}
	}
}

// expand returns the values with the arguments filled in: none where an argument in it is absent, and several
// where it is a list that stands alone.
func (s setting) expand(refused *violations, args contract.Args, join joins) []string {
	if len(s.text) == 1 {
		v, _ := lookup(args, s.text[0].Arg)
		if list, ok := v.([]any); ok && join[s.text[0].Arg] == "" {
			var out []string
			for _, one := range list {
				text, single := placeholder.Text(one)
				if !single {
					refused.add(s.text[0].Arg, "a list with other than single values", "a list of single values, because each becomes one value of the request")
					return nil
				}
				out = append(out, text)
			}
			return out
		}
	}
	var b strings.Builder
	for _, p := range s.text {
		if p.Arg == "" {
			b.WriteString(p.Literal)
			continue
		}
		text, ok := join.text(refused, args, p.Arg)
		if !ok {
			return nil
		}
		b.WriteString(text)
	}
	return []string{b.String()}
}

// maxHeader caps a header's value that arguments stand in, in bytes.
const maxHeader = 4 << 10

// checkHeader refuses arguments that no header can carry as they are.
func (s setting) checkHeader(refused *violations, value string) {
	first := s.text.First()
	const because = ", because it becomes part of a header"
	switch {
	case strings.ContainsFunc(value, func(r rune) bool {
		return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || r == unicode.ReplacementChar
	}):
		refused.add(first, "a text with a line break or another control character", "one without"+because)
	case strings.TrimSpace(value) != value:
		refused.add(first, "a value that begins or ends with a blank", "one that does not"+because)
	case len(value) > maxHeader:
		refused.add(first, fmt.Sprintf("%d bytes", len(value)), fmt.Sprintf("at most %d bytes", maxHeader)+because)
	}
}

// newQuery checks the declared query parameters.
func newQuery(c *check, field string, declared map[string]registry.Value, join joins, url urlTemplate) []setting {
	values := c.values(field, declared)
	var out []setting
	for _, name := range sortedKeys(values) {
		at := field + "." + name
		switch {
		case name == "":
			c.errorf(problem.BadBinding, at, "a query parameter has a name")
		case url.hasParameter(name):
			c.errorf(problem.BadBinding, at, "the URL has the query parameter %q already; declare it in one place", name)
		}
		out = append(out, c.newSetting(at, name, values[name], join, true))
	}
	return out
}
