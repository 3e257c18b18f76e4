package generation

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/catalogd/catalogd/internal/egress"
	"github.com/catalogd/catalogd/internal/propose"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// Proposal is a trust entry that would let servers and tools reach their declared targets.
type Proposal struct {
	Entry propose.Entry
	// For are the servers and tools, each with its target.
	For []Reach
	// Replaces are the entries that it replaces: they cover the target and grant too little, or were meant for it.
	Replaces []Replaced
	// Denied are the reasons why the policy would still deny: no entry suffices, as far as is known.
	Denied []string
}

// Replaced is an entry of policy/trust/data.yaml.
type Replaced struct {
	Name     string           `json:"name"`
	Position problem.Position `json:"position"`
	// Changes are the fields in which the new entry differs, where it replaces this one alone.
	Changes []string `json:"changes,omitempty"`
}

// Proposals returns entries for the targets that the policy denies: those of the servers and tools with that
// name, or of all if it is empty. The second list holds those of them that are trusted already. What is Missing
// is asked about as if the command were where it is declared. Nothing is spawned or dialled.
func (g *Generation) Proposals(ctx context.Context, name string) ([]Proposal, []Reach, error) {
	p := &proposing{g: g, entries: g.engine.TrustEntries()}
	var trusted []Reach
	found := false
	for _, r := range g.Outward() {
		if name != "" && r.Name != name {
			continue
		}
		found = true
		if r.Missing != "" {
			r.asked.Observed.SHA256 = p.pin(r)
		}
		granted, d := g.engine.Connect(ctx, r.asked)
		if !d.Allow {
			if err := p.propose(ctx, r); err != nil {
				return nil, nil, err
			}
		} else if err := egress.Check(granted, r.Target, r.Observed.InTree); err != nil { // the policy's answer differs from its entry
			least := propose.For(r.Target, r.Observed)
			least.Name = d.Trust
			p.proposals = append(p.proposals, Proposal{Entry: least, For: []Reach{r}, Denied: []string{err.Error()}})
		} else {
			r.Trust, r.Written = granted.Name(), g.engine.TrustPosition(granted.Name())
			trusted = append(trusted, r)
		}
	}
	if name != "" && !found {
		return nil, nil, g.unreachedName(name)
	}
	for _, made := range p.proposals {
		if len(made.Replaces) == 1 {
			made.Replaces[0].Changes = made.Entry.Changes(entryOf(g.engine.TrustEntries(), made.Replaces[0].Name))
		}
	}
	return p.proposals, trusted, nil
}

// unreachedName returns the error for a name that no server and no tool with a target has.
func (g *Generation) unreachedName(name string) error {
	for _, l := range g.lacking {
		if l.Name == name {
			return fmt.Errorf("whether %s %q may be reached is not asked here: %s", l.Kind, name, l.Why)
		}
	}
	var names []string
	for _, r := range g.reaches {
		names = append(names, r.Name)
	}
	err := fmt.Errorf("no server and no tool that reaches out has the name %q", name)
	if near := registry.Nearest(name, names); len(near) > 0 {
		err = fmt.Errorf("%w; did you mean %s?", err, strings.Join(near, " or "))
	}
	return err
}

// proposing finds entries one by one, each in addition to the existing ones and those proposed before.
type proposing struct {
	g         *Generation
	entries   map[string]any
	proposals []Proposal
}

