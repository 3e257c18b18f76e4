package contract

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// Args are arguments that have passed a contract, defaults filled in. They are immutable: what was checked is what is
// decided on, logged by digest and executed.
type Args struct {
	raw    json.RawMessage
	object map[string]any
}

// JSON is the arguments as one JSON object with the digits of every number as they came. The caller must not change it.
func (a Args) JSON() json.RawMessage {
	if a.raw == nil {
		return json.RawMessage("{}")
	}
	return a.raw
}

// Object is the decoded arguments: nil, bool, string, json.Number, []any and map[string]any. The caller must not
// change it.
func (a Args) Object() map[string]any { return a.object }

// Lookup returns one top-level argument, decoded as in Object.
func (a Args) Lookup(name string) (any, bool) {
	v, ok := a.object[name]
	return v, ok
}

// Digest names the arguments' content without telling it.
func (a Args) Digest() string {
	sum := sha256.Sum256(a.JSON())
	return string(hex.AppendEncode([]byte("sha256:"), sum[:]))
}
