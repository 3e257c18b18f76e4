package catalogd

import (
	"context"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/generation"
	"github.com/catalogd/catalogd/problem"
)

// Check builds the catalog as New would, without serving it, and returns every problem, sorted. It starts no
// command and opens no connection.
func Check(ctx context.Context, cfg Config) (problem.List, error) {
	checked, err := CheckFor(ctx, cfg, nil)
	return checked.Problems, err
}

// CheckFor is Check for the principals that may call, or the local operator where there are none: tools that
// none of them sees, and rules that are true for none of them, are problems. It also returns what the tools'
// JSON Schemas do not state of their arguments and results, to which CUE holds every call, and the reasons why
// tools only read.
func CheckFor(ctx context.Context, cfg Config, principals []decision.Principal) (Checked, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return Checked{}, err
	}
	builder, _, closeBuilder := cfg.builder()
	defer closeBuilder()
	fixtures := generation.Fixtures{Principals: principals, Shipped: starter}
	return generation.Check(ctx, cfg.source(), builder, fixtures), nil
}
