// Package catalogd opens a tool catalog and serves it, in the process of a program that embeds it.
//
// A catalog is a directory of CUE files, which declare tools, and Rego files, which decide about them. New
// builds both into an immutable generation, asks the policy whether to adopt it, and returns a Catalog.
// Branch names a view of it, through which tools are listed and called; Handler, Serve and Stdio serve all
// branches over MCP and HTTP. Run watches the files: each change is built aside and replaces the generation
// as a whole, or is refused and changes nothing. Close ends every connection and child process.
//
//	c, err := catalogd.New(ctx, catalogd.Config{Dir: "."})
//	if err != nil {
//		return err // a RefusedError has every problem, with file, line and column
//	}
//	defer c.Close()
//	call, err := c.Branch("default").Call(ctx, "slugify", []byte(`{"title": "Hello"}`))
//
// The other functions look at a catalog without serving it: Check, Build, Explain, Matrix, Diff, TestPolicy,
// TestDecisions, Survey. The command line (cmd/catalogd) is written against this package. examples/ has
// complete programs.
//
// Semantic versioning holds for this package (CONTRIBUTING.md).
package catalogd

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"sync"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/buildcache"
	"github.com/catalogd/catalogd/internal/conversation"
	"github.com/catalogd/catalogd/internal/daemon"
	"github.com/catalogd/catalogd/internal/decisionlog"
	"github.com/catalogd/catalogd/internal/generation"
	"github.com/catalogd/catalogd/internal/httpapi"
	"github.com/catalogd/catalogd/internal/mcpserver"
	"github.com/catalogd/catalogd/internal/token"
	"github.com/catalogd/catalogd/internal/tracing"
	"github.com/catalogd/catalogd/invoke"
	"github.com/catalogd/catalogd/registry"
)

//go:embed schema.cue
var schema []byte

//go:embed schema.cue schemas cue.mod catalog policy/*.rego policy/*/data.yaml policy/catalogd
var starter embed.FS

// Schema returns the schema.cue of this version, against which every catalog is checked.
func Schema() []byte { return append([]byte(nil), schema...) }

// Starter returns the starter catalog that `catalogd init` writes: schema.cue, schemas, cue.mod, catalog and policy.
func Starter() fs.FS { return starter }

// Catalog is an open catalog. All methods are safe for concurrent use.
type Catalog struct {
	daemon *daemon.Daemon
	mcp    *mcpserver.Server
	api    *httpapi.API
	end    func() // closes the builder's connections and ends its processes
	// workers fills in the state of the worker processes.
	workers func(*daemon.Status)
	state   *buildcache.Cache      // nil without one
	memory  *daemon.AdoptionRecord // nil without one
	tokens  *token.Store           // nil without tokens
	effects *daemon.Effects
	written *decisionlog.Log // nil where decisions are not logged
	tracer  *tracing.Tracer  // nil where calls are not traced
	log     *slog.Logger
	// functions and processors are those of Config.
	functions  []*registry.Function
	processors []registry.Processor
	// tearDown tears down the Go functions.
	tearDown func() error
	// conversations is nil until New opens it.
	conversations *conversation.Store
	announcing    announcing
}

// New opens the catalog in cfg.Dir. It builds the first generation and asks the policy that was adopted last
// (Config.State), and its own, to adopt it; where the former refuses, what was adopted last is served. The
// error of a catalog that isn't fit to serve is a RefusedError with every problem. Nothing is watched before
// Run. Close must be called.
func New(ctx context.Context, cfg Config) (*Catalog, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	if err := cfg.checkStandIns(); err != nil {
		return nil, err
	}
	tearDown, err := cfg.setUp(ctx)
	if err != nil {
		return nil, err
	}
	c, err := open(ctx, cfg)
	if err != nil {
		return nil, errors.Join(err, tearDown())
	}
	c.tearDown = tearDown
	return c, nil
}

// open is New after the setup of the functions.
func open(ctx context.Context, cfg Config) (*Catalog, error) {
	stateKey, err := cfg.stateKey()
	if err != nil {
		return nil, err
	}
	builder, workers, end := cfg.builder()
	builder.Warm = true
	from, err := cfg.origin(builder)
	if err != nil {
		end()
		return nil, err
	}
	c := &Catalog{
		end: end, workers: workers, state: builder.State, memory: from.memory, log: cfg.Log,
		functions: cfg.Functions, processors: cfg.Processors,
	}
	if c.written, err = cfg.DecisionLog.open(cfg); err != nil {
		c.end()
		c.closeState()
		return nil, fmt.Errorf("the decision log: %w", err)
	}
	if from.memory != nil && !cfg.Once {
		if c.announcing, err = cfg.announcing(); err != nil {
			c.end()
			c.closeState()
			c.closeLog()
			return nil, err
		}
	}
	metrics := httpapi.NewMetrics()
	builder.Decided = metrics.Decided
	if c.written != nil {
		builder.Decided = func(e decision.Event) {
			metrics.Decided(e)
			c.written.Add(e)
		}
	}
	if c.tracer, err = cfg.Traces.open(cfg); err != nil {
		c.end()
		c.closeState()
		c.closeLog()
		return nil, fmt.Errorf("traces: %w", err)
	}
	if cfg.Tokens != "" {
		if c.tokens, err = token.Open(cfg.Tokens, cfg.Log); err != nil {
			c.end()
			c.closeState()
			c.closeLog()
			return nil, fmt.Errorf("tokens: %w", err)
		}
	}
	if c.effects, err = c.newEffects(cfg); err != nil {
		c.end()
		c.closeState()
		c.closeLog()
		return nil, err
	}
	builder.Effects = c.effects.Invoke()
	builder.Events = invoke.NewEvents()
	if c.conversations, err = cfg.conversations(from.memory != nil); err != nil {
		c.end()
		c.closeState()
		c.closeLog()
		return nil, err
	}
	builder.Conversations = c.conversations
	sessionKey, err := cfg.sessionKey(stateKey, from.memory != nil)
	if err != nil {
		c.end()
		c.closeState()
		c.closeLog()
		return nil, err
	}
	c.mcp = mcpserver.New(mcpserver.Config{
		Version: cfg.Version,
		Pin:     func() (*generation.Generation, func()) { return c.daemon.Pin() },
		Called:  metrics.Called,
		Refused: metrics.Refused,
		Log:     cfg.Log,
		Limits:  cfg.Serving,
		Tokens:  c.tokens,
		ListTTL: cfg.ListTTL, StateKey: stateKey, SessionKey: sessionKey,
		Tracer: c.tracer,
	})
	c.api = httpapi.New(httpapi.Config{
		MCP: c.mcp, Metrics: metrics, Status: c.Status, Reload: c.Reload, Effects: c.effects, Events: builder.Events,
		Hosts: cfg.Hosts, Prove: c.announcing.prove(),
	})
	c.conversations.OnChange(c.mcp.ConversationsChanged)
	daemon, err := daemon.Open(ctx, daemon.Config{
		Source: from.source, Builder: builder, Watch: from.watch, Timing: cfg.Timing, Version: cfg.Version, Log: cfg.Log, Adoption: from.memory, Once: cfg.Once,
		Changed: c.mcp.Changed, PassthroughChanged: c.mcp.PassthroughChanged, ResourcesUpdated: c.mcp.ResourcesUpdated, Ended: metrics.Reloaded, Commit: cfg.commit,
	})
	if err != nil {
		c.mcp.Close()
		c.end()
		c.closeState()
		c.closeLog()
		return nil, err
	}
	c.daemon = daemon
	return c, nil
}

