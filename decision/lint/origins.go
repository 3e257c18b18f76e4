package lint

import (
	"slices"
	"strconv"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/catalogd/catalogd/decision/internal/source"
	"github.com/catalogd/catalogd/problem"
)

// origin is where the value of a term may come from. Exactly one of root, literal and rule is set.
type origin struct {
	// root is input or data, and path leads from there; keys means the keys of the value there.
	root ast.Var
	path []step
	keys bool
	// literal is a constant, a comprehension or a collection in a module, with the scope of its variables.
	literal *ast.Term
	scope   *scope
	// rule is a partial rule: its virtual document is the collection.
	rule *ast.Rule
	// viaParam says that the value comes through a parameter of a function.
	viaParam bool
}

// step leads to a value in a collection: by a constant key, or by any.
type step struct {
	name string
	any  bool
}

// Limits for one term: how deep references are followed, as rules may be recursive until the policy is
// compiled, and how many terms in all.
const (
	maxDepth = 16
	maxSteps = 20_000
)

// origins are all origins of a term; none where it has too many.
func (f *dataflow) origins(sc *scope, t *ast.Term) []origin {
	f.budget = maxSteps
	found := f.trace(sc, t, 0)
	if f.budget < 0 {
		return nil
	}
	return found
}

// trace is origins within the budget; depth counts the references followed so far.
func (f *dataflow) trace(sc *scope, t *ast.Term, depth int) []origin {
	if f.budget--; depth > maxDepth || f.budget < 0 {
		return nil
	}
	switch v := t.Value.(type) {
	case ast.Var:
		return f.variableOrigins(sc, v, depth)
	case ast.Ref:
		found := f.trace(sc, v[0], depth+1)
		for _, term := range v[1:] {
			found = f.descend(found, stepOf(term), depth)
		}
		return f.resolveRules(found, depth)
	case ast.Call:
		if len(v) >= 3 && isOperator(v[0], ast.ObjectGet) {
			return f.resolveRules(f.descend(f.trace(sc, v[1], depth+1), stepOf(v[2]), depth), depth)
		}
		return nil
	}
	return []origin{{literal: t, scope: sc}}
}

func stepOf(t *ast.Term) step {
	if name, ok := t.Value.(ast.String); ok {
		return step{name: string(name)}
	}
	return step{any: true}
}

func (f *dataflow) variableOrigins(sc *scope, name ast.Var, depth int) []origin {
	if name == ast.InputRootDocument.Value || name == ast.DefaultRootDocument.Value {
		return []origin{{root: name}}
	}
	if b, ok := sc.vars[name]; ok {
		switch b.how {
		case isTerm:
			return f.trace(sc, b.term, depth+1)
		case isElement:
			return f.resolveRules(f.descend(f.trace(sc, b.term, depth+1), step{any: true}, depth), depth)
		case isKey:
			return f.keysOf(f.trace(sc, b.term, depth+1))
		case isParam:
			return f.parameterOrigins(sc, b.nth, depth)
		}
		return nil
	}
	if ref, ok := sc.imports[name]; ok {
		return f.trace(sc, ast.NewTerm(ref), depth+1)
	}
	if rules := f.rules[sc.pkg][string(name)]; rules != nil {
		return f.ruleOrigins(rules, depth)
	}
	return nil
}

// parameterOrigins are the origins of a parameter in all calls of its function.
func (f *dataflow) parameterOrigins(sc *scope, nth, depth int) []origin {
	var found []origin
	for _, c := range f.calls[sc.pkg+"."+source.RuleName(sc.rule)] {
		if nth >= len(c.args) {
			continue
		}
		for _, s := range f.trace(c.from, c.args[nth], depth+1) {
			s.viaParam = true
			found = append(found, s)
		}
	}
	return found
}

// descend takes one step from each.
func (f *dataflow) descend(from []origin, to step, depth int) []origin {
	var found []origin
	for _, s := range from {
		switch {
		case s.keys:
		case s.root != "":
			s.path = append(slices.Clone(s.path), to)
			found = append(found, s)
		case s.rule != nil:
			head := s.rule.Head
			inside := head.Value
			if head.Key != nil && head.Value == nil { // a set
				inside = head.Key
			}
			found = append(found, f.keepParam(s, f.trace(f.scope(s.rule), inside, depth+1))...)
		default:
			for _, t := range inside(s.literal, to) {
				found = append(found, f.keepParam(s, f.trace(s.scope, t, depth+1))...)
			}
		}
	}
	return found
}

// keepParam sets viaParam on what was found from an origin that has it.
func (f *dataflow) keepParam(from origin, found []origin) []origin {
	for i := range found {
		found[i].viaParam = found[i].viaParam || from.viaParam
	}
	return found
}

