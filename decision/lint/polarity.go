package lint

import (
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/catalogd/catalogd/decision/internal/source"
)

// polarity is the direction in which an expression or rule moves decisions. It is a set, as several rules may
// use a helper.
type polarity uint8

const (
	// permits: where it is true, more may be allowed. An allow rule and what it needs have it.
	permits polarity = 1 << iota
	// restricts: where it is not true, more may be allowed. A deny rule and what it needs have it.
	restricts
	// mixed: its value is used in a way that need not be monotone, such as in count or a comparison.
	mixed
)

// negated is the polarity below a negation.
func (s polarity) negated() polarity {
	turned := s & mixed
	if s&permits != 0 {
		turned |= restricts
	}
	if s&restricts != 0 {
		turned |= permits
	}
	return turned
}

// The outputs of which more permits, and those of which more restricts. Any other may do either.
var (
	permitting  = []string{"allow", "allow_resource", "allow_prompt", "trust", "env", "from_call", "stdin", "headers", "secrets", "interpreter", "unpinned", "in_tree", "addresses", "relay", "elicitation_hosts"}
	restricting = []string{"deny", "quarantine", "redact", "redact_patterns", "max_bytes", "rate_limit", "timeout", "require_approval", "problems", "mask"}
)

func polarityOf(output string) polarity {
	switch {
	case slices.Contains(permitting, output):
		return permits
	case slices.Contains(restricting, output):
		return restricts
	}
	return permits | restricts
}

// polarities are those of every rule that a point, the check of the data or the log reaches: the least fixed
// point over references between rules.
func (f *dataflow) polarities(points []Point) map[*ast.Rule]polarity {
	found := map[*ast.Rule]polarity{}
	var queue []*ast.Rule
	add := func(rules []*ast.Rule, s polarity) {
		for _, rule := range rules {
			if found[rule]|s != found[rule] {
				found[rule] |= s
				queue = append(queue, rule)
			}
		}
	}
	for _, spec := range points {
		pkg := f.rules[spec.path().String()]
		for _, name := range source.SortedKeys(pkg) {
			add(pkg[name], polarityOf(name))
		}
	}
	for len(queue) > 0 {
		rule := queue[0]
		queue = queue[1:]
		f.visitRule(rule, found[rule], visitor{refers: add})
	}
	return found
}

// visitor is called with the parts of a rule and the polarity of each. Any of its functions may be nil.
type visitor struct {
	// refers is called with the rules that a reference in the rule names.
	refers func([]*ast.Rule, polarity)
	// expr is called with every expression of every body, call with every call and comparison.
	expr func(*ast.Expr, polarity, *block)
	call func([]*ast.Term, polarity)
}

// block is a body with the terms of its head (of a rule or of a comprehension) and the blocks around it.
type block struct {
	body  ast.Body
	heads []*ast.Term
	outer *block
}

// blockOf is the body of a rule.
func blockOf(r *ast.Rule) *block {
	in := &block{body: r.Body}
	for _, t := range []*ast.Term{r.Head.Key, r.Head.Value} {
		if t != nil {
			in.heads = append(in.heads, t)
		}
	}
	return in
}

// visitRule visits a rule of polarity s and its else branches. A rule without a polarity is reached by
// nothing and not visited.
func (f *dataflow) visitRule(rule *ast.Rule, s polarity, visit visitor) {
	if s == 0 {
		return
	}
	w := polarityVisitor{f, f.scope(rule), visit}
	if rule.Else != nil {
		s |= mixed // where one branch is not true, the next one is evaluated
	}
	for r := rule; r != nil; r = r.Else {
		w.block(blockOf(r), s)
	}
}

type polarityVisitor struct {
	*dataflow
	sc *scope
	visitor
}

func (w *polarityVisitor) block(in *block, s polarity) {
	for _, x := range in.body {
		if w.expr != nil {
			w.expr(x, s, in)
		}
		if x.Negated {
			w.terms(x, s.negated(), in)
		} else {
			w.terms(x, s, in)
		}
		for _, with := range x.With {
			w.value(with.Value, mixed, in)
		}
	}
	for _, t := range in.heads {
		w.value(t, s, in)
	}
}

func (w *polarityVisitor) terms(x *ast.Expr, s polarity, in *block) {
	inside := func(body ast.Body, s polarity) { w.block(&block{body: body, outer: in}, s) }
	switch terms := x.Terms.(type) {
	case *ast.Term:
		w.truth(terms, s, in)
	case []*ast.Term:
		w.operation(terms, s, in)
	case *ast.SomeDecl:
		for _, symbol := range terms.Symbols {
			if membership, ok := symbol.Value.(ast.Call); ok {
				w.members(membership[len(membership)-1], s, in)
			}
		}
	case *ast.Every:
		w.members(terms.Domain, s.negated(), in)
		inside(terms.Body, s)
	case *ast.Not:
		inside(terms.Body, s.negated())
	case *ast.LogicalAnd:
		inside(terms.Lhs, s)
		inside(terms.Rhs, s)
	case *ast.LogicalOr:
		inside(terms.Lhs, s)
		inside(terms.Rhs, s)
	}
}

