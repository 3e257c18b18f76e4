package catalogd

import (
	"context"
	"os"
	"slices"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/diff"
	"github.com/catalogd/catalogd/internal/generation"
	"github.com/catalogd/catalogd/internal/gitfs"
	"github.com/catalogd/catalogd/loader"
)

// revisions builds generations of one catalog, from directories and git revisions, without serving any. close
// must be called.
type revisions struct {
	cfg       Config
	closers   []func()
	snapshots map[string]*loader.Snapshot // by name
}

// open builds the generation of a directory or a git revision. Its error is a RefusedError where the files
// are not fit to serve.
func (r *revisions) open(ctx context.Context, name string) (*generation.Generation, diff.Side, error) {
	side, cfg := diff.Side{Name: name}, r.cfg
	info, err := os.Stat(name)
	directory := err == nil && info.IsDir()
	switch {
	case cfg.FS != nil && name == cfg.Dir:
		directory = true
	case directory:
		cfg.Dir, cfg.FS = name, nil
	}
	if cfg, err = cfg.withDefaults(); err != nil {
		return nil, side, err
	}
	source := cfg.source()
	if !directory {
		at, err := gitfs.Open(cfg.Dir, name)
		if err != nil {
			return nil, side, err
		}
		side.Commit = at.Commit
		source = loader.Tree{FS: at.FS, Limits: cfg.Limits, Tags: cfg.Tags}
	}
	builder, _, closeBuilder := cfg.builder()
	r.closers = append(r.closers, closeBuilder)
	snap, problems := source.Snapshot(ctx)
	if snap == nil || problems.HasErrors() {
		return nil, side, &RefusedError{Problems: problems.Sorted()}
	}
	g, problems := builder.Build(ctx, snap, nil)
	if g == nil {
		return nil, side, &RefusedError{Problems: problems.Sorted()}
	}
	r.closers = append(r.closers, g.Retire)
	if r.snapshots == nil {
		r.snapshots = map[string]*loader.Snapshot{}
	}
	r.snapshots[name] = snap
	return g, side, nil
}

func (r *revisions) close() {
	for _, closer := range slices.Backward(r.closers) {
		closer()
	}
}

// sources returns the files of two states that are open, with their tables of decisions where the files
// differ.
func (r *revisions) sources(from, to string) (old, now diff.Source, err error) {
	before, after := r.snapshots[from], r.snapshots[to]
	if before.Digest() == after.Digest() {
		return diff.Source{FS: before.FS()}, diff.Source{FS: after.FS()}, nil
	}
	if old, err = sourceOf(before); err != nil {
		return old, now, &SideError{from, err}
	}
	if now, err = sourceOf(after); err != nil {
		return old, now, &SideError{to, err}
	}
	return old, now, nil
}

func sourceOf(snap *loader.Snapshot) (diff.Source, error) {
	out := diff.Source{FS: snap.FS()}
	all, problems := loader.Fixtures(snap)
	if problems.HasErrors() {
		return out, &RefusedError{Problems: problems}
	}
	for _, f := range all {
		out.Expected = append(out.Expected, diff.Expected(f))
	}
	return out, nil
}

// commit returns the commit that is checked out in c.Dir, and whether the files with that digest are the
// commit's. It is the zero Commit where git can't be read.
func (c Config) commit(ctx context.Context, digest string) decision.Commit {
	if c.Build != "" {
		return decision.Commit{} // the file may come from anywhere
	}
	head, err := gitfs.Open(c.Dir, "HEAD")
	if err != nil {
		c.Log.Debug("the catalog's commit is not known", "error", err)
		return decision.Commit{}
	}
	snap, problems := loader.Tree{FS: head.FS, Limits: c.Limits, Tags: c.Tags}.Snapshot(ctx)
	return decision.Commit{Hash: head.Commit, Clean: snap != nil && !problems.HasErrors() && snap.Digest() == digest}
}
