package dialect

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// maxDepth caps the nesting of a document, so that none can exhaust the stack.
const maxDepth = 200

// object is a JSON object whose members keep their order, because a model reads them in that order.
type object struct{ members []member }

type member struct {
	key   string
	value any
}

// obj makes an object of alternating keys and values.
func obj(pairs ...any) *object {
	o := &object{}
	for i := 0; i < len(pairs); i += 2 {
		o.set(pairs[i].(string), pairs[i+1])
	}
	return o
}

func (o *object) get(key string) (any, bool) {
	for _, m := range o.members {
		if m.key == key {
			return m.value, true
		}
	}
	return nil, false
}

func (o *object) has(key string) bool {
	_, ok := o.get(key)
	return ok
}

// set replaces a member in its position, or appends it.
func (o *object) set(key string, value any) {
	for i, m := range o.members {
		if m.key == key {
			o.members[i].value = value
			return
		}
	}
	o.members = append(o.members, member{key, value})
}

func (o *object) remove(keys ...string) {
	o.members = slices.DeleteFunc(o.members, func(m member) bool { return slices.Contains(keys, m.key) })
}

// object returns a member that is an object, or an empty one.
func (o *object) object(key string) *object {
	v, _ := o.get(key)
	if child, ok := v.(*object); ok {
		return child
	}
	return &object{}
}

func (o *object) list(key string) []any {
	v, _ := o.get(key)
	l, _ := v.([]any)
	return l
}

func (o *object) text(key string) string {
	v, _ := o.get(key)
	s, _ := v.(string)
	return s
}

// clone returns a copy whose own members can be changed; their values are shared.
func (o *object) clone() *object { return &object{slices.Clone(o.members)} }

// parse parses one JSON document to nil, bool, string, json.Number, []any and *object.
func parse(raw []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	v, err := parseValue(d, 0)
	if err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one JSON value")
	}
	return v, nil
}

func parseValue(d *json.Decoder, depth int) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("nested more than %d levels deep", maxDepth)
	}
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t {
	case json.Delim('{'):
		o := &object{}
		for d.More() {
			key, err := d.Token()
			if err != nil {
				return nil, err
			}
			v, err := parseValue(d, depth+1)
			if err != nil {
				return nil, err
			}
			o.members = append(o.members, member{key.(string), v})
		}
		_, err := d.Token()
		return o, err
	case json.Delim('['):
		list := []any{}
		for d.More() {
			v, err := parseValue(d, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err := d.Token()
		return list, err
	}
	return t, nil
}

// encode writes a document without spaces; the characters <, > and & are not escaped.
func encode(v any) json.RawMessage {
	var b bytes.Buffer
	encodeTo(&b, v)
	return b.Bytes()
}

func encodeTo(b *bytes.Buffer, v any) {
	switch v := v.(type) {
	case *object:
		b.WriteByte('{')
		for i, m := range v.members {
			if i > 0 {
				b.WriteByte(',')
			}
			encodeTo(b, m.key)
			b.WriteByte(':')
			encodeTo(b, m.value)
		}
		b.WriteByte('}')
	case []any:
		b.WriteByte('[')
		for i, item := range v {
			if i > 0 {
				b.WriteByte(',')
			}
			encodeTo(b, item)
		}
		b.WriteByte(']')
	case json.RawMessage:
		b.Write(v)
	case json.Number:
		b.WriteString(string(v))
	default:
		e := json.NewEncoder(b)
		e.SetEscapeHTML(false)
		if err := e.Encode(v); err != nil {
			panic("dialect: a scalar always encodes: " + err.Error())
		}
		b.Truncate(b.Len() - 1) // the encoder's newline
	}
}