// inside are the values of a collection literal or comprehension that the step may lead to.
func inside(t *ast.Term, to step) []*ast.Term {
	var found []*ast.Term
	switch v := t.Value.(type) {
	case ast.Object:
		v.Foreach(func(key, value *ast.Term) {
			if to.any || key.Value.Compare(ast.String(to.name)) == 0 {
				found = append(found, value)
			}
		})
	case *ast.Array:
		v.Foreach(func(elem *ast.Term) { found = append(found, elem) })
	case ast.Set:
		v.Foreach(func(elem *ast.Term) { found = append(found, elem) })
	case *ast.ArrayComprehension:
		found = append(found, v.Term)
	case *ast.SetComprehension:
		found = append(found, v.Term)
	case *ast.ObjectComprehension:
		found = append(found, v.Value)
	}
	return found
}

// keysOf are the origins of the keys of each.
func (f *dataflow) keysOf(of []origin) []origin {
	var found []origin
	for _, s := range of {
		switch {
		case s.root != "" && !s.keys:
			s.keys = true
			found = append(found, s)
		case s.literal != nil:
			if object, ok := s.literal.Value.(ast.Object); ok {
				object.Foreach(func(key, _ *ast.Term) {
					found = append(found, origin{literal: key, scope: s.scope, viaParam: s.viaParam})
				})
			}
		}
	}
	return found
}

// resolveRules replaces paths of the data that are rules by the origins of the rules' values.
func (f *dataflow) resolveRules(found []origin, depth int) []origin {
	var out []origin
	for _, s := range found {
		rules, rest := f.rulesAt(s)
		if rules == nil {
			out = append(out, s)
			continue
		}
		values := f.ruleOrigins(rules, depth)
		for _, to := range rest {
			values = f.descend(values, to, depth)
		}
		if len(rest) > 0 {
			values = f.resolveRules(values, depth+1)
		}
		out = append(out, f.keepParam(s, values)...)
	}
	return out
}

// rulesAt are the rules at a path of the data, and the steps below them.
func (f *dataflow) rulesAt(s origin) (rules []*ast.Rule, rest []step) {
	if s.root != ast.DefaultRootDocument.Value || s.keys {
		return nil, nil
	}
	pkg := ast.Ref{ast.DefaultRootDocument}
	for i, to := range s.path {
		if to.any {
			return nil, nil
		}
		if rules := f.rules[pkg.String()][to.name]; rules != nil {
			return rules, s.path[i+1:]
		}
		pkg = pkg.Append(ast.StringTerm(to.name))
	}
	return nil, nil
}

// ruleOrigins are the origins of the values of rules. Functions have none.
func (f *dataflow) ruleOrigins(rules []*ast.Rule, depth int) []origin {
	var found []origin
	for _, rule := range rules {
		switch head := rule.Head; {
		case len(head.Args) > 0 || rule.Default:
		case head.Key != nil || len(head.Ref()) > 1:
			found = append(found, origin{rule: rule})
		case head.Value != nil:
			found = append(found, f.trace(f.scope(rule), head.Value, depth+1)...)
		}
	}
	return found
}

// text is a string constant of a module or of a data file.
type text struct {
	value string
	pos   problem.Position
}

// texts are the strings at an origin: a literal, or all that the data has there.
func (f *dataflow) texts(s origin) []text {
	switch {
	case s.literal != nil:
		if v, ok := s.literal.Value.(ast.String); ok {
			return []text{{string(v), source.Position(s.literal.Location)}}
		}
	case s.root == ast.DefaultRootDocument.Value:
		return textsOf(f.data, f.data.Value, nil, s.path, s.keys)
	}
	return nil
}

func textsOf(d *source.Data, value any, at []string, path []step, keys bool) []text {
	if len(path) == 0 {
		switch v := value.(type) {
		case string:
			if !keys {
				return []text{{v, d.Nearest(at)}}
			}
		case map[string]any:
			var found []text
			for _, key := range source.SortedKeys(v) {
				if keys {
					found = append(found, text{key, d.Nearest(append(slices.Clone(at), key))})
				}
			}
			return found
		}
		return nil
	}
	var found []text
	down := func(key string, v any) {
		found = append(found, textsOf(d, v, append(slices.Clone(at), key), path[1:], keys)...)
	}
	switch v := value.(type) {
	case map[string]any:
		for _, key := range source.SortedKeys(v) {
			if path[0].any || key == path[0].name {
				down(key, v[key])
			}
		}
	case []any:
		for i, elem := range v {
			down(strconv.Itoa(i), elem)
		}
	}
	return found
}

// mentions reports whether a term, or a term that its variables are bound to, has a part whose origin has the
// property is.
func (f *dataflow) mentions(sc *scope, t *ast.Term, is func(origin) bool) bool {
	return f.mention(sc, t, is, map[ast.Var]bool{})
}

func (f *dataflow) mention(sc *scope, t *ast.Term, is func(origin) bool, seen map[ast.Var]bool) bool {
	found := false
	ast.WalkTerms(t, func(part *ast.Term) bool {
		switch v := part.Value.(type) {
		case ast.Ref:
			found = found || slices.ContainsFunc(f.origins(sc, part), is)
		case ast.Var:
			found = found || slices.ContainsFunc(f.origins(sc, part), is)
			if b, ok := sc.vars[v]; ok && b.term != nil && !seen[v] {
				seen[v] = true
				found = found || f.mention(sc, b.term, is, seen)
			}
		}
		return found
	})
	return found
}
