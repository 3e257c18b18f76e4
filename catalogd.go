// Package catalogd is the in-process API: it opens a catalog directory and serves its branches, for programs that embed
// catalogd. The daemon and the command line (cmd/catalogd) stand on it.
//
//	c, err := catalogd.New(ctx, catalogd.Config{Dir: "."})
//	if err != nil { ... } // every problem, with file, line and column
//	defer c.Close()
//	call, err := c.Branch("default").Call(ctx, "slugify", []byte(`{"title": "Hello"}`))
//	http.Handle("/", c.Handler())
package catalogd

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"regexp"
	"sync"
	"time"

	"github.com/catalogd/catalogd/contract/dialect"
	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/decisionlog"
	"github.com/catalogd/catalogd/internal/serve"
	"github.com/catalogd/catalogd/internal/state"
	"github.com/catalogd/catalogd/internal/token"
	"github.com/catalogd/catalogd/invoke"
	"github.com/catalogd/catalogd/loader"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

//go:embed schema.cue
var schema []byte

//go:embed schema.cue cue.mod catalog policy
var starter embed.FS

// Schema is the schema.cue of this version, which every catalog is held against.
func Schema() []byte { return append([]byte(nil), schema...) }

// Starter is the starter catalog that `catalogd init` writes: schema.cue, cue.mod, catalog and policy.
func Starter() fs.FS { return starter }

// Config says what to open. Dir is needed; every other field has a useful zero.
type Config struct {
	// Dir is the catalog's root: the directory that holds schema.cue, catalog/ and policy/.
	Dir string
	// Build is a file that `catalogd build` wrote. It is served in place of the files in Dir, which is then only what
	// relative commands and secret files refer to: the file's own directory where Dir is empty. Nothing is watched; Reload
	// reads the file again.
	Build string
	// State is the state directory: a cache in it makes the next start fast. It is made with mode 0700, and New refuses one
	// that others may enter. Empty keeps nothing; a directory that can't be written keeps nothing and is warned of.
	State string
	// Tags are CUE tags (key=value) for environment-specific values; they are part of the digest.
	Tags []string
	// Limits cap what is read; zero fields mean the defaults.
	Limits loader.Limits
	// Worker are the arguments with which this program, started again, calls CompileWorker. CUE is then evaluated there,
	// within limits: a catalog that never finishes evaluating is a problem of its file, and a call whose arguments CUE can't
	// decide on in 100 ms, which only tools are asked for whose schema does not say all, fails. Empty evaluates in this
	// process, which such a catalog, or such arguments, can keep busy for ever and exhaust.
	Worker []string
	// CompileTimeout bounds how long the Worker evaluates one package; zero means 10 s.
	CompileTimeout time.Duration
	// CompileMemory bounds how much memory the Worker uses, in bytes; zero means 1 GiB.
	CompileMemory int64
	// Tokens is a file that `catalogd token create` makes: who may use Handler and Serve, as which principal. Run reads it
	// again when it changes. Empty lets everyone on this machine in as the operator, and nobody else.
	Tokens string
	// Hosts are names under which clients reach Handler and Serve, beside the loopback ones and the listener's address; they
	// count with Tokens only.
	Hosts []string
	// Timing is how the files are watched; zero means the defaults, and Log for its Logger.
	Timing loader.WatchConfig
	// PolicyDeadline bounds one policy decision; zero means 100 ms. What takes longer is denied.
	PolicyDeadline time.Duration
	// DecisionLog says where every decision is written down; its zero value writes none.
	DecisionLog DecisionLog
	// Version names the program to MCP clients and servers; empty means "devel".
	Version string
	// Log takes one line a reload, a decision and a call; nil discards.
	Log *slog.Logger
}

func (c Config) withDefaults() (Config, error) {
	if c.Dir == "" && c.Build != "" {
		c.Dir = filepath.Dir(c.Build)
	}
	dir, err := filepath.Abs(c.Dir)
	if err != nil {
		return c, err
	}
	c.Dir = dir
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Timing.Logger == nil {
		c.Timing.Logger = c.Log
	}
	if c.Version == "" {
		c.Version = "devel"
	}
	return c, nil
}