func (p *proposing) propose(ctx context.Context, r Reach) error {
	least := propose.For(r.Target, r.Observed)
	if r.Missing != "" {
		least.Ways = nil // they are about the file
	}
	made := Proposal{Entry: least, For: []Reach{r}}
	instead, err := p.covering(ctx, r, least)
	if err != nil {
		return err
	}
	if len(instead) > 0 {
		made.Entry = least.Widen(instead[0], entryOf(p.entries, instead[0]))
		if p.unused(instead[0]) {
			made.Entry = least.Correct(instead[0], entryOf(p.entries, instead[0]), true)
		}
	} else if made.Entry, instead, err = p.meant(ctx, r, least); err != nil {
		return err
	}
	// Two entries that cover one target deny it, so the new entry must not also cover a target that is
	// reached today.
	twice, err := p.coveredTwice(ctx, made.Entry, instead)
	if err != nil {
		return err
	}
	for _, other := range twice {
		if len(instead) == 0 {
			made.Entry = least.Over(other, entryOf(p.entries, other))
		} else {
			made.Entry = made.Entry.Over(instead[0], entryOf(p.entries, other))
		}
		instead = append(instead, other)
	}
	after := made.Entry.With(p.entries, instead...)
	hypothetical, err := p.g.engine.WithTrust(after)
	if err != nil {
		return err
	}
	d, err := hypothetical.Connect(ctx, r.asked)
	if err != nil {
		return err
	}
	if !d.Allow {
		least.Name = propose.Free(r.Name, p.entries)
		p.proposals = append(p.proposals, Proposal{Entry: least, For: []Reach{r}, Denied: []string{refusal(d)}})
		return nil
	}
	p.entries = after
	for _, name := range instead {
		at := slices.IndexFunc(p.proposals, func(q Proposal) bool { return q.Entry.Name == name && len(q.Denied) == 0 })
		if at < 0 { // it is an entry of the policy's data
			made.Replaces = append(made.Replaces, Replaced{Name: name, Position: p.g.engine.TrustPosition(name)})
			continue
		}
		made.For = append(p.proposals[at].For, made.For...)
		made.Replaces = append(p.proposals[at].Replaces, made.Replaces...)
		p.proposals = slices.Delete(p.proposals, at, at+1)
	}
	p.proposals = append(p.proposals, made)
	return nil
}

// meant returns the entry for a target that no entry covers: an existing one that was probably written for
// it, with what differs, and its name; or else least under a name of its own.
func (p *proposing) meant(ctx context.Context, r Reach, least propose.Entry) (propose.Entry, []string, error) {
	names := slices.Sorted(maps.Keys(p.entries))
	if i := slices.Index(names, r.Name); i > 0 { // first
		names = slices.Concat([]string{r.Name}, names[:i], names[i+1:])
	}
	for _, name := range names {
		entry := entryOf(p.entries, name)
		if !p.unused(name) || !least.Meant(name, r.Name, entry, r.Target) {
			continue
		}
		corrected := least.Correct(name, entry, false)
		hypothetical, err := p.g.engine.WithTrust(corrected.With(p.entries, name))
		if err != nil {
			return least, nil, err
		}
		d, err := hypothetical.Connect(ctx, r.asked)
		if err != nil {
			return least, nil, err
		}
		if d.Allow {
			return corrected, []string{name}, nil
		}
	}
	least.Name = propose.Free(r.Name, p.entries)
	return least, nil, nil
}

// pin returns the digest that an entry for the command of r pins it to: a file that is not here may be that one.
func (p *proposing) pin(r Reach) string {
	for _, name := range slices.Sorted(maps.Keys(p.entries)) {
		entry := entryOf(p.entries, name)
		if digest, _ := entry["sha256"].(string); digest != "" && propose.MayCover(entry, r.Target) {
			return digest
		}
	}
	return r.Observed.SHA256
}

// unused reports whether an entry of the policy's data reaches nothing that is declared, on this machine or
// another, and no proposal.
func (p *proposing) unused(name string) bool {
	return !slices.ContainsFunc(p.g.reaches, func(r Reach) bool { return r.Decision.Allow && r.Trust == name }) &&
		!slices.ContainsFunc(p.proposals, func(q Proposal) bool { return q.Entry.Name == name && len(q.Denied) == 0 }) &&
		!slices.Contains(p.g.trustedElsewhere(), name)
}

