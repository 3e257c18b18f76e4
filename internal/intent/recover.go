package intent

import (
	"context"
	"errors"

	"github.com/catalogd/catalogd/registry"
)

// unfinishedIntent is what Recover reads of an intent that has not ended.
type unfinishedIntent struct {
	id      []byte
	state   State
	owner   string
	expires int64
}

// Recover ends the unfinished intents of dead owners, and intents whose approval has expired, and returns
// those it changed. Of a dead owner's intents:
//   - one that has begun (Attempted, AwaitingInput, or Released for another attempt) becomes Unknown
//   - one that was only Staged or Released becomes Cancelled
//   - one that a person has released loses its owner, so that any process can Claim it
//   - one that awaits an approval stays until it expires
//
// Call it after Open and at intervals.
func (s *Store) Recover(ctx context.Context) ([]Intent, error) {
	// The owners are read before the intents: a later owner is alive, and the next call handles one that dies
	// after this.
	owners, err := s.owners()
	if err != nil {
		return nil, s.failed("recover", ownersName, err)
	}
	unfinished, err := s.unfinished(ctx)
	if err != nil {
		return nil, s.readFailed(ctx, err)
	}
	live := map[string]bool{"": false}
	var todo []unfinishedIntent
	for _, f := range unfinished {
		alive, known := live[f.owner]
		if !known {
			alive = s.Alive(f.owner)
			live[f.owner] = alive
		}
		if (alive || f.owner == "") && f.state != AwaitingApproval {
			continue
		}
		todo = append(todo, f)
	}
	var changed []Intent
	for len(todo) > 0 {
		n := min(len(todo), 100)
		part := todo[:n]
		todo = todo[n:]
		var done []Intent
		err := s.do(ctx, "recover", func(b *batch) error {
			for _, f := range part {
				in, err := b.recover(f)
				if err != nil || b.err != nil {
					return err
				}
				if in != nil {
					done = append(done, *in)
				}
			}
			return nil
		})
		if err != nil {
			return changed, err
		}
		changed = append(changed, done...)
	}
	var errs []error
	for _, o := range owners {
		if !o.live {
			errs = append(errs, s.forget(o.name))
		}
	}
	return changed, s.wrap("recover", ownersName, errors.Join(errs...))
}

// unfinished returns all intents that have not ended.
func (s *Store) unfinished(ctx context.Context) ([]unfinishedIntent, error) {
	rows, err := s.read.QueryContext(ctx, "SELECT id, state, owner, expires FROM intents WHERE state IN (?, ?, ?, ?, ?)",
		Staged.number(), AwaitingApproval.number(), Released.number(), Attempted.number(), AwaitingInput.number())
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []unfinishedIntent
	for rows.Next() {
		var f unfinishedIntent
		var number int
		if err := rows.Scan(&f.id, &number, &f.owner, &f.expires); err != nil {
			return nil, err
		}
		if f.state, err = stateOf(number); err != nil {
			return nil, err
		}
		all = append(all, f)
	}
	return all, rows.Err()
}

// ended returns the change that ends an intent without a result.
func ended(to State, code registry.ErrorCode, why string) Change {
	return Change{Steps: []Step{{State: to, Why: why}}, Outcome: &Outcome{Code: code, Message: why}}
}

// expired returns the change that ends an intent whose approval has expired.
func expired() Change {
	return ended(Expired, registry.ApprovalExpired, "nobody approved it in time; nothing was run")
}

// recover recovers one intent, and returns it if it was changed. It does nothing if the intent has changed
// since it was read.
func (b *batch) recover(f unfinishedIntent) (*Intent, error) {
	in, err := b.get(f.id)
	if errors.Is(err, ErrUnknown) || b.err != nil {
		return nil, nil
	}
	if in.State != f.state || in.Owner != f.owner {
		return nil, nil
	}
	nobody := ""
	var c Change
	switch {
	case in.State == AwaitingApproval:
		if at := nanoseconds(in.Expires); at == 0 || at > b.now {
			return nil, nil
		}
		c = expired()
	case in.State == Released && in.byPerson():
		c = Change{Owner: &nobody}
	case in.State.Begun() || in.Attempts > 0:
		c = ended(Unknown, registry.OutcomeUnknown, "its process ended before the outcome was known")
	default:
		c = ended(Cancelled, registry.Cancelled, "its process ended before it was executed")
	}
	ch, err := b.s.check(in.ID, in.State, c)
	if err != nil {
		return nil, err
	}
	if err := b.change(ch); err != nil || b.err != nil {
		return nil, err
	}
	in, err = b.get(f.id)
	return &in, err
}
