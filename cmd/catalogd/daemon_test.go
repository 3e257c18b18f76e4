package main

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/catalogd/catalogd"
	"github.com/catalogd/catalogd/internal/buildcache"
	"github.com/catalogd/catalogd/internal/httpapi"
)

// TestProve: only what knows the announced key, for the address that was dialed, is taken for the daemon; and
// no token reaches anything before.
func TestProve(t *testing.T) {
	t.Setenv(tokenVariable, "cat_secret")
	key := buildcache.NewKey()
	proving := func(key []byte, local func(r *http.Request) string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "" {
				t.Error("a token was sent before the proof")
			}
			w.Header().Set(httpapi.ProofHeader, buildcache.Proof(key, r.Header.Get(httpapi.ChallengeHeader), local(r)))
		}
	}
	dialed := func(r *http.Request) string { return r.Host }
	daemon := httptest.NewServer(proving(key, dialed))
	defer daemon.Close()
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		url     string
		want    string
	}{
		"the daemon":         {handler: proving(key, dialed)},
		"no proof":           {handler: func(http.ResponseWriter, *http.Request) {}, want: "is not the daemon that serves /a"},
		"another key":        {handler: proving(buildcache.NewKey(), dialed), want: "is not the daemon that serves /a"},
		"relayed":            {handler: proving(key, func(*http.Request) string { return "192.0.2.1:8420" }), want: "is not the daemon"},
		"redirected":         {handler: http.RedirectHandler(daemon.URL+"/healthz", http.StatusFound).ServeHTTP, want: "is not the daemon"},
		"another machine":    {url: "http://192.0.2.1:8420", want: "is not a loopback one"},
		"a name":             {url: "http://localhost:8420", want: "is not a loopback one"},
		"not even an URL":    {url: "http://[", want: "can't be used"},
		"nothing is there":   {url: "http://127.0.0.1:1", want: "no daemon answers at http://127.0.0.1:1"},
		"another protocol":   {url: "https://127.0.0.1:1", want: "is not a loopback one"},
		"a user in the text": {url: "http://127.0.0.1:1@192.0.2.1:80", want: "is not a loopback one"},
	} {
		t.Run(name, func(t *testing.T) {
			at := c.url
			if c.handler != nil {
				server := httptest.NewServer(c.handler)
				defer server.Close()
				at = server.URL
			}
			err := prove(t.Context(), buildcache.Announcement{URL: at, Key: key, PID: 1, Serves: "/a"})
			switch {
			case c.want == "" && err != nil:
				t.Errorf("got %v, want no error", err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// TestAnnounced: the newest announcement of a catalog comes first, those of ended processes are removed by the next
// daemon, and a directory that others may enter is not believed.
func TestAnnounced(t *testing.T) {
	state, root := t.TempDir()+"/state", t.TempDir()
	announce := func(pid int, since int64) func() error {
		end, err := buildcache.Announce(state, []string{root}, buildcache.Announcement{
			URL: "http://127.0.0.1:1", Key: buildcache.NewKey(), PID: pid, Since: time.Unix(since, 0),
		})
		if err != nil {
			t.Fatal(err)
		}
		return end
	}
	pids := func(root string) (found []int) {
		all, err := buildcache.Announced(state, root)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range all {
			found = append(found, a.PID)
		}
		return found
	}
	if got := pids(root); got != nil {
		t.Errorf("before any daemon: got %v, want none", got)
	}
	const noProcess = 1 << 30 // more than any system allows
	announce(noProcess, 1)
	first := announce(os.Getpid(), 2)
	second := announce(os.Getppid(), 3)
	if got := pids(root); len(got) != 2 || got[0] != os.Getppid() || got[1] != os.Getpid() {
		t.Errorf("got processes %v, want %d and %d", got, os.Getppid(), os.Getpid())
	}
	if got := pids(t.TempDir()); got != nil {
		t.Errorf("another catalog: got %v, want none", got)
	}
	if err := second(); err != nil {
		t.Error(err)
	}
	if got := pids(root); len(got) != 1 || got[0] != os.Getpid() {
		t.Errorf("after the end of one: got %v, want %d", got, os.Getpid())
	}
	if err := first(); err != nil {
		t.Error(err)
	}
	if err := os.Chmod(state, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := buildcache.Announced(state, root); err == nil || !strings.Contains(err.Error(), "other users may enter") {
		t.Errorf("of a directory that others may enter: got %v", err)
	}
}

// TestOtherDaemonHangs: a start does not wait long for what is announced and accepts connections without an answer.
func TestOtherDaemonHangs(t *testing.T) {
	t.Parallel()
	hung, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer hung.Close()
	state, root := t.TempDir()+"/state", t.TempDir()
	end, err := buildcache.Announce(state, []string{root}, buildcache.Announcement{
		URL: "http://" + hung.Addr().String(), Key: buildcache.NewKey(), PID: os.Getpid(), Since: time.Now(),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	began := time.Now()
	other := otherDaemon(&env{ctx: t.Context()}, catalogd.Config{Dir: root, State: state})
	if took := time.Since(began); other != "" || took >= proveTime {
		t.Errorf("got %q after %v, want none in less than %v", other, took, proveTime)
	}
}
