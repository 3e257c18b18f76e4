package serve_test

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
	"github.com/catalogd/catalogd/registry"
)

// randomCatalog has 12 tools, and two branches that each see some of them.
func randomCatalog(rng *rand.Rand, id string) catalog {
	c := catalog{id: id, branches: map[string][]string{"default": {}, "other": {}}}
	for i := range 12 {
		name := fmt.Sprintf("tool_%d", i)
		c.tools = append(c.tools, tool(name, "", text(name)))
		for branch := range c.branches {
			if rng.IntN(2) == 0 {
				c.branches[branch] = append(c.branches[branch], name)
			}
		}
	}
	return c
}

func listed(t testing.TB, r response) []string {
	t.Helper()
	result, failure := r.result(t)
	if failure != nil {
		t.Fatal(failure)
	}
	names := []string{}
	for _, tool := range result["tools"].([]any) {
		names = append(names, tool.(map[string]any)["name"].(string))
	}
	return names
}

// A tool is listed exactly when a call of it is not answered as unknown, in both eras, and no answer to a branch names
// a tool that it doesn't see (T3).
func listedIsCallable(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	d := start(t, randomCatalog(rng, "g0"))
	for round := range 10 {
		c := randomCatalog(rng, fmt.Sprint("g", round+1))
		d.swap(t, c, "default", "other")
		for branch, sees := range c.branches {
			path := "/branches/" + branch + "/mcp"
			session := d.session(t, path)
			list := listed(t, d.modern(t, path, "tools/list", ""))
			if old := listed(t, d.do(t, "POST", path, legacyBody("tools/list", ""), session...)); !slices.Equal(list, old) {
				t.Fatalf("eras list %v and %v", list, old)
			}
			for _, f := range c.tools {
				params := fmt.Sprintf(`"name":%q`, f.tool.Name)
				for _, r := range []response{d.modern(t, path, "tools/call", params), d.do(t, "POST", path, legacyBody("tools/call", params), session...)} {
					_, failure := r.result(t)
					if (failure == nil) != slices.Contains(list, f.tool.Name) {
						t.Errorf("%s %s: listed %v, answered %s", branch, f.tool.Name, list, r.body)
					}
					for _, other := range c.tools {
						name := fmt.Sprintf("%q", other.tool.Name)
						if strings.Contains(strings.ReplaceAll(r.body, `\"`, `"`), name) && other.tool.Name != f.tool.Name && !slices.Contains(sees, other.tool.Name) {
							t.Errorf("%s is told of %s: %s", branch, name, r.body)
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
	generation := func(n int) catalog {
		id := fmt.Sprint("g", n)
		return catalog{id: id, branches: map[string][]string{"default": nil}, tools: []fixture{tool("which", "", text(id)), tool("only_"+id, "", text(id))}}
	}
	d := start(t, generation(0))
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
				result, failure := d.modern(t, "/mcp", "tools/call", `"name":"which"`).result(t)
				if failure != nil {
					t.Errorf("%v", failure)
					return
				}
				said := result["content"].([]any)[0].(map[string]any)["text"]
				if meta := result["_meta"].(map[string]any)["catalogd/call"].(map[string]any)["generation"]; said != meta {
					t.Errorf("generation %v ran the tool of %v", meta, said)
				}
				if list := listed(t, d.modern(t, "/mcp", "tools/list", "")); len(list) != 2 {
					t.Errorf("%v", list)
				}
			}
		})
	}
	for n := range 100 {
		d.swap(t, generation(n+1), "default")
		time.Sleep(time.Millisecond)
	}
	close(stop)
	callers.Wait()
	if list := listed(t, d.modern(t, "/mcp", "tools/list", "")); !slices.Equal(list, []string{"only_g100", "which"}) {
		t.Errorf("%v", list)
	}
}

// Clients that come and go leave nothing behind. This test is not parallel, so that it can count goroutines.
func TestNothingLeaks(t *testing.T) {
	http.DefaultClient.CloseIdleConnections()
	before := runtime.NumGoroutine()
	t.Run("clients", func(t *testing.T) {
		d := start(t, weather())
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
	until(t, "the goroutines end", func() bool { return runtime.NumGoroutine() <= before })
}

// The digits of a number reach the tool as they came (G9).
func numbersAreKept(t *testing.T) {
	t.Parallel()
	d := start(t, catalog{id: "g1", branches: map[string][]string{"default": nil}, tools: []fixture{
		tool("echo", `{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}`, invoker(echo), func(t *registry.Tool) {
			t.Args.Fields = []contract.Field{{Name: "n", Types: []string{"integer"}, Required: true}}
		}),
	}})
	r := d.modern(t, "/mcp", "tools/call", `"name":"echo","arguments":{"n":9007199254740993}`)
	if !strings.Contains(r.body, `"structuredContent":{"n":9007199254740993}`) {
		t.Error(r.body)
	}
	if r := d.modern(t, "/mcp", "tools/call", `"name":"echo","arguments":{"n":1e400}`); !strings.Contains(r.body, `"invalid_arguments"`) {
		t.Error(r.body)
	}
}
