package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/catalogd/catalogd/internal/intent"
	"github.com/catalogd/catalogd/internal/mcpserver"
	"github.com/catalogd/catalogd/internal/strictjson"
	"github.com/catalogd/catalogd/internal/token"
	"github.com/catalogd/catalogd/registry"
)

const (
	// intentsListed is the default number of intents in a list, mostIntents the maximum.
	intentsListed, mostIntents = 50, 500
	// longestIntentWait is how long a request may wait for the end of an intent.
	longestIntentWait = 25 * time.Second
	// maxIntentBody is the maximum size of the body of a request about an intent, maxWhy that of a person's
	// reason in it, in bytes.
	maxIntentBody, maxWhy = 16 << 10, 1000
)

// IntentPage is the answer to GET /intents.
type IntentPage struct {
	// Intents are the intents of the page, the newest first.
	Intents []ListedIntent `json:"intents"`
	// Before is the value of the query parameter before for the next page; 0 on the last page.
	Before int64 `json:"before,omitempty"`
}

// ListedIntent is an intent in a list, without its arguments, result and history.
type ListedIntent struct {
	intent.Intent
	Arguments json.RawMessage `json:"arguments,omitempty"` // always absent, as are Result and History
	Result    *struct{}       `json:"result,omitempty"`
	History   *struct{}       `json:"history,omitempty"`
	// Since is when it entered its state.
	Since time.Time `json:"since,omitzero"`
	// May lists the actions that the reader may take.
	May []intent.Action `json:"may"`
}

// ShownIntent is the answer of GET /intents/{id} and of the actions.
type ShownIntent struct {
	intent.Intent
	// Withheld is the reason why an existing result is not shown.
	Withheld string `json:"withheld,omitempty"`
	// May lists the actions that the reader may take.
	May []intent.Action `json:"may"`
}

// NewListedIntent returns an intent in a list; may lists the actions that its reader may take.
func NewListedIntent(in intent.Intent, may []intent.Action) ListedIntent {
	l := ListedIntent{Intent: in, May: may}
	if n := len(in.History); n > 0 {
		l.Since = in.History[n-1].At
	}
	return l
}

// personOf returns a caller as a person who acts on intents.
func personOf(c token.Caller) intent.Person {
	return intent.Person{
		Name:       c.Principal.Name,
		Credential: c.Credential(),
		Groups:     c.Principal.Groups,
		Admin:      c.Principal.Admin,
	}
}

var intentActions = []intent.Action{
	intent.ToApprove,
	intent.ToRefuse,
	intent.ToCancel,
	intent.ToRetry,
	intent.ToResolve,
}

// executing returns the effector; if there is none, it answers the request.
func (a *API) executing(w http.ResponseWriter, r *http.Request, c token.Caller) (*intent.Effector, bool) {
	if a.Effects.Invoke() == nil {
		mcpserver.WriteError(
			w,
			http.StatusNotFound,
			"no intents are kept: the daemon was started without a directory for them (--intents)",
		)
		return nil, false
	}
	e, err := a.Effects.Effector(r.Context())
	if err != nil {
		a.intentFailed(w, r, c, "", err)
		return nil, false
	}
	return e, true
}

// listIntents answers GET /intents.
func (a *API) listIntents(w http.ResponseWriter, r *http.Request, c token.Caller) {
	filter, err := readIntentFilter(r.Form)
	if err != nil {
		mcpserver.WriteError(w, http.StatusBadRequest, err.Error())
		return
	}
	e, ok := a.executing(w, r, c)
	if !ok {
		return
	}
	by := personOf(c)
	all, before, err := e.Page(r.Context(), filter, by)
	if err != nil {
		a.intentFailed(w, r, c, "", err)
		return
	}
	page := IntentPage{Intents: []ListedIntent{}, Before: before}
	for _, in := range all {
		page.Intents = append(page.Intents, NewListedIntent(in, by.May(in)))
	}
	mcpserver.WriteJSON(w, http.StatusOK, page)
}

