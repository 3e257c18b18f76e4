package httpapi

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/generation"
	"github.com/catalogd/catalogd/internal/mcpserver"
	"github.com/catalogd/catalogd/internal/token"
)

// MatrixRequest is the body of POST /-/matrix.
type MatrixRequest struct {
	// Principals are those who are asked about, at most 100 of different names; by default whoever asks.
	Principals []AskedPrincipal `json:"principals,omitempty"`
}

// AskedPrincipal is somebody who is asked about.
type AskedPrincipal struct {
	// Name is the principal's name.
	Name string `json:"name"`
	// Groups are those of the principal, and Admin says that it is one; by default both are as in its token.
	Groups []string `json:"groups,omitempty"`
	Admin  bool     `json:"admin,omitempty"`
}

// Matrix is the answer to POST /-/matrix: either Access or Error.
type Matrix struct {
	// Access is what each principal may do with each tool of each declared branch, by branch, by principal as
	// given, and by tool.
	Access []generation.AccessCell `json:"access,omitempty"`
	// Error is which decision the policy did not make in time.
	Error string `json:"error,omitempty"`
}

// maxAskedPrincipals is how many principals one matrix is about: each tool of each branch is decided for each.
const maxAskedPrincipals = 100

// matrix answers POST /-/matrix. Nothing is logged as a decision about a principal's call.
func (a *API) matrix(w http.ResponseWriter, r *http.Request, c token.Caller) {
	data, ok := a.readJSON(w, r)
	if !ok {
		return
	}
	var req MatrixRequest
	_, err := readMembers(data, "the body", "principals")
	if err == nil {
		err = decode(data, &req)
	}
	if err == nil {
		err = req.check()
	}
	if err != nil {
		mcpserver.WriteError(w, http.StatusBadRequest, err.Error())
		return
	}
	principals := []decision.Principal{c.Principal}
	if len(req.Principals) > 0 {
		principals = nil
	}
	for _, p := range req.Principals {
		principals = append(principals, a.named(p.Name, p.Groups, p.Admin).Principal)
	}
	g, release := a.MCP.Pin()
	defer release()
	cells, err := g.AccessMatrix(r.Context(), principals)
	if err != nil {
		mcpserver.WriteJSON(w, http.StatusOK, Matrix{Error: err.Error()})
		return
	}
	mcpserver.WriteJSON(w, http.StatusOK, Matrix{Access: cells})
}

func (m MatrixRequest) check() error {
	if len(m.Principals) > maxAskedPrincipals {
		return fmt.Errorf("principals has %d, and one matrix is about %d at most", len(m.Principals), maxAskedPrincipals)
	}
	seen := map[string]bool{}
	for _, p := range m.Principals {
		if p.Name == "" {
			return errors.New("a principal needs a name")
		}
		if seen[p.Name] {
			return errors.New("two principals have one name")
		}
		seen[p.Name] = true
	}
	return nil
}
