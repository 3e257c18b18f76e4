package harness

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
)

// Client is an MCP client of one branch.
type Client struct {
	*client.Client
	// Era is the revision of MCP that it speaks.
	Era, Branch string
	// ListChanged counts notifications/tools/list_changed.
	ListChanged atomic.Int64
	stop        func()
}

// Absent is what Answer returns for a tool that the branch doesn't have.
const Absent = "absent"

// End ends the client; a second time it does nothing.
func (c *Client) End() { c.stop() }

func (c *Client) String() string { return c.Era + " client of " + c.Branch }

// Connect makes a client over HTTP that listens for list_changed: it hears of each change from now on. It ends with the
// test or with End.
func Connect(t testing.TB, url, branch, era string) *Client {
	t.Helper()
	listens := make(chan struct{})
	opened := sync.OnceFunc(func() { close(listens) })
	options := []transport.StreamableHTTPCOption{
		transport.WithHTTPLogger(slog.New(slog.DiscardHandler)), transport.WithHTTPBasicClient(&http.Client{Transport: streamWatch(opened)}),
	}
	if era != Modern {
		//lint:ignore SA1019 the older eras are what is tested
		options = append(options, transport.WithContinuousListening())
	}
	tr, err := transport.NewStreamableHTTP(url+"/branches/"+branch+"/mcp", options...)
	if err != nil {
		t.Fatal(err)
	}
	c := &Client{Client: client.NewClient(tr, client.WithProtocolVersion(era)), Era: era, Branch: branch}
	c.OnNotification(func(n mcp.JSONRPCNotification) {
		switch n.Method {
		case mcp.MethodNotificationToolsListChanged:
			c.ListChanged.Add(1)
		case mcp.MethodNotificationSubscriptionsAcknowledged:
			opened()
		}
	})
	ctx := context.Background()
	if err := c.Start(ctx); err != nil {
		t.Fatal(err)
	}
	_, err = c.Initialize(ctx, mcp.InitializeRequest{Params: mcp.InitializeParams{
		ProtocolVersion: era, ClientInfo: mcp.Implementation{Name: "test", Version: "1"},
	}})
	if err != nil {
		t.Fatalf("initialize: %v", err)
	}
	if c.ProtocolVersion() != era {
		t.Fatalf("got protocol version %s, want %s", c.ProtocolVersion(), era)
	}
	stop := func() {}
	if era == Modern {
		stop, err = c.ListenAsync(ctx, mcp.SubscriptionFilter{ToolsListChanged: true}, nil)
		if err != nil {
			t.Fatal(err)
		}
	}
	c.stop = sync.OnceFunc(func() {
		stop()
		c.Client.Close()
	})
	t.Cleanup(c.End)
	select {
	case <-listens:
	case <-time.After(Timeout):
		t.Fatalf("the %v does not listen after %v", c, Timeout)
	}
	return c
}

// streamWatch is called when a server has opened the stream of a GET, from which on it sends notifications.
type streamWatch func()

func (opened streamWatch) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err == nil && r.Method == http.MethodGet && resp.StatusCode == http.StatusOK {
		opened()
	}
	return resp, err
}

// Listing returns the descriptions of the tools that the client lists, by name.
func (c *Client) Listing(t testing.TB) map[string]string {
	t.Helper()
	result, err := c.ListTools(t.Context(), mcp.ListToolsRequest{})
	if err != nil {
		t.Fatalf("%v: list: %v", c, err)
	}
	shown := map[string]string{}
	for _, tool := range result.Tools {
		shown[tool.Name] = tool.Description
	}
	return shown
}

// Answer calls a tool and returns the text of its result, with the prefix "failed: " where it is an error; Absent for an
// unknown tool, and "error: " with the reason for a call without a result.
func (c *Client) Answer(ctx context.Context, tool string, args any) string {
	result, err := c.CallTool(ctx, mcp.CallToolRequest{Params: mcp.CallToolParams{Name: tool, Arguments: args}})
	switch {
	case err != nil && strings.Contains(err.Error(), fmt.Sprintf("unknown tool %q", tool)):
		return Absent
	case err != nil:
		return "error: " + err.Error()
	}
	text := Text(result)
	if result.IsError {
		return "failed: " + text
	}
	return text
}

// Text joins the text blocks of a result.
func Text(result *mcp.CallToolResult) string {
	var parts []string
	for _, block := range result.Content {
		if text, ok := block.(mcp.TextContent); ok {
			parts = append(parts, text.Text)
		}
	}
	return strings.Join(parts, "\n")
}
