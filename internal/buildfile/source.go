package buildfile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/catalogd/catalogd/loader"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// File stands in for a directory and its compiler: each Snapshot reads the build file at Path anew, and Compile hands out
// the build that was in it. Nothing but that file is read, and no CUE is evaluated. It is safe for concurrent use; the
// fields must not be changed.
type File struct {
	Path string
	// Schema is the schema.cue of this catalogd.
	Schema []byte
	// MaxTools caps the tools of a build; 0 means no cap but that of the file's size.
	MaxTools int

	mu      sync.Mutex
	digest  string
	content Content
}

// Snapshot reads the file. The snapshot is named by the file's content and holds the policy's files.
func (f *File) Snapshot(context.Context) (*loader.Snapshot, problem.List) {
	var l problem.List
	at := problem.Position{File: filepath.Base(f.Path)}
	data, mode, err := readRegular(f.Path)
	if err != nil {
		l.Errorf(problem.BadBuildFile, at, "", "the build file can't be read: %v", err)
		return nil, l
	}
	if mode.Perm()&0o002 != 0 {
		l.Warnf(problem.WorldWritable, at, "", "every user of this machine can change the file (mode %04o); chmod o-w it", mode.Perm())
	}
	c, h, err := Read(data, f.Schema)
	if err != nil {
		l.Errorf(problem.BadBuildFile, at, "", "%v", err)
		return nil, l
	}
	if n := len(c.Build.Tools); f.MaxTools > 0 && n > f.MaxTools {
		l.Errorf(problem.TooManyTools, at, "", "the build has %d tools, more than %d; take some out, or raise the limit", n, f.MaxTools)
		return nil, l
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.digest, f.content = h.Payload, c
	return loader.Compiled(c.Policy, h.Payload), l
}

// Compile returns the build of the last Snapshot, which s must be.
func (f *File) Compile(_ context.Context, s *loader.Snapshot) (*registry.Build, problem.List) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.digest != s.Digest() {
		var l problem.List
		l.Errorf(problem.BadBuildFile, problem.Position{File: filepath.Base(f.Path)}, "", "the build file was replaced while it was loaded; reload again")
		return nil, l
	}
	return f.content.Build, f.content.Warnings
}

// readRegular reads a regular file of at most MaxBytes. O_NONBLOCK keeps a pipe from holding the daemon up.
func readRegular(name string) ([]byte, fs.FileMode, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		var path *fs.PathError
		if errors.As(err, &path) {
			err = path.Err // without the name, which the problem has
		}
		return nil, 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, 0, err
	}
	if !info.Mode().IsRegular() {
		return nil, 0, errors.New("it is no regular file")
	}
	data, err := io.ReadAll(io.LimitReader(f, MaxBytes+1))
	if err == nil && len(data) > MaxBytes {
		err = fmt.Errorf("it has more than %d bytes", MaxBytes)
	}
	return data, info.Mode(), err
}
