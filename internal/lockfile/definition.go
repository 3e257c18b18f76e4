package lockfile

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/catalogd/catalogd/internal/strictjson"
)

// maxDefinition caps one tool's definition in bytes.
const maxDefinition = 256 << 10

// Definition is one tool as a server offers it.
type Definition struct {
	// Name is the tool's name at the server.
	Name string
	// Raw is the whole definition as received, without insignificant white space.
	Raw json.RawMessage
	// Digest identifies the content: everything counts except the order of keys.
	Digest string

	// parts are the parsed members of an opened definition. They take several times the memory of Raw and are
	// read at most once, so stored definitions are not opened.
	parts *strictjson.Object
}

// ReadDefinition reads one element of a tools/list. It rejects definitions without a reliable name, and those
// above 256 KiB or 100 levels of nesting.
func ReadDefinition(raw json.RawMessage) (Definition, error) {
	if len(raw) > 4*maxDefinition {
		return Definition{}, fmt.Errorf("it has %d bytes, more than %d", len(raw), maxDefinition)
	}
	v, err := parse(raw)
	if err != nil {
		return Definition{}, err
	}
	parts, ok := v.(*strictjson.Object)
	if !ok {
		return Definition{}, errors.New("it is not an object")
	}
	d := Definition{Name: parts.Text("name")}
	if d.Name == "" {
		return Definition{}, errors.New("it has no name")
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, raw); err != nil {
		return d, err
	}
	if compact.Len() > maxDefinition {
		return d, fmt.Errorf("it has %d bytes, more than %d", compact.Len(), maxDefinition)
	}
	d.Raw = bytes.Clone(compact.Bytes()) // without spare capacity
	sum := sha256.Sum256(strictjson.AppendSorted(nil, v))
	d.Digest = "sha256:" + hex.EncodeToString(sum[:])
	return d, nil
}

// opened returns the definition with its members parsed; for any other definition they are parsed at each
// access.
func (d Definition) opened() Definition {
	d.parts = d.open()
	return d
}

func (d Definition) open() *strictjson.Object {
	switch {
	case d.parts != nil:
		return d.parts
	case d.Raw == nil:
		return &strictjson.Object{}
	}
	v, err := parse(d.Raw)
	if err != nil {
		panic("lockfile: a definition that was read is read again: " + err.Error())
	}
	return v.(*strictjson.Object)
}

// part returns a member as received, nil where there is none.
func (d Definition) part(name string) json.RawMessage {
	m, _ := d.open().Member(name)
	if m.Value == nil {
		return nil
	}
	return slices.Clone(d.Raw[m.At:m.End])
}

func (d Definition) text(name string) string { return d.open().Text(name) }

// hint returns a boolean annotation; fallback is MCP's default.
func (d Definition) hint(name string, fallback bool) bool {
	if b, ok := d.open().Object("annotations").Get(name).(bool); ok {
		return b
	}
	return fallback
}

// ReadOnly reports whether the server declares that the tool only reads.
func (d Definition) ReadOnly() bool { return d.hint("readOnlyHint", false) }

// Offer is what a server offers at one time.
type Offer struct {
	Identity Identity
	Tools    map[string]Definition
	// Bad maps the offered tools that can't be used to the reason, by name, or by position (#3) where there
	// is no name.
	Bad map[string]string
}

// ReadOffer reads the tools of a server. An unreadable tool, and every copy of a duplicate, is bad; the
// others are not affected.
func ReadOffer(who Identity, tools []json.RawMessage) Offer {
	o := Offer{Identity: who, Tools: map[string]Definition{}, Bad: map[string]string{}}
	for i, raw := range tools {
		d, err := ReadDefinition(raw)
		name := d.Name
		if name == "" {
			name = fmt.Sprintf("#%d", i+1)
		}
		_, twice := o.Tools[name]
		switch {
		case err != nil:
			o.Bad[name] = err.Error()
			delete(o.Tools, name)
		case twice || o.Bad[name] != "":
			o.Bad[name] = "the server offers two tools of this name"
			delete(o.Tools, name)
		default:
			o.Tools[name] = d
		}
	}
	return o
}

// Digest identifies the content of the offer.
func (o Offer) Digest() string {
	b, err := json.Marshal(struct {
		Who   Identity
		Tools map[string]string
		Bad   map[string]string
	}{o.Identity, digests(o.Tools), o.Bad})
	if err != nil {
		panic("lockfile: plain data must encode: " + err.Error())
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func digests(tools map[string]Definition) map[string]string {
	out := make(map[string]string, len(tools))
	for name, d := range tools {
		out[name] = d.Digest
	}
	return out
}
