package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/catalogd/catalogd"
	"github.com/catalogd/catalogd/internal/httpapi"
	"github.com/catalogd/catalogd/internal/intent"
)

type intentsCmd struct {
	List    intentsListCmd    `cmd:"" help:"List calls with a side effect, the newest first."`
	Show    intentsShowCmd    `cmd:"" help:"Show one with its history and outcome."`
	Approve intentsApproveCmd `cmd:"" help:"Approve one that waits for it. It is executed by the daemon, or by this command if there is none."`
	Refuse  intentsRefuseCmd  `cmd:"" help:"Refuse one that waits for an approval."`
	Cancel  intentsCancelCmd  `cmd:"" help:"Cancel one whose effect has not begun."`
	Retry   intentsRetryCmd   `cmd:"" help:"Execute one again that has failed or is unknown."`
	Resolve intentsResolveCmd `cmd:"" help:"Record the real outcome of one that is unknown."`
	Pause   intentsPauseCmd   `cmd:"" help:"Stop a daemon from beginning any until resume; those that have begun continue."`
	Resume  intentsResumeCmd  `cmd:"" help:"Let a daemon begin them again."`
}

// intentsFlags select the store whose intents a command works on.
type intentsFlags struct {
	Server string `placeholder:"URL" help:"Ask a running daemon, as the bearer of the token in the environment as CATALOGD_TOKEN, such as http://127.0.0.1:8420, or here for the one that serves this directory; by default the environment's CATALOGD_SERVER. Without any the catalog's own store is opened, as the operating-system user."`
	Dir    string `short:"C" help:"The catalog's root; by default the nearest one, from the working directory upwards."`
	Build  string `placeholder:"FILE" help:"The file that catalogd build wrote, of a daemon that serves one."`
	State  string `placeholder:"DIR" help:"The state directory, by default catalogd's own in the user's state directory."`
	intentFlags
}

// config returns the configuration of the store to open.
func (f intentsFlags) config(e *env) (catalogd.Config, error) {
	cfg := catalogd.Config{Build: f.Build, Version: version(), Log: e.log}
	if f.Build == "" {
		var err error
		if cfg.Dir, err = e.root(f.Dir); err != nil {
			return cfg, err
		}
		if info, err := os.Stat(cfg.Dir); err != nil || !info.IsDir() {
			return cfg, fmt.Errorf("there is no directory %s; name the catalog's root with -C, or a daemon with --server", cfg.Dir)
		}
	}
	f.place(&cfg)
	return cfg, nil
}

func (f intentsFlags) place(cfg *catalogd.Config) {
	stateFlags{State: f.State}.keep(cfg)
	f.set(cfg)
}

// intentsAt gives access to intents: those of a daemon, or those of a local store.
type intentsAt interface {
	// list returns one page of matching intents. show waits for the end, for at most wait.
	list(ctx context.Context, f catalogd.IntentFilter) (httpapi.IntentPage, error)
	show(ctx context.Context, id string, wait time.Duration) (httpapi.ShownIntent, error)
	// act applies a person's decision; as is for intent.ToResolve.
	act(ctx context.Context, id string, action intent.Action, why, as string) (httpapi.ShownIntent, error)
}

// server returns the address of the daemon to ask, empty if the local store is meant.
func (f intentsFlags) server(e *env) (string, error) {
	return e.server(f.Server, placeFlags{f.Dir, f.Build, f.State}, false)
}

// at returns the intents that the flags select. The caller must call close.
func (f intentsFlags) at(e *env) (at intentsAt, close func() error, err error) {
	if f.Server, err = f.server(e); err != nil {
		return nil, nil, err
	}
	if f.Server != "" {
		at, err = newRemoteIntents(f.Server)
		return at, func() error { return nil }, err
	}
	cfg, err := f.config(e)
	if err != nil {
		return nil, nil, err
	}
	store, err := catalogd.OpenIntents(e.ctx, cfg)
	if err != nil {
		return nil, nil, err
	}
	return localIntents{store}, store.Close, nil
}

// localIntents accesses a store on this machine.
type localIntents struct{ store *catalogd.IntentStore }

func (l localIntents) list(ctx context.Context, f catalogd.IntentFilter) (page httpapi.IntentPage, err error) {
	all, before, err := l.store.List(ctx, f)
	page = httpapi.IntentPage{Intents: []httpapi.ListedIntent{}, Before: before}
	for _, in := range all {
		page.Intents = append(page.Intents, httpapi.NewListedIntent(in, l.store.May(in)))
	}
	return page, err
}

