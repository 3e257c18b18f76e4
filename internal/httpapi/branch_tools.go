package httpapi

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/catalogd/catalogd/contract/dialect"
	"github.com/catalogd/catalogd/internal/conversation"
	"github.com/catalogd/catalogd/internal/generation"
	"github.com/catalogd/catalogd/internal/mcpserver"
	"github.com/catalogd/catalogd/internal/token"
	"github.com/catalogd/catalogd/registry"
)

// showTool answers GET /branches/{branch}/tools/{tool}: the tool in a dialect, or 404 with near names.
func (a *API) showTool(w http.ResponseWriter, r *http.Request, c token.Caller) {
	branch := r.PathValue("branch")
	if !a.opens(w, c, branch) {
		return
	}
	d := dialect.MCP
	if r.Form.Has("dialect") {
		var err error
		if d, err = dialect.Parse(r.Form.Get("dialect")); err != nil {
			mcpserver.WriteError(w, http.StatusBadRequest, err.Error())
			return
		}
	}
	g, release := a.MCP.Pin()
	defer release()
	a.offerTool(w, g, c, branch, d, r.PathValue("tool"), http.StatusOK)
}

// offerTool answers with one tool of a branch.
func (a *API) offerTool(w http.ResponseWriter, g *generation.Generation, c token.Caller, branch string, d dialect.Dialect, tool string, status int) {
	offers, err := g.Offer(branch, c.Principal, d, registry.Names(tool))
	if err != nil {
		a.conversationFailed(w, c, branch, err)
		return
	}
	mcpserver.WriteJSON(w, status, offers)
}

// putTool answers PUT /branches/{branch}/tools/{tool}: it adds a tool that the parent shows, or with ?update=true
// replaces what was said of it.
func (a *API) putTool(w http.ResponseWriter, r *http.Request, c token.Caller) {
	branch, tool := r.PathValue("branch"), r.PathValue("tool")
	update := false
	switch value := r.Form.Get("update"); value {
	case "", "false":
	case "true":
		update = true
	default:
		mcpserver.WriteError(w, http.StatusBadRequest, "update must be true or false")
		return
	}
	status, shown := http.StatusCreated, tool
	a.change(w, r, c, 0, func(t *conversation.Terms, parent, own *registry.View) error {
		shown = t.Shown(tool)
		replaced, err := t.Put(parent, own, tool, update)
		if replaced {
			status = http.StatusOK
		}
		return duplicate(branch, err)
	}, func(generation.Conversation) {
		g, release := a.MCP.Pin()
		defer release()
		a.offerTool(w, g, c, branch, dialect.MCP, shown, status)
	})
}

// duplicate makes a conflict of the error for a tool that the branch shows already.
func duplicate(branch string, err error) error {
	if errors.Is(err, registry.ErrDuplicate) {
		return &generation.ConflictError{Text: fmt.Sprintf("branch %s: %v", branch, err)}
	}
	return err
}

// deleteTool answers DELETE /branches/{branch}/tools/{tool}: the branch doesn't show the tool any more.
func (a *API) deleteTool(w http.ResponseWriter, r *http.Request, c token.Caller) {
	tool := r.PathValue("tool")
	a.change(w, r, c, 0, func(t *conversation.Terms, _, own *registry.View) error {
		return t.Remove(own, tool)
	}, func(generation.Conversation) { w.WriteHeader(http.StatusNoContent) })
}
