package generation

import (
	"slices"

	"github.com/catalogd/catalogd/decision/trust"
	"github.com/catalogd/catalogd/internal/egress"
	"github.com/catalogd/catalogd/internal/propose"
)

// Outdated reports whether a command of the catalog has appeared, moved or vanished on this machine since the
// build, so that a build of the same files would be another one.
func (g *Generation) Outdated() bool {
	for declared, path := range g.commands {
		if now, _ := egress.Resolve(declared, g.root); now != path { // with an error it is empty
			return true
		}
	}
	return false
}

// command returns the path of a declared command, which is looked for once in a build; empty if it can't be
// used.
func (a *assembly) command(declared string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	path, known := a.g.commands[declared]
	if !known {
		path, _ = egress.Resolve(declared, a.Root) // the error is reported where it is declared
		a.g.commands[declared] = path
	}
	return path
}

// Lacking is a server or tool that is left out, because its command is not on this machine.
type Lacking struct {
	// Kind is "server" or "tool".
	Kind string
	Name string
	// Command is the declared one. Why begins with egress.NotHere.
	Command, Why string
}

// Lacking returns the servers and tools whose command is not on this machine. No connect decision is
// requested about them.
func (g *Generation) Lacking() []Lacking { return slices.Clone(g.lacking) }

// trustedElsewhere returns the trust entries that name a command which is not on this machine. They may be
// needed on others.
func (g *Generation) trustedElsewhere() (names []string) {
	for name, entry := range g.engine.TrustEntries() {
		fields, _ := entry.(map[string]any)
		if slices.ContainsFunc(g.lacking, func(l Lacking) bool {
			return propose.MayCover(fields, trust.Target{Command: &trust.Command{Declared: l.Command}})
		}) {
			names = append(names, name)
		}
	}
	return names
}

// lacks records a server or tool whose command is not on this machine.
func (a *assembly) lacks(kind, name, command, why string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.g.commands[command] = "" // even if it has appeared in the meantime
	a.g.lacking = append(a.g.lacking, Lacking{kind, name, command, why})
}
