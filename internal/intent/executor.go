package intent

import "context"

// Executor reports whether a live process will execute the intent once it is released: its owner, or any
// process that serves the store (Config.Serves). The error is a *StoreError.
func (e *Effector) Executor(ctx context.Context, in Intent) (bool, error) {
	if in.Owner != "" && e.cfg.Store.Alive(in.Owner) {
		return true, nil
	}
	return e.cfg.Store.Servers(ctx)
}

// Settle waits until every intent that this process executes has ended or waits for its caller's input, or
// until ctx ends.
func (e *Effector) Settle(ctx context.Context) {
	for {
		done := e.unsettled()
		if done == nil {
			return
		}
		select {
		case <-done:
		case <-ctx.Done():
			return
		}
	}
}

// unsettled returns a channel that is closed when one of the running intents has ended or asks for input; nil
// if none runs.
func (e *Effector) unsettled() <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, l := range e.executions {
		l.mu.Lock()
		done := l.done
		l.mu.Unlock()
		select {
		case <-done: // it waits for input, or is about to be removed from executions
		default:
			return done
		}
	}
	return nil
}