// covering returns the entries that would let r be reached if they had the fields of its own minimal entry.
func (p *proposing) covering(ctx context.Context, r Reach, least propose.Entry) ([]string, error) {
	var names []string
	for name := range p.entries {
		entry := entryOf(p.entries, name)
		if !propose.MayCover(entry, r.Target) {
			continue
		}
		wide := least.Widen(name, entry)
		hypothetical, err := p.g.engine.WithTrust(map[string]any{name: wide.Value()})
		if err != nil {
			return nil, err
		}
		d, err := hypothetical.Connect(ctx, r.asked)
		if err != nil {
			return nil, err
		}
		if d.Allow {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// coveredTwice returns the entries of targets that are reached today, and would be denied with e in addition.
func (p *proposing) coveredTwice(ctx context.Context, e propose.Entry, instead []string) ([]string, error) {
	hypothetical, err := p.g.engine.WithTrust(e.With(p.entries, instead...))
	if err != nil {
		return nil, err
	}
	type reached struct {
		Reach
		by string
	}
	var today []reached
	for _, r := range p.g.reaches {
		if r.Decision.Allow {
			today = append(today, reached{r, r.Trust})
		}
	}
	for _, q := range p.proposals {
		for _, r := range q.For {
			if len(q.Denied) == 0 {
				today = append(today, reached{r, q.Entry.Name})
			}
		}
	}
	var names []string
	for _, r := range today {
		if !propose.MayCover(e.Value(), r.Target) || slices.Contains(names, r.by) || slices.Contains(instead, r.by) {
			continue
		}
		d, err := hypothetical.Connect(ctx, r.asked)
		if err != nil {
			return nil, err
		}
		if !d.Allow {
			names = append(names, r.by)
		}
	}
	return names, nil
}

func entryOf(entries map[string]any, name string) map[string]any {
	entry, _ := entries[name].(map[string]any)
	return entry
}

// proposeCommand says which command prints the entry for a server or tool.
func proposeCommand(name string) string {
	return fmt.Sprintf("`catalogd trust --propose %s` prints the entry that would cover it", name)
}

// propose puts the entries that Proposals returns into the problems of what is not trusted, in place of the
// command that prints them. A target for which no entry suffices keeps the command, which says why.
func (g *Generation) propose(ctx context.Context, problems problem.List) error {
	untrusted := func(p problem.Problem) bool {
		return p.Code == problem.UntrustedServer || p.Code == problem.UntrustedBinding || p.Code == problem.MissingCommand
	}
	if !slices.ContainsFunc(problems, untrusted) {
		return nil
	}
	proposals, _, err := g.Proposals(ctx, "")
	if err != nil {
		return err
	}
	type pasted struct{ where, entry string }
	paste := map[string]pasted{} // by the path and the name of what is not trusted
	for _, p := range proposals {
		if len(p.Denied) > 0 {
			continue
		}
		var head []string
		for _, r := range p.Replaces {
			head = append(head, fmt.Sprintf("instead of entry %s at %s", r.Name, r.Position))
		}
		where := "put this below entries: in policy/trust/data.yaml"
		if len(p.Replaces) == 1 && len(p.Replaces[0].Changes) > 0 {
			r := p.Replaces[0]
			head, where = nil, fmt.Sprintf("in entry %s at %s %s, so that it is", r.Name, r.Position, strings.Join(r.Changes, ", "))
		}
		for _, r := range p.For {
			paste[r.Kind+" "+r.Name] = pasted{where, p.Entry.Brief().YAML(head...)}
		}
	}
	for i, p := range problems {
		field, name, _ := strings.Cut(p.Path, ".")
		for _, suffix := range []string{".binding", ".binding.exec.command", ".transport.stdio.command"} {
			name = strings.TrimSuffix(name, suffix)
		}
		if made := paste[strings.TrimSuffix(field, "s")+" "+name]; untrusted(p) && made.entry != "" {
			before := strings.TrimSuffix(p.Message, proposeCommand(name))
			if p.Code == problem.MissingCommand {
				before += "; it is not trusted either: "
			}
			problems[i].Message = before + "if it is meant, " + made.where +
				" (`catalogd trust --propose " + name + "` explains it)"
			problems[i].Paste = made.entry
		}
	}
	return nil
}
