package lint

import (
	"maps"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/catalogd/catalogd/decision/internal/source"
)

// effects are the effects of one more value of a rule, or of one more member of a collection in the data:
// more of what `deny` needs narrows, more of what `allow` needs widens, and `not` inverts that. Only uses
// that are certainly monotone count: a condition that is a rule or a call of one, membership and iteration.
// Any other use (a value that is compared, counted, passed to a function or built into another) leaves a rule
// Undecided.
type effects struct {
	*dataflow
	rules map[string]Effect // by package and name
	data  []dataUse
	// computed: a rule is referred to by a computed name, so no effect is certain.
	computed bool
	checking bool // the rules visited check the data at load, and decide nothing
}

// dataUse is one reference of a rule to the data.
type dataUse struct {
	path    []step
	keys    bool // the keys of the value
	how     use
	element bool // of one element of an iteration
	effect  Effect
}

type use int

const (
	used   use = iota // in any way
	exists            // a condition: defined and not false
	member            // membership or iteration
)

// outputEffects are the outputs of which more widens or narrows. require_approval is not among them: asking
// for an approval narrows, and another group that may give it widens.
var outputEffects = map[string]Effect{
	"allow": Widening, "allow_resource": Widening, "allow_prompt": Widening, "relay": Widening, "elicitation_hosts": Widening,
	"deny": Narrowing, "quarantine": Narrowing, "redact": Narrowing, "redact_patterns": Narrowing, "mask": Narrowing, "problems": Narrowing,
}

func (p *Policy) effects() *effects {
	deciding := map[string]*ast.Module{}
	asked := slices.DeleteFunc(slices.Clone(p.Points), func(of Point) bool { return of.Name == "check" })
	for _, spec := range asked {
		maps.Copy(deciding, source.Closure(p.Modules, spec.path()))
	}
	f := newDataflow(deciding, p.Data).withParameters()
	s := &effects{dataflow: f, rules: map[string]Effect{}}
	for _, spec := range asked {
		s.from(spec)
	}
	s.checking, s.dataflow = true, newDataflow(p.Modules, p.Data).withParameters()
	s.from(p.point("check"))
	return s
}

// from propagates the effects of a point's outputs to the rules that they refer to.
func (s *effects) from(spec Point) {
	var queue []string
	pkg := spec.path().String()
	for _, name := range source.SortedKeys(s.dataflow.rules[pkg]) {
		s.rules[pkg+"."+name] = outputEffects[name]
		queue = append(queue, pkg+"."+name)
	}
	for len(queue) > 0 {
		path := queue[0]
		queue = queue[1:]
		rules, _ := s.byPath(path)
		for _, rule := range rules {
			for r := rule; r != nil; r = r.Else {
				w := &effectVisitor{effects: s, scope: s.scope(rule), queue: &queue}
				w.rule(r, s.rules[path], rule.Else == nil && (plainTruth(rules) || isSetRule(rule)))
			}
		}
	}
}

// plainTruth reports whether rules are true or undefined, or false by default: one more of them can't
// conflict.
func plainTruth(rules []*ast.Rule) bool {
	return !slices.ContainsFunc(rules, func(r *ast.Rule) bool {
		is, ok := r.Head.Value, r.Head.Key == nil && r.Else == nil && len(r.Head.Ref()) == 1
		return !ok || is == nil || !is.Equal(ast.BooleanTerm(!r.Default))
	})
}

// growth is the effect of one more rule of that name.
func (s *effects) growth(pkg, name string, rule *ast.Rule) Effect {
	rules := s.dataflow.rules[pkg][name]
	if s.computed || rule.Default || rule.Else != nil || !isSetRule(rule) && !plainTruth(rules) {
		return Undecided
	}
	return s.rules[pkg+"."+name]
}

// membership is the effect of one more member of a rule whose value is a set or array literal without
// conditions; false for any other rule.
func (s *effects) membership(pkg, name string, rule *ast.Rule) (effect Effect, members []string, ok bool) {
	if s.computed || rule.Default || rule.Else != nil || len(rule.Head.Args) > 0 || isPartial(rule) || !hasNoBody(rule) || len(s.dataflow.rules[pkg][name]) > 1 {
		return Undecided, nil, false
	}
	switch v := rule.Head.Value.Value.(type) {
	case ast.Set:
		v.Foreach(func(t *ast.Term) { members = append(members, t.String()) })
	case *ast.Array:
		v.Foreach(func(t *ast.Term) { members = append(members, t.String()) })
	default:
		return Undecided, nil, false
	}
	return s.rules[pkg+"."+name], members, true
}

