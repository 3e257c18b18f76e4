// Package jsontype is sets of the types that JSON Schema tells apart.
package jsontype

import (
	"encoding/json"
	"math/big"
	"strings"
)

// Set is a set of JSON types. Integers and other numbers are apart, so that "integer" is a part of "number".
type Set uint8

// The members of a Set, and the unions that have a name.
const (
	Null Set = 1 << iota
	Boolean
	Integer
	Fraction // a number that is not an integer
	String
	Array
	Object

	Number = Integer | Fraction
	All    = Object<<1 - 1
)

var named = map[string]Set{
	"null": Null, "boolean": Boolean, "integer": Integer, "number": Number,
	"string": String, "array": Array, "object": Object,
}

// Named is the set of the values that the keyword type accepts under a name; empty for a name it doesn't
// know.
func Named(name string) Set { return named[name] }

// Of is the type of a decoded value: nil, bool, string, json.Number, []any or map[string]any.
func Of(v any) Set {
	switch v := v.(type) {
	case nil:
		return Null
	case bool:
		return Boolean
	case json.Number:
		if r, ok := new(big.Rat).SetString(string(v)); ok && r.IsInt() {
			return Integer
		}
		return Fraction
	case string:
		return String
	case []any:
		return Array
	}
	return Object
}

// String lists the types by name, joined by "or".
func (s Set) String() string {
	if s == All {
		return "anything"
	}
	var names []string
	for _, name := range []string{"null", "boolean", "number", "integer", "string", "array", "object"} {
		if of := named[name]; s&of == of && (name != "integer" || s&Fraction == 0) {
			names = append(names, name)
		}
	}
	if s&Number == Fraction {
		names = append(names, "number that is not an integer")
	}
	return strings.Join(names, " or ")
}
