package serve

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"path"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/catalogd/catalogd/problem"
)

const (
	// maxHeaderBytes caps the headers of a request.
	maxHeaderBytes = 32 << 10
)

// Serve serves the front on ln until ctx ends; then streams end at once, and calls in flight within the limit Drain. It
// owns ln and closes the front.
func Serve(ctx context.Context, ln net.Listener, f *Front) error {
	unused := conns{unused: map[net.Conn]bool{}, max: f.Limits.Conns}
	srv := &http.Server{
		Handler: f.Handler(), ReadHeaderTimeout: f.Limits.HeaderTime, IdleTimeout: f.Limits.IdleTime, MaxHeaderBytes: maxHeaderBytes,
		ErrorLog: slog.NewLogLogger(f.Log.Handler(), slog.LevelWarn), ConnState: unused.track,
	}
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(ln) }()
	defer f.settle()
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

// conns counts the open connections, closes those that are too many, and knows the ones that no request has come on yet:
// http.Server's Shutdown waits 5 s for each of them, and clients open some to spare.
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
			// Its peer sees what it would have seen a moment later.
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

// Handler serves, behind the guard:
//
//	/branches/{branch}/mcp   MCP; /mcp is the branch named default
//	/branches                the branches, as JSON
//	/branches/{branch}/tools its tools in a provider's form, ?dialect=
//	/healthz  /readyz        this process; whether the newest files are served
//	/status   /metrics       for the operator
//	/-/reload                POST: look at the files now
//
// Where there are tokens, /healthz and /readyz need none, all else needs one, and /metrics, /-/reload and the details of
// /status need an admin's. A branch that a token doesn't open is not found, as one that isn't there.
//
// A path that isn't clean (.., //, an encoded slash) is not found, and nothing is redirected. A slash at the end of an MCP
// path makes no difference: many clients add one.
func (f *Front) Handler() http.Handler {
	scrape := promhttp.HandlerFor(f.metrics.registry, promhttp.HandlerOpts{ErrorLog: slog.NewLogLogger(f.Log.Handler(), slog.LevelWarn)})
	fixed := map[string]endpoint{
		"/healthz":  {nothing, http.MethodGet, f.healthz},
		"/readyz":   {nothing, http.MethodGet, f.readyz},
		"/status":   {someone, http.MethodGet, f.status},
		"/metrics":  {admin, http.MethodGet, func(w http.ResponseWriter, r *http.Request, _ caller) { scrape.ServeHTTP(w, r) }},
		"/branches": {someone, http.MethodGet, f.listBranches},
		"/-/reload": {admin, http.MethodPost, f.reload},
	}
	route := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e, ok := fixed[r.URL.Path]
		ok = ok && clean(r, r.URL.Path)
		if name, mcp := branchOf(r); mcp {
			e, ok = endpoint{someone, anyMethod, func(w http.ResponseWriter, r *http.Request, c caller) { f.serveMCP(w, r, c, name) }}, true
		} else if name, tools := branchIn(r, r.URL.Path, "/tools"); tools {
			e, ok = endpoint{someone, http.MethodGet, func(w http.ResponseWriter, r *http.Request, c caller) { f.listTools(w, r, c, name) }}, true
		}
		if !ok {
			writeError(w, http.StatusNotFound, "not found: "+r.URL.Path)
			return
		}
		if c, ok := f.admit(w, r, e.needs); ok {
			e.serve(w, r, c)
		}
	})
	return f.recovering(guard(f.hosts(), route))
}

// endpoint is what answers at a path.
type endpoint struct {
	needs  need
	method string
	handle func(http.ResponseWriter, *http.Request, caller)
}

// anyMethod is an endpoint's method that looks at the method itself.
const anyMethod = ""

func (e endpoint) serve(w http.ResponseWriter, r *http.Request, c caller) {
	if e.method != anyMethod && r.Method != e.method && (e.method != http.MethodGet || r.Method != http.MethodHead) {
		notAllowed(w, e.method)
		return
	}
	e.handle(w, r, c)
}

// clean reports whether a path of a request can be read in one way only.
func clean(r *http.Request, at string) bool { return r.URL.RawPath == "" && path.Clean(at) == at }

