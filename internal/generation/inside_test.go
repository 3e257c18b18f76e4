package generation

import (
	"github.com/catalogd/catalogd/decision"
)

// What tests may look at of a generation.

// Compiled is what was compiled for a tool, to compare; nil where nothing was.
func (g *Generation) Compiled(tool string) any {
	e, ok := g.registry.Lookup(tool)
	if !ok {
		return nil
	}
	c, ok := g.built[e.Declared().Digest]
	if !ok {
		return nil
	}
	return c.binding
}

// Question names what a list decision is asked about.
func Question(b decision.Branch, t decision.Tool) any { return askAbout(b)(t) }
