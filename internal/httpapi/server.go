// Package httpapi serves a daemon over HTTP: MCP under /branches/{branch}/mcp, and branches, tools in a
// provider's dialect, calls in a provider's envelope, intents, status, metrics and reload.
//
// Each request passes, in this order: the check of Host and Origin (origin.go), the route (route.go), the
// token (access.go), the query (route.go), and its handler. No byte of a body is read before the handler.
// The routes are one table (routes.go, described.go), of which the description at /openapi.json is made as
// well (openapi.go, schema.go).
package httpapi

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/daemon"
	"github.com/catalogd/catalogd/internal/generation"
	"github.com/catalogd/catalogd/internal/mcpserver"
	"github.com/catalogd/catalogd/internal/token"
	"github.com/catalogd/catalogd/invoke"
	"github.com/catalogd/catalogd/problem"
)

// Config configures an API.
type Config struct {
	// MCP handles /branches/{branch}/mcp; its limits and tokens also apply to all other endpoints.
	MCP     *mcpserver.Server
	Metrics *Metrics
	// Status and Reload handle /status and POST /-/reload.
	Status func() daemon.Status
	Reload func(context.Context) daemon.Outcome
	// Effects executes calls of tools with a side effect; may be nil.
	Effects *daemon.Effects
	// Events are what GET /calls/{id} tells of; may be nil.
	Events *invoke.Events
	// Hosts are host names, beside the loopback ones, that clients may use; only effective with tokens.
	Hosts []string
	// Prove answers a challenge to /healthz that came to a local address (ip:port); may be nil.
	Prove func(challenge, local string) string
}

// API serves a daemon over HTTP. All methods are safe for concurrent use.
type API struct {
	Config
	failures bucket // limits answers to invalid tokens
	routes   []route
	// description is that of the routes, which is made when it is first asked for.
	description func() []byte
	scrape      http.Handler
}

// New returns an API, and connects its metrics to it.
func New(cfg Config) *API {
	a := &API{Config: cfg}
	a.routes = a.table()
	a.description = sync.OnceValue(func() []byte { return writeDescription(a.routes) })
	a.Metrics.read(a)
	a.scrape = promhttp.HandlerFor(a.Metrics.registry, promhttp.HandlerOpts{
		ErrorLog: slog.NewLogLogger(a.MCP.Log.Handler(), slog.LevelWarn),
	})
	return a
}

// Serve serves the API on ln until ctx ends. Then streams end at once, and calls in flight within
// Limits.Drain. It closes ln and the MCP server, and logs that it has stopped and how many calls were cut off.
func (a *API) Serve(ctx context.Context, ln net.Listener) error {
	f := a.MCP
	unused := conns{unused: map[net.Conn]bool{}, max: f.Limits.Conns}
	srv := &http.Server{
		Handler: a.Handler(), ReadHeaderTimeout: f.Limits.HeaderTime, IdleTimeout: f.Limits.IdleTime, MaxHeaderBytes: mcpserver.MaxHeaderBytes,
		ErrorLog: slog.NewLogLogger(f.Log.Handler(), slog.LevelWarn), ConnState: unused.track,
	}
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(ln) }()
	defer f.AwaitPending()
	defer f.Close()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	f.Close()
	unused.close()
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), f.Limits.Drain)
	defer cancel()
	err := srv.Shutdown(last)
	if !errors.Is(err, context.DeadlineExceeded) {
		f.Log.Info("stopped", "calls_cut", 0)
		return err
	}
	f.Log.Warn("stopped; what was still running was cut off", "calls_cut", f.Running(), "after", f.Limits.Drain)
	return srv.Close()
}

// conns counts the open connections, closes those over the limit, and tracks those without a request yet:
// http.Server's Shutdown waits 5 s for each of these, and clients open spare ones.
type conns struct {
	mu     sync.Mutex
	unused map[net.Conn]bool
	open   int
	max    int
	closed bool
}

func (u *conns) track(c net.Conn, state http.ConnState) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.unused, c)
	switch state {
	case http.StateNew:
		u.open++
		if u.closed || u.open > u.max {
			// Its peer would see the same a moment later.
			_ = c.Close()
			return
		}
		u.unused[c] = true
	case http.StateClosed, http.StateHijacked:
		u.open--
	}
}

func (u *conns) close() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.closed = true
	for c := range u.unused {
		_ = c.Close()
	}
}

// refused counts and logs a request of an unknown caller that was refused before it became a call.
func (a *API) refused(code decision.AttemptCode, r *http.Request) {
	a.MCP.RecordRefused(code, a.addressed(r), nil, "", "")
}

// Handler returns the handler of all endpoints (routes.go), behind the guard.
//
// With tokens, each operation needs what its needs say. A branch that a token doesn't open is answered 404,
// like one that doesn't exist. A path that isn't clean (.., //, an encoded slash) is answered 404, and
// nothing is redirected. A trailing slash of an MCP path is ignored, because many clients add one.
func (a *API) Handler() http.Handler {
	foreign := func(r *http.Request) { a.refused(decision.ForeignOrigin, r) }
	return a.recovering(guard(a.hosts(), foreign, http.HandlerFunc(a.serve)))
}

