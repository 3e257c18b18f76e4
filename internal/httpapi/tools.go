package httpapi

import (
	"errors"
	"net/http"
	"net/url"

	"github.com/catalogd/catalogd/contract/dialect"
	"github.com/catalogd/catalogd/internal/generation"
	"github.com/catalogd/catalogd/internal/mcpserver"
	"github.com/catalogd/catalogd/internal/token"
	"github.com/catalogd/catalogd/registry"
)

// listTools answers GET /branches/{branch}/tools with the tools in a dialect (?dialect=, mcp by default): all
// of them, those of ?tools=a,b (which may be empty), or no list at all (?none=true). With ?details=true it also has
// what the catalog declares of them, of which only an admin gets more than the effect.
func (a *API) listTools(w http.ResponseWriter, r *http.Request, c token.Caller) {
	branch, sender := r.PathValue("branch"), c
	d, chosen, err := readOffer(r.Form)
	if err != nil {
		mcpserver.WriteError(w, http.StatusBadRequest, err.Error())
		return
	}
	details := r.Form.Has("details")
	c, ok := a.behalf(w, r, c)
	if !ok {
		return
	}
	g, release := a.MCP.Pin()
	defer release()
	isAdmin := sender.Token == nil || sender.Token.Admin
	if details && isAdmin && !r.Form.Has("principal") {
		c = a.ownerOf(g, branch, c)
	}
	if !a.opens(w, c, branch) {
		return
	}
	offers, err := g.Offer(branch, c.Principal, d, chosen)
	var declared []generation.DeclaredTool
	if err == nil && details {
		declared, err = g.Declared(branch, c.Principal, chosen)
		for i, t := range declared {
			if !isAdmin {
				declared[i] = generation.DeclaredTool{Tool: t.Tool, Effect: t.Effect}
			}
		}
	}
	var unknown *registry.UnknownError
	switch {
	case errors.As(err, &unknown):
		mcpserver.WriteJSON(w, http.StatusNotFound, UnknownTools{err.Error(), unknown.Tools})
	case err != nil:
		a.MCP.NoBranch(w, c, branch) // it existed a moment ago
	default:
		mcpserver.WriteJSON(w, http.StatusOK, ShownTools{*offers, declared})
	}
}

// ShownTools are the tools of a branch.
type ShownTools struct {
	generation.Offers
	// Declared is what the catalog declares of the tools, those of refused too; only with details.
	Declared []generation.DeclaredTool `json:"declared,omitempty"`
}

// UnknownTools is the answer to a request that names tools which the branch doesn't have.
type UnknownTools struct {
	// Error says which names are unknown, for people to read.
	Error string `json:"error"`
	// Unknown are the names that the branch does not have.
	Unknown []registry.Unknown `json:"unknown"`
}

// readOffer reads the parameters of a list of tools.
func readOffer(query url.Values) (d dialect.Dialect, chosen registry.Selection, err error) {
	d, chosen = dialect.MCP, registry.All()
	if query.Has("dialect") {
		if d, err = dialect.Parse(query.Get("dialect")); err != nil {
			return d, chosen, err
		}
	}
	if query.Has("tools") {
		chosen = registry.Names(generation.SplitNames(query.Get("tools"))...)
	}
	if query.Has("details") && query.Get("details") != "true" {
		return d, chosen, errors.New("details is true, or left out")
	}
	switch none := query.Get("none"); {
	case none == "":
	case none != "true":
		return d, chosen, errors.New("none is true, or left out")
	case query.Has("tools"):
		return d, chosen, errors.New("tools= and none=true exclude each other")
	default:
		chosen = registry.None()
	}
	return d, chosen, nil
}