func (c Config) source() loader.Source {
	return loader.Dir{Root: c.Dir, Limits: c.Limits, Tags: c.Tags}
}

// Check builds the catalog as New would, without serving it, and returns every problem, sorted. Nothing is spawned or
// dialled.
func Check(ctx context.Context, cfg Config) (problem.List, error) {
	problems, _, err := CheckFor(ctx, cfg, nil)
	return problems, err
}

// CheckFor is Check for principals that may call, the local operator where there are none: tools that nobody sees, and rules
// that are true for none of them, are problems. It also lists what JSON Schema can't say of the tools' arguments and results,
// which CUE holds every call to; nothing where the catalog doesn't build.
func CheckFor(ctx context.Context, cfg Config, principals []decision.Principal) (problem.List, []serve.Lost, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, nil, err
	}
	builder, _, end := cfg.parts()
	defer end()
	problems, lost := serve.Check(ctx, cfg.source(), builder, serve.Fixtures{Principals: principals, Shipped: starter})
	return problems, lost, nil
}

// TestPolicy runs the policy's _test.rego files with the engine that decides, those whose package.name matches the
// regular expression filter (empty matches all), and measures their coverage. The error of a policy that doesn't load is
// a RefusedError.
func TestPolicy(ctx context.Context, cfg Config, filter string) (decision.TestReport, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return decision.TestReport{}, err
	}
	snap, problems := cfg.source().Snapshot(ctx)
	if snap == nil || problems.HasErrors() {
		return decision.TestReport{}, &RefusedError{Problems: problems.Sorted()}
	}
	report, problems := decision.Test(ctx, snap.FS(), decision.TestConfig{Run: filter})
	if problems.HasErrors() {
		return decision.TestReport{}, &RefusedError{Problems: problems}
	}
	return report, nil
}

// RefusedError is why a catalog isn't fit to serve: all of its problems.
type RefusedError = serve.RefusedError

// Catalog is an open catalog. All methods are safe for concurrent use.
type Catalog struct {
	daemon *serve.Daemon
	front  *serve.Front
	end    func() // of connections and workers
	// workers says in a Status how the workers are.
	workers func(*serve.Status)
	state   *state.Cache     // nil without one
	tokens  *token.Store     // nil without tokens
	written *decisionlog.Log // nil where decisions are not logged
	log     *slog.Logger
}

// New opens the catalog in cfg.Dir: it builds the first generation and asks its own policy to adopt it. The error of a
// catalog that isn't fit to serve is a RefusedError, which holds every problem. Nothing is watched before Run.
func New(ctx context.Context, cfg Config) (*Catalog, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	builder, workers, end := cfg.parts()
	source, watch, err := cfg.served(builder)
	if err != nil {
		end()
		return nil, err
	}
	c := &Catalog{end: end, workers: workers, state: builder.State, log: cfg.Log}
	if c.written, err = cfg.DecisionLog.open(cfg); err != nil {
		c.end()
		c.closeState()
		return nil, fmt.Errorf("the decision log: %w", err)
	}
	if c.written != nil {
		builder.Decided = c.written.Add
	}
	if cfg.Tokens != "" {
		if c.tokens, err = token.Open(cfg.Tokens, cfg.Log); err != nil {
			c.end()
			c.closeState()
			c.closeLog()
			return nil, fmt.Errorf("tokens: %w", err)
		}
	}
	c.front = serve.NewFront(serve.Backend{
		Version: cfg.Version,
		Pin:     func() (*serve.Generation, func()) { return c.daemon.Pin() },
		Status:  func() serve.Status { return c.Status() },
		Reload:  func(ctx context.Context) serve.Outcome { return c.Reload(ctx) },
		Log:     cfg.Log,
		Tokens:  c.tokens,
		Hosts:   cfg.Hosts,
	})
	daemon, err := serve.Open(ctx, serve.DaemonConfig{
		Source: source, Builder: builder, Watch: watch, Timing: cfg.Timing, Version: cfg.Version, Log: cfg.Log,
		Changed: c.front.Changed, Forwarded: c.front.Forwarded, Updated: c.front.Updated, Ended: c.front.Ended, Commit: cfg.commit,
	})
	if err != nil {
		c.front.Close()
		c.end()
		c.closeState()
		c.closeLog()
		return nil, err
	}
	c.daemon = daemon
	return c, nil
}

