package intent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/catalogd/catalogd/registry"
)

// Person is a person who sees, approves, refuses, cancels, retries or resolves intents.
type Person struct {
	Name string
	// Credential is the hash of the person's token; empty for the local operator.
	Credential string
	Groups     []string
	// Admin says that the person may see, refuse, cancel, retry and resolve every intent.
	Admin bool
}

// owns reports whether the person is the caller of the intent.
func (p Person) owns(in Intent) bool {
	return in.Principal == p.Name && in.Credential == p.Credential
}

// Sees reports whether the person may see an intent: the person's own, those that the person may approve, and
// for an admin all.
func (p Person) Sees(in Intent) bool {
	return p.owns(in) || p.Admin || in.Approval != nil && p.mayApprove(in) == nil
}

// NotAllowedError is the error for an action that the person may not take. Msg is the reason.
type NotAllowedError struct{ Msg string }

func (e *NotAllowedError) Error() string { return e.Msg }

// StateError is the error for an action that is not possible in the intent's state. Want says what is.
type StateError struct {
	ID    string
	State State
	Want  string
}

func (e *StateError) Error() string {
	return fmt.Sprintf("intent %s is %s; %s", e.ID, e.State, e.Want)
}

// mayApprove returns an error if the person may not approve the intent.
func (p Person) mayApprove(in Intent) error {
	a := in.Approval
	switch {
	case a == nil:
		return &NotAllowedError{"it needs no approval"}
	case p.owns(in) && a.Self:
		return nil
	case p.Name == in.Principal: // even with another token
		return &NotAllowedError{"its own caller may not approve it (self); it takes somebody of " + groups(a.Groups)}
	case slices.ContainsFunc(p.Groups, func(g string) bool { return slices.Contains(a.Groups, g) }):
		return nil
	}
	return &NotAllowedError{
		fmt.Sprintf(
			"%s may not approve it: it takes somebody of %s, with a token that says so",
			p.Name,
			groups(a.Groups),
		),
	}
}

func groups(names []string) string {
	if len(names) == 0 {
		return "no group"
	}
	return "group " + strings.Join(names, " or ")
}

// Get returns an intent that the person may see; the error for any other wraps ErrUnknown.
func (e *Effector) Get(ctx context.Context, id string, by Person) (Intent, error) {
	in, err := e.cfg.Store.Get(ctx, id)
	if err == nil && !by.Sees(in) {
		return Intent{}, ErrUnknown
	}
	return in, err
}

// Approve releases an intent that waits for an approval; if the approval has expired, it ends the intent as
// Expired instead. A released intent is executed by its owner if that is alive, else by a process that serves
// the store or that calls Resume. why may be empty.
func (e *Effector) Approve(ctx context.Context, id string, by Person, why string) (Intent, error) {
	return e.decide(ctx, id, by, func(in Intent) (Change, error) {
		if err := by.mayApprove(in); err != nil {
			return Change{}, err
		}
		now := e.cfg.Store.Now()
		if !in.Expires.IsZero() && now.After(in.Expires) {
			return expired(), nil
		}
		given := *in.Approval
		given.By, given.ByGroups, given.At = by.Name, by.Groups, now
		return Change{Steps: []Step{{State: Released, By: by.Name, Why: why}}, Approval: &given}, nil
	})
}

// Refuse ends an intent that waits for an approval as Refused.
func (e *Effector) Refuse(ctx context.Context, id string, by Person, why string) (Intent, error) {
	return e.decide(ctx, id, by, func(in Intent) (Change, error) {
		if err := by.mayApprove(in); err != nil && !by.Admin {
			return Change{}, err
		}
		msg := by.Name + " refused it"
		if why != "" {
			msg += ": " + why
		}
		return Change{
			Steps:   []Step{{State: Refused, By: by.Name, Why: why}},
			Outcome: &Outcome{Code: registry.ApprovalRefused, Message: msg + ". Nothing was run"},
		}, nil
	})
}

