package lockfile_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/internal/lockfile"
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
func join(t *testing.T, servers []registry.Server, tools ...string) lockfile.Joined {
	t.Helper()
	f := &lockfile.File{}
	for _, s := range servers {
		locked, _ := lockfile.Merge(lockfile.Server{Name: s.Name}, offer(t, tools...), every, none, noon)
		f.Put(locked)
	}
	read, problems := lockfile.Read(f.Marshal())
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return lockfile.Join(&registry.Build{Servers: servers}, read)
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
		string(got.Meta) != `{"x":1.0}` || string(got.Annotations) != `{"readOnlyHint":true}` || got.Result == nil || got.Pos.File != lockfile.Name {
		t.Errorf("get: %+v", got)
	}
	if store.Name != "store" || store.Title != "Store" || store.Description != "Store it." || store.Binding.MCP.Tool != "put" || store.Tags[0] != "data" ||
		string(store.Args.Schema) != `{"type":"object","additionalProperties":false}` || store.Effect != registry.Write ||
		string(store.Annotations) != `{"title":"Store","readOnlyHint":false}` {
		t.Errorf("put: %+v\n%s", store, store.Annotations)
	}
}

// Rows A29 and T12: two tools never share a name, neither of them is offered, and the problem names both.
func TestBadInputNames(t *testing.T) {
	t.Run("A29", func(t *testing.T) {
		two := []registry.Server{server("a", "", registry.Discover{}), server("b", "", registry.Discover{})}
		j := join(t, two, put)
		if got := fmt.Sprint(j.Problems); j.Problems.HasErrors() || len(j.Problems) != 2 || len(j.Tools) != 0 || len(j.Degraded) != 2 || !strings.Contains(got,
			`duplicate_name: warning: servers.b.tools.put: the tool is not offered: its name in the catalog would be "put", which is also that of "put" of server "a"`) {
			t.Errorf("one name: %v", j.Problems)
		}
		two[1].Prefix = "b_"
		if j := join(t, two, put); len(j.Problems) > 0 || len(j.Tools) != 2 {
			t.Errorf("with a prefix: %v", j.Problems)
		}
		j = join(t, []registry.Server{server("a", "", registry.Discover{Tools: map[string]registry.Override{"put": {Rename: "get"}}})}, get, put)
		if got := fmt.Sprint(j.Problems); len(j.Tools) != 0 || !strings.Contains(got, `would be "get", which is also that of "put" of server "a"`) {
			t.Errorf("renamed onto another: %v", got)
		}
	})
	t.Run("A48", func(t *testing.T) {
		s := server("a", "", registry.Discover{})
		locked, _ := lockfile.Merge(lockfile.Server{Name: "a"}, offer(t, get), every, none, noon)
		f := &lockfile.File{}
		f.Put(locked)
		declared := registry.Tool{Name: "mine", Binding: registry.Binding{MCP: &registry.MCP{Server: "a", Tool: "gte"}}}
		j := lockfile.Join(&registry.Build{Servers: []registry.Server{s}, Tools: []registry.Tool{declared}}, f)
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

// A name that clients or providers don't take is mapped by one rule, the same at every time; where that makes two names one,
// neither is offered, and a declared tool keeps its name.
func TestNames(t *testing.T) {
	t.Parallel()
	tool := func(name string) string { return fmt.Sprintf(`{"name":%q,"inputSchema":{"type":"object"}}`, name) }
	long := strings.Repeat("n", 60)
	for _, tc := range []struct {
		name, prefix string
		over         map[string]registry.Override
		offered      []string
		want         map[string]string // by the name in the catalog; of those left out nothing
	}{
		{"dots", "", nil, []string{"a.b.c", "d"}, map[string]string{"a_b_c": "a.b.c", "d": "d"}},
		{"slashes and spaces", "", nil, []string{"repo/issues list: all"}, map[string]string{"repo_issues_list_all": "repo/issues list: all"}},
		{"a digit first", "", nil, []string{"2fa", "-x"}, map[string]string{"_2fa": "2fa", "_-x": "-x"}},
		{"a digit behind a prefix", "up_", nil, []string{"2fa"}, map[string]string{"up_2fa": "2fa"}},
		{"too long", "", nil, []string{strings.Repeat("n", 64), strings.Repeat("n", 65)}, map[string]string{
			strings.Repeat("n", 54) + "_ce068a19": strings.Repeat("n", 64), strings.Repeat("n", 54) + "_1e3fb6d5": strings.Repeat("n", 65),
		}},
		{"too long with the prefix", "prefix_", nil, []string{long}, map[string]string{"prefix_" + strings.Repeat("n", 47) + "_02a945ea": long}},
		{"no ASCII", "", nil, []string{"天気", "時刻", "café"}, map[string]string{"__bc79d84d": "天気", "__20d2bb9a": "時刻", "caf__850f7dc4": "café"}},
		{"no letter", "", nil, []string{"...", "_"}, map[string]string{"__ab5df625": "...", "_": "_"}},
		{"an override", "p_", map[string]registry.Override{"a.b": {Rename: "ab"}}, []string{"a.b"}, map[string]string{"ab": "a.b"}},
		{"two that differ in case", "", nil, []string{"a", "b", "A", "c"}, map[string]string{"b": "b", "c": "c"}},
		{"two that become one", "", nil, []string{"a.b", "a_b", "c"}, map[string]string{"c": "c"}},
		{"three of one name", "", nil, []string{"a.b", "a_b", "a/b", "c"}, map[string]string{"c": "c"}},
		{"the declared one stays", "", nil, []string{"mine", "c"}, map[string]string{"c": "c"}},
		{"in other case too", "", nil, []string{"Mine", "c"}, map[string]string{"c": "c"}},
		{"renamed apart", "", map[string]registry.Override{"A": {Rename: "big_a"}}, []string{"a", "A"}, map[string]string{"a": "a", "big_a": "A"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := server("up", tc.prefix, registry.Discover{Tools: tc.over})
			var offered []string
			for _, name := range tc.offered {
				offered = append(offered, tool(name))
			}
			locked, _ := lockfile.Merge(lockfile.Server{Name: s.Name}, offer(t, offered...), every, none, noon)
			f := &lockfile.File{}
			f.Put(locked)
			declared := registry.Tool{Name: "mine", Source: registry.Source{Pos: problem.Position{File: "catalog/mine.cue", Line: 3}}}
			j := lockfile.Join(&registry.Build{Servers: []registry.Server{s}, Tools: []registry.Tool{declared}}, f)
			got := map[string]string{}
			for _, joined := range j.Tools {
				got[joined.Name] = joined.Binding.MCP.Tool
			}
			if !maps.Equal(got, tc.want) || j.Problems.HasErrors() {
				t.Errorf("got %v, want %v; %v", got, tc.want, j.Problems)
			}
			var leftOut []string
			for _, d := range j.Degraded {
				leftOut = append(leftOut, d.Tool)
			}
			if len(leftOut)+len(got) != len(tc.offered) || len(j.Problems) != len(leftOut) || slices.Contains(leftOut, "c") {
				t.Errorf("left out: %v; %v", leftOut, j.Problems)
			}
		})
	}
}

// What is served of a server's hints never contradicts the operator: not his effect, and not that a tool is idempotent.
func TestHintsDoNotContradictTheOperator(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		said   string
		effect registry.Effect
		over   registry.Override
		want   string
	}{
		{`{"readOnlyHint":true,"destructiveHint":false}`, registry.Write, registry.Override{}, `{"destructiveHint":false,"readOnlyHint":false}`},
		{`{"readOnlyHint":true,"idempotentHint":true}`, registry.Write, registry.Override{}, `{"idempotentHint":true,"readOnlyHint":false}`},
		{`{"destructiveHint":true,"idempotentHint":false,"openWorldHint":true}`, registry.Write, registry.Override{}, `{"destructiveHint":true,"idempotentHint":false,"openWorldHint":true,"readOnlyHint":false}`},
		{`{"idempotentHint":false}`, registry.Write, registry.Override{Idempotent: true}, `{"idempotentHint":true,"readOnlyHint":false}`},
		{`{"idempotentHint":"no"}`, registry.Write, registry.Override{Idempotent: true}, `{"idempotentHint":true,"readOnlyHint":false}`},
		{`{}`, registry.Write, registry.Override{Idempotent: true, Title: "T"}, `{"title":"T","idempotentHint":true,"readOnlyHint":false}`},

		{`{"readOnlyHint":false,"destructiveHint":true}`, registry.Read, registry.Override{}, `{"readOnlyHint":true}`},
		{`{"destructiveHint":false,"idempotentHint":true,"openWorldHint":true}`, registry.Read, registry.Override{}, `{"destructiveHint":false,"idempotentHint":true,"openWorldHint":true,"readOnlyHint":true}`},
		{`{"idempotentHint":false}`, registry.Read, registry.Override{}, `{"readOnlyHint":true}`},
		{`{"destructiveHint":"yes","idempotentHint":null}`, registry.Read, registry.Override{}, `{"readOnlyHint":true}`},

		// Parsers that don't mind the case of a name take the one or the other.
		{`{"ReadOnlyHint":true,"readonlyhint":true,"readOnlyHint":true}`, registry.Write, registry.Override{}, `{"readOnlyHint":false}`},
		{`{"DESTRUCTIVEHINT":true,"IdempotentHint":false,"\u0074itle":"T","Title":"U"}`, registry.Read, registry.Override{}, `{"title":"T","readOnlyHint":true}`},
		{`{"de\u017ftructiveHint":true}`, registry.Read, registry.Override{}, `{"readOnlyHint":true}`},
		{`[]`, registry.Read, registry.Override{}, `{"readOnlyHint":true}`},
	} {
		s := server("up", "", registry.Discover{Tools: map[string]registry.Override{"t": tc.over}})
		locked, _ := lockfile.Merge(lockfile.Server{Name: "up"}, offer(t, `{"name":"t","inputSchema":{"type":"object"},"annotations":`+tc.said+`}`), every, none, noon)
		locked.SetEffect("t", tc.effect)
		f := &lockfile.File{}
		f.Put(locked)
		j := lockfile.Join(&registry.Build{Servers: []registry.Server{s}}, f)
		if len(j.Tools) != 1 {
			t.Errorf("%s: %v", tc.said, j.Problems)
			continue
		}
		if got := j.Tools[0]; string(got.Annotations) != tc.want || got.Idempotent != tc.over.Idempotent {
			t.Errorf("%s, effect %s: got %s, idempotent %v, want %s", tc.said, tc.effect, got.Annotations, got.Idempotent, tc.want)
		}
	}
}

// A tool with a side effect of which something is secret is left out, since calls of it are stored; what the operator
// says of its result stands for what the server says.
func TestSecretsOfToolsWithASideEffect(t *testing.T) {
	t.Parallel()
	const secret = `{"type":"object","properties":{"login":{"$ref":"#/definitions/L"}},"definitions":{"L":{"type":"object","properties":{"password":{"type":"string","writeOnly":true}}}}}`
	plain := &contract.Spec{Schema: []byte(`{"type":"object"}`), Strictness: contract.Open}
	for name, tc := range map[string]struct {
		definition, readOnly string
		over                 registry.Override
		leftOut              string
	}{
		"an argument":               {`"inputSchema":` + secret, "false", registry.Override{}, "declares args.login.password as a secret (writeOnly)"},
		"of a tool that only reads": {`"inputSchema":` + secret, "true", registry.Override{}, ""},
		"a result":                  {`"inputSchema":{"type":"object"},"outputSchema":` + secret, "false", registry.Override{}, "declares result.login.password as a secret (writeOnly)"},
		"a result said otherwise":   {`"inputSchema":{"type":"object"},"outputSchema":` + secret, "false", registry.Override{Result: plain}, ""},
		"a result for a program":    {`"inputSchema":{"type":"object"},"outputSchema":` + secret, "false", registry.Override{Post: "."}, ""},
	} {
		j := join(t, []registry.Server{server("up", "", registry.Discover{Tools: map[string]registry.Override{"t": tc.over}})},
			`{"name":"t",`+tc.definition+`,"annotations":{"readOnlyHint":`+tc.readOnly+`}}`, get)
		if got := fmt.Sprint(j.Problems); j.Problems.HasErrors() || (tc.leftOut == "") != (len(j.Degraded) == 0) || !strings.Contains(got, tc.leftOut) ||
			tc.leftOut != "" && !strings.Contains(got, "stored_secret: warning: servers.up.tools.t: ") {
			t.Errorf("%s: got %v", name, got)
		}
		if len(j.Tools) != 2-len(j.Degraded) {
			t.Errorf("%s: %d tools", name, len(j.Tools))
		}
	}
}
