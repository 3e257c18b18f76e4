// Package httpapi serves a daemon over HTTP: MCP under /branches/{branch}/mcp, and branches, tools in a
// provider's dialect, calls in a provider's envelope, intents, status, metrics and reload.
//
// Each request passes, in this order: the check of Host and Origin (origin.go), the route (server.go), the
// token (access.go), and its handler. No byte of a body is read before the handler.
package httpapi

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"path"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/daemon"
	"github.com/catalogd/catalogd/internal/mcpserver"
	"github.com/catalogd/catalogd/internal/token"
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
	// Hosts are host names, beside the loopback ones, that clients may use; only effective with tokens.
	Hosts []string
}

// API serves a daemon over HTTP. All methods are safe for concurrent use.
type API struct {
	Config
	failures bucket // limits answers to invalid tokens
}

// New returns an API, and connects its metrics to it.
func New(cfg Config) *API {
	a := &API{Config: cfg}
	a.Metrics.read(a)
	return a
}

// Serve serves the API on ln until ctx ends. Then streams end at once, and calls in flight within
// Limits.Drain. It closes ln and the MCP server.
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
	if err := srv.Shutdown(last); errors.Is(err, context.DeadlineExceeded) {
		f.Log.Warn("calls were still running at the end and were cut off", "after", f.Limits.Drain)
		return srv.Close()
	} else if err != nil {
		return err
	}
	return nil
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
	a.MCP.RecordRefused(code, addressed(r), nil, "", "")
}

// Handler returns the handler of all endpoints, behind the guard:
//
//	/branches/{branch}/mcp   MCP; /mcp is the branch named default
//	/branches                the branches, as JSON
//	/branches/{branch}/tools its tools in a provider's format, ?dialect=
//	/branches/{branch}/calls POST: run the calls of a provider's message
//	/healthz  /readyz        liveness of this process; whether the newest files are served
//	/status   /metrics       for the operator
//	/-/reload                POST: read the files now
//	/intents[/{id}[/ACTION]] calls with a side effect; ACTION is approve, refuse, cancel, retry or
//	                         resolve
//	/-/intents/pause  .../resume   POST: stop, or resume, beginning executions
//
// With tokens, /healthz and /readyz need none, all other endpoints need one, and /metrics, /-/ and the
// details of /status need an admin's. A branch that a token doesn't open is answered 404, like one that
// doesn't exist.
//
// A path that isn't clean (.., //, an encoded slash) is answered 404, and nothing is redirected. A trailing
// slash of an MCP path is ignored, because many clients add one.
func (a *API) Handler() http.Handler {
	scrape := promhttp.HandlerFor(a.Metrics.registry, promhttp.HandlerOpts{ErrorLog: slog.NewLogLogger(a.MCP.Log.Handler(), slog.LevelWarn)})
	fixed := map[string]endpoint{
		"/healthz":  {nothing, http.MethodGet, a.healthz},
		"/readyz":   {nothing, http.MethodGet, a.readyz},
		"/status":   {someone, http.MethodGet, a.status},
		"/metrics":  {admin, http.MethodGet, func(w http.ResponseWriter, r *http.Request, _ token.Caller) { scrape.ServeHTTP(w, r) }},
		"/branches": {someone, http.MethodGet, a.listBranches},
		"/-/reload": {admin, http.MethodPost, a.reload},
		"/intents":  {someone, http.MethodGet, a.listIntents},

		"/-/intents/pause":  {admin, http.MethodPost, a.pauseIntents(true)},
		"/-/intents/resume": {admin, http.MethodPost, a.pauseIntents(false)},
	}
	route := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e, ok := fixed[r.URL.Path]
		ok = ok && clean(r, r.URL.Path)
		if name, mcp := branchOf(r); mcp {
			e, ok = endpoint{someone, anyMethod, func(w http.ResponseWriter, r *http.Request, c token.Caller) { a.MCP.ServeHTTP(w, r, c, name) }}, true
		} else if name, tools := branchIn(r, r.URL.Path, "/tools"); tools {
			e, ok = endpoint{someone, http.MethodGet, func(w http.ResponseWriter, r *http.Request, c token.Caller) { a.listTools(w, r, c, name) }}, true
		} else if name, calls := branchIn(r, r.URL.Path, "/calls"); calls {
			e, ok = endpoint{someone, http.MethodPost, func(w http.ResponseWriter, r *http.Request, c token.Caller) { a.runCalls(w, r, c, name) }}, true
		} else if id, action, about := intentAction(r); about {
			e, ok = a.aboutIntent(id, action), true
		}
		if !ok {
			mcpserver.WriteError(w, http.StatusNotFound, "not found: "+r.URL.Path)
			return
		}
		if c, ok := a.authenticate(w, r, e.needs); ok {
			e.serve(w, r, c)
		}
	})
	return a.recovering(guard(a.hosts(), func(r *http.Request) { a.refused(decision.ForeignOrigin, r) }, route))
}

// endpoint handles one path.
type endpoint struct {
	needs  need
	method string
	handle func(http.ResponseWriter, *http.Request, token.Caller)
}

// anyMethod is the method of an endpoint that checks the method itself.
const anyMethod = ""

func (e endpoint) serve(w http.ResponseWriter, r *http.Request, c token.Caller) {
	if e.method != anyMethod && r.Method != e.method && (e.method != http.MethodGet || r.Method != http.MethodHead) {
		mcpserver.NotAllowed(w, e.method)
		return
	}
	e.handle(w, r, c)
}

// clean reports whether the path of a request is unambiguous.
func clean(r *http.Request, at string) bool { return r.URL.RawPath == "" && path.Clean(at) == at }

// branchOf returns the branch that an MCP path addresses.
func branchOf(r *http.Request) (name string, ok bool) {
	at := strings.TrimSuffix(r.URL.Path, "/")
	if at == "/mcp" {
		return "default", clean(r, at)
	}
	return branchIn(r, at, "/mcp")
}

// addressed returns the branch that a request is about, empty if it is about none.
func addressed(r *http.Request) string {
	if name, ok := branchOf(r); ok {
		return name
	}
	for _, last := range []string{"/tools", "/calls"} {
		if name, ok := branchIn(r, r.URL.Path, last); ok {
			return name
		}
	}
	return ""
}

// branchIn returns the branch of a clean path /branches/{branch}LAST.
func branchIn(r *http.Request, at, last string) (name string, ok bool) {
	name, ok = strings.CutPrefix(at, "/branches/")
	if !ok {
		return "", false
	}
	name, ok = strings.CutSuffix(name, last)
	return name, ok && clean(r, at) && !strings.Contains(name, "/")
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

func (a *API) healthz(w http.ResponseWriter, _ *http.Request, _ token.Caller) {
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

type listedBranch struct {
	Name        string            `json:"name"`
	Description string            `json:"description,omitempty"`
	Labels      map[string]string `json:"labels"`
	Tools       int               `json:"tools"`
	Path        string            `json:"path"`
}

func (a *API) listBranches(w http.ResponseWriter, _ *http.Request, c token.Caller) {
	g, release := a.MCP.Pin()
	defer release()
	list := []listedBranch{}
	for _, name := range g.Branches() {
		if !c.MayOpen(name) {
			continue
		}
		p, ok := g.PathFor(name, c.Principal)
		if !ok {
			continue
		}
		b := p.View.Declared()
		if b.Labels == nil {
			b.Labels = map[string]string{}
		}
		list = append(list, listedBranch{name, b.Description, b.Labels, p.View.Len(), "/branches/" + name + "/mcp"})
	}
	mcpserver.WriteJSON(w, http.StatusOK, list)
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
