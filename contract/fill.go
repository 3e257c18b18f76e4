package contract

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
)

// fill returns v with the defaults of s filled in, at every depth, and its integers normalised. Maps and
// arrays are changed in place. Of alternatives only the one that v fits is filled in, and of a condition only
// the branch that applies; if a default makes a condition hold, the defaults of its branch follow. If the
// budget w is exceeded, fill stops with part of the work done. With w.numbers no default is filled in.
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

// alternative fills in the defaults of the alternative that v fits: the only one that fits, or else the only
// one that accepts v with its defaults. If several accept it and their results differ, v stays unchanged.
// Scalars are filled in by every fitting alternative, because normalising a number gives the same number in
// all.
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
	if object, ok := v.(map[string]any); ok { // in place, because other references to v exist
		maps.Copy(object, outcome.(map[string]any))
		return object
	}
	return outcome
}

// consequence returns the branch of the condition of s that applies to v: then, else, or nil.
func (s *shape) consequence(v any, w *work) *shape {
	if s.when == nil {
		return nil
	}
	holds := false
	if s.test != nil {
		holds = s.test.holds(v)
	} else {
		holds = s.when.accepts(v, w)
	}
	if holds {
		return s.then
	}
	return s.otherwise
}

// clone makes a deep copy of maps and arrays.
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
