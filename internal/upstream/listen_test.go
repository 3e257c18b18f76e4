package upstream_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/catalogd/catalogd/internal/upstream"
	"github.com/catalogd/catalogd/registry"
)

// growing is a real server one of whose tools adds another.
func growing() *server.MCPServer {
	s := server.NewMCPServer("growing", "1", server.WithToolCapabilities(true))
	said := func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText("ok"), nil
	}
	s.AddTool(mcp.NewTool("grow"), func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		s.AddTool(mcp.NewTool("grown"), said)
		return said(ctx, r)
	})
	return s
}

// What a server offers is asked for again when it says, outside of any call, that this has changed: over HTTP in both eras,
// and by a child of 2026-07-28, which tells only who subscribes.
func TestListening(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, protocol string }{
		{"http, 2026-07-28", "2026-07-28"}, {"http, older", mcp.LATEST_LEGACY_PROTOCOL_VERSION}, {"stdio, 2026-07-28", "2026-07-28"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s := stdioServer(t, "listening")
			s.Stdio.Args = []string{"-growing"}
			if strings.HasPrefix(row.name, "http") {
				h := server.NewStreamableHTTPServer(growing(), server.WithStateful(true))
				ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					body, err := io.ReadAll(r.Body)
					if err != nil || row.protocol != "2026-07-28" && bytes.Contains(body, []byte("server/discover")) {
						w.WriteHeader(http.StatusBadRequest)
						return
					}
					r.Body = io.NopCloser(bytes.NewReader(body))
					h.ServeHTTP(w, r)
				}))
				t.Cleanup(func() {
					ts.CloseClientConnections()
					ts.Close()
				})
				s.Stdio, s.HTTP = nil, &registry.HTTPAddress{URL: ts.URL + "/mcp"}
			}
			s.Discover = &registry.Discover{}
			offers := make(chan upstream.Offer, 100)
			pool, set := openWith(t, upstream.Config{
				Logger: slog.New(slog.DiscardHandler),
				Watch: upstream.Watch{
					Offered: func(_ registry.Server, o upstream.Offer) { offers <- o },
					Admit:   func(registry.Server, string) error { return nil },
				},
			}, s, loopback)
			if _, err := set.Offered(t.Context(), "fake"); err != nil {
				t.Fatal(err)
			}
			if got := pool.Status()[0].Protocol; got != row.protocol {
				t.Fatalf("it speaks %s", got)
			}
			// The first list comes with the connection, the second when the stream is open.
			for range 2 {
				if o := <-offers; len(o.Tools) != 1 {
					t.Fatalf("at first it offers %s", o.Tools)
				}
			}
			if _, err := set.Call(t.Context(), "fake", "grow", nil, registry.Listener{}); err != nil {
				t.Fatal(err)
			}
			select {
			case o := <-offers:
				if len(o.Tools) != 2 {
					t.Errorf("then it offers %s", o.Tools)
				}
			case <-time.After(45 * time.Second): // which is before the next question by the clock
				t.Error("nothing is heard of the change")
			}
		})
	}
}

// serveGrowing is the child of TestListening.
func serveGrowing() {
	if err := server.NewStdioServer(growing()).Listen(context.Background(), os.Stdin, os.Stdout); err != nil {
		os.Exit(1)
	}
}
