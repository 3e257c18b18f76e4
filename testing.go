package catalogd

import (
	"context"
	"regexp"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/loader"
)

// TestPolicy runs the tests of the policy's _test.rego files whose package.name matches the regular
// expression filter (empty matches all), with the engine that decides, and measures their coverage. The error
// of a policy that doesn't load is a RefusedError.
func TestPolicy(ctx context.Context, cfg Config, filter string) (decision.TestReport, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return decision.TestReport{}, err
	}
	snap, problems := cfg.source().Snapshot(ctx)
	if snap == nil || problems.HasErrors() {
		return decision.TestReport{}, &RefusedError{Problems: problems.Sorted()}
	}
	report, problems := decision.Test(ctx, snap.FS(), decision.TestConfig{Run: filter})
	if problems.HasErrors() {
		return decision.TestReport{}, &RefusedError{Problems: problems}
	}
	return report, nil
}

// TestDecisions asks the policy the decisions in the tables of policy/**/*_test.cue whose name matches the
// regular expression filter (empty matches all). It starts no command and opens no connection. The error of a
// catalog that isn't fit to serve, or of a table that can't be read, is a RefusedError.
func TestDecisions(ctx context.Context, cfg Config, filter string) ([]DecisionResult, error) {
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
		return []DecisionResult{}, nil
	}
	builder, _, closeBuilder := cfg.builder()
	defer closeBuilder()
	g, problems := builder.Build(ctx, snap, nil)
	if g == nil {
		return nil, &RefusedError{Problems: problems.Sorted()}
	}
	defer g.Retire()
	return g.TestDecisions(ctx, tables, names), nil
}

// TestExamples runs the examples of every tool whose name matches the regular expression filter (empty
// matches all). Trusted commands are run and trusted addresses dialled; examples of tools with a side effect
// are skipped.
func (c *Catalog) TestExamples(ctx context.Context, filter string) ([]ExampleResult, error) {
	names, err := regexp.Compile(filter)
	if err != nil {
		return nil, err
	}
	g, release := c.daemon.Pin()
	defer release()
	return g.TestExamples(ctx, names), nil
}