// readIntentFilter reads the parameters of a list.
func readIntentFilter(query url.Values) (f intent.Filter, err error) {
	f.Branch, f.Tool, f.Principal = query.Get("branch"), query.Get("tool"), query.Get("principal")
	if f.States, err = ReadIntentStates(query["state"]); err != nil {
		return f, err
	}
	f.Limit = intentsListed
	if query.Has("limit") {
		if f.Limit, err = strconv.Atoi(query.Get("limit")); err != nil || f.Limit < 1 || f.Limit > mostIntents {
			return f, fmt.Errorf("limit must be a number from 1 to %d", mostIntents)
		}
	}
	if query.Has("before") {
		if f.Before, err = strconv.ParseInt(query.Get("before"), 10, 64); err != nil || f.Before < 1 {
			return f, errors.New("before must be the number that the page before this one was answered with")
		}
	}
	return f, nil
}

// ReadIntentStates parses names of states and removes duplicates.
func ReadIntentStates(names []string) (states []intent.State, err error) {
	for _, name := range names {
		s := intent.State(name)
		if !slices.Contains(intent.States(), s) {
			return nil, fmt.Errorf(
				"there is no state %q; there are %s",
				registry.Shown(name),
				strings.Join(stateNames(), ", "),
			)
		}
		if !slices.Contains(states, s) {
			states = append(states, s)
		}
	}
	return states, nil
}

func stateNames() (names []string) {
	for _, s := range intent.States() {
		names = append(names, string(s))
	}
	return names
}

// getIntent answers GET /intents/{id}.
func (a *API) getIntent(w http.ResponseWriter, r *http.Request, c token.Caller) {
	id := r.PathValue("id")
	wait, err := readIntentWait(r.Form)
	if err != nil {
		mcpserver.WriteError(w, http.StatusBadRequest, err.Error())
		return
	}
	e, ok := a.executing(w, r, c)
	if !ok {
		return
	}
	in, err := e.Get(r.Context(), id, personOf(c))
	if err == nil && wait > 0 {
		// A waiting request must not delay shutdown.
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		defer context.AfterFunc(a.MCP.Ctx, cancel)()
		if in, err = e.Await(ctx, in, wait); err == nil {
			if c, ok = a.still(w, c); !ok {
				return
			}
			if !personOf(c).Sees(in) {
				err = intent.ErrUnknown
			}
		}
	}
	if err != nil {
		a.intentFailed(w, r, c, id, err)
		return
	}
	a.showIntent(w, r, c, in)
}

// still returns the caller as of now, after a wait: the token may have been revoked or changed meanwhile. If
// it is no longer valid, still answers the request.
func (a *API) still(w http.ResponseWriter, c token.Caller) (token.Caller, bool) {
	if c.Token == nil {
		return c, true
	}
	now := a.MCP.Tokens.Get(c.Token.Hash)
	if now == nil {
		a.unauthorized(w, `, error="invalid_token"`, "the token is not good any more: it has expired or was revoked")
		return c, false
	}
	return token.Bearer(now), true
}

func readIntentWait(query url.Values) (time.Duration, error) {
	if !query.Has("wait") {
		return 0, nil
	}
	n, err := strconv.Atoi(query.Get("wait"))
	if most := int(longestIntentWait / time.Second); err != nil || n < 0 || n > most {
		return 0, fmt.Errorf("wait must be a number of seconds from 0 to %d", most)
	}
	return time.Duration(n) * time.Second, nil
}

// showIntent answers with an intent that the caller may see.
func (a *API) showIntent(w http.ResponseWriter, r *http.Request, c token.Caller, in intent.Intent) {
	shown := ShownIntent{Intent: in, May: personOf(c).May(in)}
	shown.Result, shown.Withheld = a.keptResult(r.Context(), c, in)
	mcpserver.WriteJSON(w, http.StatusOK, shown)
}

