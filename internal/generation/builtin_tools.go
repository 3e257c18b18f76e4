package generation

import (
	"context"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/invoke"
	"github.com/catalogd/catalogd/registry"
)

// view returns what a branch shows a principal: the visible tools and, if one has a side effect, the built-in
// tools for intents. decided is false if the policy did not decide on the built-in tools; these are then left
// out.
func (g *Generation) view(
	ctx context.Context,
	engine *decision.Engine,
	b registry.Branch,
	p decision.Principal,
	visible map[string]bool,
) (v *registry.View, decided bool) {
	v, decided = registry.NewView(g.registry, b, func(e *registry.Entry) bool { return visible[e.Name()] }), true
	if !writes(v) {
		return v, true
	}
	var shown []*registry.Entry
	for _, e := range invoke.Builtins() {
		if !leavesIn(b, e) {
			continue
		}
		d := listed(
			ctx,
			engine,
			decision.ListInput{Branch: invoke.PolicyBranch(b), Tool: invoke.PolicyTool(e), Principal: p},
		)
		if d.Allow {
			shown = append(shown, e)
		}
		decided = decided && answered(d)
	}
	return v.With(shown...), decided
}

// builtinTool returns the built-in tool of a name.
func builtinTool(name string) (*registry.Entry, bool) {
	for _, e := range invoke.Builtins() {
		if e.Name() == name {
			return e, true
		}
	}
	return nil, false
}

// Tool returns a tool of the catalog, or a built-in one.
func (g *Generation) Tool(name string) (*registry.Entry, bool) {
	if e, ok := g.registry.Lookup(name); ok {
		return e, true
	}
	return builtinTool(name)
}

// NoWrites is why a branch shows no built-in tool, as AccessCell.Why has it.
const NoWrites = "no tool with a side effect is shown"

// writes reports whether a view has a tool with a side effect.
func writes(v *registry.View) bool {
	for _, e := range v.Entries() {
		if e.Effect() != registry.Read {
			return true
		}
	}
	return false
}

// leavesIn reports whether a branch's select and hide leave a tool in; select is not about the built-in tools.
func leavesIn(b registry.Branch, e *registry.Entry) bool {
	if invoke.Builtin(e.Name()) {
		return b.Hide == nil || !b.Hide.Matches(*e.Declared())
	}
	return b.Admits(*e.Declared())
}
