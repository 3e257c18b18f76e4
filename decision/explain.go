package decision

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"

	"github.com/catalogd/catalogd/problem"
)

// Explanation is a decision with the rules behind it. Decisions themselves don't carry rules: to watch an evaluation
// costs as much as the evaluation.
type Explanation struct {
	Decision Decision `json:"decision"`
	// Rules were true for this input, in the point's package first, then in the helpers; each once.
	Rules []Rule `json:"rules"`
	// Unmet are the `allow` rules (allow_resource, allow_prompt where the question is about those) of the point's package when none of them was true.
	Unmet []Rule `json:"unmet,omitempty"`
	// Entry is where the trust entry that answered is written; unset unless Connect allowed.
	Entry problem.Position `json:"entry,omitzero"`
	// Facts are the parts of the input that the rules looked at to which evaluation came, true or not.
	Facts []Fact `json:"facts"`

	parts []ast.Ref // of Facts
}

// Rule is one rule of the policy.
type Rule struct {
	// Package is its package, catalogd.call; Name the rule in it.
	Package string `json:"package"`
	Name    string `json:"name"`
	problem.Position
	// Text is its first line.
	Text string `json:"text"`

	aside bool // a function or a constant
}

func (r Rule) String() string { return fmt.Sprintf("%s: %s", r.Position, r.Text) }

// String is the explanation for people: the decision, then a line a rule. Helpers that are functions or constants say
// nothing about this input and are left to Rules, which holds everything.
func (x Explanation) String() string {
	var b strings.Builder
	b.WriteString(x.Decision.String())
	if x.Entry.IsValid() {
		fmt.Fprintf(&b, "\n  written at %s", x.Entry)
	}
	own := "catalogd." + string(x.Decision.Point)
	for _, r := range x.Rules {
		if r.Package == own || !r.aside {
			fmt.Fprintf(&b, "\n  true   %s", r)
		}
	}
	for _, r := range x.Unmet {
		fmt.Fprintf(&b, "\n  unmet  %s", r)
	}
	for _, f := range x.Facts {
		fmt.Fprintf(&b, "\n  fact   %s", f)
	}
	return b.String()
}

// Responsible are the rules that the answer comes from: the deny rules that were true, where any was; else the allow rules
// that were, or all of them where none was.
func (x Explanation) Responsible() []Rule {
	own := "catalogd." + string(x.Decision.Point)
	named := func(name string) (rules []Rule) {
		for _, r := range x.Rules {
			if r.Package == own && r.Name == name {
				rules = append(rules, r)
			}
		}
		return rules
	}
	if denied := named("deny"); len(denied) > 0 {
		return denied
	}
	if allowed := named("allow"); len(allowed) > 0 {
		return allowed
	}
	return x.Unmet
}

// Explain decides once more and watches. The input is that of the point: ConnectInput, ListInput, CallInput,
// ResultInput or AdoptInput; another type is an error. It grants nothing, and takes a few times as long as the decision, so the
// deadline of a decision that is nearly too slow may strike here only.
func (e *Engine) Explain(ctx context.Context, point Point, input any) (Explanation, error) {
	spec, ok := specOf(point)
	if !ok || !spec.enforced() {
		return Explanation{}, fmt.Errorf("the point %q is not asked by this version", point)
	}
	if !fits(point, input) {
		return Explanation{}, fmt.Errorf("the point %s takes no %T", point, input)
	}
	w := &watcher{seen: map[problem.Position]Rule{}, entered: map[*ast.Rule]bool{}, parts: map[string]ast.Ref{}}
	d, _ := e.decide(ctx, point, input, w)
	x := Explanation{Decision: d, Rules: w.rules(spec), Facts: []Fact{}}
	if e.points[point] == nil {
		return x, nil // an optional package that is not there
	}
	if d.Trust != "" {
		x.Entry = e.TrustPosition(d.Trust)
	}
	own := spec.path().String()[len("data."):]
	yes := allowedBy(input)
	if !slices.ContainsFunc(x.Rules, func(r Rule) bool { return r.Package == own && r.Name == yes }) {
		x.Unmet = e.allowRules(spec, yes, w)
	}
	x.parts = w.facts()
	if facts, err := x.FactsOf(input); err == nil { // else the decision says that the input can't be read
		x.Facts = facts
	}
	return x, nil
}

func fits(point Point, input any) bool {
	switch input.(type) {
	case DiscoverInput:
		return point == Discover
	case ConnectInput:
		return point == Connect
	case ListInput:
		return point == List
	case CallInput:
		return point == Call
	case ResultInput:
		return point == Result
	case AdoptInput:
		return point == Adopt
	}
	return false
}

// allowRules are the rules that could have allowed. What they look at is noted: the index of a policy leaves out rules that
// can't be true without coming to them.
func (e *Engine) allowRules(spec pointSpec, yes string, w *watcher) []Rule {
	var rules []Rule
	for _, rule := range e.points[spec.point].compiler.GetRulesExact(spec.path().Append(ast.StringTerm(yes))) {
		if !rule.Default {
			rules = append(rules, describe(rule))
			w.lookedAt(rule)
		}
	}
	slices.SortFunc(rules, func(a, b Rule) int { return comparePositions(a.Position, b.Position) })
	return rules
}

// watcher notes the rules that an evaluation left with a value, and what those that it came to look at. It serves one
// evaluation.
type watcher struct {
	seen    map[problem.Position]Rule
	entered map[*ast.Rule]bool
	parts   map[string]ast.Ref
}

func (w *watcher) Enabled() bool               { return true }
func (w *watcher) Config() topdown.TraceConfig { return topdown.TraceConfig{} }

func (w *watcher) TraceEvent(event topdown.Event) {
	rule, ok := event.Node.(*ast.Rule)
	if ok && event.Op == topdown.EnterOp {
		w.lookedAt(rule)
	}
	if !ok || event.Op != topdown.ExitOp || rule.Default {
		return
	}
	if pos := position(rule.Location); pos.IsValid() {
		if _, ok := w.seen[pos]; !ok {
			w.seen[pos] = describe(rule)
		}
	}
}

// rules are what was seen, the point's own first.
func (w *watcher) rules(spec pointSpec) []Rule {
	own := "catalogd." + string(spec.point)
	rules := make([]Rule, 0, len(w.seen))
	for _, r := range w.seen {
		rules = append(rules, r)
	}
	slices.SortFunc(rules, func(a, b Rule) int {
		if (a.Package == own) != (b.Package == own) {
			if a.Package == own {
				return -1
			}
			return 1
		}
		return comparePositions(a.Position, b.Position)
	})
	return rules
}

func comparePositions(a, b problem.Position) int {
	return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col))
}

func describe(rule *ast.Rule) Rule {
	text, _, _ := strings.Cut(string(rule.Location.Text), "\n")
	return Rule{
		Package:  strings.Join(names(rule.Module.Package.Path), "."),
		Name:     rule.Head.Ref()[0].String(),
		Position: position(rule.Location),
		Text:     strings.TrimSuffix(strings.TrimSpace(text), " {"),
		aside:    len(rule.Head.Args) > 0 || len(rule.Body) == 1 && rule.Body[0].Equal(ast.NewExpr(ast.BooleanTerm(true))),
	}
}