func (e *Effector) decide(
	ctx context.Context,
	id string,
	by Person,
	decide func(Intent) (Change, error),
) (Intent, error) {
	return e.person(ctx, id, by, func(in Intent) (Change, error) {
		if in.State != AwaitingApproval {
			return Change{}, &StateError{id, in.State, "only what is awaiting_approval is approved or refused"}
		}
		return decide(in)
	})
}

// Cancel ends an intent whose effect has not begun as Cancelled. Its caller and admins may do so.
func (e *Effector) Cancel(ctx context.Context, id string, by Person, why string) (Intent, error) {
	e.mu.Lock()
	l := e.executions[id]
	e.mu.Unlock()
	if l != nil && (by.owns(l.record()) || by.Admin) && l.withdraw(&withdrawal{by.Name, why}) {
		<-l.done
		if in, err := e.cfg.Store.Get(ctx, id); err != nil || in.State.Ended() {
			return in, err
		}
	}
	return e.person(ctx, id, by, func(in Intent) (Change, error) {
		switch {
		case !by.owns(in) && !by.Admin:
			return Change{}, &NotAllowedError{"only its caller or an admin may cancel it"}
		case in.State.Begun() || in.Attempts > 0 && !in.State.Ended():
			return Change{}, &StateError{
				id,
				in.State,
				"its effect may have begun, so it can't be cancelled; its outcome will be recorded",
			}
		case in.State.Ended():
			return Change{}, &StateError{id, in.State, "it has ended"}
		}
		return Change{
			Steps:   []Step{{State: Cancelled, By: by.Name, Why: why}},
			Outcome: &Outcome{Code: registry.Cancelled, Message: by.Name + " cancelled it. Nothing was run"},
		}, nil
	})
}

// Retry releases an intent again that is Failed or Unknown; it is executed as after Approve. The admin is
// responsible for the effect not happening twice.
func (e *Effector) Retry(ctx context.Context, id string, by Person, why string) (Intent, error) {
	return e.person(ctx, id, by, func(in Intent) (Change, error) {
		switch {
		case !by.Admin:
			return Change{}, &NotAllowedError{"only an admin may retry"}
		case in.State != Failed && in.State != Unknown:
			return Change{}, &StateError{id, in.State, "only what has failed or is unknown is retried"}
		}
		return Change{Steps: []Step{{State: Released, By: by.Name, Why: why}}}, nil
	})
}

// Resolve records what an admin has found out about an Unknown intent: Succeeded or Failed.
func (e *Effector) Resolve(ctx context.Context, id string, by Person, as State, why string) (Intent, error) {
	return e.person(ctx, id, by, func(in Intent) (Change, error) {
		switch {
		case as != Succeeded && as != Failed:
			return Change{}, errors.New("an intent is resolved as succeeded or failed")
		case !by.Admin:
			return Change{}, &NotAllowedError{"only an admin may resolve"}
		case in.State != Unknown:
			return Change{}, &StateError{id, in.State, "only what is unknown is resolved"}
		}
		msg := fmt.Sprintf("%s found out that it %s", by.Name, as)
		if why != "" {
			msg += ": " + why
		}
		o := Outcome{Message: msg}
		if as == Failed {
			o.Code = registry.BindingFailed
		}
		return Change{Steps: []Step{{State: as, By: by.Name, Why: why}}, Outcome: &o}, nil
	})
}

// person applies a person's change to an intent; if the person may not see the intent, the error is
// ErrUnknown. If another process changes the intent meanwhile, change is called again.
func (e *Effector) person(
	ctx context.Context,
	id string,
	by Person,
	change func(Intent) (Change, error),
) (Intent, error) {
	for {
		in, err := e.cfg.Store.Get(ctx, id)
		if err != nil {
			return Intent{}, err
		}
		if !by.Sees(in) {
			return Intent{}, ErrUnknown
		}
		c, err := change(in)
		if err != nil {
			return in, err
		}
		err = e.cfg.Store.Change(ctx, id, in.State, c)
		var moved *MovedError
		if errors.As(err, &moved) {
			continue
		}
		if err != nil {
			return in, err
		}
		if in, err = e.cfg.Store.Get(ctx, id); err != nil {
			return in, err
		}
		for _, step := range c.Steps {
			e.moved(in, step)
		}
		e.wakeRun()
		return in, nil
	}
}
