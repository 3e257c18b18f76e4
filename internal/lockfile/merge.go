package lockfile

import (
	"slices"
	"time"

	"github.com/catalogd/catalogd/registry"
)

// Merge returns the new lock of a server with this offer. A server without a lock is locked as offered.
// Otherwise a tool that is new, changed or gone keeps its locked state unless accept accepts it. waiting
// lists the changes that were not accepted, and those of unusable definitions. A tool that is no longer
// chosen is removed. The effect is the operator's and is kept; a tool that is locked for the first time is
// read where the server declares that it only reads, else write. The server's identity is updated with the
// first accepted tool.
//
// Unchanged tools keep their bytes with time and version, so the diff of the file shows only real changes.
func Merge(old Server, offer Offer, chosen, accept func(tool string) bool, now time.Time) (next Server, waiting []Change) {
	next = Server{Name: old.Name, Identity: old.Identity}
	first := len(old.Tools) == 0
	for _, c := range Compare(old, offer, chosen) {
		locked, was := old.Tool(c.Tool)
		d, is := offer.Tools[c.Tool]
		switch {
		case !chosen(c.Tool):
		case c.Kind == Identical:
			if accept(c.Tool) {
				next.Identity = offer.Identity
			}
			next.Tools = append(next.Tools, locked)
		case !first && !accept(c.Tool) || c.Kind == DefinitionUnusable:
			waiting = append(waiting, c)
			if was {
				next.Tools = append(next.Tools, locked)
			}
		case is:
			next.Identity = offer.Identity
			t := Tool{Definition: d, Effect: proposed(d), Locked: now.UTC().Format(time.RFC3339), From: offer.Identity.Version}
			if was {
				t.Effect = locked.Effect
			} else if before, ok := old.Tool(c.From); ok {
				t.Effect = before.Effect
			}
			next.Tools = append(next.Tools, t)
		}
	}
	return next, waiting
}

// proposed returns the effect of a tool that the operator has not decided on.
func proposed(d Definition) registry.Effect {
	if d.ReadOnly() {
		return registry.Read
	}
	return registry.Write
}

// SetEffect changes the effect of a locked tool, and reports whether it was another before.
func (s Server) SetEffect(tool string, effect registry.Effect) bool {
	i := slices.IndexFunc(s.Tools, func(t Tool) bool { return t.Name == tool })
	if i < 0 || s.Tools[i].Effect == effect {
		return false
	}
	s.Tools[i].Effect = effect
	return true
}