// branchOf is the branch that an MCP path addresses.
func branchOf(r *http.Request) (name string, ok bool) {
	at := strings.TrimSuffix(r.URL.Path, "/")
	if at == "/mcp" {
		return "default", clean(r, at)
	}
	return branchIn(r, at, "/mcp")
}

// branchIn is the branch of a clean path /branches/{branch}LAST.
func branchIn(r *http.Request, at, last string) (name string, ok bool) {
	name, ok = strings.CutPrefix(at, "/branches/")
	if !ok {
		return "", false
	}
	name, ok = strings.CutSuffix(name, last)
	return name, ok && clean(r, at) && !strings.Contains(name, "/")
}

// recovering answers a panic with an id, and nothing else of it. Below it, every write has its time limit.
func (f *Front) recovering(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		paced := newPaced(w, f.Limits.WriteTime)
		defer func() {
			p := recover()
			if p == nil {
				return
			}
			if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
				panic(p)
			}
			refusal := f.panicked(r.Method+" "+r.URL.Path, p)
			if paced.begun {
				panic(http.ErrAbortHandler) // half an answer must not look like one
			}
			writeError(paced, http.StatusInternalServerError, refusal.Message)
		}()
		next.ServeHTTP(paced, r)
	})
}

func (f *Front) healthz(w http.ResponseWriter, _ *http.Request, _ caller) { writeText(w, "ok") }

// status tells everything to an admin, and to others how it is and since when.
func (f *Front) status(w http.ResponseWriter, _ *http.Request, c caller) {
	if s := f.Status(); c.principal.Admin {
		writeJSON(w, http.StatusOK, s)
	} else {
		writeJSON(w, http.StatusOK, s.brief())
	}
}

// readyz is 200 as long as something is served, for a load balancer must not take away what works.
func (f *Front) readyz(w http.ResponseWriter, _ *http.Request, c caller) {
	s := f.Status()
	switch {
	case s.Healthy:
		writeText(w, "ready")
	case s.Failed != nil && c.principal.Admin:
		writeText(w, "degraded: the newest files are refused ("+s.Failed.Reason+"); generation "+s.Generation.ID+" keeps serving")
	default:
		writeText(w, "degraded")
	}
}

type listedBranch struct {
	Name        string            `json:"name"`
	Description string            `json:"description,omitempty"`
	Labels      map[string]string `json:"labels"`
	Tools       int               `json:"tools"`
	Path        string            `json:"path"`
}

func (f *Front) listBranches(w http.ResponseWriter, _ *http.Request, c caller) {
	g, release := f.Pin()
	defer release()
	list := []listedBranch{}
	for _, name := range g.Branches() {
		if !c.opens(name) {
			continue
		}
		p, ok := g.PathFor(name, c.principal)
		if !ok {
			continue
		}
		b := p.View.Declared()
		if b.Labels == nil {
			b.Labels = map[string]string{}
		}
		list = append(list, listedBranch{name, b.Description, b.Labels, p.View.Len(), "/branches/" + name + "/mcp"})
	}
	writeJSON(w, http.StatusOK, list)
}

// reload answers 200 for files that are served now, 409 where the serving policy refused to adopt them, and 422 where
// they are wrong. A client that goes away does not stop it halfway.
func (f *Front) reload(w http.ResponseWriter, r *http.Request, _ caller) {
	outcome := f.Reload(context.WithoutCancel(r.Context()))
	writeJSON(w, reloadStatus(outcome), outcome)
}

func reloadStatus(o Outcome) int {
	if o.Result != "refused" {
		return http.StatusOK
	}
	for _, p := range o.Problems {
		if p.Code == problem.AdoptionDenied {
			return http.StatusConflict
		}
	}
	return http.StatusUnprocessableEntity
}

func notAllowed(w http.ResponseWriter, allow string) {
	w.Header().Set("Allow", allow)
	writeError(w, http.StatusMethodNotAllowed, "method not allowed; allowed: "+allow)
}

func writeError(w http.ResponseWriter, status int, text string) {
	writeJSON(w, status, map[string]string{"error": text})
}

func writeText(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	// A client that has gone away is the only way for this to fail.
	_, _ = w.Write([]byte(text + "\n"))
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	out, err := json.Marshal(v)
	if err != nil {
		panic("serve: " + err.Error()) // our own types; recovering answers
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(problem.PrintableJSON(out), '\n'))
}
