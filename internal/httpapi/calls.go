package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/catalogd/catalogd/contract/dialect"
	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/envelope"
	"github.com/catalogd/catalogd/internal/mcpserver"
	"github.com/catalogd/catalogd/internal/token"
	"github.com/catalogd/catalogd/internal/tracing"
	"github.com/catalogd/catalogd/invoke"
	"github.com/catalogd/catalogd/registry"
)

const (
	// callsHeader has the ids of the calls of an answer, in their order: most providers' forms have no place for them.
	callsHeader = "Catalogd-Calls"
	// maxCallIDs is how many of them it has at most: proxies refuse answers with headers of more than 4 KiB.
	maxCallIDs = 64
)

// runCalls answers POST /branches/{branch}/calls: the tool calls of a provider's message are run, and answered in the form
// in which the provider takes results. A call that fails is a result too. The answer is 429 where a limit kept every call
// from being run.
func (a *API) runCalls(w http.ResponseWriter, r *http.Request, c token.Caller) {
	branch := r.PathValue("branch")
	if !a.opens(w, c, branch) {
		return
	}
	order, dialectName, err := readOrder(r.Form)
	if err != nil {
		mcpserver.WriteError(w, http.StatusBadRequest, err.Error())
		return
	}
	key, err := idempotencyKey(r.Header)
	if err != nil {
		mcpserver.WriteError(w, http.StatusBadRequest, err.Error())
		return
	}
	if status, text := mcpserver.CheckContent(r.Header); status != 0 {
		mcpserver.WriteError(w, status, text)
		return
	}
	body, status, text := a.MCP.ReadBody(w, r)
	if status != 0 {
		mcpserver.WriteError(w, status, text)
		return
	}
	batch, err := envelope.Read(body)
	if err != nil {
		a.MCP.RecordRefused(decision.InvalidMessage, branch, &c.Principal, "", "")
		mcpserver.WriteError(w, http.StatusBadRequest, err.Error())
		return
	}
	d, err := batch.Format.Dialect(dialectName)
	if err != nil {
		mcpserver.WriteError(w, http.StatusBadRequest, err.Error())
		return
	}
	if err := batch.CheckKey(key); err != nil {
		mcpserver.WriteError(w, http.StatusBadRequest, fmt.Sprintf("for %d calls, the header Idempotency-Key can't be %v", len(batch.Calls), err))
		return
	}
	calls := envelope.Run(tracing.FromHeader(r.Context(), r.Header), batch.Calls, order, func(ctx context.Context, i int, one envelope.Call) registry.Call {
		call, ok := a.MCP.Call(ctx, c, branch, invoke.Request{
			Tool: one.Name, Arguments: one.Arguments, Dialect: d, Key: batch.Key(key, i),
		})
		if !ok { // it existed a moment ago
			call.Err = &registry.Error{
				Code: registry.Unavailable, Msg: "the branch " + strconv.Quote(branch) + " is not served any more", Unsent: true,
			}
		}
		return call
	})
	ids := make([]string, len(calls))
	for i, one := range batch.Calls {
		if calls[i].ID == "" {
			calls[i] = a.MCP.NotBegun(c, branch, invoke.Request{Tool: one.Name}, calls[i].Err)
		}
		ids[i] = calls[i].ID
	}
	if len(ids) <= maxCallIDs {
		w.Header().Set(callsHeader, strings.Join(ids, ", "))
	}
	answer := http.StatusOK
	if wait, all := limited(calls); all {
		mcpserver.SetRetryAfter(w.Header(), wait)
		answer = http.StatusTooManyRequests
	}
	mcpserver.WriteJSON(w, answer, batch.Results(calls))
}

// limited reports whether a limit kept each of the calls from being run, and after which time all of them may be made
// again.
func limited(calls []registry.Call) (wait time.Duration, all bool) {
	for _, c := range calls {
		if c.Err == nil || c.Err.Code != registry.Overloaded && c.Err.Code != registry.RateLimited {
			return 0, false
		}
		wait = max(wait, c.Err.RetryAfter)
	}
	return wait, true
}

// readOrder reads the parameters of a request for calls.
func readOrder(query url.Values) (o envelope.Order, d dialect.Dialect, err error) {
	if query.Has("dialect") {
		if d, err = dialect.Parse(query.Get("dialect")); err != nil {
			return o, d, err
		}
	}
	o, err = envelope.ParseOrder(query.Get("strategy"), query.Get("onError"))
	return o, d, err
}

// getCall answers GET /calls/{id}: to the caller who made the call, while that caller may still open its branch, and to an
// admin. To others it is not there.
func (a *API) getCall(w http.ResponseWriter, r *http.Request, c token.Caller) {
	id := r.PathValue("id")
	e, ok := a.Events.Get(id)
	mine := ok && e.By(c.Principal.Name, c.Credential()) && c.MayOpen(e.Branch)
	if !mine && !(ok && c.Principal.Admin) {
		mcpserver.WriteError(w, http.StatusNotFound, fmt.Sprintf("no call %q", registry.Shown(id)))
		return
	}
	mcpserver.WriteJSON(w, http.StatusOK, e)
}

// idempotencyKey returns the value of the header Idempotency-Key, empty where there is none.
func idempotencyKey(h http.Header) (string, error) {
	values := h.Values("Idempotency-Key")
	switch {
	case len(values) == 0:
		return "", nil
	case len(values) > 1:
		return "", errors.New("the header Idempotency-Key is sent more than once")
	}
	if err := registry.CheckIdempotencyKey(values[0]); err != nil {
		return "", fmt.Errorf("the header Idempotency-Key can't be %w", err)
	}
	return values[0], nil
}
