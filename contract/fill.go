package contract

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
)

// fill returns v with the defaults of s filled in, at every depth, and its integers normalised. It changes maps and
// arrays in place. Of alternatives only the one that v means is filled in, and of a condition only what then holds; a
// default may make a condition hold, whose own defaults follow. Where w is spent, it has stopped anywhere; where it is for
// numbers alone, no default is filled in.
func (s *shape) fill(v any, w *work) any {
	if s == nil || s.inert || !w.spend(1) {
		return v
	}
	if s.target != nil {
		v = s.target.fill(v, w)
	}
	switch value := v.(type) {
	case json.Number:
		v = s.number(value)
	case map[string]any:
		s.object(value, w)
	case []any:
		for i := range value {
			value[i] = s.item(i).fill(value[i], w)
		}
	}
	v = s.alternative(v, w)
	object, _ := v.(map[string]any)
	for {
		before := len(object)
		for _, part := range s.allOf {
			v = part.fill(v, w)
		}
		v = s.consequence(v, w).fill(v, w)
		if len(object) == before {
			return v
		}
	}
}

func (s *shape) number(n json.Number) json.Number {
	whole := Integer(n)
	if s.wholeOnly() || slices.Contains(s.enum, any(whole)) {
		return whole
	}
	return n
}

func (s *shape) object(object map[string]any, w *work) {
	for name, v := range object {
		p, declared := s.properties[name]
		matched := declared
		if declared && !p.inert {
			v = p.fill(v, w)
			object[name] = v
		}
		for _, pattern := range s.patterns {
			if pattern.re.MatchString(name) {
				matched = true
				v = pattern.fill(v, w)
				object[name] = v
			}
		}
		if !matched && s.additional != nil {
			object[name] = s.additional.fill(v, w)
		}
	}
	if w != nil && w.numbers {
		return
	}
	for _, d := range s.defaults {
		if _, ok := object[d.name]; !ok {
			object[d.name] = clone(d.value)
		}
	}
}

// alternative fills in the alternative that v means: the only one that fits, else the only one that accepts v once its
// defaults are filled in. Where several do, and differ, v stays as it is. A number is the same number in all of them.
func (s *shape) alternative(v any, w *work) any {
	if len(s.anyOf) == 0 {
		return v
	}
	if kind := kindOf(v); kind != "object" && kind != "array" {
		for _, b := range s.anyOf {
			if b.fits(v) {
				v = b.fill(v, w)
			}
		}
		return v
	}
	fitting := make([]*shape, 0, len(s.anyOf))
	work := false
	for _, b := range s.anyOf {
		if b.fits(v) {
			fitting = append(fitting, b)
			work = work || !b.inert
		}
	}
	if len(fitting) == 1 {
		return fitting[0].fill(v, w)
	}
	if !work {
		return v
	}
	var outcome any
	found := 0
	for _, b := range fitting {
		filled := b.fill(clone(v), w)
		if !b.accepts(filled, w) || found > 0 && reflect.DeepEqual(filled, outcome) {
			continue
		}
		outcome = filled
		found++
	}
	if found != 1 {
		return v
	}
	if object, ok := v.(map[string]any); ok { // whoever holds v holds the outcome
		maps.Copy(object, outcome.(map[string]any))
		return object
	}
	return outcome
}

// consequence is what holds for v by the condition of s: then, else, or nil.
func (s *shape) consequence(v any, w *work) *shape {
	if s.when == nil {
		return nil
	}
	holds := false
	if s.gate != nil {
		holds = s.gate.holds(v)
	} else {
		holds = s.when.accepts(v, w)
	}
	if holds {
		return s.then
	}
	return s.otherwise
}

// clone copies what fill may change.
func clone(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, member := range v {
			out[name] = clone(member)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = clone(v[i])
		}
		return out
	}
	return v
}

// gate decides a condition as the validator would, at a small part of its cost: conditions test arguments against
// constants nearly always.
type gate struct {
	object     bool // nothing but an object
	required   []string
	properties map[string]*gate
	enum       []any // strings, booleans, null and whole numbers
	not        *gate
	anyOf      []*gate
	allOf      []*gate
}

// readGate reads a schema; nil for one that it does not fully understand.
func readGate(schema any) *gate {
	m, ok := schema.(map[string]any)
	if !ok {
		return nil
	}
	g := &gate{}
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
			g.properties = make(map[string]*gate, len(properties))
			for name, p := range properties {
				if g.properties[name] = readGate(p); g.properties[name] == nil {
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
			if g.not = readGate(v); g.not == nil {
				return nil
			}
		case "anyOf":
			if g.anyOf = readGates(v); g.anyOf == nil {
				return nil
			}
		case "allOf":
			if g.allOf = readGates(v); g.allOf == nil {
				return nil
			}
		default:
			return nil
		}
	}
	return g
}

func readGates(v any) (out []*gate) {
	list, _ := v.([]any)
	for _, item := range list {
		g := readGate(item)
		if g == nil {
			return nil
		}
		out = append(out, g)
	}
	return out
}

// isWhole reports whether v is a number whose text names it alone once integer has normalised it.
func isWhole(v any) bool {
	n, ok := v.(json.Number)
	if !ok {
		return false
	}
	_, isInt := whole(Integer(n))
	return isInt
}

func (g *gate) holds(v any) bool {
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
	if g.anyOf != nil && !slices.ContainsFunc(g.anyOf, func(b *gate) bool { return b.holds(v) }) {
		return false
	}
	return !slices.ContainsFunc(g.allOf, func(part *gate) bool { return !part.holds(v) })
}

func (g *gate) has(v any) bool {
	if n, ok := v.(json.Number); ok {
		n = Integer(n)
		return slices.ContainsFunc(g.enum, func(e any) bool { m, ok := e.(json.Number); return ok && Integer(m) == n })
	}
	return simple(v) && slices.ContainsFunc(g.enum, func(e any) bool { return simple(e) && e == v })
}
