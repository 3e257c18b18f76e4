package decision

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"

	"github.com/catalogd/catalogd/decision/internal/source"
	"github.com/catalogd/catalogd/problem"
)

// Explanation is a decision with the rules behind it. Decisions themselves don't have rules, as tracing an
// evaluation costs as much as the evaluation.
type Explanation struct {
	// Decision is the answer of the policy.
	Decision Decision `json:"decision"`
	// Rules were true for this input, in the point's package first, then in the helpers; each once.
	Rules []Rule `json:"rules"`
	// Unmet are the `allow` rules of the point's package if none of them was true (allow_resource or
	// allow_prompt for a question about these).
	Unmet []Rule `json:"unmet,omitempty"`
	// Entry is where the trust entry that answered is written; unset unless Connect allowed.
	Entry problem.Position `json:"entry,omitzero"`
	// Facts are the parts of the input that the evaluated rules read, true or not.
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

// String is the explanation for people: the decision, then a line a rule. Helpers that are functions or
// constants say nothing about this input and are left to Rules, which holds everything.
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

// Responsible are the rules that the answer comes from: the deny rules that were true, where any was; else
// the allow rules that were, with those that ask for an approval, or all of them where none was.
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
		return append(allowed, named("require_approval")...)
	}
	return x.Unmet
}

// Explain evaluates the point with a tracer. The input must have the point's input type. It grants nothing,
// and takes a few times as long as the decision, so it may exceed the deadline where the decision does not.
func (e *Engine) Explain(ctx context.Context, point Point, input any) (Explanation, error) {
	spec, ok := specOf(point)
	if !ok {
		return Explanation{}, fmt.Errorf("the point %q is not asked by this version", point)
	}
	if !takesInput(point, input) {
		return Explanation{}, fmt.Errorf("the point %s takes no %T", point, input)
	}
	w := &explainTracer{seen: map[problem.Position]Rule{}, entered: map[*ast.Rule]bool{}, parts: map[string]ast.Ref{}}
	d, _, ended := e.decideTraced(ctx, point, input, w)
	if !ended {
		return Explanation{Decision: d, Rules: []Rule{}, Facts: []Fact{}}, nil
	}
	x := Explanation{Decision: d, Rules: w.rules(spec), Facts: []Fact{}}
	if e.points[point] == nil {
		return x, nil // an optional package that is not there
	}
	if d.Trust != "" {
		x.Entry = e.TrustPosition(d.Trust)
	}
	own := spec.path().String()[len("data."):]
	yes := inquiryOf(input).yes
	if !slices.ContainsFunc(x.Rules, func(r Rule) bool { return r.Package == own && r.Name == yes }) {
		x.Unmet = e.allowRules(spec, yes, w)
	}
	x.parts = w.facts()
	if facts, err := x.FactsOf(input); err == nil { // else the decision says that the input can't be read
		x.Facts = facts
	}
	return x, nil
}

func takesInput(point Point, input any) bool {
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
	case ReleaseInput:
		return point == Release
	case AdoptInput:
		return point == Adopt
	}
	return false
}

// allowRules are the rules that could have allowed. It records the inputs that they read, as rule indexes
// skip rules that can't be true without an event.
func (e *Engine) allowRules(spec pointSpec, yes string, w *explainTracer) []Rule {
	var rules []Rule
	for _, rule := range e.points[spec.point].compiler.GetRulesExact(spec.path().Append(ast.StringTerm(yes))) {
		if !rule.Default {
			rules = append(rules, describe(rule))
			w.recordInputs(rule)
		}
	}
	slices.SortFunc(rules, func(a, b Rule) int { return source.ComparePositions(a.Position, b.Position) })
	return rules
}

// explainTracer records the rules that were true in one evaluation, and the parts of the input that the
// evaluated rules read.
type explainTracer struct {
	seen    map[problem.Position]Rule
	entered map[*ast.Rule]bool
	parts   map[string]ast.Ref
}

func (w *explainTracer) Enabled() bool               { return true }
func (w *explainTracer) Config() topdown.TraceConfig { return topdown.TraceConfig{} }

func (w *explainTracer) TraceEvent(event topdown.Event) {
	rule, ok := event.Node.(*ast.Rule)
	if ok && event.Op == topdown.EnterOp {
		w.recordInputs(rule)
	}
	if !ok || event.Op != topdown.ExitOp || rule.Default {
		return
	}
	if pos := source.Position(rule.Location); pos.IsValid() {
		if _, ok := w.seen[pos]; !ok {
			w.seen[pos] = describe(rule)
		}
	}
}

// rules are the rules that were true, the point's own first.
func (w *explainTracer) rules(spec pointSpec) []Rule {
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
		return source.ComparePositions(a.Position, b.Position)
	})
	return rules
}

func describe(rule *ast.Rule) Rule {
	text, _, _ := strings.Cut(string(rule.Location.Text), "\n")
	return Rule{
		Package:  strings.Join(source.PackageNames(rule.Module.Package.Path), "."),
		Name:     rule.Head.Ref()[0].String(),
		Position: source.Position(rule.Location),
		Text:     strings.TrimSuffix(strings.TrimSpace(text), " {"),
		aside:    len(rule.Head.Args) > 0 || len(rule.Body) == 1 && rule.Body[0].Equal(ast.NewExpr(ast.BooleanTerm(true))),
	}
}
