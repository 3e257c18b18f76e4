package generation

import (
	"context"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/lockfile"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// reach adds the connect decision about the tool's target or its server.
func (x *explaining) reach(ctx context.Context, t registry.Tool) error {
	for _, r := range x.g.reaches {
		own := r.Kind == "tool" && r.Name == t.Name
		server := r.Kind == "server" && t.Binding.MCP != nil && r.Name == t.Binding.MCP.Server
		if !own && !server {
			continue
		}
		step, err := x.g.engine.WithBuildDeadline().Explain(ctx, decision.Connect, r.asked)
		if err != nil {
			return err
		}
		x.Steps = append(x.Steps, Step{Explanation: step})
		if server {
			x.Server, x.ServerAt = r.Name, r.Pos
		}
	}
	return nil
}

// Locked is the state of a tool in catalog.lock.json.
type Locked struct {
	lockfile.Change
	// Effect is the one that the operator set; At is when the tool was locked, RFC 3339 in UTC; Version is
	// the server's at that time.
	Effect  registry.Effect `json:"effect"`
	At      string          `json:"at"`
	Version string          `json:"version"`
	// Pos is the tool's position in the lock.
	Pos problem.Position `json:"pos"`
	// Quarantined is the reason why the tool is hidden; empty if it is not.
	Quarantined string `json:"quarantined,omitempty"`
}

// lock adds the locked state of a discovered tool, and its discover decision.
func (x *explaining) lock(ctx context.Context, t registry.Tool) error {
	if t.Binding.MCP == nil {
		return nil
	}
	at := remote{t.Binding.MCP.Server, t.Binding.MCP.Tool}
	server, _ := x.g.inputs.locked.Server(at.server)
	locked, ok := server.Tool(at.tool)
	asked, discovers := x.g.questions[at]
	if !ok || !discovers {
		return nil
	}
	x.Lock = &Locked{
		Change: lockfile.Change{
			Server: at.server, Tool: at.tool, Kind: lockfile.Kind(asked.Change), From: asked.From,
			Details: asked.Details, Findings: asked.Findings,
			Locked: locked.Digest,
		},
		Effect: locked.Effect, At: locked.Locked, Version: locked.From, Pos: locked.Pos,
	}
	for _, q := range x.g.quarantined {
		if q.Server == at.server && q.Tool == at.tool {
			x.Lock.Change, x.Lock.Quarantined = q.Change, q.why()
		}
	}
	step, err := x.g.engine.WithBuildDeadline().Explain(ctx, decision.Discover, asked)
	if err != nil {
		return err
	}
	x.Steps = append(x.Steps, Step{Explanation: step})
	return nil
}

// ReachExplanation explains the connect decision about one server or tool: the input, and the rules that
// answered.
type ReachExplanation struct {
	Reach
	Explanation decision.Explanation `json:"explanation"`
}

// ExplainReach evaluates again, with tracing, the connect decision of the server and of the tool of that
// name. It returns two explanations if both exist, and an error if none does.
func (g *Generation) ExplainReach(ctx context.Context, name string) ([]ReachExplanation, error) {
	var found []ReachExplanation
	for _, r := range g.reaches {
		if r.Name != name {
			continue
		}
		x, err := g.engine.WithBuildDeadline().Explain(ctx, decision.Connect, r.asked)
		if err != nil {
			return nil, err
		}
		found = append(found, ReachExplanation{r, x})
	}
	if len(found) == 0 {
		return nil, g.unreachedName(name)
	}
	return found, nil
}
