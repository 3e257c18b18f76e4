package dialect

import (
	"encoding/json"
	"slices"

	"github.com/catalogd/catalogd/internal/strictjson"
)

// maxDepth caps the nesting of a document, so that none can exhaust the stack.
const maxDepth = 200

type (
	object = strictjson.Object
	member = strictjson.Member
)

// child returns a member that is an object, or an empty one.
func child(o *object, key string) *object {
	if c := o.Object(key); c != nil {
		return c
	}
	return &object{}
}

// without returns a copy of an object without these members.
func without(o *object, keys ...string) *object {
	return &object{Members: slices.DeleteFunc(slices.Clone(o.Members), func(m member) bool { return slices.Contains(keys, m.Key) })}
}

// parse parses one JSON document to nil, bool, string, json.Number, []any and *object.
func parse(raw []byte) (any, error) {
	return strictjson.Decode(raw, strictjson.Options{MaxDepth: maxDepth})
}

// encode writes a document without spaces; the characters <, > and & are not escaped.
func encode(v any) json.RawMessage { return strictjson.Append(nil, v) }
