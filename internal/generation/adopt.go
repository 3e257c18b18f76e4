package generation

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/loader"
	"github.com/catalogd/catalogd/problem"
)

// Adopt decides whether the candidate may replace the serving generation, and returns a problem if it may
// not. The policy of the serving generation decides, so that no change removes its own gate; the first
// generation after a start is decided on by its own policy. A candidate must also be allowed to start by its
// own policy, as in `catalogd check`: otherwise the next start would refuse what was adopted while the daemon
// ran, and every later edit with it.
func Adopt(ctx context.Context, serving, candidate *Generation, tests decision.TestSummary) problem.List {
	after := candidate.manifest()
	if serving != nil {
		input := decision.AdoptInput{Serving: &serving.summary, Candidate: candidate.summary, Changes: changes(serving.manifest(), after), Tests: tests}
		who := "the policy that is serving refuses this generation"
		if serving.past != nil {
			who = "the policy that was adopted last refuses this generation"
		}
		if l := adoptionProblem(ctx, serving, input, who); l != nil {
			return l
		}
	}
	input := decision.AdoptInput{
		Bootstrap: true, Candidate: candidate.summary, Changes: changes(manifest{Summary: emptySummary()}, after), Tests: tests,
	}
	return adoptionProblem(ctx, candidate, input, "this generation's own policy would not let it start")
}

// adoptionProblem requests the adopt decision of one generation's policy. A refusal is a problem of the
// policy folder, where it is fixed.
func adoptionProblem(ctx context.Context, asked *Generation, input decision.AdoptInput, who string) (l problem.List) {
	begin := time.Now()
	d := asked.engine.WithBuildDeadline().Adopt(ctx, input)
	asked.logDecision(decision.Adopt, input, d, begin)
	switch {
	case d.Code == decision.PolicyTimeout:
		l.Errorf(problem.PolicyTimeout, problem.Position{File: "policy"}, "catalogd.adopt",
			"whether this generation may be adopted is not decided: %s; make the rules that the point asks cheaper", refusal(d))
	case !d.Allow:
		l.Errorf(problem.AdoptionDenied, problem.Position{File: "policy"}, "catalogd.adopt", "%s (%s): %s", who, d.Code, strings.Join(d.Reasons, "; "))
	}
	return l
}

func emptySummary() decision.GenerationSummary {
	return decision.GenerationSummary{
		Tools: []string{}, Servers: []string{}, Branches: []string{}, Visible: map[string][]string{}, Trusted: map[string]string{},
	}
}

// summarize returns the generation as the adopt decision sees it.
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
		s.Visible[name] = p.View.Catalog()
	}
	for name, t := range g.servers {
		s.Trusted[name] = t.Name()
	}
	return s
}

// manifest is the data that changes are computed from: the contents of a generation by name. It is also
// recorded when a generation is adopted, so its fields are only ever added to.
type manifest struct {
	Summary decision.GenerationSummary `json:"summary"`
	Tools   map[string]manifestTool    `json:"tools"`
	Servers map[string]manifestServer  `json:"servers"`
}

type manifestTool struct {
	Digest string `json:"digest"`
	Effect string `json:"effect"`
	Server string `json:"server,omitempty"`
}

type manifestServer struct {
	Digest string            `json:"digest"`
	Labels map[string]string `json:"labels"`
}

func (g *Generation) manifest() manifest {
	if g.past != nil {
		return *g.past
	}
	f := manifest{Summary: g.summary, Tools: make(map[string]manifestTool, g.registry.Len()), Servers: map[string]manifestServer{}}
	for _, e := range g.registry.Entries() {
		tool := manifestTool{Digest: e.Declared().Digest, Effect: string(e.Effect())}
		if to := e.Declared().Binding.MCP; to != nil {
			tool.Server = to.Server
		}
		f.Tools[e.Name()] = tool
	}
	for _, s := range g.registry.Servers() {
		labels := s.Labels
		if labels == nil {
			labels = map[string]string{}
		}
		f.Servers[s.Name] = manifestServer{s.Digest, labels}
	}
	return f
}

