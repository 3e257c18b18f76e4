package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/generation"
	"github.com/catalogd/catalogd/internal/intent"
	"github.com/catalogd/catalogd/internal/token"
	"github.com/catalogd/catalogd/invoke"
)

// EffectsConfig configures the execution of calls of tools with a side effect.
type EffectsConfig struct {
	// Store is the store of intents. If its Dir is empty, such calls are refused.
	Store  intent.Config
	Limits intent.Limits
	// Wait is how long a call waits for its effect.
	Wait time.Duration
	// Pin returns the serving generation.
	Pin func() (g *generation.Generation, release func())
	// Tokens determine who may still act; nil if the daemon has no tokens.
	Tokens *token.Store
	Log    *slog.Logger
}

// Effects executes calls of tools with a side effect. The first such call, or Run, opens the store; while it
// can't be opened, such calls are refused and everything else continues. All methods are safe for concurrent
// use. Close must be called.
type Effects struct {
	cfg EffectsConfig

	opening  sync.Mutex // held while the store is opened, which can take seconds
	mu       sync.Mutex // guards the fields below; not held while the store is read or written
	store    *intent.Store
	effector *intent.Effector
	failed   error // the last error of opening the store
	closed   bool

	counting sync.Mutex
	moves    map[intent.State]uint64 // number of transitions into each state, in this process
}

// NewEffects returns Effects whose store is not open yet.
func NewEffects(cfg EffectsConfig) *Effects { return &Effects{cfg: cfg} }

// Invoke returns what the call path needs to execute such calls; nil if there is no store.
func (x *Effects) Invoke() *invoke.Effects {
	if x == nil || x.cfg.Store.Dir == "" {
		return nil
	}
	return &invoke.Effects{Effector: x.Effector, Now: x.now, Wait: x.cfg.Wait}
}

// Effector returns the effector, and opens the store on first use.
func (x *Effects) Effector(ctx context.Context) (*intent.Effector, error) {
	if e, err := x.opened(); e != nil || err != nil {
		return e, err
	}
	x.opening.Lock()
	defer x.opening.Unlock()
	if e, err := x.opened(); e != nil || err != nil {
		return e, err // another caller was first
	}
	store, err := intent.Open(context.WithoutCancel(ctx), x.cfg.Store)
	if err != nil {
		x.cfg.Log.Error(
			"tools with a side effect are refused: their calls can't be written down",
			"intents",
			x.cfg.Store.Dir,
			"error",
			err,
		)
		x.mu.Lock()
		x.failed = err
		x.mu.Unlock()
		return nil, err
	}
	e := intent.NewEffector(intent.EffectorConfig{
		Store: store, Begin: x.openTurn, Server: x.server, Moved: x.moved, Log: x.cfg.Log, Limits: x.cfg.Limits,
	})
	if err := e.Recover(context.WithoutCancel(ctx)); err != nil {
		x.cfg.Log.Error("what dead processes left can't be ended yet", "intents", x.cfg.Store.Dir, "error", err)
	}
	x.mu.Lock()
	closed := x.closed
	if !closed {
		x.failed, x.store, x.effector = nil, store, e
	}
	x.mu.Unlock()
	if closed {
		e.Close(ctx)
		return nil, errors.Join(errEnds, store.Close())
	}
	return e, nil
}

var errEnds = errors.New("the process ends")

// opened returns the effector of an open store; nil if the store must be opened first.
func (x *Effects) opened() (*intent.Effector, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case x.closed:
		return nil, errEnds
	case x.effector != nil:
		return x.effector, nil
	case x.cfg.Store.Dir == "":
		return nil, errors.New("no intents are kept: name a directory with --intents")
	}
	return nil, nil
}

// Store returns the store, opened on first use.
func (x *Effects) Store(ctx context.Context) (*intent.Store, error) {
	if _, err := x.Effector(ctx); err != nil {
		return nil, err
	}
	return x.store, nil
}