// Run watches the directory and the tokens and takes over each change, until ctx ends.
func (c *Catalog) Run(ctx context.Context) error {
	if c.tokens != nil {
		var watching sync.WaitGroup
		defer watching.Wait()
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		watching.Go(func() { c.tokens.Run(ctx, c.front.Reauthorize) })
	}
	return c.daemon.Run(ctx)
}

// Handler serves every branch over MCP, and the HTTP API. Servers that are eager begin to be connected, as in Serve and
// Stdio.
func (c *Catalog) Handler() http.Handler {
	c.daemon.Eager()
	return c.front.Handler()
}

// Serve serves Handler on a listener with every time-out and cap set, until ctx ends; it closes ln.
func (c *Catalog) Serve(ctx context.Context, ln net.Listener) error {
	c.daemon.Eager()
	return serve.Serve(ctx, ln, c.front)
}

// Stdio serves one branch over MCP on a pair of streams until in ends or ctx does.
func (c *Catalog) Stdio(ctx context.Context, branch string, in io.Reader, out io.Writer) error {
	c.daemon.Eager()
	return c.front.Stdio(ctx, branch, in, out)
}

// StdioBearer is Stdio for the bearer of a token of Config.Tokens, which must be set. It also returns when the token is not
// good any more, which Run sees. A branch that the token doesn't open is one that there is not.
func (c *Catalog) StdioBearer(ctx context.Context, secret, branch string, in io.Reader, out io.Writer) error {
	if c.tokens == nil {
		return errors.New("there are no tokens (Config.Tokens)")
	}
	return c.front.StdioBearer(ctx, secret, branch, in, out)
}

// Reload looks at the files once, now. The outcome is that of the catalog; that of the tokens is in Status.
func (c *Catalog) Reload(ctx context.Context) serve.Outcome {
	if c.tokens != nil && c.tokens.Reload() {
		c.front.Reauthorize()
	}
	return c.daemon.Reload(ctx)
}

// Status says what serves, since when, and why newer files don't.
func (c *Catalog) Status() serve.Status {
	s := c.daemon.Status()
	c.workers(&s)
	if c.tokens != nil {
		s.Tokens = &serve.TokensStatus{Good: c.tokens.Len(), Failed: c.tokens.Failed()}
		s.Healthy = s.Healthy && s.Tokens.Failed == nil
	}
	if c.written != nil {
		n := c.written.Counts()
		s.DecisionLog = &serve.DecisionLogStatus{Written: n.Written, Dropped: n.Dropped, Failed: n.Failed, Waiting: n.Waiting}
	}
	return s
}

// Close ends every connection and child process. Calls in flight fail.
func (c *Catalog) Close() {
	c.front.Close()
	c.daemon.Close()
	c.end()
	c.closeState()
	c.closeLog()
}

// Reaches lists every server and outward binding of the serving generation with its connect decision.
func (c *Catalog) Reaches() []serve.Reach {
	g, release := c.daemon.Pin()
	defer release()
	return g.Reaches()
}

// Branches are the names of the branches in order.
func (c *Catalog) Branches() []string {
	g, release := c.daemon.Pin()
	defer release()
	return g.Branches()
}

// ExplainReach says which rules decide whether the server, or the tool with an outward binding, of that name may be
// reached. It reaches nothing.
func (c *Catalog) ExplainReach(ctx context.Context, name string) ([]serve.ReachExplanation, error) {
	g, release := c.daemon.Pin()
	defer release()
	return g.ExplainReach(ctx, name)
}

