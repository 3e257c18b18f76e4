package httpapi

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/catalogd/catalogd/internal/conversation"
	"github.com/catalogd/catalogd/internal/generation"
	"github.com/catalogd/catalogd/internal/mcpserver"
	"github.com/catalogd/catalogd/internal/token"
	"github.com/catalogd/catalogd/registry"
)

// ForkRequest is the body of POST /branches.
type ForkRequest struct {
	// From is the branch to fork: a declared one, or a conversation branch of the caller's.
	From string `json:"from"`
	// Labels are added to those of the branch; each begins with session/.
	Labels map[string]string `json:"labels,omitempty"`
	TermsRequest
}

// TermsRequest is what a conversation branch takes away, in a request. What is absent is not changed, and null
// takes back what was said before.
type TermsRequest struct {
	// Select is which tools of the parent it may show; all by default.
	Select *registry.Selector `json:"select,omitempty"`
	// Hide is which of them it does not show.
	Hide *registry.Selector `json:"hide,omitempty"`
	// Narrow is how it shows tools otherwise than the parent, by their names there: name, title, description, and
	// args, a fragment of a JSON Schema that takes away from what the tool accepts.
	Narrow map[string]registry.Narrowing `json:"narrow,omitempty"`
	// Rename is the name of each tool that gets another one, by its name in the parent; short for name in Narrow.
	Rename map[string]string `json:"rename,omitempty"`
	// TTL is how long it is kept from now on, as in 90s or 1h30m: 1s to 168h, 1h by default.
	TTL string `json:"ttl,omitempty"`
}

// ConversationBranch is a branch that was forked with POST /branches, as its owner sees it.
type ConversationBranch struct {
	// Name is the branch's name.
	Name string `json:"name"`
	// URL is the path of its MCP endpoint on this server.
	URL string `json:"url"`
	// Expires is when it ends by itself.
	Expires time.Time `json:"expires"`
	// From is the branch that it was forked from, and Root the declared one on whose account it counts.
	From string `json:"from"`
	Root string `json:"root"`
	// Labels are those that policies see: the parent's and its own.
	Labels map[string]string `json:"labels"`
	// Select is which tools of the parent it may show; absent means all.
	Select *registry.Selector `json:"select,omitempty"`
	// Hide is which of them it does not show.
	Hide *registry.Selector `json:"hide,omitempty"`
	// Narrow has what was said in narrow and rename.
	Narrow map[string]registry.Narrowing `json:"narrow,omitempty"`
	// Added and Removed are the tools that were put and deleted one by one.
	Added   []string `json:"added,omitempty"`
	Removed []string `json:"removed,omitempty"`
	// Functions are the names of the Go functions that the program has added to it.
	Functions []string `json:"functions,omitempty"`
	// Created is when it was forked.
	Created time.Time `json:"created"`
	// Tools is how many tools the caller sees in it.
	Tools int `json:"tools"`
	// Lost is what it has lost since it was forked or last changed.
	Lost []generation.Missing `json:"lost"`
}

func newConversationBranch(c generation.Conversation) ConversationBranch {
	out := ConversationBranch{
		Name: c.Name, URL: mcpPath(c.Name), Expires: c.Expires, From: c.From, Root: c.Root, Labels: c.Labels,
		Select: c.Select, Hide: c.Hide, Narrow: c.Narrow, Created: c.Created, Lost: c.Lost,
		Functions: slices.Sorted(maps.Keys(c.Functions)),
	}
	if c.Path != nil {
		out.Labels, out.Tools = c.Path.View.Branch().Labels, c.Path.View.Len()
	}
	if out.Labels == nil {
		out.Labels = map[string]string{}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Terms.Tools)) {
		if c.Terms.Tools[name] {
			out.Added = append(out.Added, name)
		} else {
			out.Removed = append(out.Removed, name)
		}
	}
	return out
}

func mcpPath(branch string) string { return "/branches/" + branch + "/mcp" }

// forkBranch answers POST /branches.
func (a *API) forkBranch(w http.ResponseWriter, r *http.Request, c token.Caller) {
	var req ForkRequest
	fields, ok := a.readTerms(w, r, &req, "from", "labels")
	if !ok {
		return
	}
	ttl, err := req.ttl()
	narrow, renamed := req.narrow()
	err = cmp.Or(err, renamed)
	if err == nil && !fields["from"] {
		err = errors.New("from is missing: the branch to fork")
	}
	if err != nil {
		mcpserver.WriteError(w, http.StatusUnprocessableEntity, err.Error())
		return
	}
	if !a.opens(w, c, req.From) {
		return
	}
	g, release := a.MCP.Pin()
	defer release()
	made, err := g.Fork(req.From, c.Principal, conversation.Terms{Select: req.Select, Hide: req.Hide, Narrow: narrow}, req.Labels, ttl)
	if err != nil {
		a.conversationFailed(w, c, req.From, err)
		return
	}
	w.Header().Set("Location", "/branches/"+made.Name)
	mcpserver.WriteJSON(w, http.StatusCreated, newConversationBranch(made))
}

