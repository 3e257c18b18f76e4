package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/httpapi"
	"github.com/catalogd/catalogd/registry"
)

// askedFlags are those of commands that ask about a call which is not made, here or of a daemon.
type askedFlags struct {
	principalFlags
	Server string `placeholder:"URL" help:"Ask a running daemon, such as http://127.0.0.1:8420, or here for the one that serves this directory; by default the environment's CATALOGD_SERVER. Conversation branches are there. It takes a token made with --admin."`
}

// server returns the address of the daemon to ask, empty if the files are asked: those of a revision or a named
// directory always, unless the command line names a daemon.
func (f askedFlags) server(e *env, revision, dir string) (string, error) {
	if f.Server == "" && (revision != "" || dir != "") {
		return "", nil
	}
	return e.server(f.Server, placeFlags{}, false)
}

// call returns what a daemon is asked about.
func (f askedFlags) call(branch, tool, args string) (httpapi.AskedCall, error) {
	if f.Principal == "" && (len(f.Group) > 0 || f.Admin) {
		return httpapi.AskedCall{}, errPrincipal
	}
	return httpapi.AskedCall{
		Branch: branch, Tool: tool, Arguments: json.RawMessage(args),
		Principal: f.Principal, Groups: f.Group, Admin: f.Admin,
	}, nil
}

var errPrincipal = errors.New("--group and --admin are of a principal; name it with --principal")

// askDaemon posts a question about a call to a daemon.
func askDaemon(ctx context.Context, server, path string, body, into any) error {
	base, err := url.Parse(server)
	if err != nil || base.Host == "" {
		return notURL(server)
	}
	raw, err := json.Marshal(body)
	if err != nil {
		return err
	}
	return remoteIntents{base}.ask(ctx, http.MethodPost, base.JoinPath("-", path), bytes.NewReader(raw), into)
}

// remote explains a call of a daemon's.
func (c *explainCmd) remote(e *env, result *decision.ToolResult) error {
	call, err := c.call(c.Branch, c.Tool, c.Args)
	if err != nil {
		return err
	}
	var answer struct {
		Explanation json.RawMessage
		Text        string
	}
	err = askDaemon(e.ctx, c.Server, "explain", httpapi.ExplainRequest{AskedCall: call, Result: result}, &answer)
	if err != nil {
		return err
	}
	if e.json {
		return e.printJSON(answer.Explanation)
	}
	return e.println(answer.Text)
}

// remotePlan asks a daemon what a call would run.
func (c *callCmd) remotePlan(e *env) error {
	call := httpapi.AskedCall{Branch: c.Branch, Tool: c.Tool, Arguments: json.RawMessage(c.Args)}
	var answer httpapi.Planned
	if err := askDaemon(e.ctx, c.Server, "plan", call, &answer); err != nil {
		return err
	}
	if err := answer.Error; err != nil {
		failed := registry.Call{Branch: c.Branch, Tool: c.Tool}
		failed.End(nil, &registry.Error{
			Code: err.Code, Msg: err.Message, Decision: err.Decision, Violations: err.Violations, Nearest: err.Nearest,
		})
		return e.callEnded(failed)
	}
	return e.plan(*answer.Plan)
}
