package catalogd

import (
	"errors"
	"fmt"

	"github.com/catalogd/catalogd/internal/buildcache"
	"github.com/catalogd/catalogd/internal/daemon"
	"github.com/catalogd/catalogd/internal/generation"
	"github.com/catalogd/catalogd/loader"
)

// origin is what New serves from.
type origin struct {
	source loader.Source
	watch  string                 // the directory that is watched; empty for a build file and an fs.FS
	memory *daemon.AdoptionRecord // what was adopted last; nil where that is not recorded
}

// origin returns the directory, which is watched, or the fs.FS or build file, which is not. It sets the builder's
// compiler and cache to match.
func (c Config) origin(b *generation.Builder) (from origin, err error) {
	root, err := c.root()
	if err != nil {
		return from, err
	}
	if from.memory, err = c.memory(root); err != nil {
		return from, err
	}
	if from.memory != nil && !c.Once {
		if b.State, err = buildcache.OpenCache(c.State, root, c.Log); err != nil {
			c.Log.Warn("no cache is kept: the next start will be slow", "state", c.State, "error", err)
		}
		if b.State != nil {
			b.Homes.Keep(b.State.Children())
		}
	}
	if c.Once && c.State != "" {
		b.Homes.Keep(buildcache.Children(c.State, root))
	}
	if c.Build != "" {
		file := &buildcache.FileSource{Path: root, Schema: schema, MaxTools: c.Limits.Tools}
		b.Compiler, from.source = file, file
		if from.memory != nil {
			from.memory.Build, from.memory.Restore = file.Bytes, file.Restore
		}
		return from, nil
	}
	if b.State != nil {
		b.Compiler = &buildcache.Compiler{Cache: b.State, Schema: schema, MaxTools: c.Limits.Tools, Next: b.Compiler}
	}
	if from.source = c.source(); c.FS == nil {
		from.watch = c.Dir
	}
	return from, nil
}

// memory opens the record of what was adopted last of the root; nil where none is kept.
func (c Config) memory(root string) (*daemon.AdoptionRecord, error) {
	if c.State == "" {
		return nil, nil
	}
	record, err := buildcache.OpenRecord(c.State, root, c.Once)
	switch {
	case errors.Is(err, buildcache.ErrNoDirectory) || err != nil && c.Bootstrap && !errors.Is(err, buildcache.ErrUnsafe):
		c.Log.Warn("no state is kept: the next start will be slow, and what is adopted is not remembered for it",
			"state", c.State, "error", err)
		return nil, nil
	case errors.Is(err, buildcache.ErrUnsafe):
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("what was adopted last can't be looked at: %w; name another directory with --state, keep "+
			"nothing with --state none, or give --bootstrap to have the files' own policy decide", err)
	}
	return &daemon.AdoptionRecord{Record: record, Bootstrap: c.Bootstrap, ReadOnly: c.Once}, nil
}
