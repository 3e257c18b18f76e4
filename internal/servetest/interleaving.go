package servetest

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// Party is one branch and its sessions, for tests that interleave the requests of two branches.
type Party struct {
	Path, Own, Other string // own and other are the words of the tools
	mu               sync.Mutex
	Sessions         [][]string
}

func (c *Party) session(rng *rand.Rand) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.Sessions) == 0 {
		return []string{"Mcp-Session-ID", "none"}
	}
	return c.Sessions[rng.IntN(len(c.Sessions))]
}

// Step sends a random request to c's branch, and fails the test if the answer mentions the other branch's
// tools.
func (d *Server) Step(t *testing.T, rng *rand.Rand, c, foreign *Party) {
	pick := func(of ...string) string { return of[rng.IntN(len(of))] }
	session := c.session(rng)
	stranger := rng.IntN(3) == 0
	if stranger {
		session = foreign.session(rng)
	}
	named := fmt.Sprintf("%s_%d", pick(c.Own, foreign.Own), rng.IntN(5))
	var r Response
	withSession := true
	switch rng.IntN(10) {
	case 0, 1:
		withSession = false
		r = d.Modern(t, c.Path, "tools/call", fmt.Sprintf(`"name":%q`, named))
		if strings.HasPrefix(named, c.Other) && !strings.Contains(r.Body, "unknown tool") {
			t.Errorf("%s could call %s: %s", c.Path, named, r.Body)
		}
	case 2:
		r = d.Do(t, "POST", c.Path, LegacyBody("tools/call", fmt.Sprintf(`"name":%q`, named)), session...)
	case 3:
		named, withSession = "", false
		r = d.Modern(t, c.Path, "tools/list", pick("", `"cursor":"1"`, `"cursor":"YQ=="`))
	case 4:
		named = ""
		r = d.Do(t, "POST", c.Path, LegacyBody("tools/list", pick("", `"cursor":"YQ=="`)), session...)
	case 5:
		named = ""
		r = d.Do(t, "POST", c.Path, LegacyBody(pick("ping", "logging/setLevel", "resources/list", "prompts/list", "completion/complete", "nothing"), `"level":"debug"`), session...)
	case 6:
		r = d.Do(t, "POST", c.Path, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`, session...)
	case 7:
		if stranger { // one that it may end would end the others' work
			r = d.Do(t, "DELETE", c.Path, "", session...)
		}
	case 8:
		if stranger {
			r = d.Do(t, "GET", c.Path, "", append([]string{"Accept", "text/event-stream"}, session...)...)
		}
	case 9:
		fresh := d.Session(t, c.Path)
		c.mu.Lock()
		defer c.mu.Unlock()
		if len(c.Sessions) < 5 {
			c.Sessions = append(c.Sessions, fresh)
		}
	}
	if stranger && withSession && r.Status != 0 && r.Status != http.StatusNotFound {
		t.Errorf("%s took a session of the other branch: %+v", c.Path, r)
	}
	body := r.Body
	if named != "" {
		body = strings.ReplaceAll(body, named, "")
	}
	if strings.Contains(body, c.Other) {
		t.Errorf("%s, asked for %s, got an answer about the other branch: %s", c.Path, named, r.Body)
	}
}
