package serve

import (
	"context"

	"github.com/catalogd/catalogd/loader"
	"github.com/catalogd/catalogd/problem"
)

// Check builds a generation as a start would, without serving it, and returns every problem, sorted. A catalog whose own
// policy would not let it start is a problem too. lost is what JSON Schema can't say of the tools, by name; nothing where
// no generation comes of the files.
func Check(ctx context.Context, source loader.Source, builder *Builder) (found problem.List, lost []Lost) {
	snap, problems := source.Snapshot(ctx)
	if snap == nil {
		return problems.Sorted(), nil
	}
	candidate, more := builder.Build(ctx, snap, nil)
	problems = append(problems, more...)
	if candidate == nil {
		return problems.Sorted(), nil
	}
	defer candidate.Retire()
	for _, e := range candidate.Registry().Entries() {
		lost = append(lost, Losses(e.Declared())...)
	}
	return append(problems, adopt(ctx, nil, candidate)...).Sorted(), lost
}

// LossErrors makes each loss an error, for whoever wants every constraint to be advertised.
func LossErrors(lost []Lost) (problems problem.List) {
	for _, l := range lost {
		problems.Errorf(problem.LossyContract, l.Pos, l.At(), "JSON Schema can't say this (%s): %s", l.Kind, l.What)
	}
	return problems
}
