package lock

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// maxDepth caps how deep JSON may be nested, in a lock and in what a server offers.
const maxDepth = 100

// node is one JSON value with the place where it begins. Numbers keep their digits, and objects the order of their keys;
// a key that stands twice is an error.
type node struct {
	at    int64 // the offset of its first byte
	end   int64
	value any // nil, bool, string, json.Number, []node, object
}

type object []member

type member struct {
	name  string
	at    int64
	value node
}

func (o object) get(name string) (node, bool) {
	for _, m := range o {
		if m.name == name {
			return m.value, true
		}
	}
	return node{}, false
}

// syntaxError is why data are no JSON, and where.
type syntaxError struct {
	at  int64
	msg string
}

func (e *syntaxError) Error() string { return e.msg }

// parse reads exactly one JSON value.
func parse(data []byte) (node, error) {
	p := parser{data: data, dec: json.NewDecoder(bytes.NewReader(data))}
	p.dec.UseNumber()
	n, err := p.value(0)
	if err != nil {
		return node{}, err
	}
	if at := p.next(); at < int64(len(data)) {
		return node{}, &syntaxError{at, "something stands behind the end"}
	}
	return n, nil
}

type parser struct {
	data []byte
	dec  *json.Decoder
}

// next is the offset of the next token.
func (p *parser) next() int64 {
	at := p.dec.InputOffset()
	for at < int64(len(p.data)) && strings.IndexByte(" \t\r\n,:", p.data[at]) >= 0 {
		at++
	}
	return at
}

func (p *parser) token() (json.Token, error) {
	at := p.next()
	t, err := p.dec.Token()
	if err == nil {
		return t, nil
	}
	var bad *json.SyntaxError
	switch {
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return nil, &syntaxError{int64(len(p.data)), "it ends in the middle"}
	case errors.As(err, &bad):
		return nil, &syntaxError{max(at, bad.Offset-1), bad.Error()}
	}
	return nil, &syntaxError{at, err.Error()}
}

func (p *parser) value(depth int) (n node, err error) {
	n.at = p.next()
	if depth > maxDepth {
		return n, &syntaxError{n.at, fmt.Sprintf("it is nested more than %d levels deep", maxDepth)}
	}
	t, err := p.token()
	if err != nil {
		return n, err
	}
	switch t {
	case json.Delim('['):
		list := []node{}
		for p.dec.More() {
			item, err := p.value(depth + 1)
			if err != nil {
				return n, err
			}
			list = append(list, item)
		}
		_, err = p.token()
		n.value = list
	case json.Delim('{'):
		o := object{}
		seen := map[string]bool{}
		for p.dec.More() {
			m := member{at: p.next()}
			key, err := p.token()
			if err != nil {
				return n, err
			}
			m.name, _ = key.(string)
			if seen[m.name] {
				return n, &syntaxError{m.at, fmt.Sprintf("the key %q stands twice in one object", m.name)}
			}
			seen[m.name] = true
			if m.value, err = p.value(depth + 1); err != nil {
				return n, err
			}
			o = append(o, m)
		}
		_, err = p.token()
		n.value = o
	default:
		n.value = t
	}
	n.end = p.dec.InputOffset()
	return n, err
}

// canonical appends the value with its keys in order and without space; digits stay as they are.
func canonical(b *bytes.Buffer, n node) {
	switch v := n.value.(type) {
	case object:
		b.WriteByte('{')
		sorted := slices.SortedFunc(slices.Values(v), func(x, y member) int { return cmp.Compare(x.name, y.name) })
		for i, m := range sorted {
			comma(b, i)
			put(b, m.name)
			b.WriteByte(':')
			canonical(b, m.value)
		}
		b.WriteByte('}')
	case []node:
		b.WriteByte('[')
		for i, item := range v {
			comma(b, i)
			canonical(b, item)
		}
		b.WriteByte(']')
	default:
		put(b, v)
	}
}

// same reports whether two values mean the same but for the order of keys.
func same(a, b node) bool {
	var x, y bytes.Buffer
	canonical(&x, a)
	canonical(&y, b)
	return bytes.Equal(x.Bytes(), y.Bytes())
}
