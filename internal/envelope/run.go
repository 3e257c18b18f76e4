package envelope

import (
	"context"
	"fmt"
	"sync"

	"github.com/catalogd/catalogd/registry"
)

// concurrent is how many calls of one envelope run at once.
const concurrent = 8

// Order says how the calls of an envelope are run. The zero value runs them concurrently, up to 8 at once, and all of
// them.
type Order struct {
	// Sequential runs one after the other, in the order of the envelope.
	Sequential bool
	// StopOnError begins no further call once one has failed. Calls that have begun are finished.
	StopOnError bool
}

// ParseOrder reads strategy (concurrent, the default, or sequential) and onError (continue, the default, or stop).
func ParseOrder(strategy, onError string) (o Order, err error) {
	switch strategy {
	case "", "concurrent":
	case "sequential":
		o.Sequential = true
	default:
		return o, fmt.Errorf("the strategy is concurrent or sequential, not %q", registry.Shown(strategy))
	}
	switch onError {
	case "", "continue":
	case "stop":
		o.StopOnError = true
	default:
		return o, fmt.Errorf("onError is continue or stop, not %q", registry.Shown(onError))
	}
	return o, nil
}

// Run runs calls and returns them as they ended, in their order. A call that was not begun because another had failed,
// or ctx had ended, has ended with registry.Cancelled, and its message names the other.
func Run(ctx context.Context, calls []Call, o Order, call func(context.Context, int, Call) registry.Call) []registry.Call {
	var (
		out     = make([]registry.Call, len(calls))
		mu      sync.Mutex
		stopped string // the call that failed first
		running sync.WaitGroup
		places  = make(chan struct{}, concurrent)
	)
	if o.Sequential {
		places = make(chan struct{}, 1)
	}
	for i, c := range calls {
		places <- struct{}{}
		mu.Lock()
		because := stopped
		mu.Unlock()
		says := ""
		switch {
		case ctx.Err() != nil:
			says = "it was not run, because the caller had cancelled the calls, or their time was up"
		case because != "":
			says = fmt.Sprintf("it was not run, because %s failed before it; correct that call, and repeat this one", because)
		}
		if says != "" {
			<-places
			out[i] = registry.Call{Tool: c.Name, Status: registry.Rejected, Err: &registry.Error{Code: registry.Cancelled, Unsent: true, Msg: says}}
			continue
		}
		running.Go(func() {
			defer func() { <-places }()
			out[i] = call(ctx, i, c)
			if o.StopOnError && failed(out[i]) {
				mu.Lock()
				defer mu.Unlock()
				if stopped == "" {
					stopped = fmt.Sprintf("call %d (%s)", i+1, registry.Shown(c.Name))
				}
			}
		})
	}
	running.Wait()
	return out
}
