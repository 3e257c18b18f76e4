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
// of them, those of ?tools=a,b (which may be empty), or no list at all (?none=true).
func (a *API) listTools(w http.ResponseWriter, r *http.Request, c token.Caller, branch string) {
	if !a.opens(w, c, branch) {
		return
	}
	d, chosen, err := readOffer(r.URL.RawQuery)
	if err != nil {
		mcpserver.WriteError(w, http.StatusBadRequest, err.Error())
		return
	}
	g, release := a.MCP.Pin()
	defer release()
	offers, err := g.Offer(branch, c.Principal, d, chosen)
	var unknown *registry.UnknownError
	switch {
	case errors.As(err, &unknown):
		mcpserver.WriteJSON(w, http.StatusNotFound, struct {
			Error   string             `json:"error"`
			Unknown []registry.Unknown `json:"unknown"`
		}{err.Error(), unknown.Tools})
	case err != nil:
		mcpserver.NoBranch(w, branch) // it existed a moment ago
	default:
		mcpserver.WriteJSON(w, http.StatusOK, offers)
	}
}

// readOffer parses the query of a list of tools. An unknown parameter is an error: a misspelt one must not
// select every tool.
func readOffer(raw string) (dialect.Dialect, registry.Selection, error) {
	d, chosen := dialect.MCP, registry.All()
	query, err := url.ParseQuery(raw)
	if err != nil {
		return d, chosen, errors.New("the query can't be read: " + err.Error())
	}
	for name, values := range query {
		switch {
		case len(values) != 1:
			return d, chosen, errors.New("the parameter " + name + " is given more than once")
		case name == "dialect":
			if d, err = dialect.Parse(values[0]); err != nil {
				return d, chosen, err
			}
		case name == "tools":
			chosen = registry.Names(generation.SplitNames(values[0])...)
		case name == "none" && values[0] == "true":
			chosen = registry.None()
		default:
			return d, chosen, errors.New("unknown parameter " + name + "; there are dialect=, tools=NAME,NAME and none=true")
		}
	}
	if query.Has("tools") && query.Has("none") {
		return d, chosen, errors.New("tools= and none=true exclude each other")
	}
	return d, chosen, nil
}
