package catalogd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/buildcache"
	"github.com/catalogd/catalogd/internal/httpapi"
	"github.com/catalogd/catalogd/internal/intent"
	"github.com/catalogd/catalogd/registry"
)

// Intents, and the errors of their store.
type (
	// Intent is the durable record of one call with a side effect.
	Intent = intent.Intent
	// IntentState is the state of an intent. IntentStates returns the closed list.
	IntentState = intent.State
	// IntentStep is one state in an intent's history.
	IntentStep = intent.Step
	// IntentApproval is the approval that an intent needs or has got.
	IntentApproval = intent.Approval
	// IntentOutcome says how an intent ended.
	IntentOutcome = intent.Outcome
	// IntentFilter says which intents to list. An empty field means any.
	IntentFilter = intent.Filter
	// IntentAction is what a person may do with an intent, such as "approve".
	IntentAction = intent.Action

	// IntentNotAllowedError says that the person may not do that with the intent.
	IntentNotAllowedError = intent.NotAllowedError
	// IntentStateError says that the intent's state does not allow that.
	IntentStateError = intent.StateError
	// IntentMovedError says that another process executes the intent, or has executed it.
	IntentMovedError = intent.MovedError
	// IntentOwnedError says that the intent is left to another live process, which has not begun it.
	IntentOwnedError = intent.OwnedError
)

// ErrUnknownIntent is the error for an id of which the person may see no intent.
var ErrUnknownIntent = intent.ErrUnknown

// IntentStates returns all states, in the order of an intent's life.
func IntentStates() []IntentState { return intent.States() }

// IntentStore reads and changes the intents of a catalog on behalf of one person: the local operator, who is
// an admin, or the principal that As names. Errors other than those above say that the store can't be read or
// written. All methods are safe for concurrent use.
type IntentStore struct {
	principal decision.Principal
	catalog   *Catalog // nil where the store was opened without one
	effector  func(context.Context) (*intent.Effector, error)
	close     func() error
}

func (s *IntentStore) person() intent.Person {
	return intent.Person{Name: s.principal.Name, Groups: s.principal.Groups, Admin: s.principal.Admin}
}

// Intents returns the store of an open catalog.
func (c *Catalog) Intents() *IntentStore {
	return &IntentStore{
		principal: decision.Local(),
		catalog:   c,
		effector:  c.effects.Effector,
		close:     func() error { return nil },
	}
}

// OpenIntents opens the store of the catalog that cfg names, without the catalog; Dir or Build, State and
// Intents count. It executes nothing, but ends what dead processes have left. It does not create a store: the
// error of a missing one is fs.ErrNotExist. Close must be called.
func OpenIntents(ctx context.Context, cfg Config) (*IntentStore, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	at, err := cfg.store()
	switch {
	case err != nil:
		return nil, err
	case at.Dir == "":
		return nil, errors.New("no intents are kept: name a directory for them, or a state directory")
	}
	if _, err := os.Stat(at.Dir); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("no intents were ever kept in %s: %w", at.Dir, fs.ErrNotExist)
	}
	at.Serves = false
	store, err := intent.Open(ctx, at)
	if err != nil {
		return nil, err
	}
	e := intent.NewEffector(intent.EffectorConfig{Store: store, Log: cfg.Log})
	if err := e.Recover(ctx); err != nil {
		cfg.Log.Error("what dead processes left can't be ended yet", "intents", at.Dir, "error", err)
	}
	return &IntentStore{
		principal: decision.Local(),
		effector:  func(context.Context) (*intent.Effector, error) { return e, nil },
		close:     func() error { e.Close(context.Background()); return store.Close() },
	}, nil
}

// store returns the configuration of the store of intents. Its Dir is empty where none are kept.
func (c Config) store() (intent.Config, error) {
	i := c.Intents
	if i.Dir == "" && c.State != "" {
		root, err := c.root()
		if err != nil {
			return intent.Config{}, err
		}
		i.Dir = buildcache.Intents(c.State, root)
	}
	if i.Dir != "" {
		dir, err := filepath.Abs(i.Dir)
		if err != nil {
			return intent.Config{}, err
		}
		i.Dir = dir
	}
	return intent.Config{
		Dir: i.Dir, Serves: !c.Once,
		Durability: intent.Durability(cmp.Or(i.Durability, string(intent.Power))),
		MaxAge:     i.MaxAge, MaxCount: i.MaxCount, MaxBytes: i.MaxBytes, MaxResult: i.MaxResult, Log: c.Log,
	}, nil
}

// Close closes a store of OpenIntents. The store of a catalog is closed with the catalog.
func (s *IntentStore) Close() error { return s.close() }

// As returns the store as a principal reads and changes it, in place of the operator. The caller of As
// vouches for the principal: no token is asked for, and intents of calls with a token do not count as the
// principal's own.
func (s *IntentStore) As(p decision.Principal) *IntentStore {
	if p.Groups == nil {
		p.Groups = []string{}
	}
	as := *s
	as.principal = p
	return &as
}

