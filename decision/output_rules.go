package decision

import (
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/catalogd/catalogd/decision/internal/source"
	"github.com/catalogd/catalogd/problem"
)

// outputName is the output that a rule defines.
func outputName(rule *ast.Rule) string {
	if ref := rule.Head.Ref(); len(ref) > 0 {
		if v, ok := ref[0].Value.(ast.Var); ok {
			return string(v)
		}
	}
	return string(rule.Head.Name)
}

func checkOutput(spec pointSpec, rule *ast.Rule) problem.List {
	var problems problem.List
	name := outputName(rule)
	switch {
	case spec.point == Connect && name == "withheld":
		problems.Errorf(problem.PolicyPoint, source.Position(rule.Location), spec.path().String(),
			"withheld is no longer an output, because env names the variables that a command gets: the policy is an earlier version's; docs/policy.md (From an earlier version) says how to bring it up to date")
	case !spec.hasOutput(name):
		known := map[string]bool{}
		for _, output := range spec.allOutputs() {
			known[output] = true
		}
		problems.Errorf(problem.PolicyPoint, source.Position(rule.Location), spec.path().String(),
			"%s is not an output of this point (%s): move helpers to a package below catalogd.lib%s",
			name, strings.Join(spec.allOutputs(), ", "), source.DidYouMean(name, known))
	case len(rule.Head.Args) > 0:
		problems.Errorf(problem.PolicyPoint, source.Position(rule.Location), spec.path().String(),
			"%s is an output, so it can't be a function", name)
	case rule.Default && slices.Contains([]string{allowPlain, allowResource, allowPrompt}, name) && !isConstant(rule.Head, false):
		problems.Errorf(problem.PolicyPoint, source.Position(rule.Location), spec.path().String(),
			"the default of %s must be false", name)
	}
	return problems
}

// setOutputs are the outputs that are sets of texts, with an element to write.
var setOutputs = map[string]string{
	"deny": `"reason"`, "redact": `"/field"`, "redact_patterns": `"[0-9]{16}"`, "relay": `"logging"`, "elicitation_hosts": `"login.example.com"`,
}

// checkForms reports outputs whose rules exclude each other by their form, each at the rule that differs from
// those of the point's own file: OPA reports any of them, and some only at a decision.
func checkForms(modules map[string]*ast.Module) (problems problem.List) {
	for _, spec := range points {
		rules := map[string][]*ast.Rule{}
		own := source.Root + "/" + string(spec.point) + ".rego"
		add := func(file string) {
			if m := modules[file]; m != nil && m.Package.Path.Equal(spec.path()) {
				for _, rule := range m.Rules {
					rules[outputName(rule)] = append(rules[outputName(rule)], rule)
				}
			}
		}
		add(own) // first, so that a rule of another file is the one to change
		for _, file := range source.SortedKeys(modules) {
			if file != own {
				add(file)
			}
		}
		for _, name := range source.SortedKeys(rules) {
			if spec.hasOutput(name) {
				problems = append(problems, formsOf(spec, name, rules[name])...)
			}
		}
	}
	return problems
}

// formsOf checks the rules of one output.
func formsOf(spec pointSpec, name string, rules []*ast.Rule) (problems problem.List) {
	report := func(rule, first *ast.Rule, severity problem.Severity, format string, args ...any) {
		p := problem.Problem{
			Code: problem.PolicyPoint, Severity: severity, Position: source.Position(rule.Location),
			Path: spec.path().String(), Message: fmt.Sprintf(format, args...),
		}
		if first != nil {
			p.Also = []problem.Position{source.Position(first.Location)}
		}
		problems = append(problems, p)
	}
	find := func(is func(*ast.Rule) bool) *ast.Rule {
		if i := slices.IndexFunc(rules, is); i >= 0 {
			return rules[i]
		}
		return nil
	}
	elem, isSetOutput := setOutputs[name]
	adding := find(isAdding)
	whole := find(func(r *ast.Rule) bool { return !isAdding(r) })
	firstDefault := find(func(r *ast.Rule) bool { return r.Default })
	yes := find(func(r *ast.Rule) bool { return !r.Default && isConstant(r.Head, true) })
	for _, rule := range rules {
		switch {
		case len(rule.Head.Args) > 0: // checkOutput reports it
		case isSetOutput && !isAdding(rule) && rule.Default && adding != nil:
			report(rule, nil, problem.Error, "%s takes no default: it is empty where no rule adds to it; remove this line", name)
		case isSetOutput && !isAdding(rule) && (adding != nil || len(rule.Head.Ref()) > 1 || isConstant(rule.Head, true) && !rule.Head.Assign):
			report(rule, nil, problem.Error, "%s is a set that rules add to: write `%s contains %s if { ... }`", name, name, elem)
		case !isSetOutput && isAdding(rule) && whole != nil:
			report(rule, whole, problem.Error, "another rule gives %s as a whole, so no rule can add to it: change that one", name)
		case rule.Default && rule != firstDefault:
			report(rule, firstDefault, problem.Error, "%s has a default already: remove this line", name)
		case strings.HasPrefix(name, allowPlain) && !rule.Default && yes != nil && saysFalse(rule):
			report(rule, yes, problem.Warning,
				"%s is false here, and true by another rule: where both hold the decision fails, which denies with an error; write `deny contains \"reason\" if { ... }`", name)
		}
	}
	return problems
}

// isAdding reports whether a rule adds to a set: name contains x.
func isAdding(rule *ast.Rule) bool { return rule.Head.Key != nil && rule.Head.Value == nil }

func isConstant(head *ast.Head, value bool) bool {
	return head.Value != nil && ast.Compare(head.Value.Value, ast.Boolean(value)) == 0
}

// saysFalse reports whether a rule or one of its else branches has the value false.
func saysFalse(rule *ast.Rule) bool {
	for ; rule != nil; rule = rule.Else {
		if isConstant(rule.Head, false) {
			return true
		}
	}
	return false
}

// constantOutputs warns of rules whose value is constant and of a type that the output doesn't have, so that
// every decision for which the rule holds fails.
func constantOutputs(modules map[string]*ast.Module) (problems problem.List) {
	for _, file := range source.SortedKeys(modules) {
		spec, isPoint, _ := classify(modules[file].Package.Path)
		if !isPoint || spec.load {
			continue
		}
		for _, rule := range modules[file].Rules {
			name, value := outputName(rule), rule.Head.Value
			if isAdding(rule) {
				value = ast.SetTerm(rule.Head.Key)
			}
			if len(rule.Head.Ref()) > 1 && !isAdding(rule) || value == nil || !value.IsGround() || !isWritten(value) {
				continue
			}
			document := ast.NewObject([2]*ast.Term{ast.StringTerm(name), value})
			if d, _ := answer(spec, inquiry{yes: allowPlain, writes: true}, document); d.Code == BadDecisionType {
				problems.Warnf(problem.PolicyPoint, source.Position(rule.Location), spec.path().String(),
					"%s, so a decision for which this rule holds fails, which denies", strings.Join(d.Reasons, "; "))
			}
		}
	}
	return problems
}

// isWritten reports whether a term holds nothing that is computed.
func isWritten(t *ast.Term) bool {
	written := true
	ast.WalkTerms(t, func(t *ast.Term) bool {
		switch t.Value.(type) {
		case ast.Null, ast.Boolean, ast.Number, ast.String, *ast.Array, ast.Object, ast.Set:
		default:
			written = false
		}
		return !written
	})
	return written
}
