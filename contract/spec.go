// Package contract is what one tool accepts: one JSON Schema that is advertised, checked and filled in from, so that the
// three can't differ.
//
// A Spec is plain data, derived once from a tool's CUE args (internal/derive) and carried in a build. New compiles it;
// a Contract is immutable and safe for concurrent use. Check takes the bytes of a call's arguments and answers either
// Args (the one value that is decided on, logged and executed) or every violation at once.
package contract

import (
	"bytes"
	"encoding/json"
	"slices"
)

// Strictness says what a call's key set must be.
type Strictness string

const (
	// Closed: required ⊆ keys ⊆ declared. The default.
	Closed Strictness = "closed"
	// Exact: keys equal the required set; no argument is optional.
	Exact Strictness = "exact"
	// Open: required ⊆ keys; further keys pass through.
	Open Strictness = "open"
)

// Spec is a contract as plain data.
type Spec struct {
	// Schema is a JSON Schema (draft 2020-12) of type object, in the bytes that are advertised: keys in a fixed order,
	// additionalProperties at the top by Strictness.
	Schema     json.RawMessage `json:"schema"`
	Strictness Strictness      `json:"strictness"`
	// Fields are the declared top-level arguments in the order of declaration.
	Fields []Field `json:"fields,omitempty"`
}

// Clone is a copy that shares nothing with s.
func (s Spec) Clone() Spec {
	s.Schema = bytes.Clone(s.Schema)
	s.Fields = slices.Clone(s.Fields)
	for i := range s.Fields {
		s.Fields[i].Types = slices.Clone(s.Fields[i].Types)
		s.Fields[i].Default = bytes.Clone(s.Fields[i].Default)
	}
	return s
}

// Field is one declared top-level argument.
type Field struct {
	Name string `json:"name"`
	// Types are the JSON types that it takes: string, integer, number, boolean, null, array, object; sorted.
	Types []string `json:"types"`
	// Required: a call must have it.
	Required bool `json:"required,omitempty"`
	// Default is filled in where a call leaves it out; nil without one. A constant is its own default.
	Default json.RawMessage `json:"default,omitempty"`
}

// Field returns the declared argument of that name.
func (s Spec) Field(name string) (Field, bool) {
	for _, f := range s.Fields {
		if f.Name == name {
			return f, true
		}
	}
	return Field{}, false
}

// Always reports whether the checked arguments of every call have the field: it is required or has a default.
func (f Field) Always() bool { return f.Required || f.Default != nil }
