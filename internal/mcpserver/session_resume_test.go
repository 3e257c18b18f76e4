package mcpserver_test

import (
	"strings"
	"testing"
	"time"

	"github.com/catalogd/catalogd/internal/mcpserver"
	"github.com/catalogd/catalogd/internal/servetest"
)

// keyed gives a server a session key, and what else change sets.
func keyed(key string, change ...func(*servetest.Backend)) func(*servetest.Backend) {
	return func(b *servetest.Backend) {
		b.SessionKey = []byte(strings.Repeat(key, 32)[:32])
		for _, c := range change {
			c(b)
		}
	}
}

// A session goes on at another process with the same key, with what its client has declared; nobody else's does,
// and none that its client has ended.
func TestSessionIsResumed(t *testing.T) {
	t.Parallel()
	list := servetest.LegacyBody("tools/list", "")
	before := servetest.Start(t, servetest.Weather(), keyed("a"))
	session, ended := before.Session(t, "/mcp"), before.Session(t, "/mcp")
	restarted := servetest.Start(t, servetest.Weather(), keyed("a"))
	if r := restarted.Do(t, "POST", "/mcp", list, session...); r.Status != 200 || !strings.Contains(r.Body, `"weather"`) {
		t.Errorf("a session after a restart: %+v", r)
	}
	stream := restarted.Stream(t, "/mcp", session)
	restarted.Swap(t, servetest.Weather(), "default")
	if got := stream.Event(t); !strings.Contains(got, "list_changed") {
		t.Errorf("its stream: %s", got)
	}
	if r := restarted.Do(t, "DELETE", "/mcp", "", ended...); r.Status != 200 {
		t.Errorf("DELETE after a restart: %+v", r)
	}
	other := "A"
	if strings.HasSuffix(session[1], other) {
		other = "E"
	}
	for _, test := range []struct {
		name    string
		at      *servetest.Server
		path    string
		session string
	}{
		{"ended", restarted, "/mcp", ended[1]},
		{"at another branch", restarted, "/branches/research/mcp", session[1]},
		{"of another key", servetest.Start(t, servetest.Weather(), keyed("b")), "/mcp", session[1]},
		{"without a key", servetest.Start(t, servetest.Weather()), "/mcp", session[1]},
		{"changed at its end", restarted, "/mcp", session[1][:len(session[1])-1] + other},
		{"changed at its begin", restarted, "/mcp", "0" + session[1]},
		{"with other capabilities", restarted, "/mcp", strings.Replace(session[1], ".", ".e30", 1)},
		{"without a seal", restarted, "/mcp", session[1][:strings.LastIndexByte(session[1], '.')]},
	} {
		r := test.at.Do(t, "POST", test.path, list, "Mcp-Session-Id", test.session, "Mcp-Protocol-Version", servetest.LegacyVersion)
		if r.Status != 404 {
			t.Errorf("a session %s: %d %s", test.name, r.Status, r.Body)
		}
	}
}

// A session that has expired is begun again by its client's next request, within the limits.
func TestExpiredSessionIsResumed(t *testing.T) {
	t.Parallel()
	d := servetest.Start(t, servetest.Weather(), keyed("a", func(b *servetest.Backend) {
		b.Limits = mcpserver.Limits{SessionIdle: 50 * time.Millisecond, Sessions: 1}
	}))
	session := d.Session(t, "/mcp")
	expired := func() bool {
		return strings.Contains(d.Do(t, "GET", "/metrics", "").Body, `catalogd_sessions{branch="default"} 0`)
	}
	servetest.Until(t, "the session expires", expired)
	stream := d.Stream(t, "/mcp", session)
	second := d.Do(t, "POST", "/mcp", initializeLine)
	if second.Status != 503 {
		t.Errorf("a second session: %+v", second)
	}
	stream.Body.Close()
	servetest.Until(t, "the session expires again", expired)
	holder := d.Session(t, "/mcp")
	held := d.Stream(t, "/mcp", holder)
	if r := d.Do(t, "POST", "/mcp", servetest.LegacyBody("tools/list", ""), session...); r.Status != 503 || r.Header.Get("Retry-After") == "" {
		t.Errorf("no room to begin it again: %+v", r)
	}
	held.Body.Close()
}

// A client that answers questions is asked after the restart too.
func TestResumedSessionIsAsked(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		initialize string
		reaches    bool
	}{{capable, true}, {initializeLine, false}} {
		begun := servetest.Start(t, servetest.Weather(), keyed("a")).Do(t, "POST", "/mcp", test.initialize)
		header := []string{"Mcp-Session-Id", begun.Header.Get("Mcp-Session-Id"), "Mcp-Protocol-Version", "2025-06-18"}
		d := servetest.Start(t, upstreamOf(t, asking(t, "elicitation/create"), []string{"elicitation"}), keyed("a"))
		relayed(t, "elicitation/create", test.reaches, streamed(t, d, callBody(false, "c", "n", ""), header), func(answer string) {
			if r := d.Do(t, "POST", "/mcp", answer, header...); r.Status != 202 {
				t.Errorf("the client's answer was answered %+v", r)
			}
		})
	}
}