// recovering answers a panic with only the id of its log entry. Every write of next has a deadline.
func (a *API) recovering(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		paced := mcpserver.NewDeadlineWriter(w, a.MCP.Limits.WriteTime)
		defer func() {
			p := recover()
			if p == nil {
				return
			}
			if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
				panic(p)
			}
			refusal := a.MCP.Panicked(r.Method+" "+r.URL.Path, p)
			if paced.Begun {
				panic(http.ErrAbortHandler) // a truncated answer must not look complete
			}
			mcpserver.WriteError(paced, http.StatusInternalServerError, refusal.Message)
		}()
		next.ServeHTTP(paced, r)
	})
}

// Headers of /healthz by which a command of the same user makes sure that it reaches the daemon that it found
// in the state directory, before it sends a token.
const (
	ChallengeHeader = "Catalogd-Challenge"
	ProofHeader     = "Catalogd-Proof"
)

func (a *API) healthz(w http.ResponseWriter, r *http.Request, _ token.Caller) {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if challenge := r.Header.Get(ChallengeHeader); challenge != "" && a.Prove != nil && ok {
		w.Header().Set(ProofHeader, a.Prove(challenge, addrOf(local).String()))
	}
	mcpserver.WriteText(w, "ok")
}

// status returns the full status to an admin, and a Brief to others.
func (a *API) status(w http.ResponseWriter, _ *http.Request, c token.Caller) {
	if s := a.Status(); c.Principal.Admin {
		mcpserver.WriteJSON(w, http.StatusOK, s)
	} else {
		mcpserver.WriteJSON(w, http.StatusOK, daemon.BriefOf(s))
	}
}

// readyz answers 200 while any generation is served, because a load balancer must not remove what works. The
// body says what is wrong.
func (a *API) readyz(w http.ResponseWriter, _ *http.Request, c token.Caller) {
	s := a.Status()
	switch {
	case s.Healthy:
		mcpserver.WriteText(w, "ready")
	case c.Principal.Admin:
		mcpserver.WriteText(w, "degraded: "+s.Degraded()+"; generation "+s.Generation.ID+" keeps serving")
	default:
		mcpserver.WriteText(w, "degraded")
	}
}

// ListedBranch is a branch in the answer to GET /branches.
type ListedBranch struct {
	// Name is the branch's name.
	Name string `json:"name"`
	// Description is what the catalog says of it.
	Description string `json:"description,omitempty"`
	// Labels are those that policies see.
	Labels map[string]string `json:"labels"`
	// Tools is how many tools the caller sees in it.
	Tools int `json:"tools"`
	// Path is that of its MCP endpoint.
	Path string `json:"path"`
	// From, Expires and Lost are only there for a conversation branch: see ConversationBranch.
	From    string               `json:"from,omitempty"`
	Expires time.Time            `json:"expires,omitzero"`
	Lost    []generation.Missing `json:"lost,omitempty"`
}

// listBranches answers GET /branches: the declared branches that the caller may open, then the conversation
// branches of the caller's.
func (a *API) listBranches(w http.ResponseWriter, r *http.Request, c token.Caller) {
	c, ok := a.behalf(w, r, c)
	if !ok {
		return
	}
	g, release := a.MCP.Pin()
	defer release()
	list := []ListedBranch{}
	for _, name := range g.Branches() {
		if b, ok := listDeclared(g, name, c); ok && c.MayOpen(name) {
			list = append(list, b)
		}
	}
	for _, one := range g.Conversations(c.Principal) {
		if c.MayOpen(one.Root) {
			list = append(list, listConversation(one))
		}
	}
	mcpserver.WriteJSON(w, http.StatusOK, list)
}

// listDeclared returns a declared branch as its clients see it.
func listDeclared(g *generation.Generation, name string, c token.Caller) (b ListedBranch, ok bool) {
	if _, ok := g.Path(name); !ok {
		return b, false
	}
	p, ok := g.PathFor(name, c.Principal)
	if !ok {
		return b, false
	}
	declared := p.View.Declared()
	b = ListedBranch{Name: name, Description: declared.Description, Labels: declared.Labels, Tools: p.View.Len(), Path: mcpPath(name)}
	if b.Labels == nil {
		b.Labels = map[string]string{}
	}
	return b, true
}

// listConversation returns a conversation branch in the list of branches.
func listConversation(c generation.Conversation) ListedBranch {
	full := newConversationBranch(c)
	return ListedBranch{
		Name: full.Name, Labels: full.Labels, Tools: full.Tools, Path: full.URL, From: full.From, Expires: full.Expires, Lost: full.Lost,
	}
}

// reload answers 200 if the files are served now, 409 if the adopt decision refused them or newer files
// superseded them, and 422 if they are invalid. A client that disconnects does not cancel it.
func (a *API) reload(w http.ResponseWriter, r *http.Request, _ token.Caller) {
	outcome := a.Reload(context.WithoutCancel(r.Context()))
	mcpserver.WriteJSON(w, reloadStatus(outcome), outcome)
}

func reloadStatus(o daemon.Outcome) int {
	switch o.Result {
	case "superseded":
		return http.StatusConflict
	case "adopted", "unchanged":
		return http.StatusOK
	}
	for _, p := range o.Problems {
		if p.Code == problem.AdoptionDenied {
			return http.StatusConflict
		}
	}
	return http.StatusUnprocessableEntity
}
