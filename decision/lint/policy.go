package lint

import (
	"fmt"
	"maps"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/catalogd/catalogd/decision/internal/shape"
	"github.com/catalogd/catalogd/decision/internal/source"
)

// Policy is a parsed policy with the points that ask it. It is not changed after it was made.
type Policy struct {
	Modules map[string]*ast.Module // served modules by file, as parsed
	Data    *source.Data
	Points  []Point
}

// Point is a package that the engine asks: data.catalogd.<name>.
type Point struct {
	Name string
	// Input is nil for the packages that are no decision points: log and check.
	Input *shape.Shape
	// Outputs are the rules that the package may have.
	Outputs []string
}

// path is the point's package.
func (p Point) path() ast.Ref {
	return ast.Ref{ast.DefaultRootDocument, ast.StringTerm("catalogd"), ast.StringTerm(p.Name)}
}

// Has reports whether a module belongs to the package.
func (p *Policy) Has(pkg ast.Ref) bool {
	for _, m := range p.Modules {
		if m.Package.Path.Equal(pkg) {
			return true
		}
	}
	return false
}

// point returns the named point; one without an input where the policy has none of that name.
func (p *Policy) point(name string) Point {
	i := slices.IndexFunc(p.Points, func(of Point) bool { return of.Name == name })
	if i < 0 {
		return Point{Name: name}
	}
	return p.Points[i]
}

// WithData returns the policy with other data, which keeps the positions of the old.
func (p *Policy) WithData(value map[string]any) *Policy {
	out := *p
	out.Data = p.Data.WithValue(value)
	return &out
}

// order is the index of a decision point; -1 for the log and the check of the data.
func (p *Policy) order(name string) int {
	return slices.IndexFunc(p.Points, func(of Point) bool { return of.Name == name && of.Input != nil })
}

// With returns the policy with changes made to it. They must come from Changes of this policy and another.
func (p *Policy) With(changes ...Change) *Policy {
	out := *p.WithData(p.Data.Value)
	out.Modules = maps.Clone(p.Modules)
	for n, c := range changes {
		if !c.IsRule() {
			out.Data.Value = edited(out.Data.Value, c.Path, c.value, c.present)
			continue
		}
		if c.before != nil {
			file := c.before.Location.File
			out.Modules[file] = withoutRule(out.Modules[file], c.before)
		}
		if c.after != nil {
			alone := *c.after.Module
			alone.Rules, alone.Annotations = []*ast.Rule{c.after}, nil
			out.Modules[fmt.Sprintf("%s#%d", c.after.Location.File, n)] = &alone
		}
	}
	return &out
}

func withoutRule(module *ast.Module, rule *ast.Rule) *ast.Module {
	out := *module
	out.Rules = slices.DeleteFunc(slices.Clone(module.Rules), func(r *ast.Rule) bool { return r == rule })
	out.Annotations = nil
	return &out
}

// edited returns data with another value at the path, or without it where present is false. data is not
// changed.
func edited(data map[string]any, path []string, value any, present bool) map[string]any {
	out := maps.Clone(data)
	if out == nil {
		out = map[string]any{}
	}
	switch {
	case len(path) > 1:
		below, _ := data[path[0]].(map[string]any)
		out[path[0]] = edited(below, path[1:], value, present)
	case present:
		out[path[0]] = value
	default:
		delete(out, path[0])
	}
	return out
}
