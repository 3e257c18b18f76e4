package registry

import (
	"context"
	"encoding/json"

	"github.com/catalogd/catalogd/contract"
)

// Listener hears what a tool says while it runs. Its functions are called in the order in which the tool spoke and never
// after the call has returned. They must not block: many calls can share the connection that they are called from.
type Listener struct {
	// Progress takes the params of a progress notification without their token, an object of at least one member. Nil
	// where the caller asked for no progress.
	Progress func(params json.RawMessage)
	// Message takes the params of a log message of Level (MCP's names, "debug" to "emergency") or above. Nil where the
	// caller asked for none.
	Message func(params json.RawMessage)
	Level   string
}

// Speaker is an Invoker whose tool can say something while it runs.
type Speaker interface {
	Invoker
	// InvokeHeard is Invoke for a caller that listens.
	InvokeHeard(ctx context.Context, args contract.Args, to Listener) (*Result, error)
}
