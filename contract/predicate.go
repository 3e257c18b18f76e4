package contract

import (
	"encoding/json"
	"slices"
)

// predicate evaluates the schema of an if exactly as the validator does, but much faster. It supports the
// keywords of nearly all conditions: constants, required keys, and combinations of these.
type predicate struct {
	object     bool // only objects match
	required   []string
	properties map[string]*predicate
	enum       []any // strings, booleans, null and whole numbers
	not        *predicate
	anyOf      []*predicate
	allOf      []*predicate
}

// readPredicate compiles a schema; it returns nil for one with a keyword that it doesn't support.
func readPredicate(schema any) *predicate {
	m, ok := schema.(map[string]any)
	if !ok {
		return nil
	}
	g := &predicate{}
	for keyword, v := range m {
		switch keyword {
		case "type":
			if g.object = v == "object"; !g.object {
				return nil
			}
		case "required":
			if !distinctStrings(v) {
				return nil
			}
			for _, name := range v.([]any) {
				g.required = append(g.required, name.(string))
			}
		case "properties":
			properties, _ := v.(map[string]any)
			g.properties = make(map[string]*predicate, len(properties))
			for name, p := range properties {
				if g.properties[name] = readPredicate(p); g.properties[name] == nil {
					return nil
				}
			}
		case "const", "enum":
			values, _ := v.([]any)
			if keyword == "const" {
				values = []any{v}
			}
			if g.enum != nil || len(values) == 0 || slices.ContainsFunc(values, func(v any) bool { return !simple(v) && !isWhole(v) }) {
				return nil
			}
			g.enum = values
		case "not":
			if g.not = readPredicate(v); g.not == nil {
				return nil
			}
		case "anyOf":
			if g.anyOf = readPredicates(v); g.anyOf == nil {
				return nil
			}
		case "allOf":
			if g.allOf = readPredicates(v); g.allOf == nil {
				return nil
			}
		default:
			return nil
		}
	}
	return g
}

func readPredicates(v any) (out []*predicate) {
	list, _ := v.([]any)
	for _, item := range list {
		g := readPredicate(item)
		if g == nil {
			return nil
		}
		out = append(out, g)
	}
	return out
}

// isWhole reports whether v is a number that Integer normalises to a plain integer, so that equal numbers
// have equal text.
func isWhole(v any) bool {
	n, ok := v.(json.Number)
	if !ok {
		return false
	}
	_, isInt := whole(Integer(n))
	return isInt
}

func (g *predicate) holds(v any) bool {
	object, isObject := v.(map[string]any)
	if g.object && !isObject || g.enum != nil && !g.has(v) || g.not != nil && g.not.holds(v) {
		return false
	}
	if isObject {
		for _, name := range g.required {
			if _, ok := object[name]; !ok {
				return false
			}
		}
		for name, p := range g.properties {
			if member, ok := object[name]; ok && !p.holds(member) {
				return false
			}
		}
	}
	if g.anyOf != nil && !slices.ContainsFunc(g.anyOf, func(b *predicate) bool { return b.holds(v) }) {
		return false
	}
	return !slices.ContainsFunc(g.allOf, func(part *predicate) bool { return !part.holds(v) })
}

func (g *predicate) has(v any) bool {
	if n, ok := v.(json.Number); ok {
		n = Integer(n)
		return slices.ContainsFunc(g.enum, func(e any) bool { m, ok := e.(json.Number); return ok && Integer(m) == n })
	}
	return simple(v) && slices.ContainsFunc(g.enum, func(e any) bool { return simple(e) && e == v })
}
