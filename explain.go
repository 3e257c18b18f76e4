package catalogd

import (
	"cmp"
	"context"
	"encoding/json"

	"github.com/catalogd/catalogd/decision"
)

// Explain asks every decision that a call through a branch meets, and says which rules answered. It asks the
// catalog in cfg.Dir as it is or, where at is not empty, as it is in that directory or git revision. The
// request's arguments may be empty.
func Explain(ctx context.Context, cfg Config, at string, q ExplainRequest) (*Explanation, error) {
	r := revisions{cfg: cfg}
	defer r.close()
	g, _, err := r.open(ctx, cmp.Or(at, cfg.Dir))
	if err != nil {
		return nil, err
	}
	return g.Explain(ctx, q)
}

// Input returns the input document with which the policy of a decision point is evaluated, in the catalog in
// cfg.Dir, or in the directory or git revision at (as in Explain). `opa eval -i` with it answers as the
// daemon does. Arguments are not redacted. The error of a call about which the point is not asked is a
// NotAskedError.
func Input(ctx context.Context, cfg Config, at string, q InputRequest) (json.RawMessage, error) {
	r := revisions{cfg: cfg}
	defer r.close()
	g, _, err := r.open(ctx, cmp.Or(at, cfg.Dir))
	if err != nil {
		return nil, err
	}
	input, err := g.Input(ctx, q)
	if err != nil {
		return nil, err
	}
	return decision.AppendInput(nil, q.Point, input)
}
