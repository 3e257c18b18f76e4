package diff

import (
	"cmp"
	"slices"

	"github.com/catalogd/catalogd/internal/generation"
	"github.com/catalogd/catalogd/problem"
)

// NotCompared is a server or tool that may be granted something else than before. It can't be told here, because
// its command can't be run on this machine, and so nothing asks whether it may be reached and seen.
type NotCompared struct {
	// Kind is "server" or "tool".
	Kind string           `json:"kind"`
	Name string           `json:"name"`
	Pos  problem.Position `json:"pos"`
	// Why says which command is missing.
	Why string `json:"why"`
}

// lacking sets what can't be compared, of what the change may concern: a tool or server that differs itself, and
// all of them where the policy or a branch differs.
func (d *Difference) lacking(from, to *generation.Generation) {
	d.NotCompared = []NotCompared{}
	all := d.PolicyChanged || len(d.BranchesAdded)+len(d.BranchesChanged)+len(d.BranchesRemoved) > 0
	for _, g := range []*generation.Generation{to, from} {
		for _, l := range g.Lacking() {
			n := NotCompared{Kind: l.Kind, Name: l.Name, Why: l.Why}
			var concerned bool
			if n.Pos, concerned = d.concerns(g, l); !concerned && !all || slices.ContainsFunc(d.NotCompared, n.same) {
				continue
			}
			d.NotCompared = append(d.NotCompared, n)
		}
	}
	slices.SortFunc(d.NotCompared, func(a, b NotCompared) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
}

func (n NotCompared) same(other NotCompared) bool {
	return n.Kind == other.Kind && n.Name == other.Name
}

// concerns reports whether a server or tool of g, or a tool of that server, is among what differs. It also
// returns where it is declared.
func (d *Difference) concerns(g *generation.Generation, l generation.Lacking) (at problem.Position, yes bool) {
	named := func(all []Declared, name string) bool {
		return slices.ContainsFunc(all, func(x Declared) bool { return x.Name == name })
	}
	for _, s := range g.Registry().Servers() {
		if l.Kind == "server" && s.Name == l.Name {
			at = s.Pos
			yes = named(d.ServersAdded, s.Name) || named(d.ServersChanged, s.Name) || named(d.ServersRemoved, s.Name)
		}
	}
	for _, e := range g.Registry().Entries() {
		if l.Kind == "tool" && e.Name() != l.Name || l.Kind == "server" && e.Server() != l.Name {
			continue
		}
		if l.Kind == "tool" {
			at = e.Declared().Pos
		}
		yes = yes || named(d.ToolsAdded, e.Name()) || named(d.ToolsRemoved, e.Name()) ||
			slices.ContainsFunc(d.ToolsChanged, func(c ToolChange) bool { return c.Name == e.Name() })
	}
	return at, yes
}

func notComparedLines(all []NotCompared) (lines []line) {
	for _, n := range all {
		lines = append(lines, line{text: n.Kind + " " + n.Name + " (" + n.Pos.String() + ")", details: []string{n.Why}})
	}
	return lines
}
