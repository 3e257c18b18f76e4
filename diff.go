package catalogd

import (
	"context"
	"fmt"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/diff"
)

// Matrix returns the access of each principal to each tool of each branch, built-in tools included. Without
// principals it is worked out for the local operator.
func Matrix(ctx context.Context, cfg Config, principals []decision.Principal) ([]AccessEntry, error) {
	r := revisions{cfg: cfg}
	defer r.close()
	g, _, err := r.open(ctx, cfg.Dir)
	if err != nil {
		return nil, err
	}
	if len(principals) == 0 {
		principals = []decision.Principal{decision.Local()}
	}
	return g.AccessMatrix(ctx, principals)
}

// Diff compares two states of the catalog in cfg.Dir, each the name of a directory or a revision of the git
// repository that holds cfg.Dir. Relative commands are resolved in cfg.Dir for both, because a revision has
// no directory of its own. The error of a state that does not load is a SideError.
func Diff(
	ctx context.Context, cfg Config, from, to string, principals []decision.Principal,
) (*Difference, error) {
	r := revisions{cfg: cfg}
	defer r.close()
	old, oldSide, err := r.open(ctx, from)
	if err != nil {
		return nil, &SideError{from, err}
	}
	now, newSide, err := r.open(ctx, to)
	if err != nil {
		return nil, &SideError{to, err}
	}
	before, after, err := r.sources(from, to)
	if err != nil {
		return nil, err
	}
	d, err := diff.Compare(ctx, old, now, before, after, principals)
	if err != nil {
		return nil, err
	}
	d.Old.Name, d.Old.Commit = oldSide.Name, oldSide.Commit
	d.New.Name, d.New.Commit = newSide.Name, newSide.Commit
	return d, nil
}

// SideError says which of two states can't be compared, and why.
type SideError struct {
	// Name is the directory or revision.
	Name string
	Err  error
}

func (e *SideError) Error() string { return fmt.Sprintf("%s: %v", e.Name, e.Err) }
func (e *SideError) Unwrap() error { return e.Err }
