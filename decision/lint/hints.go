package lint

import (
	"encoding/json"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/catalogd/catalogd/decision/internal/shape"
	"github.com/catalogd/catalogd/decision/internal/source"
)

// Hint is a value for a part of the input that a policy reads: a constant that it compares the part with, or
// a neighbour of one, so that inputs made of hints make the policy's conditions both true and false.
type Hint struct {
	// Path are the keys below input; * is any key or element.
	Path  []string
	Value any
}

// Key identifies the hint.
func (h Hint) Key() string { return strings.Join(h.Path, "\x00") + "\x01" + jsonText(h.Value) }

// Hints are those of all rules that the point reaches, each once.
func (p *Policy) Hints(name string) []Hint {
	c := newHintCollector(p)
	for _, file := range source.SortedKeys(source.Closure(p.Modules, Point{Name: name}.path())) {
		for _, rule := range p.Modules[file].Rules {
			c.rule(rule)
		}
	}
	return c.found
}

// Hints are those of the rule, as it was and as it is; none for data.
func (c Change) Hints() (found []Hint) {
	for p, rule := range map[*Policy]*ast.Rule{c.from: c.before, c.to: c.after} {
		if rule != nil {
			hints := newHintCollector(p)
			hints.rule(rule)
			found = append(found, hints.found...)
		}
	}
	slices.SortFunc(found, func(a, b Hint) int { return strings.Compare(a.Key(), b.Key()) })
	return found
}

// Values are hints that follow from the types of a point's input alone: each value of a closed list, true and
// false, and the empty text, list or object, and 0.
func (p *Policy) Values(name string) (found []Hint) {
	input := p.point(name).Input
	if input == nil {
		return nil
	}
	var walk func(s *shape.Shape, values []string, path []string)
	walk = func(s *shape.Shape, values []string, path []string) {
		add := func(all ...any) {
			for _, v := range all {
				found = append(found, Hint{Path: slices.Clone(path), Value: v})
			}
		}
		switch s.Kind {
		case shape.Object:
			for _, f := range s.Fields {
				walk(f.Shape, f.Values, append(slices.Clip(path), f.Name))
			}
		case shape.Pointer:
			walk(s.Elem, nil, path)
		case shape.String:
			for _, v := range values {
				add(v)
			}
			if values == nil {
				add("")
			}
		case shape.Bool:
			add(false, true)
		case shape.Int:
			add(json.Number("0"))
		case shape.List:
			add([]any{})
		case shape.Map:
			add(map[string]any{})
		case shape.Any, shape.Time: // which hold anything, or never nothing
		}
	}
	walk(input, nil, nil)
	return found
}

type hintCollector struct {
	*dataflow
	found []Hint
	seen  map[string]bool
}

func newHintCollector(p *Policy) *hintCollector {
	return &hintCollector{dataflow: newDataflow(p.Modules, p.Data).withParameters(), seen: map[string]bool{}}
}

// maxHints bounds the constants of one comparison: a list of a thousand names says no more than some of them.
const maxHints = 40

func (c *hintCollector) add(path []step, value any) {
	h := Hint{Value: value}
	for _, to := range path {
		h.Path = append(h.Path, to.key())
	}
	if key := h.Key(); !c.seen[key] {
		c.seen[key] = true
		c.found = append(c.found, h)
	}
}

// rule collects the comparisons and lookups of a rule, and the parts of the input that it reads.
func (c *hintCollector) rule(rule *ast.Rule) {
	sc := c.scope(rule)
	eachCall(rule, func(terms []*ast.Term) { c.call(sc, terms) })
	ast.WalkTerms(rule, func(t *ast.Term) bool {
		ref, ok := t.Value.(ast.Ref)
		if !ok {
			return false
		}
		for i := 1; i < len(ref); i++ {
			c.compare(c.inputs(sc, ref[i]), c.lookupKeys(sc, ast.NewTerm(ref[:i])), "eq")
		}
		for _, in := range c.inputs(sc, t) {
			for _, v := range []any{true, false, "x", json.Number("1")} {
				if acceptsAnyJSON(in.path) {
					c.add(in.path, v)
				}
			}
		}
		return false
	})
}

// acceptsAnyJSON reports whether a part of the input may hold any JSON.
func acceptsAnyJSON(path []step) bool {
	return len(path) > 1 && (path[0].name == "arguments" || path[0].name == "result" && path[1].name == "structured" && len(path) > 2)
}

// lookupKeys are the keys of a collection, and the members of a set.
func (c *hintCollector) lookupKeys(sc *scope, collection *ast.Term) (values []any) {
	of := c.origins(sc, collection)
	c.budget = maxSteps
	for _, s := range c.keysOf(of) {
		values = append(values, c.values(s)...)
	}
	for _, s := range of {
		if s.rule != nil || s.literal != nil && isSet(s.literal) {
			values = append(values, c.values(s)...)
		}
	}
	return values
}

// call compares each operand with all others.
func (c *hintCollector) call(sc *scope, terms []*ast.Term) {
	name := terms[0].String()
	if isOperator(terms[0], ast.Sprintf) {
		return // it formats a message, and compares nothing
	}
	for i, t := range terms[1:] {
		in := c.inputs(sc, t)
		if len(in) == 0 {
			continue
		}
		for j, other := range terms[1:] {
			if i == j {
				continue
			}
			for _, s := range c.origins(sc, other) {
				c.compare(in, c.values(s), name)
			}
		}
	}
}

