package daemon

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/buildcache"
	"github.com/catalogd/catalogd/internal/generation"
	"github.com/catalogd/catalogd/internal/progress"
	"github.com/catalogd/catalogd/loader"
	"github.com/catalogd/catalogd/problem"
)

// AdoptionRecord persists the generation that was adopted last, with all of its files. At a start with other
// files its policy decides on them, as at a reload. If it refuses, or if the files have errors, the recorded
// generation is served. A nil AdoptionRecord records nothing: each start is a first one.
type AdoptionRecord struct {
	Record *buildcache.Record
	// Build returns the served build file as last read, Restore replaces it by a recorded one; both are nil
	// if a directory is served.
	Build   func() ([]byte, error)
	Restore func(build []byte) (*loader.Snapshot, error)
	// Bootstrap ignores the record at the start, and replaces it.
	Bootstrap bool
	// ReadOnly neither records nor serves a recorded generation, for a program that makes one call: refused
	// files are a RefusedError.
	ReadOnly bool
}

// load reads the record; nil if there is none or it is ignored. An unreadable record is an error: a start
// that ignored it would let the files' own policy decide.
func (m *AdoptionRecord) load() (*buildcache.Adopted, error) {
	if m == nil || m.Bootstrap {
		return nil, nil
	}
	last, err := m.Record.Load()
	if err != nil {
		return nil, unusable(err)
	}
	if last == nil {
		return nil, nil
	}
	if (last.Build != nil) != (m.Build != nil) {
		return nil, unusable(fmt.Errorf("%s: it is of a directory where this is a build file, or the other way round", last.File))
	}
	return last, nil
}

// link makes the record available under every name of the catalog.
func (m *AdoptionRecord) link(last *buildcache.Adopted) error {
	if last == nil || m.ReadOnly {
		return nil
	}
	return m.Record.Spread(last)
}

func unusable(err error) error {
	return fmt.Errorf("the record of what was adopted last can't be used: %w; give --bootstrap to have the files' own policy decide", err)
}

// save records an adoption.
func (m *AdoptionRecord) save(g *generation.Generation, snap *loader.Snapshot) error {
	if m == nil || m.ReadOnly {
		return nil
	}
	summary, err := g.EncodeManifest()
	if err != nil {
		return err
	}
	adopted := buildcache.Adopted{Snapshot: snap, Summary: summary}
	if m.Build != nil {
		if adopted.Build, err = m.Build(); err != nil {
			return err
		}
	}
	return m.Record.Save(adopted)
}

// loadPast loads what the policy adopted before a start needs to decide on other files.
func (d *Daemon) loadPast(ctx context.Context, was *buildcache.Adopted) (*generation.Generation, problem.List) {
	g, err := d.cfg.Builder.LoadPast(ctx, was.Snapshot, was.Summary)
	if err != nil {
		var l problem.List
		l.Errorf(problem.AdoptionDenied, problem.Position{File: "policy"}, "catalogd.adopt",
			"the policy that was adopted last can't be asked about these files: %v; %s", err, bootstrapHint)
		return nil, l
	}
	return g, nil
}

// refuseFiles refuses files with errors. At a start, what was adopted last is served in their place, unless it
// is these files, or is not known: an older policy could allow what the last one denies.
func (d *Daemon) refuseFiles(ctx context.Context, a *build, why *FailedStatus) Outcome {
	was := d.before
	if was == nil || d.cfg.Adoption.ReadOnly || was.Snapshot.Digest() == why.Digest || ctx.Err() != nil {
		return d.refuse(ctx, why)
	}
	commit, err := generation.RecordedCommit(was.Summary)
	if was.Superseded {
		err = errors.New("something else was adopted after what is recorded, and could not be recorded")
	}
	if err == nil {
		err = d.resume(ctx, a, was, commit)
	}
	if err != nil {
		why.Problems.Errorf(problem.LoadFailed, problem.Position{File: "."}, "",
			"what was adopted last can't be served in place of these files: %v; correct the files", err)
	}
	return d.refuse(ctx, why)
}

// resume serves what was adopted before the start, with its commit, in place of files that its policy refuses
// or that have errors. All of the generation is of the recorded files, its policy too; what it reaches is
// decided again.
func (d *Daemon) resume(ctx context.Context, a *build, was *buildcache.Adopted, commit decision.Commit) error {
	progress.Begin(ctx, "building what was adopted last", "")
	snap := was.Snapshot
	if restore := d.cfg.Adoption.Restore; restore != nil {
		var err error
		if snap, err = restore(was.Build); err != nil {
			return err
		}
	}
	g, problems := d.cfg.Builder.Build(ctx, snap, nil)
	if g == nil {
		return generation.FirstError(problems)
	}
	if !d.builds.commit(a) {
		g.Retire()
		return errors.New("the build was broken off")
	}
	g.SetCommit(commit)
	g.Since, g.Adopted = time.Now(), "resumed"
	d.swap(nil, g)
	return nil
}

const bootstrapHint = "change the files, or give --bootstrap to have their own policy decide"
