package generation

import (
	"context"
	"io/fs"
	"slices"
	"time"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/progress"
	"github.com/catalogd/catalogd/invoke"
	"github.com/catalogd/catalogd/loader"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// Checked is the result of a check of a catalog. Losses and EffectNotes are empty if the build fails.
type Checked struct {
	// Problems are all problems, sorted.
	Problems problem.List
	// Losses are the constraints that JSON Schema can't express, by tool; calls are held to them all the same.
	Losses []Lost
	// EffectNotes are the reasons why tools only read, by tool.
	EffectNotes []EffectNote
}

// Check builds a generation as a start would, without serving it, and returns all problems, sorted. It is
// also a problem if the catalog's own policy would not let it start. The policy is checked against the catalog
// and the fixtures.
func Check(ctx context.Context, source loader.Source, builder *Builder, fixtures Fixtures) Checked {
	snap, problems := source.Snapshot(ctx)
	if snap == nil {
		return Checked{Problems: problems.Sorted()}
	}
	problems = append(problems, libraryProblems(snap.FS(), fixtures.Shipped)...)
	candidate, more := builder.Build(ctx, snap, nil)
	problems = append(problems, more...)
	if candidate == nil {
		return Checked{Problems: problems.Sorted()}
	}
	defer candidate.Retire()
	var out Checked
	for _, e := range candidate.Registry().Entries() {
		out.Losses = append(out.Losses, Losses(e.Declared())...)
		if note, ok := effectNote(*e.Declared()); ok {
			out.EffectNotes = append(out.EffectNotes, note)
		}
	}
	nothing := false
	progress.Begin(ctx, "checking the policy against the catalog", "")
	if !problems.HasErrors() { // else files may be missing
		catalog := candidate.catalog(problems, fixtures)
		catalog.Cases, more = candidate.cases(ctx, snap)
		problems = append(problems, more...)
		problems = append(problems, candidate.engine.WithBuildDeadline().CheckCatalog(ctx, catalog)...)
		more, nothing = candidate.unseen(ctx, fixtures)
		problems = append(problems, more...)
		problems = append(problems, candidate.unredactable(ctx)...)
		if nothing { // which says all that the warnings about branches say
			problems = slices.DeleteFunc(problems, func(p problem.Problem) bool { return p.Code == problem.EmptyBranch })
		}
	}
	failures := candidate.failures.problems()
	if nothing && len(failures) > 0 { // a policy that can't answer is not one that denies
		for i := range failures {
			failures[i].Severity = problem.Error
		}
		problems = slices.DeleteFunc(problems, func(p problem.Problem) bool { return p.Code == problem.UnseenTool })
	}
	problems = slices.DeleteFunc(problems, func(p problem.Problem) bool { // of a value that a decision failed by
		return p.Code == problem.PolicyPoint && slices.ContainsFunc(failures, func(f problem.Problem) bool { return f.Position == p.Position })
	})
	problems = append(problems, failures...)
	if err := candidate.propose(ctx, problems); err != nil {
		problems.Errorf(problem.LoadFailed, problem.Position{File: "policy"}, "", "no trust entries can be proposed: %v", err)
	}
	out.Problems = append(problems, Adopt(ctx, nil, candidate, decision.TestSummary{Failures: []string{}})...).Sorted()
	return out
}

// Fixtures are what the policy is checked against, beside the catalog.
type Fixtures struct {
	// Principals are the callers; none means the local operator.
	Principals []decision.Principal
	// Shipped is the root of the starter catalog, whose rules are not reported while they are unchanged. It
	// may be nil.
	Shipped fs.FS
}

// catalog returns what a policy is checked against. found are the problems of the build.
func (g *Generation) catalog(found problem.List, fixtures Fixtures) decision.Catalog {
	c := decision.Catalog{Principals: fixtures.Principals, Shipped: fixtures.Shipped, Incomplete: slices.ContainsFunc(found, func(p problem.Problem) bool {
		return p.Code == problem.NotLocked || p.Code == problem.BadLock
	})}
	c.Arguments = map[string]decision.Arguments{}
	for _, e := range g.registry.Entries() {
		c.Tools = append(c.Tools, invoke.PolicyTool(e))
		c.Arguments[e.Name()] = takes(e)
	}
	for _, b := range g.registry.Branches() {
		c.Branches = append(c.Branches, invoke.PolicyBranch(b))
	}
	for _, s := range g.registry.Servers() {
		c.Servers = append(c.Servers, s.Name)
		c.Prompts = c.Prompts || s.Forwards("prompts")
	}
	for _, r := range g.reaches {
		c.Reached = append(c.Reached, r.asked)
		if r.Trust != "" {
			c.Trusted = append(c.Trusted, r.Trust)
		}
	}
	c.Trusted = append(c.Trusted, g.trustedElsewhere()...)
	c.Lacking = len(g.lacking) > 0
	return c
}

// maxTableTime limits the evaluation of the decision tables in a check, which is not cancellable
// because CUE isn't.
const maxTableTime = 30 * time.Second

// cases returns the inputs of the decision tables. `catalogd test` reports tables that can't be read.
func (g *Generation) cases(ctx context.Context, snap *loader.Snapshot) (cases []any, problems problem.List) {
	read := make(chan []loader.Fixture, 1)
	go func() {
		tables, _ := loader.Fixtures(snap)
		read <- tables
	}()
	var tables []loader.Fixture
	select {
	case tables = <-read:
	case <-ctx.Done():
	case <-time.After(maxTableTime):
		problems.Errorf(problem.LoadTimeout, problem.Position{File: "policy"}, "", "the decision tables (policy/**/*_test.cue) were not evaluated within %v: make them smaller", maxTableTime)
	}
	for _, f := range tables {
		input, err := decodeExact(f.Input)
		fields, ok := input.(map[string]any)
		if err != nil || !ok {
			continue
		}
		local := map[string]any{"principal": asData(decision.Local())}
		var in any
		switch decision.Point(f.Point) {
		case decision.Connect:
			in, err = filled[decision.ConnectInput](g, fields, nil)
		case decision.List:
			in, err = filled[decision.ListInput](g, fields, local)
		case decision.Call:
			local["time"], local["arguments"] = fixtureTime.Format(time.RFC3339), map[string]any{}
			in, err = filled[decision.CallInput](g, fields, local)
		case decision.Release:
			in, err = filled[decision.ReleaseInput](g, fields, releasing(local))
		default:
			continue
		}
		if err == nil {
			cases = append(cases, in)
		}
	}
	return cases, problems
}

// takes returns the arguments of a tool, as the policy is checked against them.
func takes(e *registry.Entry) decision.Arguments {
	spec := e.Contract().Spec()
	arguments := decision.Arguments{Schema: spec.Schema}
	for _, f := range spec.Fields {
		if f.Computed {
			arguments.Computed = append(arguments.Computed, f.Name)
		}
	}
	return arguments
}

// Strict returns the problems with every warning turned into an error.
func Strict(problems problem.List) problem.List {
	strict := slices.Clone(problems)
	for i := range strict {
		strict[i].Severity = problem.Error
	}
	return strict
}

// LossErrors returns each loss as an error, for those who require that schemas express every constraint.
func LossErrors(lost []Lost) (problems problem.List) {
	for _, l := range lost {
		problems.Errorf(problem.LossyContract, l.Pos, l.At(), "JSON Schema can't say this (%s): %s", l.Kind, l.What)
	}
	return problems
}
