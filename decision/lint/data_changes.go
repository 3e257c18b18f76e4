package lint

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/catalogd/catalogd/decision/internal/source"
)

// changedData are the values that differ, as deep as both sides have objects.
func (i *policyIndex) changedData(next *policyIndex) (changes []Change) {
	var walk func(path []string, old, now any, had, has bool)
	walk = func(path []string, old, now any, had, has bool) {
		before, ok1 := old.(map[string]any)
		after, ok2 := now.(map[string]any)
		if ok1 && ok2 {
			keys := map[string]bool{}
			for k := range before {
				keys[k] = true
			}
			for k := range after {
				keys[k] = true
			}
			for _, k := range source.SortedKeys(keys) {
				o, had := before[k]
				n, has := after[k]
				walk(append(slices.Clone(path), k), o, n, had, has)
			}
			return
		}
		if had == has && reflect.DeepEqual(old, now) {
			return
		}
		c := Change{Path: path, value: now, present: has, from: i.policy, to: next.policy}
		if had {
			c.Old, c.OldAt = jsonText(old), i.data.Nearest(path)
		}
		if has {
			c.New, c.NewAt = jsonText(now), next.data.Nearest(path)
		}
		c.Points = i.union(i.pointsReading(path), next.pointsReading(path))
		c.Effect = Neutral
		if len(c.Points) > 0 {
			c.Effect = i.effects.dataEffect(next.effects, path, old, now, had, has)
		}
		changes = append(changes, c)
	}
	walk(nil, any(i.data.Value), any(next.data.Value), true, true)
	return changes
}

func jsonText(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("lint: data is plain: %v", err))
	}
	return string(b)
}

// pointsReading are the points that reach a module which may read the data at the path.
func (i *policyIndex) pointsReading(path []string) (asked []string) {
	for _, file := range source.SortedKeys(i.modules) {
		reads := false
		ast.WalkRefs(i.modules[file], func(ref ast.Ref) bool {
			reads = reads || mayRead(ref, path)
			return reads
		})
		if reads {
			asked = i.union(asked, i.points[file])
		}
	}
	return asked
}

// mayRead reports whether a reference may be to the data at path, above it or below it.
func mayRead(ref ast.Ref, path []string) bool {
	if !ref[0].Equal(ast.DefaultRootDocument) {
		return false
	}
	for n, term := range ref[1:] {
		if n == len(path) {
			return true
		}
		if name, ok := term.Value.(ast.String); ok && string(name) != path[n] {
			return false
		}
	}
	return true
}

func (i *policyIndex) union(a, b []string) []string {
	out := slices.Clone(a)
	for _, p := range b {
		if !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(a, b string) int { return cmp.Compare(i.policy.order(a), i.policy.order(b)) })
	return out
}
