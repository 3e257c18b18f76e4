package contract

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/catalogd/catalogd/contract/internal/jsontype"
	"github.com/catalogd/catalogd/internal/strictjson"
)

// accepted returns the types that s accepts, considering references, allOf, anyOf and oneOf.
func (s *shape) accepted() jsontype.Set {
	if s == nil {
		return jsontype.All
	}
	k := jsontype.All
	if s.never {
		return 0
	}
	if len(s.types) > 0 {
		k = 0
		for _, name := range s.types {
			k |= jsontype.Named(name)
		}
	}
	if len(s.enum) > 0 {
		var listed jsontype.Set
		for _, v := range s.enum {
			listed |= jsontype.Of(v)
		}
		k &= listed
	}
	if s.target != nil {
		k &= s.target.accepted()
	}
	if len(s.anyOf) > 0 {
		var some jsontype.Set
		for _, b := range s.anyOf {
			some |= b.accepted()
		}
		k &= some
	}
	for _, part := range s.allOf {
		k &= part.accepted()
	}
	return k
}

// coerce converts values whose type is not declared to a declared type, at every depth: a string that is a
// number to the number, "true" and "false" to booleans, a number to a string, and a single value to a list of
// one. Nothing else is converted, and values of a declared type stay unchanged (table in docs/arguments.md).
// here are the subschemas that apply to v. Maps and arrays are changed in place.
func coerce(v any, here []*shape, w *work) any {
	if len(here) == 0 || !w.spend(len(here)) {
		return v
	}
	declared := jsontype.All
	for _, s := range here {
		declared &= s.accepted()
	}
	if jsontype.Of(v)&declared == 0 {
		v = turned(v, declared)
	}
	switch v := v.(type) {
	case map[string]any:
		// Converting a member may change which alternative or condition applies to the other members.
		var before []*shape
		for again := range 2 {
			var now []*shape
			for _, s := range here {
				now = s.applicable(v, w, now)
			}
			if again > 0 && slices.Equal(now, before) {
				break
			}
			before = now
			for _, name := range slices.Sorted(maps.Keys(v)) {
				var below []*shape
				for _, s := range now {
					below = append(below, s.members(name)...)
				}
				v[name] = coerce(v[name], below, w)
			}
		}
	case []any:
		var now []*shape
		for _, s := range here {
			now = s.applicable(v, w, now)
		}
		for i := range v {
			var below []*shape
			for _, s := range now {
				if item := s.item(i); item != nil {
					below = append(below, item)
				}
			}
			v[i] = coerce(v[i], below, w)
		}
	}
	return v
}

func turned(v any, to jsontype.Set) any {
	switch v := v.(type) {
	case string:
		if n, ok := numberIn(v); ok && jsontype.Of(n)&to != 0 {
			return n
		}
		if to&jsontype.Boolean != 0 && (v == "true" || v == "false") {
			return v == "true"
		}
	case json.Number:
		if to&jsontype.String != 0 {
			return string(v)
		}
	}
	if to&jsontype.Array != 0 && v != nil {
		return []any{v}
	}
	return v
}

// numberIn parses a string that is exactly one JSON number within the limits of numbers.
func numberIn(s string) (json.Number, bool) {
	if s == "" || len(s) > strictjson.MaxNumber || s[0] != '-' && (s[0] < '0' || s[0] > '9') {
		return "", false
	}
	if last := s[len(s)-1]; last < '0' || last > '9' {
		return "", false
	}
	return json.Number(s), strictjson.Check([]byte(s), strict) == nil
}
