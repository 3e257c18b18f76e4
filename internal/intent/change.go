package intent

import (
	"context"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/catalogd/catalogd/registry"
)

// scope is what a key is good for.
type scope struct{ branch, principal, tool string }

// scopes are those whose ids the writer knows. None is ever removed.
type scopes struct{ ids map[scope]int64 }

func (c *scopes) keep(fresh map[scope]int64) {
	if c.ids == nil || len(c.ids) > 10_000 {
		c.ids = map[scope]int64{}
	}
	for sc, id := range fresh {
		c.ids[sc] = id
	}
}

// scope is the id of a scope, which is made where there is none; 0 after an error.
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
		return nil, fmt.Errorf("%q is no id of an intent: want 32 hexadecimal digits", id)
	}
	return b, nil
}

// Stage writes an intent down as new: in State Staged or AwaitingApproval, and this process's. The store
// fills in Seq and Staged, and ID and History where they are empty.
//
// Nothing is written, and made is false, where the caller's intent is there already: where Key names one of
// the same principal, branch and tool, which it does for KeyRetention and until that intent has ended; or,
// without a key, where the caller was given a handle (Handed) for the same arguments and that intent has not
// ended. A key that names one with other arguments is a *ConflictError.
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
		in.Seq = b.insert(&s.stmts.stage, in.State.number(), sc, id, in.Owner, b.now, nanoseconds(in.Expires),
			in.Handed, in.Repeatable, in.Digest, key, in.Credential, in.Print, in.Policy, in.Generation, approval, history, args)
		if b.err == nil && in.Seq == 0 {
			return fmt.Errorf("there is an intent %s already", in.ID)
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

// stageable says why an intent can't be staged.
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
		return fmt.Errorf("intent %s can't be staged: its history ends with %q, and it is %q", in.ID, state, in.State)
	case in.Branch == "" || in.Tool == "" || in.Digest == "":
		return fmt.Errorf("intent %s can't be staged: it says no branch, no tool or no digest", in.ID)
	case in.State == AwaitingApproval && in.Approval == nil:
		return fmt.Errorf("intent %s can't be staged: it awaits an approval and says of whom", in.ID)
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

// already is the intent that a new one would repeat; nil where there is none.
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

// Change is what becomes of an intent.
type Change struct {
	// Steps are its next states, in order; each must be allowed after the one before (State.MayBecome). The
	// store fills in At. Without one the state stays.
	Steps []Step
	// Owner is unchanged where nil; else this process, or nobody ("").
	Owner *string
	// Outcome comes with a last step that ends the intent, and is unchanged where nil. One that goes on loses
	// it. A result over MaxResult is kept as its size and digest.
	Outcome *Outcome
	// Approval replaces it; unchanged where nil.
	Approval *Approval
	// Handed says that the caller was given a handle.
	Handed bool
	// Expires replaces it; unchanged where nil.
	Expires *time.Time
}

// stepError says that a state can't follow another.
type stepError struct{ from, to State }

func (e *stepError) Error() string {
	if e.from == "" {
		return fmt.Sprintf("no intent begins as %s", e.to)
	}
	return fmt.Sprintf("no intent that is %s can become %s", e.from, e.to)
}

// change is a Change that was checked.
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
		return nil, fmt.Errorf("%q is no state of an intent", from)
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
		return nil, fmt.Errorf("intent %s has an outcome, and has not ended (%s)", id, ch.to)
	case c.Outcome != nil:
		ch.outcome, err = s.storedOutcome(*c.Outcome)
	case from.Ended() && !ch.to.Ended():
		ch.outcome, err = s.storedOutcome(Outcome{})
	}
	return ch, err
}

// Change brings an intent from a state further. It is a *MovedError where the intent is not in that state any
// more, and an *OwnedError where another living process has begun its effect (State.Begun), or where it would
// be attempted by, or taken away from, a process that is not this one. None of them changes anything.
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
	if !b.row(&b.s.stmts.standing, []any{ch.id}, &number, &owner) {
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
	// It is not this process's so far.
	if ch.from.Begun() || ch.Owner != nil {
		if b.s.Alive(owner) {
			return &OwnedError{ch.name, owner}
		}
	}
	if ch.attempts > 0 && (ch.Owner == nil || *ch.Owner == "") {
		return &OwnedError{ch.name, owner}
	}
	if !b.write(ch, history, true) && b.err == nil {
		b.err = fmt.Errorf("%w: intent %s could be read and not changed", errDamaged, ch.name)
	}
	return nil
}

// write changes the row, if it is in the state and this process's, or anybody's.
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

// Claim makes this process the owner of a Released intent that a person has approved or retries and that no other live
// process owns, and returns it. One in another state is a *MovedError; a live owner's, and one that no person released, an
// *OwnedError.
func (s *Store) Claim(ctx context.Context, id string) (got Intent, err error) {
	self := s.Owner()
	ch, err := s.check(id, Released, Change{Owner: &self})
	if err != nil {
		return Intent{}, err
	}
	err = s.do(ctx, "claim", func(b *batch) error {
		in, err := b.get(ch.id)
		if err != nil || b.err != nil {
			return err
		}
		if in.State == Released && !in.byPerson() {
			return &OwnedError{id, in.Owner}
		}
		if err := b.change(ch); err != nil {
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

// byPerson reports whether a person has approved the intent, or retries it.
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
