package serve

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/problem"
)

// adopt asks whether the candidate may replace the serving generation. The policy that is serving answers, so that no
// change removes its own gate; the first generation after a start is asked of its own.
func adopt(ctx context.Context, serving, candidate *Generation) (decision.Decision, decision.AdoptInput) {
	input := decision.AdoptInput{Candidate: candidate.summary}
	engine := candidate.engine
	if serving == nil {
		input.Bootstrap = true
		input.Changes = changes(&Generation{summary: emptySummary()}, candidate)
	} else {
		engine = serving.engine
		input.Serving = &serving.summary
		input.Changes = changes(serving, candidate)
	}
	return patiently(ctx, func() decision.Decision { return engine.Adopt(ctx, input) }), input
}

// adoptionProblem words a refused adoption as a problem of the policy folder, which is where it is mended.
func adoptionProblem(d decision.Decision) problem.List {
	var l problem.List
	l.Errorf(problem.AdoptionDenied, problem.Position{File: "policy"}, "catalogd.adopt",
		"the adopt decision refused this generation (%s): %s", d.Code, strings.Join(d.Reasons, "; "))
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
