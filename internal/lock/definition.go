package lock

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// maxDefinition caps one tool's definition in bytes.
const maxDefinition = 256 << 10

// Definition is one tool as a server offers it.
type Definition struct {
	// Name is the tool's name at the server.
	Name string
	// Raw is the whole definition as it came, without the space between its parts.
	Raw json.RawMessage
	// Digest names its content: the order of keys does not count, everything else does.
	Digest string

	// parts are those of an opened definition. They take several times the room of Raw and are looked at once, if at all,
	// so that what is kept is not opened.
	parts object
}

// ReadDefinition reads one element of a tools/list. What it can't take has no name that could be relied on, or is more
// than is reasonable: 256 KiB, or 100 levels.
func ReadDefinition(raw json.RawMessage) (Definition, error) {
	if len(raw) > 4*maxDefinition {
		return Definition{}, fmt.Errorf("it has %d bytes, more than %d", len(raw), maxDefinition)
	}
	n, err := parse(raw)
	if err != nil {
		return Definition{}, err
	}
	parts, ok := n.value.(object)
	if !ok {
		return Definition{}, errors.New("it is no object")
	}
	name, _ := parts.get("name")
	var d Definition
	if d.Name, ok = name.value.(string); !ok || d.Name == "" {
		return Definition{}, errors.New("it has no name")
	}
	var compact, sorted bytes.Buffer
	if err := json.Compact(&compact, raw); err != nil {
		return d, err
	}
	if compact.Len() > maxDefinition {
		return d, fmt.Errorf("it has %d bytes, more than %d", compact.Len(), maxDefinition)
	}
	d.Raw = bytes.Clone(compact.Bytes()) // without the room to grow
	canonical(&sorted, n)
	sum := sha256.Sum256(sorted.Bytes())
	d.Digest = "sha256:" + hex.EncodeToString(sum[:])
	return d, nil
}

// opened is the definition with its parts at hand; those of any other are read each time that they are asked for.
func (d Definition) opened() Definition {
	d.parts = d.open()
	return d
}

func (d Definition) open() object {
	if d.parts != nil || d.Raw == nil {
		return d.parts
	}
	n, err := parse(d.Raw)
	if err != nil {
		panic("lock: a definition that was read is read again: " + err.Error())
	}
	parts, _ := n.value.(object)
	return parts
}

// part is a field as it came, nil where there is none.
func (d Definition) part(name string) json.RawMessage {
	n, ok := d.open().get(name)
	if !ok || n.value == nil {
		return nil
	}
	return slices.Clone(d.Raw[n.at:n.end])
}

func (d Definition) text(name string) string {
	n, _ := d.open().get(name)
	s, _ := n.value.(string)
	return s
}

// hint is a boolean annotation; fallback is what MCP says where it is missing.
func (d Definition) hint(name string, fallback bool) bool {
	n, _ := d.open().get("annotations")
	o, _ := n.value.(object)
	hint, _ := o.get(name)
	if b, ok := hint.value.(bool); ok {
		return b
	}
	return fallback
}

// ReadOnly reports whether the server says that the tool only reads.
func (d Definition) ReadOnly() bool { return d.hint("readOnlyHint", false) }

// Offer is what a server offers at one time.
type Offer struct {
	Identity Identity
	Tools    map[string]Definition
	// Bad says of what was offered and can't be used why, by name, or by place (#3) where there is none.
	Bad map[string]string
}

// ReadOffer reads the tools of a server. One that can't be read, and each that stands there twice, is bad; the others
// are not touched by it.
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

// Digest names the content of the offer.
func (o Offer) Digest() string {
	b, err := json.Marshal(struct {
		Who   Identity
		Tools map[string]string
		Bad   map[string]string
	}{o.Identity, digests(o.Tools), o.Bad})
	if err != nil {
		panic("lock: plain data encodes: " + err.Error())
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
