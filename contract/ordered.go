package contract

import "errors"

// ordered is a JSON object whose members keep their order, because a model reads a schema in it.
type ordered struct{ members []orderedMember }

type orderedMember struct {
	key   string
	value any
}

// get is the value of a key; nil where there is none.
func (o *ordered) get(key string) any {
	v, _ := o.find(key)
	return v
}

func (o *ordered) find(key string) (any, bool) {
	for _, m := range o.members {
		if m.key == key {
			return m.value, true
		}
	}
	return nil, false
}

// set replaces a member in its place, or adds it at the end.
func (o *ordered) set(key string, value any) {
	for i, m := range o.members {
		if m.key == key {
			o.members[i].value = value
			return
		}
	}
	o.members = append(o.members, orderedMember{key, value})
}

// readOrdered reads one JSON value as strictly as decode: nil, bool, string, json.Number, []any and *ordered.
func readOrdered(raw []byte) (any, error) {
	v, found := (&decoder{in: raw, inOrder: true}).decode()
	if len(found) > 0 {
		return nil, errors.New(found[0].String())
	}
	return v, nil
}

// appendOrdered appends v as JSON, the members in their order.
func appendOrdered(out []byte, v any) []byte {
	switch v := v.(type) {
	case *ordered:
		out = append(out, '{')
		for i, m := range v.members {
			if i > 0 {
				out = append(out, ',')
			}
			out = append(appendString(out, m.key), ':')
			out = appendOrdered(out, m.value)
		}
		return append(out, '}')
	case []any:
		out = append(out, '[')
		for i, item := range v {
			if i > 0 {
				out = append(out, ',')
			}
			out = appendOrdered(out, item)
		}
		return append(out, ']')
	}
	return appendJSON(out, v)
}

// unordered is v as decode reads it.
func unordered(v any) any {
	switch v := v.(type) {
	case *ordered:
		out := make(map[string]any, len(v.members))
		for _, m := range v.members {
			out[m.key] = unordered(m.value)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = unordered(item)
		}
		return out
	}
	return v
}
