package upstream_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	gosdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/catalogd/catalogd/registry"
)

// A tool of the official Go SDK that asks and logs outside of its call's context does so on the GET stream; its server
// sends log messages only once it was asked for a level.
func TestGoSDKServerSpeaksOnGETStream(t *testing.T) {
	t.Parallel()
	for _, inCall := range []bool{true, false} {
		t.Run(map[bool]string{true: "on the call's stream", false: "on the GET stream"}[inCall], func(t *testing.T) {
			t.Parallel()
			s := gosdk.NewServer(&gosdk.Implementation{Name: "sdk", Version: "1"}, nil)
			gosdk.AddTool(s, &gosdk.Tool{Name: "ask"}, func(ctx context.Context, r *gosdk.CallToolRequest, _ struct{}) (*gosdk.CallToolResult, any, error) {
				if !inCall {
					ctx = context.Background()
				}
				//lint:ignore SA1019 servers of the older revisions log
				for _, level := range []gosdk.LoggingLevel{"debug", "info"} {
					//lint:ignore SA1019 as above
					if err := r.Session.Log(ctx, &gosdk.LoggingMessageParams{Level: level, Data: "begun"}); err != nil {
						return nil, nil, err
					}
				}
				answer, err := r.Session.Elicit(ctx, &gosdk.ElicitParams{Message: "sure?", RequestedSchema: json.RawMessage(`{"type":"object"}`)})
				if err != nil {
					return nil, nil, err
				}
				return &gosdk.CallToolResult{Content: []gosdk.Content{&gosdk.TextContent{Text: answer.Action}}}, nil, nil
			})
			ts := httptest.NewServer(gosdk.NewStreamableHTTPHandler(func(*http.Request) *gosdk.Server { return s }, nil))
			t.Cleanup(func() {
				ts.CloseClientConnections()
				ts.Close()
			})
			_, set := open(t, declared(ts.URL), loopback)
			for _, level := range []string{"info", "debug", "info"} {
				var messages []string
				to := asks(&messages)
				to.Level = level
				to.Ask = func(context.Context, registry.Question) registry.Reply {
					return registry.Reply{Result: json.RawMessage(`{"action":"decline"}`)}
				}
				r, err := set.Call(t.Context(), "fake", "ask", nil, to)
				if err != nil || !strings.Contains(string(r.Content[0]), "decline") {
					t.Fatalf("got %+v, %v", r, err)
				}
				want := []string{`{"level":"info","data":"begun"}`}
				if level == "debug" {
					want = append([]string{`{"level":"debug","data":"begun"}`}, want...)
				}
				if !slices.Equal(messages, want) {
					t.Errorf("at level %s the call heard %q, want %q", level, messages, want)
				}
			}
		})
	}
}

// A server that does not answer logging/setLevel, or refuses it, is called all the same, and asked no more.
func TestLevelIsRefused(t *testing.T) {
	t.Parallel()
	for _, mute := range []bool{false, true} {
		server := &conversation{answer: func(_ *conversation, method, _ string) (int, string) {
			if method == "initialize" {
				return 200, `"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{},"logging":{}},"serverInfo":{"name":"s","version":"1"}}`
			}
			return older("2025-06-18")(method)
		}}
		hangs := make(chan struct{})
		_, set := open(t, serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return // the client has gone
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
			if mute && bytes.Contains(body, []byte("setLevel")) {
				<-hangs
			}
			server.ServeHTTP(w, r)
		})), loopback)
		for range 3 {
			var messages []string
			if _, err := set.Call(t.Context(), "fake", "echo", nil, asks(&messages)); err != nil {
				t.Errorf("mute %t: %v", mute, err)
			}
		}
		close(hangs)
		if n := server.count("logging/setLevel"); !mute && n != 1 {
			t.Errorf("asked %d times, want once", n)
		}
	}
}
