package catalogd

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/catalogd/catalogd/contract/dialect"
	"github.com/catalogd/catalogd/internal/envelope"
	"github.com/catalogd/catalogd/invoke"
	"github.com/catalogd/catalogd/registry"
)

// ActOrder says how Act runs several calls: concurrently, up to 8 at once, and all of them, by default.
type ActOrder = envelope.Order

// Act runs the tool calls of a model provider's message, and returns their results as the provider takes them. message is
// a call, a list of calls, the message that has them or the whole response, in the form of OpenAI (Chat Completions or
// Responses), Anthropic or Gemini, or {"function": "name", "arguments": {}}; docs/agents.md has an example of each.
//
// Each call takes the path that calls over MCP take, and a call that fails is a result that the model can read. The error
// is that of a message that can't be read, of a branch that does not exist, or of a key that can't be one. In matters only
// for tools that were offered in openai-strict. With Keyed, several calls of a message have the keys KEY/1, KEY/2 and so
// on. A reload between the calls of one message does not reach them.
func (b Branch) Act(ctx context.Context, message []byte, order ActOrder) (json.RawMessage, error) {
	batch, err := envelope.Read(message)
	if err != nil {
		return nil, err
	}
	named := b.dialect
	if named == dialect.MCP { // the default of a Branch
		named = ""
	}
	d, err := batch.Format.Dialect(named)
	if err != nil {
		return nil, err
	}
	if err := batch.CheckKey(b.key); err != nil {
		return nil, fmt.Errorf("for %d calls, the idempotency key can't be %w", len(batch.Calls), err)
	}
	g, release := b.catalog.daemon.Pin()
	defer release()
	path, ok := g.PathFor(b.name, b.principal)
	if !ok {
		return nil, g.UnknownBranchOf(b.name, b.principal)
	}
	calls := envelope.Run(ctx, batch.Calls, order, func(ctx context.Context, i int, c envelope.Call) registry.Call {
		return path.Call(ctx, invoke.Request{
			Tool: c.Name, Arguments: c.Arguments, Dialect: d, Principal: b.principal, Key: batch.Key(b.key, i),
		})
	})
	for i, c := range batch.Calls {
		if calls[i].ID == "" {
			calls[i] = path.Refuse(invoke.Request{Tool: c.Name, Principal: b.principal}, calls[i].Err)
		}
	}
	return batch.Results(calls), nil
}
