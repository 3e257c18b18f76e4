package httpapi

import (
	"net/http"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/generation"
	"github.com/catalogd/catalogd/internal/mcpserver"
	"github.com/catalogd/catalogd/internal/token"
)

// behalfParams are the parameters by which an admin asks what another principal is shown.
func behalfParams() []parameter {
	return []parameter{
		{
			name: "principal", in: inQuery, schema: text(""),
			about: "Who would ask, in place of the caller; only an admin may name another.",
		},
		{
			name: "group", in: inQuery, schema: text(""), many: true,
			about: "A group of the principal's; by default it has those of its token.",
		},
		{name: "admin", in: inQuery, about: "The principal's token has --admin.", schema: text("", "true")},
	}
}

// behalf returns the caller for whom a request asks: the one that its query names, or whoever sent it. It
// answers the request if the query is wrong, or names another and the sender is no admin.
func (a *API) behalf(w http.ResponseWriter, r *http.Request, c token.Caller) (token.Caller, bool) {
	name, groups, admin := r.Form.Get("principal"), r.Form["group"], r.Form.Get("admin")
	switch {
	case admin != "" && admin != "true":
		mcpserver.WriteError(w, http.StatusBadRequest, "admin is true, or left out")
		return c, false
	case name == "" && (len(groups) > 0 || admin != ""):
		mcpserver.WriteError(w, http.StatusBadRequest, "group and admin are of a principal; name it in principal")
		return c, false
	case name == "":
		return c, true
	}
	if c.Token != nil && !c.Token.Admin {
		who := c.Principal
		a.MCP.RecordRefused(decision.AdminRequired, a.addressed(r), &who, "", "")
		mcpserver.WriteError(w, http.StatusForbidden, "token "+c.Token.Name+
			" does not have --admin, which it takes to ask for another principal")
		return c, false
	}
	return a.named(name, groups, admin == "true"), true
}

// named returns the caller of that name: with the given groups, or else with those of its token.
func (a *API) named(name string, groups []string, admin bool) token.Caller {
	switch {
	case name == decision.Local().Name && a.MCP.Tokens == nil:
		return token.Operator()
	case groups != nil || admin:
		return token.Caller{Principal: decision.Principal{
			Name: name, Groups: append([]string{}, groups...), Admin: admin,
		}}
	}
	if a.MCP.Tokens != nil {
		if t := a.MCP.Tokens.Named(name); t != nil {
			return token.Bearer(t)
		}
	}
	return token.Caller{Principal: decision.Principal{Name: name, Groups: []string{}}}
}

// ownerOf returns the owner of a conversation branch, or c if there is no such branch.
func (a *API) ownerOf(g *generation.Generation, branch string, c token.Caller) token.Caller {
	for _, b := range g.AllConversations() {
		switch {
		case b.Name != branch:
		case b.Owner.Local:
			return token.Operator()
		default:
			return a.named(b.Owner.Name, nil, false)
		}
	}
	return c
}
