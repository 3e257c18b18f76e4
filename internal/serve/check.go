package serve

import (
	"context"
	"io/fs"
	"slices"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/invoke"
	"github.com/catalogd/catalogd/loader"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// Check builds a generation as a start would, without serving it, and returns every problem, sorted. A catalog whose own
// policy would not let it start is a problem too. lost is what JSON Schema can't say of the tools, by name; nothing where
// no generation comes of the files. The policy is held to the catalog, for the fixtures.
func Check(ctx context.Context, source loader.Source, builder *Builder, fixtures Fixtures) (found problem.List, lost []Lost) {
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
		problems = append(problems, candidate.engine.CheckCatalog(ctx, candidate.catalog(problems, fixtures))...)
		problems = append(problems, candidate.unseen(ctx, fixtures)...)
	}
	return append(problems, adopt(ctx, nil, candidate, decision.TestSummary{Failures: []string{}})...).Sorted(), lost
}

// Fixtures are what a check holds the policy to beside the catalog itself.
type Fixtures struct {
	// Principals are who may call; none means the local operator.
	Principals []decision.Principal
	// Shipped is the root of the starter catalog: rules that stand as they do there are not judged. It may be nil.
	Shipped fs.FS
}

// catalog is the generation as a policy is checked against it. found are the problems of its build.
func (g *Generation) catalog(found problem.List, fixtures Fixtures) decision.Catalog {
	c := decision.Catalog{Principals: fixtures.Principals, Shipped: fixtures.Shipped, Incomplete: slices.ContainsFunc(found, func(p problem.Problem) bool {
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
		c.Reached = append(c.Reached, r.asked)
		if r.Trust != "" {
			c.Trusted = append(c.Trusted, r.Trust)
		}
	}
	return c
}

// unseen warns of tools that could be called and that no branch shows to anybody. Where the policy tells principals apart and
// there are no fixtures of them, a tool that the operator doesn't see may be meant for others.
func (g *Generation) unseen(ctx context.Context, fixtures Fixtures) (problems problem.List) {
	branches, principals := g.registry.Branches(), fixtures.Principals
	seen := map[string]bool{}
	if len(principals) == 0 {
		principals = []decision.Principal{decision.Local()}
		for _, path := range g.paths { // has been asked for the operator
			for _, name := range path.View.Names() {
				seen[name] = true
			}
		}
	}
	for _, e := range g.registry.Entries() {
		tool := e.Declared()
		if e.Bound().Hidden != "" || seen[tool.Name] {
			continue
		}
		admitting := slices.DeleteFunc(slices.Clone(branches), func(b registry.Branch) bool { return !b.Admits(*tool) })
		why := "none admits it by its select and hide"
		if len(admitting) > 0 {
			if len(fixtures.Principals) == 0 && g.claims != "" {
				continue
			}
			d := g.shownTo(ctx, e, admitting, principals)
			if d.Code == decision.PolicyTimeout {
				return problems // the next questions would take as long
			}
			if d.Allow {
				continue
			}
			why = refusal(d)
		}
		problems.Warnf(problem.UnseenTool, tool.Pos, "tools."+tool.Name, "no branch shows the tool %q: %s", tool.Name, why)
	}
	return problems
}

// shownTo is the first list decision that shows the tool to one of the principals or came to no end, or else the first.
func (g *Generation) shownTo(ctx context.Context, e *registry.Entry, branches []registry.Branch, principals []decision.Principal) (first decision.Decision) {
	for i, b := range branches {
		for j, who := range principals {
			d := g.engine.List(ctx, decision.ListInput{Branch: invoke.PolicyBranch(b), Tool: invoke.PolicyTool(e), Principal: who})
			if d.Allow || d.Code == decision.PolicyTimeout {
				return d
			}
			if i == 0 && j == 0 {
				first = d
			}
		}
	}
	return first
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
