package serve

import (
	"context"
	"slices"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/invoke"
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
	if !problems.HasErrors() { // else files may be missing
		problems = append(problems, candidate.engine.CheckCatalog(ctx, candidate.catalog(problems))...)
		problems = append(problems, candidate.unseen(ctx)...)
	}
	return append(problems, adopt(ctx, nil, candidate)...).Sorted(), lost
}

// catalog is the generation as a policy is checked against it. found are the problems of its build.
func (g *Generation) catalog(found problem.List) decision.Catalog {
	c := decision.Catalog{Incomplete: slices.ContainsFunc(found, func(p problem.Problem) bool {
		return p.Code == problem.NotLocked || p.Code == problem.BadLock
	})}
	for _, e := range g.registry.Entries() {
		c.Tools = append(c.Tools, invoke.PolicyTool(e))
	}
	for _, b := range g.registry.Branches() {
		c.Branches = append(c.Branches, invoke.PolicyBranch(b))
	}
	for _, s := range g.registry.Servers() {
		c.Servers = append(c.Servers, s.Name)
	}
	for _, r := range g.reaches {
		if r.Trust != "" {
			c.Trusted = append(c.Trusted, r.Trust)
		}
	}
	return c
}

// unseen warns of tools that could be called and that no branch shows. Where the policy tells principals apart, a tool that
// the operator doesn't see may be meant for others.
func (g *Generation) unseen(ctx context.Context) (problems problem.List) {
	seen := map[string]bool{}
	for _, path := range g.paths {
		for _, name := range path.View.Names() {
			seen[name] = true
		}
	}
	for _, e := range g.registry.Entries() {
		if e.Bound().Hidden != "" || seen[e.Name()] {
			continue
		}
		tool, why := e.Declared(), "none admits it by its select and hide"
		for _, b := range g.registry.Branches() {
			if b.Admits(*tool) {
				if g.claims != "" {
					why = ""
					break
				}
				d := g.engine.List(ctx, decision.ListInput{Branch: invoke.PolicyBranch(b), Tool: invoke.PolicyTool(e), Principal: decision.Local()})
				why = refusal(d)
				break
			}
		}
		if why == "" {
			continue
		}
		problems.Warnf(problem.UnseenTool, tool.Pos, "tools."+tool.Name, "no branch shows the tool %q: %s", tool.Name, why)
	}
	return problems
}

// Strict makes every warning an error.
func Strict(problems problem.List) problem.List {
	strict := slices.Clone(problems)
	for i := range strict {
		strict[i].Severity = problem.Error
	}
	return strict
}

// LossErrors makes each loss an error, for whoever wants every constraint to be advertised.
func LossErrors(lost []Lost) (problems problem.List) {
	for _, l := range lost {
		problems.Errorf(problem.LossyContract, l.Pos, l.At(), "JSON Schema can't say this (%s): %s", l.Kind, l.What)
	}
	return problems
}
