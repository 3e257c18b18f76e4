package buildcache

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/catalogd/catalogd/loader"
)

// A file of a Record has a line of text, the SHA-256 digest of the rest, the header's length in eight bytes,
// the header as JSON, then the contents of the files in the header's order, and the build file.
const (
	recordMagic  = "catalogd-adopted\n"
	recordFormat = 1
)

var errNotAsWritten = errors.New("its content is not what was written")

type recordHeader struct {
	Format int `json:"format"`
	// Root is the path of the catalog, so that the record of another is not taken for this one's.
	Root string `json:"root"`
	// Saved orders the files for the paths of one catalog: nanoseconds since 1970, and more than in what was
	// replaced. It is 0 in a record of a version that did not write it.
	Saved   int64              `json:"saved,omitempty"`
	Digest  string             `json:"digest"`
	Tags    []string           `json:"tags,omitempty"`
	Refused []string           `json:"refused,omitempty"`
	Files   []recordFileHeader `json:"files"`
	Build   int                `json:"build,omitempty"` // length of the build file
	Summary json.RawMessage    `json:"summary"`
}

type recordFileHeader struct {
	Name  string `json:"name"`
	Place string `json:"place,omitempty"` // where it differs from the name
	Bytes int    `json:"bytes"`
}

// encodeRecord returns the parts of the file of a for one path of the catalog.
func encodeRecord(a Adopted, root string, saved int64) ([][]byte, error) {
	all := a.Snapshot.All()
	h := recordHeader{
		Format: recordFormat, Root: root, Saved: saved, Digest: a.Snapshot.Digest(),
		Tags: all.Tags, Refused: all.Refused, Build: len(a.Build), Summary: a.Summary,
	}
	var contents [][]byte
	size := len(a.Build)
	for _, f := range all.Files {
		file := recordFileHeader{Name: f.Name, Bytes: len(f.Data)}
		if f.Place != f.Name {
			file.Place = f.Place
		}
		h.Files, contents, size = append(h.Files, file), append(contents, f.Data), size+len(f.Data)
	}
	header, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	if size += len(recordMagic) + sha256.Size + 8 + len(header); size > MaxBytes {
		return nil, fmt.Errorf("it would have %d bytes, more than %d", size, MaxBytes)
	}
	length := binary.BigEndian.AppendUint64(nil, uint64(len(header)))
	parts := append([][]byte{length, header}, append(contents, a.Build)...)
	sum := sha256.New()
	for _, part := range parts {
		sum.Write(part)
	}
	return append([][]byte{[]byte(recordMagic), sum.Sum(nil)}, parts...), nil
}

// decodeRecordHeader decodes the header of the record of root, and returns the contents after it.
func decodeRecordHeader(data []byte, root string) (h recordHeader, contents []byte, err error) {
	rest, ok := bytes.CutPrefix(data, []byte(recordMagic))
	if !ok || len(rest) < sha256.Size+8 {
		return h, nil, errNotAsWritten
	}
	if sha256.Sum256(rest[sha256.Size:]) != [sha256.Size]byte(rest[:sha256.Size]) {
		return h, nil, errNotAsWritten
	}
	length, rest := binary.BigEndian.Uint64(rest[sha256.Size:]), rest[sha256.Size+8:]
	if length > uint64(len(rest)) || json.Unmarshal(rest[:length], &h) != nil {
		return h, nil, errNotAsWritten
	}
	switch {
	case h.Format != recordFormat:
		return h, nil, fmt.Errorf("another version of catalogd wrote it: "+
			"it has format %d, this one reads format %d", h.Format, recordFormat)
	case h.Root != root:
		return h, nil, fmt.Errorf("it is of the catalog %s, and this is %s", h.Root, root)
	}
	return h, rest[length:], nil
}

// decodeRecord decodes the record of root.
func decodeRecord(data []byte, root string) (*Adopted, error) {
	h, rest, err := decodeRecordHeader(data, root)
	if err != nil {
		return nil, err
	}
	complete := true
	take := func(n int) []byte {
		if n < 0 || n > len(rest) {
			complete = false
			return nil
		}
		part := rest[:n:n]
		rest = rest[n:]
		return part
	}
	all := loader.Sources{Tags: h.Tags, Refused: h.Refused}
	for _, f := range h.Files {
		place := f.Place
		if place == "" {
			place = f.Name
		}
		all.Files = append(all.Files, loader.SourceFile{Name: f.Name, Place: place, Data: take(f.Bytes)})
	}
	a := &Adopted{Summary: h.Summary, saved: h.Saved}
	if h.Build > 0 {
		a.Build = take(h.Build)
		files := make(map[string][]byte, len(all.Files))
		for _, f := range all.Files {
			files[f.Name] = f.Data
		}
		a.Snapshot = loader.Compiled(files, h.Digest)
	} else {
		a.Snapshot = loader.FromSources(all)
	}
	if !complete || len(rest) > 0 || a.Snapshot.Digest() != h.Digest {
		return nil, errNotAsWritten
	}
	return a, nil
}
