package httpapi

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/generation"
	"github.com/catalogd/catalogd/internal/mcpserver"
	"github.com/catalogd/catalogd/internal/token"
	"github.com/catalogd/catalogd/invoke"
	"github.com/catalogd/catalogd/registry"
)

// AskedCall is a call that an admin asks about: nothing of it is run.
type AskedCall struct {
	// Branch is the branch that would be called.
	Branch string `json:"branch"`
	// Tool is the tool's name, as the branch shows it or as the catalog has it.
	Tool string `json:"tool"`
	// Arguments are those of the call, an object; {} by default.
	Arguments json.RawMessage `json:"arguments,omitempty"`
	// Principal is who would call: by default the owner of a conversation branch, else whoever asks.
	Principal string `json:"principal,omitempty"`
	// Groups are those of the principal, and Admin says that it is one; by default both are as in its token.
	Groups []string `json:"groups,omitempty"`
	Admin  bool     `json:"admin,omitempty"`
}

// ExplainRequest is the body of POST /-/explain.
type ExplainRequest struct {
	AskedCall
	// Result is what the tool would answer, for the result decision.
	Result *decision.ToolResult `json:"result,omitempty"`
}

// InputRequest is the body of POST /-/input.
type InputRequest struct {
	AskedCall
	// Point is the decision point; call by default.
	Point decision.Point `json:"point,omitempty"`
	// Result is what the tool has answered, for the point result.
	Result *decision.ToolResult `json:"result,omitempty"`
}

// Explained is the answer to POST /-/explain.
type Explained struct {
	// Explanation has the decisions and what they rest on.
	Explanation *generation.Explanation `json:"explanation"`
	// Brief is the explanation in five lines: what, why, and what to change.
	Brief generation.Brief `json:"brief"`
	// Text is the whole explanation for people.
	Text string `json:"text"`
}

// AskedInput is the input document of a decision point for one branch.
type AskedInput struct {
	// Branch is the branch that is asked about, and For are those above it that the policy can't tell from it.
	Branch string   `json:"branch,omitempty"`
	For    []string `json:"for,omitempty"`
	// Input is the document that the policy would be asked with.
	Input json.RawMessage `json:"input"`
}

// Inputs is the answer to POST /-/input: the branches that are asked, in their order.
type Inputs struct {
	// Inputs are the documents, one for each branch that is asked.
	Inputs []AskedInput `json:"inputs"`
}

// Planned is the answer to POST /-/plan: either Plan or Error.
type Planned struct {
	// Plan is what the call would run.
	Plan *registry.Plan `json:"plan,omitempty"`
	// Error is why it would run nothing.
	Error *invoke.EventError `json:"error,omitempty"`
}

// explain answers POST /-/explain.
func (a *API) explain(w http.ResponseWriter, r *http.Request, c token.Caller) {
	var req ExplainRequest
	if !a.readAsked(w, r, &req, "result") {
		return
	}
	g, release := a.MCP.Pin()
	defer release()
	x, err := g.Explain(r.Context(), generation.ExplainRequest{
		Branch: req.Branch, Request: a.request(g, c, req.AskedCall), Result: req.Result,
	})
	if err != nil {
		askedFailed(w, err)
		return
	}
	mcpserver.WriteJSON(w, http.StatusOK, Explained{x, x.Brief(), x.String()})
}

// input answers POST /-/input.
func (a *API) input(w http.ResponseWriter, r *http.Request, c token.Caller) {
	req := InputRequest{Point: decision.Call}
	if !a.readAsked(w, r, &req, "point", "result") {
		return
	}
	g, release := a.MCP.Pin()
	defer release()
	q := generation.InputRequest{Point: req.Point, Branch: req.Branch, Request: a.request(g, c, req.AskedCall)}
	if req.Result != nil {
		q.Result = *req.Result
	}
	all, err := g.Inputs(r.Context(), q)
	answer := Inputs{[]AskedInput{}}
	for _, one := range all {
		var input json.RawMessage
		if input, err = decision.AppendInput(nil, req.Point, one.Input); err != nil {
			break
		}
		answer.Inputs = append(answer.Inputs, AskedInput{one.Branch, one.For, input})
	}
	if err != nil {
		askedFailed(w, err)
		return
	}
	mcpserver.WriteJSON(w, http.StatusOK, answer)
}

// plan answers POST /-/plan. It is no call of the principal's, so no decision is logged as one.
func (a *API) plan(w http.ResponseWriter, r *http.Request, c token.Caller) {
	var req AskedCall
	if !a.readAsked(w, r, &req) {
		return
	}
	g, release := a.MCP.Pin()
	defer release()
	q := a.request(g, c, req)
	served, ok := g.PathFor(req.Branch, q.Principal)
	if !ok {
		askedFailed(w, g.UnknownBranch(req.Branch))
		return
	}
	path := *served
	path.Decided = nil
	plan, call := path.Plan(r.Context(), q)
	if call.Err != nil {
		mcpserver.WriteJSON(w, http.StatusOK, Planned{Error: invoke.NewEventError(call.Err)})
		return
	}
	mcpserver.WriteJSON(w, http.StatusOK, Planned{Plan: &plan})
}

// askedFailed answers a request about a call that can't be answered.
func askedFailed(w http.ResponseWriter, err error) {
	var notAsked *generation.NotAskedError
	if errors.As(err, &notAsked) {
		mcpserver.WriteError(w, http.StatusUnprocessableEntity, err.Error())
		return
	}
	mcpserver.WriteError(w, http.StatusNotFound, err.Error())
}

// readAsked reads a body with the members of AskedCall and more into a request, and answers the request if it
// is not such an object.
func (a *API) readAsked(w http.ResponseWriter, r *http.Request, into any, more ...string) bool {
	data, ok := a.readJSON(w, r)
	if !ok {
		return false
	}
	known := append([]string{"branch", "tool", "arguments", "principal", "groups", "admin"}, more...)
	found, err := readMembers(data, "the body", known...)
	if err == nil {
		err = decode(data, into)
	}
	switch {
	case err != nil:
	case !found["branch"] || !found["tool"]:
		err = errors.New("branch and tool are needed: the call that is asked about")
	case !found["principal"] && (found["groups"] || found["admin"]):
		err = errors.New("groups and admin are of a principal; name it in principal")
	}
	if err != nil {
		mcpserver.WriteError(w, http.StatusBadRequest, err.Error())
		return false
	}
	return true
}

// readJSON reads a body, and answers the request if it is none that is taken.
func (a *API) readJSON(w http.ResponseWriter, r *http.Request) ([]byte, bool) {
	if status, text := mcpserver.CheckContent(r.Header); status != 0 {
		mcpserver.WriteError(w, status, text)
		return nil, false
	}
	data, status, text := a.MCP.ReadBody(w, r)
	if status != 0 {
		mcpserver.WriteError(w, status, text)
		return nil, false
	}
	return data, true
}

// request returns the call that an admin asks about, with its principal.
func (a *API) request(g *generation.Generation, c token.Caller, asked AskedCall) invoke.Request {
	req := invoke.Request{Tool: asked.Tool, Arguments: asked.Arguments, Principal: c.Principal}
	if asked.Principal == "" {
		req.Principal = a.ownerOf(g, asked.Branch, c).Principal
	} else {
		req.Principal = a.named(asked.Principal, asked.Groups, asked.Admin).Principal
	}
	return req
}