func isSetRule(rule *ast.Rule) bool { return rule.Head.Key != nil && rule.Head.Value == nil }

// effectVisitor visits one rule.
type effectVisitor struct {
	*effects
	scope *scope
	queue *[]string
}

// rule visits a rule of which one more value has the effect, if certain.
func (w *effectVisitor) rule(r *ast.Rule, effect Effect, certain bool) {
	if !certain {
		effect = Undecided
	}
	w.body(r.Body, effect)
	for _, t := range append([]*ast.Term{r.Head.Key, r.Head.Value}, r.Head.Ref()[1:]...) {
		if t != nil && !(w.alias(r) && t == r.Head.Value) {
			w.anyUse(t)
		}
	}
}

// alias reports whether a rule only names a part of the data; its uses count where the name is used.
func (w *effectVisitor) alias(r *ast.Rule) bool {
	if isPartial(r) || len(r.Head.Args) > 0 || r.Head.Value == nil {
		return false
	}
	ref, ok := r.Head.Value.Value.(ast.Ref)
	if !ok {
		return false
	}
	rules, _ := w.referred(w.scope, ref)
	at := w.origins(w.scope, r.Head.Value)
	return len(rules) == 0 && len(at) == 1 && at[0].root == ast.DefaultRootDocument.Value
}

func (w *effectVisitor) body(body ast.Body, effect Effect) {
	for _, x := range body {
		e := effect
		if x.Negated {
			e = e.inverse()
		}
		if len(x.With) > 0 {
			w.anyUse(x)
			continue
		}
		switch terms := x.Terms.(type) {
		case *ast.Term:
			w.term(terms, e, false)
		case []*ast.Term:
			w.call(terms, e)
		case *ast.SomeDecl:
			for _, symbol := range terms.Symbols {
				if call, ok := symbol.Value.(ast.Call); ok {
					w.call(call, e)
				}
			}
		case *ast.Every:
			w.term(terms.Domain, e.inverse(), true)
			w.body(terms.Body, e)
		case *ast.Not:
			w.body(terms.Body, e.inverse())
		default:
			w.anyUse(x)
		}
	}
}

// call visits a call that is a condition: x in xs, f(x), or any other.
func (w *effectVisitor) call(terms []*ast.Term, effect Effect) {
	last := len(terms) - 1
	switch {
	case isOperator(terms[0], ast.Member) || isOperator(terms[0], ast.MemberWithKey):
		for _, t := range terms[1:last] {
			w.anyUse(t)
		}
		w.term(terms[last], effect, true)
		return
	default:
		if path, ok := w.function(w.scope, terms[0]); ok {
			w.record(path, effect)
		}
	}
	for _, t := range terms[1:] {
		w.anyUse(t)
	}
}

// term visits a term that is a condition by itself, or is iterated.
func (w *effectVisitor) term(t *ast.Term, effect Effect, iterated bool) {
	if call, ok := t.Value.(ast.Call); ok && !iterated {
		w.call(call, effect)
		return
	}
	ref, ok := t.Value.(ast.Ref)
	if v, isVar := t.Value.(ast.Var); isVar {
		ref, ok = ast.Ref{ast.NewTerm(v)}, true
	}
	if !ok {
		w.anyUse(t)
		return
	}
	for _, key := range ref[1:] {
		if _, isVar := key.Value.(ast.Var); !isVar {
			w.anyUse(key)
		}
	}
	rules, rest := w.referred(w.scope, ref)
	w.recordComputed(ref, rules)
	for _, r := range rules {
		e := effect
		if rest || !iterated && !plainTruth(rules) || iterated && isPartial(r) && !isSetRule(r) {
			e = Undecided
		}
		w.recordRule(r, e)
	}
	if iterated {
		w.recordData(t, effect, member)
	} else {
		w.recordData(t, effect, exists)
	}
}

