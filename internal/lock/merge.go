package lock

import (
	"slices"
	"time"

	"github.com/catalogd/catalogd/registry"
)

// Merge is what is to be locked of a server that offers this now. A server of which nothing is locked is taken as it is.
// Of another, a tool that is new, changed or gone stays as it is locked, unless accept says that it is taken; waiting are
// those that were not. A tool that nobody chooses any more is taken out. The effect is the operator's and stays; a tool
// that is locked for the first time is read only where the server says that it only reads, else write. Who the server says
// it is, is taken with the first tool that is.
//
// What didn't change keeps its bytes with time and version, so the file differs by what differs.
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

// proposed is the effect of a tool that an operator has not decided on.
func proposed(d Definition) registry.Effect {
	if d.ReadOnly() {
		return registry.Read
	}
	return registry.Write
}

// SetEffect gives a locked tool another effect, and reports whether it had another before.
func (s Server) SetEffect(tool string, effect registry.Effect) bool {
	i := slices.IndexFunc(s.Tools, func(t Tool) bool { return t.Name == tool })
	if i < 0 || s.Tools[i].Effect == effect {
		return false
	}
	s.Tools[i].Effect = effect
	return true
}
