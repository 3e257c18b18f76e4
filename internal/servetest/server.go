// Package servetest has the fixtures that the tests of generation, daemon, mcpserver and httpapi share: a
// House is a catalog and policy in memory with a daemon, a Server serves given tools without a policy. Only
// tests import it.
package servetest

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/catalogd/catalogd/internal/daemon"
	"github.com/catalogd/catalogd/internal/generation"
	"github.com/catalogd/catalogd/internal/httpapi"
	"github.com/catalogd/catalogd/internal/mcpserver"
	"github.com/catalogd/catalogd/internal/token"
	"github.com/catalogd/catalogd/invoke"
)

// Listening serves a front on a loopback port, and returns its daemon for requests.
func Listening(t testing.TB, b Backend) *Server {
	t.Helper()
	d := b.Daemon()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d.URL = "http://" + ln.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- d.Serve(ctx, ln) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return d
}

// Server is a front on a listening socket, over generations that a test swaps.
type Server struct {
	*mcpserver.Server
	*httpapi.API
	URL    string
	Log    *SyncBuffer
	Logger *slog.Logger
	Served atomic.Pointer[generation.Generation]
	pins   atomic.Int64
	events *invoke.Events
	Status atomic.Pointer[daemon.Status]
}

// Backend is what a test serves over MCP and HTTP.
type Backend struct {
	Version string
	Pin     func() (*generation.Generation, func())
	Status  func() daemon.Status
	Reload  func(context.Context) daemon.Outcome
	Log     *slog.Logger
	Limits  mcpserver.Limits
	Tokens  *token.Store
	Effects *daemon.Effects
	Hosts   []string
	ListTTL time.Duration
	Events  *invoke.Events
	// SessionKey is that of mcpserver.Config.
	SessionKey []byte
}

// Daemon serves it, not listening yet.
func (b Backend) Daemon() *Server {
	metrics := httpapi.NewMetrics()
	front := mcpserver.New(mcpserver.Config{
		Version: b.Version, Pin: b.Pin, Called: metrics.Called, Refused: metrics.Refused, Log: b.Log, Limits: b.Limits, Tokens: b.Tokens, ListTTL: b.ListTTL,
		SessionKey: b.SessionKey,
	})
	return &Server{Server: front, API: httpapi.New(httpapi.Config{
		MCP: front, Metrics: metrics, Status: b.Status, Reload: b.Reload, Effects: b.Effects, Hosts: b.Hosts, Events: b.Events,
	})}
}

type SyncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *SyncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *SyncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// Open makes a front that doesn't listen.
func Open(t testing.TB, c Catalog, change ...func(*Backend)) *Server {
	t.Helper()
	d := &Server{Log: &SyncBuffer{}, events: invoke.NewEvents()}
	c.Events = d.events
	d.Logger = slog.New(slog.NewTextHandler(d.Log, nil))
	d.Served.Store(c.Generation(t, d.Logger))
	d.Status.Store(&daemon.Status{Version: "test", Healthy: true, Generation: daemon.GenerationStatus{ID: c.ID}})
	b := Backend{
		Version: "test",
		Pin: func() (*generation.Generation, func()) {
			d.pins.Add(1)
			return d.Served.Load(), func() { d.pins.Add(-1) }
		},
		Status: func() daemon.Status { return *d.Status.Load() },
		Reload: func(context.Context) daemon.Outcome { return daemon.Outcome{Result: "unchanged", Generation: c.ID} },
		Log:    d.Logger,
		Events: d.events,
	}
	for _, f := range change {
		f(&b)
	}
	made := b.Daemon()
	d.Server, d.API = made.Server, made.API
	t.Cleanup(d.Close)
	return d
}

// Start serves a catalog on a loopback port.
func Start(t testing.TB, c Catalog, change ...func(*Backend)) *Server {
	t.Helper()
	d, end := StartEnded(t, c, change...)
	t.Cleanup(func() {
		if err := <-end(); err != nil {
			t.Errorf("serve: %v", err)
		}
		if n := d.pins.Load(); n != 0 {
			t.Errorf("%d generations are still pinned", n)
		}
	})
	return d
}

// StartEnded is start for a test that ends the daemon itself, and may look at how it ends.
func StartEnded(t testing.TB, c Catalog, change ...func(*Backend)) (d *Server, end func() <-chan error) {
	t.Helper()
	d = Open(t, c, change...)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d.URL = "http://" + ln.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	ended := make(chan error, 1)
	go func() { ended <- d.Serve(ctx, ln) }()
	return d, func() <-chan error {
		cancel()
		return ended
	}
}

// Swap serves another generation and tells the branches.
func (d *Server) Swap(t testing.TB, c Catalog, changed ...string) {
	t.Helper()
	c.Events = d.events
	d.Served.Store(c.Generation(t, d.Logger))
	d.Changed(changed)
}

// Until waits for a condition.
func Until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("did not happen: %s", what)
}
