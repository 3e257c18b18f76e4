// Package review answers what a person asks of a catalog before it serves anyone: who would meet what (Matrix), and what
// a change would do to that (Compare). Both are worked out from generations, by the decisions that would be asked;
// nothing is started, dialled or served.
package review

import (
	"cmp"
	"context"
	"slices"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/serve"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// Difference is what NEW does that OLD does not. Every list is sorted, and empty rather than nil.
type Difference struct {
	Old Side `json:"old"`
	New Side `json:"new"`

	ToolsAdded   []Declared   `json:"tools_added"`
	ToolsRemoved []Declared   `json:"tools_removed"`
	ToolsChanged []ToolChange `json:"tools_changed"`

	ServersAdded   []Declared `json:"servers_added"`
	ServersRemoved []Declared `json:"servers_removed"`
	ServersChanged []Declared `json:"servers_changed"`

	BranchesAdded   []Declared `json:"branches_added"`
	BranchesRemoved []Declared `json:"branches_removed"`
	BranchesChanged []Declared `json:"branches_changed"`

	// Gained and Lost are the tools that a principal sees through a branch now and did not see before, and the reverse;
	// Altered are those that it sees as before, and whose calls are answered otherwise.
	Gained  []AccessChange `json:"visibility_gained"`
	Lost    []AccessChange `json:"visibility_lost"`
	Altered []AccessChange `json:"access_changed"`

	// Trusted is what may be reached now and could not before, Distrusted the reverse, Redirected what is reached under
	// another trust entry or by another command or address.
	Trusted    []TrustChange `json:"trust_gained"`
	Distrusted []TrustChange `json:"trust_lost"`
	Redirected []TrustChange `json:"trust_changed"`

	PolicyChanged bool `json:"policy_changed"`
}

// Side is one of the two that are compared.
type Side struct {
	// Name is what it was asked for by: a directory or a revision. Commit is the revision's hash.
	Name   string `json:"name"`
	Commit string `json:"commit,omitempty"`
	// Generation and Policy are the digests of the files and of the policy among them.
	Generation string `json:"generation"`
	Policy     string `json:"policy"`
}

// Declared is a tool, server or branch, and where it stands: in NEW, or in OLD where NEW has it no more.
type Declared struct {
	Name string           `json:"name"`
	Pos  problem.Position `json:"pos"`
}

// AccessChange is one tool whose access through a branch differs for a principal.
type AccessChange struct {
	Branch    string       `json:"branch"`
	Tool      string       `json:"tool"`
	Principal string       `json:"principal"`
	Effect    string       `json:"effect"`
	From      serve.Access `json:"from"`
	To        serve.Access `json:"to"`
	// Why is the reason of the new standing in one line; empty where every call runs.
	Why string `json:"why,omitempty"`
	// Rules are the policy's rules that are responsible, of NEW. There are none where the catalog is: the tool or branch
	// is new or gone, the branch selects otherwise, or the tool can't be reached.
	Rules []decision.Rule `json:"rules,omitempty"`
}

// TrustChange is one server, or tool with an outward binding, that is trusted otherwise.
type TrustChange struct {
	// Kind is "server" or "tool".
	Kind string `json:"kind"`
	Name string `json:"name"`
	// From and To say what is reached, Entries the trust entries; each is empty where it is not trusted.
	From      string           `json:"from,omitempty"`
	To        string           `json:"to,omitempty"`
	FromEntry string           `json:"from_entry,omitempty"`
	ToEntry   string           `json:"to_entry,omitempty"`
	Pos       problem.Position `json:"pos"`
	// Written is where the entry of NEW stands.
	Written problem.Position `json:"written,omitzero"`
	Why     string           `json:"why,omitempty"`
}

// Empty reports whether the two are the same to everybody who uses them, whatever their files look like.
func (d *Difference) Empty() bool {
	return len(d.ToolsAdded)+len(d.ToolsRemoved)+len(d.ToolsChanged)+len(d.ServersAdded)+len(d.ServersRemoved)+len(d.ServersChanged)+
		len(d.BranchesAdded)+len(d.BranchesRemoved)+len(d.BranchesChanged)+len(d.Gained)+len(d.Lost)+len(d.Altered)+
		len(d.Trusted)+len(d.Distrusted)+len(d.Redirected) == 0 && !d.PolicyChanged
}

// Breaking reports whether a client that relies on OLD may be disappointed: a tool that is gone, for everybody or for
// somebody, or one that takes or gives something else.
func (d *Difference) Breaking() bool {
	return len(d.ToolsRemoved)+len(d.Lost) > 0 || slices.ContainsFunc(d.ToolsChanged, func(c ToolChange) bool { return c.Breaking })
}

// Compare holds two generations against each other for the branches' principals. The names of the sides are the caller's.
func Compare(ctx context.Context, from, to *serve.Generation, principals []decision.Principal) (*Difference, error) {
	d := &Difference{Old: side(from), New: side(to), PolicyChanged: from.Policy() != to.Policy()}
	old, now := tools(from), tools(to)
	d.ToolsAdded, d.ToolsRemoved = apart(old, now)
	d.ToolsChanged = []ToolChange{}
	for _, e := range to.Registry().Entries() {
		if before, ok := from.Registry().Lookup(e.Name()); ok {
			if c := changeOf(before.Declared(), e.Declared()); len(c.Fields) > 0 {
				d.ToolsChanged = append(d.ToolsChanged, c)
			}
		}
	}
	oldServers, servers := index(from.Registry().Servers(), server), index(to.Registry().Servers(), server)
	d.ServersAdded, d.ServersRemoved = apart(oldServers, servers)
	d.ServersChanged = altered(oldServers, servers)
	oldBranches, branches := index(from.Registry().Branches(), branch), index(to.Registry().Branches(), branch)
	d.BranchesAdded, d.BranchesRemoved = apart(oldBranches, branches)
	d.BranchesChanged = altered(oldBranches, branches)
	if err := d.access(ctx, from, to, principals); err != nil {
		return nil, err
	}
	d.trust(from, to)
	return d, nil
}

func side(g *serve.Generation) Side { return Side{Generation: g.ID, Policy: g.Policy()} }

func tools(g *serve.Generation) map[string]registry.Source {
	all := make(map[string]registry.Source, g.Registry().Len())
	for _, e := range g.Registry().Entries() {
		all[e.Name()] = e.Declared().Source
	}
	return all
}

func server(s registry.Server) (string, registry.Source) { return s.Name, s.Source }
func branch(b registry.Branch) (string, registry.Source) { return b.Name, b.Source }

func index[T any](all []T, of func(T) (string, registry.Source)) map[string]registry.Source {
	m := make(map[string]registry.Source, len(all))
	for _, x := range all {
		name, source := of(x)
		m[name] = source
	}
	return m
}

func apart(from, to map[string]registry.Source) (added, removed []Declared) {
	return without(to, from), without(from, to)
}

func without(all, others map[string]registry.Source) []Declared {
	return chosen(all, func(name string, _ registry.Source) bool { _, ok := others[name]; return !ok })
}

func altered(from, to map[string]registry.Source) []Declared {
	return chosen(to, func(name string, now registry.Source) bool {
		before, ok := from[name]
		return ok && before.Digest != now.Digest
	})
}

func chosen(all map[string]registry.Source, want func(string, registry.Source) bool) []Declared {
	out := []Declared{}
	for name, source := range all {
		if want(name, source) {
			out = append(out, Declared{name, source.Pos})
		}
	}
	slices.SortFunc(out, func(a, b Declared) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// access fills in what differs in the standings.
func (d *Difference) access(ctx context.Context, from, to *serve.Generation, principals []decision.Principal) error {
	type key struct{ branch, tool, principal string }
	d.Gained, d.Lost, d.Altered = []AccessChange{}, []AccessChange{}, []AccessChange{}
	before, err := from.Standings(ctx, principals)
	if err != nil {
		return err
	}
	after, err := to.Standings(ctx, principals)
	if err != nil {
		return err
	}
	old := make(map[key]serve.Standing, len(before))
	for _, s := range before {
		old[key{s.Branch, s.Tool, s.Principal}] = s
	}
	named := make(map[string]decision.Principal, len(principals))
	for _, p := range principals {
		named[p.Name] = p
	}
	add := func(s serve.Standing, was serve.Access, effect registry.Effect) error {
		rules, err := to.Responsible(ctx, s, named[s.Principal])
		if err != nil {
			return err
		}
		c := AccessChange{s.Branch, s.Tool, s.Principal, string(effect), was, s.Access, s.Why, rules}
		switch {
		case !s.Visible():
			d.Lost = append(d.Lost, c)
		case was == serve.Hidden:
			d.Gained = append(d.Gained, c)
		default:
			d.Altered = append(d.Altered, c)
		}
		return nil
	}
	for _, s := range after {
		k := key{s.Branch, s.Tool, s.Principal}
		was := serve.Hidden
		if o, ok := old[k]; ok {
			was = o.Access
		}
		delete(old, k)
		if was == s.Access {
			continue
		}
		e, _ := to.Registry().Lookup(s.Tool)
		if err := add(s, was, e.Effect()); err != nil {
			return err
		}
	}
	for _, s := range old { // the branch or the tool is gone
		if !s.Visible() {
			continue
		}
		was := s.Access
		s.Access, s.Why = serve.Hidden, "there is no such tool any more"
		if !slices.Contains(to.Branches(), s.Branch) {
			s.Why = "there is no such branch any more"
		}
		e, _ := from.Registry().Lookup(s.Tool)
		if err := add(s, was, e.Effect()); err != nil {
			return err
		}
	}
	for _, list := range [][]AccessChange{d.Gained, d.Lost, d.Altered} {
		slices.SortFunc(list, func(a, b AccessChange) int {
			return cmp.Or(cmp.Compare(a.Branch, b.Branch), cmp.Compare(a.Principal, b.Principal), cmp.Compare(a.Tool, b.Tool))
		})
	}
	return nil
}

// trust fills in what differs in what may be reached.
func (d *Difference) trust(from, to *serve.Generation) {
	d.Trusted, d.Distrusted, d.Redirected = []TrustChange{}, []TrustChange{}, []TrustChange{}
	type key struct{ kind, name string }
	old := map[key]serve.Reach{}
	for _, r := range from.Reaches() {
		old[key{r.Kind, r.Name}] = r
	}
	for _, r := range to.Reaches() {
		k := key{r.Kind, r.Name}
		was := old[k]
		delete(old, k)
		c := TrustChange{Kind: r.Kind, Name: r.Name, Pos: r.Pos}
		if was.Decision.Allow {
			c.From, c.FromEntry = was.Target.String(), was.Trust
		}
		if r.Decision.Allow {
			c.To, c.ToEntry, c.Written = r.Target.String(), r.Trust, r.Written
		} else {
			c.Why = refusal(r.Decision)
		}
		switch {
		case r.Decision.Allow && !was.Decision.Allow:
			d.Trusted = append(d.Trusted, c)
		case !r.Decision.Allow && was.Decision.Allow:
			d.Distrusted = append(d.Distrusted, c)
		case r.Decision.Allow && (c.From != c.To || c.FromEntry != c.ToEntry):
			d.Redirected = append(d.Redirected, c)
		}
	}
	for _, r := range old {
		if r.Decision.Allow {
			d.Distrusted = append(d.Distrusted, TrustChange{
				Kind: r.Kind, Name: r.Name, Pos: r.Pos, From: r.Target.String(), FromEntry: r.Trust, Why: "it is not declared any more",
			})
		}
	}
	slices.SortFunc(d.Distrusted, func(a, b TrustChange) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name)) })
}

func refusal(d decision.Decision) string {
	if len(d.Reasons) == 0 {
		return string(d.Code)
	}
	return d.Reasons[0]
}
