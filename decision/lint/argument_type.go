package lint

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/catalogd/catalogd/decision/internal/source"
)

// argType is the set of JSON values that a schema allows, by type and by the names of fields. It is never
// narrower than the schema, with one exception: an object that declares fields has no others, unless the
// schema says so.
type argType struct {
	// any is true where nothing is known; the rest is then empty.
	any bool
	// scalars are "string", "number", "boolean" and "null".
	scalars map[string]bool
	// items is the type of an array's elements; nil where the value is no array.
	items *argType
	// object is true where the value may be an object, with the fields, and with others where it is open.
	object bool
	open   bool
	fields map[string]*argType
}

// maxArgDepth is how deep schemas are read.
const maxArgDepth = 12

// argTypeOf reads the schema of a tool's arguments.
func argTypeOf(schema json.RawMessage) *argType {
	var root any
	if json.Unmarshal(schema, &root) != nil {
		return &argType{any: true}
	}
	r := argReader{root: root}
	t := r.read(root, 0)
	if !t.object { // arguments are an object
		return &argType{any: true}
	}
	return &argType{object: true, open: t.open, fields: t.fields}
}

type argReader struct{ root any }

func (r argReader) read(node any, depth int) *argType {
	schema, ok := node.(map[string]any)
	if !ok || depth > maxArgDepth {
		return &argType{any: true}
	}
	if ref, ok := schema["$ref"].(string); ok {
		c := schemaCounter{root: r.root}
		if target, ok := c.at(ref); ok && strings.HasPrefix(ref, "#/") {
			return r.read(target, depth+1)
		}
		return &argType{any: true}
	}
	types, typed := typesOf(schema)
	for _, key := range []string{"anyOf", "oneOf"} {
		if among, ok := schema[key].([]any); ok && !typed {
			union := &argType{}
			for _, one := range among {
				union = union.or(r.read(one, depth+1))
			}
			return union
		}
	}
	if !typed {
		return &argType{any: true}
	}
	t := &argType{scalars: map[string]bool{}}
	for _, name := range types {
		switch name {
		case "integer":
			t.scalars["number"] = true
		case "array":
			t.items = r.items(schema, depth)
		case "object":
			t.object = true
			t.fields, t.open = r.fields(schema, depth)
		default:
			t.scalars[name] = true
		}
	}
	return t
}

// typesOf are the types that a schema names, or those of its enum or const.
func typesOf(schema map[string]any) (types []string, typed bool) {
	switch v := schema["type"].(type) {
	case string:
		return []string{v}, true
	case []any:
		for _, t := range v {
			name, _ := t.(string)
			types = append(types, name)
		}
		return types, true
	}
	values, listed := schema["enum"].([]any)
	if value, ok := schema["const"]; ok {
		values, listed = []any{value}, true
	}
	for _, value := range values {
		switch value.(type) {
		case map[string]any, []any:
			return nil, false
		}
		types = append(types, jsonType(value))
	}
	return types, listed
}

func jsonType(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case []any:
		return "array"
	case map[string]any:
		return "object"
	}
	return "number"
}

func (r argReader) items(schema map[string]any, depth int) *argType {
	if _, several := schema["prefixItems"]; several || schema["items"] == nil {
		return &argType{any: true}
	}
	return r.read(schema["items"], depth+1)
}

// combining are keywords that may declare fields beside properties.
var combining = []string{"allOf", "anyOf", "oneOf", "if", "then", "else", "dependentSchemas", "dependencies", "patternProperties", "$dynamicRef"}

func (r argReader) fields(schema map[string]any, depth int) (fields map[string]*argType, open bool) {
	declared, ok := schema["properties"].(map[string]any)
	fields = map[string]*argType{}
	for name, field := range declared {
		fields[name] = r.read(field, depth+1)
	}
	if additional, known := schema["additionalProperties"]; known {
		open = additional != false
	} else {
		open = !ok || slices.ContainsFunc(combining, func(key string) bool { return schema[key] != nil })
	}
	return fields, open || schema["patternProperties"] != nil
}

