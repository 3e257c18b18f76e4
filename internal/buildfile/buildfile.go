// Package buildfile is the compiled build as bytes: what `catalogd build` writes and `catalogd serve --build` starts from,
// and what the build cache of the state directory keeps.
//
// A Content is what a snapshot compiled to, with the policy's files of the same snapshot, so that the two travel together.
// It holds no secret, because a Build holds none: references alone. Marshal encodes it (internal/plain), the same bytes
// for the same content; Unmarshal decodes it and checks what the loader would have held a catalog to and nothing behind
// the loader checks again.
//
// A file has a line of text before that, which names the format, the schema that the catalog was compiled against, and
// the digest of the rest:
//
//	catalogd-build {"format":3,"schema":"sha256:...","payload":"sha256:...","bytes":4711,"catalogd":"v1.2.3"}
//
// The digest finds a file that was cut short or changed by accident. It is no signature: whoever may write the file may
// write the catalog.
package buildfile

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/catalogd/catalogd/internal/plain"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// Format is the version of the format. It changes with what a Build means; when what it holds changes, internal/plain
// tells.
const Format = 3

// MaxBytes caps a file: a build of 10,000 tools has about 15 MiB.
const MaxBytes = 256 << 20

// Content is a build with what belongs to it.
type Content struct {
	Build *registry.Build
	// Warnings are what the compiler had to say of the catalog. There are no errors in them.
	Warnings problem.List
	// Policy holds the files below policy/, and catalog.lock.json where there is one, by their paths from the catalog's
	// root; nil in a cache, which has them from the snapshot.
	Policy map[string][]byte
}

// Header is the first line of a file.
type Header struct {
	Format int `json:"format"`
	// Schema is the digest of the schema.cue of the catalogd that wrote the file.
	Schema string `json:"schema"`
	// Payload is the digest of everything behind the header, and the name of the generation that serves from it.
	Payload string `json:"payload"`
	// Bytes is the length of everything behind the header.
	Bytes int `json:"bytes"`
	// Catalogd is the version that wrote the file, for people.
	Catalogd string `json:"catalogd"`
}

const magic = "catalogd-build "

// maxHeader caps the first line.
const maxHeader = 4096

// Errors of Read, in the order in which they are found.
var (
	// ErrNotBuild: the file is something else.
	ErrNotBuild = errors.New("it is no build that catalogd wrote; make one with `catalogd build -o FILE`")
	// ErrVersion: another version of catalogd wrote it.
	ErrVersion = errors.New("another version of catalogd wrote it")
	// ErrDamaged: the file is not what was written.
	ErrDamaged = errors.New("the file is damaged")
)

// Marshal encodes a content: equal bytes for equal contents. A build with errors is not kept.
func Marshal(c Content) ([]byte, error) {
	if c.Warnings.HasErrors() {
		return nil, errors.New("a build with errors is not kept")
	}
	return plain.Marshal(c), nil
}

// Unmarshal decodes what Marshal wrote. It never panics; an error says why data that is something else can't be served.
func Unmarshal(data []byte) (Content, error) {
	var c Content
	if err := plain.Unmarshal(data, &c); err != nil {
		return Content{}, err
	}
	if c.Build == nil {
		return Content{}, errors.New("there is no build in it")
	}
	return c, c.check()
}

// Digest names bytes.
func Digest(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Write encodes a content as a file. schema is the schema.cue of this catalogd, version its version.
func Write(c Content, schema []byte, version string) ([]byte, Header, error) {
	payload, err := Marshal(c)
	if err != nil {
		return nil, Header{}, err
	}
	h := Header{Format: Format, Schema: Digest(schema), Payload: Digest(payload), Bytes: len(payload), Catalogd: version}
	line, err := json.Marshal(h)
	if err != nil {
		return nil, Header{}, err
	}
	file := append([]byte(magic), line...)
	file = append(file, '\n')
	file = append(file, payload...)
	if len(file) > MaxBytes {
		return nil, Header{}, fmt.Errorf("the build has %d bytes, more than the %d that are read back", len(file), MaxBytes)
	}
	return file, h, nil
}

// Read decodes a file. A file of another format or schema is an ErrVersion that says which, one whose bytes are not those
// that were written an ErrDamaged. It never panics, whatever data is.
func Read(data, schema []byte) (Content, Header, error) {
	var h Header
	if len(data) > MaxBytes {
		return Content{}, h, fmt.Errorf("%w: it has more than %d bytes", ErrNotBuild, MaxBytes)
	}
	rest, ok := bytes.CutPrefix(data, []byte(magic))
	if !ok {
		return Content{}, h, ErrNotBuild
	}
	line, payload, ok := bytes.Cut(rest, []byte("\n"))
	if !ok || len(line) > maxHeader || json.Unmarshal(line, &h) != nil {
		return Content{}, h, fmt.Errorf("%w: its first line can't be read; make it again with `catalogd build`", ErrDamaged)
	}
	const again = "make it again with the `catalogd build` of the version that serves it"
	switch own := Digest(schema); {
	case h.Format != Format:
		return Content{}, h, fmt.Errorf("%w (%s): it has format %d, this one reads format %d; %s", ErrVersion, h.Catalogd, h.Format, Format, again)
	case h.Schema != own:
		return Content{}, h, fmt.Errorf("%w (%s): it was compiled against the schema %.19s, this one has %.19s; %s", ErrVersion, h.Catalogd, h.Schema, own, again)
	case len(payload) != h.Bytes:
		return Content{}, h, fmt.Errorf("%w: %d bytes of %d are there; copy it again, or make it again with `catalogd build`", ErrDamaged, len(payload), h.Bytes)
	case Digest(payload) != h.Payload:
		return Content{}, h, fmt.Errorf("%w: its content has changed since it was written; copy it again, or make it again with `catalogd build`", ErrDamaged)
	}
	c, err := Unmarshal(payload)
	switch {
	case errors.Is(err, plain.ErrLayout):
		return Content{}, h, fmt.Errorf("%w (%s): its builds hold other things than those of this one; %s", ErrVersion, h.Catalogd, again)
	case err != nil:
		return Content{}, h, fmt.Errorf("%w: %w; make it again with `catalogd build`", ErrDamaged, err)
	}
	return c, h, nil
}