// TestExamples runs the examples of every tool whose name matches the regular expression filter (empty matches all).
// Trusted commands and addresses are really reached; tools with a side effect are not run.
func (c *Catalog) TestExamples(ctx context.Context, filter string) ([]serve.ExampleResult, error) {
	names, err := regexp.Compile(filter)
	if err != nil {
		return nil, err
	}
	g, release := c.daemon.Pin()
	defer release()
	return g.TestExamples(ctx, names), nil
}

// Branch is a view of the catalog by name. It need not exist, and follows reloads: each method looks at the generation
// that serves when it is called.
type Branch struct {
	catalog   *Catalog
	name      string
	dialect   dialect.Dialect
	principal decision.Principal
}

// Branch names a branch.
func (c *Catalog) Branch(name string) Branch { return Branch{c, name, dialect.MCP, decision.Local()} }

// In is the branch as a provider's model sees it: Offer says tools in the dialect, and Call and Plan read arguments by it.
func (b Branch) In(d dialect.Dialect) Branch {
	b.dialect = d
	return b
}

// As is the branch as a principal sees and calls it, in place of the operator. Whoever calls As vouches for the principal:
// no token is asked for.
func (b Branch) As(p decision.Principal) Branch {
	if p.Groups == nil {
		p.Groups = []string{}
	}
	b.principal = p
	return b
}

func (b Branch) unknown(g *serve.Generation) error {
	return g.UnknownBranch(b.name)
}

// Tools are copies of the declarations of the tools that the branch sees, by name.
func (b Branch) Tools() ([]registry.Tool, error) {
	g, release := b.catalog.daemon.Pin()
	defer release()
	path, ok := g.PathFor(b.name, b.principal)
	if !ok {
		return nil, b.unknown(g)
	}
	var tools []registry.Tool
	for _, e := range path.View.Entries() {
		tools = append(tools, e.Tool())
	}
	return tools, nil
}

// Offer says the chosen tools that the branch sees in the branch's dialect, with what its schemas don't say. The error of
// tools that the branch doesn't see is a registry.UnknownError.
func (b Branch) Offer(chosen registry.Selection) (*serve.Offers, error) {
	g, release := b.catalog.daemon.Pin()
	defer release()
	return g.Offer(b.name, b.principal, b.dialect, chosen)
}

// Call runs one call, on the one path that calls over MCP take too.
func (b Branch) Call(ctx context.Context, tool string, args json.RawMessage) (registry.Call, error) {
	g, release := b.catalog.daemon.Pin()
	defer release()
	path, ok := g.PathFor(b.name, b.principal)
	if !ok {
		return registry.Call{}, b.unknown(g)
	}
	return path.Call(ctx, invoke.Request{Tool: tool, Arguments: args, Dialect: b.dialect, Principal: b.principal}), nil
}

// Explain asks every decision that a call of the tool meets, and says which rules answered. args may be empty.
func (b Branch) Explain(ctx context.Context, tool string, args json.RawMessage) (*serve.Explanation, error) {
	g, release := b.catalog.daemon.Pin()
	defer release()
	return g.Explain(ctx, b.name, invoke.Request{Tool: tool, Arguments: args, Dialect: b.dialect, Principal: b.principal})
}

// Plan says what Call would run, and runs nothing.
func (b Branch) Plan(ctx context.Context, tool string, args json.RawMessage) (registry.Plan, registry.Call, error) {
	g, release := b.catalog.daemon.Pin()
	defer release()
	path, ok := g.PathFor(b.name, b.principal)
	if !ok {
		return registry.Plan{}, registry.Call{}, b.unknown(g)
	}
	plan, call := path.Plan(ctx, invoke.Request{Tool: tool, Arguments: args, Dialect: b.dialect, Principal: b.principal})
	return plan, call, nil
}
