package serve

import (
	"time"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/invoke"
	"github.com/catalogd/catalogd/registry"
)

// tell has each decision about the generation told to listener, with the generation's engine and name; nil tells nobody.
func (g *Generation) tell(listener func(decision.Event)) {
	if listener == nil {
		return
	}
	engine, id := g.engine, g.ID
	g.decided = func(e decision.Event) {
		e.Engine, e.Generation = engine, id
		listener(e)
	}
}

// note tells a decision that was made for no call.
func (g *Generation) note(point decision.Point, in any, d decision.Decision, asked time.Time) {
	if g.decided != nil {
		g.decided(decision.Event{
			ID: registry.NewCallID(), Time: asked, Point: point, Input: in, Decision: d, Took: time.Since(asked),
		})
	}
}

// noteList tells what a principal is shown of a branch, where any of that was decided anew.
func (g *Generation) noteList(b registry.Branch, p decision.Principal, visible map[string]bool, asked int, begin time.Time) {
	if g.decided == nil || asked == 0 {
		return
	}
	names := []string{}
	for _, e := range g.registry.Entries() {
		if visible[e.Name()] {
			names = append(names, e.Name())
		}
	}
	g.decided(decision.Event{
		ID: registry.NewCallID(), Time: begin, Point: decision.List, Principal: p.Name, Visible: names, Took: time.Since(begin),
		Input: decision.Viewer{Branch: invoke.PolicyBranch(b), Principal: p},
	})
}