// keptResult returns the result of an intent as the caller may see it now, or the reason why it is withheld.
func (a *API) keptResult(ctx context.Context, c token.Caller, in intent.Intent) (result *registry.Result, withheld string) {
	if in.Result == nil {
		return nil, ""
	}
	g, release := a.MCP.Pin()
	defer release()
	if !c.MayOpen(in.Branch) {
		return nil, fmt.Sprintf("branch %q is not open to you", in.Branch)
	}
	return g.KeptResult(ctx, c.Principal, in)
}

// actOnIntent answers POST /intents/{id}/{action}.
func (a *API) actOnIntent(action intent.Action) func(http.ResponseWriter, *http.Request, token.Caller) {
	return func(w http.ResponseWriter, r *http.Request, c token.Caller) {
		id := r.PathValue("id")
		fields, status, text := a.readIntentBody(w, r, action)
		if status != 0 {
			mcpserver.WriteError(w, status, text)
			return
		}
		e, ok := a.executing(w, r, c)
		if !ok {
			return
		}
		// A caller that disconnects must not cancel an action halfway.
		in, err := act(context.WithoutCancel(r.Context()), e, id, action, personOf(c), fields)
		if err != nil {
			a.intentFailed(w, r, c, id, err)
			return
		}
		a.showIntent(w, r, c, in)
	}
}

// act does what a person decided about an intent; fields are the members of the request's body.
func act(
	ctx context.Context, e *intent.Effector, id string, action intent.Action, by intent.Person, fields map[string]string,
) (intent.Intent, error) {
	why := fields["why"]
	switch action {
	case intent.ToApprove:
		return e.Approve(ctx, id, by, why)
	case intent.ToRefuse:
		return e.Refuse(ctx, id, by, why)
	case intent.ToCancel:
		return e.Cancel(ctx, id, by, why)
	case intent.ToRetry:
		return e.Retry(ctx, id, by, why)
	}
	return e.Resolve(ctx, id, by, intent.State(fields["as"]), why)
}

// Why is the body of an action on an intent; it may be left out.
type Why struct {
	// Why is the person's reason, one line of at most 1,000 bytes.
	Why string `json:"why,omitempty"`
}

// Resolution is the body of resolve. As is succeeded or failed: what the tool has really done.
type Resolution struct {
	// As is what has come of it: succeeded or failed.
	As intent.State `json:"as"`
	// Why is the person's reason, one line of at most 1,000 bytes.
	Why string `json:"why,omitempty"`
}

// Paused is the answer to pause and resume.
type Paused struct {
	// Paused says that no execution begins.
	Paused bool `json:"paused"`
}

// readIntentBody reads the body of an action: a JSON object of strings; empty for none.
func (a *API) readIntentBody(
	w http.ResponseWriter,
	r *http.Request,
	action intent.Action,
) (fields map[string]string, status int, text string) {
	const tooLarge = "the body is at most 16 KiB"
	if r.ContentLength != 0 {
		if status, text := mcpserver.CheckContent(r.Header); status != 0 {
			return nil, status, text
		}
	}
	if r.ContentLength > maxIntentBody {
		w.Header().Set("Connection", "close")
		return nil, http.StatusRequestEntityTooLarge, tooLarge
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxIntentBody)
	body, status, text := a.MCP.ReadBody(w, r)
	switch {
	case status == http.StatusRequestEntityTooLarge:
		return nil, status, tooLarge
	case status != 0:
		return nil, status, text
	}
	names := []string{"why"}
	if action == intent.ToResolve {
		names = append(names, "as")
	}
	fields, err := readStrings(body, names)
	if err == nil {
		err = checkFields(fields, action)
	}
	if err != nil {
		return nil, http.StatusUnprocessableEntity, err.Error()
	}
	return fields, 0, ""
}

