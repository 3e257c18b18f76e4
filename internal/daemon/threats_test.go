package daemon_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/internal/servetest"
	"github.com/catalogd/catalogd/registry"
)

// TestBadInputFiles finds the tests of what files do to a daemon that serves by their number (docs/robustness.md).
func TestBadInputFiles(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name string
		test func(*testing.T)
	}{
		{"B17/no start without a policy", openRefuses},
		{"C10/the same content", unchanged},
		{"C11/every way to fail and back", lastGood},
		{"C12/one mended, one broken", bothInOneSave},
		{"C16/calls outlive their generation", callOutlivesItsGeneration},
		{"C17/old generations are forgotten", oldGenerationsAreForgotten},
		{"C18/a reload that is given up", cancelledReload},
		{"E20/before initialize", beforeInitialize},
	} {
		t.Run(row.name, row.test)
	}
}

// TestThreatReload finds the tests of T17 by its number.
func TestThreatReload(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name string
		test func(*testing.T)
	}{
		{"T17/a swap is seen whole", swapIsSeenWhole},
		{"T17/a gate decides about its own end", gateStays},
		{"T17/a gate that fails", brokenGate},
		{"T17/neither of two", bothInOneSave},
	} {
		t.Run(row.name, row.test)
	}
}

// Before initialize, a client of the older era gets nothing, and one of the newer needs none.
func beforeInitialize(t *testing.T) {
	t.Parallel()
	var ran atomic.Int32
	c := servetest.Catalog{ID: "g1", Branches: map[string][]string{"default": nil}, Tools: []servetest.Fixture{
		servetest.Tool("canary", "", servetest.Invoker(func(context.Context, contract.Args) (*registry.Result, error) {
			ran.Add(1)
			return &registry.Result{Content: []json.RawMessage{registry.Text("ran")}}, nil
		})),
	}}
	d := servetest.Start(t, c)
	p := servetest.Attach(t, servetest.Open(t, c), "default")
	for _, method := range []string{"tools/call", "tools/list"} {
		body := servetest.LegacyBody(method, `"name":"canary"`)
		if r := d.Do(t, "POST", "/mcp", body, "Mcp-Protocol-Version", servetest.LegacyVersion); r.Status != 400 || strings.Contains(r.Body, "canary") {
			t.Errorf("%s: %+v", method, r)
		}
		p.Send(t, body)
		if line := p.Next(t); !strings.Contains(line, `"error"`) || strings.Contains(line, "canary") {
			t.Errorf("%s on stdio: %s", method, line)
		}
	}
	if n := ran.Load(); n != 0 {
		t.Errorf("it ran %d times", n)
	}
	if r := d.Modern(t, "/mcp", "tools/call", `"name":"canary"`); r.Status != 200 || ran.Load() != 1 {
		t.Errorf("%+v", r)
	}
	p.Send(t, servetest.ModernBody("tools/call", `"name":"canary"`))
	if line := p.Next(t); !strings.Contains(line, "ran") || ran.Load() != 2 {
		t.Errorf("%s", line)
	}
}
