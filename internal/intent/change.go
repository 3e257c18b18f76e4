package intent

import (
	"context"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/catalogd/catalogd/registry"
)

// scope is the scope of an idempotency key.
type scope struct{ branch, principal, tool string }

// scopes caches the row ids of scopes. Rows of scopes are never deleted.
type scopes struct{ ids map[scope]int64 }

func (c *scopes) keep(fresh map[scope]int64) {
	if c.ids == nil || len(c.ids) > 10_000 {
		c.ids = map[scope]int64{}
	}
	for sc, id := range fresh {
		c.ids[sc] = id
	}
}

// scope returns the row id of a scope, and inserts the row if there is none; 0 after an error.
func (b *batch) scope(sc scope) int64 {
	if id := b.s.scopes.ids[sc]; id != 0 {
		return id
	}
	if id := b.fresh[sc]; id != 0 {
		return id
	}
	var id int64
	if !b.row(&b.s.stmts.scope, []any{sc.principal, sc.branch, sc.tool}, &id) {
		id = b.insert(&b.s.stmts.makeScope, sc.branch, sc.principal, sc.tool)
	}
	if b.fresh == nil {
		b.fresh = map[scope]int64{}
	}
	b.fresh[sc] = id
	return id
}

func idBytes(id string) ([]byte, error) {
	b, err := hex.DecodeString(id)
	if err != nil || len(b) != 16 || hex.EncodeToString(b) != id {
		return nil, fmt.Errorf("%q is not an id of an intent: want 32 hexadecimal digits", id)
	}
	return b, nil
}

// Stage adds an intent in State Staged or AwaitingApproval, with this process as its owner. The store sets
// Seq and Staged, and ID and History if they are empty.
//
// If the call repeats an earlier one, Stage returns the existing intent with made false. It does if the same
// principal, branch and tool have an intent with the same Key that was staged less than KeyRetention ago or
// has not ended; or, without a key, if the caller was given a handle (Handed) for the same arguments and that
// intent has not ended. The error is a *ConflictError if the intent with the same key has other arguments.
func (s *Store) Stage(ctx context.Context, in Intent) (got Intent, made bool, err error) {
	if in.ID == "" {
		in.ID = newID()
	}
	id, err := idBytes(in.ID)
	if err != nil {
		return Intent{}, false, err
	}
	if err := stageable(in); err != nil {
		return Intent{}, false, err
	}
	approval, err := storeApproval(in.Approval)
	if err != nil {
		return Intent{}, false, err
	}
	var key, args any
	if in.Key != "" {
		key = in.Key
	}
	if in.Arguments != nil {
		args = string(in.Arguments)
	}
	in.Owner = s.Owner()
	err = s.do(ctx, "stage", func(b *batch) error {
		sc := b.scope(scope{in.Branch, in.Principal, in.Tool})
		there, err := b.already(sc, in)
		if b.err != nil || err != nil {
			return err
		}
		if there != nil {
			got = *there
			return nil
		}
		in.Staged = timeOf(b.now)
		if len(in.History) == 0 {
			in.History = []Step{{State: in.State, At: in.Staged}}
		}
		history, err := storeSteps(in.History, 0)
		if err != nil {
			return err
		}
		in.Seq = b.insert(&s.stmts.stage, in.State.number(), sc, id, in.Session, in.Owner, b.now, nanoseconds(in.Expires),
			in.Handed, in.Repeatable, in.Digest, key, in.Credential, in.Fingerprint, in.Policy, in.Generation, approval, history, args)
		if b.err == nil && in.Seq == 0 {
			return fmt.Errorf("an intent %s exists already", in.ID)
		}
		b.moved(0, in.State.number())
		got, made = in, true
		return nil
	})
	if err != nil {
		return Intent{}, false, err
	}
	return got, made, nil
}