// readStrings parses an object whose members have these names, each at most once and a string. An empty body
// is an empty object.
func readStrings(body []byte, names []string) (map[string]string, error) {
	fields := map[string]string{}
	if len(body) == 0 {
		return fields, nil
	}
	bad := fmt.Errorf("the body must be a JSON object with %s, each a string", strings.Join(names, " and "))
	v, err := strictjson.Decode(body, strictjson.Options{})
	var wrong *strictjson.Error
	switch {
	case err == nil:
	case strictjson.Is(err, strictjson.UTF8):
		return nil, errors.New("the body is no UTF-8")
	case strictjson.Is(err, strictjson.Trailing):
		return nil, errors.New("something follows the object in the body")
	case errors.As(err, &wrong) && wrong.Problem == strictjson.Duplicate:
		return nil, fmt.Errorf("the member %s is given more than once", registry.Shown(wrong.Text))
	default:
		return nil, bad
	}
	object, ok := v.(*strictjson.Object)
	if !ok {
		return nil, bad
	}
	for _, m := range object.Members {
		if !slices.Contains(names, m.Key) {
			return nil, fmt.Errorf(
				"unknown member %q; there is only %s",
				registry.Shown(m.Key),
				strings.Join(names, " and "),
			)
		}
		text, ok := m.Value.(string)
		if !ok {
			return nil, bad
		}
		fields[m.Key] = text
	}
	return fields, nil
}

func checkFields(fields map[string]string, action intent.Action) error {
	if err := CheckWhy(fields["why"]); err != nil {
		return err
	}
	if as := intent.State(fields["as"]); action == intent.ToResolve && as != intent.Succeeded && as != intent.Failed {
		return fmt.Errorf("as must be %q or %q: what the tool has really done", intent.Succeeded, intent.Failed)
	}
	return nil
}

// CheckWhy returns an error if a reason is longer than maxWhy bytes, or is not a single line of text.
func CheckWhy(why string) error {
	switch {
	case len(why) > maxWhy:
		return fmt.Errorf("why has %d bytes; it has at most %d", len(why), maxWhy)
	case !utf8.ValidString(why), strings.ContainsFunc(why, unicode.IsControl):
		return errors.New("why must be one line of text, without control characters")
	}
	return nil
}

// pauseIntents answers POST /-/intents/pause and /-/intents/resume.
func (a *API) pauseIntents(paused bool) func(http.ResponseWriter, *http.Request, token.Caller) {
	return func(w http.ResponseWriter, r *http.Request, c token.Caller) {
		e, ok := a.executing(w, r, c)
		if !ok {
			return
		}
		e.Pause(paused)
		a.MCP.Log.Info("intents", "paused", paused, "by", c.Principal.Name)
		mcpserver.WriteJSON(w, http.StatusOK, Paused{paused})
	}
}

// intentFailed answers a failed request about an intent.
func (a *API) intentFailed(w http.ResponseWriter, r *http.Request, c token.Caller, id string, err error) {
	var notAllowed *intent.NotAllowedError
	var state *intent.StateError
	var moved *intent.MovedError
	switch {
	case r.Context().Err() != nil:
		// The client has disconnected.
	case errors.Is(err, intent.ErrUnknown):
		mcpserver.WriteError(w, http.StatusNotFound, fmt.Sprintf("no intent %q", registry.Shown(id)))
	case errors.As(err, &notAllowed):
		a.MCP.Log.Warn("intent", "id", id, "principal", c.Principal.Name, "refused", err)
		mcpserver.WriteError(w, http.StatusForbidden, err.Error())
	case errors.As(err, &state), errors.As(err, &moved):
		mcpserver.WriteError(w, http.StatusConflict, err.Error())
	default:
		a.MCP.Log.Error("intents can't be read or written", "id", id, "error", err)
		text := "intents can't be read or written now; the operator's log says why"
		if c.Principal.Admin {
			text = err.Error()
		}
		mcpserver.WriteError(w, http.StatusServiceUnavailable, text)
	}
}
