package decision

import (
	"maps"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/catalogd/catalogd/problem"
)

// checkPackages refuses what a policy could say without anybody ever asking: a package that is neither a point nor a
// helper, a rule in a point's package that is no output, an enforced point that is missing or that does not say no by
// default.
func checkPackages(modules map[string]*ast.Module) problem.List {
	var problems problem.List
	first := map[Point]*ast.Package{}
	denies := map[Point]bool{}
	for _, file := range sortedKeys(modules) {
		module := modules[file]
		spec, isPoint, remedy := classify(module.Package.Path)
		if remedy != "" {
			problems.Errorf(problem.PolicyPoint, position(module.Package.Location), module.Package.Path.String(), "%s", remedy)
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
			denies[spec.point] = denies[spec.point] || rule.Default && rule.Head.Name == allowPlain && isFalse(rule)
		}
	}
	for _, spec := range points {
		switch pkg := first[spec.point]; {
		case pkg == nil && spec.enforced() && !spec.optional:
			problems.Errorf(problem.PolicyPoint, problem.Position{File: root}, spec.path().String(),
				"the package is missing: write `package catalogd.%s` with `default allow := false` (`catalogd init` writes one)", spec.point)
		case pkg != nil && !denies[spec.point]:
			problems.Errorf(problem.PolicyPoint, position(pkg.Location), spec.path().String(),
				"the package must say `default allow := false`")
		}
	}
	return problems
}

// checkImports refuses an import of helpers that are not there, which OPA takes for data without a value. A point that is
// not there is told by checkPackages.
func checkImports(modules map[string]*ast.Module) problem.List {
	var problems problem.List
	for _, file := range sortedKeys(modules) {
		for _, imported := range modules[file].Imports {
			path, ok := imported.Path.Value.(ast.Ref)
			if !ok || !path.HasPrefix(ast.Ref{ast.DefaultRootDocument, ast.StringTerm("catalogd"), ast.StringTerm("lib")}) {
				continue
			}
			known := slices.ContainsFunc(slices.Collect(maps.Values(modules)), func(m *ast.Module) bool {
				return path.HasPrefix(m.Package.Path) || m.Package.Path.HasPrefix(path)
			})
			if !known {
				problems.Errorf(problem.RegoCompile, position(imported.Location), modules[file].Package.Path.String(),
					"there is no package %s to import; mend the name, or write the package", path)
			}
		}
	}
	return problems
}

// classify says which point a package is, or that it holds helpers, or how to mend its name.
func classify(path ast.Ref) (spec pointSpec, isPoint bool, remedy string) {
	parts := names(path)
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
	const rule = "nobody asks this package: a package is a decision point (catalogd.connect, discover, list, call, result, release, adopt), the check of the data (catalogd.check), what the decision log masks (catalogd.log) or helpers (catalogd.lib.<name>)"
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

func checkOutput(spec pointSpec, rule *ast.Rule) problem.List {
	var problems problem.List
	name := string(rule.Head.Name)
	if ref := rule.Head.Ref(); len(ref) > 0 {
		if v, ok := ref[0].Value.(ast.Var); ok {
			name = string(v)
		}
	}
	switch {
	case !spec.hasOutput(name):
		known := map[string]bool{}
		for _, output := range spec.allOutputs() {
			known[output] = true
		}
		problems.Errorf(problem.PolicyPoint, position(rule.Location), spec.path().String(),
			"%s is no output of this point (%s): move helpers to a package below catalogd.lib%s",
			name, strings.Join(spec.allOutputs(), ", "), didYouMean(name, known))
	case len(rule.Head.Args) > 0:
		problems.Errorf(problem.PolicyPoint, position(rule.Location), spec.path().String(),
			"%s is an output, so it can't be a function", name)
	case rule.Default && slices.Contains([]string{allowPlain, allowResource, allowPrompt}, name) && !isFalse(rule):
		problems.Errorf(problem.PolicyPoint, position(rule.Location), spec.path().String(),
			"the default of %s must be false", name)
	}
	return problems
}

// isFalse reports whether the rule's value is written out as false.
func isFalse(rule *ast.Rule) bool {
	return rule.Head.Value != nil && ast.Compare(rule.Head.Value.Value, ast.Boolean(false)) == 0
}

// names are the parts of a package's path behind data.
func names(path ast.Ref) []string {
	var parts []string
	for _, term := range path[1:] {
		if s, ok := term.Value.(ast.String); ok {
			parts = append(parts, string(s))
		}
	}
	return parts
}

// closure is what an evaluation of the point can reach: its package, and every package that a module in it refers to.
// Only these are compiled with the point's input, so helpers of other points may refer to other inputs. A reference
// that names a package's parent reaches all of its children.
func closure(modules map[string]*ast.Module, start ast.Ref) map[string]*ast.Module {
	reached := map[string]*ast.Module{}
	queue, seen := []ast.Ref{start}, map[string]bool{}
	for len(queue) > 0 {
		ref := queue[0]
		queue = queue[1:]
		if seen[ref.String()] {
			continue
		}
		seen[ref.String()] = true
		for file, module := range modules {
			path := module.Package.Path
			if reached[file] != nil || !(ref.HasPrefix(path) || path.HasPrefix(ref)) {
				continue
			}
			reached[file] = module
			ast.WalkRefs(module, func(r ast.Ref) bool {
				if r.HasPrefix(ast.DefaultRootRef) {
					queue = append(queue, r.GroundPrefix())
				}
				return false
			})
		}
	}
	return reached
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
