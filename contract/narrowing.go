package contract

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
)

// Narrowing is what a branch changes in the arguments of a tool, as plain data. In JSON it is its Schema.
type Narrowing struct {
	// Schema is a JSON Schema fragment about the arguments, an object with properties. It takes away from the
	// tool's contract and adds nothing; what it leaves out stays. Its keywords are a closed list: properties,
	// required and items, to any depth; const fixes an argument, so that a call can't have it and gets the
	// value; type, enum, minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf, minLength,
	// maxLength, pattern, minItems, maxItems and uniqueItems restrict one; default, title and description
	// replace what the tool has.
	Schema json.RawMessage
}

// MarshalJSON returns the fragment.
func (n Narrowing) MarshalJSON() ([]byte, error) {
	if len(n.Schema) == 0 {
		return []byte("{}"), nil
	}
	return n.Schema, nil
}

// UnmarshalJSON reads the fragment. What it says is checked where it is applied to a contract.
func (n *Narrowing) UnmarshalJSON(data []byte) error {
	if trimmed := bytes.TrimSpace(data); len(trimmed) == 0 || trimmed[0] != '{' {
		return errors.New("the arguments of a narrowing must be an object, a fragment of a JSON Schema")
	}
	n.Schema = bytes.Clone(data)
	return nil
}

// Final returns the schema that the arguments match with which a tool runs, fixed ones included; nil for nil,
// and for what can't be read.
func (n *Narrowing) Final() json.RawMessage {
	if n == nil {
		return nil
	}
	v, err := decodeOrdered(n.Schema)
	if err != nil {
		return nil
	}
	return appendOrdered(nil, required(v))
}

// Clone returns a copy that shares nothing with n; nil for nil.
func (n *Narrowing) Clone() *Narrowing {
	if n == nil {
		return nil
	}
	return &Narrowing{bytes.Clone(n.Schema)}
}

// NarrowingError lists everything that keeps a Narrowing from being applied to a contract.
type NarrowingError struct{ Faults []NarrowingFault }

// NarrowingFault is one fault of a Narrowing.
type NarrowingFault struct {
	// Pointer is the JSON pointer of the argument, with * for the items of a list (/filter/tags/*); empty for
	// the arguments as a whole.
	Pointer string
	// Message says what is wrong and what to do, in lower case.
	Message string
}

func (f NarrowingFault) String() string {
	if f.Pointer == "" {
		return "arguments: " + f.Message
	}
	return f.Pointer + ": " + f.Message
}

// Error returns all faults in one line.
func (e *NarrowingError) Error() string {
	each := make([]string, len(e.Faults))
	for i, f := range e.Faults {
		each[i] = f.String()
	}
	return strings.Join(each, "; ")
}