func (l localIntents) show(ctx context.Context, id string, wait time.Duration) (httpapi.ShownIntent, error) {
	in, err := l.store.Await(ctx, id, wait)
	return l.shown(ctx, in, err)
}

func (l localIntents) act(ctx context.Context, id string, action intent.Action, why, as string) (httpapi.ShownIntent, error) {
	var in catalogd.Intent
	var err error
	switch action {
	case intent.ToApprove:
		in, err = l.store.Approve(ctx, id, why)
	case intent.ToRefuse:
		in, err = l.store.Refuse(ctx, id, why)
	case intent.ToCancel:
		in, err = l.store.Cancel(ctx, id, why)
	case intent.ToRetry:
		in, err = l.store.Retry(ctx, id, why)
	case intent.ToResolve:
		in, err = l.store.Resolve(ctx, id, catalogd.IntentState(as), why)
	}
	var notAllowed *catalogd.IntentNotAllowedError
	if errors.As(err, &notAllowed) && (action == intent.ToApprove || action == intent.ToRefuse) {
		err = fmt.Errorf("%w; bearers of a token use --server URL, with the token in the environment as %s", err, tokenVariable)
	}
	return l.shown(ctx, in, err)
}

func (l localIntents) shown(ctx context.Context, in catalogd.Intent, err error) (httpapi.ShownIntent, error) {
	switch {
	case errors.Is(err, catalogd.ErrUnknownIntent):
		return httpapi.ShownIntent{}, errors.New("there is no such intent here; catalogd intents list shows them")
	case err != nil:
		return httpapi.ShownIntent{}, err
	}
	s := httpapi.ShownIntent{Intent: in, May: l.store.May(in)}
	s.Result, s.Withheld = l.store.Result(ctx, in)
	return s, nil
}

type intentsListCmd struct {
	In        []string `placeholder:"STATE" sep:"none" help:"Only those in this state, such as awaiting_approval; may be given several times."`
	Branch    string   `help:"Only those of this branch."`
	Tool      string   `help:"Only those of this tool."`
	Principal string   `help:"Only those of this principal."`
	Limit     int      `default:"50" help:"How many at most, up to 500."`
	Before    int64    `placeholder:"N" help:"Continue where the previous list ended, with the value that it printed."`
	Watch     bool     `help:"Keep running, and print each that changes its state, until interrupted."`
	intentsFlags
}

func (c *intentsListCmd) Run(e *env) error {
	states, err := httpapi.ReadIntentStates(c.In)
	if err != nil {
		return fmt.Errorf("--in: %w", err)
	}
	if c.Limit < 1 || c.Limit > mostIntents {
		return fmt.Errorf("--limit must be from 1 to %d", mostIntents)
	}
	if c.Watch && c.Before != 0 {
		return errors.New("--watch begins with the newest; leave out --before")
	}
	at, closed, err := c.at(e)
	if errors.Is(err, fs.ErrNotExist) && !c.Watch {
		return e.intentPage(httpapi.IntentPage{Intents: []httpapi.ListedIntent{}}) // no intent was ever stored
	}
	if err != nil {
		return err
	}
	filter := catalogd.IntentFilter{Branch: c.Branch, Tool: c.Tool, Principal: c.Principal, States: states, Before: c.Before, Limit: c.Limit}
	if c.Watch {
		err = e.watchIntents(at, filter)
	} else {
		var page httpapi.IntentPage
		if page, err = at.list(e.ctx, filter); err == nil {
			err = e.intentPage(page)
		}
	}
	return errors.Join(err, closed())
}

// mostIntents caps the intents of a list.
const mostIntents = 500

type intentsShowCmd struct {
	ID   string        `arg:"" help:"The intent's id."`
	Wait time.Duration `default:"0s" help:"Wait at most this long for its end."`
	intentsFlags
}

func (c *intentsShowCmd) Run(e *env) error {
	return c.with(e, func(at intentsAt) error {
		s, err := at.show(e.ctx, c.ID, max(0, c.Wait))
		if err != nil {
			return err
		}
		return e.shownIntent(s)
	})
}

