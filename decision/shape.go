package decision

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/util"
)

// A shape is one Go input type as a policy sees it. It is read twice: schema writes it down as the JSON Schema that
// modules are compiled against, and value turns an input into the document that they are evaluated with. So what a
// policy may refer to and what it will find cannot drift apart.
//
// Every field is present in the document, empty where the input has nothing; only fields behind a pointer (target.url,
// serving) may be absent. A policy need not ask whether tool.server is there.
type shape struct {
	kind   shapeKind
	elem   *shape  // of a list or an open map
	fields []field // of an object
	name   string  // the Go type of an object
}

type shapeKind int

const (
	anyShape shapeKind = iota // json.RawMessage
	stringShape
	boolShape
	intShape
	timeShape
	listShape
	mapShape
	objectShape
	pointerShape
)

type field struct {
	name   string
	goName string
	key    *ast.Term
	index  int
	shape  *shape
	// values are all that the field, a text, can hold, from the tag oneof:"read,write"; nil where it is free.
	values []string
	// names says of what it is a name, or of what its elements or keys are, from the tag names:"tool" (names.go).
	names string
}

// shapeOf reads the shape of T, following its json, oneof and names tags. It panics on a type that no input uses: a programming
// error, found by any test.
func shapeOf[T any]() *shape { return shapeOfType(reflect.TypeFor[T]()) }

func shapeOfType(t reflect.Type) *shape {
	switch t {
	case reflect.TypeFor[json.RawMessage]():
		return &shape{kind: anyShape}
	case reflect.TypeFor[time.Time]():
		return &shape{kind: timeShape}
	}
	switch t.Kind() {
	case reflect.String:
		return &shape{kind: stringShape}
	case reflect.Bool:
		return &shape{kind: boolShape}
	case reflect.Int:
		return &shape{kind: intShape}
	case reflect.Slice:
		return &shape{kind: listShape, elem: shapeOfType(t.Elem())}
	case reflect.Map:
		return &shape{kind: mapShape, elem: shapeOfType(t.Elem())}
	case reflect.Pointer:
		return &shape{kind: pointerShape, elem: shapeOfType(t.Elem())}
	case reflect.Struct:
		s := &shape{kind: objectShape, name: t.Name()}
		for i := range t.NumField() {
			s.fields = append(s.fields, fieldOf(t.Field(i), i))
		}
		return s
	}
	panic(fmt.Sprintf("decision: no shape for %v", t))
}

func fieldOf(t reflect.StructField, index int) field {
	name, _, _ := strings.Cut(t.Tag.Get("json"), ",")
	f := field{name: name, goName: t.Name, key: ast.StringTerm(name), index: index, shape: shapeOfType(t.Type), names: t.Tag.Get("names")}
	if values, ok := t.Tag.Lookup("oneof"); ok {
		f.values = strings.Split(values, ",")
	}
	return f
}

// schema is the JSON Schema of the shape. Objects are closed; maps with free keys (labels) and raw JSON (arguments) are
// open. docs may be nil: the compiler reads no descriptions.
func (s *shape) schema(docs descriptions) map[string]any {
	switch s.kind {
	case stringShape:
		return map[string]any{"type": "string"}
	case timeShape:
		return map[string]any{"type": "string", "format": "date-time"}
	case boolShape:
		return map[string]any{"type": "boolean"}
	case intShape:
		return map[string]any{"type": "integer"}
	case listShape:
		return map[string]any{"type": "array", "items": s.elem.schema(docs)}
	case mapShape:
		return map[string]any{"type": "object", "additionalProperties": s.elem.schema(docs)}
	case pointerShape:
		return s.elem.schema(docs)
	case objectShape:
		properties, required := map[string]any{}, []any{}
		for _, f := range s.fields {
			property := f.shape.schema(docs)
			if text := docs.of(s, f); text != "" {
				property["description"] = text
			}
			if f.values != nil && docs != nil {
				property["enum"] = f.values
			}
			properties[f.name] = property
			if f.shape.kind != pointerShape {
				required = append(required, f.name)
			}
		}
		return map[string]any{
			"type": "object", "properties": properties, "required": required, "additionalProperties": false,
		}
	}
	return map[string]any{}
}

