package lint

import (
	"fmt"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/catalogd/catalogd/decision/internal/source"
)

// applicability says for which tools a rule can be true: those that satisfy the conditions of its body on
// input.tool alone, and for which a rule that refers to it can be true. The conditions are evaluated, so
// their form does not matter; conditions that read more than the tool exclude nothing.
type applicability struct {
	*dataflow
	count int
	// satisfied are the tools that satisfy the conditions of a rule on the tool alone.
	satisfied map[*ast.Rule]toolSet
	// referrers are the rules that refer to a rule; outputs are those of the point itself.
	referrers map[*ast.Rule][]*ast.Rule
	outputs   map[*ast.Rule]bool
	known     map[*ast.Rule]toolSet
}

// toolSet says of each tool whether it is in the set.
type toolSet []bool

// toolApplicability computes the applicability of the rules that a point reaches.
func (p *Policy) toolApplicability(of ArgumentCheck, compiler func() *ast.Compiler) *applicability {
	spec := p.point(of.Point)
	modules, tools := source.Closure(p.Modules, spec.path()), of.Tools
	a := &applicability{
		dataflow: newDataflow(modules, p.Data).withParameters(), count: len(tools),
		satisfied: map[*ast.Rule]toolSet{}, referrers: map[*ast.Rule][]*ast.Rule{}, outputs: map[*ast.Rule]bool{}, known: map[*ast.Rule]toolSet{},
	}
	var others []string
	for _, f := range spec.Input.Fields {
		if f.Name != "tool" {
			others = append(others, f.Name)
		}
	}
	var conditions []*ast.Rule
	bodies := map[*ast.Rule]ast.Body{}
	a.each(func(sc *scope) {
		a.outputs[sc.rule] = sc.pkg == spec.path().String()
		a.visitRule(sc.rule, permits, visitor{refers: func(rules []*ast.Rule, _ polarity) {
			for _, r := range rules {
				a.referrers[r] = append(a.referrers[r], sc.rule)
			}
		}})
		if body := a.toolConditions(sc, others); len(body) > 0 && sc.rule.Else == nil {
			bodies[sc.rule] = body
			conditions = append(conditions, sc.rule)
		}
	})
	if c := compileConditions(compiler(), modules, conditions, bodies); c != nil {
		evaluate, err := of.Evaluate(c, ast.MustParseRef("data.catalogd.lib."+conditionsName+".numbers"))
		if err != nil {
			return a
		}
		for _, rule := range conditions {
			a.satisfied[rule] = make(toolSet, len(tools))
		}
		for i := range tools {
			numbers, err := evaluate(i)
			for n, rule := range conditions {
				a.satisfied[rule][i] = err != nil || numbers.Contains(ast.IntNumberTerm(n))
			}
		}
	}
	return a
}

// toolConditions are the expressions of a rule's body that read nothing but the tool.
func (a *applicability) toolConditions(sc *scope, others []string) (body ast.Body) {
	for _, x := range sc.rule.Body {
		if len(x.With) == 0 && a.readsOnlyTool(sc, x, others, map[ast.Var]bool{}) {
			body.Append(x.Copy())
		}
	}
	if hasNoBody(sc.rule) {
		return nil
	}
	return body
}

func (a *applicability) readsOnlyTool(sc *scope, x any, others []string, seen map[ast.Var]bool) bool {
	ok := true
	inRef := map[*ast.Term]bool{}
	ref := func(ref ast.Ref) {
		head, isVar := ref[0].Value.(ast.Var)
		if imported, is := sc.imports[head]; isVar && is {
			ref = imported.Concat(ref[1:])
		}
		switch rules, _ := a.referred(sc, ref); {
		case len(rules) > 0:
			for _, r := range rules {
				ok = ok && !a.readsInput(r, others, map[*ast.Rule]bool{})
			}
		case ref[0].Equal(ast.InputRootDocument):
			ok = ok && len(ref) > 1 && ref[1].Equal(ast.InternedTerm("tool"))
		}
	}
	ast.WalkTerms(x, func(t *ast.Term) bool {
		switch v := t.Value.(type) {
		case ast.Ref:
			inRef[v[0]] = true
			if ast.BuiltinMap[v.String()] != nil {
				return false
			}
			ref(v)
			if head, isVar := v[0].Value.(ast.Var); isVar {
				ok = ok && a.boundByTool(sc, head, others, seen)
			}
		case ast.Var:
			if !inRef[t] {
				ref(ast.Ref{t})
				ok = ok && a.boundByTool(sc, v, others, seen)
			}
		}
		return !ok
	})
	return ok
}

// boundByTool reports whether a variable gets its value from the tool alone, or is a rule or an import.
func (a *applicability) boundByTool(sc *scope, name ast.Var, others []string, seen map[ast.Var]bool) bool {
	b, local := sc.vars[name]
	switch {
	case name == ast.InputRootDocument.Value, name == ast.DefaultRootDocument.Value, name.IsWildcard(), seen[name]:
		return true
	case local:
		seen[name] = true
		return b.term != nil && a.readsOnlyTool(sc, b.term, others, seen)
	}
	_, imported := sc.imports[name]
	return imported || a.rules[sc.pkg][string(name)] != nil
}

// compileConditions compiles the conditions into a set of the numbers of those that are true; nil where that
// fails.
func compileConditions(
	compiler *ast.Compiler, modules map[string]*ast.Module, conditions []*ast.Rule, bodies map[*ast.Rule]ast.Body,
) *ast.Compiler {
	options := ast.ParserOptions{RegoVersion: ast.RegoV1}
	all := map[string]*ast.Module{}
	for file, module := range modules {
		all[file] = module
	}
	var collector strings.Builder
	fmt.Fprintf(&collector, "package catalogd.lib.%s\n", conditionsName)
	for n, rule := range conditions {
		name := fmt.Sprintf("%s_%d", conditionsName, n)
		module, err := ast.ParseModuleWithOpts(name, "package catalogd.lib\n\n"+name+" if true\n", options)
		if err != nil {
			return nil
		}
		module.Package, module.Imports = rule.Module.Package, rule.Module.Imports
		module.Rules[0].Body = bodies[rule]
		all[name] = module
		fmt.Fprintf(&collector, "\nnumbers contains %d if %s.%s\n", n, rule.Module.Package.Path, name)
	}
	module, err := ast.ParseModuleWithOpts(conditionsName, collector.String(), options)
	if err != nil {
		return nil
	}
	all[conditionsName] = module
	if compiler.Compile(all); compiler.Failed() {
		return nil
	}
	return compiler
}

// conditionsName is the name of generated rules and of their package, which no policy has.
const conditionsName = "catalogd_conditions"

// toolsOf are the tools for which a rule can be true.
func (a *applicability) toolsOf(rule *ast.Rule) toolSet {
	if known, ok := a.known[rule]; ok {
		return known
	}
	set := make(toolSet, a.count)
	a.known[rule] = set // for rules that refer to each other
	if a.outputs[rule] {
		for i := range set {
			set[i] = true
		}
	}
	for _, r := range a.referrers[rule] {
		for i, is := range a.toolsOf(r) {
			set[i] = set[i] || is
		}
	}
	if fits, ok := a.satisfied[rule]; ok {
		for i := range set {
			set[i] = set[i] && fits[i]
		}
	}
	return set
}
