package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/contract/dialect"
	"github.com/catalogd/catalogd/registry"
)

// maxAnswer caps the size of a daemon's response: 64 MiB.
const maxAnswer = 64 << 20

// callRemote calls a tool through a running daemon: one request of protocol version 2026-07-28, which needs
// no session. The returned event is what a call in this process would have returned, as far as a client
// learns it.
func callRemote(ctx context.Context, base *url.URL, branch string, d dialect.Dialect, tool, key string, args json.RawMessage) (registry.Call, error) {
	call := registry.Call{Branch: branch, Tool: tool}
	meta := map[string]any{
		"io.modelcontextprotocol/protocolVersion":    mcp.ProtocolVersion20260728,
		"io.modelcontextprotocol/clientInfo":         map[string]string{"name": "catalogd", "version": version()},
		"io.modelcontextprotocol/clientCapabilities": map[string]any{},
	}
	if d != dialect.MCP {
		meta["catalogd/dialect"] = d
	}
	if key != "" {
		meta["catalogd/idempotencyKey"] = key
	}
	body, err := json.Marshal(map[string]any{
		"jsonrpc": "2.0", "id": 1, "method": "tools/call",
		"params": map[string]any{
			"name": tool, "arguments": args,
			"_meta": meta,
		},
	})
	if err != nil {
		return call, err
	}
	endpoint := base.JoinPath("branches", branch, "mcp")
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint.String(), bytes.NewReader(body))
	if err != nil {
		return call, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("MCP-Protocol-Version", mcp.ProtocolVersion20260728)
	req.Header.Set("Mcp-Method", "tools/call")
	req.Header.Set("Mcp-Name", tool)
	raw, status, err := ask(req)
	if err != nil {
		return call, err
	}
	var a answer
	if json.Unmarshal(raw, &a) != nil || (a.Result == nil && a.rpc == nil) {
		return call, fmt.Errorf("%s answered with status %d: %s", endpoint, status, a.reason(raw))
	}
	return call, a.end(&call)
}

// answer is a daemon's response: JSON-RPC, or {"error": "text"} if the request was refused earlier.
type answer struct {
	Result *registry.Result `json:"result"`
	Error  json.RawMessage  `json:"error"`
	rpc    *rpcError
}

type rpcError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    struct {
		Nearest []string `json:"nearest"`
	} `json:"data"`
}

func (a *answer) UnmarshalJSON(raw []byte) error {
	type plain answer
	if err := json.Unmarshal(raw, (*plain)(a)); err != nil {
		return err
	}
	if len(a.Error) > 0 && a.Error[0] == '{' {
		return json.Unmarshal(a.Error, &a.rpc)
	}
	return nil
}

// reason returns why a response contains no JSON-RPC.
func (a *answer) reason(raw []byte) string {
	var text string
	if json.Unmarshal(a.Error, &text) == nil {
		return text
	}
	return "no JSON-RPC: " + firstLine(string(raw[:min(len(raw), 200)]))
}

// end completes the call with the response. An error is a protocol fault, not a failure of the call.
func (a *answer) end(call *registry.Call) error {
	if a.rpc != nil {
		if a.rpc.Code != mcp.INVALID_PARAMS || a.rpc.Data.Nearest == nil { // only the error for an unknown tool has similar names, even if the list is empty
			return errors.New(a.rpc.Message)
		}
		call.End(nil, &registry.Error{Code: registry.UnknownTool, Msg: a.rpc.Message, Nearest: a.rpc.Data.Nearest})
		return nil
	}
	var meta struct {
		Call struct {
			ID         string `json:"id"`
			Generation string `json:"generation"`
		} `json:"catalogd/call"`
		Error *struct {
			Code       registry.ErrorCode   `json:"code"`
			Decision   string               `json:"decision"`
			Violations []contract.Violation `json:"violations"`
		} `json:"catalogd/error"`
	}
	if a.Result.Meta != nil {
		if err := json.Unmarshal(a.Result.Meta, &meta); err != nil {
			return fmt.Errorf("reading the daemon's answer: %w", err)
		}
	}
	call.ID, call.Generation = meta.Call.ID, meta.Call.Generation
	if meta.Error == nil {
		call.End(a.Result, nil)
		return nil
	}
	call.Decision = meta.Error.Decision
	failed := &registry.Error{Code: meta.Error.Code, Decision: meta.Error.Decision, Violations: meta.Error.Violations}
	if len(a.Result.Content) > 0 {
		var block struct{ Text string }
		if err := json.Unmarshal(a.Result.Content[0], &block); err != nil {
			return fmt.Errorf("reading the daemon's answer: %w", err)
		}
		failed.Msg = block.Text
	}
	call.End(nil, failed)
	return nil
}

// tokenVariable holds the token that is sent to daemons. Other users can read a command line, so there is no
// flag for it.
const tokenVariable = "CATALOGD_TOKEN"

// noDaemonError reports that nothing answers at an address.
type noDaemonError struct {
	at, host string
	err      error
}

// near reports whether the address is local to this machine.
func (e *noDaemonError) near() bool {
	ip, err := netip.ParseAddr(e.host)
	return e.host == "localhost" || err == nil && ip.IsLoopback()
}

func (e *noDaemonError) Error() string {
	return fmt.Sprintf("no daemon answers at %s: %v; start one with catalogd serve, or name another with --server", e.at, e.err)
}

func (e *noDaemonError) Unwrap() error { return e.err }

// brokenOffError reports that a request reached a daemon, or may have, and that its answer did not come.
type brokenOffError struct {
	at  string
	err error
}

func (e *brokenOffError) Error() string {
	if errors.Is(e.err, context.Canceled) {
		return fmt.Sprintf("interrupted before the daemon at %s had answered; what was asked for may have been done", e.at)
	}
	return fmt.Sprintf("the daemon at %s broke off before it had answered: %v; what was asked for may have been done", e.at, e.err)
}

func (e *brokenOffError) Unwrap() error { return e.err }

// ask sends one request to a daemon, with the token from the environment if there is one, and reads the whole
// response. The error is a *noDaemonError where no connection could be made, and a *brokenOffError where the
// request was interrupted or the connection broke before the whole response was there.
func ask(req *http.Request) ([]byte, int, error) {
	if secret := os.Getenv(tokenVariable); secret != "" {
		req.Header.Set("Authorization", "Bearer "+secret)
	}
	at := req.URL.Scheme + "://" + req.URL.Host
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, 0, unanswered(req, at, err)
	}
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		return nil, 0, unanswered(req, at, err)
	}
	if len(raw) > maxAnswer {
		return nil, 0, errors.New("the daemon's answer has more than 64 MiB; what was asked for has been done")
	}
	if resp.StatusCode == http.StatusUnauthorized {
		var a answer
		if json.Unmarshal(raw, &a) == nil {
			raw = []byte(a.reason(raw))
		}
		return nil, 0, fmt.Errorf("the daemon at %s requires a token (%s); give one in the environment as %s", at, firstLine(string(raw)), tokenVariable)
	}
	return raw, resp.StatusCode, nil
}

// unanswered returns the error of a request without a response: the error of the client, without what the
// message says already.
func unanswered(req *http.Request, at string, err error) error {
	if canceled := req.Context().Err(); canceled != nil {
		return &brokenOffError{at, canceled}
	}
	var dial *net.OpError
	if errors.As(err, &dial) && dial.Op == "dial" {
		return &noDaemonError{at, req.URL.Hostname(), dial.Err}
	}
	var request *url.Error
	if errors.As(err, &request) {
		err = request.Err
	}
	return &brokenOffError{at, err}
}
