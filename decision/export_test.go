package decision

import (
	"context"

	"github.com/catalogd/catalogd/decision/internal/grant"
	"github.com/catalogd/catalogd/decision/trust"
)

// ConnectAnew is Connect by an evaluation, whatever is remembered.
func (e *Engine) ConnectAnew(ctx context.Context, in ConnectInput) (trust.Trust, Decision) {
	d, out := e.decide(ctx, Connect, in)
	if !d.Allow {
		return trust.Trust{}, d
	}
	return trust.New(grant.Issue(), in.Target, out.terms), d
}

// LogAnew is Log by an evaluation, whatever is remembered.
func (e *Engine) LogAnew(ctx context.Context, event any) (Logging, error) {
	return e.askLog(ctx, event)
}
