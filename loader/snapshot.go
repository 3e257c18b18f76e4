package loader

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"io/fs"
	"maps"
	"slices"

	"github.com/catalogd/catalogd/problem"
)

// Limits caps what a Source reads. A zero field means its default. Input over a cap is refused with a problem
// that names the cap; nothing is truncated silently.
type Limits struct {
	// FileBytes caps one file; 1 MiB by default.
	FileBytes int64
	// CatalogBytes caps all files together; 8 MiB by default.
	CatalogBytes int64
	// Files caps how many files and directories are read; 5,000 by default.
	Files int
	// Tools caps the tools of a build; 10,000 by default. It is meant for Config.MaxTools of the Compiler.
	Tools int
}

func (l Limits) orDefaults() Limits {
	if l.FileBytes == 0 {
		l.FileBytes = 1 << 20
	}
	if l.CatalogBytes == 0 {
		l.CatalogBytes = 8 << 20
	}
	if l.Files == 0 {
		l.Files = 5000
	}
	if l.Tools == 0 {
		l.Tools = 10_000
	}
	return l
}

// of returns the cap of one file. The lock holds every definition of every server in one file, so only the
// cap on all files applies to it.
func (l Limits) of(name string) int64 {
	if name == lockPath {
		return l.CatalogBytes
	}
	return l.FileBytes
}

// Source provides snapshots of a catalog.
type Source interface {
	// Snapshot reads the current catalog. The snapshot holds whatever could be read, and is nil only if
	// nothing could; the problems report the rest. A snapshot with errors may be compiled to find further
	// problems, but must not be served.
	Snapshot(ctx context.Context) (*Snapshot, problem.List)
}

// Snapshot is the files of a catalog at one moment. It is immutable and safe for concurrent use.
type Snapshot struct {
	memory *memory
	tags   []string
	digest string
	// origin maps a file that is reached through a symlink to its canonical path, so that each declaration
	// has one position.
	origin map[string]string
	// refused are files that exist but could not be read: what they would declare is unknown.
	refused map[string]bool
}

func newSnapshot(files map[string][]byte, origin map[string]string, refused map[string]bool, tags []string) *Snapshot {
	return &Snapshot{
		memory: newMemory(files), tags: slices.Clone(tags), digest: digest(files, origin, refused, tags), origin: origin, refused: refused,
	}
}

// Compiled returns the part of a snapshot that a compiled build keeps: the policy's files, under the digest
// of the build. files must not be modified afterwards.
func Compiled(files map[string][]byte, digest string) *Snapshot {
	s := newSnapshot(files, nil, nil, nil)
	s.digest = digest
	return s
}

// FS returns the catalog's files (*.cue, cue.mod/module.cue, catalog.lock.json, and under policy/ *.rego,
// *.json, *.yaml and *.yml) by their paths from its root. It is read-only.
func (s *Snapshot) FS() fs.FS { return s.memory }

// Empty reports whether there are none of these files, nor any that could not be read.
func (s *Snapshot) Empty() bool { return len(s.memory.files) == 0 && len(s.refused) == 0 }

// Digest covers the paths and contents of all files, which of them are links and which could not be read, and
// the tags. Equal digests mean equal snapshots.
func (s *Snapshot) Digest() string { return s.digest }

// Tags returns a copy of the CUE tags (key=value or a shorthand) that the catalog is compiled with.
func (s *Snapshot) Tags() []string { return slices.Clone(s.tags) }

// place returns the path used in positions for a file.
func (s *Snapshot) place(name string) string {
	if o, ok := s.origin[name]; ok {
		return o
	}
	return name
}

// digest hashes the length of each part before its content, so that two different sets of files never yield
// the same byte stream.
func digest(files map[string][]byte, origin map[string]string, refused map[string]bool, tags []string) string {
	h := sha256.New()
	part := func(b []byte) {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(b)))
		h.Write(n[:])
		h.Write(b)
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		part([]byte(name))
		part(files[name])
	}
	for _, name := range slices.Sorted(maps.Keys(origin)) {
		part([]byte("link"))
		part([]byte(name))
		part([]byte(origin[name]))
	}
	for _, name := range slices.Sorted(maps.Keys(refused)) {
		part([]byte("refused"))
		part([]byte(name))
	}
	for _, tag := range slices.Sorted(slices.Values(tags)) {
		part([]byte("tag"))
		part([]byte(tag))
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}
