package intent

import "context"

// Executor reports whether a live process executes the intent once it is released: the one that staged it, or
// one that serves the store. Its error is a StoreError.
func (e *Effector) Executor(ctx context.Context, in Intent) (bool, error) {
	if in.Owner != "" && e.cfg.Store.Alive(in.Owner) {
		return true, nil
	}
	return e.cfg.Store.Servers(ctx)
}

// Settle returns when nothing is executed here any more but what waits for its caller's input, or when ctx
// ends.
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

// unsettled is closed when one of what is executed here has ended or asks for input; nil where nothing is
// executed.
func (e *Effector) unsettled() <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, l := range e.lives {
		l.mu.Lock()
		done := l.done
		l.mu.Unlock()
		select {
		case <-done: // it asks, or is about to be forgotten
		default:
			return done
		}
	}
	return nil
}
