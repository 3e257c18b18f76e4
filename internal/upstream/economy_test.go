package upstream_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mark3labs/mcp-go/server"

	"github.com/catalogd/catalogd/decision/trust"
	"github.com/catalogd/catalogd/internal/upstream"
	"github.com/catalogd/catalogd/registry"
)

// journal notes the methods of the messages that reach a server.
type journal struct {
	mu      sync.Mutex
	methods []string
}

func (j *journal) note(body []byte) {
	var m struct{ Method string }
	if json.Unmarshal(body, &m) != nil {
		m.Method = "?"
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.methods = append(j.methods, m.Method)
}

func (j *journal) take() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	taken := j.methods
	j.methods = nil
	return taken
}

// TestACallIsOneMessage: once connected, a server gets nothing for a call but the call: no ping, no list, no handshake
// before it and no notification behind it.
func TestACallIsOneMessage(t *testing.T) {
	t.Parallel()
	one := func(t *testing.T, set *upstream.Set, seen func() []string) {
		t.Helper()
		text(t, set, "echo", `{}`)
		seen() // the handshake
		for i := range 5 {
			text(t, set, "echo", fmt.Sprintf(`{"i":%d}`, i))
		}
		got := seen()
		if want := slices.Repeat([]string{"tools/call"}, 5); !slices.Equal(got, want) {
			t.Errorf("5 calls are the messages %v", got)
		}
	}
	for _, legacy := range []bool{false, true} {
		t.Run(fmt.Sprintf("http, legacy %t", legacy), func(t *testing.T) {
			t.Parallel()
			j := &journal{}
			var handler http.Handler = server.NewStreamableHTTPServer(mcpServer(), server.WithStateful(true))
			if legacy {
				handler = withoutDiscover(handler)
			}
			_, set := open(t, serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				if err != nil {
					t.Error(err)
				}
				j.note(body)
				r.Body = io.NopCloser(strings.NewReader(string(body)))
				handler.ServeHTTP(w, r)
			})), loopback)
			one(t, set, j.take)
		})
		t.Run(fmt.Sprintf("stdio, legacy %t", legacy), func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "journal")
			s := stdioServer(t, map[bool]string{false: "modern", true: "good"}[legacy])
			s.Stdio.Args = append(s.Stdio.Args, file)
			pool, set := open(t, s, trust.Terms{})
			read := 0
			one(t, set, func() []string {
				data, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				new := strings.Fields(string(data[read:]))
				read = len(data)
				return new
			})
			want := map[bool]string{false: "2026-07-28", true: "2025-06-18"}[legacy]
			if got := pool.Status()[0].Protocol; got != want {
				t.Errorf("protocol %s, want %s", got, want)
			}
		})
	}
}

// TestCallersDoNotRedial: with as many calls at once as connections are declared, each connection is dialled once.
func TestCallersDoNotRedial(t *testing.T) {
	t.Parallel()
	const callers, rounds = 40, 10
	for _, legacy := range []bool{false, true} {
		t.Run(fmt.Sprint("legacy ", legacy), func(t *testing.T) {
			t.Parallel()
			var dialled atomic.Int64
			var gathering atomic.Bool
			var handler http.Handler = server.NewStreamableHTTPServer(mcpServer(), server.WithStateful(true))
			if legacy {
				handler = withoutDiscover(handler)
			}
			// So that all callers of a round are at the server at once.
			gather := make(chan struct{})
			var arrived atomic.Int64
			ts := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if gathering.Load() && arrived.Add(1)%callers == 0 {
					for range callers - 1 {
						gather <- struct{}{}
					}
				} else if gathering.Load() {
					<-gather
				}
				handler.ServeHTTP(w, r)
			}))
			ts.Config.ConnState = func(_ net.Conn, state http.ConnState) {
				if state == http.StateNew {
					dialled.Add(1)
				}
			}
			ts.Start()
			t.Cleanup(ts.Close)
			s := declared(ts.URL + "/mcp")
			s.MaxConnections = callers
			_, set := open(t, s, loopback)
			text(t, set, "echo", `{}`)
			gathering.Store(true)
			for range rounds {
				var round sync.WaitGroup
				for range callers {
					round.Go(func() {
						if _, err := call(t, set, "echo", `{}`); err != nil {
							t.Error(err)
						}
					})
				}
				round.Wait()
			}
			gathering.Store(false) // the end of the session comes alone
			limit := int64(callers)
			if legacy {
				limit++ // the stream outside of calls
			}
			if n := dialled.Load(); n > limit {
				t.Errorf("%d calls at a time, %d rounds: %d connections were dialled", callers, rounds, n)
			}
		})
	}
}

// TestAccessIsExplained: what a 401 or 403 says depends on what was sent, and never tells it.
func TestAccessIsExplained(t *testing.T) {
	t.Setenv("ACCESS_TOKEN", "s3cr3t-token")
	for _, c := range []struct {
		code int
		says []string
	}{
		{401, []string{"401: it does not accept the credentials in its declared headers (Authorization, X-Team)", "renew the secret", "read at each request"}},
		{403, []string{"403: it knows the credentials in its declared headers (Authorization, X-Team)", "grant"}},
	} {
		for _, at := range []string{"handshake", "call"} {
			t.Run(fmt.Sprint(c.code, at), func(t *testing.T) {
				s := &script{call: func(w http.ResponseWriter, r *http.Request, _ string) { status(c.code)(w, r) }}
				if at == "handshake" {
					s.handshake = status(c.code)
				}
				d := serve(t, s)
				d.HTTP.Headers = map[string]registry.Value{
					"Authorization": {Secret: "env:ACCESS_TOKEN", Prefix: "Bearer "}, "X-Team": {Literal: "blue"},
				}
				_, set := open(t, d, loopback)
				_, err := call(t, set, "echo", `{}`)
				fails(t, err, registry.Unauthorized, append(c.says, "unavailable since 20")...)
				if !strings.Contains(err.Error(), "credentials sent: Authorization from env:ACCESS_TOKEN") || strings.Contains(err.Error(), "s3cr3t") {
					t.Errorf("for the operator: %v", err)
				}
				if strings.Contains(err.(*registry.Error).Msg, "ACCESS_TOKEN") {
					t.Errorf("the model is told where the secret is: %v", err)
				}
			})
		}
	}
}