// Run executes approved intents until ctx ends. While the store can't be opened, it retries.
func (x *Effects) Run(ctx context.Context) {
	if x == nil || x.cfg.Store.Dir == "" {
		return
	}
	for wait := time.Second; ; wait = min(2*wait, time.Minute) {
		if e, err := x.Effector(ctx); err == nil {
			e.Run(ctx)
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// Close drains what has begun until ctx ends, and closes the store.
func (x *Effects) Close(ctx context.Context) error {
	if x == nil {
		return nil
	}
	x.mu.Lock()
	x.closed = true
	x.mu.Unlock()
	// A store that is being opened is closed by whoever opens it.
	x.opening.Lock()
	defer x.opening.Unlock()
	x.mu.Lock()
	e, store := x.effector, x.store
	x.mu.Unlock()
	if e == nil {
		return nil
	}
	e.Close(ctx)
	return store.Close()
}

// openTurn begins the execution of an intent that no call waits for.
func (x *Effects) openTurn(ctx context.Context, in intent.Intent) intent.Turn {
	return x.Invoke().Begin(ctx, in)
}

// server returns the upstream server of an intent's tool; empty for none.
func (x *Effects) server(in intent.Intent) string {
	g, release := x.cfg.Pin()
	defer release()
	if e, ok := g.Registry().Lookup(in.Tool); ok {
		return e.Server()
	}
	return ""
}

// now returns the call path that an intent's branch has now for its principal, with the principal's current
// data. vouched is the principal that an embedding program vouches for, if the intent has no token.
func (x *Effects) now(
	in intent.Intent,
	vouched *decision.Principal,
) (path *invoke.Path, who decision.Principal, release func(), err error) {
	who, err = x.principal(in, vouched)
	if err != nil {
		return nil, who, nil, err
	}
	g, release := x.cfg.Pin()
	path, ok := g.PathFor(in.Address(), who)
	switch {
	case !ok && in.Session != "":
		err = fmt.Errorf("the conversation branch %q has ended: it was deleted, has expired, or its branch %q is not served any more", in.Session, in.Branch)
	case !ok || path.View.Declared().Name != in.Branch:
		err = fmt.Errorf("branch %q is not served any more", in.Branch)
	}
	if err != nil {
		release()
		return nil, who, nil, err
	}
	return path, who, release, nil
}

func (x *Effects) principal(in intent.Intent, vouched *decision.Principal) (decision.Principal, error) {
	switch {
	case in.Credential == "" && vouched != nil && vouched.Name == in.Principal:
		return *vouched, nil
	case in.Credential == "" && in.Principal == decision.Local().Name:
		return decision.Local(), nil
	case in.Credential == "":
		return decision.Principal{}, fmt.Errorf("the token of %s is no longer valid", in.Principal)
	case x.cfg.Tokens == nil:
		return decision.Principal{}, fmt.Errorf(
			"%s has called with a token, and this process has none to hold that against (--tokens)",
			in.Principal,
		)
	}
	var hash token.Hash
	if err := hash.UnmarshalText([]byte(in.Credential)); err != nil {
		return decision.Principal{}, fmt.Errorf("the record of who has called can't be read: %w", err)
	}
	t := x.cfg.Tokens.Get(hash)
	if t == nil || t.Name != in.Principal || !t.Opens(in.Branch) {
		return decision.Principal{}, fmt.Errorf(
			"the token of %s is not good for branch %q any more",
			in.Principal,
			in.Branch,
		)
	}
	return token.Bearer(t).Principal, nil
}

// moved writes a transition of an intent to the decision log and the operator's log.
func (x *Effects) moved(in intent.Intent, step intent.Step) {
	x.counting.Lock()
	if x.moves == nil {
		x.moves = map[intent.State]uint64{}
	}
	x.moves[step.State]++
	x.counting.Unlock()
	level := slog.LevelInfo
	if step.State == intent.Unknown {
		level = slog.LevelWarn
	}
	x.cfg.Log.Log(
		context.Background(),
		level,
		"intent",
		"id",
		in.ID,
		"branch",
		in.Branch,
		"tool",
		in.Tool,
		"principal",
		in.Principal,
		"state",
		step.State,
		"attempt",
		in.Attempts,
		"by",
		step.By,
	)
	// The serving policy decides what may be logged.
	g, release := x.cfg.Pin()
	defer release()
	g.LogDecision(decision.NewTransition(
		fmt.Sprintf("%s-%s-%d", in.ID, step.State, len(in.History)), step.At, in.Digest,
		decision.Transition{
			Branch: in.Branch, Tool: in.Tool, Principal: in.Principal, Intent: in.ID, State: string(step.State),
			Attempt: in.Attempts, By: step.By, Why: step.Why,
		},
	))
}

// EffectsStatus is the state of the intents.
type EffectsStatus struct {
	// Dir is the store's directory, and Durability what an answer to a call survives (power or process).
	Dir        string            `json:"dir"`
	Durability intent.Durability `json:"durability"`
	// States counts the intents by state; absent if the store has not been opened.
	States map[intent.State]int64 `json:"states,omitempty"`
	// Moves counts the transitions into each state by this process.
	Moves map[intent.State]uint64 `json:"-"`
	// Running counts the intents that this process executes or will execute. Paused means that no execution
	// begins.
	Running int  `json:"running"`
	Paused  bool `json:"paused,omitempty"`
	// Failed is the error that keeps intents from being written; empty if there is none.
	Failed string `json:"failed,omitempty"`
}

// Status returns the state of the intents; nil if there is no store.
func (x *Effects) Status() *EffectsStatus {
	if x == nil || x.cfg.Store.Dir == "" {
		return nil
	}
	x.mu.Lock()
	e, store, failed := x.effector, x.store, x.failed
	x.mu.Unlock()
	s := &EffectsStatus{Dir: x.cfg.Store.Dir, Durability: x.cfg.Store.Durability}
	x.counting.Lock()
	s.Moves = maps.Clone(x.moves)
	x.counting.Unlock()
	if e != nil {
		s.Running, s.Paused = e.Running(), e.Paused()
		var err error
		if s.States, err = store.Counts(context.Background()); err != nil {
			failed = err
		}
	}
	if failed != nil {
		s.Failed = failed.Error()
	}
	return s
}