// or is the union of both types.
func (t *argType) or(other *argType) *argType {
	if t.any || other.any {
		return &argType{any: true}
	}
	both := &argType{scalars: map[string]bool{}, items: t.items, object: t.object || other.object, open: t.open || other.open, fields: map[string]*argType{}}
	for _, of := range []*argType{t, other} {
		for name := range of.scalars {
			both.scalars[name] = true
		}
		for name, field := range of.fields {
			if known := both.fields[name]; known != nil {
				field = known.or(field)
			}
			both.fields[name] = field
		}
	}
	switch {
	case t.items == nil:
		both.items = other.items
	case other.items != nil:
		both.items = t.items.or(other.items)
	}
	return both
}

// schema is the type as a JSON Schema for OPA's type checker, which reads one type of each alternative, and
// an object without fields as open.
func (t *argType) schema() map[string]any {
	if t.any {
		return map[string]any{}
	}
	var among []any
	for _, name := range source.SortedKeys(t.scalars) {
		among = append(among, map[string]any{"type": name})
	}
	if t.items != nil {
		among = append(among, map[string]any{"type": "array", "items": t.items.schema()})
	}
	switch {
	case t.object && t.open:
		return map[string]any{}
	case t.object:
		fields := map[string]any{noField: map[string]any{}}
		for name, field := range t.fields {
			fields[name] = field.schema()
		}
		among = append(among, map[string]any{"type": "object", "properties": fields})
	}
	if len(among) == 1 {
		return among[0].(map[string]any)
	}
	if len(among) == 0 {
		return map[string]any{}
	}
	return map[string]any{"anyOf": among}
}

// noField is the name of a field that no value has.
const noField = "\x00"

// at is the type at a path; nil where it is not known.
func (t *argType) at(path []step) *argType {
	for _, to := range path {
		switch {
		case t == nil || t.any || t.object && t.items != nil || len(t.scalars) > 0:
			return nil
		case t.items != nil:
			t = t.items
		case to.any:
			return nil
		default:
			t = t.fields[to.name]
		}
	}
	if t == nil || t.any {
		return nil
	}
	return t
}

// may reports whether a value may be of a JSON type.
func (t *argType) may(jsonType string) bool {
	return t.any || t.scalars[jsonType] || jsonType == "array" && t.items != nil || jsonType == "object" && t.object
}

// noun lists the types for a message.
func (t *argType) noun() string {
	var names []string
	for _, name := range []string{"string", "number", "boolean", "null", "array", "object"} {
		if t.may(name) {
			names = append(names, name)
		}
	}
	return strings.Join(names, " or ")
}

// faults lists what of a value is not of the type.
func (t *argType) faults(at string, value any) (faults []string) {
	if t.any {
		return nil
	}
	if got := jsonType(value); !t.may(got) {
		return []string{fmt.Sprintf("%s is of type %s, and must be of type %s", at, got, t.noun())}
	}
	switch v := value.(type) {
	case map[string]any:
		for _, name := range source.SortedKeys(v) {
			field := t.fields[name]
			switch {
			case field != nil:
				faults = append(faults, field.faults(at+"."+name, v[name])...)
			case !t.open:
				faults = append(faults, fmt.Sprintf("%s has no %q%s", at, name, meantOf(name, t.fields)))
			}
		}
	case []any:
		for i, elem := range v {
			faults = append(faults, t.items.faults(at+"["+strconv.Itoa(i)+"]", elem)...)
		}
	}
	return faults
}

// meantOf is the end of a message about an unknown field: a similar name, or the names that there are.
func meantOf(name string, fields map[string]*argType) string {
	known := map[string]bool{}
	for field := range fields {
		known[field] = true
	}
	if near := source.DidYouMean(name, known); near != "" {
		return near
	}
	names := source.SortedKeys(known)
	switch len(names) {
	case 0:
		return ": there are none"
	case 1:
		return ": there is only " + names[0]
	}
	if len(names) > 10 {
		names = append(names[:10], "...")
	}
	return ": there are " + strings.Join(names, ", ")
}
