package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// overMCP reaches the branch as any MCP client does. What the model says is translated here: its calls into
// requests, and each answer into a message.
type overMCP struct{ *mcp.ClientSession }

func connect(ctx context.Context, url string) (overMCP, error) {
	client := mcp.NewClient(&mcp.Implementation{Name: "agent-go", Version: "1"}, nil)
	transport := &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: withToken{}}}
	session, err := client.Connect(ctx, transport, nil)
	return overMCP{session}, err
}

func (o overMCP) offer(ctx context.Context) (json.RawMessage, error) {
	var offered []any
	for tool, err := range o.Tools(ctx, nil) {
		if err != nil {
			return nil, err
		}
		offered = append(offered, map[string]any{"type": "function", "function": map[string]any{
			"name": tool.Name, "description": tool.Description, "parameters": tool.InputSchema,
		}})
	}
	return json.Marshal(offered)
}

func (o overMCP) run(ctx context.Context, r reply) (results []result, err error) {
	for _, call := range r.ToolCalls {
		text, err := o.call(ctx, call)
		if err != nil {
			return nil, err
		}
		results = append(results, result{"tool", call.ID, text})
	}
	return results, nil
}

// call returns what the model is to read of a call. An error is one of the connection.
func (o overMCP) call(ctx context.Context, call toolCall) (string, error) {
	args := json.RawMessage(call.Function.Arguments)
	if !json.Valid(args) { // models do write such
		return "the arguments are not JSON", nil
	}
	answer, err := o.CallTool(ctx, &mcp.CallToolParams{Name: call.Function.Name, Arguments: args})
	var refused *jsonrpc.Error
	switch {
	case errors.As(err, &refused): // an unknown tool is an error of the protocol; the model can repair it too
		return refused.Message, nil
	case err != nil:
		return "", err
	}
	var texts []string
	for _, block := range answer.Content {
		if text, ok := block.(*mcp.TextContent); ok {
			texts = append(texts, text.Text)
		}
	}
	return strings.Join(texts, "\n"), nil
}

// withToken sends catalogd's token, where there is one.
type withToken struct{}

func (withToken) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	authorize(req, os.Getenv("CATALOGD_TOKEN"))
	return http.DefaultTransport.RoundTrip(req)
}
