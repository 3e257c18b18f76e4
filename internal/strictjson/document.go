package strictjson

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
)

// Object is a JSON object whose members keep their order, because people and models read it in it. A nil
// *Object has no members.
type Object struct{ Members []Member }

// Member is one member of an object. The offsets are those of the input, and 0 in an object that was not
// read: of the key, of the value, and of the end of the value.
type Member struct {
	Key            string
	Value          any
	KeyAt, At, End int
}

// New makes an object of keys and values in turn.
func New(pairs ...any) *Object {
	o := &Object{}
	for i := 0; i < len(pairs); i += 2 {
		o.Add(pairs[i].(string), pairs[i+1])
	}
	return o
}

// Member is the member of a key; the zero Member where there is none.
func (o *Object) Member(key string) (m Member, ok bool) {
	if o != nil {
		for _, m := range o.Members {
			if m.Key == key {
				return m, true
			}
		}
	}
	return Member{}, false
}

// Find is the value of a key, and whether there is one.
func (o *Object) Find(key string) (value any, ok bool) {
	m, ok := o.Member(key)
	return m.Value, ok
}

// Has reports whether there is a member of a key.
func (o *Object) Has(key string) bool {
	_, ok := o.Member(key)
	return ok
}

// Get is the value of a key; nil where there is none.
func (o *Object) Get(key string) any {
	v, _ := o.Find(key)
	return v
}

// Object is the value of a key that is an object, else nil.
func (o *Object) Object(key string) *Object {
	child, _ := o.Get(key).(*Object)
	return child
}

// List is the value of a key that is a list, else nil.
func (o *Object) List(key string) []any {
	list, _ := o.Get(key).([]any)
	return list
}

// Text is the value of a key that is a string, else empty.
func (o *Object) Text(key string) string {
	text, _ := o.Get(key).(string)
	return text
}

// Set replaces the value of a member in its place, or adds a member at the end.
func (o *Object) Set(key string, value any) {
	for i, m := range o.Members {
		if m.Key == key {
			o.Members[i] = Member{Key: key, Value: value}
			return
		}
	}
	o.Add(key, value)
}

// Add adds a member at the end, whose key must be new.
func (o *Object) Add(key string, value any) {
	o.Members = append(o.Members, Member{Key: key, Value: value})
}

// Remove takes out the members of these keys.
func (o *Object) Remove(keys ...string) {
	o.Members = slices.DeleteFunc(o.Members, func(m Member) bool { return slices.Contains(keys, m.Key) })
}

// Clone is a copy whose own members can be changed; what they hold is shared.
func (o *Object) Clone() *Object { return &Object{slices.Clone(o.Members)} }

// Append appends a document as JSON without spaces. The characters <, > and & stay as they are; a
// json.RawMessage is appended as it is.
func Append(out []byte, v any) []byte { return write(out, v, false) }

// AppendSorted is Append with the members of each object sorted by key, so that documents which differ only
// in their order become the same bytes.
func AppendSorted(out []byte, v any) []byte { return write(out, v, true) }

func write(out []byte, v any, sorted bool) []byte {
	switch v := v.(type) {
	case *Object:
		members := v.Members
		if sorted {
			members = slices.Clone(members)
			slices.SortFunc(members, func(x, y Member) int { return cmp.Compare(x.Key, y.Key) })
		}
		out = append(out, '{')
		for i, m := range members {
			if i > 0 {
				out = append(out, ',')
			}
			out = append(scalar(out, m.Key), ':')
			out = write(out, m.Value, sorted)
		}
		return append(out, '}')
	case []any:
		out = append(out, '[')
		for i, item := range v {
			if i > 0 {
				out = append(out, ',')
			}
			out = write(out, item, sorted)
		}
		return append(out, ']')
	case json.RawMessage:
		return append(out, v...)
	case json.Number:
		return append(out, v...)
	}
	return scalar(out, v)
}

func scalar(out []byte, v any) []byte {
	if s, ok := v.(string); ok && plain(s) {
		return append(append(append(out, '"'), s...), '"')
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic("strictjson: a document is made of JSON's kinds: " + err.Error())
	}
	return append(out, bytes.TrimSuffix(b.Bytes(), []byte("\n"))...)
}

// plain reports whether a string is written without escapes.
func plain(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' || s[i] == '"' || s[i] == '\\' {
			return false
		}
	}
	return true
}