// List returns a page of the intents that match a filter and that the person may see, newest first and
// without results. before is the IntentFilter.Before of the next page, 0 where this is the last. A Limit of 0
// means 100. A page may hold fewer intents than the limit, or none, and still be followed by another.
func (s *IntentStore) List(ctx context.Context, f IntentFilter) (page []Intent, before int64, err error) {
	e, err := s.effector(ctx)
	if err != nil {
		return nil, 0, err
	}
	f.Limit = cmp.Or(f.Limit, 100)
	return e.Page(ctx, f, s.person())
}

// Get returns an intent, with its result as the policy let it out when it was recorded. Result asks the
// policy again.
func (s *IntentStore) Get(ctx context.Context, id string) (Intent, error) {
	e, err := s.effector(ctx)
	if err != nil {
		return Intent{}, err
	}
	return e.Get(ctx, id, s.person())
}

// Await returns an intent when it has ended, or as it is after d or at the end of ctx.
func (s *IntentStore) Await(ctx context.Context, id string, d time.Duration) (Intent, error) {
	e, err := s.effector(ctx)
	if err != nil {
		return Intent{}, err
	}
	in, err := e.Get(ctx, id, s.person())
	if err != nil {
		return Intent{}, err
	}
	return e.Await(ctx, in, d)
}

// Result returns the recorded result of an intent as the serving policy lets it out to the person now; nil
// where none is recorded. withheld says why a recorded one is not shown. Only the store of an open catalog
// has a policy to ask; any other returns what is recorded.
func (s *IntentStore) Result(ctx context.Context, in Intent) (result *registry.Result, withheld string) {
	if s.catalog == nil || in.Result == nil {
		return in.Result, ""
	}
	g, release := s.catalog.daemon.Pin()
	defer release()
	return g.KeptResult(ctx, s.principal, in)
}

// Approve releases an intent that waits for an approval. It is then executed by the live process that staged
// it or that serves the store (Executed); where there is none, call Execute.
func (s *IntentStore) Approve(ctx context.Context, id, why string) (Intent, error) {
	return s.act(ctx, id, why, (*intent.Effector).Approve)
}

// Refuse ends an intent that waits for an approval.
func (s *IntentStore) Refuse(ctx context.Context, id, why string) (Intent, error) {
	return s.act(ctx, id, why, (*intent.Effector).Refuse)
}

// Cancel withdraws an intent whose effect has not begun.
func (s *IntentStore) Cancel(ctx context.Context, id, why string) (Intent, error) {
	return s.act(ctx, id, why, (*intent.Effector).Cancel)
}

// Retry releases an intent again that has failed or whose outcome is unknown. The person answers for its
// effect not happening twice. It is executed as after Approve.
func (s *IntentStore) Retry(ctx context.Context, id, why string) (Intent, error) {
	return s.act(ctx, id, why, (*intent.Effector).Retry)
}

// Resolve ends an intent whose outcome is unknown, as succeeded or failed, whichever a person has found out.
func (s *IntentStore) Resolve(ctx context.Context, id string, as IntentState, why string) (Intent, error) {
	return s.act(ctx, id, why, func(
		e *intent.Effector, ctx context.Context, id string, by intent.Person, why string,
	) (Intent, error) {
		return e.Resolve(ctx, id, by, as, why)
	})
}

// act does what is a method of the effector.
func (s *IntentStore) act(
	ctx context.Context, id, why string,
	act func(*intent.Effector, context.Context, string, intent.Person, string) (Intent, error),
) (Intent, error) {
	if err := httpapi.CheckWhy(why); err != nil {
		return Intent{}, err
	}
	e, err := s.effector(ctx)
	if err != nil {
		return Intent{}, err
	}
	return act(e, ctx, id, s.person(), why)
}

// May returns what the person may do with an intent in its present state.
func (s *IntentStore) May(in Intent) []IntentAction { return s.person().May(in) }

// Executed reports whether a live process executes the intent once it is released: the one that staged it, or
// one that serves the store.
func (s *IntentStore) Executed(ctx context.Context, in Intent) (bool, error) {
	e, err := s.effector(ctx)
	if err != nil {
		return false, err
	}
	return e.Executor(ctx, in)
}

// Execute executes a released intent in this process, and returns it when it has ended, or as it is after
// wait; it then runs on until it has ended or the catalog is closed (Settle). Only the store of an open
// catalog can do that. An IntentMovedError or IntentOwnedError says that another process executes it, or has.
func (s *IntentStore) Execute(ctx context.Context, id string, wait time.Duration) (Intent, error) {
	if s.catalog == nil {
		return Intent{}, errors.New("only an open catalog executes intents")
	}
	e, err := s.effector(ctx)
	if err != nil {
		return Intent{}, err
	}
	got, err := e.Resume(ctx, id, wait)
	if err == nil {
		err = got.Err
	}
	if err != nil {
		return Intent{}, err
	}
	return e.Get(ctx, id, s.person())
}

// Settle returns when this process executes no intent any more, apart from those that wait for their caller's
// input, or when ctx ends.
func (s *IntentStore) Settle(ctx context.Context) error {
	e, err := s.effector(ctx)
	if err != nil {
		return err
	}
	e.Settle(ctx)
	return ctx.Err()
}
