package contract

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
)

// Stricter reports whether s lets fewer calls pass than other: exact than closed, closed than open.
func (s Strictness) Stricter(other Strictness) bool {
	order := []Strictness{Open, Closed, Exact}
	return slices.Index(order, s) > slices.Index(order, other)
}

// Tighten is the same contract with a stricter rule for the keys of a call, in what it advertises as in what it checks.
// rest is as in New: what CUE checks of the top-level keys is another matter where they are closed. An error means that to is not stricter than what holds, or that it is exact and an argument may be left out.
func (c *Contract) Tighten(to Strictness, rest Rest) (*Contract, error) {
	spec := c.Spec()
	if !to.Stricter(spec.Strictness) {
		return nil, fmt.Errorf("strictness %s is not stricter than %s", to, spec.Strictness)
	}
	if to == Exact {
		for _, f := range spec.Fields {
			if !f.Required && !f.Computed {
				return nil, fmt.Errorf("strictness exact with an argument that is not required: %q", f.Name)
			}
		}
	}
	closed, err := closedSchema(spec.Schema)
	if err != nil {
		return nil, err
	}
	spec.Schema, spec.Strictness = closed, to
	return New(spec, rest)
}

// closedSchema is a schema of an object with additionalProperties false at the top, and else the same bytes. It stands where
// internal/derive puts it: before what follows it there.
func closedSchema(schema json.RawMessage) (json.RawMessage, error) {
	d := json.NewDecoder(bytes.NewReader(schema))
	if _, err := d.Token(); err != nil {
		return nil, fmt.Errorf("contract: schema: %w", err)
	}
	after := []string{"minProperties", "maxProperties", "propertyNames", "allOf", "anyOf", "oneOf", "not", "if", "then", "else", "$defs"}
	out := []byte{'{'}
	add := func(key string, value []byte) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(appendString(out, key), ':'), value...)
	}
	said := false
	for d.More() {
		key, err := d.Token()
		var value json.RawMessage
		if err == nil {
			err = d.Decode(&value)
		}
		if err != nil {
			return nil, fmt.Errorf("contract: schema: %w", err)
		}
		name, _ := key.(string)
		if name == "additionalProperties" {
			continue
		}
		if !said && slices.Contains(after, name) {
			add("additionalProperties", []byte("false"))
			said = true
		}
		add(name, value)
	}
	if !said {
		add("additionalProperties", []byte("false"))
	}
	return append(out, '}'), nil
}