// recordComputed records references to rules by a computed name.
func (w *effectVisitor) recordComputed(ref ast.Ref, rules []*ast.Rule) {
	if len(rules) > 0 {
		return
	}
	full := ref
	if head, ok := ref[0].Value.(ast.Var); ok {
		if imported, ok := w.scope.imports[head]; ok {
			full = imported.Concat(ref[1:])
		}
	}
	home := ast.Ref{ast.DefaultRootDocument, ast.StringTerm("catalogd")}
	ground := full.GroundPrefix()
	if full[0].Equal(ast.DefaultRootDocument) && (ground.HasPrefix(home) || home.HasPrefix(ground)) {
		w.computed = true
	}
}

// anyUse visits terms that may use rules and data in any way.
func (w *effectVisitor) anyUse(x any) {
	visit := func(t *ast.Term) {
		switch v := t.Value.(type) {
		case ast.Ref:
			if w.isCallee(v) {
				return
			}
			rules, _ := w.referred(w.scope, v)
			w.recordComputed(v, rules)
			for _, r := range rules {
				w.recordRule(r, Undecided)
			}
			w.recordData(t, Undecided, used)
		case ast.Var:
			rules, _ := w.referred(w.scope, ast.Ref{t})
			for _, r := range rules {
				w.recordRule(r, Undecided)
			}
			if b, local := w.scope.vars[v]; len(rules) > 0 || local && b.how != isTerm {
				w.recordData(t, Undecided, used)
			}
		case ast.Call:
			if path, ok := w.function(w.scope, v[0]); ok {
				w.record(path, Undecided)
			}
		}
	}
	ast.WalkTerms(x, func(t *ast.Term) bool {
		call, ok := t.Value.(ast.Call)
		if !ok || len(call) < 3 || !isOperator(call[0], ast.ObjectGet) {
			visit(t)
			return false
		}
		for _, r := range w.aliased(call[1]) {
			w.recordRule(r, Undecided)
		}
		w.recordData(t, Undecided, used)
		for _, below := range call[2:] {
			w.anyUse(below)
		}
		return true
	})
	ast.WalkExprs(x, func(expr *ast.Expr) bool {
		if terms, ok := expr.Terms.([]*ast.Term); ok {
			if path, ok := w.function(w.scope, terms[0]); ok {
				w.record(path, Undecided)
			}
		}
		return false
	})
}

// aliased are the rules that a term names.
func (w *effectVisitor) aliased(t *ast.Term) []*ast.Rule {
	ref, ok := t.Value.(ast.Ref)
	if _, isVar := t.Value.(ast.Var); isVar {
		ref, ok = ast.Ref{t}, true
	}
	if !ok {
		return nil
	}
	rules, _ := w.referred(w.scope, ref)
	return rules
}

func (w *effectVisitor) recordRule(r *ast.Rule, effect Effect) {
	w.record(r.Module.Package.Path.String()+"."+source.RuleName(r), effect)
}

// isCallee reports whether a reference names a function, whose call is recorded.
func (w *effectVisitor) isCallee(ref ast.Ref) bool {
	if _, ok := w.function(w.scope, ast.NewTerm(ref)); !ok {
		return false
	}
	rules, _ := w.referred(w.scope, ref)
	return len(rules) > 0 && len(rules[0].Head.Args) > 0
}

// record joins a use of a rule with the others: two that differ leave it Undecided.
func (w *effectVisitor) record(path string, effect Effect) {
	was, known := w.effects.rules[path]
	switch {
	case !known:
		w.effects.rules[path] = effect
	case was == effect || was == Undecided:
		return
	default:
		w.effects.rules[path] = Undecided
	}
	*w.queue = append(*w.queue, path)
}

func (w *effectVisitor) recordData(t *ast.Term, effect Effect, how use) {
	if w.checking {
		return
	}
	head := t.Value
	if call, ok := head.(ast.Call); ok && len(call) > 1 {
		head = call[1].Value
	}
	if ref, ok := head.(ast.Ref); ok {
		head = ref[0].Value
	}
	name, _ := head.(ast.Var)
	b, local := w.scope.vars[name]
	for _, at := range w.origins(w.scope, t) {
		if at.root == ast.DefaultRootDocument.Value {
			w.data = append(w.data, dataUse{path: at.path, keys: at.keys, how: how, effect: effect, element: local && b.how != isTerm})
		}
	}
}
