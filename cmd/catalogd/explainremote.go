package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/generation"
	"github.com/catalogd/catalogd/internal/httpapi"
	"github.com/catalogd/catalogd/registry"
)

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
		Brief       generation.Brief
		Text        string
	}
	err = askDaemon(e.ctx, c.Server, "explain", httpapi.ExplainRequest{AskedCall: call, Result: result}, &answer)
	if err != nil {
		return err
	}
	if e.json {
		return e.printJSON(answer.Explanation)
	}
	return c.print(e, answer.Brief, answer.Text)
}

// remotePlan asks a daemon what a call would run.
func (c *callCmd) remotePlan(e *env) error {
	call, err := c.call(c.Branch, c.Tool, c.Args)
	if err != nil {
		return err
	}
	var answer httpapi.Planned
	if err := askDaemon(e.ctx, c.Server, "plan", call, &answer); err != nil {
		return err
	}
	if err := answer.Error; err != nil {
		failed := registry.Call{Branch: c.Branch, Tool: c.Tool}
		failed.End(nil, &registry.Error{
			Code: err.Code, Msg: err.Message, Decision: err.Decision, Violations: err.Violations, Nearest: err.Nearest,
		})
		return e.callEnded(failed, c.repeated()+" --server "+c.Server)
	}
	return e.plan(*answer.Plan)
}
