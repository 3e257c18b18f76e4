// Package gotype derives contracts from Go types, and reads and writes values of those types as JSON.
//
// The schema is that of github.com/google/jsonschema-go, made exact: what the contract accepts, Decode reads
// without a loss, and what Encode writes, the contract accepts. So a slice is an array and a map an object, and
// never null; an integer has the bounds of its type; bytes are base64. Types that the library describes otherwise
// than encoding/json reads them (embedded pointers, fields that share a name, types with a JSON method) are
// refused, with the path of the field.
//
// Tags describe a field: jsonschema is its description, default its default, enum the values that it may have,
// minimum and maximum its bounds, and secret marks it. docs/go.md has the table.
package gotype

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/internal/strictjson"
)

// Stated are schemas of types that can't be derived, as the author states them.
type Stated map[reflect.Type]json.RawMessage

// maxSchema is the maximum size of a schema in bytes, as for args in CUE.
const maxSchema = 256 << 10

// Input derives the contract of arguments from a struct type. The error names the field that can't be described.
func Input(t reflect.Type, stated Stated) (contract.Spec, error) {
	if t.Kind() != reflect.Struct {
		const says = "the input is %s, and arguments have names; make it a struct with a field for each argument"
		return contract.Spec{}, fmt.Errorf(says, t)
	}
	return derive(t, stated, true)
}

// Output derives the contract of a result; ok is false if values of the type are no JSON objects, so that there
// is no structured result.
func Output(t reflect.Type, stated Stated) (spec contract.Spec, ok bool, err error) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if _, is := stated[t]; t.Kind() != reflect.Struct && !is || t == timeType {
		return contract.Spec{}, false, nil
	}
	spec, err = derive(t, stated, false)
	return spec, err == nil, err
}

// Produced derives a schema that has every JSON value of a type; ok is false if the type says nothing of them, as any
// and json.RawMessage do, or can't be described.
func Produced(t reflect.Type, stated Stated) (spec contract.Spec, ok bool) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if _, is := stated[t]; !is && (t.Kind() == reflect.Interface || t == reflect.TypeFor[json.RawMessage]()) {
		return spec, false
	}
	if raw, is := stated[t]; is {
		return contract.Spec{Schema: raw}, true
	}
	_, _, raw, err := describe(t, stated, false)
	return contract.Spec{Schema: raw}, err == nil
}

func derive(t reflect.Type, stated Stated, input bool) (spec contract.Spec, err error) {
	if raw, is := stated[t]; is {
		if spec, err = whole(raw); err != nil {
			return spec, fmt.Errorf("the schema that is stated for %s: %w", t, err)
		}
		return spec, nil
	}
	r, schema, raw, err := describe(t, stated, input)
	if err != nil {
		return spec, err
	}
	if len(raw) > maxSchema {
		return spec, fmt.Errorf("the schema of %s has %d bytes, more than the %d that a model should read", t, len(raw), maxSchema)
	}
	spec = contract.Spec{Schema: raw, Strictness: contract.Closed, Fields: fields(schema)}
	c, err := contract.New(spec, nil)
	if err != nil {
		return spec, fmt.Errorf("the schema of %s: %w", t, err)
	}
	return c.Spec(), r.checkDefaults()
}

// describe returns the schema of a type that states none, also as it is written, and what has read it.
func describe(
	t reflect.Type, stated Stated, input bool,
) (r *reader, schema *jsonschema.Schema, raw json.RawMessage, err error) {
	r = &reader{
		input: input, stated: stated,
		schemas: map[reflect.Type]*jsonschema.Schema{}, open: map[reflect.Type]bool{},
	}
	for of, raw := range stated {
		s := new(jsonschema.Schema)
		if err := json.Unmarshal(raw, s); err != nil {
			return nil, nil, nil, fmt.Errorf("the schema that is stated for %s can't be read: %w", of, err)
		}
		r.schemas[of] = s
	}
	if err := r.check(t, ""); err != nil {
		return nil, nil, nil, err
	}
	if schema, err = jsonschema.ForType(t, &jsonschema.ForOptions{TypeSchemas: r.schemas}); err != nil {
		return nil, nil, nil, err
	}
	if err := r.describe(t, schema, ""); err != nil {
		return nil, nil, nil, err
	}
	raw, err = write(schema)
	return r, schema, raw, err
}

// draft is the only value of $schema that a stated schema may have.
const draft = "https://json-schema.org/draft/2020-12/schema"

// whole reads a contract from the schema that is stated for the whole input or output. It is advertised as it is,
// with every keyword.
func whole(stated json.RawMessage) (contract.Spec, error) {
	spec, err := Described(stated)
	if err != nil {
		return spec, err
	}
	v, err := strictjson.Decode(stated, strictjson.Options{})
	if err != nil {
		return spec, err
	}
	top, _ := v.(*strictjson.Object) // Described accepts objects only
	if uri, ok := top.Find("$schema"); ok && uri != draft {
		return spec, fmt.Errorf("its $schema is %v, and only %s is read", uri, draft)
	}
	// Of the fields that may be left out one alone must be good with its default: what else a call needs is its own.
	alone := &strictjson.Object{}
	for _, m := range top.Members {
		if slices.Contains([]string{"$defs", "type", "properties"}, m.Key) {
			alone.Set(m.Key, m.Value)
		}
	}
	checker, err := contract.Spec{Schema: strictjson.Append(nil, alone), NoFill: true}.Validator()
	if err != nil {
		return spec, err
	}
	for _, f := range spec.Fields {
		if f.Default == nil {
			continue
		}
		value, err := strictjson.DecodeMaps(f.Default, strictjson.Options{}, nil)
		if err != nil {
			return spec, refuse(f.Name, "its default is not JSON: %v", err)
		}
		if found, _ := checker.Check(map[string]any{f.Name: value}); len(found) > 0 {
			return spec, refuse(f.Name, "its own schema refuses its default %s: got %s, expected %s", f.Default, found[0].Got, found[0].Expected)
		}
	}
	return spec, nil
}

