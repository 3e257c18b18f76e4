package registry

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/internal/intent/attempt"
)

// What an Entry runs, it runs here: nothing else hands out its Invoker.

// Invoke runs a read tool once, with arguments that have passed its contract. A tool with a side effect is
// refused, by name (EffectorRequired). See Invoker for results and errors.
func (e *Entry) Invoke(ctx context.Context, args contract.Args, to Listener) (*Result, error) {
	if e.tool.Effect != Read {
		return nil, &Error{
			Code: EffectorRequired, Unsent: true,
			Msg: fmt.Sprintf("tool %q has a side effect (effect: %q); only the effector may run it. Nothing was run", e.tool.Name, e.tool.Effect),
		}
	}
	return e.bound.Invoker.Invoke(ctx, Invocation{Args: args, To: to})
}

// Execute runs a write tool once, for an attempt of this tool with these arguments that was not used before;
// any other attempt, and a tool without a side effect, is refused (Internal), and nothing is run.
func (e *Entry) Execute(ctx context.Context, a attempt.Attempt, args contract.Args, to Listener) (*Result, error) {
	err := a.Take(e.tool.Name, args.Digest())
	if e.tool.Effect != Write {
		err = fmt.Errorf("tool %q has no side effect (effect: %q), so the effector does not run it", e.tool.Name, e.tool.Effect)
	}
	if err != nil {
		return nil, &Error{Code: Internal, Unsent: true, Msg: "the effector may not run this; nothing was run", Err: err}
	}
	return e.bound.Invoker.Invoke(ctx, Invocation{Args: args, To: to, Attempt: a})
}

// Print names all that decides what a run with given arguments does: the declaration, or what is locked of
// it, and what it reaches and on which terms. What was agreed to of one print says nothing of another.
func (e *Entry) Print() string {
	sum := sha256.Sum256([]byte(e.tool.Digest + "\n" + string(e.tool.Effect) + "\n" + e.bound.Reach))
	return hex.EncodeToString(sum[:])
}

// Plan says what a run with these arguments would do, and does nothing. Secrets are masked as ***.
func (e *Entry) Plan(args contract.Args) (Plan, error) { return e.bound.Invoker.Plan(args) }

// Close drops the connections that the tool keeps for its next run; runs that are under way finish.
func (e *Entry) Close() {
	if c, ok := e.bound.Invoker.(interface{ Close() }); ok {
		c.Close()
	}
}
