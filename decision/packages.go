package decision

import (
	"github.com/agnivade/levenshtein"
	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/catalogd/catalogd/decision/internal/source"
	"github.com/catalogd/catalogd/problem"
)

// checkPackages reports what nothing would ask: a package that is neither a point nor a helper, and a rule in
// a point's package that is no output. It also reports points that are missing or don't deny by default.
func checkPackages(modules map[string]*ast.Module) problem.List {
	var problems problem.List
	first := map[Point]*ast.Package{}
	denies := map[Point]bool{}
	for _, file := range source.SortedKeys(modules) {
		module := modules[file]
		spec, isPoint, remedy := classify(module.Package.Path)
		if remedy != "" {
			problems.Errorf(problem.PolicyPoint, source.Position(module.Package.Location), module.Package.Path.String(), "%s", remedy)
			continue
		}
		if !isPoint {
			continue
		}
		if first[spec.point] == nil {
			first[spec.point] = module.Package
		}
		for _, rule := range module.Rules {
			problems = append(problems, checkOutput(spec, rule)...)
			denies[spec.point] = denies[spec.point] || rule.Default && rule.Head.Name == allowPlain && isConstant(rule.Head, false)
		}
	}
	problems = append(problems, checkForms(modules)...)
	for _, spec := range points {
		switch pkg := first[spec.point]; {
		case pkg == nil && !spec.optional:
			problems.Errorf(problem.PolicyPoint, problem.Position{File: source.Root}, spec.path().String(),
				"the package is missing: write `package catalogd.%s` with `default allow := false` (`catalogd init` writes one)", spec.point)
		case pkg != nil && !denies[spec.point]:
			problems.Errorf(problem.PolicyPoint, source.Position(pkg.Location), spec.path().String(),
				"the package must say `default allow := false`")
		}
	}
	return problems
}

// checkTests warns of rules of _test.rego files that belong to a point or define a served rule: tests would
// see answers that are never served.
func checkTests(s *source.Source) (problems problem.List) {
	served := map[string]bool{}
	for _, module := range s.Modules {
		for _, rule := range module.Rules {
			served[module.Package.Path.String()+"."+source.RuleName(rule)] = true
		}
	}
	for _, file := range source.SortedKeys(s.Tests) {
		pkg := s.Tests[file].Package.Path
		spec, isPoint, _ := classify(pkg)
		for _, rule := range s.Tests[file].Rules {
			if name := source.RuleName(rule); served[pkg.String()+"."+name] || isPoint && spec.hasOutput(name) {
				problems.Warnf(problem.PolicyPoint, source.Position(rule.Location), pkg.String(),
					"%s is in a file of tests, which is not served: move the rule to a file that does not end in _test.rego", name)
			}
		}
	}
	return problems
}

// classify says which point a package is, or that it holds helpers, or how to fix its name.
func classify(path ast.Ref) (spec pointSpec, isPoint bool, remedy string) {
	parts := source.PackageNames(path)
	if len(parts) >= 2 && parts[0] == "catalogd" && parts[1] == "lib" {
		return pointSpec{}, false, ""
	}
	if len(parts) == 2 && parts[0] == "catalogd" {
		if spec, ok := specOf(Point(parts[1])); ok {
			return spec, true, ""
		}
		for _, spec := range []pointSpec{checkSpec, logSpec} {
			if parts[1] == string(spec.point) {
				return spec, true, ""
			}
		}
	}
	const rule = "this package is never evaluated: a package is a decision point (catalogd.connect, discover, list, call, result, release, adopt), the check of the data (catalogd.check), what the decision log masks (catalogd.log) or helpers (catalogd.lib.<name>)"
	if near := nearestPoint(parts); near != "" {
		return pointSpec{}, false, rule + "; did you mean " + near + "?"
	}
	return pointSpec{}, false, rule
}

// nearestPoint guesses which point's package was meant: catalogdd.call, catalogd.cal, call.
func nearestPoint(parts []string) string {
	if len(parts) == 0 {
		return ""
	}
	last := parts[min(len(parts), 2)-1]
	inside := len(parts) == 1 || levenshtein.ComputeDistance(parts[0], "catalogd") <= 2
	for _, spec := range points {
		if inside && levenshtein.ComputeDistance(last, string(spec.point)) <= 1 {
			return "catalogd." + string(spec.point)
		}
	}
	return ""
}
