package generation

import (
	"maps"
	"slices"
	"time"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/invoke"
	"github.com/catalogd/catalogd/registry"
)

// onDecision sets a listener that receives each decision about the generation, with the generation's engine
// and ID; nil sets none.
func (g *Generation) onDecision(listener func(decision.Event)) {
	if listener == nil {
		return
	}
	engine, id := g.engine, g.ID
	g.decided = func(e decision.Event) {
		e.Engine, e.Generation = engine, id
		listener(e)
	}
}

// LogDecision sends an event about the generation to the listener, if there is one.
func (g *Generation) LogDecision(e decision.Event) {
	if g.decided != nil {
		g.decided(e)
	}
}

// logDecision logs a decision that was not made for a call.
func (g *Generation) logDecision(point decision.Point, in any, d decision.Decision, asked time.Time) {
	if g.decided != nil {
		g.decided(decision.Event{
			ID: registry.NewCallID(), Time: asked, Point: point, Input: in, Decision: d, Took: time.Since(asked),
		})
	}
}

// logList logs what a principal is shown of a branch, if any of that was decided anew.
func (g *Generation) logList(b registry.Branch, p decision.Principal, visible map[string]bool, asked int, begin time.Time) {
	if g.decided == nil || asked == 0 {
		return
	}
	names := []string{}
	for _, name := range slices.Sorted(maps.Keys(visible)) {
		if visible[name] {
			names = append(names, name)
		}
	}
	g.decided(decision.Event{
		ID: registry.NewCallID(), Time: begin, Point: decision.List, Principal: p.Name, Visible: names, Took: time.Since(begin),
		Input: decision.Viewer{Branch: invoke.PolicyBranch(b), Principal: p},
	})
}
