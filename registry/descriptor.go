package registry

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/internal/gotype"
	"github.com/catalogd/catalogd/internal/strictjson"
)

// Descriptor describes a tool or a Go function as plain data that can be stored and shown: what a caller sees of it,
// and the kind of its binding. It has no command, address, header or variable, and nothing from which the tool
// could be run; defaults, examples and enumerated values of secrets are left out of the schemas.
type Descriptor struct {
	Name        string          `json:"name"`
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description"`
	Effect      Effect          `json:"effect"`
	Binding     string          `json:"binding"`
	Args        json.RawMessage `json:"args"`
	Result      json.RawMessage `json:"result,omitempty"`
	Tags        []string        `json:"tags,omitempty"`
	Deprecated  string          `json:"deprecated,omitempty"`
}

// Descriptor describes the tool.
func (t Tool) Descriptor() Descriptor {
	d := Descriptor{
		Name: t.Name, Title: t.Title, Description: t.Description, Effect: t.Effect, Binding: t.Binding.Kind(),
		Args: redacted(t.Args), Tags: t.clone().Tags, Deprecated: t.Deprecated,
	}
	if t.Result != nil {
		d.Result = redacted(*t.Result)
	}
	return d
}

// Descriptor describes the function.
func (f *Function) Descriptor() Descriptor {
	d := Descriptor{
		Name: f.name, Title: f.title, Description: f.description, Effect: f.effect, Binding: "func", Args: redacted(f.input),
	}
	if f.output != nil {
		d.Result = redacted(*f.output)
	}
	return d
}

// redacted returns the schema of a contract without values of secrets.
func redacted(s contract.Spec) json.RawMessage {
	v, err := strictjson.Decode(s.Schema, strictjson.Options{})
	if err != nil {
		return nil // it was never a contract
	}
	top, _ := v.(*strictjson.Object)
	for _, f := range s.Fields {
		if p := top.Object("properties").Object(f.Name); f.Secret && p != nil {
			p.Set("writeOnly", true)
		}
	}
	redact(v, false)
	return strictjson.Append(nil, v)
}

// redact removes the values of everything at and below a schema that is writeOnly.
func redact(schema any, secret bool) {
	switch s := schema.(type) {
	case []any:
		for _, item := range s {
			redact(item, secret)
		}
	case *strictjson.Object:
		if secret = secret || s.Get("writeOnly") == true; secret {
			s.Remove("default", "examples", "example", "enum", "const")
		}
		for _, m := range s.Members {
			redact(m.Value, secret)
		}
	}
}

// errNoExecutable says why a description does not become something that can be called.
var errNoExecutable = errors.New("a description has nothing to run, so no function or tool can be restored from it; " +
	"make the function with registry.Func in the program that has it, name it in catalogd.Config.Functions, and declare " +
	`its tool in CUE (binding: func: "NAME"). To look at what was described, decode a registry.Descriptor`)

// MarshalJSON writes the function's Descriptor.
func (f *Function) MarshalJSON() ([]byte, error) { return json.Marshal(f.Descriptor()) }

// UnmarshalJSON is an error: a description has nothing to run.
func (f *Function) UnmarshalJSON([]byte) error { return errNoExecutable }

// MarshalJSON writes the tool's Descriptor.
func (e *Entry) MarshalJSON() ([]byte, error) { return json.Marshal(e.tool.Descriptor()) }

// UnmarshalJSON is an error: a description has nothing to run.
func (e *Entry) UnmarshalJSON([]byte) error { return errNoExecutable }

// ErrStandIn is what errors.Is finds in the error of every call of a stand-in.
var ErrStandIn = errors.New("a stand-in for the function of another program is not run")

// IsStandIn reports whether the function only stands in for that of another program.
func (f *Function) IsStandIn() bool { return f.standIn }

// StandIn returns a stand-in for the Go function that d describes, for a program that looks at a catalog and does
// not have the function, such as `catalogd check --functions FILE`. Declarations are checked against it, and every
// call of it is an error.
func StandIn(d Descriptor) (*Function, error) {
	f := &Function{name: d.Name, title: d.Title, description: d.Description, effect: d.Effect, standIn: true}
	if !ValidName(d.Name) {
		return nil, fmt.Errorf("the name %q of a function is not valid; use a letter or _, then up to 62 letters, digits, _ or -", Shown(d.Name))
	}
	if d.Binding != "func" || d.Effect != Read && d.Effect != Write {
		return nil, fmt.Errorf("function %q: it is no description of a Go function (binding %q, effect %q)", d.Name, d.Binding, string(d.Effect))
	}
	var err error
	if f.input, err = gotype.Described(d.Args); err != nil {
		return nil, fmt.Errorf("function %q: its args: %w", d.Name, err)
	}
	if d.Result != nil {
		spec, err := gotype.Described(d.Result)
		if err != nil {
			return nil, fmt.Errorf("function %q: its result: %w", d.Name, err)
		}
		f.output, f.produces = &spec, &spec
	}
	return f, nil
}