// fields returns the top-level fields of a schema in their order.
func fields(s *jsonschema.Schema) (out []contract.Field) {
	for _, name := range s.PropertyOrder {
		p := s.Properties[name]
		out = append(out, contract.Field{
			Name: name, Types: types(p), Required: slices.Contains(s.Required, name), Default: p.Default, Secret: p.WriteOnly,
		})
	}
	return out
}

var allTypes = []string{"array", "boolean", "integer", "null", "number", "object", "string"}

func types(s *jsonschema.Schema) []string {
	switch {
	case s.Type != "":
		return []string{s.Type}
	case s.Types != nil:
		return slices.Sorted(slices.Values(s.Types))
	}
	return slices.Clone(allTypes)
}

// write returns a schema with exact bounds of integers, which the library holds as floating-point numbers.
func write(s *jsonschema.Schema) (json.RawMessage, error) {
	raw, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	doc, err := strictjson.Decode(raw, strictjson.Options{})
	if err != nil {
		return nil, err
	}
	exact(doc)
	return strictjson.Append(nil, doc), nil
}

// bounds are the bounds of 64-bit integers by how the library writes them.
var bounds = map[string]string{
	"-9223372036854776000": "-9223372036854775808", "9223372036854776000": "9223372036854775807",
	"18446744073709552000": "18446744073709551615",
}

func exact(v any) {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			exact(item)
		}
	case *strictjson.Object:
		integer := v.Get("type") == "integer"
		if union, ok := v.Get("type").([]any); ok {
			integer = slices.Contains(union, any("integer"))
		}
		for i, m := range v.Members {
			if n, ok := m.Value.(json.Number); ok && integer && (m.Key == "minimum" || m.Key == "maximum") {
				if b, ok := bounds[n.String()]; ok {
					v.Members[i].Value = json.Number(b)
				}
			}
			exact(m.Value)
		}
		if properties := v.Object("properties"); properties != nil {
			for i, m := range properties.Members {
				if m.Value == true { // any value; every reader of schemas takes {} for it
					properties.Members[i].Value = &strictjson.Object{}
				}
			}
		}
	}
}

// checkDefaults checks that the contract accepts its defaults.
func (r *reader) checkDefaults() error {
	for _, d := range r.defaults {
		schema, err := write(&jsonschema.Schema{
			Type: "object", Properties: map[string]*jsonschema.Schema{"default": d.schema},
		})
		if err != nil {
			return refuse(d.path, "%v", err)
		}
		v, err := contract.Spec{Schema: schema}.Validator()
		if err != nil {
			return refuse(d.path, "%v", err)
		}
		value, err := strictjson.DecodeMaps(d.schema.Default, strictjson.Options{}, nil)
		if err != nil {
			return refuse(d.path, "its default is not JSON: %v", err)
		}
		if found, _ := v.Check(map[string]any{"default": value}); len(found) > 0 {
			return refuse(d.path, "its own schema refuses its default %s: got %s, expected %s",
				d.schema.Default, found[0].Got, found[0].Expected)
		}
	}
	return nil
}

// Described reads a contract from a schema that an author has stated, or that Input or Output has derived.
func Described(schema json.RawMessage) (contract.Spec, error) {
	v, err := strictjson.Decode(schema, strictjson.Options{})
	if err != nil {
		return contract.Spec{}, err
	}
	o, ok := v.(*strictjson.Object)
	if !ok {
		return contract.Spec{}, errors.New("it is no object")
	}
	spec := contract.Spec{Schema: schema, Strictness: contract.Closed}
	if properties := o.Object("properties"); properties != nil {
		for _, m := range properties.Members {
			p, _ := m.Value.(*strictjson.Object)
			f := contract.Field{
				Name: m.Key, Types: listed(p.Get("type")),
				Required: slices.Contains(o.List("required"), any(m.Key)), Secret: p.Get("writeOnly") == true,
			}
			if d, ok := p.Find("default"); ok {
				f.Default = strictjson.Append(nil, d)
			}
			spec.Fields = append(spec.Fields, f)
		}
	}
	c, err := contract.New(spec, nil)
	if err != nil {
		return contract.Spec{}, err
	}
	return c.Spec(), nil
}

func listed(declared any) (out []string) {
	switch d := declared.(type) {
	case string:
		return []string{d}
	case []any:
		for _, item := range d {
			if name, ok := item.(string); ok {
				out = append(out, name)
			}
		}
		slices.Sort(out)
		return out
	}
	return slices.Clone(allTypes)
}
