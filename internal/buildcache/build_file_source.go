package buildcache

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/catalogd/catalogd/loader"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// FileSource takes the place of a catalog's directory and its compiler: each Snapshot reads the build file at
// Path again, and Compile returns the build that was in it. It reads nothing but that file, and evaluates no
// CUE. It is safe for concurrent use; the fields must not be changed.
type FileSource struct {
	Path string
	// Schema is the schema.cue of this catalogd.
	Schema []byte
	// MaxTools caps the tools of a build; 0 means no cap but that of the file's size.
	MaxTools int

	mu       sync.Mutex
	header   Header
	compiled Compiled
}

// Snapshot reads the file. The snapshot is named by the digest of the file's content and holds the policy's
// files.
func (s *FileSource) Snapshot(context.Context) (*loader.Snapshot, problem.List) {
	var l problem.List
	at := problem.Position{File: filepath.Base(s.Path)}
	data, mode, err := readPath(s.Path)
	if err != nil {
		l.Errorf(problem.BadBuildFile, at, "", "the build file can't be read: %v", err)
		return nil, l
	}
	if mode.Perm()&0o002 != 0 {
		l.Warnf(problem.WorldWritable, at, "",
			"every user of this machine can change the file (mode %04o); chmod o-w it", mode.Perm())
	}
	snap, err := s.Restore(data)
	if err != nil {
		l.Errorf(problem.BadBuildFile, at, "", "%v", err)
		return nil, l
	}
	if n := s.tools(); s.MaxTools > 0 && n > s.MaxTools {
		l.Errorf(problem.TooManyTools, at, "",
			"the build has %d tools, more than %d; take some out, or raise the limit", n, s.MaxTools)
		return nil, l
	}
	return snap, l
}

// Restore is Snapshot of data, which Bytes returned earlier, in place of the file.
func (s *FileSource) Restore(data []byte) (*loader.Snapshot, error) {
	c, h, err := DecodeFile(data, s.Schema)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.header, s.compiled = h, c
	return loader.Compiled(c.Policy, h.Payload), nil
}

func (s *FileSource) tools() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.compiled.Build.Tools)
}

// Bytes returns the build file of the last Snapshot or Restore.
func (s *FileSource) Bytes() ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	data, _, err := EncodeFile(s.compiled, s.Schema, s.header.Catalogd)
	return data, err
}

// Compile returns the build of snap, which must be the last Snapshot.
func (s *FileSource) Compile(_ context.Context, snap *loader.Snapshot) (*registry.Build, problem.List) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.header.Payload != snap.Digest() {
		var l problem.List
		l.Errorf(problem.BadBuildFile, problem.Position{File: filepath.Base(s.Path)}, "",
			"the build file was replaced while it was loaded; reload again")
		return nil, l
	}
	return s.compiled.Build, s.compiled.Warnings
}

// readPath is readRegular of the file at path. Its error does not repeat the path.
func readPath(path string) ([]byte, fs.FileMode, error) {
	f, err := os.OpenFile(path, readFlags, 0)
	if err != nil {
		var pathErr *fs.PathError
		if errors.As(err, &pathErr) {
			err = pathErr.Err
		}
		return nil, 0, err
	}
	return readRegular(f)
}
