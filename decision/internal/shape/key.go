package shape

import (
	"encoding/binary"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
)

// Plain reports whether raw is JSON that Value certainly accepts. It is false for valid JSON with anything
// like a number with an exponent.
func Plain(raw json.RawMessage) bool {
	for i, c := range raw {
		if (c == 'e' || c == 'E') && i > 0 && (raw[i-1] == '.' || raw[i-1] >= '0' && raw[i-1] <= '9') {
			return false
		}
	}
	return len(raw) == 0 || json.Valid(raw)
}

// AppendKey appends a key of v: two values of the shape have the same key only if their documents are equal.
// Every text and list is preceded by its length. It panics on raw JSON and times, which no key has.
func (s *Shape) AppendKey(key []byte, v reflect.Value) []byte {
	switch s.Kind {
	case String:
		return appendText(key, v.String())
	case Bool:
		if v.Bool() {
			return append(key, 1)
		}
		return append(key, 0)
	case Int:
		return binary.AppendVarint(key, v.Int())
	case List:
		key = binary.AppendUvarint(key, uint64(v.Len()))
		for i := range v.Len() {
			key = s.Elem.AppendKey(key, v.Index(i))
		}
		return key
	case Map:
		key = binary.AppendUvarint(key, uint64(v.Len()))
		names := v.MapKeys()
		slices.SortFunc(names, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
		for _, name := range names {
			key = s.Elem.AppendKey(appendText(key, name.String()), v.MapIndex(name))
		}
		return key
	case Object:
		for _, f := range s.Fields {
			key = f.Shape.AppendKey(key, v.Field(f.Index))
		}
		return key
	case Pointer:
		if v.IsNil() {
			return append(key, 0)
		}
		return s.Elem.AppendKey(append(key, 1), v.Elem())
	}
	panic("shape: no key is made of raw JSON or times")
}

func appendText(key []byte, text string) []byte {
	return append(binary.AppendUvarint(key, uint64(len(text))), text...)
}
