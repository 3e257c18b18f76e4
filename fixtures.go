package catalogd

import (
	"context"
	"regexp"

	"github.com/catalogd/catalogd/internal/serve"
	"github.com/catalogd/catalogd/loader"
)

// TestDecisions asks the policy what the tables of tests in policy/**/*_test.cue ask, those whose name matches the regular
// expression filter (empty matches all). The error of a catalog that isn't fit to serve, or of a table that can't be read,
// is a RefusedError. Nothing is spawned or dialled.
func TestDecisions(ctx context.Context, cfg Config, filter string) ([]serve.DecisionResult, error) {
	names, err := regexp.Compile(filter)
	if err != nil {
		return nil, err
	}
	if cfg, err = cfg.withDefaults(); err != nil {
		return nil, err
	}
	snap, problems := cfg.source().Snapshot(ctx)
	if snap == nil || problems.HasErrors() {
		return nil, &RefusedError{Problems: problems.Sorted()}
	}
	tables, problems := loader.Fixtures(snap)
	if problems.HasErrors() {
		return nil, &RefusedError{Problems: problems}
	}
	if len(tables) == 0 {
		return []serve.DecisionResult{}, nil
	}
	builder, _, end := cfg.parts()
	defer end()
	g, problems := builder.Build(ctx, snap, nil)
	if g == nil {
		return nil, &RefusedError{Problems: problems.Sorted()}
	}
	defer g.Retire()
	return g.TestDecisions(ctx, tables, names), nil
}