// stageable returns an error if an intent can't be staged.
func stageable(in Intent) error {
	state := State("")
	for _, step := range in.History {
		if !state.MayBecome(step.State) {
			return fmt.Errorf("intent %s can't be staged: %w", in.ID, &stepError{state, step.State})
		}
		state = step.State
	}
	switch {
	case in.State != Staged && in.State != AwaitingApproval:
		return fmt.Errorf("intent %s can't be staged as %q", in.ID, in.State)
	case len(in.History) > 0 && state != in.State:
		return fmt.Errorf("intent %s can't be staged: its history ends with %q, but its state is %q", in.ID, state, in.State)
	case in.Branch == "" || in.Tool == "" || in.Digest == "":
		return fmt.Errorf("intent %s can't be staged: its branch, tool or digest is empty", in.ID)
	case in.State == AwaitingApproval && in.Approval == nil:
		return fmt.Errorf("intent %s can't be staged: it awaits an approval but has none", in.ID)
	case in.Attempts != 0 || !in.Ended.IsZero() || in.Outcome != (Outcome{}):
		return fmt.Errorf("intent %s can't be staged: it was attempted before", in.ID)
	}
	if in.Key != "" {
		if err := registry.CheckIdempotencyKey(in.Key); err != nil {
			return fmt.Errorf("an idempotency key can't be %w", err)
		}
	}
	return nil
}

// already returns the intent that a new one repeats (see Stage); nil if there is none.
func (b *batch) already(sc int64, in Intent) (*Intent, error) {
	var r rowOf
	switch {
	case in.Key != "" && b.row(&b.s.stmts.byKey, []any{sc, in.Key}, r.into(true)...):
		if r.ended != 0 && b.now-r.staged >= int64(b.s.cfg.KeyRetention) {
			return nil, nil
		}
	case in.Key == "" && b.row(&b.s.stmts.byHanded, []any{sc, in.Digest}, r.into(true)...):
	default:
		return nil, nil
	}
	there, err := r.intent()
	if err != nil {
		b.err = err
		return nil, nil
	}
	if there.Digest != in.Digest {
		return nil, &ConflictError{Key: in.Key, Intent: there.ID}
	}
	return &there, nil
}

// Change is a change of an intent. Nil fields leave the intent's field unchanged.
type Change struct {
	// Steps are the next states, in order; each must be allowed after the one before (State.MayBecome). The
	// store sets At. Without steps the state stays.
	Steps []Step
	// Owner is the new owner: this process, or nobody ("").
	Owner *string
	// Outcome may be set only if the last step ends the intent. A step from an ended state to one that is not
	// ended clears it. A result over Config.MaxResult is stored as its size and digest.
	Outcome  *Outcome
	Approval *Approval
	// Handed records that the caller was given a handle; false leaves the field unchanged.
	Handed  bool
	Expires *time.Time
}

// stepError is the error for a transition that MayBecome does not allow.
type stepError struct{ from, to State }

func (e *stepError) Error() string {
	if e.from == "" {
		return fmt.Sprintf("an intent can't begin in state %s", e.to)
	}
	return fmt.Sprintf("state %s can't follow state %s", e.to, e.from)
}

// change is a checked Change.
type change struct {
	Change
	id       []byte
	name     string // the id
	from, to State
	attempts int
	approval any
	outcome  []any // nil: unchanged
}

func (s *Store) check(id string, from State, c Change) (*change, error) {
	ch := &change{Change: c, name: id, from: from, to: from}
	var err error
	if ch.id, err = idBytes(id); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	if from.number() == 0 {
		return nil, fmt.Errorf("%q is not a state of an intent", from)
	}
	for _, step := range c.Steps {
		if !ch.to.MayBecome(step.State) {
			return nil, fmt.Errorf("intent %s: %w", id, &stepError{ch.to, step.State})
		}
		ch.to = step.State
		if step.State == Attempted {
			ch.attempts++
		}
	}
	if c.Owner != nil && *c.Owner != "" && *c.Owner != s.Owner() {
		return nil, fmt.Errorf("intent %s can't be given to another owner", id)
	}
	if ch.approval, err = storeApproval(c.Approval); err != nil {
		return nil, err
	}
	switch {
	case c.Outcome != nil && (len(c.Steps) == 0 || !ch.to.Ended()):
		return nil, fmt.Errorf("intent %s can't have an outcome in state %s, as it has not ended", id, ch.to)
	case c.Outcome != nil:
		ch.outcome, err = s.storedOutcome(*c.Outcome)
	case from.Ended() && !ch.to.Ended():
		ch.outcome, err = s.storedOutcome(Outcome{})
	}
	return ch, err
}

