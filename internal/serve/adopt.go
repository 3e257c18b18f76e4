package serve

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/problem"
)

// adopt asks whether the candidate may replace the serving generation, and answers with a problem where it may not. The
// policy that is serving decides, so that no change removes its own gate; the first generation after a start is asked of
// its own. A candidate must also be fit to start by its own policy, as `catalogd check` tells: what is adopted while the
// daemon runs would otherwise refuse its next start, and every later edit with it.
func adopt(ctx context.Context, serving, candidate *Generation, tests decision.TestSummary) problem.List {
	if serving != nil {
		input := decision.AdoptInput{Serving: &serving.summary, Candidate: candidate.summary, Changes: changes(serving, candidate), Tests: tests}
		if l := adoptionProblem(ctx, serving, input, "the policy that is serving refuses this generation"); l != nil {
			return l
		}
	}
	input := decision.AdoptInput{
		Bootstrap: true, Candidate: candidate.summary, Changes: changes(&Generation{summary: emptySummary()}, candidate), Tests: tests,
	}
	return adoptionProblem(ctx, candidate, input, "this generation's own policy would not let it start")
}

// adoptionProblem asks the policy of one generation. A refusal is a problem of the policy folder, which is where it is mended.
func adoptionProblem(ctx context.Context, asked *Generation, input decision.AdoptInput, who string) (l problem.List) {
	begin := time.Now()
	d := patiently(ctx, func() decision.Decision { return asked.engine.Adopt(ctx, input) })
	asked.note(decision.Adopt, input, d, begin)
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
	c.VisibilityGained, c.VisibilityLost = to.visibleBeside(from), from.visibleBeside(to)
	c.TrustGained, c.TrustLost = to.trustedBeside(from), from.trustedBeside(to)
	return c
}

// visibleBeside are the tools that g shows through its branches and other does not, by branch and name.
func (g *Generation) visibleBeside(other *Generation) []decision.Visibility {
	found := []decision.Visibility{}
	for _, branch := range slices.Sorted(maps.Keys(g.summary.Visible)) {
		shown := index(other.summary.Visible[branch])
		for _, name := range g.summary.Visible[branch] {
			if _, ok := shown[name]; ok {
				continue
			}
			v := decision.Visibility{Branch: branch, Tool: name}
			if e, ok := g.registry.Lookup(name); ok {
				v.Effect = string(e.Effect())
				if to := e.Declared().Binding.MCP; to != nil {
					v.Server = to.Server
				}
			}
			found = append(found, v)
		}
	}
	return found
}

// trustedBeside are the servers that g trusts and other does not, or by another entry, by name.
func (g *Generation) trustedBeside(other *Generation) []decision.TrustedServer {
	found := []decision.TrustedServer{}
	if g.registry == nil {
		return found
	}
	for _, s := range g.registry.Servers() {
		entry, trusted := g.summary.Trusted[s.Name]
		if before, ok := other.summary.Trusted[s.Name]; !trusted || ok && before == entry {
			continue
		}
		labels := s.Labels
		if labels == nil {
			labels = map[string]string{}
		}
		found = append(found, decision.TrustedServer{Name: s.Name, Trust: entry, Labels: labels})
	}
	return found
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
