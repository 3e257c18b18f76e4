package catalogd

import (
	"context"

	"github.com/catalogd/catalogd/internal/serve"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// Survey connects to every trusted server that discovers its tools and asks what it offers, for `catalogd lock` and
// `catalogd drift`. The survey is nil where a problem of the catalog is an error; a server that can't be asked is none.
func Survey(ctx context.Context, cfg Config) (*serve.Survey, problem.List, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, nil, err
	}
	builder, _, end := cfg.parts()
	defer end()
	snap, problems := cfg.source().Snapshot(ctx)
	if snap == nil || problems.HasErrors() {
		return nil, problems.Sorted(), nil
	}
	survey, more := builder.Survey(ctx, snap)
	return survey, append(problems, more...).Sorted(), nil
}

// Servers are the declared servers by name. The error of a catalog that has errors is a RefusedError.
func Servers(ctx context.Context, cfg Config) ([]registry.Server, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	builder, _, end := cfg.parts()
	defer end()
	snap, problems := cfg.source().Snapshot(ctx)
	if snap == nil || problems.HasErrors() {
		return nil, &RefusedError{Problems: problems.Sorted()}
	}
	build, more := builder.Compiler.Compile(ctx, snap)
	if build == nil || more.HasErrors() {
		return nil, &RefusedError{Problems: append(problems, more...).Sorted()}
	}
	return build.Servers, nil
}
