package serve

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/problem"
)

// adopt asks whether the candidate may replace the serving generation, and answers with a problem where it may not. The
// policy that is serving decides, so that no change removes its own gate; the first generation after a start is asked of
// its own. A candidate must also be fit to start by its own policy, as `catalogd check` tells: what is adopted while the
// daemon runs would otherwise refuse its next start, and every later edit with it.
func adopt(ctx context.Context, serving, candidate *Generation) problem.List {
	if serving != nil {
		input := decision.AdoptInput{Serving: &serving.summary, Candidate: candidate.summary, Changes: changes(serving, candidate)}
		if l := adoptionProblem(ctx, serving.engine, input, "the policy that is serving refuses this generation"); l != nil {
			return l
		}
	}
	input := decision.AdoptInput{
		Bootstrap: true, Candidate: candidate.summary, Changes: changes(&Generation{summary: emptySummary()}, candidate),
	}
	return adoptionProblem(ctx, candidate.engine, input, "this generation's own policy would not let it start")
}

// adoptionProblem asks one policy. A refusal is a problem of the policy folder, which is where it is mended.
func adoptionProblem(ctx context.Context, engine *decision.Engine, input decision.AdoptInput, who string) (l problem.List) {
	d := patiently(ctx, func() decision.Decision { return engine.Adopt(ctx, input) })
	if !d.Allow {
		l.Errorf(problem.AdoptionDenied, problem.Position{File: "policy"}, "catalogd.adopt", "%s (%s): %s", who, d.Code, strings.Join(d.Reasons, "; "))
	}
	return l
}

func emptySummary() decision.GenerationSummary {
	return decision.GenerationSummary{
		Tools: []string{}, Servers: []string{}, Branches: []string{}, Visible: map[string][]string{}, Trusted: map[string]string{},
	}
}

// summarize is the generation as the adopt decision sees it.
func (g *Generation) summarize() decision.GenerationSummary {
	s := emptySummary()
	s.Generation, s.Policy = g.ID, g.engine.Digest()
	for _, e := range g.registry.Entries() {
		s.Tools = append(s.Tools, e.Name())
	}
	for _, server := range g.registry.Servers() {
		s.Servers = append(s.Servers, server.Name)
	}
	s.Branches = append(s.Branches, g.Branches()...)
	for name, p := range g.paths {
		s.Visible[name] = p.View.Names()
	}
	for name, t := range g.servers {
		s.Trusted[name] = t.Name()
	}
	return s
}

// changes is what differs between two generations, by name and by the declarations' digests.
func changes(from, to *Generation) decision.Changes {
	c := decision.Changes{PolicyChanged: from.summary.Policy != to.summary.Policy}
	c.ToolsAdded, c.ToolsRemoved, c.ToolsChanged = compare(from.toolDigests(), to.toolDigests())
	c.ServersAdded, c.ServersRemoved, c.ServersChanged = compare(from.serverDigests(), to.serverDigests())
	c.BranchesAdded, c.BranchesRemoved, _ = compare(index(from.summary.Branches), index(to.summary.Branches))
	return c
}

func (g *Generation) toolDigests() map[string]string {
	digests := map[string]string{}
	if g.registry != nil {
		digests = make(map[string]string, g.registry.Len())
		for _, e := range g.registry.Entries() {
			digests[e.Name()] = e.Declared().Digest
		}
	}
	return digests
}

func (g *Generation) serverDigests() map[string]string {
	digests := map[string]string{}
	if g.registry != nil {
		for _, s := range g.registry.Servers() {
			digests[s.Name] = s.Digest
		}
	}
	return digests
}

func index(names []string) map[string]string {
	m := make(map[string]string, len(names))
	for _, n := range names {
		m[n] = ""
	}
	return m
}

// compare returns the keys that were added, removed and given another value, each sorted and never nil.
func compare[V cmp.Ordered](from, to map[string]V) (added, removed, changed []string) {
	added, removed, changed = []string{}, []string{}, []string{}
	for name, v := range to {
		if old, ok := from[name]; !ok {
			added = append(added, name)
		} else if old != v {
			changed = append(changed, name)
		}
	}
	for name := range from {
		if _, ok := to[name]; !ok {
			removed = append(removed, name)
		}
	}
	slices.Sort(added)
	slices.Sort(removed)
	slices.Sort(changed)
	return added, removed, changed
}