// with calls do with the intents that the flags select.
func (f intentsFlags) with(e *env, do func(intentsAt) error) error {
	at, closed, err := f.at(e)
	if err != nil {
		return err
	}
	return errors.Join(do(at), closed())
}

// intentArg names an intent, and the reason for the decision.
type intentArg struct {
	ID  string `arg:"" help:"The intent's id."`
	Why string `placeholder:"TEXT" help:"The reason, in one line, for its history."`
	intentsFlags
}

// decide applies a decision after which nothing is executed.
func (c intentArg) decide(e *env, action intent.Action, as string) error {
	return c.with(e, func(at intentsAt) error {
		s, err := at.act(e.ctx, c.ID, action, c.Why, as)
		if err != nil {
			return err
		}
		if e.json {
			return e.printJSON(s)
		}
		_, err = fmt.Fprintf(e.stdout, "intent %s is %s\n", s.ID, s.State)
		return err
	})
}

type intentsRefuseCmd struct{ intentArg }

func (c *intentsRefuseCmd) Run(e *env) error { return c.decide(e, intent.ToRefuse, "") }

type intentsCancelCmd struct{ intentArg }

func (c *intentsCancelCmd) Run(e *env) error { return c.decide(e, intent.ToCancel, "") }

type intentsResolveCmd struct {
	As string `required:"" enum:"succeeded,failed" help:"The real outcome: succeeded or failed."`
	intentArg
}

func (c *intentsResolveCmd) Run(e *env) error { return c.decide(e, intent.ToResolve, c.As) }

// pausing are the flags of the commands that only a daemon supports.
type pausing struct {
	Server string `placeholder:"URL" help:"The daemon, or here for the one that serves this directory, which is also the default; before that comes the environment's CATALOGD_SERVER."`
	Dir    string `short:"C" help:"The daemon that serves this directory."`
	State  string `placeholder:"DIR" help:"The daemon's state directory, by default catalogd's own in the user's state directory."`
}

func (c pausing) pause(e *env, what, says string) error {
	server, err := e.daemonOf(c.Server, placeFlags{dir: c.Dir, state: c.State})
	if err != nil {
		return err
	}
	at, err := newRemoteIntents(server)
	if err != nil {
		return err
	}
	if err := at.post(e.ctx, at.base.JoinPath("-", "intents", what), nil, &struct{}{}); err != nil {
		return err
	}
	if e.json {
		return e.printJSON(map[string]bool{"paused": what == "pause"})
	}
	_, err = fmt.Fprintln(e.stdout, says)
	return err
}

type intentsPauseCmd struct{ pausing }

func (c *intentsPauseCmd) Run(e *env) error {
	return c.pause(e, "pause", "no call with a side effect begins before catalogd intents resume, or the daemon's next start")
}

type intentsResumeCmd struct{ pausing }

func (c *intentsResumeCmd) Run(e *env) error {
	return c.pause(e, "resume", "calls with a side effect begin again")
}

// executedFlags are the flags of the commands after which an intent is executed.
type executedFlags struct {
	Wait   time.Duration `default:"30s" help:"How long to wait for the outcome."`
	Tokens string        `placeholder:"FILE" help:"If no daemon executes the intent and it was called with a token: the file of tokens, as for serve --tokens."`
	intentArg
	Tag []string `short:"t" placeholder:"KEY=VALUE" sep:"none" help:"If no daemon executes the intent: set a CUE tag of the catalog; may be given several times."`
}

type intentsApproveCmd struct{ executedFlags }

func (c *intentsApproveCmd) Run(e *env) error { return c.execute(e, intent.ToApprove) }

type intentsRetryCmd struct{ executedFlags }

func (c *intentsRetryCmd) Run(e *env) error { return c.execute(e, intent.ToRetry) }

// execute applies a decision after which an intent is executed, and prints the outcome.
func (c executedFlags) execute(e *env, action intent.Action) error {
	var err error
	if c.Server, err = c.server(e); err != nil {
		return err
	}
	if c.Server == "" {
		return c.executeHere(e, action)
	}
	at, err := newRemoteIntents(c.Server)
	if err != nil {
		return err
	}
	s, err := at.act(e.ctx, c.ID, action, c.Why, "")
	if err == nil {
		s, err = at.show(e.ctx, c.ID, max(0, c.Wait))
	}
	if err != nil {
		return err
	}
	return e.intentOutcome(s, " --server "+c.Server)
}