// value is the document of v, nil for a nil pointer.
func (s *shape) value(v reflect.Value) (*ast.Term, error) {
	switch s.kind {
	case stringShape:
		return ast.InternedTerm(v.String()), nil
	case timeShape:
		return ast.StringTerm(v.Interface().(time.Time).UTC().Format(time.RFC3339Nano)), nil
	case boolShape:
		return ast.InternedTerm(v.Bool()), nil
	case intShape:
		return ast.InternedTerm(int(v.Int())), nil
	case anyShape:
		value, err := rawValue(v.Bytes())
		return ast.NewTerm(value), err
	case pointerShape:
		if v.IsNil() {
			return nil, nil
		}
		return s.elem.value(v.Elem())
	case listShape:
		return s.list(v)
	case mapShape:
		return s.freeKeys(v)
	}
	return s.object(v)
}

func (s *shape) list(v reflect.Value) (*ast.Term, error) {
	if v.Len() == 0 {
		return ast.InternedEmptyArray, nil
	}
	terms := make([]*ast.Term, v.Len())
	for i := range terms {
		elem, err := s.elem.value(v.Index(i))
		if err != nil {
			return nil, err
		}
		terms[i] = elem
	}
	return ast.ArrayTerm(terms...), nil
}

func (s *shape) freeKeys(v reflect.Value) (*ast.Term, error) {
	if v.Len() == 0 {
		return ast.InternedEmptyObject, nil
	}
	pairs := make([][2]*ast.Term, 0, v.Len())
	for it := v.MapRange(); it.Next(); {
		elem, err := s.elem.value(it.Value())
		if err != nil {
			return nil, err
		}
		pairs = append(pairs, ast.Item(ast.StringTerm(it.Key().String()), elem))
	}
	return ast.ObjectTerm(pairs...), nil
}

func (s *shape) object(v reflect.Value) (*ast.Term, error) {
	pairs := make([][2]*ast.Term, 0, len(s.fields))
	for _, f := range s.fields {
		elem, err := f.shape.value(v.Field(f.index))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.name, err)
		}
		if elem != nil {
			pairs = append(pairs, ast.Item(f.key, elem))
		}
	}
	return ast.ObjectTerm(pairs...), nil
}

// rawValue reads JSON with its numbers exact. Nothing stands for {}.
func rawValue(raw []byte) (ast.Value, error) {
	if len(raw) == 0 {
		return ast.NewObject(), nil
	}
	var x any
	if err := util.UnmarshalJSON(raw, &x); err != nil {
		return nil, errors.New("not one JSON value") // the decoder's own words would quote what is not ours to log
	}
	return exactValue(x)
}

// exactValue converts decoded JSON. A number whose exponent has more than three digits is refused: arithmetic on it
// would not end before any deadline, and OPA can't interrupt a built-in.
func exactValue(x any) (ast.Value, error) {
	switch x := x.(type) {
	case nil:
		return ast.Null{}, nil
	case bool:
		return ast.Boolean(x), nil
	case string:
		return ast.String(x), nil
	case json.Number:
		if e := strings.IndexAny(string(x), "eE"); e >= 0 && len(strings.TrimLeft(string(x)[e+1:], "+-0")) > 3 {
			return nil, errors.New("a number with an exponent of more than three digits")
		}
		return ast.Number(x), nil
	case []any:
		terms := make([]*ast.Term, len(x))
		for i, elem := range x {
			v, err := exactValue(elem)
			if err != nil {
				return nil, err
			}
			terms[i] = ast.NewTerm(v)
		}
		return ast.NewArray(terms...), nil
	case map[string]any:
		pairs := make([][2]*ast.Term, 0, len(x))
		for k, elem := range x {
			v, err := exactValue(elem)
			if err != nil {
				return nil, err
			}
			pairs = append(pairs, [2]*ast.Term{ast.StringTerm(k), ast.NewTerm(v)})
		}
		return ast.NewObject(pairs...), nil
	}
	return nil, fmt.Errorf("%T is not JSON", x)
}
