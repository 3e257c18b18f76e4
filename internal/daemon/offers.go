package daemon

import (
	"context"
	"slices"
	"time"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/generation"
)

// follow rebuilds the serving generation when the offer of a server changes, until the daemon ends.
func (d *Daemon) follow(l *generation.Live) {
	for {
		select {
		case <-d.ctx.Done():
			return
		case <-l.PassthroughChanged:
			if d.cfg.PassthroughChanged != nil {
				d.cfg.PassthroughChanged()
			}
			continue
		case <-l.Updated:
			if all := l.TakeUpdates(); d.cfg.ResourcesUpdated != nil {
				d.cfg.ResourcesUpdated(all)
			}
			continue
		case <-l.Changed:
		}
		if d.reconsider(true) {
			continue
		}
		// Meanwhile Admit refuses tools that may not be called.
		select {
		case <-d.ctx.Done():
			return
		case <-time.After(5 * time.Second):
			generation.Signal(l.Changed)
		}
	}
}

// reconsider decides again on what servers offer, which may have changed, and on what is undecided. It
// reports whether that succeeded.
func (d *Daemon) reconsider(offered bool) (ok bool) {
	ctx, a, err := d.builds.take(d.ctx, func(string) bool { return false })
	if err != nil {
		return true // the daemon ends
	}
	_, ended := d.builds.run(ctx, a, func() Outcome { ok = d.rebuild(ctx, a, offered); return Outcome{} })
	d.scheduleRetry(false)
	return !ended || ok
}

// rebuild builds the serving generation again from the same files. No adopt decision is requested, because a
// policy that refused would keep in use what is to be hidden; except if formerly undecided subjects are now
// decided, because no adoption has covered these.
func (d *Daemon) rebuild(ctx context.Context, a *build, offered bool) bool {
	serving := d.current.Load()
	a.reads(serving.ID)
	next, problems := d.cfg.Builder.Rebuild(ctx, serving)
	if next == nil {
		if ctx.Err() == nil {
			d.cfg.Log.Error("what servers offer could not be decided on; their changed tools can't be called", "first", problems.Err())
		}
		return ctx.Err() != nil
	}
	next.Since, next.Adopted, next.Read = serving.Since, serving.Adopted, serving.Read
	next.Warnings = append(slices.Clone(serving.Read), next.Warnings...).Sorted()
	decided := len(next.Undecided()) < len(serving.Undecided())
	if decided {
		if refused := generation.Adopt(ctx, serving, next, decision.TestSummary{Failures: []string{}}); refused != nil {
			next.Retire()
			d.refuse(ctx, &FailedStatus{Digest: next.ID, Reason: "adoption_denied", Problems: append(next.Warnings, refused...)})
			return true
		}
	}
	if !offered && !decided || !d.builds.commit(a) {
		next.Retire()
		return true
	}
	changed := d.swap(serving, next)
	switch {
	case decided:
		d.cfg.Log.Info("the policy has decided what it had not decided in time", "generation", next.ID, "undecided", len(next.Undecided()), "changed", changed)
	case len(next.Quarantined()) == 0 && len(changed) == 0:
		d.cfg.Log.Debug("servers offer what is locked", "generation", next.ID)
	default:
		d.cfg.Log.Info("servers offer something else", "generation", next.ID, "quarantined", len(next.Quarantined()), "changed", changed)
	}
	return true
}
