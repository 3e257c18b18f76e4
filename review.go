package catalogd

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/review"
	"github.com/catalogd/catalogd/internal/revision"
	"github.com/catalogd/catalogd/internal/serve"
	"github.com/catalogd/catalogd/invoke"
	"github.com/catalogd/catalogd/loader"
)

// Matrix says for every branch, principal and tool what the principal meets there. Without principals it is worked out for
// the local one.
func Matrix(ctx context.Context, cfg Config, principals []decision.Principal) ([]serve.Standing, error) {
	s := sides{cfg: cfg}
	defer s.close()
	g, _, err := s.open(ctx, cfg.Dir)
	if err != nil {
		return nil, err
	}
	return g.Standings(ctx, orLocal(principals))
}

// Explain asks every decision that a call of a branch meets, and says which rules answered, in the catalog in cfg.Dir: as it
// is, or, where at is not empty, as that directory or revision of git has it. The request's arguments may be empty.
func Explain(ctx context.Context, cfg Config, at, branch string, req invoke.Request) (*serve.Explanation, error) {
	s := sides{cfg: cfg}
	defer s.close()
	g, _, err := s.open(ctx, cmp.Or(at, cfg.Dir))
	if err != nil {
		return nil, err
	}
	return g.Explain(ctx, branch, req)
}

// Diff compares two states of the catalog in cfg.Dir, each the name of a directory or a revision of the git repository
// that cfg.Dir is in. Relative commands are resolved in cfg.Dir for both, because a revision has no directory of its own.
// The error of a state that does not load is a SideError.
func Diff(ctx context.Context, cfg Config, from, to string, principals []decision.Principal) (*review.Difference, error) {
	s := sides{cfg: cfg}
	defer s.close()
	old, about, err := s.open(ctx, from)
	if err != nil {
		return nil, &SideError{from, err}
	}
	now, aboutNow, err := s.open(ctx, to)
	if err != nil {
		return nil, &SideError{to, err}
	}
	d, err := review.Compare(ctx, old, now, orLocal(principals))
	if err != nil {
		return nil, err
	}
	d.Old.Name, d.Old.Commit = about.Name, about.Commit
	d.New.Name, d.New.Commit = aboutNow.Name, aboutNow.Commit
	return d, nil
}

// commit is what is checked out where the catalog lies, and whether the files of that digest are the commit's. What can't be
// read in git comes from no commit.
func (c Config) commit(ctx context.Context, digest string) decision.Commit {
	if c.Build != "" {
		return decision.Commit{} // the file may come from anywhere
	}
	head, err := revision.Open(c.Dir, "HEAD")
	if err != nil {
		c.Log.Debug("the catalog's commit is not known", "error", err)
		return decision.Commit{}
	}
	snap, problems := loader.Tree{FS: head.FS, Limits: c.Limits, Tags: c.Tags}.Snapshot(ctx)
	return decision.Commit{Hash: head.Commit, Clean: snap != nil && !problems.HasErrors() && snap.Digest() == digest}
}

// SideError says which of two states can't be compared, and why.
type SideError struct {
	// Name is the directory or revision.
	Name string
	Err  error
}

func (e *SideError) Error() string { return fmt.Sprintf("%s: %v", e.Name, e.Err) }
func (e *SideError) Unwrap() error { return e.Err }

func orLocal(principals []decision.Principal) []decision.Principal {
	if len(principals) == 0 {
		return []decision.Principal{decision.Local()}
	}
	return principals
}

// sides opens states of one catalog without serving any.
type sides struct {
	cfg  Config
	ends []func()
}

func (s *sides) close() {
	for _, end := range slices.Backward(s.ends) {
		end()
	}
}

// open builds the generation of a directory or a revision; its error is a RefusedError where the files are not fit to
// serve.
func (s *sides) open(ctx context.Context, name string) (*serve.Generation, review.Side, error) {
	about, cfg := review.Side{Name: name}, s.cfg
	info, err := os.Stat(name)
	directory := err == nil && info.IsDir()
	if directory {
		cfg.Dir = name
	}
	if cfg, err = cfg.withDefaults(); err != nil {
		return nil, about, err
	}
	source := cfg.source()
	if !directory {
		at, err := revision.Open(cfg.Dir, name)
		if err != nil {
			return nil, about, err
		}
		about.Commit = at.Commit
		source = loader.Tree{FS: at.FS, Limits: cfg.Limits, Tags: cfg.Tags}
	}
	builder, _, end := cfg.parts()
	s.ends = append(s.ends, end)
	snap, problems := source.Snapshot(ctx)
	if snap == nil || problems.HasErrors() {
		return nil, about, &RefusedError{Problems: problems.Sorted()}
	}
	g, problems := builder.Build(ctx, snap, nil)
	if g == nil {
		return nil, about, &RefusedError{Problems: problems.Sorted()}
	}
	s.ends = append(s.ends, g.Retire)
	return g, about, nil
}
