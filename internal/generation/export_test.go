package generation

import (
	"context"
)

// BoundViews has a generation that nobody has used keep less for principals.
func (g *Generation) BoundViews(views, tools int) { g.views.most, g.views.mostTools = views, tools }

// KeptViews counts what a generation keeps for principals: views, and the tools in those that differ.
func (g *Generation) KeptViews() (views, tools int) {
	g.views.mu.Lock()
	defer g.views.mu.Unlock()
	return len(g.views.by), g.views.tools
}

// Denies reports whether the policy would deny one of the ways out at least, with these trust entries alone.
func (g *Generation) Denies(ctx context.Context, entries map[string]any, all []Reach) (bool, error) {
	hypothetical, err := g.engine.WithTrust(entries)
	if err != nil {
		return false, err
	}
	for _, r := range all {
		if d, err := hypothetical.Connect(ctx, r.asked); err != nil || !d.Allow {
			return true, err
		}
	}
	return false, nil
}