// changeBranch answers PATCH /branches/{branch}.
func (a *API) changeBranch(w http.ResponseWriter, r *http.Request, c token.Caller) {
	if !a.opens(w, c, r.PathValue("branch")) {
		return
	}
	var req TermsRequest
	fields, ok := a.readTerms(w, r, &req)
	if !ok {
		return
	}
	ttl, err := req.ttl()
	narrow, renamed := req.narrow()
	if err = cmp.Or(err, renamed); err != nil {
		mcpserver.WriteError(w, http.StatusUnprocessableEntity, err.Error())
		return
	}
	a.change(w, r, c, ttl, func(t *conversation.Terms, _, _ *registry.View) error {
		if fields["select"] {
			t.Select = req.Select
		}
		if fields["hide"] {
			t.Hide = req.Hide
		}
		if fields["narrow"] || fields["rename"] {
			t.Narrow = narrow
		}
		return nil
	}, func(now generation.Conversation) { mcpserver.WriteJSON(w, http.StatusOK, newConversationBranch(now)) })
}

// change changes the conversation branch in the path of a request, and answers the request if that fails.
func (a *API) change(w http.ResponseWriter, r *http.Request, c token.Caller, ttl time.Duration,
	change func(t *conversation.Terms, parent, own *registry.View) error, done func(generation.Conversation),
) {
	name := r.PathValue("branch")
	if !a.opens(w, c, name) {
		return
	}
	g, release := a.MCP.Pin()
	defer release()
	if _, declared := g.Path(name); declared {
		mcpserver.WriteError(w, http.StatusConflict, declaredBranch(name))
		return
	}
	now, err := g.Change(name, c.Principal, ttl, change)
	if err != nil {
		a.conversationFailed(w, c, name, err)
		return
	}
	done(now)
}

func declaredBranch(name string) string {
	return fmt.Sprintf("branch %s is declared in the catalog, and only its files change it; fork it (POST /branches)", name)
}

