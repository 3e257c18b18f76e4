package decision

import (
	"slices"
	"strconv"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/catalogd/catalogd/problem"
)

// stands is what a term stands for. Exactly one of root, literal and rule is set.
type stands struct {
	// root is input or data, path what follows it; keys means the keys of what is there.
	root ast.Var
	path []step
	keys bool
	// literal is written out, in scope.
	literal *ast.Term
	scope   *scope
	// rule is a partial rule, as a collection.
	rule *ast.Rule
	// param says that a parameter was followed to where its function is called.
	param bool
}

// step goes down: to a key that is written out, or to any.
type step struct {
	name string
	any  bool
}

// What is followed for one term: so many rules and variables behind one another, for a policy may refer in circles until
// it is compiled, and so many in all.
const (
	maxFollow = 16
	maxSteps  = 20_000
)

// of is what a term may stand for; nothing where that takes too long to find out.
func (f *follower) of(sc *scope, t *ast.Term) []stands {
	f.budget = maxSteps
	found := f.sources(sc, t, 0)
	if f.budget < 0 {
		return nil
	}
	return found
}

// sources are what a term may stand for; depth counts what has been followed already.
func (f *follower) sources(sc *scope, t *ast.Term, depth int) []stands {
	if f.budget--; depth > maxFollow || f.budget < 0 {
		return nil
	}
	switch v := t.Value.(type) {
	case ast.Var:
		return f.variable(sc, v, depth)
	case ast.Ref:
		found := f.sources(sc, v[0], depth+1)
		for _, term := range v[1:] {
			found = f.below(found, stepOf(term), depth)
		}
		return f.followed(found, depth)
	case ast.Call:
		if len(v) >= 3 && isOperator(v[0], ast.ObjectGet) {
			return f.followed(f.below(f.sources(sc, v[1], depth+1), stepOf(v[2]), depth), depth)
		}
		return nil
	}
	return []stands{{literal: t, scope: sc}}
}

func stepOf(t *ast.Term) step {
	if name, ok := t.Value.(ast.String); ok {
		return step{name: string(name)}
	}
	return step{any: true}
}

func (f *follower) variable(sc *scope, name ast.Var, depth int) []stands {
	if name == ast.InputRootDocument.Value || name == ast.DefaultRootDocument.Value {
		return []stands{{root: name}}
	}
	if b, ok := sc.vars[name]; ok {
		switch b.how {
		case isTerm:
			return f.sources(sc, b.term, depth+1)
		case isElement:
			return f.followed(f.below(f.sources(sc, b.term, depth+1), step{any: true}, depth), depth)
		case isKey:
			return f.keys(f.sources(sc, b.term, depth+1))
		case isParam:
			return f.argument(sc, b.nth, depth)
		}
		return nil
	}
	if ref, ok := sc.imports[name]; ok {
		return f.sources(sc, ast.NewTerm(ref), depth+1)
	}
	if rules := f.rules[sc.pkg][string(name)]; rules != nil {
		return f.valued(rules, depth)
	}
	return nil
}

// argument is what a function's parameter stands for, of all calls.
func (f *follower) argument(sc *scope, nth, depth int) []stands {
	var found []stands
	for _, c := range f.calls[sc.pkg+"."+ruleName(sc.rule)] {
		if nth >= len(c.args) {
			continue
		}
		for _, s := range f.sources(c.from, c.args[nth], depth+1) {
			s.param = true
			found = append(found, s)
		}
	}
	return found
}

// below goes one step down from each.
func (f *follower) below(from []stands, to step, depth int) []stands {
	var found []stands
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
			found = append(found, f.marked(s, f.sources(f.scope(s.rule), inside, depth+1))...)
		default:
			for _, t := range inside(s.literal, to) {
				found = append(found, f.marked(s, f.sources(s.scope, t, depth+1))...)
			}
		}
	}
	return found
}

// marked keeps in mind that the way to found led through a parameter.
func (f *follower) marked(from stands, found []stands) []stands {
	for i := range found {
		found[i].param = found[i].param || from.param
	}
	return found
}

// inside are the values of a collection that is written out.
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

// keys are the keys of each.
func (f *follower) keys(of []stands) []stands {
	var found []stands
	for _, s := range of {
		switch {
		case s.root != "" && !s.keys:
			s.keys = true
			found = append(found, s)
		case s.literal != nil:
			if object, ok := s.literal.Value.(ast.Object); ok {
				object.Foreach(func(key, _ *ast.Term) {
					found = append(found, stands{literal: key, scope: s.scope, param: s.param})
				})
			}
		}
	}
	return found
}

// followed puts the values of rules in the place of what names them.
func (f *follower) followed(found []stands, depth int) []stands {
	var out []stands
	for _, s := range found {
		rules, rest := f.named(s)
		if rules == nil {
			out = append(out, s)
			continue
		}
		values := f.valued(rules, depth)
		for _, to := range rest {
			values = f.below(values, to, depth)
		}
		if len(rest) > 0 {
			values = f.followed(values, depth+1)
		}
		out = append(out, f.marked(s, values)...)
	}
	return out
}

// named are the rules that a place in the data is, and the steps that follow them.
func (f *follower) named(s stands) (rules []*ast.Rule, rest []step) {
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

// valued are the values that rules may have. Functions have none by themselves.
func (f *follower) valued(rules []*ast.Rule, depth int) []stands {
	var found []stands
	for _, rule := range rules {
		switch head := rule.Head; {
		case len(head.Args) > 0 || rule.Default:
		case head.Key != nil || len(head.Ref()) > 1:
			found = append(found, stands{rule: rule})
		case head.Value != nil:
			found = append(found, f.sources(f.scope(rule), head.Value, depth+1)...)
		}
	}
	return found
}

// text is a text that is written in a module or in a data file.
type text struct {
	value string
	pos   problem.Position
}

// texts are the texts that are written where s stands: a literal, or all that the data has there.
func (f *follower) texts(s stands) []text {
	switch {
	case s.literal != nil:
		if v, ok := s.literal.Value.(ast.String); ok {
			return []text{{string(v), position(s.literal.Location)}}
		}
	case s.root == ast.DefaultRootDocument.Value:
		return f.data.texts(f.data.value, nil, s.path, s.keys)
	}
	return nil
}

func (d *document) texts(value any, at []string, path []step, keys bool) []text {
	if len(path) == 0 {
		switch v := value.(type) {
		case string:
			if !keys {
				return []text{{v, d.nearest(at)}}
			}
		case map[string]any:
			var found []text
			for _, key := range sortedKeys(v) {
				if keys {
					found = append(found, text{key, d.nearest(append(slices.Clone(at), key))})
				}
			}
			return found
		}
		return nil
	}
	var found []text
	down := func(key string, v any) {
		found = append(found, d.texts(v, append(slices.Clone(at), key), path[1:], keys)...)
	}
	switch v := value.(type) {
	case map[string]any:
		for _, key := range sortedKeys(v) {
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
