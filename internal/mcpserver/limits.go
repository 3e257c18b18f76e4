package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/catalogd/catalogd/internal/fair"
	"github.com/catalogd/catalogd/invoke"
	"github.com/catalogd/catalogd/registry"
)

const (
	// MaxHeaderBytes is the maximum size of a request's headers in bytes.
	MaxHeaderBytes = 32 << 10
	// tryAgain is when a caller who met a limit may try again. Calls are short, so places are soon free.
	tryAgain = time.Second
)

// limit caps how many of something are open at once.
type limit struct {
	open atomic.Int64
	max  int64
}

// take counts one more until leave is called; ok is false if the limit is reached.
func (l *limit) take() (leave func(), ok bool) {
	if l.open.Add(1) > l.max {
		l.open.Add(-1)
		return nil, false
	}
	return func() { l.open.Add(-1) }, true
}

// newPlaces returns the places of calls, and those of calls of tools with a side effect. The latter have no queue:
// these calls queue in the effector.
func newPlaces(l Limits, tokens bool) (calls, effects *fair.Places) {
	c := fair.Limits{Total: l.AllCalls, Branch: l.Calls, Tool: l.CallsPerTool, Queue: l.Queue}
	e := fair.Limits{Total: effectsOfAll * l.Effects, Branch: l.Effects, Tool: half(l.Effects)}
	if tokens { // else there is one principal, to whom everything belongs
		c.Principal, c.AllOfPrincipal = l.CallsPerPrincipal, half(l.AllCalls)
		e.Principal, e.AllOfPrincipal = half(l.Effects), half(e.Total)
	}
	return fair.New(c), fair.New(e)
}

// effectsOfAll is how many times Limits.Effects is the limit of all branches together.
const effectsOfAll = 4

// half is half of a limit, and at least 1.
func half(n int) int { return max(1, n/2) }

// place is what a call takes while it runs.
type place struct {
	branch *branch
	of     *fair.Places
	key    fair.Key
	wait   time.Duration
}

// Running returns how many calls have a place.
func (s *Server) Running() int { return s.calls.Taken() + s.effects.Taken() }

// placeOf returns the place that a message needs.
func (b *branch) placeOf(m *message) place {
	if m.method == mcp.MethodToolsCall {
		g, release := b.server.Pin()
		defer release()
		if path, ok := b.path(g); ok {
			return b.placeOfTool(path, *m.name)
		}
	}
	return b.placeOfTool(nil, "")
}

// placeOfTool returns the place that a call of a tool needs. A tool that the branch does not show counts as none. path
// may be nil where there is no tool.
func (b *branch) placeOfTool(path *invoke.Path, tool string) place {
	p := place{b, b.server.calls, fair.Key{Branch: b.root, Principal: b.caller.Principal.Name}, b.server.Limits.QueueWait}
	if path == nil {
		return p
	}
	if e := path.View.Find(tool); e != nil {
		p.key.Tool = e.Declared().Name
		if e.Effect() != registry.Read {
			p.of = b.server.effects
		}
	}
	return p
}

// enter takes the place, and waits for it in the queue if there is one. The error is that of ctx, or says which limit
// was reached. After nil, leave must be called.
func (p place) enter(ctx context.Context) error { return p.taken(p.of.Take(ctx, p.key, p.wait)) }

// try is enter without waiting.
func (p place) try() error { return p.taken(p.of.Try(p.key)) }

func (p place) leave() {
	p.of.Release(p.key)
	p.branch.running.Add(-1)
}

func (p place) taken(err error) error {
	var full *fair.FullError
	if errors.As(err, &full) {
		return overloaded(full)
	}
	if err == nil {
		p.branch.running.Add(1)
	}
	return err
}

// overloaded is the error of a call that was not run because of a limit.
func overloaded(full *fair.FullError) *registry.Error {
	says := map[fair.Limit]string{
		fair.Total:          "all branches together run as many calls at once as they may (%d)",
		fair.AllOfPrincipal: "on all branches together you have as many calls running as you may (%d)",
		fair.Branch:         "this branch runs as many calls at once as it may (%d)",
		fair.Principal:      "on this branch you have as many calls running as you may (%d)",
		fair.Tool:           "this tool has as many calls running on this branch as it may (%d)",
	}[full.Limit]
	msg := fmt.Sprintf(says, full.Max)
	if full.Waited > 0 {
		msg += fmt.Sprintf(", and none ended within %v", full.Waited)
	}
	return &registry.Error{
		Code: registry.Overloaded, Limit: string(full.Limit), RetryAfter: tryAgain, Unsent: true,
		Msg: fmt.Sprintf("%s; nothing was run. Try again in %d s", msg, registry.Seconds(tryAgain)),
	}
}

// tooMany is the error of a session or stream that was not opened, because max of them are open.
func tooMany(limit, what string, max int64) *registry.Error {
	return &registry.Error{
		Code: registry.Overloaded, Limit: limit, RetryAfter: tryAgain, Unsent: true,
		Msg: fmt.Sprintf("%s (%d); nothing was opened. Close one that is not needed, or try again in %d s", what, max, registry.Seconds(tryAgain)),
	}
}

// refuseOverloaded is the JSON-RPC error for one of the errors above.
func refuseOverloaded(e *registry.Error) *rpcError {
	return &rpcError{Code: mcp.INTERNAL_ERROR, Message: e.Msg, Data: map[string]any{metaError: codes(e)}, retryAfter: e.RetryAfter}
}

// overloadedReply is the answer over HTTP: 429 for too many calls, 503 for too many sessions or streams.
func overloadedReply(m *message, e *registry.Error, status int) reply {
	r := refuseOverloaded(e)
	return reply{status: status, parts: [][]byte{encodeError(m.id, r)}, retryAfter: r.retryAfter}
}

// SetRetryAfter sets the header Retry-After, in whole seconds; zero sets nothing.
func SetRetryAfter(h http.Header, d time.Duration) {
	if d > 0 {
		h.Set("Retry-After", strconv.Itoa(registry.Seconds(d)))
	}
}
