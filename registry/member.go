package registry

import (
	"bytes"
	"encoding/json"

	"github.com/catalogd/catalogd/internal/strictjson"
)

// Member is one member of a JSON object, as it is spelled.
type Member struct {
	// Name is what Key says.
	Name string
	// Key is the name in its quotes.
	Key, Value json.RawMessage
}

// Split takes apart an object: its members in their order, duplicates included. What is returned shares the
// object. It is not ok for what is no object; the UTF-8 of strings is not checked.
func Split(object json.RawMessage) (all []Member, ok bool) {
	if start := bytes.TrimLeft(object, " \t\r\n"); len(start) == 0 || start[0] != '{' {
		return nil, false // often: a result without a _meta
	}
	err := strictjson.Members(object, func(name, key, value []byte) {
		all = append(all, Member{string(name), key, value})
	})
	if err != nil {
		return nil, false
	}
	return all, true
}
