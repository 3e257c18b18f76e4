package lint

import (
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/catalogd/catalogd/decision/internal/source"
)

// requiredRules are the rules that an output other than deny needs to be defined, with the points that reach
// them.
func (p *Policy) requiredRules(f *dataflow) map[*ast.Rule][]string {
	needed := map[*ast.Rule][]string{}
	for _, spec := range p.Points {
		if spec.Input == nil {
			continue
		}
		var queue []*ast.Rule
		for name, rules := range f.rules[spec.path().String()] {
			if name != "deny" {
				queue = append(queue, rules...)
			}
		}
		for len(queue) > 0 {
			rule := queue[0]
			queue = queue[1:]
			if slices.Contains(needed[rule], spec.Name) {
				continue
			}
			needed[rule] = append(needed[rule], spec.Name)
			for r := rule; r != nil; r = r.Else {
				queue = append(queue, f.requires(f.scope(rule), r)...)
			}
		}
	}
	return needed
}

// requires are the rules that must be defined for the rule to be. Those below `not`, in `every` and in
// comprehensions need not, nor the members of a set that is an argument of a function, which may count them.
func (f *dataflow) requires(sc *scope, rule *ast.Rule) (needed []*ast.Rule) {
	add := func(ref ast.Ref, handed bool) {
		rules, rest := f.referred(sc, ref)
		if len(rules) > 0 && (!handed || rest || !isPartial(rules[0])) {
			needed = append(needed, rules...)
		}
	}
	var terms func(t *ast.Term, handed bool)
	call := func(parts []*ast.Term) {
		if ref, ok := parts[0].Value.(ast.Ref); ok {
			add(ref, false)
		}
		iterated := isOperator(parts[0], ast.Member) || isOperator(parts[0], ast.MemberWithKey)
		for _, t := range parts[1:] {
			terms(t, !iterated)
		}
	}
	terms = func(t *ast.Term, handed bool) {
		switch v := t.Value.(type) {
		case ast.Var:
			add(ast.Ref{t}, handed)
		case ast.Ref:
			add(v, handed)
			for _, elem := range v[1:] {
				terms(elem, handed)
			}
		case ast.Call:
			call(v)
		case *ast.Array:
			v.Foreach(func(elem *ast.Term) { terms(elem, true) })
		case ast.Object:
			v.Foreach(func(_, value *ast.Term) { terms(value, true) })
		}
	}
	for _, expr := range rule.Body {
		if expr.Negated {
			continue
		}
		switch x := expr.Terms.(type) {
		case *ast.Term:
			terms(x, false)
		case []*ast.Term:
			call(x)
		case *ast.SomeDecl:
			for _, symbol := range x.Symbols {
				terms(symbol, false)
			}
		}
	}
	for _, t := range []*ast.Term{rule.Head.Key, rule.Head.Value} {
		if t != nil {
			terms(t, true)
		}
	}
	return needed
}

func isPartial(rule *ast.Rule) bool { return rule.Head.Key != nil || len(rule.Head.Ref()) > 1 }

// readsInput reports whether a rule, or one that it refers to, reads one of the fields of the input, or the
// input as a whole.
func (f *dataflow) readsInput(rule *ast.Rule, fields []string, seen map[*ast.Rule]bool) bool {
	return f.reads(f.scope(rule), rule, func(name string) bool { return slices.Contains(fields, name) }, seen)
}

// reads reports whether a rule or a part of one, or a rule that it refers to, reads a field of the input that
// is wanted, or the input as a whole. Rules in seen count as read.
func (f *dataflow) reads(sc *scope, part any, wanted func(field string) bool, seen map[*ast.Rule]bool) (found bool) {
	visit := func(ref ast.Ref) {
		if head, ok := ref[0].Value.(ast.Var); ok {
			if imported, ok := sc.imports[head]; ok {
				ref = imported.Concat(ref[1:])
			}
		}
		if ref[0].Equal(ast.InputRootDocument) {
			if len(ref) == 1 {
				found = true
			} else if name, ok := ref[1].Value.(ast.String); !ok || wanted(string(name)) {
				found = true
			}
			return
		}
		for _, r := range f.mayRefer(sc, ref) {
			if !seen[r] {
				seen[r] = true
				found = found || f.reads(f.scope(r), r, wanted, seen)
			}
		}
	}
	inRef := map[*ast.Term]bool{}
	ast.WalkTerms(part, func(t *ast.Term) bool {
		switch v := t.Value.(type) {
		case ast.Ref:
			inRef[v[0]] = true
			visit(v)
		case ast.Var:
			if !inRef[t] {
				visit(ast.Ref{t})
			}
		}
		return found
	})
	return found
}

// mayRefer are the rules that a reference begins with; of one that ends at a package or goes on by a computed
// name, all rules below.
func (f *dataflow) mayRefer(sc *scope, ref ast.Ref) (rules []*ast.Rule) {
	if rules, _ := f.referred(sc, ref); rules != nil || !ref[0].Equal(ast.DefaultRootDocument) {
		return rules
	}
	above := ref.GroundPrefix()
	for _, file := range source.SortedKeys(f.modules) {
		if m := f.modules[file]; m.Package.Path.HasPrefix(above) {
			rules = append(rules, m.Rules...)
		}
	}
	return rules
}
