package contract

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/catalogd/catalogd/internal/strictjson"
)

// Stricter reports whether s accepts fewer calls than other: exact is stricter than closed, closed than open.
func (s Strictness) Stricter(other Strictness) bool {
	order := []Strictness{Open, Closed, Exact}
	return slices.Index(order, s) > slices.Index(order, other)
}

// Tighten returns the same contract with a stricter rule for the keys of a call, both advertised and checked.
// It returns an error if to is not stricter than the current rule, if to is exact and an argument is
// optional, or if the arguments can't be closed.
func (s Spec) Tighten(to Strictness) (Spec, error) {
	if !to.Stricter(s.Strictness) {
		return Spec{}, fmt.Errorf("strictness %s is not stricter than %s", to, s.Strictness)
	}
	if s.Narrowed != nil && s.Strictness == Open {
		base, err := s.Narrowed.base()
		if err == nil {
			base, err = base.Tighten(Closed)
		}
		if err != nil {
			return Spec{}, err
		}
		if s, err = base.Narrow(Narrowing{s.Narrowed.By}); err != nil || to == Closed {
			return s, err
		}
	}
	s = s.Clone()
	switch c := s.WhenClosed; {
	case c != nil && c.Schema == nil:
		return Spec{}, errors.New("its arguments can't be closed: their ... or a name that is computed contradicts it")
	case c != nil:
		s.Schema, s.Fields, s.Losses, s.Remainder, s.WhenClosed = c.Schema, c.Fields, c.Losses, c.Remainder, nil
	case s.Strictness == Open:
		closed, err := closedSchema(s.Schema)
		if err != nil {
			return Spec{}, err
		}
		s.Schema = closed
	}
	if to == Exact {
		if !isClosed(s.Schema) {
			return Spec{}, errors.New("strictness exact with arguments whose names are not all written out")
		}
		for _, f := range s.Fields {
			if !f.Required && !f.Computed {
				return Spec{}, fmt.Errorf("strictness exact with an argument that is not required: %q", f.Name)
			}
		}
	}
	s.Strictness = to
	return s, nil
}

// isClosed reports whether a schema of an object has additionalProperties false at the top.
func isClosed(schema json.RawMessage) (closed bool) {
	err := strictjson.Members(schema, func(name, _, value []byte) {
		closed = closed || string(name) == "additionalProperties" && string(bytes.TrimSpace(value)) == "false"
	})
	return err == nil && closed
}

// closedSchema returns a schema of an object with additionalProperties false at the top, otherwise the same
// bytes. The keyword is inserted where internal/derive puts it.
func closedSchema(schema json.RawMessage) (json.RawMessage, error) {
	after := []string{"minProperties", "maxProperties", "propertyNames", "allOf", "anyOf", "oneOf", "not", "if", "then", "else", "$defs"}
	out := []byte{'{'}
	add := func(key string, value []byte) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(appendString(out, key), ':'), value...)
	}
	said := false
	err := strictjson.Members(schema, func(name, _, value []byte) {
		key := string(name)
		if key == "additionalProperties" {
			return
		}
		if !said && slices.Contains(after, key) {
			add("additionalProperties", []byte("false"))
			said = true
		}
		add(key, value)
	})
	if err != nil {
		return nil, fmt.Errorf("contract: schema: %w", err)
	}
	if !said {
		add("additionalProperties", []byte("false"))
	}
	return append(out, '}'), nil
}
