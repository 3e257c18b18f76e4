package shape

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/util"
)

// Value is the document of v, nil for a nil pointer.
func (s *Shape) Value(v reflect.Value) (*ast.Term, error) {
	switch s.Kind {
	case String:
		return ast.InternedTerm(unicoded(v.String())), nil
	case Time:
		return ast.StringTerm(v.Interface().(time.Time).UTC().Format(time.RFC3339Nano)), nil
	case Bool:
		return ast.InternedTerm(v.Bool()), nil
	case Int:
		return ast.InternedTerm(int(v.Int())), nil
	case Any:
		value, err := raw(v.Bytes())
		return ast.NewTerm(value), err
	case Pointer:
		if v.IsNil() {
			return nil, nil
		}
		return s.Elem.Value(v.Elem())
	case List:
		return s.list(v)
	case Map:
		return s.freeKeys(v)
	}
	return s.object(v)
}

// unicoded is the text with every byte that is not UTF-8 replaced by U+FFFD, as JSON requires.
func unicoded(text string) string {
	if utf8.ValidString(text) {
		return text
	}
	return string([]rune(text))
}

func (s *Shape) list(v reflect.Value) (*ast.Term, error) {
	if v.Len() == 0 {
		return ast.InternedEmptyArray, nil
	}
	terms := make([]*ast.Term, v.Len())
	for i := range terms {
		elem, err := s.Elem.Value(v.Index(i))
		if err != nil {
			return nil, err
		}
		terms[i] = elem
	}
	return ast.ArrayTerm(terms...), nil
}

func (s *Shape) freeKeys(v reflect.Value) (*ast.Term, error) {
	if v.Len() == 0 {
		return ast.InternedEmptyObject, nil
	}
	pairs := make([][2]*ast.Term, 0, v.Len())
	for it := v.MapRange(); it.Next(); {
		elem, err := s.Elem.Value(it.Value())
		if err != nil {
			return nil, err
		}
		pairs = append(pairs, ast.Item(ast.StringTerm(unicoded(it.Key().String())), elem))
	}
	return ast.ObjectTerm(pairs...), nil
}

func (s *Shape) object(v reflect.Value) (*ast.Term, error) {
	var few [16][2]*ast.Term // on the stack, for most objects
	pairs := few[:0]
	for _, f := range s.Fields {
		elem, err := f.Shape.Value(v.Field(f.Index))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		if elem != nil {
			pairs = append(pairs, ast.Item(f.key, elem))
		}
	}
	return ast.ObjectTerm(pairs...), nil
}

// raw decodes JSON with exact numbers. Empty input is {}.
func raw(raw []byte) (ast.Value, error) {
	if len(raw) == 0 {
		return ast.NewObject(), nil
	}
	var x any
	if err := util.UnmarshalJSON(raw, &x); err != nil {
		return nil, errors.New("not one JSON value") // the decoder's own words would quote what is not ours to log
	}
	return Exact(x)
}

// Exact converts decoded JSON with exact numbers. It refuses numbers that are TooLong.
func Exact(x any) (ast.Value, error) {
	switch x := x.(type) {
	case nil:
		return ast.Null{}, nil
	case bool:
		return ast.Boolean(x), nil
	case string:
		return ast.String(x), nil
	case json.Number:
		if TooLong(string(x)) {
			return nil, ErrTooLong
		}
		return ast.Number(x), nil
	case []any:
		terms := make([]*ast.Term, len(x))
		for i, elem := range x {
			v, err := Exact(elem)
			if err != nil {
				return nil, err
			}
			terms[i] = ast.NewTerm(v)
		}
		return ast.NewArray(terms...), nil
	case map[string]any:
		pairs := make([][2]*ast.Term, 0, len(x))
		for k, elem := range x {
			v, err := Exact(elem)
			if err != nil {
				return nil, err
			}
			pairs = append(pairs, [2]*ast.Term{ast.StringTerm(k), ast.NewTerm(v)})
		}
		return ast.NewObject(pairs...), nil
	}
	return nil, fmt.Errorf("%T is not JSON", x)
}

// MaxDigits is how many characters a number may have. Arithmetic on longer ones would not end before any
// deadline, and OPA can't interrupt it.
const MaxDigits = 1000

var ErrTooLong = errors.New("a number of more than 1000 characters, or with an exponent of more than three digits")

// TooLong reports whether a number has too many digits, as written or with its exponent expanded.
func TooLong(number string) bool {
	e := strings.IndexAny(number, "eE")
	return len(number) > MaxDigits || e >= 0 && len(strings.TrimLeft(number[e+1:], "+-0")) > 3
}
