package catalogd_test

import (
	"go/types"
	"os"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

// TestConstantsCanBeNamed checks that an embedding program can name every value of the closed lists of strings that are
// aliases of internal types: each exported constant of the type needs a constant in the root package.
func TestConstantsCanBeNamed(t *testing.T) {
	loaded, err := packages.Load(&packages.Config{
		Mode: packages.LoadTypes, Env: append(os.Environ(), "CGO_ENABLED=0"), BuildFlags: []string{"-trimpath"},
	}, "./...")
	if err != nil {
		t.Fatal(err)
	}
	var root *types.Scope
	scopes := map[string]*types.Scope{}
	for _, p := range loaded {
		scopes[p.PkgPath] = p.Types.Scope()
		if p.PkgPath == module {
			root = p.Types.Scope()
		}
	}
	lists := 0
	for _, name := range root.Names() {
		alias, ok := root.Lookup(name).Type().(*types.Alias)
		if !ok || !alias.Obj().Exported() || alias.Obj() != root.Lookup(name) {
			continue
		}
		named, ok := types.Unalias(alias).(*types.Named)
		if !ok || !internal(named.Obj().Pkg().Path()) || named.Underlying() != types.Typ[types.String] {
			continue
		}
		public := constants(root, named)
		want := constants(scopes[named.Obj().Pkg().Path()], named)
		if len(want) == 0 {
			continue
		}
		lists++
		for value, inside := range want {
			if public[value] == "" {
				t.Errorf("%s: got no constant for %s.%s = %s, want one in the root package", name, named.Obj().Pkg().Name(), inside, value)
			}
		}
	}
	if lists < 9 {
		t.Errorf("got %d closed lists of strings, want at least the 9 of this version", lists)
	}
}

// constants returns the names of the exported constants of a type by their values.
func constants(scope *types.Scope, of *types.Named) map[string]string {
	found := map[string]string{}
	for _, name := range scope.Names() {
		c, ok := scope.Lookup(name).(*types.Const)
		if named, isNamed := types.Unalias(scope.Lookup(name).Type()).(*types.Named); !ok || !isNamed || !c.Exported() ||
			named.Obj().Name() != of.Obj().Name() || !strings.HasSuffix(named.Obj().Pkg().Path(), of.Obj().Pkg().Path()) {
			continue
		}
		found[c.Val().ExactString()] = name
	}
	return found
}