// truth visits a term that is an expression by itself: it must be defined and not false.
func (w *polarityVisitor) truth(t *ast.Term, s polarity, in *block) {
	switch v := t.Value.(type) {
	case ast.Call:
		w.operation(v, s, in)
	case ast.Ref:
		w.refer(v, s)
		w.path(v, s, in)
	case ast.Var:
		w.refer(ast.Ref{t}, s)
	default:
		w.value(t, s, in)
	}
}

// path visits the terms of a reference.
func (w *polarityVisitor) path(ref ast.Ref, s polarity, in *block) {
	for i, t := range ref {
		if _, isVar := t.Value.(ast.Var); i > 0 || !isVar {
			w.value(t, s, in)
		}
	}
}

// operation visits a call or comparison that is an expression by itself.
func (w *polarityVisitor) operation(terms []*ast.Term, s polarity, in *block) {
	if w.call != nil {
		w.call(terms, s)
	}
	if ref, ok := terms[0].Value.(ast.Ref); ok {
		w.refer(ref, s)
	}
	if len(terms) == 3 {
		if of, turned, ok := counted(terms); ok {
			if turned {
				s = s.negated()
			}
			w.members(of, s, in)
			return
		}
	}
	for i, t := range terms[1:] {
		if i == len(terms)-2 && (isOperator(terms[0], ast.Member) || isOperator(terms[0], ast.MemberWithKey)) {
			w.members(t, s, in)
		} else {
			w.value(t, s, in)
		}
	}
}

// counted is x in count(x) > 0 and the like; turned says that fewer members make it true.
func counted(terms []*ast.Term) (of *ast.Term, turned, ok bool) {
	call, isCall := terms[1].Value.(ast.Call)
	if _, isNumber := terms[2].Value.(ast.Number); !isCall || !isNumber || len(call) != 2 || !isOperator(call[0], ast.Count) {
		return nil, false, false
	}
	none := terms[2].Value.Compare(ast.Number("0")) == 0
	switch {
	case isOperator(terms[0], ast.GreaterThan), isOperator(terms[0], ast.GreaterThanEq), none && isOperator(terms[0], ast.NotEqual):
		return call[1], false, true
	case isOperator(terms[0], ast.LessThan), isOperator(terms[0], ast.LessThanEq), none && isOperator(terms[0], ast.Equal):
		return call[1], true, true
	}
	return nil, false, false
}

// members visits a collection of which the members count.
func (w *polarityVisitor) members(t *ast.Term, s polarity, in *block) {
	switch v := t.Value.(type) {
	case ast.Ref:
		w.refer(v, s)
		w.path(v, s, in)
	case ast.Var:
		w.refer(ast.Ref{t}, s)
	case *ast.ArrayComprehension:
		w.block(&block{v.Body, []*ast.Term{v.Term}, in}, s)
	case *ast.SetComprehension:
		w.block(&block{v.Body, []*ast.Term{v.Term}, in}, s)
	default:
		w.value(t, s, in)
	}
}

// value visits a term whose value is used.
func (w *polarityVisitor) value(t *ast.Term, s polarity, in *block) {
	used := func(rules []*ast.Rule) polarity {
		if slices.ContainsFunc(rules, func(r *ast.Rule) bool { return r.Default || r.Else != nil || isPartial(r) }) {
			return s | mixed
		}
		return s
	}
	refer := func(ref ast.Ref) {
		if rules, _ := w.referred(w.sc, ref); w.refers != nil {
			w.refers(rules, used(rules))
		}
	}
	switch v := t.Value.(type) {
	case ast.Var:
		refer(ast.Ref{t})
	case ast.Ref:
		refer(v)
		w.path(v, s, in)
	case ast.Call:
		if w.call != nil {
			w.call(v, mixed)
		}
		if ref, ok := v[0].Value.(ast.Ref); ok {
			refer(ref)
		}
		for _, arg := range v[1:] {
			w.value(arg, s|mixed, in)
		}
	case *ast.Array, ast.Set, ast.Object:
		for _, part := range literalParts(t) {
			w.value(part, s, in)
		}
	case *ast.ArrayComprehension:
		w.block(&block{v.Body, []*ast.Term{v.Term}, in}, mixed)
	case *ast.SetComprehension:
		w.block(&block{v.Body, []*ast.Term{v.Term}, in}, mixed)
	case *ast.ObjectComprehension:
		w.block(&block{v.Body, []*ast.Term{v.Key, v.Value}, in}, mixed)
	case *ast.TemplateString:
		for _, part := range v.Parts {
			if x, ok := part.(*ast.Expr); ok {
				w.terms(x, mixed, in)
			}
		}
	}
}

func (w *polarityVisitor) refer(ref ast.Ref, s polarity) {
	if rules, _ := w.referred(w.sc, ref); w.refers != nil && len(rules) > 0 {
		w.refers(rules, s)
	}
}
