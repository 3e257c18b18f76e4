package lint

import (
	"fmt"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/catalogd/catalogd/decision/internal/source"
)

// ExplainVariables adds to the compiler's errors about variables without a value where the variable is, and
// what was probably meant: a similar name of the module or its package, a missing import, or a field of the
// input. modules are those that were compiled.
func (p *Policy) ExplainVariables(errs ast.Errors, modules map[string]*ast.Module) {
	for _, e := range errs {
		module := modules[source.Position(e.Location).File]
		words := strings.Fields(e.Message) // var x is unsafe
		if e.Code != ast.UnsafeVarErr || module == nil || len(words) < 2 {
			continue
		}
		e.Location = variableLocation(module, ast.Var(words[1]), e.Location)
		if hint := p.meantVariable(words[1], module, modules); hint != "" {
			e.Details = source.Meant(strings.TrimPrefix(hint, "; "))
		}
	}
}

// variableLocation is where the variable is first used from a location on, which is that of its expression.
func variableLocation(module *ast.Module, name ast.Var, from *ast.Location) *ast.Location {
	found := from
	for _, rule := range module.Rules {
		ast.WalkTerms(rule, func(t *ast.Term) bool {
			if l := t.Location; found == from && l != nil && ast.Compare(t.Value, name) == 0 && from.Compare(l) <= 0 {
				found = l
			}
			return found != from
		})
	}
	return found
}

func (p *Policy) meantVariable(written string, module *ast.Module, modules map[string]*ast.Module) string {
	known := map[string]bool{"input": true, "data": true}
	for _, file := range source.SortedKeys(modules) {
		m := modules[file]
		pkg := source.PackageNames(m.Package.Path)
		if len(pkg) == 3 && pkg[1] == "lib" && pkg[2] == written {
			return fmt.Sprintf("; write `import %s` at the top", m.Package.Path)
		}
		if m.Package.Path.Equal(module.Package.Path) {
			for _, rule := range m.Rules {
				known[source.RuleName(rule)] = true
			}
		}
	}
	for _, point := range p.Points {
		if point.Input == nil || !point.path().Equal(module.Package.Path) {
			continue
		}
		for _, f := range point.Input.Fields {
			if f.Name == written {
				return fmt.Sprintf("; did you mean input.%s?", written)
			}
		}
	}
	for _, imported := range module.Imports {
		if ref, ok := imported.Path.Value.(ast.Ref); ok && (ref[0].Equal(ast.DefaultRootDocument) || ref[0].Equal(ast.InputRootDocument)) {
			known[string(imported.Name())] = true
		}
	}
	for _, rule := range module.Rules {
		ast.WalkVars(rule, func(v ast.Var) bool {
			if !v.IsGenerated() && !v.IsWildcard() && ast.BuiltinMap[string(v)] == nil {
				known[string(v)] = true
			}
			return false
		})
	}
	delete(known, written)
	return source.DidYouMean(written, known)
}
