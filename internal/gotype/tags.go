package gotype

import (
	"encoding/json"
	"fmt"
	"math/big"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/catalogd/catalogd/internal/strictjson"
)

// field describes one field of a struct whose schema is s.
func (r *reader) field(f reflect.StructField, s *jsonschema.Schema, name, path string) error {
	p := s.Properties[name]
	if err := r.describe(f.Type, p, path); err != nil {
		return err
	}
	t, null := f.Type, false
	for t.Kind() == reflect.Pointer {
		t, null = t.Elem(), true
	}
	if tag, ok := f.Tag.Lookup("enum"); ok {
		if err := enum(p, t, tag, null); err != nil {
			return refuse(path, "its enum: %v", err)
		}
	}
	for _, bound := range []string{"minimum", "maximum"} {
		if tag, ok := f.Tag.Lookup(bound); ok {
			if err := limit(p, t, bound, tag); err != nil {
				return refuse(path, "its %s: %v", bound, err)
			}
		}
	}
	if tag, ok := f.Tag.Lookup("secret"); ok {
		if tag != "true" {
			return refuse(path, `its secret is %q; write secret:"true"`, tag)
		}
		p.WriteOnly = true
	}
	tag, ok := f.Tag.Lookup("default")
	if !ok {
		return nil
	}
	if !r.input {
		return refuse(path, "it has a default, and a result is what the function returns; leave the default out")
	}
	value, err := literal(t, tag)
	if err != nil {
		return refuse(path, "its default: %v", err)
	}
	p.Default = value
	s.Required = slices.DeleteFunc(s.Required, func(required string) bool { return required == name })
	r.defaults = append(r.defaults, stand{path, p})
	return nil
}

// literal returns the JSON of a value in a tag: of a string as it is, of any other type as JSON.
func literal(t reflect.Type, text string) (json.RawMessage, error) {
	if t.Kind() == reflect.String && t != numberType {
		return json.Marshal(text)
	}
	v, err := strictjson.Decode([]byte(text), strictjson.Options{})
	if err != nil {
		if t == timeType || t.Kind() != reflect.Bool && t.Kind() != reflect.Struct && t.Kind() != reflect.Map && !number(t) {
			return nil, fmt.Errorf(`%q is not JSON; a text of this type is written with its quotes: "\"...\""`, text)
		}
		return nil, fmt.Errorf("%q is not JSON", text)
	}
	return strictjson.Append(nil, v), nil
}

func number(t reflect.Type) bool {
	return t.Kind() >= reflect.Int && t.Kind() <= reflect.Float64 || t == numberType
}

// enum sets the values that a field, or each element of a slice, may have: a list with commas in between.
func enum(p *jsonschema.Schema, t reflect.Type, tag string, null bool) error {
	for t.Kind() == reflect.Slice && p.Items != nil {
		t, p, null = t.Elem(), p.Items, false
		for t.Kind() == reflect.Pointer {
			t, null = t.Elem(), true
		}
	}
	if t.Kind() != reflect.String && !number(t) {
		return fmt.Errorf("%s has no list of values; an enum is for strings and numbers, and slices of them", t)
	}
	for text := range strings.SplitSeq(tag, ",") {
		value, err := literal(t, strings.TrimSpace(text))
		if err != nil {
			return err
		}
		if number(t) && !isNumber(value) {
			return fmt.Errorf("%s is not a number", value)
		}
		p.Enum = append(p.Enum, value)
	}
	if null {
		p.Enum = append(p.Enum, json.RawMessage("null"))
	}
	return nil
}

func isNumber(value json.RawMessage) bool {
	return value[0] == '-' || value[0] >= '0' && value[0] <= '9'
}

// limit sets a bound of a number, which must be within those of its type and a floating-point number.
func limit(p *jsonschema.Schema, t reflect.Type, bound, tag string) error {
	exact, ok := new(big.Rat).SetString(tag)
	f, err := strconv.ParseFloat(tag, 64)
	switch {
	case !number(t):
		return fmt.Errorf("%s is no number", t)
	case !ok || err != nil || !isNumber(json.RawMessage(tag)):
		return fmt.Errorf("%q is not a number", tag)
	}
	if held := new(big.Rat).SetFloat64(f); t.Kind() < reflect.Float32 && (held == nil || held.Cmp(exact) != 0) {
		return fmt.Errorf("%s is not exact as a floating-point number, as schemas hold bounds; use one below 2^53", tag)
	}
	of := &p.Minimum
	if bound == "maximum" {
		of = &p.Maximum
	}
	if p.Minimum != nil && f < *p.Minimum || p.Maximum != nil && f > *p.Maximum {
		return fmt.Errorf("%s is beyond what the field can hold, or what its other bound allows", tag)
	}
	*of = &f
	return nil
}
