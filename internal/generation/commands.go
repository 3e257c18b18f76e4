package generation

import (
	"slices"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/decision/trust"
	"github.com/catalogd/catalogd/internal/egress"
	"github.com/catalogd/catalogd/internal/propose"
)

// Outdated reports whether a command of the catalog has appeared, moved or vanished on this machine since the
// build, or can't be run for another reason than then, so that a build of the same files would be another one.
func (g *Generation) Outdated() bool {
	for declared, found := range g.commands {
		if locate(declared, g.root) != found {
			return true
		}
	}
	return false
}

// locate returns the path of a declared command, or the reason why it can't be run on this machine; empty if it
// can't be declared.
func locate(declared, root string) string {
	path, err := egress.Resolve(declared, root)
	if why, unusable := egress.Unusable(err); unusable {
		return why
	}
	return path
}

// command returns what locate finds of a declared command, which is looked for once in a build.
func (a *assembly) command(declared string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	found, known := a.g.commands[declared]
	if !known {
		found = locate(declared, a.Root)
		a.g.commands[declared] = found
	}
	return found
}

// Lacking is a server or tool that is left out, because its command can't be run on this machine.
type Lacking struct {
	// Kind is "server" or "tool".
	Kind string
	Name string
	// Command is the declared one. Why begins with egress.NotHere or egress.NotRunnable.
	Command, Why string

	// question is what the connect decision would be asked. The path of its command is the place where the
	// declaration puts it, and empty for a name that is looked up in PATH.
	question decision.ConnectInput
}

// reach returns the target that l would have, without a decision.
func (l Lacking) reach() Reach {
	return Reach{
		Kind: l.Kind, Name: l.Name, Target: l.question.Target, Observed: l.question.Observed, Missing: l.Why,
		Decision: decision.Decision{Point: decision.Connect}, Pos: l.question.Subject.Pos, asked: l.question,
	}
}

// Lacking returns the servers and tools whose command can't be run on this machine. No connect decision is
// requested about them.
func (g *Generation) Lacking() []Lacking { return slices.Clone(g.lacking) }

// trustedElsewhere returns the trust entries that name a command which can't be run on this machine. They may be
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

// lacks records a server or tool whose command can't be run on this machine.
func (a *assembly) lacks(subject decision.Subject, target trust.Target, why string) {
	command := *target.Command
	command.Path = egress.Place(command.Declared, a.Root)
	target.Command = &command
	question := a.question(subject, target)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.g.commands[command.Declared] = why // even if it has appeared in the meantime
	a.g.lacking = append(a.g.lacking, Lacking{subject.Kind, subject.Name, command.Declared, why, question})
}
