package mcpserver_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/internal/servetest"
	"github.com/catalogd/catalogd/registry"
)

// A quiet stream of each era gets comments, and its events stay whole between them.
func TestHeartbeat(t *testing.T) {
	t.Parallel()
	d := servetest.Start(t, servetest.Weather(), func(b *servetest.Backend) { b.Limits.Heartbeat = time.Millisecond })
	older, modern := d.Stream(t, "/mcp", d.Session(t, "/mcp")), d.Listen(t, "/mcp", nil)
	if got := modern.Event(t); !strings.Contains(got, "acknowledged") {
		t.Fatal(got)
	}
	older.Comment(t)
	modern.Comment(t)
	d.Swap(t, servetest.Weather(), "default")
	for era, s := range map[string]interface {
		Event(testing.TB) string
		Comment(testing.TB)
	}{"older": older, "modern": modern} {
		if got := s.Event(t); !strings.Contains(got, "list_changed") || !strings.HasPrefix(got, "{") || !strings.HasSuffix(got, "}") {
			t.Errorf("%s: %s", era, got)
		}
		s.Comment(t)
	}
}

// A call that has begun a stream is kept alive until its answer, which comes whole.
func TestHeartbeatOfCalls(t *testing.T) {
	t.Parallel()
	quiet := make(chan struct{})
	tool := servetest.Tool("slow", "", speaker(func(_ context.Context, _ contract.Args, to registry.Listener) (*registry.Result, error) {
		to.Progress([]byte(`{"progress":1}`))
		<-quiet
		return &registry.Result{Content: []json.RawMessage{registry.Text("at last")}}, nil
	}))
	c := servetest.Catalog{ID: "g1", Branches: map[string][]string{"default": nil}, Tools: []servetest.Fixture{tool}}
	d := servetest.Start(t, c, func(b *servetest.Backend) { b.Limits.Heartbeat = time.Millisecond })
	s := d.Begin(t, "/mcp", servetest.LegacyBody("tools/call", `"name":"slow","_meta":{"progressToken":"p"}`), d.Session(t, "/mcp")...)
	if got := s.Event(t); !strings.Contains(got, `"progress":1`) {
		t.Fatal(got)
	}
	s.Comment(t)
	close(quiet)
	if got := s.Event(t); !strings.Contains(got, "at last") {
		t.Error(got)
	}
	s.Rest(t)
}