// deleteBranch answers DELETE /branches/{branch}: by its owner, or an admin.
func (a *API) deleteBranch(w http.ResponseWriter, r *http.Request, c token.Caller) {
	name := r.PathValue("branch")
	g, release := a.MCP.Pin()
	defer release()
	if _, declared := g.Path(name); declared {
		if a.opens(w, c, name) {
			mcpserver.WriteError(w, http.StatusConflict, declaredBranch(name))
		}
		return
	}
	if !c.Principal.Admin && !a.opens(w, c, name) {
		return
	}
	if err := g.EndConversation(name, c.Principal); err != nil {
		a.conversationFailed(w, c, name, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// OwnedBranch is a conversation branch of anyone, as an admin sees it.
type OwnedBranch struct {
	// Name is the branch's name.
	Name string `json:"name"`
	// From is the branch that it was forked from.
	From string `json:"from"`
	// Root is the declared branch on whose account it counts.
	Root string `json:"root"`
	// Principal is the name of its owner.
	Principal string `json:"principal"`
	// Created is when it was forked.
	Created time.Time `json:"created"`
	// Expires is when it ends by itself.
	Expires time.Time `json:"expires"`
}

// listOwned answers GET /-/branches: the conversation branches of everyone.
func (a *API) listOwned(w http.ResponseWriter, _ *http.Request, _ token.Caller) {
	g, release := a.MCP.Pin()
	defer release()
	list := []OwnedBranch{}
	for _, b := range g.AllConversations() {
		list = append(list, OwnedBranch{b.Name, b.From, b.Root, b.Owner.Name, b.Created, b.Expires})
	}
	mcpserver.WriteJSON(w, http.StatusOK, list)
}

// showBranch answers GET /branches/{branch}.
func (a *API) showBranch(w http.ResponseWriter, r *http.Request, c token.Caller) {
	name := r.PathValue("branch")
	if !a.opens(w, c, name) {
		return
	}
	g, release := a.MCP.Pin()
	defer release()
	if listed, ok := listDeclared(g, name, c); ok {
		mcpserver.WriteJSON(w, http.StatusOK, listed)
		return
	}
	if now, ok := g.Conversation(name, c.Principal); ok {
		mcpserver.WriteJSON(w, http.StatusOK, newConversationBranch(now))
		return
	}
	a.MCP.NoBranch(w, c, name) // it existed a moment ago
}

// conversationFailed answers a request about a conversation branch that failed.
func (a *API) conversationFailed(w http.ResponseWriter, c token.Caller, branch string, err error) {
	var (
		unknown  *registry.UnknownError
		conflict *generation.ConflictError
		invalid  *conversation.InvalidError
		missing  *generation.UnknownBranchError
	)
	switch {
	case errors.As(err, &unknown):
		mcpserver.WriteJSON(w, http.StatusNotFound, UnknownTools{err.Error(), unknown.Tools})
	case errors.As(err, &missing), errors.Is(err, conversation.ErrUnknown):
		a.MCP.NoBranch(w, c, branch)
	case errors.As(err, &conflict):
		mcpserver.WriteError(w, http.StatusConflict, err.Error())
	case errors.As(err, &invalid):
		mcpserver.WriteError(w, http.StatusUnprocessableEntity, err.Error())
	case errors.Is(err, conversation.ErrLimit):
		w.Header().Set("Retry-After", "60")
		mcpserver.WriteError(w, http.StatusTooManyRequests, err.Error())
	default:
		id := registry.NewCallID()
		a.MCP.Log.Error("a conversation branch can't be stored", "id", id, "branch", branch, "error", err)
		mcpserver.WriteError(w, http.StatusInternalServerError, "the branch can't be stored now; the operator's log has it as "+id)
	}
}

// ttl returns the time in the request; 0 if there is none.
func (t TermsRequest) ttl() (time.Duration, error) {
	if t.TTL == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(t.TTL)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("ttl %q is not a time; write it as 90s or 1h30m", registry.Shown(t.TTL))
	}
	return d, nil
}

// narrow returns what Narrow and Rename say together.
func (t TermsRequest) narrow() (map[string]registry.Narrowing, error) {
	narrow := maps.Clone(t.Narrow)
	for _, tool := range slices.Sorted(maps.Keys(t.Rename)) {
		name := t.Rename[tool]
		n := narrow[tool]
		switch {
		case name == "":
			return nil, fmt.Errorf("rename gives tool %q no name", registry.Shown(tool))
		case n.Name != "":
			return nil, fmt.Errorf("tool %q is renamed in rename and in narrow; leave out one", registry.Shown(tool))
		}
		if narrow == nil {
			narrow = map[string]registry.Narrowing{}
		}
		n.Name = name
		narrow[tool] = n
	}
	return narrow, nil
}

// readTerms reads a body with the members of TermsRequest and more into a request. It returns which of them
// there are, and answers the request if the body is not such an object.
func (a *API) readTerms(w http.ResponseWriter, r *http.Request, into any, more ...string) (fields map[string]bool, ok bool) {
	if status, text := mcpserver.CheckContent(r.Header); status != 0 {
		mcpserver.WriteError(w, status, text)
		return nil, false
	}
	data, status, text := a.MCP.ReadBody(w, r)
	if status != 0 {
		mcpserver.WriteError(w, status, text)
		return nil, false
	}
	fields, err := readMembers(data, "the body", append(more, "select", "hide", "narrow", "rename", "ttl")...)
	for _, selector := range []string{"select", "hide"} {
		if err == nil && fields[selector] {
			err = checkSelector(data, selector)
		}
	}
	if err == nil && fields["narrow"] {
		err = checkNarrow(data)
	}
	if err == nil {
		err = decode(data, into)
	}
	if err != nil {
		mcpserver.WriteError(w, http.StatusBadRequest, err.Error())
		return nil, false
	}
	return fields, true
}

// checkSelector returns an error if a member of a body is not null or an object of lists of texts.
func checkSelector(data []byte, name string) error {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(data, &members); err != nil {
		return err
	}
	if string(members[name]) == "null" {
		return nil
	}
	_, err := readMembers(members[name], name, "names", "tags", "servers")
	return err
}

// checkNarrow returns an error if the member narrow of a body is not null or an object of narrowings.
func checkNarrow(data []byte) error {
	var body struct{ Narrow json.RawMessage }
	if err := json.Unmarshal(data, &body); err != nil {
		return err
	}
	if body.Narrow == nil || string(body.Narrow) == "null" {
		return nil
	}
	tools, ok := registry.Split(body.Narrow)
	if !ok {
		return errors.New("narrow must be an object of tools")
	}
	for _, tool := range tools {
		if _, err := readMembers(tool.Value, "narrow."+registry.Shown(tool.Name), "name", "title", "description", "args"); err != nil {
			return err
		}
	}
	return nil
}