// inputPart is a part of the input; size says that its length is compared.
type inputPart struct {
	path []step
	size bool
}

// inputs are the parts of the input in a term.
func (c *hintCollector) inputs(sc *scope, t *ast.Term) (found []inputPart) {
	add := func(t *ast.Term, size bool) {
		for _, s := range c.origins(sc, t) {
			if s.root != ast.InputRootDocument.Value || len(s.path) == 0 {
				continue
			}
			if s.keys { // of any of them
				s.path = append(slices.Clip(s.path), step{any: true})
			}
			found = append(found, inputPart{s.path, size})
		}
	}
	add(t, false)
	var within func(t *ast.Term, depth int)
	within = func(t *ast.Term, depth int) {
		switch v := t.Value.(type) {
		case ast.Var:
			if b, ok := sc.vars[v]; ok && b.how == isTerm && depth < 4 {
				within(b.term, depth+1)
			}
		case ast.Call:
			for _, arg := range v[1:] {
				add(arg, isOperator(v[0], ast.Count))
				within(arg, depth+1)
			}
		case *ast.Array:
			v.Foreach(func(elem *ast.Term) { add(elem, false) })
		}
	}
	within(t, 0)
	return found
}

// compare makes hints of the values for what they are compared with.
func (c *hintCollector) compare(in []inputPart, values []any, operator string) {
	for _, at := range in {
		n := 0
		for _, v := range values {
			if n++; n > maxHints {
				break
			}
			for _, near := range boundaryValues(v, operator, at.size) {
				c.add(at.path, near)
			}
		}
	}
}

// boundaryValues are values that make a comparison with v true and false.
func boundaryValues(v any, operator string, size bool) []any {
	switch v := v.(type) {
	case json.Number:
		n, err := strconv.ParseInt(string(v), 10, 32)
		if err != nil {
			return []any{v}
		}
		var out []any
		for _, i := range []int64{n - 1, n, n + 1} {
			if !size {
				out = append(out, json.Number(strconv.FormatInt(i, 10)))
			} else if i >= 0 && i < 10_000 {
				out = append(out, strings.Repeat("x", int(i)), slices.Repeat([]any{"x"}, int(i)))
			}
		}
		return out
	case string:
		out := []any{v}
		switch {
		case strings.HasPrefix(operator, "regex."):
			if text, ok := matchingText(v); ok {
				out = append(out, text)
			}
		case !slices.Contains([]string{"eq", "equal", "neq", "internal.member_2", "internal.member_3"}, operator):
			out = append(out, v+"x", "x"+v, "x"+v+"x")
		}
		if strings.Contains(v, "*") {
			out = append(out, strings.ReplaceAll(v, "*", ""), strings.ReplaceAll(v, "*", "x"))
		}
		return out
	}
	return []any{v}
}

// values are the constants at an origin: a scalar, or all of a collection.
func (c *hintCollector) values(s origin) (found []any) {
	switch {
	case s.literal != nil:
		return scalars(s.literal, nil)
	case s.rule != nil && s.rule.Head.Key != nil:
		return scalars(s.rule.Head.Key, nil)
	case s.root == ast.DefaultRootDocument.Value:
		return dataScalars(c.data.Value, s.path, s.keys, nil)
	}
	return nil
}

func scalars(t *ast.Term, found []any) []any {
	switch v := t.Value.(type) {
	case ast.String:
		return append(found, string(v))
	case ast.Number:
		return append(found, json.Number(v))
	case ast.Boolean:
		return append(found, bool(v))
	case ast.Object, *ast.Array, ast.Set:
		if whole, err := ast.JSON(t.Value); err == nil {
			found = append(found, whole)
		}
		for _, elem := range inside(t, step{any: true}) {
			found = scalars(elem, found)
		}
	}
	return found
}

// dataScalars are the scalars of the data at a path, or its keys.
func dataScalars(v any, path []step, keys bool, found []any) []any {
	if len(path) == 0 && !keys {
		found = append(found, v)
	}
	switch v := v.(type) {
	case map[string]any:
		for _, key := range source.SortedKeys(v) {
			switch {
			case len(path) == 0 && keys:
				found = append(found, key)
			case len(path) == 0 && len(found) < maxHints:
				found = dataScalars(v[key], nil, false, found)
			case len(path) > 0 && (path[0].any || path[0].name == key):
				found = dataScalars(v[key], path[1:], keys, found)
			}
		}
	case []any:
		for _, elem := range v {
			found = dataScalars(elem, path[min(1, len(path)):], keys, found)
		}
	}
	return found
}

// matchingText is a short text that a regular expression matches; false where the expression is invalid.
// Assertions are ignored.
func matchingText(pattern string) (string, bool) {
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return "", false
	}
	var b strings.Builder
	var write func(re *syntax.Regexp)
	write = func(re *syntax.Regexp) {
		switch re.Op {
		case syntax.OpLiteral:
			b.WriteString(string(re.Rune))
		case syntax.OpCharClass:
			if len(re.Rune) > 0 {
				b.WriteRune(re.Rune[0])
			}
		case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
			b.WriteByte('x')
		case syntax.OpCapture, syntax.OpPlus, syntax.OpConcat:
			for _, sub := range re.Sub {
				write(sub)
			}
		case syntax.OpAlternate:
			write(re.Sub[0])
		case syntax.OpRepeat:
			for range min(re.Min, 64) {
				write(re.Sub[0])
			}
		}
	}
	write(re)
	return b.String(), true
}
