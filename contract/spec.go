// Package contract defines what one tool accepts: one JSON Schema that is advertised, checked and used to
// fill in defaults, so that the three can't differ.
//
// A Spec is plain data, derived once from a tool's CUE args (internal/derive) and carried in a build. New
// compiles it; a Contract is immutable and safe for concurrent use. Check takes the bytes of a call's
// arguments and returns either Args (the one value that is decided on, logged and executed) or all
// violations.
package contract

import (
	"bytes"
	"encoding/json"
	"slices"
)

// Strictness is the rule for the keys of a call.
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
	// Schema is a JSON Schema of type object, in the bytes that are advertised: of draft 2020-12 with its
	// keys in a fixed order, additionalProperties at the top by Strictness; of an upstream server, as it
	// came.
	Schema json.RawMessage `json:"schema"`
	// Upstream: Schema is an upstream server's. It may be of any draft that Latest reads, its patterns are
	// those of ECMA-262, and format and contentEncoding in it are annotations; in one of ours, both are
	// asserted.
	Upstream   bool       `json:"upstream,omitempty"`
	Strictness Strictness `json:"strictness"`
	// Coerce: a value of another type than the declared one is converted to that type where coerce's table
	// allows it, before anything is checked. Schema doesn't show it: it describes what a caller should send.
	Coerce bool `json:"coerce,omitempty"`
	// NoFill: defaults in Schema are annotations. Check fills in nothing before the schema is checked, and no
	// Field has a Default.
	NoFill bool `json:"noFill,omitempty"`
	// Value: Schema is an upstream server's schema of a result that need not be an object. Check accepts any
	// JSON value, and there are no Fields.
	Value bool `json:"value,omitempty"`
	// Fields are the declared top-level arguments in the order of declaration. Computed ones are not
	// properties of Schema.
	Fields []Field `json:"fields,omitempty"`
	// Losses are the constraints that Schema doesn't express, by position: Schema then accepts all that CUE
	// accepts, and more. Without losses it accepts exactly what CUE accepts.
	Losses []Loss `json:"losses,omitempty"`
	// Remainder is set if a call needs CUE in addition to Schema: there are losses or computed arguments.
	Remainder *Remainder `json:"remainder,omitempty"`
	// WhenClosed is what differs if further keys are refused (Tighten). An open Spec has one, without a
	// Schema if its arguments can't be closed; a server's has none, because its schema itself defines what
	// closing it means.
	WhenClosed *ClosedForm `json:"whenClosed,omitempty"`
	// Narrowed is set by Narrow: Schema and Fields are then those of the narrowed contract, and the whole
	// contract is behind it.
	Narrowed *Narrowed `json:"narrowed,omitempty"`
}

// ClosedForm is the contract of open arguments after they are closed. Its fields are those of Spec.
type ClosedForm struct {
	Schema    json.RawMessage `json:"schema,omitempty"`
	Fields    []Field         `json:"fields,omitempty"`
	Losses    []Loss          `json:"losses,omitempty"`
	Remainder *Remainder      `json:"remainder,omitempty"`
}

// Loss is one constraint that JSON Schema can't express. CUE enforces it at the call.
type Loss struct {
	Kind LossKind `json:"kind"`
	// Path is the CUE path below the arguments, such as opts.end; empty for the arguments as a whole.
	Path string `json:"path"`
	// File, Line and Col are its position, relative to the catalog's root.
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
	Col  int    `json:"col,omitempty"`
	// What briefly describes the loss: `end > start`.
	What string `json:"what"`
}

// LossKind is the kind of a loss, from a closed list that docs/arguments.md explains.
type LossKind string

// Remainder identifies the CUE value that checks what Schema can't express.
type Remainder struct {
	// Package is the directory of the CUE package from the catalog's root; the build carries its sources.
	Package string `json:"package"`
	// Path is the CUE path of the value in it: tools.x.args.
	Path string `json:"path"`
	// Digest is the digest of the package's sources, inherited files and tags included.
	Digest string `json:"digest"`
}

// Clone returns a copy that shares nothing with s.
func (s Spec) Clone() Spec {
	c := ClosedForm{s.Schema, s.Fields, s.Losses, s.Remainder}.clone()
	s.Schema, s.Fields, s.Losses, s.Remainder = c.Schema, c.Fields, c.Losses, c.Remainder
	if s.WhenClosed != nil {
		closed := s.WhenClosed.clone()
		s.WhenClosed = &closed
	}
	s.Narrowed = s.Narrowed.clone()
	return s
}

func (c ClosedForm) clone() ClosedForm {
	c.Schema = bytes.Clone(c.Schema)
	c.Fields = slices.Clone(c.Fields)
	for i := range c.Fields {
		c.Fields[i].Types = slices.Clone(c.Fields[i].Types)
		c.Fields[i].Default = bytes.Clone(c.Fields[i].Default)
	}
	c.Losses = slices.Clone(c.Losses)
	if c.Remainder != nil {
		r := *c.Remainder
		c.Remainder = &r
	}
	return c
}

// Field is one declared top-level argument.
type Field struct {
	Name string `json:"name"`
	// Types are the JSON types that it accepts: string, integer, number, boolean, null, array, object;
	// sorted.
	Types []string `json:"types"`
	// Required: a call must have it.
	Required bool `json:"required,omitempty"`
	// Default is filled in if a call omits the argument; nil if there is none. A constant is its own default.
	Default json.RawMessage `json:"default,omitempty"`
	// Computed: CUE fills it in from other arguments. It is neither advertised nor accepted from a call.
	Computed bool `json:"computed,omitempty"`
	// Secret: its value is never echoed, in an error or elsewhere.
	Secret bool `json:"secret,omitempty"`
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

// Always reports whether the checked arguments of every call have the field: it is required, has a default or
// is computed.
func (f Field) Always() bool { return f.Required || f.Default != nil || f.Computed }
