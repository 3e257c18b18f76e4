package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/catalogd/catalogd/registry"
)

// maxAnswer caps what is read of a daemon's answer: 64 MiB.
const maxAnswer = 64 << 20

// callRemote calls a tool through a running daemon: one request of protocol version 2026-07-28, which needs no session.
func callRemote(ctx context.Context, base *url.URL, branch, tool string, args json.RawMessage) (*registry.Result, error) {
	body, err := json.Marshal(map[string]any{
		"jsonrpc": "2.0", "id": 1, "method": "tools/call",
		"params": map[string]any{
			"name": tool, "arguments": args,
			"_meta": map[string]any{
				"io.modelcontextprotocol/protocolVersion":    mcp.ProtocolVersion20260728,
				"io.modelcontextprotocol/clientInfo":         map[string]string{"name": "catalogd", "version": version()},
				"io.modelcontextprotocol/clientCapabilities": map[string]any{},
			},
		},
	})
	if err != nil {
		return nil, err
	}
	endpoint := base.JoinPath("branches", branch, "mcp")
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint.String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("MCP-Protocol-Version", mcp.ProtocolVersion20260728)
	req.Header.Set("Mcp-Method", "tools/call")
	req.Header.Set("Mcp-Name", tool)
	raw, status, err := ask(req)
	if err != nil {
		return nil, err
	}
	var answer struct {
		Result *registry.Result `json:"result"`
		Error  *struct {
			Code    int    `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	}
	if err := json.Unmarshal(raw, &answer); err != nil || (answer.Result == nil && answer.Error == nil) {
		return nil, fmt.Errorf("%s answered status %d and no JSON-RPC: %s", endpoint, status, firstLine(string(raw[:min(len(raw), 200)])))
	}
	if answer.Error != nil {
		return nil, errors.New(answer.Error.Message)
	}
	return answer.Result, nil
}

// ask sends one request to a daemon and reads its whole answer.
func ask(req *http.Request) ([]byte, int, error) {
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, 0, fmt.Errorf("no daemon answers: %w", err)
	}
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		return nil, 0, fmt.Errorf("reading the daemon's answer: %w", err)
	}
	return raw, resp.StatusCode, nil
}

// remoteResult prints what a daemon answered.
func (e *env) remoteResult(r *registry.Result) error {
	if e.json {
		if err := e.printJSON(r); err != nil {
			return err
		}
	} else if err := e.content(r.Content, r.IsError); err != nil {
		return err
	}
	if r.IsError {
		return failure
	}
	return nil
}
