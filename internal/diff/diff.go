// Package diff computes how a change would alter what a catalog grants (Compare), and formats access
// matrices (Table, CSV, MarkdownTable), before the catalog is served. Both are derived from generations by
// evaluating the decisions that would be made; nothing is started, dialled or served.
package diff

import (
	"cmp"
	"context"
	"slices"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/generation"
	"github.com/catalogd/catalogd/internal/progress"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// Difference is how NEW differs from OLD. Every list is sorted, and empty rather than nil.
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

	// Gained and Lost are the tools that a principal newly sees through a branch, and no longer sees; Altered
	// are those that it sees on both sides and whose calls are answered differently.
	Gained  []AccessChange `json:"visibility_gained"`
	Lost    []AccessChange `json:"visibility_lost"`
	Altered []AccessChange `json:"access_changed"`

	// Changes are the differences between the policies.
	Changes []Change `json:"policy_changes"`

	// Trusted are the targets that can newly be reached, Distrusted those that no longer can, Redirected
	// those reached under another trust entry or by another command or address.
	Trusted    []TrustChange `json:"trust_gained"`
	Distrusted []TrustChange `json:"trust_lost"`
	Redirected []TrustChange `json:"trust_changed"`

	// NotCompared are servers and tools whose commands can't be run on this machine. They count as unclassified.
	NotCompared []NotCompared `json:"not_compared"`

	PolicyChanged bool `json:"policy_changed"`
}

// Side is one of the two sides of a comparison.
type Side struct {
	// Name is the directory or revision that was requested. Commit is the revision's hash.
	Name   string `json:"name"`
	Commit string `json:"commit,omitempty"`
	// Generation and Policy are the digests of all files and of the policy's files.
	Generation string `json:"generation"`
	Policy     string `json:"policy"`
}

// Declared is a tool, server or branch with its position: in NEW, or in OLD if NEW does not have it. Fields
// are the parts that differ if both have it.
type Declared struct {
	Name   string           `json:"name"`
	Pos    problem.Position `json:"pos"`
	Class  Class            `json:"class"`
	Fields []FieldChange    `json:"fields,omitempty"`
}

// AccessChange is one tool for which a principal's access through a branch differs.
type AccessChange struct {
	Branch    string            `json:"branch"`
	Tool      string            `json:"tool"`
	Principal string            `json:"principal"`
	Effect    string            `json:"effect"`
	From      generation.Access `json:"from"`
	To        generation.Access `json:"to"`
	// Why is the reason for the new access in one line; empty if every call is allowed.
	Why string `json:"why,omitempty"`
	// Rules are the responsible rules of NEW's policy, and OldRules those that answered in OLD and may have
	// been removed. Both are empty if the cause is the catalog: the tool or branch is new or removed, the
	// branch selects differently, or the tool can't be reached.
	Rules    []decision.Rule `json:"rules,omitempty"`
	OldRules []decision.Rule `json:"old_rules,omitempty"`
	Class    Class           `json:"class"`
}

// TrustChange is one server, or tool with an outward binding, whose trust differs.
type TrustChange struct {
	// Kind is "server" or "tool".
	Kind string `json:"kind"`
	Name string `json:"name"`
	// From and To are the targets, Entries the trust entries; each is empty if there is no trust.
	From      string           `json:"from,omitempty"`
	To        string           `json:"to,omitempty"`
	FromEntry string           `json:"from_entry,omitempty"`
	ToEntry   string           `json:"to_entry,omitempty"`
	Pos       problem.Position `json:"pos"`
	// Written is the position of the entry in NEW.
	Written problem.Position `json:"written,omitzero"`
	Why     string           `json:"why,omitempty"`
	Class   Class            `json:"class"`
	// Fields are the parts of the target that differ, if both sides reach one.
	Fields []FieldChange `json:"fields,omitempty"`
}

// Empty reports whether both sides are the same for every user, whatever the text of their files.
func (d *Difference) Empty() bool {
	return len(d.ToolsAdded)+len(d.ToolsRemoved)+len(d.ToolsChanged)+len(d.ServersAdded)+len(d.ServersRemoved)+len(d.ServersChanged)+
		len(d.BranchesAdded)+len(d.BranchesRemoved)+len(d.BranchesChanged)+len(d.Gained)+len(d.Lost)+len(d.Altered)+
		len(d.Trusted)+len(d.Distrusted)+len(d.Redirected)+len(d.Changes)+len(d.NotCompared) == 0 && !d.PolicyChanged
}

// Class returns the class of all changes together.
func (d *Difference) Class() Class {
	class := Neutral
	if len(d.NotCompared) > 0 {
		class = Unclassified
	}
	for _, c := range d.Changes {
		class = class.with(c.Class)
	}
	for _, all := range [][]AccessChange{d.Gained, d.Lost, d.Altered} {
		for _, c := range all {
			class = class.with(c.Class)
		}
	}
	for _, all := range [][]TrustChange{d.Trusted, d.Distrusted, d.Redirected} {
		for _, c := range all {
			class = class.with(c.Class)
		}
	}
	for _, c := range d.ToolsChanged {
		class = class.with(c.Class)
	}
	for _, all := range [][]Declared{
		d.ToolsAdded, d.ToolsRemoved, d.ServersAdded, d.ServersRemoved, d.ServersChanged, d.BranchesAdded, d.BranchesRemoved, d.BranchesChanged,
	} {
		for _, c := range all {
			class = class.with(c.Class)
		}
	}
	return class
}

