package decision_test

import (
	"encoding/json"
	"os"
	"testing"
	"testing/fstest"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"github.com/catalogd/catalogd/decision"
)

// TestEditorSchemas holds the JSON Schemas of the data files, by which editors complete and check them, to what the
// policy takes when it is loaded.
func TestEditorSchemas(t *testing.T) {
	t.Parallel()
	fsys := fstest.MapFS{}
	if err := fillFrom(fsys, "../policy"); err != nil {
		t.Fatal(err)
	}
	schemas := map[string]*jsonschema.Schema{}
	for _, area := range []string{"trust", "access", "adopt"} {
		schema, err := jsonschema.NewCompiler().Compile("../schemas/" + area + ".json")
		if err != nil {
			t.Fatal(err)
		}
		schemas[area] = schema
	}
	for _, test := range []struct {
		area, data string // data is empty for the starter's own
		good       bool
	}{
		{"trust", "", true},
		{"access", "", true},
		{"adopt", "", true},
		{"trust", `{entries: {a: {command: [grep, -e, "{p}", [a, b]], rest: true, from_call: [p], stdin: true, dir: tools, env: [A, B=1]}}}`, true},
		{"trust", `{entries: {a: {command: [x], interpreter: true, unpinned: false, in_tree: true, max_connections: 2, description: x}}}`, true},
		{"trust", `{entries: {a: {host: a.example, scheme: http, port: 80, path: /v1, headers: [X-A], from_call: [p], secrets: ["env:A"], addresses: [10.0.0.0/8]}}}`, true},
		{"trust", `{entries: {a: {comand: [x]}}}`, false},
		{"trust", `{entries: {a: {command: [x], host: a}}}`, false},
		{"trust", `{entries: {a: {command: x}}}`, false},
		{"trust", `{entries: {a: {command: []}}}`, false},
		{"trust", `{entries: {a: {command: [[a, b]]}}}`, false},
		{"trust", `{entries: {a: {command: [x], env: [1A]}}}`, false},
		{"trust", `{entries: {a: {command: [x], sha256: "AB"}}}`, false},
		{"trust", `{entries: {a: {command: [x], headers: [A]}}}`, false},
		{"trust", `{entries: {a: {host: A.example}}}`, false},
		{"trust", `{entries: {a: {host: a, port: 0}}}`, false},
		{"trust", `{entries: {a: {host: a, path: /v1/../x}}}`, false},
		{"trust", `{entries: {a: {host: a, path: /v1%2fx}}}`, false},
		{"trust", `{entries: {a: {host: a, scheme: ftp}}}`, false},
		{"trust", `{entires: {}}`, false},
		{"access", `{branches: {a: {tools: ["*"], deny: [x], effects: [read], resources: {s: ["u:*"]}, prompts: {s: [p]}}}}`, true},
		{"access", `{branches: {a: {tools: ["*"], approve: {"x*": {groups: [ops], self: true, reason: r, expires: 4h30m}}}}}`, true},
		{"access", `{branches: {a: {relay: {logging: ["*"]}, elicitation_hosts: ["a.example:8443"]}}, hide: [{labels: {a: b}, tags: [t], reason: r}]}`, true},
		{"access", `{branches: {a: {declared_reads: ["*"], tools: [b]}}}`, true},
		{"access", `{branches: {a: {declared_reads: "*"}}}`, false},
		{"access", `{branches: {a: {tols: ["*"]}}}`, false},
		{"access", `{branches: {a: {tools: "*"}}}`, false},
		{"access", `{branches: {a: {effects: [reed]}}}`, false},
		{"access", `{branches: {a: {approve: {x: {}}}}}`, false},
		{"access", `{branches: {a: {approve: {x: {groups: [], self: false}}}}}`, false},
		{"access", `{branches: {a: {approve: {x: {self: true, expires: 4 hours}}}}}`, false},
		{"access", `{branches: {a: {relay: {login: [x]}}}}`, false},
		{"access", `{hide: [{labels: {a: b}}]}`, false},
		{"adopt", `{may_empty: [a]}`, true},
		{"adopt", `{may_empty: a}`, false},
	} {
		name := "policy/" + test.area + "/data.yaml"
		changed := fstest.MapFS{}
		for name, f := range fsys {
			changed[name] = f
		}
		if test.data != "" {
			changed[name] = &fstest.MapFile{Data: []byte(test.data), Mode: 0o644}
		}
		var value any
		if err := yaml.Unmarshal(changed[name].Data, &value); err != nil {
			t.Fatal(err)
		}
		data, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(data, &value); err != nil { // YAML's types as JSON's
			t.Fatal(err)
		}
		if err := schemas[test.area].Validate(value); (err == nil) != test.good {
			t.Errorf("%s %s: the schema says %v, want good: %t", name, test.data, err, test.good)
		}
		_, problems := decision.Load(t.Context(), changed, decision.Config{})
		if problems.HasErrors() == test.good {
			t.Errorf("%s %s: the policy says %v, want good: %t", name, test.data, problems, test.good)
		}
	}
	for _, area := range []string{"trust", "access", "adopt"} { // the line that leads editors to the schema
		data, err := os.ReadFile("../policy/" + area + "/data.yaml")
		want := "# yaml-language-server: $schema=../../schemas/" + area + ".json\n"
		if err != nil || string(data[:len(want)]) != want {
			t.Errorf("policy/%s/data.yaml begins with %q, want %q: %v", area, data[:len(want)], want, err)
		}
	}
}
