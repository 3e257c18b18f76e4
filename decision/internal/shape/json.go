package shape

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/open-policy-agent/opa/v1/ast"
)

// Without is the shape without the fields that erase reports, none of which may lie in a list or a map, and
// the JSON pointers of these below at.
func (s *Shape) Without(at string, erase func(Field) bool) (rest *Shape, erased []string) {
	out := *s
	out.Fields = nil
	if s.Kind == Pointer {
		out.Elem, erased = s.Elem.Without(at, erase)
		return &out, erased
	}
	for _, f := range s.Fields {
		if erase(f) {
			erased = append(erased, at+"/"+f.Name)
			continue
		}
		var below []string
		f.Shape, below = f.Shape.Without(at+"/"+f.Name, erase)
		out.Fields, erased = append(out.Fields, f), append(erased, below...)
	}
	return &out, erased
}

// AppendJSON appends the JSON of the document that Value makes of v.
func (s *Shape) AppendJSON(dst []byte, v reflect.Value) ([]byte, error) {
	var err error
	switch s.Kind {
	case String:
		return AppendString(dst, v.String()), nil
	case Time:
		dst = v.Interface().(time.Time).UTC().AppendFormat(append(dst, '"'), time.RFC3339Nano)
		return append(dst, '"'), nil
	case Bool:
		return strconv.AppendBool(dst, v.Bool()), nil
	case Int:
		return strconv.AppendInt(dst, v.Int(), 10), nil
	case Pointer: // a nil pointer's field is left out
		return s.Elem.AppendJSON(dst, v.Elem())
	case List:
		dst = append(dst, '[')
		for i := range v.Len() {
			if i > 0 {
				dst = append(dst, ',')
			}
			if dst, err = s.Elem.AppendJSON(dst, v.Index(i)); err != nil {
				return dst, err
			}
		}
		return append(dst, ']'), nil
	case Map:
		names := v.MapKeys()
		slices.SortFunc(names, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
		dst = append(dst, '{')
		for i, name := range names {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(AppendString(dst, name.String()), ':')
			if dst, err = s.Elem.AppendJSON(dst, v.MapIndex(name)); err != nil {
				return dst, err
			}
		}
		return append(dst, '}'), nil
	case Object:
		dst = append(dst, '{')
		begin := len(dst)
		for _, f := range s.Fields {
			value := v.Field(f.Index)
			if f.Shape.Kind == Pointer && value.IsNil() {
				continue
			}
			if len(dst) > begin {
				dst = append(dst, ',')
			}
			dst = append(dst, f.quoted...)
			if dst, err = f.Shape.AppendJSON(dst, value); err != nil {
				return dst, fmt.Errorf("%s: %w", f.Name, err)
			}
		}
		return append(dst, '}'), nil
	}
	return appendRaw(dst, v.Bytes())
}

// appendRaw appends the JSON of what raw decodes.
func appendRaw(dst, content []byte) ([]byte, error) {
	value, err := raw(content)
	if err != nil {
		return dst, err
	}
	data, err := ast.JSON(value)
	if err != nil {
		return dst, err
	}
	text, err := json.Marshal(data)
	return append(dst, text...), err
}

// AppendString appends a JSON string.
func AppendString(dst []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			text, err := json.Marshal(s)
			if err != nil {
				panic("shape: a string always encodes: " + err.Error())
			}
			return append(dst, text...)
		}
	}
	return append(append(append(dst, '"'), s...), '"')
}
