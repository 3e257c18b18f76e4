// Package shape describes Go types as Rego documents. One Shape gives a type's JSON Schema, which modules are
// compiled against, its document, which they are evaluated with, the JSON of that document for logs, and a
// key that two values share only if their documents are equal. So what a policy may refer to, what it finds,
// what is logged and what is cached can't drift apart.
package shape

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
)

// Shape is the shape of one Go type.
//
// Every field is present in the document, empty where the input has nothing; only fields behind a pointer
// (target.url, serving) may be absent. A policy need not ask whether tool.server is there.
type Shape struct {
	Kind   Kind
	Elem   *Shape  // of a list or an open map
	Fields []Field // of an object
	Name   string  // the Go type of an object
}

// Kind is the kind of a shape.
type Kind int

const (
	Any Kind = iota // json.RawMessage
	String
	Bool
	Int
	Time
	List
	Map
	Object
	Pointer
)

// Field is one field of an object.
type Field struct {
	Name   string
	GoName string
	key    *ast.Term
	quoted string // the name in JSON, with its colon
	Index  int
	Shape  *Shape
	// Values are all values of the field, a text, from the tag oneof:"read,write"; nil where any is possible.
	Values []string
	// Names is the kind of thing that the field, its elements or its keys name, from the tag names:"tool"
	// (lint.Names).
	Names string
	// Unlogged fields are left out of logs, from the tag log:"-".
	Unlogged bool
}

// Of is the shape of T, from its json, oneof, names and log tags. It panics on an unsupported type: a
// programming error, found by any test.
func Of[T any]() *Shape { return shapeOfType(reflect.TypeFor[T]()) }

func shapeOfType(t reflect.Type) *Shape {
	switch t {
	case reflect.TypeFor[json.RawMessage]():
		return &Shape{Kind: Any}
	case reflect.TypeFor[time.Time]():
		return &Shape{Kind: Time}
	}
	switch t.Kind() {
	case reflect.String:
		return &Shape{Kind: String}
	case reflect.Bool:
		return &Shape{Kind: Bool}
	case reflect.Int:
		return &Shape{Kind: Int}
	case reflect.Slice:
		return &Shape{Kind: List, Elem: shapeOfType(t.Elem())}
	case reflect.Map:
		return &Shape{Kind: Map, Elem: shapeOfType(t.Elem())}
	case reflect.Pointer:
		return &Shape{Kind: Pointer, Elem: shapeOfType(t.Elem())}
	case reflect.Struct:
		s := &Shape{Kind: Object, Name: t.Name()}
		for i := range t.NumField() {
			s.Fields = append(s.Fields, fieldOf(t.Field(i), i))
		}
		return s
	}
	panic(fmt.Sprintf("shape: no shape for %v", t))
}

func fieldOf(t reflect.StructField, index int) Field {
	name, _, _ := strings.Cut(t.Tag.Get("json"), ",")
	f := Field{
		Name: name, GoName: t.Name, key: ast.StringTerm(name), quoted: strconv.Quote(name) + ":", Index: index, Shape: shapeOfType(t.Type),
		Names: t.Tag.Get("names"), Unlogged: t.Tag.Get("log") == "-",
	}
	if values, ok := t.Tag.Lookup("oneof"); ok {
		f.Values = strings.Split(values, ",")
	}
	return f
}

// Schema is the JSON Schema of the shape. Objects are closed; maps (labels) and raw JSON (arguments) are
// open. describe is the description of a field; where it is nil, the schema has no descriptions and no enums,
// which OPA's compiler does not read.
func (s *Shape) Schema(describe func(*Shape, Field) string) map[string]any {
	switch s.Kind {
	case String:
		return map[string]any{"type": "string"}
	case Time:
		return map[string]any{"type": "string", "format": "date-time"}
	case Bool:
		return map[string]any{"type": "boolean"}
	case Int:
		return map[string]any{"type": "integer"}
	case List:
		return map[string]any{"type": "array", "items": s.Elem.Schema(describe)}
	case Map:
		return map[string]any{"type": "object", "additionalProperties": s.Elem.Schema(describe)}
	case Pointer:
		return s.Elem.Schema(describe)
	case Object:
		properties, required := map[string]any{}, []any{}
		for _, f := range s.Fields {
			property := f.Shape.Schema(describe)
			if describe != nil {
				if text := describe(s, f); text != "" {
					property["description"] = text
				}
				if f.Values != nil {
					property["enum"] = f.Values
				}
			}
			properties[f.Name] = property
			if f.Shape.Kind != Pointer {
				required = append(required, f.Name)
			}
		}
		return map[string]any{
			"type": "object", "properties": properties, "required": required, "additionalProperties": false,
		}
	}
	return map[string]any{}
}
