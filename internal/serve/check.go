package serve

import (
	"context"

	"github.com/catalogd/catalogd/loader"
	"github.com/catalogd/catalogd/problem"
)

// Check builds a generation as a start would, without serving it, and returns every problem, sorted. A catalog whose own
// policy would not let it start is a problem too.
func Check(ctx context.Context, source loader.Source, builder *Builder) problem.List {
	snap, problems := source.Snapshot(ctx)
	if snap == nil {
		return problems.Sorted()
	}
	candidate, more := builder.Build(ctx, snap, nil)
	problems = append(problems, more...)
	if candidate == nil {
		return problems.Sorted()
	}
	defer candidate.Retire()
	return append(problems, adopt(ctx, nil, candidate)...).Sorted()
}
