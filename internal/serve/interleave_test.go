package serve_test

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// twoBranches has the tools alpha_0.. for branch a and beta_0.. for branch b; n makes other ones.
func twoBranches(n int) catalog {
	c := catalog{id: fmt.Sprint("g", n), branches: map[string][]string{"a": {}, "b": {}}}
	for branch, word := range map[string]string{"a": "alpha", "b": "beta"} {
		for i := range 3 {
			name := fmt.Sprintf("%s_%d", word, (n+i)%5)
			c.tools = append(c.tools, tool(name, "", text("this is "+name)))
			c.branches[branch] = append(c.branches[branch], name)
		}
	}
	return c
}

// party is what the interleavings test knows of one branch.
type party struct {
	path, own, other string // own and other are the words of the tools
	mu               sync.Mutex
	sessions         [][]string
}

func (c *party) session(rng *rand.Rand) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.sessions) == 0 {
		return []string{"Mcp-Session-Id", "none"}
	}
	return c.sessions[rng.IntN(len(c.sessions))]
}

// Whatever two branches' clients do, in whatever order, with the wrong sessions, cursors and cancellations: an answer
// names no tool of the other branch but one that the request named itself, and a branch's changes are heard on no stream
// of the other.
func interleavings(t *testing.T) {
	d := start(t, twoBranches(0))
	a := &party{path: "/branches/a/mcp", own: "alpha", other: "beta"}
	b := &party{path: "/branches/b/mcp", own: "beta", other: "alpha"}
	for _, c := range []*party{a, b} {
		c.sessions = append(c.sessions, d.session(t, c.path))
	}
	// A stream of each, whose events are counted.
	var heard [2]atomic.Int32
	for i, c := range []*party{a, b} {
		s := d.stream(t, c.path, d.session(t, c.path))
		go func() {
			for r := bufio.NewReader(s.body); ; {
				line, err := r.ReadString('\n')
				if err != nil {
					return
				}
				if strings.HasPrefix(line, "data: ") {
					heard[i].Add(1)
				}
			}
		}()
	}
	changes := 0
	var workers sync.WaitGroup
	for worker := range 4 {
		rng := rand.New(rand.NewPCG(uint64(worker), 7))
		workers.Go(func() {
			for range 250 {
				c, foreign := a, b
				if rng.IntN(2) == 0 {
					c, foreign = b, a
				}
				d.step(t, rng, c, foreign)
			}
		})
	}
	for n := range 30 {
		d.swap(t, twoBranches(n+1), "a")
		changes++
	}
	workers.Wait()
	until(t, "branch a heard of its changes", func() bool { return heard[0].Load() == int32(changes) })
	if n := heard[1].Load(); n != 0 {
		t.Errorf("branch b heard %d events of branch a", n)
	}
}

// step sends one request to c's branch, and looks for what it must not be told.
func (d *daemon) step(t *testing.T, rng *rand.Rand, c, foreign *party) {
	pick := func(of ...string) string { return of[rng.IntN(len(of))] }
	session := c.session(rng)
	stranger := rng.IntN(3) == 0
	if stranger {
		session = foreign.session(rng)
	}
	named := fmt.Sprintf("%s_%d", pick(c.own, foreign.own), rng.IntN(5))
	var r response
	withSession := true
	switch rng.IntN(10) {
	case 0, 1:
		withSession = false
		r = d.modern(t, c.path, "tools/call", fmt.Sprintf(`"name":%q`, named))
		if strings.HasPrefix(named, c.other) && !strings.Contains(r.body, "unknown tool") {
			t.Errorf("%s could call %s: %s", c.path, named, r.body)
		}
	case 2:
		r = d.do(t, "POST", c.path, legacyBody("tools/call", fmt.Sprintf(`"name":%q`, named)), session...)
	case 3:
		named, withSession = "", false
		r = d.modern(t, c.path, "tools/list", pick("", `"cursor":"1"`, `"cursor":"YQ=="`))
	case 4:
		named = ""
		r = d.do(t, "POST", c.path, legacyBody("tools/list", pick("", `"cursor":"YQ=="`)), session...)
	case 5:
		named = ""
		r = d.do(t, "POST", c.path, legacyBody(pick("ping", "logging/setLevel", "resources/list", "prompts/list", "completion/complete", "nothing"), `"level":"debug"`), session...)
	case 6:
		r = d.do(t, "POST", c.path, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`, session...)
	case 7:
		if stranger { // one that it may end would end the others' work
			r = d.do(t, "DELETE", c.path, "", session...)
		}
	case 8:
		if stranger {
			r = d.do(t, "GET", c.path, "", append([]string{"Accept", "text/event-stream"}, session...)...)
		}
	case 9:
		fresh := d.session(t, c.path)
		c.mu.Lock()
		defer c.mu.Unlock()
		if len(c.sessions) < 5 {
			c.sessions = append(c.sessions, fresh)
		}
	}
	if stranger && withSession && r.status != 0 && r.status != http.StatusNotFound {
		t.Errorf("%s took a session of the other branch: %+v", c.path, r)
	}
	body := r.body
	if named != "" {
		body = strings.ReplaceAll(body, named, "")
	}
	if strings.Contains(body, c.other) {
		t.Errorf("%s, asked for %s, is told of the other branch: %s", c.path, named, r.body)
	}
}
