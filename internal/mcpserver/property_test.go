package mcpserver_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/internal/servetest"
	"github.com/catalogd/catalogd/registry"
)

// randomCatalog has 12 tools, and two branches that each see some of them.
func randomCatalog(rng *rand.Rand, id string) servetest.Catalog {
	c := servetest.Catalog{ID: id, Branches: map[string][]string{"default": {}, "other": {}}}
	for i := range 12 {
		name := fmt.Sprintf("tool_%d", i)
		c.Tools = append(c.Tools, servetest.Tool(name, "", servetest.Text(name)))
		for branch := range c.Branches {
			if rng.IntN(2) == 0 {
				c.Branches[branch] = append(c.Branches[branch], name)
			}
		}
	}
	return c
}

// A tool is listed exactly when a call of it is not answered as unknown, in both eras, and no answer to a branch names
// a tool that it doesn't see (T3).
func listedIsCallable(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	d := servetest.Start(t, randomCatalog(rng, "g0"))
	for round := range 10 {
		c := randomCatalog(rng, fmt.Sprint("g", round+1))
		d.Swap(t, c, "default", "other")
		for branch, sees := range c.Branches {
			path := "/branches/" + branch + "/mcp"
			session := d.Session(t, path)
			list := servetest.Listed(t, d.Modern(t, path, "tools/list", ""))
			if old := servetest.Listed(t, d.Do(t, "POST", path, servetest.LegacyBody("tools/list", ""), session...)); !slices.Equal(list, old) {
				t.Fatalf("eras list %v and %v", list, old)
			}
			for _, f := range c.Tools {
				params := fmt.Sprintf(`"name":%q`, f.Tool.Name)
				for _, r := range []servetest.Response{d.Modern(t, path, "tools/call", params), d.Do(t, "POST", path, servetest.LegacyBody("tools/call", params), session...)} {
					_, failure := r.Result(t)
					if (failure == nil) != slices.Contains(list, f.Tool.Name) {
						t.Errorf("%s %s: listed %v, answered %s", branch, f.Tool.Name, list, r.Body)
					}
					for _, other := range c.Tools {
						name := fmt.Sprintf("%q", other.Tool.Name)
						if strings.Contains(strings.ReplaceAll(r.Body, `\"`, `"`), name) && other.Tool.Name != f.Tool.Name && !slices.Contains(sees, other.Tool.Name) {
							t.Errorf("%s is told of %s: %s", branch, name, r.Body)
						}
					}
				}
			}
		}
	}
}

// Calls and lists go on while generations are swapped; each answer is wholly of one generation.
func swapWhileCalling(t *testing.T) {
	t.Parallel()
	generation := func(n int) servetest.Catalog {
		id := fmt.Sprint("g", n)
		return servetest.Catalog{ID: id, Branches: map[string][]string{"default": nil}, Tools: []servetest.Fixture{servetest.Tool("which", "", servetest.Text(id)), servetest.Tool("only_"+id, "", servetest.Text(id))}}
	}
	d := servetest.Start(t, generation(0))
	stop := make(chan struct{})
	var callers sync.WaitGroup
	for range 8 {
		callers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				result, failure := d.Modern(t, "/mcp", "tools/call", `"name":"which"`).Result(t)
				if failure != nil {
					t.Errorf("%v", failure)
					return
				}
				said := result["content"].([]any)[0].(map[string]any)["text"]
				if meta := result["_meta"].(map[string]any)["catalogd/call"].(map[string]any)["generation"]; said != meta {
					t.Errorf("generation %v ran the tool of %v", meta, said)
				}
				if list := servetest.Listed(t, d.Modern(t, "/mcp", "tools/list", "")); len(list) != 2 {
					t.Errorf("%v", list)
				}
			}
		})
	}
	for n := range 100 {
		d.Swap(t, generation(n+1), "default")
		time.Sleep(time.Millisecond)
	}
	close(stop)
	callers.Wait()
	if list := servetest.Listed(t, d.Modern(t, "/mcp", "tools/list", "")); !slices.Equal(list, []string{"only_g100", "which"}) {
		t.Errorf("%v", list)
	}
}

// Clients that come and go leave nothing behind. This test is not parallel, so that it can count goroutines.
func TestNothingLeaks(t *testing.T) {
	http.DefaultClient.CloseIdleConnections()
	before := runtime.NumGoroutine()
	t.Run("clients", func(t *testing.T) {
		d := servetest.Start(t, servetest.Weather())
		for range 5 {
			for _, kind := range kinds {
				c := kind.connect(t, d, "default")
				hear(t, c)
				d.Changed([]string{"default"})
			}
		}
	})
	http.DefaultClient.CloseIdleConnections()
	defer func() {
		if t.Failed() {
			stacks := make([]byte, 1<<20)
			t.Logf("%s", stacks[:runtime.Stack(stacks, true)])
		}
	}()
	servetest.Until(t, "the goroutines end", func() bool { return runtime.NumGoroutine() <= before })
}

// The digits of a number reach the tool as they came (G9).
func numbersAreKept(t *testing.T) {
	t.Parallel()
	d := servetest.Start(t, servetest.Catalog{ID: "g1", Branches: map[string][]string{"default": nil}, Tools: []servetest.Fixture{
		servetest.Tool("echo", `{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}`, servetest.Invoker(echo), func(t *registry.Tool) {
			t.Args.Fields = []contract.Field{{Name: "n", Types: []string{"integer"}, Required: true}}
		}),
	}})
	r := d.Modern(t, "/mcp", "tools/call", `"name":"echo","arguments":{"n":9007199254740993}`)
	if !strings.Contains(r.Body, `"structuredContent":{"n":9007199254740993}`) {
		t.Error(r.Body)
	}
	if r := d.Modern(t, "/mcp", "tools/call", `"name":"echo","arguments":{"n":1e400}`); !strings.Contains(r.Body, `"invalid_arguments"`) {
		t.Error(r.Body)
	}
}