// changes returns the differences between two generations, by name and by the declarations' digests.
func changes(from, to manifest) decision.Changes {
	c := decision.Changes{PolicyChanged: from.Summary.Policy != to.Summary.Policy}
	c.ToolsAdded, c.ToolsRemoved, c.ToolsChanged = compare(from.Tools, to.Tools, func(t manifestTool) string { return t.Digest })
	c.ServersAdded, c.ServersRemoved, c.ServersChanged = compare(from.Servers, to.Servers, func(s manifestServer) string { return s.Digest })
	same := func(string) string { return "" }
	c.BranchesAdded, c.BranchesRemoved, _ = compare(index(from.Summary.Branches), index(to.Summary.Branches), same)
	c.VisibilityGained, c.VisibilityLost = to.visibleBeside(from), from.visibleBeside(to)
	c.TrustGained, c.TrustLost = to.trustedBeside(from), from.trustedBeside(to)
	return c
}

// visibleBeside returns the tools that f shows through its branches and other does not, by branch and name.
func (f manifest) visibleBeside(other manifest) []decision.Visibility {
	found := []decision.Visibility{}
	for _, branch := range slices.Sorted(maps.Keys(f.Summary.Visible)) {
		shown := index(other.Summary.Visible[branch])
		for _, name := range f.Summary.Visible[branch] {
			if _, ok := shown[name]; !ok {
				found = append(found, decision.Visibility{Branch: branch, Tool: name, Effect: f.Tools[name].Effect, Server: f.Tools[name].Server})
			}
		}
	}
	return found
}

// trustedBeside returns the servers that f trusts and other does not, or by another trust entry, by name.
func (f manifest) trustedBeside(other manifest) []decision.TrustedServer {
	found := []decision.TrustedServer{}
	for _, name := range slices.Sorted(maps.Keys(f.Servers)) {
		entry, trusted := f.Summary.Trusted[name]
		if before, ok := other.Summary.Trusted[name]; trusted && (!ok || before != entry) {
			found = append(found, decision.TrustedServer{Name: name, Trust: entry, Labels: f.Servers[name].Labels})
		}
	}
	return found
}

func index(names []string) map[string]string {
	m := make(map[string]string, len(names))
	for _, n := range names {
		m[n] = ""
	}
	return m
}

// compare returns the keys that were added, removed, and changed by digest, each sorted and never nil.
func compare[V any](from, to map[string]V, digest func(V) string) (added, removed, changed []string) {
	added, removed, changed = []string{}, []string{}, []string{}
	for name, v := range to {
		if old, ok := from[name]; !ok {
			added = append(added, name)
		} else if digest(old) != digest(v) {
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

// ReadsCommit reports whether the adopt decision of the policy reads commits.
func (g *Generation) ReadsCommit() bool {
	return g.engine.Reads(decision.Adopt, "candidate", "commit") || g.engine.Reads(decision.Adopt, "serving", "commit")
}

// ReadsTests reports whether the adopt decision of the policy reads the results of policy tests.
func (g *Generation) ReadsTests() bool { return g.engine.Reads(decision.Adopt, "tests") }

// SetCommit sets the commit that the files come from. Call it before the generation serves.
func (g *Generation) SetCommit(c decision.Commit) { g.summary.Commit = c }

// Summary returns what an adopt decision sees of the generation.
func (g *Generation) Summary() decision.GenerationSummary { return g.summary }

// Changes returns what an adopt decision sees of the difference between two generations.
func Changes(from, to *Generation) decision.Changes { return changes(from.manifest(), to.manifest()) }

// EncodeManifest returns what must be stored of a generation so that its policy can be used after a restart
// (LoadPast).
func (g *Generation) EncodeManifest() ([]byte, error) { return json.Marshal(g.manifest()) }

// RecordedCommit returns the commit of a generation from what EncodeManifest returned.
func RecordedCommit(encoded []byte) (decision.Commit, error) {
	var had manifest
	err := json.Unmarshal(encoded, &had)
	return had.Summary.Commit, err
}

// LoadPast loads what an adoption needs of a generation that served before a restart: its policy, from its
// files, and its manifest. The result can't serve.
func (b *Builder) LoadPast(ctx context.Context, snap *loader.Snapshot, encoded []byte) (*Generation, error) {
	var had manifest
	if err := json.Unmarshal(encoded, &had); err != nil {
		return nil, err
	}
	engine, problems := decision.Load(ctx, snap.FS(), b.Policy)
	if engine == nil || problems.HasErrors() {
		return nil, FirstError(problems)
	}
	g := &Generation{ID: snap.Digest(), engine: engine, summary: had.Summary, past: &had, log: b.Log}
	g.onDecision(b.Decided)
	return g, nil
}

// FirstError returns the first error of the list; if it has none, the error of a cancelled build.
func FirstError(l problem.List) error {
	for _, p := range l {
		if p.Severity == problem.Error {
			return errors.New(p.String())
		}
	}
	return errors.New("the build was broken off")
}
