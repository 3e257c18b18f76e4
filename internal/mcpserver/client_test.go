package mcpserver_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/catalogd/catalogd/internal/servetest"
)

// kinds are the ways in which a client reaches a branch.
var kinds = []struct {
	name, version string
	connect       func(testing.TB, *servetest.Server, string) *client.Client
}{
	{"http modern", servetest.ModernVersion, overHTTP(servetest.ModernVersion)},
	{"http legacy", servetest.LegacyVersion, overHTTP(servetest.LegacyVersion)},
	{"http oldest", "2025-03-26", overHTTP("2025-03-26")},
	{"stdio modern", servetest.ModernVersion, overStdio(servetest.ModernVersion)},
	{"stdio legacy", servetest.LegacyVersion, overStdio(servetest.LegacyVersion)},
}

func overHTTP(version string) func(testing.TB, *servetest.Server, string) *client.Client {
	return func(t testing.TB, d *servetest.Server, branch string) *client.Client {
		t.Helper()
		options := []transport.StreamableHTTPCOption{transport.WithHTTPLogger(slog.New(slog.DiscardHandler))}
		if !mcp.IsModernProtocol(version) {
			//lint:ignore SA1019 the older eras are what is tested
			options = append(options, transport.WithContinuousListening())
		}
		tr, err := transport.NewStreamableHTTP(d.URL+"/branches/"+branch+"/mcp", options...)
		if err != nil {
			t.Fatal(err)
		}
		return servetest.Initialize(t, tr, version)
	}
}

func overStdio(version string) func(testing.TB, *servetest.Server, string) *client.Client {
	return func(t testing.TB, d *servetest.Server, branch string) *client.Client {
		t.Helper()
		toServer, fromClient := io.Pipe()
		toClient, fromServer := io.Pipe()
		ended := make(chan error, 1)
		go func() {
			ended <- d.Stdio(context.Background(), branch, toServer, fromServer)
			fromServer.Close()
		}()
		c := servetest.Initialize(t, transport.NewIO(toClient, fromClient, io.NopCloser(strings.NewReader(""))), version)
		t.Cleanup(func() {
			fromClient.Close()
			if err := <-ended; err != nil {
				t.Errorf("stdio: %v", err)
			}
		})
		return c
	}
}

func TestClients(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			d := servetest.Start(t, servetest.Weather())
			c := kind.connect(t, d, "default")
			ctx := context.Background()
			list, err := c.ListTools(ctx, mcp.ListToolsRequest{})
			if err != nil {
				t.Fatal(err)
			}
			if len(list.Tools) != 7 || list.NextCursor != "" {
				t.Errorf("list: %+v", list)
			}
			call := func(name string, args any) (*mcp.CallToolResult, error) {
				return c.CallTool(ctx, mcp.CallToolRequest{Params: mcp.CallToolParams{Name: name, Arguments: args}})
			}
			result, err := call("weather", map[string]any{"city": "Bern"})
			if err != nil {
				t.Fatal(err)
			}
			want := map[string]any{"city": "Bern", "units": "celsius"}
			if diff := cmp.Diff(want, result.StructuredContent); diff != "" || result.IsError {
				t.Errorf("%s%+v", diff, result)
			}
			for name, args := range map[string]any{"weather": map[string]any{"units": 1}, "denied": nil, "writes": nil, "broken": nil, "complains": nil} {
				if result, err := call(name, args); err != nil || !result.IsError || len(result.Content) != 1 {
					t.Errorf("%s: %+v %v", name, result, err)
				}
			}
			if _, err := call("private", nil); err == nil || !strings.Contains(err.Error(), `unknown tool "private"`) {
				t.Errorf("private: %v", err)
			}
			if kind.version != servetest.ModernVersion {
				//lint:ignore SA1019 the older eras are what is tested
				if err := c.Ping(ctx); err != nil {
					t.Errorf("ping: %v", err)
				}
			}
		})
	}
}

// list_changed reaches exactly the clients of the branches that are named, after the new list is there.
func TestListChanged(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			d := servetest.Start(t, servetest.Weather(), func(b *servetest.Backend) { b.Limits.Heartbeat = time.Millisecond })
			research, other := kind.connect(t, d, "research"), kind.connect(t, d, "default")
			heard, wrong := hear(t, research), hear(t, other)
			next := servetest.Weather()
			next.ID = "g2"
			next.Branches["research"] = []string{"private", "weather", "old"}
			d.Served.Store(next.Generation(t, d.Logger))
			ctx := context.Background()
			// A client that has only just connected may not be listening yet, so tell it until it hears.
			servetest.Until(t, "list_changed", func() bool {
				d.Changed([]string{"research"})
				select {
				case method := <-heard:
					if method != "notifications/tools/list_changed" {
						t.Fatalf("heard %s", method)
					}
					return true
				case <-time.After(100 * time.Millisecond):
					return false
				}
			})
			list, err := research.ListTools(ctx, mcp.ListToolsRequest{})
			if err != nil || len(list.Tools) != 3 {
				t.Errorf("%+v %v", list, err)
			}
			if _, err := other.ListTools(ctx, mcp.ListToolsRequest{}); err != nil {
				t.Error(err)
			}
			select {
			case method := <-wrong:
				t.Errorf("another branch heard %s", method)
			default:
			}
		})
	}
}

// hear returns a channel of the notifications that a client gets.
func hear(t testing.TB, c *client.Client) <-chan string {
	t.Helper()
	heard := make(chan string, 100)
	c.OnNotification(func(n mcp.JSONRPCNotification) {
		if n.Method != mcp.MethodNotificationSubscriptionsAcknowledged {
			heard <- n.Method
		}
	})
	if mcp.IsModernProtocol(c.ProtocolVersion()) {
		stop, err := c.ListenAsync(context.Background(), mcp.SubscriptionFilter{ToolsListChanged: true}, func(err error) { t.Logf("listen: %v", err) })
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(stop)
	}
	return heard
}

// A modern client hears nothing that it didn't ask for, whatever the transport.
func TestSubscriptionIsOptIn(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		if kind.version != servetest.ModernVersion {
			continue
		}
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			d := servetest.Start(t, servetest.Weather())
			c := kind.connect(t, d, "default")
			heard := make(chan string, 10)
			c.OnNotification(func(n mcp.JSONRPCNotification) { heard <- n.Method })
			ctx := context.Background()
			if err := c.Listen(ctx, mcp.SubscriptionFilter{PromptsListChanged: true}); err != nil {
				t.Fatalf("listen for what there is not ends at once: %v", err)
			}
			d.Changed([]string{"default"})
			if _, err := c.ListTools(ctx, mcp.ListToolsRequest{}); err != nil {
				t.Fatal(err)
			}
			for len(heard) > 0 {
				if method := <-heard; method != mcp.MethodNotificationSubscriptionsAcknowledged {
					t.Errorf("heard %s", method)
				}
			}
		})
	}
}

// The daemon's end ends streams at once and lets calls finish.
func TestGracefulEnd(t *testing.T) {
	t.Parallel()
	d := servetest.Start(t, servetest.Weather())
	c := overHTTP(servetest.LegacyVersion)(t, d, "default")
	heard := hear(t, c)
	servetest.Until(t, "the stream is open", func() bool {
		d.Changed([]string{"default"})
		select {
		case <-heard:
			return true
		case <-time.After(50 * time.Millisecond):
			return false
		}
	})
	// start's cleanup fails if Serve waits for the stream.
}

func decode(t testing.TB, raw string) any {
	t.Helper()
	var v any
	d := json.NewDecoder(strings.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%v in %q", err, raw)
	}
	return v
}