// executeHere has an intent of a local store executed: by the live process responsible for it, else by this
// one.
func (c executedFlags) executeHere(e *env, action intent.Action) error {
	cfg, err := c.config(e)
	if err != nil {
		return err
	}
	store, err := catalogd.OpenIntents(e.ctx, cfg)
	if err != nil {
		return err
	}
	s, here, err := c.byAnother(e, localIntents{store}, action)
	if err := errors.Join(err, store.Close()); err != nil {
		return err
	}
	if !here {
		return e.intentOutcome(s, c.where())
	}
	fmt.Fprintln(e.stderr, "no running process executes the catalog's intents; this command does")
	return c.byThis(e, s, action)
}

// byAnother applies the decision and waits for the outcome if a live process executes the intent. here
// reports that none does; then the decision is not yet applied if the state of s still permits it.
func (c executedFlags) byAnother(e *env, at localIntents, action intent.Action) (s httpapi.ShownIntent, here bool, err error) {
	s, err = at.show(e.ctx, c.ID, 0)
	if err != nil {
		return s, false, err
	}
	executed, err := at.store.Executed(e.ctx, s.Intent)
	if err != nil {
		return s, false, err
	}
	if may := slices.Contains(s.May, action); may && !executed {
		return s, true, c.bearer(s)
	}
	if s, err = at.act(e.ctx, c.ID, action, c.Why, ""); err != nil {
		return s, false, err
	}
	for over := time.Now().Add(c.Wait); time.Now().Before(over) && !s.State.Ended() && e.ctx.Err() == nil; {
		if s, err = at.show(e.ctx, c.ID, min(time.Second, time.Until(over))); err != nil {
			return s, false, err
		}
		if executed, err = at.store.Executed(e.ctx, s.Intent); err != nil {
			return s, false, err
		}
		if s.State == intent.Released && !executed { // it has ended meanwhile
			return s, true, c.bearer(s)
		}
	}
	return s, false, nil
}

// bearer returns an error if only the token file can identify the caller.
func (c executedFlags) bearer(s httpapi.ShownIntent) error {
	if s.Credential != "" && c.Tokens == "" {
		return fmt.Errorf("%s has called with a token, and no daemon that knows it is running: name the file with --tokens", s.Principal)
	}
	return nil
}

// byThis opens the catalog, applies the decision and executes the intent.
func (c executedFlags) byThis(e *env, s httpapi.ShownIntent, action intent.Action) error {
	cfg, err := catalogFlags{
		Tag: c.Tag, MaxFileBytes: 1 << 20, MaxCatalogBytes: 8 << 20, MaxFiles: 5000, MaxTools: 10_000,
		CompileTimeout: 10 * time.Second, CompileMemory: 1 << 30, DecisionTimeout: 5 * time.Second,
	}.config(e, c.Dir)
	if err != nil {
		return err
	}
	c.place(&cfg)
	cfg.Build, cfg.Tokens = c.Build, c.Tokens
	catalog, err := e.open(cfg)
	if err != nil {
		return err
	}
	defer catalog.Close()
	at := localIntents{catalog.Intents()}
	if slices.Contains(at.store.May(s.Intent), action) {
		if s, err = at.act(e.ctx, c.ID, action, c.Why, ""); err != nil {
			return err
		}
	}
	if s.State == intent.Released {
		_, err := at.store.Execute(e.ctx, c.ID, max(0, c.Wait))
		var moved *catalogd.IntentMovedError
		var owned *catalogd.IntentOwnedError
		if err != nil && !errors.As(err, &moved) && !errors.As(err, &owned) {
			return err
		}
	}
	if s, err = at.show(e.ctx, c.ID, 0); err != nil {
		return err
	}
	err = e.intentOutcome(s, c.where())
	return errors.Join(err, at.store.Settle(e.ctx))
}

// where returns the flags with which another command finds the same intents.
func (f intentsFlags) where() string {
	var flags []string
	for _, flag := range []struct{ name, value string }{{"-C", f.Dir}, {"--build", f.Build}, {"--state", f.State}, {"--intents", f.Intents}} {
		if flag.value != "" && (flag.name != "-C" || flag.value != ".") {
			flags = append(flags, " "+flag.name+" "+flag.value)
		}
	}
	return strings.Join(flags, "")
}
