package catalogd

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/catalogd/catalogd/internal/buildfile"
	"github.com/catalogd/catalogd/internal/lock"
	"github.com/catalogd/catalogd/internal/serve"
	"github.com/catalogd/catalogd/internal/state"
	"github.com/catalogd/catalogd/loader"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// Built is a compiled build as a file, and what is in it.
type Built struct {
	Data []byte
	// Generation is the digest that Status names what is served from the file by; Source is that of the files which it was
	// made from.
	Generation, Source       string
	Tools, Servers, Branches int
}

// Build checks the catalog as Check does and, where nothing is an error, compiles it into a file for Config.Build. It is
// the same bytes for the same files and version. Built is nil where a problem is an error.
func Build(ctx context.Context, cfg Config) (*Built, problem.List, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, nil, err
	}
	builder, _, end := cfg.parts()
	defer end()
	made := &recorder{Source: cfg.source(), Compiler: builder.Compiler}
	builder.Compiler = made
	problems, _ := serve.Check(ctx, made, builder, serve.Fixtures{Shipped: starter})
	if problems.HasErrors() || made.build == nil {
		return nil, problems, nil
	}
	policy := map[string][]byte{}
	err = fs.WalkDir(made.snap.FS(), "policy", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			policy[name], err = fs.ReadFile(made.snap.FS(), name)
		}
		return err
	})
	if err != nil {
		return nil, problems, err
	}
	if data, err := fs.ReadFile(made.snap.FS(), lock.Name); err == nil {
		policy[lock.Name] = data
	}
	data, header, err := buildfile.Write(buildfile.Content{Build: made.build, Warnings: made.warnings, Policy: policy}, schema, cfg.Version)
	if err != nil {
		return nil, problems, err
	}
	return &Built{
		Data: data, Generation: header.Payload, Source: made.build.Digest,
		Tools: len(made.build.Tools), Servers: len(made.build.Servers), Branches: len(made.build.Branches),
	}, problems, nil
}

// recorder keeps what one check reads and compiles on its way.
type recorder struct {
	loader.Source
	serve.Compiler
	snap     *loader.Snapshot
	build    *registry.Build
	warnings problem.List
}

func (r *recorder) Snapshot(ctx context.Context) (*loader.Snapshot, problem.List) {
	snap, problems := r.Source.Snapshot(ctx)
	r.snap = snap
	return snap, problems
}

func (r *recorder) Compile(ctx context.Context, snap *loader.Snapshot) (*registry.Build, problem.List) {
	build, problems := r.Compiler.Compile(ctx, snap)
	r.build, r.warnings = build, problems
	return build, problems
}

// served is what New serves from: the directory, which is watched, or the build file, which is not. It puts the builder's
// compiler and cache in place.
func (c Config) served(b *serve.Builder) (source loader.Source, watch string, err error) {
	root := c.Dir
	if c.Build != "" {
		if root, err = filepath.Abs(c.Build); err != nil {
			return nil, "", err
		}
	}
	if c.State != "" {
		b.State, err = state.OpenCache(c.State, root, c.Log)
		if errors.Is(err, state.ErrUnsafe) {
			return nil, "", err
		}
		if err != nil {
			c.Log.Warn("no state is kept: the next start will be slow", "state", c.State, "error", err)
		}
	}
	if c.Build != "" {
		file := &buildfile.File{Path: root, Schema: schema, MaxTools: c.Limits.Tools}
		b.Compiler = file
		return file, "", nil
	}
	if b.State != nil {
		b.Compiler = &state.Builds{Cache: b.State, Schema: schema, MaxTools: c.Limits.Tools, Next: b.Compiler}
	}
	return c.source(), c.Dir, nil
}

func (c *Catalog) closeState() {
	if c.state != nil {
		c.state.Close()
	}
}
