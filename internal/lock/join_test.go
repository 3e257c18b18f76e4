package lock_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/internal/lock"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

func server(name, prefix string, d registry.Discover) registry.Server {
	return registry.Server{
		Name: name, Prefix: prefix, CallTimeout: time.Minute, Discover: &d,
		Source: registry.Source{Pos: problem.Position{File: "catalog/" + name + ".cue", Line: 1}},
	}
}

// join joins servers that all offer the same tools.
func join(t *testing.T, servers []registry.Server, tools ...string) lock.Joined {
	t.Helper()
	f := &lock.File{}
	for _, s := range servers {
		locked, _ := lock.Merge(lock.Server{Name: s.Name}, offer(t, tools...), every, none, noon)
		f.Put(locked)
	}
	read, problems := lock.Read(f.Marshal())
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return lock.Join(&registry.Build{Servers: servers}, read)
}

// A discovered tool is what is locked, byte for byte, but for what the operator says.
func TestJoin(t *testing.T) {
	t.Parallel()
	j := join(t, []registry.Server{server("up", "u_", registry.Discover{Tools: map[string]registry.Override{
		"put": {Rename: "store", Title: "Store", Description: "Store it.", Tags: []string{"data"}, Strictness: contract.Closed},
	}})}, get, put)
	if len(j.Problems) > 0 || len(j.Tools) != 2 {
		t.Fatalf("%v %v", j.Problems, j.Tools)
	}
	store, got := j.Tools[0], j.Tools[1]
	if got.Name != "u_get" || got.Title != "Get" || got.Effect != registry.Read || got.Binding.MCP.Tool != "get" || got.Args.Strictness != contract.Open ||
		string(got.Args.Schema) != `{"type":"object","properties":{"n":{"type":"integer","maximum":12345678901234567890}},"required":["n"]}` ||
		string(got.Meta) != `{"x":1.0}` || string(got.Annotations) != `{"readOnlyHint":true}` || got.Result == nil || got.Pos.File != lock.Name {
		t.Errorf("get: %+v", got)
	}
	if store.Name != "store" || store.Title != "Store" || store.Description != "Store it." || store.Binding.MCP.Tool != "put" || store.Tags[0] != "data" ||
		string(store.Args.Schema) != `{"type":"object","additionalProperties":false}` || store.Effect != registry.Write ||
		string(store.Annotations) != `{"title":"Store","readOnlyHint":false}` {
		t.Errorf("put: %+v\n%s", store, store.Annotations)
	}
}

// Rows A29 and T12: two tools never share a name, and the problem names both.
func TestBadInputNames(t *testing.T) {
	t.Run("A29", func(t *testing.T) {
		two := []registry.Server{server("a", "", registry.Discover{}), server("b", "", registry.Discover{})}
		j := join(t, two, put)
		if got := j.Problems.Err(); got == nil || !strings.Contains(got.Error(), `duplicate_name`) ||
			!strings.Contains(got.Error(), `"put" of server "b" and "put" of server "a" collide`) || len(j.Tools) != 1 {
			t.Errorf("one name: %v", j.Problems)
		}
		two[1].Prefix = "b_"
		if j := join(t, two, put); len(j.Problems) > 0 || len(j.Tools) != 2 {
			t.Errorf("with a prefix: %v", j.Problems)
		}
		// Nothing is cut to fit: two names that begin alike are both refused, each with its own name.
		long := strings.Repeat("n", 60)
		j = join(t, []registry.Server{server("a", "prefix_", registry.Discover{})},
			fmt.Sprintf(`{"name":%q,"inputSchema":{"type":"object"}}`, long+"a"), fmt.Sprintf(`{"name":%q,"inputSchema":{"type":"object"}}`, long+"b"), put)
		if len(j.Tools) != 1 || len(j.Degraded) != 2 || j.Degraded[0].Tool != long+"a" || !strings.Contains(j.Degraded[1].Reason, "prefix_"+long+"b") {
			t.Errorf("too long: %+v", j.Degraded)
		}
		j = join(t, []registry.Server{server("a", "", registry.Discover{Tools: map[string]registry.Override{"put": {Rename: "get"}}})}, get, put)
		if got := fmt.Sprint(j.Problems); !strings.Contains(got, `"put" of server "a" and "get" of server "a" collide`) {
			t.Errorf("renamed onto another: %v", got)
		}
	})
	t.Run("A48", func(t *testing.T) {
		s := server("a", "", registry.Discover{})
		locked, _ := lock.Merge(lock.Server{Name: "a"}, offer(t, get), every, none, noon)
		f := &lock.File{}
		f.Put(locked)
		declared := registry.Tool{Name: "mine", Binding: registry.Binding{MCP: &registry.MCP{Server: "a", Tool: "gte"}}}
		j := lock.Join(&registry.Build{Servers: []registry.Server{s}, Tools: []registry.Tool{declared}}, f)
		if got := fmt.Sprint(j.Problems); !strings.Contains(got, "unknown_tool") || !strings.Contains(got, `did you mean "get"?`) {
			t.Errorf("%v", got)
		}
	})
}

// TestHostile: of many schemas, each that can't be checked takes out its own tool.
func TestHostile(t *testing.T) {
	t.Parallel()
	schemas := map[string]string{
		"pattern":   `{"type":"object","properties":{"x":{"pattern":"(?=a"}}}`,
		"type":      `{"type":"objekt"}`,
		"boolean":   `true`,
		"file":      `{"type":"object","$ref":"file:///etc/passwd"}`,
		"http":      `{"type":"object","properties":{"x":{"$ref":"http://127.0.0.1:1/x"}}}`,
		"nowhere":   `{"type":"object","properties":{"x":{"$ref":"#/$defs/x"}}}`,
		"deep":      `{"type":"object","properties":{"x":` + strings.Repeat(`{"items":`, 70) + `{}` + strings.Repeat("}", 70) + `}}`,
		"many":      `{"type":"object","allOf":[` + strings.Repeat("{},", 6000) + `{}]}`,
		"no_schema": `null`,
		"twice":     `{"type":"object","properties":{"a":{}},"required":["a","a"]}`,
	}
	tools := []string{get}
	for name, schema := range schemas {
		tools = append(tools, fmt.Sprintf(`{"name":%q,"inputSchema":%s}`, name, schema))
	}
	j := join(t, []registry.Server{server("up", "", registry.Discover{})}, tools...)
	if len(j.Tools) != 1 || j.Tools[0].Name != "get" || j.Problems.HasErrors() || len(j.Degraded) != len(schemas) {
		for _, d := range j.Degraded {
			t.Logf("%s: %.200s", d.Tool, d.Reason)
		}
		t.Errorf("%d tools, %d degraded of %d; %v", len(j.Tools), len(j.Degraded), len(schemas), j.Problems.HasErrors())
	}
}
