package lint

import (
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/catalogd/catalogd/decision/internal/source"
)

// names are the packages and rules below a path of data.
type names struct {
	below   map[string]*names
	isRule  bool
	isOwner bool // a package, or a in a rule called a.b
}

func (n *names) at(key string) *names {
	if n == nil {
		return nil
	}
	return n.below[key]
}

func (n *names) add(keys []string) *names {
	for _, key := range keys {
		if n.below[key] == nil {
			n.below[key] = &names{below: map[string]*names{}}
		}
		n = n.below[key]
	}
	return n
}

// namesOf are the packages of the modules with their rules. A point has all of its outputs, whether there are
// rules of them or not.
func namesOf(modules map[string]*ast.Module, points []Point) *names {
	root := &names{below: map[string]*names{}}
	root.add([]string{"catalogd", "lib"})
	for _, module := range modules {
		pkg := root.add(source.PackageNames(module.Package.Path))
		pkg.isOwner = true
		for _, rule := range module.Rules {
			keys := append([]string{source.RuleName(rule)}, constants(rule.Head.Ref()[1:])...)
			for i := range keys {
				pkg.add(keys[:i]).isOwner = true
			}
			pkg.add(keys).isRule = true
		}
	}
	for _, point := range points {
		if pkg := root.at("catalogd").at(point.Name); pkg != nil {
			for _, output := range point.Outputs {
				pkg.add([]string{output}).isRule = true
			}
		}
	}
	return root
}

// constants are the keys that a reference begins with, up to the first that is computed.
func constants(ref ast.Ref) (keys []string) {
	for _, t := range ref {
		key, ok := t.Value.(ast.String)
		if !ok {
			break
		}
		keys = append(keys, string(key))
	}
	return keys
}

// elsewhere is the one package or rule whose path ends as keys, or below catalogd the one package called
// keys[i]; empty where there are none or several.
func (root *names) elsewhere(keys []string, i int) string {
	var found []string
	var walk func(n *names, path []string)
	walk = func(n *names, path []string) {
		if len(path) > len(keys[i:]) && (n.isOwner || n.isRule) &&
			(endsWith(path, keys) && len(keys) > 1 || endsWith(path, keys[i:i+1]) && n.isOwner && i > 0 && keys[0] == "catalogd") {
			found = append(found, source.Path(path))
		}
		for _, key := range source.SortedKeys(n.below) {
			walk(n.below[key], append(slices.Clip(path), key))
		}
	}
	walk(root, nil)
	if len(found) != 1 {
		return ""
	}
	return found[0]
}

func endsWith(path, keys []string) bool {
	return len(path) >= len(keys) && slices.Equal(path[len(path)-len(keys):], keys)
}

func keysOf[V any](m map[string]V) map[string]bool {
	known := map[string]bool{}
	for key := range m {
		known[key] = true
	}
	return known
}

// maxListed is how many names a message lists where none is similar.
const maxListed = 12

// listed is the end of a message about an unknown name: those that there are.
func listed(known map[string]bool) string {
	switch all := source.SortedKeys(known); {
	case len(all) == 0:
		return ": it has none"
	case len(all) > maxListed:
		return fmt.Sprintf(": it has %s, ...", strings.Join(all[:maxListed], ", "))
	default:
		return fmt.Sprintf(": it has %s", strings.Join(all, ", "))
	}
}