// Change changes an intent that is in state from. The error is a *MovedError if the intent is in another
// state; an *OwnedError if another live process owns it and has begun its effect (State.Begun) or c changes
// the owner, or if a step to Attempted would leave it owned by another process or nobody; and wraps
// ErrUnknown if there is no such intent. After an error nothing has changed.
func (s *Store) Change(ctx context.Context, id string, from State, c Change) error {
	ch, err := s.check(id, from, c)
	if err != nil {
		return err
	}
	return s.do(ctx, "change", func(b *batch) error { return b.change(ch) })
}

func (b *batch) change(ch *change) error {
	mine := ch.from.Begun() || ch.attempts > 0 || ch.Owner != nil
	history, err := storeSteps(ch.Steps, b.now)
	if err != nil {
		return err
	}
	if b.write(ch, history, !mine) || b.err != nil {
		return nil
	}
	var number int
	var owner string
	if !b.row(&b.s.stmts.stateAndOwner, []any{ch.id}, &number, &owner) {
		return ErrUnknown
	}
	have, err := stateOf(number)
	if err != nil {
		b.err = err
		return nil
	}
	if have != ch.from {
		return &MovedError{ch.name, ch.from, have}
	}
	// The owner is not this process.
	if ch.from.Begun() || ch.Owner != nil {
		if b.s.Alive(owner) {
			return &OwnedError{ch.name, owner}
		}
	}
	if ch.attempts > 0 && (ch.Owner == nil || *ch.Owner == "") {
		return &OwnedError{ch.name, owner}
	}
	if !b.write(ch, history, true) && b.err == nil {
		b.err = fmt.Errorf("%w: intent %s could be read but not changed", errDamaged, ch.name)
	}
	return nil
}

// write changes the row if it is in state from and, unless anybody is set, owned by this process. It reports
// whether it did.
func (b *batch) write(ch *change, history string, anybody bool) bool {
	var owner, ended, expires any
	if ch.Owner != nil {
		owner = *ch.Owner
	}
	if len(ch.Steps) > 0 {
		ended = int64(0)
		if ch.to.Ended() {
			ended = b.now
		}
	}
	if ch.Expires != nil {
		expires = nanoseconds(*ch.Expires)
	}
	args := make([]any, 0, 17)
	args = append(args, ch.to.number(), history, owner, ch.attempts, ch.Handed, ch.approval, expires, ended)
	st := &b.s.stmts.change
	if ch.outcome != nil {
		args, st = append(args, ch.outcome...), &b.s.stmts.end
	}
	args = append(args, ch.id, ch.from.number(), b.s.Owner(), anybody)
	if b.exec(st, args...) == 0 {
		return false
	}
	b.moved(ch.from.number(), ch.to.number())
	return true
}

// Claim makes this process the owner of an intent that a person has released (by an approval or a retry) and
// that no other live process owns, and returns it. The error is a *MovedError if its state is not Released,
// and an *OwnedError if a live process owns it or no person released it.
func (s *Store) Claim(ctx context.Context, id string) (Intent, error) {
	return s.own(ctx, "claim", id, Released, func(b *batch, ch *change, in Intent) error {
		if in.State == Released && !in.byPerson() {
			return &OwnedError{id, in.Owner}
		}
		return b.change(ch)
	})
}

// own makes this process the owner of an intent in the state from by write, which gets the intent as it is, and
// returns it.
func (s *Store) own(
	ctx context.Context, what, id string, from State, write func(*batch, *change, Intent) error,
) (got Intent, err error) {
	self := s.Owner()
	ch, err := s.check(id, from, Change{Owner: &self})
	if err != nil {
		return Intent{}, err
	}
	err = s.do(ctx, what, func(b *batch) error {
		in, err := b.get(ch.id)
		if err != nil || b.err != nil {
			return err
		}
		if err := write(b, ch, in); err != nil {
			return err
		}
		got = in
		got.Owner = self
		return nil
	})
	if err != nil {
		return Intent{}, err
	}
	return got, nil
}

// byPerson reports whether a person has approved the intent or made its last step.
func (in *Intent) byPerson() bool {
	return in.Approval != nil && in.Approval.By != "" || len(in.History) > 0 && in.History[len(in.History)-1].By != ""
}

func (b *batch) get(id []byte) (Intent, error) {
	var r rowOf
	if !b.row(&b.s.stmts.byID, []any{id}, r.into(true)...) {
		return Intent{}, ErrUnknown
	}
	in, err := r.intent()
	if err != nil {
		b.err = err
	}
	return in, nil
}
