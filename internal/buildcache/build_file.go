package buildcache

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/catalogd/catalogd/internal/wire"
)

// A build file has a line of text before the encoded Compiled. The line names the format, the schema that the
// catalog was compiled against, and the digest of the rest:
//
//	catalogd-build {"format":3,"schema":"sha256:...","payload":"sha256:...","bytes":4711,"catalogd":"v1.2.3"}
//
// The digest finds a file that was cut short or changed by accident. It is no signature: whoever may write
// the file may write the catalog.

// Format is the version of the encoded Compiled. Raise it when the meaning of a build changes; a change of
// its fields is found by internal/wire.
const Format = 3

// MaxBytes caps every file that this package reads or writes. A build of 10,000 tools has about 15 MiB.
const MaxBytes = 256 << 20

// Header is the first line of a build file.
type Header struct {
	Format int `json:"format"`
	// Schema is the digest of the schema.cue of the catalogd that wrote the file.
	Schema string `json:"schema"`
	// Payload is the digest of everything after the header, and the name of the generation that serves from
	// it.
	Payload string `json:"payload"`
	// Bytes is the length of everything after the header.
	Bytes int `json:"bytes"`
	// Catalogd is the version that wrote the file, for people.
	Catalogd string `json:"catalogd"`
}

const (
	buildFileMagic = "catalogd-build "
	maxHeaderBytes = 4096
)

// Errors of DecodeFile, in the order in which they are found.
var (
	// ErrNotBuild: the file is something else.
	ErrNotBuild = errors.New("it is not a build that catalogd wrote; make one with `catalogd build -o FILE`")
	// ErrVersion: another version of catalogd wrote it.
	ErrVersion = errors.New("another version of catalogd wrote it")
	// ErrDamaged: the file is not what was written.
	ErrDamaged = errors.New("the file is damaged")
)

// digest is how the digest of data is written.
func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// EncodeFile encodes c as a build file. schema is the schema.cue of this catalogd, version its version.
func EncodeFile(c Compiled, schema []byte, version string) ([]byte, Header, error) {
	payload, err := Encode(c)
	if err != nil {
		return nil, Header{}, err
	}
	h := Header{
		Format: Format, Schema: digest(schema), Payload: digest(payload), Bytes: len(payload), Catalogd: version,
	}
	line, err := json.Marshal(h)
	if err != nil {
		return nil, Header{}, err
	}
	file := append([]byte(buildFileMagic), line...)
	file = append(file, '\n')
	file = append(file, payload...)
	if len(file) > MaxBytes {
		err := fmt.Errorf("the build has %d bytes, more than the %d that are read back", len(file), MaxBytes)
		return nil, Header{}, err
	}
	return file, h, nil
}

// DecodeFile decodes a build file. A file of another format or schema is an ErrVersion that says which; one
// whose bytes have changed is an ErrDamaged. It never panics, whatever data is.
func DecodeFile(data, schema []byte) (Compiled, Header, error) {
	h, payload, err := decodeHeader(data, schema)
	if err != nil {
		return Compiled{}, h, err
	}
	c, err := Decode(payload)
	switch {
	case errors.Is(err, wire.ErrLayout):
		return Compiled{}, h, fmt.Errorf("%w (%s): its builds hold other things than those of this one; %s",
			ErrVersion, h.Catalogd, buildAgain)
	case err != nil:
		return Compiled{}, h, fmt.Errorf("%w: %w; %s", ErrDamaged, err, makeAgain)
	}
	return c, h, nil
}

const (
	buildAgain = "make it again with the `catalogd build` of the version that serves it"
	makeAgain  = "make it again with `catalogd build`"
	copyAgain  = "copy it again, or " + makeAgain
)

// decodeHeader decodes the first line of a build file, and checks that the rest, which it returns, is what
// the line says.
func decodeHeader(data, schema []byte) (h Header, payload []byte, err error) {
	if len(data) > MaxBytes {
		return h, nil, fmt.Errorf("%w: it has more than %d bytes", ErrNotBuild, MaxBytes)
	}
	rest, ok := bytes.CutPrefix(data, []byte(buildFileMagic))
	if !ok {
		return h, nil, ErrNotBuild
	}
	line, payload, ok := bytes.Cut(rest, []byte("\n"))
	if !ok || len(line) > maxHeaderBytes || json.Unmarshal(line, &h) != nil {
		return h, nil, fmt.Errorf("%w: its first line can't be read; %s", ErrDamaged, makeAgain)
	}
	switch own := digest(schema); {
	case h.Format != Format:
		err = fmt.Errorf("%w (%s): it has format %d, this one reads format %d; %s",
			ErrVersion, h.Catalogd, h.Format, Format, buildAgain)
	case h.Schema != own:
		err = fmt.Errorf("%w (%s): it was compiled against the schema %.19s, this one has %.19s; %s",
			ErrVersion, h.Catalogd, h.Schema, own, buildAgain)
	case len(payload) != h.Bytes:
		err = fmt.Errorf("%w: %d bytes of %d are there; %s", ErrDamaged, len(payload), h.Bytes, copyAgain)
	case digest(payload) != h.Payload:
		err = fmt.Errorf("%w: its content has changed since it was written; %s", ErrDamaged, copyAgain)
	}
	return h, payload, err
}
