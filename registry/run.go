package registry

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/internal/intent/attempt"
)

// Invoke runs a read tool once, with arguments that its contract has accepted. For a tool with a side effect
// it returns EffectorRequired. See Invoker for results and errors.
func (e *Entry) Invoke(ctx context.Context, args contract.Args, to Listener) (*Result, error) {
	if e.tool.Effect != Read {
		return nil, &Error{
			Code: EffectorRequired, Unsent: true,
			Msg: fmt.Sprintf("tool %q has a side effect (effect: %q); only the effector may run it. Nothing was run", e.Name(), e.tool.Effect),
		}
	}
	return e.bound.Invoker.Invoke(ctx, Invocation{Args: args, To: to})
}

// Execute runs a write tool once, with an unused attempt for this tool and these arguments. With any other
// attempt, and for a read tool, it runs nothing and returns an *Error with code Internal.
func (e *Entry) Execute(ctx context.Context, a attempt.Attempt, args contract.Args, to Listener) (*Result, error) {
	err := a.Take(e.tool.Name, args.Digest())
	if e.tool.Effect != Write {
		err = fmt.Errorf("tool %q has no side effect (effect: %q), so the effector does not run it", e.Name(), e.tool.Effect)
	}
	if err != nil {
		return nil, &Error{Code: Internal, Unsent: true, Msg: "internal error: no valid attempt for this call; nothing was run", Err: err}
	}
	return e.bound.Invoker.Invoke(ctx, Invocation{Args: args, To: to, Attempt: a})
}

// Fingerprint returns a digest of everything that determines what a run with given arguments does: the declaration
// or locked definition, what the branch narrows of its arguments, the effect, the target, and the terms of its trust. An approval is valid only for the
// fingerprint for which it was given.
func (e *Entry) Fingerprint() string {
	text := e.tool.Digest + "\n" + string(e.tool.Effect) + "\n" + e.bound.Reach
	if e.narrowing != "" {
		text += "\n" + e.narrowing
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// Plan returns what a run with these arguments would do, without running it. Secrets are masked as ***.
func (e *Entry) Plan(args contract.Args) (Plan, error) { return e.bound.Invoker.Plan(args) }

// Close closes the idle connections of the tool. Runs in progress finish.
func (e *Entry) Close() {
	if c, ok := e.bound.Invoker.(interface{ Close() }); ok {
		c.Close()
	}
}
