package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// askingDaemon are the commands that ask a daemon, each as it is called beside --server.
var askingDaemon = map[string][]string{
	"act":             {"act", "default", "-"},
	"call":            {"call", "default", "greet"},
	"intents list":    {"intents", "list"},
	"intents approve": {"intents", "approve", "an-id"},
	"servers":         {"servers", "-C", "../.."},
	"status":          {"status"},
}

// TestInterruptedDaemonCommand interrupts commands while the daemon has their request, before and in the midst
// of its answer: they say so, and not that no daemon answers.
func TestInterruptedDaemonCommand(t *testing.T) {
	t.Parallel()
	for name, command := range askingDaemon {
		for _, begun := range []string{"", `{"begun": `} {
			t.Run(name+" after "+begun, func(t *testing.T) {
				t.Parallel()
				ctx, interrupt := context.WithCancel(t.Context())
				defer interrupt()
				server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					_, _ = io.Copy(io.Discard, r.Body) // only then a server hears that its client is gone
					if begun != "" {
						_, _ = w.Write([]byte(begun)) // the client reads it or is gone
						_ = http.NewResponseController(w).Flush()
					}
					interrupt()
					<-r.Context().Done()
				}))
				defer server.Close()
				want := "catalogd: interrupted before the daemon at " + server.URL +
					" had answered; what was asked for may have been done\n"
				daemonCommand(ctx, t, append(command, "--server", server.URL), want)
			})
		}
	}
}

// TestDaemonBreaksOff: a daemon that takes a request and ends is not one that never was there.
func TestDaemonBreaksOff(t *testing.T) {
	t.Parallel()
	for name, command := range askingDaemon {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
				panic(http.ErrAbortHandler)
			}))
			defer server.Close()
			want := "catalogd: the daemon at " + server.URL +
				" broke off before it had answered: EOF; what was asked for may have been done\n"
			daemonCommand(t.Context(), t, append(command, "--server", server.URL), want)
		})
	}
}

// daemonCommand runs a command that must print want as its error, and nothing else.
func daemonCommand(ctx context.Context, t *testing.T, args []string, want string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := run(ctx, args, strings.NewReader(`{"function": "greet"}`), &stdout, &stderr)
	if code != 2 || stdout.Len() > 0 || stderr.String() != want {
		t.Errorf("%v: got exit code %d, stdout %q, stderr %q; want 2, nothing and %q",
			args, code, stdout.String(), stderr.String(), want)
	}
}
