package mcpserver_test

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/catalogd/catalogd/internal/servetest"
)

// twoBranches has the tools alpha_0.. for branch a and beta_0.. for branch b; n makes other ones.
func twoBranches(n int) servetest.Catalog {
	c := servetest.Catalog{ID: fmt.Sprint("g", n), Branches: map[string][]string{"a": {}, "b": {}}}
	for branch, word := range map[string]string{"a": "alpha", "b": "beta"} {
		for i := range 3 {
			name := fmt.Sprintf("%s_%d", word, (n+i)%5)
			c.Tools = append(c.Tools, servetest.Tool(name, "", servetest.Text("this is "+name)))
			c.Branches[branch] = append(c.Branches[branch], name)
		}
	}
	return c
}

// Whatever two branches' clients do, in whatever order, with the wrong sessions, cursors and cancellations: an answer
// names no tool of the other branch but one that the request named itself, and a branch's changes are heard on no stream
// of the other.
func interleavings(t *testing.T) {
	d := servetest.Start(t, twoBranches(0))
	a := &servetest.Party{Path: "/branches/a/mcp", Own: "alpha", Other: "beta"}
	b := &servetest.Party{Path: "/branches/b/mcp", Own: "beta", Other: "alpha"}
	for _, c := range []*servetest.Party{a, b} {
		c.Sessions = append(c.Sessions, d.Session(t, c.Path))
	}
	// A stream of each, whose events are counted.
	var heard [2]atomic.Int32
	for i, c := range []*servetest.Party{a, b} {
		s := d.Stream(t, c.Path, d.Session(t, c.Path))
		go func() {
			for r := bufio.NewReader(s.Body); ; {
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
				d.Step(t, rng, c, foreign)
			}
		})
	}
	for n := range 30 {
		d.Swap(t, twoBranches(n+1), "a")
		changes++
	}
	workers.Wait()
	servetest.Until(t, "branch a heard of its changes", func() bool { return heard[0].Load() == int32(changes) })
	if n := heard[1].Load(); n != 0 {
		t.Errorf("branch b heard %d events of branch a", n)
	}
}
