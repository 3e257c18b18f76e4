package source

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/catalogd/catalogd/problem"
)

// PackageNames are the parts of a package's path below data.
func PackageNames(path ast.Ref) []string {
	var parts []string
	for _, term := range path[1:] {
		if s, ok := term.Value.(ast.String); ok {
			parts = append(parts, string(s))
		}
	}
	return parts
}

// Closure are the modules that an evaluation of the package at start can reach: those of the package, and of
// every package that they refer to. A reference to a package's parent reaches all of its children. Only these
// are compiled with a point's input, so that helpers of other points may refer to other inputs.
func Closure(modules map[string]*ast.Module, start ast.Ref) map[string]*ast.Module {
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

// SortedKeys are the keys of a map, sorted.
func SortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// RuleName is the first name of a rule's head: a for a, a(x), a.b and a contains x.
func RuleName(rule *ast.Rule) string {
	if ref := rule.Head.Ref(); len(ref) > 0 {
		if name, ok := ref[0].Value.(ast.Var); ok {
			return string(name)
		}
	}
	return string(rule.Head.Name)
}

// RuleText is the source text of a rule.
func RuleText(rule *ast.Rule) string {
	if rule.Default { // whose location is the keyword
		return rule.String()
	}
	return strings.TrimSpace(string(rule.Location.Text))
}

// ComparePositions orders positions by file, line and column.
func ComparePositions(a, b problem.Position) int {
	return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col))
}
