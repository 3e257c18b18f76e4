package dialect_test

import (
	"fmt"
	"math/rand/v2"
)

// schemer makes schemas of arguments as servers send them, and as they might: every applicator at the root
// and below, alone and beside others.
type schemer struct {
	*rand.Rand
	defs anyMap
	refs int
}

func (s *schemer) tool() anyMap {
	s.defs = anyMap{}
	top := s.object(2)
	top["properties"].(anyMap)["a"] = s.scalar() // which others refer to
	for range s.IntN(3) {
		s.combine(top, 1)
	}
	if s.IntN(8) == 0 { // a root that refers to what it means
		s.defs["Root"] = top
		top = anyMap{"type": "object", "$ref": "#/$defs/Root"}
	}
	if len(s.defs) > 0 {
		top["$defs"] = s.defs
	}
	return top
}

var argumentNames = []string{"a", "b", "c", "kind", "items_list"}

func (s *schemer) object(depth int) anyMap {
	properties, required := anyMap{}, []any{}
	for _, name := range argumentNames {
		if s.IntN(3) == 0 {
			properties[name] = s.schema(depth - 1)
			if s.IntN(2) == 0 {
				required = append(required, name)
			}
		}
	}
	o := anyMap{"type": "object", "properties": properties}
	if len(required) > 0 {
		o["required"] = required
	}
	switch s.IntN(4) {
	case 0, 1:
		o["additionalProperties"] = false
	case 2:
		if s.IntN(3) == 0 {
			o["additionalProperties"] = s.scalar()
		}
	}
	if s.IntN(10) == 0 {
		o["patternProperties"] = anyMap{"^x-": s.scalar()}
	}
	return o
}

// alternative is an object that need not repeat its type.
func (s *schemer) alternative(depth int) anyMap {
	switch s.IntN(4) {
	case 0:
		return anyMap{"required": []any{argumentNames[s.IntN(3)]}}
	case 1:
		o := s.object(depth)
		delete(o, "type")
		return o
	case 2:
		o := s.object(depth)
		o["properties"].(anyMap)["kind"] = anyMap{"const": fmt.Sprintf("k%d", s.IntN(4))}
		o["required"] = []any{"kind"}
		return o
	}
	return s.object(depth)
}

// combine adds an applicator to an object.
func (s *schemer) combine(o anyMap, depth int) {
	list := func() []any {
		out := []any{}
		for range 1 + s.IntN(3) {
			out = append(out, s.alternative(depth))
		}
		return out
	}
	switch s.IntN(10) {
	case 0, 1:
		o["anyOf"] = list()
	case 2:
		o["oneOf"] = list()
	case 3:
		o["allOf"] = list()
	case 4:
		o["if"] = anyMap{"properties": anyMap{"kind": anyMap{"const": "k1"}}, "required": []any{"kind"}}
		o["then"] = s.alternative(depth)
		if s.IntN(2) == 0 {
			o["else"] = s.alternative(depth)
		}
	case 5:
		o["dependentRequired"] = anyMap{"a": []any{"b"}}
	case 6:
		o["dependentSchemas"] = anyMap{"a": s.alternative(depth)}
	case 7:
		o["not"] = anyMap{"required": []any{"a", "b"}}
	case 8:
		if o["additionalProperties"] == nil {
			o["unevaluatedProperties"] = false
		}
	default:
		o["minProperties"] = 1
	}
}

func (s *schemer) scalar() anyMap {
	switch s.IntN(12) {
	case 0:
		return anyMap{"type": "string", "minLength": 1, "maxLength": 5}
	case 1:
		return anyMap{"type": "string", "format": []string{"date-time", "uuid", "uri", "int32", "byte"}[s.IntN(5)]}
	case 2:
		return anyMap{"type": "string", "pattern": []string{"^[a-z]+$", "^x", "b$"}[s.IntN(3)]}
	case 3:
		return anyMap{"enum": []any{"x", "", 3, nil, true}[s.IntN(3):]}
	case 4:
		return anyMap{"type": "integer", "minimum": 1, "exclusiveMaximum": 9}
	case 5:
		return anyMap{"type": "number", "multipleOf": 0.5, "exclusiveMinimum": 0}
	case 6:
		return anyMap{"type": []any{"string", "null"}}
	case 7:
		return anyMap{"type": []any{"integer", "boolean"}}
	case 8:
		return anyMap{"const": []any{1, "only", false}[s.IntN(3)]}
	case 9:
		return anyMap{"type": "null"}
	case 10:
		return anyMap{"type": "boolean"}
	}
	return anyMap{"type": "string", "not": anyMap{"const": "x"}}
}

func (s *schemer) schema(depth int) any {
	if depth <= 0 {
		return s.scalar()
	}
	switch s.IntN(14) {
	case 0:
		return anyMap{"type": "array", "items": s.schema(depth - 1), "maxItems": 3}
	case 1:
		return anyMap{"type": "array", "prefixItems": []any{s.scalar(), s.scalar()}, "items": false, "minItems": s.IntN(3)}
	case 2:
		o := s.object(depth)
		for range s.IntN(3) {
			s.combine(o, depth-1)
		}
		return o
	case 3:
		return anyMap{"anyOf": []any{s.schema(depth - 1), s.scalar()}}
	case 4:
		return anyMap{"oneOf": []any{s.object(depth - 1), s.object(depth - 1)}}
	case 5:
		return anyMap{}
	case 6:
		return true
	case 7:
		return anyMap{"type": "object", "additionalProperties": s.scalar()}
	case 8:
		return anyMap{"allOf": []any{s.schema(depth - 1), s.scalar()}}
	case 9:
		if s.IntN(6) == 0 { // the whole, or another argument
			return anyMap{"$ref": []string{"#", "#/properties/a"}[s.IntN(2)]}
		}
		name := fmt.Sprintf("D%d", s.refs)
		s.refs++
		o := s.object(depth - 1)
		s.defs[name] = o
		if s.IntN(2) == 0 {
			o["properties"].(anyMap)["next"] = anyMap{"$ref": "#/$defs/" + name}
		}
		return anyMap{"$ref": "#/$defs/" + name}
	case 10:
		return anyMap{"type": "array", "items": anyMap{"type": []any{"string", "integer"}}, "contains": anyMap{"type": "string"}, "uniqueItems": true}
	}
	return s.scalar()
}
