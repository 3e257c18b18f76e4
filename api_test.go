package catalogd_test

import (
	"go/types"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

// capabilities are types of internal packages in exported signatures that other programs can't name on
// purpose: whoever could, could make one.
var capabilities = []string{"decision/internal/grant.Key"}

// TestAPICanBeNamed walks everything that a program can reach from the exported names of the public packages.
// It holds that the program can name each type on the way: a type of an internal package needs an exported
// alias in a public one.
func TestAPICanBeNamed(t *testing.T) {
	// With the flags of `make build`, so that nothing is compiled twice.
	loaded, err := packages.Load(&packages.Config{
		Mode: packages.LoadTypes, Env: append(os.Environ(), "CGO_ENABLED=0"), BuildFlags: []string{"-trimpath"},
	}, "./...")
	if err != nil {
		t.Fatal(err)
	}
	w := walk{aliased: map[string]bool{}, unnamed: map[string]string{}, seen: map[types.Type]bool{}}
	var exported []types.Object
	for _, p := range loaded {
		if p.Name == "main" || internal(p.PkgPath) {
			continue
		}
		for _, name := range p.Types.Scope().Names() {
			object := p.Types.Scope().Lookup(name)
			if !object.Exported() {
				continue
			}
			exported = append(exported, object)
			if _, ok := object.Type().(*types.Alias); ok {
				w.aliased[types.TypeString(types.Unalias(object.Type()), nil)] = true
			}
		}
	}
	if len(exported) < 100 {
		t.Fatalf("got %d exported names, want those of all public packages", len(exported))
	}
	for _, object := range exported {
		w.visit(object.Type(), object.Pkg().Name()+"."+object.Name())
	}
	for _, name := range slices.Sorted(maps.Keys(w.unnamed)) {
		t.Errorf("got the internal type %s in %s, want an exported alias of it in a public package", name, w.unnamed[name])
	}
}

func internal(pkg string) bool { return strings.Contains(pkg+"/", "/internal/") }

// walk visits types once each.
type walk struct {
	aliased map[string]bool   // internal types that have an exported alias
	unnamed map[string]string // internal types that have none, and where the first was found
	seen    map[types.Type]bool
}

func (w *walk) visit(t types.Type, at string) {
	t = types.Unalias(t)
	if w.seen[t] {
		return
	}
	w.seen[t] = true
	switch t := t.(type) {
	case *types.Named:
		pkg := t.Obj().Pkg()
		if pkg == nil || !strings.HasPrefix(pkg.Path(), module) {
			return
		}
		name := types.TypeString(t, nil)
		short := strings.TrimPrefix(name, module+"/")
		if internal(pkg.Path()) && !w.aliased[name] && !slices.Contains(capabilities, short) {
			w.unnamed[short] = at
		}
		for m := range t.Methods() {
			if m.Exported() {
				w.visit(m.Type(), at+"."+m.Name())
			}
		}
		w.visit(t.Underlying(), at)
	case *types.Signature:
		for v := range t.Params().Variables() {
			w.visit(v.Type(), at)
		}
		for v := range t.Results().Variables() {
			w.visit(v.Type(), at)
		}
	case *types.Struct:
		for f := range t.Fields() {
			if f.Exported() {
				w.visit(f.Type(), at+"."+f.Name())
			}
		}
	case *types.Interface:
		for m := range t.Methods() {
			w.visit(m.Type(), at+"."+m.Name())
		}
	case *types.Map:
		w.visit(t.Key(), at)
		w.visit(t.Elem(), at)
	case interface{ Elem() types.Type }: // a pointer, slice, array or channel
		w.visit(t.Elem(), at)
	}
}
