package binding

import (
	"fmt"
	"iter"
	"net/url"
	"slices"
	"strings"

	"github.com/yosida95/uritemplate/v3"

	"github.com/catalogd/catalogd/decision/trust"
	"github.com/catalogd/catalogd/internal/egress"
	"github.com/catalogd/catalogd/internal/placeholder"
	"github.com/catalogd/catalogd/problem"
)

// urlTemplate is an RFC 6570 template below a fixed origin. An argument in the path stays inside its segment,
// and one in the query inside its value: operators that let reserved characters through ({+x}, {#x}) are
// rejected, and so is the prefix modifier (:n), which would send another value than the one that was checked.
type urlTemplate struct {
	fixed trust.URL
	parts []templatePart
	// join has the separators of lists that become one value.
	join joins
}

// templatePart is a literal, or an expression if that is set.
type templatePart struct {
	literal    string
	expression *expression
}

// expression is one {...} of a template.
type expression struct {
	operator string // empty, or one of . / ; ? &
	vars     []variable
	inPath   bool
}

// variable is one use of an argument.
type variable struct {
	name    string
	explode bool
}

func newURLTemplate(c *check, field, declared string, join joins) urlTemplate {
	t := urlTemplate{join: join}
	parts, err := parseTemplate(declared)
	if err == nil {
		if t.fixed, err = egress.ParseURL(declared); err == nil {
			// The library only checks the grammar. It does not expand: v3.0.2 encodes a character by its code
			// point and not by its UTF-8, so that U+2E2F becomes "%2E%2F", and NUL nothing.
			if _, err = uritemplate.New(declared); err != nil {
				err = fmt.Errorf("not a template of RFC 6570: %w", err)
			}
		}
	}
	if err != nil {
		c.errorf(problem.BadBinding, field, "%v", err)
		return t
	}
	t.parts = parts
	for e, v := range t.variables() {
		c.urlVariable(field, *e, v, join)
	}
	if err := t.stays(); err != nil {
		c.errorf(problem.BadBinding, field, "%v", err)
	}
	return t
}

// variables iterates over all uses of arguments, in order.
func (t urlTemplate) variables() iter.Seq2[*expression, variable] {
	return func(yield func(*expression, variable) bool) {
		for _, p := range t.parts {
			if p.expression == nil {
				continue
			}
			for _, v := range p.expression.vars {
				if !yield(p.expression, v) {
					return
				}
			}
		}
	}
}

// stays checks that the template keeps its origin and path when expanded with harmless values, so that a
// refusal at a call is caused by the values.
func (t urlTemplate) stays() error {
	_, err := t.place(func(string) any { return "x" })
	return err
}

// urlVariable checks that the argument exists, and that its place has something to stand for it.
func (c *check) urlVariable(field string, e expression, v variable, join joins) {
	name := v.name
	f, ok := c.field(field, name)
	if !ok {
		return
	}
	if join[name] != "" { // it becomes one text
		f.Types = slices.DeleteFunc(slices.Clone(f.Types), func(t string) bool { return t == "array" })
		if len(f.Types) == 0 {
			f.Types = []string{"string"}
		}
	}
	switch {
	case v.explode && join[name] != "":
		c.errorf(problem.BadPlaceholder, field, "{%s*} repeats the values of a list, and join has a separator for them; take one of the two away", name)
	case e.inPath && placeholder.NotScalar(f) != "":
		c.errorf(problem.BadPlaceholder, field, "argument %q can be %s, which is not one segment of a path", name, placeholder.NotScalar(f))
	case e.inPath && !f.Always():
		c.errorf(problem.BadPlaceholder, field, "argument %q is optional and has no default, so the path could miss it; make it required (%s!:), give it a default, or move it into the query ({?%s})", name, name, name)
	case e.operator == "" && !f.Always():
		c.errorf(problem.BadPlaceholder, field, "argument %q is optional and has no default; write {?%s} or {&%s}, which leave it out", name, name, name)
	}
}

// parseTemplate parses a template, and rejects the expressions that could change its origin or path.
func parseTemplate(template string) ([]templatePart, error) {
	var out []templatePart
	query := false
	for {
		literal, rest, found := strings.Cut(template, "{")
		if literal != "" {
			out = append(out, templatePart{literal: literal})
		}
		query = query || strings.Contains(literal, "?")
		if !found {
			return out, nil
		}
		inner, after, closed := strings.Cut(rest, "}")
		if !closed {
			return nil, fmt.Errorf("the expression {%s is not closed", inner)
		}
		e := &expression{inPath: !query}
		if inner != "" && strings.Contains("+#./;?&=,!@|", inner[:1]) {
			e.operator, inner = inner[:1], inner[1:]
		}
		switch {
		case e.operator == "+" || e.operator == "#":
			return nil, fmt.Errorf("{%s%s} lets reserved characters through, so an argument could change where the request goes; write {%s}", e.operator, inner, inner)
		case e.operator == "?" && query:
			return nil, fmt.Errorf("{?%s} begins a second query; write {&%s}", inner, inner)
		case e.operator == "&" && !query:
			return nil, fmt.Errorf("{&%s} continues a query that nothing begins; write {?%s}", inner, inner)
		case e.operator != "" && strings.Contains("./;", e.operator) && query:
			return nil, fmt.Errorf("{%s%s} belongs into the path, and stands in the query", e.operator, inner)
		case e.operator == "?":
			query, e.inPath = true, false
		}
		for name := range strings.SplitSeq(inner, ",") {
			if strings.Contains(name, ":") {
				return nil, fmt.Errorf("{%s}: a prefix (:n) would send another value than the one that was checked; bound the argument's length instead", inner)
			}
			plain, explode := strings.CutSuffix(name, "*")
			e.vars = append(e.vars, variable{plain, explode})
		}
		out = append(out, templatePart{expression: e})
		template = after
	}
}

func (t urlTemplate) used(c *check, into map[string]bool) {
	for _, v := range t.variables() {
		into[c.topArgument(v.name)] = true
	}
}

// hasParameter reports whether the template has a query parameter of that name.
func (t urlTemplate) hasParameter(name string) bool {
	literal, query := "", false
	for _, p := range t.parts {
		switch before, after, found := strings.Cut(p.literal, "?"); {
		case p.expression != nil:
			e := p.expression
			named := e.operator == "?" || e.operator == "&"
			if named && slices.ContainsFunc(e.vars, func(v variable) bool { return v.name == name }) {
				return true
			}
			literal, query = literal+"&", query || named
		case query:
			literal += before + after
		case found:
			literal, query = after, true
		}
	}
	for pair := range strings.SplitSeq(literal, "&") {
		key, _, _ := strings.Cut(pair, "=")
		if decoded, err := url.QueryUnescape(key); err == nil && decoded == name {
			return true
		}
	}
	return false
}