// Breaking reports whether the change may break a client that relies on OLD: a tool is removed, for everybody
// or for somebody, or accepts or returns something else.
func (d *Difference) Breaking() bool {
	return len(d.ToolsRemoved)+len(d.Lost) > 0 || slices.ContainsFunc(d.ToolsChanged, func(c ToolChange) bool { return c.Breaking })
}

// Compare compares two generations, and the files that they were built from, for the given principals and for
// those that the policies mention. The caller sets the names of the sides. A policy that is too slow to
// answer is an error.
func Compare(ctx context.Context, from, to *generation.Generation, old, now Source, principals []decision.Principal) (*Difference, error) {
	d := &Difference{Old: side(from), New: side(to), PolicyChanged: from.Policy() != to.Policy()}
	principals = mentioned(principals, from.Engine(), to.Engine())
	d.catalog(from, to)
	if err := d.access(ctx, from, to, principals); err != nil {
		return nil, err
	}
	d.trust(from, to)
	d.lacking(from, to)
	progress.Begin(ctx, "comparing the policies", "")
	d.Changes = []Change{}
	if d.PolicyChanged {
		population, err := newPopulation(ctx, from, to, principals)
		if err != nil {
			return nil, err
		}
		changes, err := policyChanges(ctx, population)
		if err != nil {
			return nil, err
		}
		d.Changes = append(d.Changes, changes...)
	}
	d.Changes = append(d.Changes, testChanges(ctx, old, now)...)
	d.Changes = append(d.Changes, fileChanges(old, now, d.Changes)...)
	slices.SortStableFunc(d.Changes, func(a, b Change) int { return slices.Index(classes, a.Class) - slices.Index(classes, b.Class) })
	return d, nil
}

func side(g *generation.Generation) Side { return Side{Generation: g.ID, Policy: g.Policy()} }

// access sets the differences in the access matrix.
func (d *Difference) access(ctx context.Context, from, to *generation.Generation, principals []decision.Principal) error {
	type key struct{ branch, tool, principal string }
	d.Gained, d.Lost, d.Altered = []AccessChange{}, []AccessChange{}, []AccessChange{}
	before, err := from.AccessMatrix(ctx, principals)
	if err != nil {
		return err
	}
	after, err := to.AccessMatrix(ctx, principals)
	if err != nil {
		return err
	}
	old := make(map[key]generation.AccessCell, len(before))
	for _, s := range before {
		old[key{s.Branch, s.Tool, s.Principal}] = s
	}
	named := make(map[string]decision.Principal, len(principals))
	for _, p := range principals {
		named[p.Name] = p
	}
	add := func(s, before generation.AccessCell, effect registry.Effect) error {
		was := before.Access
		rules, err := to.Responsible(ctx, s, named[s.Principal])
		if err != nil {
			return err
		}
		var left []decision.Rule
		if len(rules) > 0 { // otherwise the catalog caused the change
			if left, err = from.Responsible(ctx, before, named[s.Principal]); err != nil {
				return err
			}
		}
		c := AccessChange{s.Branch, s.Tool, s.Principal, string(effect), was, s.Access, s.Why, rules, left, accessClass(was, s.Access)}
		switch {
		case !s.Visible():
			d.Lost = append(d.Lost, c)
		case was == generation.Hidden:
			d.Gained = append(d.Gained, c)
		default:
			d.Altered = append(d.Altered, c)
		}
		return nil
	}
	for _, s := range after {
		k := key{s.Branch, s.Tool, s.Principal}
		e, _ := to.Tool(s.Tool)
		was, ok := old[k]
		if !ok {
			was = s
			was.Access, was.Why = generation.Hidden, ""
			if e.Declared().Binding.Intent != "" {
				was.Why = generation.NoWrites
			}
		}
		delete(old, k)
		if was.Access == s.Access {
			continue
		}
		if err := add(s, was, e.Effect()); err != nil {
			return err
		}
	}
	for _, s := range old { // the branch or the tool was removed
		if !s.Visible() {
			continue
		}
		was := s
		s.Access, s.Why = generation.Hidden, "the tool no longer exists"
		e, _ := from.Tool(s.Tool)
		switch {
		case !slices.Contains(to.Branches(), s.Branch):
			s.Why = "the branch no longer exists"
		case e.Declared().Binding.Intent != "":
			s.Why = generation.NoWrites
		}
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

// trust sets the differences in what may be reached.
func (d *Difference) trust(from, to *generation.Generation) {
	d.Trusted, d.Distrusted, d.Redirected = []TrustChange{}, []TrustChange{}, []TrustChange{}
	type key struct{ kind, name string }
	old := map[key]generation.Reach{}
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
			c.Class = Widening
			d.Trusted = append(d.Trusted, c)
		case !r.Decision.Allow && was.Decision.Allow:
			c.Class = Narrowing
			d.Distrusted = append(d.Distrusted, c)
		case r.Decision.Allow && (was.Target.Digest() != r.Target.Digest() || c.FromEntry != c.ToEntry):
			c.Class, c.Fields = Widening, fieldChanges(asData(was.Target), asData(r.Target), r.Pos)
			d.Redirected = append(d.Redirected, c)
		}
	}
	for _, r := range old {
		if r.Decision.Allow {
			d.Distrusted = append(d.Distrusted, TrustChange{
				Kind: r.Kind, Name: r.Name, Pos: r.Pos, From: r.Target.String(), FromEntry: r.Trust, Why: "it is not declared any more", Class: Narrowing,
			})
		}
	}
	slices.SortFunc(d.Distrusted, func(a, b TrustChange) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name)) })
}
