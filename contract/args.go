package contract

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// Args are arguments that have passed a contract, with defaults filled in. They are immutable: the checked
// arguments are the ones that are decided on, logged by digest and executed.
type Args struct {
	raw    json.RawMessage
	object map[string]any
}

// JSON returns the arguments as one JSON object; numbers keep the digits in which they were received. The
// caller must not modify it.
func (a Args) JSON() json.RawMessage {
	if a.raw == nil {
		return json.RawMessage("{}")
	}
	return a.raw
}

// Object returns the decoded arguments: nil, bool, string, json.Number, []any and map[string]any. The caller
// must not modify them.
func (a Args) Object() map[string]any { return a.object }

// Lookup returns one top-level argument, decoded as in Object.
func (a Args) Lookup(name string) (any, bool) {
	v, ok := a.object[name]
	return v, ok
}

// Digest returns a digest of the arguments, which does not reveal their content.
func (a Args) Digest() string {
	sum := sha256.Sum256(a.JSON())
	return string(hex.AppendEncode([]byte("sha256:"), sum[:]))
}
