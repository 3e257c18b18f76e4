package catalogd

import (
	"context"
	"io/fs"

	"github.com/catalogd/catalogd/internal/buildcache"
	"github.com/catalogd/catalogd/internal/generation"
	"github.com/catalogd/catalogd/internal/lockfile"
	"github.com/catalogd/catalogd/loader"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// Built is a compiled catalog as a file for Config.Build, and what it holds.
type Built struct {
	Data []byte
	// Generation is the digest that Status has for what is served from the file, Source that of the files
	// from which it was compiled.
	Generation, Source       string
	Tools, Servers, Branches int
}

// Build checks the catalog as Check does and compiles it into a file. The same files and version make the
// same bytes. Built is nil where a problem is an error.
func Build(ctx context.Context, cfg Config) (*Built, problem.List, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, nil, err
	}
	builder, _, closeBuilder := cfg.builder()
	defer closeBuilder()
	checked := &recorder{Source: cfg.source(), Compiler: builder.Compiler}
	builder.Compiler = checked
	problems := generation.Check(ctx, checked, builder, generation.Fixtures{Shipped: starter}).Problems
	if problems.HasErrors() || checked.build == nil {
		return nil, problems, nil
	}
	files := checked.snapshot.FS()
	policy := map[string][]byte{}
	err = fs.WalkDir(files, "policy", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			policy[name], err = fs.ReadFile(files, name)
		}
		return err
	})
	if err != nil {
		return nil, problems, err
	}
	if data, err := fs.ReadFile(files, lockfile.Name); err == nil {
		policy[lockfile.Name] = data
	}
	locked, _ := lockfile.Load(files) // its problems are among those of the check
	tools := len(checked.build.Tools) + len(lockfile.Join(checked.build, locked).Tools)
	content := buildcache.Compiled{Build: checked.build, Warnings: checked.warnings, Policy: policy}
	data, header, err := buildcache.EncodeFile(content, schema, cfg.Version)
	if err != nil {
		return nil, problems, err
	}
	return &Built{
		Data: data, Generation: header.Payload, Source: checked.build.Digest,
		Tools: tools, Servers: len(checked.build.Servers), Branches: len(checked.build.Branches),
	}, problems, nil
}

// recorder keeps the snapshot and the build of one check.
type recorder struct {
	loader.Source
	generation.Compiler
	snapshot *loader.Snapshot
	build    *registry.Build
	warnings problem.List
}

func (r *recorder) Snapshot(ctx context.Context) (*loader.Snapshot, problem.List) {
	snap, problems := r.Source.Snapshot(ctx)
	r.snapshot = snap
	return snap, problems
}

func (r *recorder) Compile(ctx context.Context, snap *loader.Snapshot) (*registry.Build, problem.List) {
	build, problems := r.Compiler.Compile(ctx, snap)
	r.build, r.warnings = build, problems
	return build, problems
}