// Run watches the directory and the file of tokens and takes over each change, and executes intents that were
// approved, until ctx ends.
func (c *Catalog) Run(ctx context.Context) error {
	var executing sync.WaitGroup
	defer executing.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	executing.Go(func() { c.effects.Run(ctx) })
	if c.tokens != nil {
		var watching sync.WaitGroup
		defer watching.Wait()
		defer stop()
		watching.Go(func() { c.tokens.Run(ctx, c.mcp.Reauthorize) })
	}
	return c.daemon.Run(ctx)
}

// Handler returns the handler of all branches over MCP and of the HTTP API. Like Serve and Stdio it begins to
// connect to eager servers.
func (c *Catalog) Handler() http.Handler {
	c.daemon.Eager()
	return c.api.Handler()
}

// Serve serves Handler on ln, with every timeout and limit set, until ctx ends. It closes ln. While it runs, a
// loopback address stands in Config.State, where commands of this user find it.
func (c *Catalog) Serve(ctx context.Context, ln net.Listener) error {
	c.daemon.Eager()
	defer c.announce(ln)()
	return c.api.Serve(ctx, ln)
}

// Stdio serves one branch over MCP on a pair of streams, until in or ctx ends.
func (c *Catalog) Stdio(ctx context.Context, branch string, in io.Reader, out io.Writer) error {
	c.daemon.Eager()
	return c.mcp.Stdio(ctx, branch, in, out)
}

// StdioBearer is Stdio for the bearer of a token of Config.Tokens, which must be set. It also returns when
// the token is revoked or expires, which Run notices. A branch that the token doesn't open is answered like
// one that does not exist.
func (c *Catalog) StdioBearer(ctx context.Context, secret, branch string, in io.Reader, out io.Writer) error {
	if c.tokens == nil {
		return errors.New("there are no tokens (Config.Tokens)")
	}
	return c.mcp.StdioBearer(ctx, secret, branch, in, out)
}

// Reload reads the files now. It returns the outcome for the catalog; that for the tokens is in Status.
func (c *Catalog) Reload(ctx context.Context) daemon.Outcome {
	if c.tokens != nil && c.tokens.Reload() {
		c.mcp.Reauthorize()
	}
	return c.daemon.Reload(ctx)
}

// Status says what is served since when, and why newer files are not.
func (c *Catalog) Status() daemon.Status {
	s := c.daemon.Status()
	c.workers(&s)
	s.Intents = c.effects.Status()
	s.Healthy = s.Healthy && (s.Intents == nil || s.Intents.Failed == "")
	if c.tokens != nil {
		s.Tokens = &daemon.TokensStatus{Good: c.tokens.Len(), Failed: c.tokens.Failed()}
		s.Healthy = s.Healthy && s.Tokens.Failed == nil
	}
	if c.written != nil {
		n := c.written.Counts()
		s.DecisionLog = &daemon.DecisionLogStatus{Written: n.Written, Dropped: n.Dropped, Failed: n.Failed, Suppressed: n.Suppressed, Waiting: n.Waiting}
	}
	return s
}

// Close ends every connection and child process. Running calls fail. It then waits up to 10 s for Go functions that
// still run, and tears them down; what goes wrong with that is logged.
func (c *Catalog) Close() {
	c.mcp.Close()
	c.closeEffects()
	c.daemon.Close()
	c.end()
	c.closeState()
	c.closeLog()
	if err := c.tearDown(); err != nil {
		c.log.Error("Go functions did not end well", "error", err)
	}
}

func (c *Catalog) closeState() {
	if err := c.conversations.Close(); err != nil {
		c.log.Warn("the conversation branches can't be closed", "error", err)
	}
	if c.state != nil {
		c.state.Close()
	}
	if c.memory != nil {
		if err := c.memory.Record.Close(); err != nil {
			c.log.Warn("the state directory can't be closed", "error", err)
		}
	}
}
