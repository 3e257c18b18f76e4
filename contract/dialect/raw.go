package dialect

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
)

// raw is a JSON value whose scalars and keys keep their original bytes.
type raw struct {
	kind   byte // '{', '[' or 0 for a scalar
	text   []byte
	values []*raw
	// keys are the original bytes, names the decoded strings.
	keys  [][]byte
	names []string
}

// maxArguments caps the nesting of arguments: the check refuses deeper ones.
const maxArguments = 64

func parseRaw(in []byte) (*raw, error) {
	d := json.NewDecoder(bytes.NewReader(in))
	d.UseNumber()
	p := rawParser{in, d}
	v, err := p.value(0)
	if err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one JSON value")
	}
	return v, nil
}

type rawParser struct {
	in []byte
	d  *json.Decoder
}

// token returns the next token with its bytes.
func (p rawParser) token() (json.Token, []byte, error) {
	from := p.d.InputOffset()
	t, err := p.d.Token()
	if err != nil {
		return nil, nil, err
	}
	return t, bytes.TrimLeft(p.in[from:p.d.InputOffset()], " \t\r\n,:"), nil
}

func (p rawParser) value(depth int) (*raw, error) {
	if depth > maxArguments {
		return nil, errors.New("nested too deep")
	}
	t, text, err := p.token()
	if err != nil {
		return nil, err
	}
	delim, ok := t.(json.Delim)
	if !ok {
		return &raw{text: text}, nil
	}
	v := &raw{kind: byte(delim)}
	for p.d.More() {
		if v.kind == '{' {
			name, key, err := p.token()
			if err != nil {
				return nil, err
			}
			v.keys, v.names = append(v.keys, key), append(v.names, name.(string))
		}
		item, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		v.values = append(v.values, item)
	}
	_, _, err = p.token()
	return v, err
}

func (v *raw) null() bool { return v.kind == 0 && string(v.text) == "null" }

func (v *raw) write(b *bytes.Buffer) {
	switch v.kind {
	case '{', '[':
		b.WriteByte(v.kind)
		for i, item := range v.values {
			if i > 0 {
				b.WriteByte(',')
			}
			if v.kind == '{' {
				b.Write(v.keys[i])
				b.WriteByte(':')
			}
			item.write(b)
		}
		b.WriteByte(v.kind + 2) // } and ] are two code points after { and [
	default:
		b.Write(v.text)
	}
}

// among reports whether a scalar equals one of the literal values.
func among(text []byte, values []any) bool {
	v, err := parse(text)
	return err != nil || slices.ContainsFunc(values, func(w any) bool { return equal(v, w) })
}
