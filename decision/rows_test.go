package decision_test

import (
	"io/fs"
	"os"
	"path"
	"strings"
	"testing"
	"testing/fstest"

	"golang.org/x/tools/txtar"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/decision/trust"
)

// TestThreat finds the tests of the threats that policies are about by their number (docs/robustness.md).
func TestThreat(t *testing.T) {
	t.Parallel()
	for _, r := range []struct {
		name string
		test func(*testing.T)
	}{
		{"T4/wrong outputs", wrongOutputsNeverAllow},
		{"T4/arguments that are no JSON", argumentsThatAreNoJSON},
		{"T4/withdrawn questions", withdrawn},
		{"T4/every point", everyPoint},
		{"T5/built-ins", builtins},
		{"T5/deadline", deadline},
		{"T7/only the very target", connectGrants},
		{"T7/commands that run what they are given", whatIsRecognisedMustBeMeant},
		{"T9/addresses that change", addressesThatChange},
		{"T23/packages", whatIsRecognisedMustBeMeant},
		{"T25/lookalikes", lookalikes},
		{"T25/lint", func(t *testing.T) {
			archive, err := txtar.ParseFile("../testdata/policy/lint.txtar")
			if err != nil {
				t.Fatal(err)
			}
			runCase(t, archive)
		}},
	} {
		t.Run(r.name, r.test)
	}
}

// What denies at one point denies at every point, and says why.
func everyPoint(t *testing.T) {
	t.Parallel()
	for _, point := range decision.Points() {
		for name, test := range map[string]struct {
			body string
			want decision.ReasonCode
		}{
			"false":      {"default allow := false\n", decision.Denied},
			"conflict":   {"default allow := false\n\nallow := count(input) > 100 if input\n\nallow := 1 if input\n", decision.PolicyError},
			"text":       {"default allow := false\n\nallow := \"true\" if input\n", decision.BadDecisionType},
			"one":        {"default allow := false\n\nallow := 1 if input\n", decision.BadDecisionType},
			"an object":  {"default allow := false\n\nallow := {\"allow\": true} if input\n", decision.BadDecisionType},
			"deny too":   {"default allow := false\n\nallow if input\n\ndeny contains \"no\"\n", decision.Denied},
			"built-in":   {"default allow := false\n\nallow if {\n\tinput\n\tto_number(\"x\") == 1\n}\n", decision.PolicyError},
			"loops":      {"default allow := false\n\nallow if count([1 | some i in numbers.range(1, 1000000); some j in numbers.range(1, 1000000); i * j == 7]) > 0\n", decision.PolicyTimeout},
			"unknown":    {"default allow := false\n\nallow if input\n\nmaybe := true\n", decision.UnknownOutput},
			"approval":   {"default allow := false\n\nallow if input\n\nrequire_approval := true\n", decision.BadDecisionType},
			"obligation": {"default allow := false\n\nallow if input\n\nrequire_approval := {\"self\": true}\n", decision.UnsupportedObligation},
		} {
			if point == decision.Connect {
				test.body += "\ntrust := \"t\"\n"
			}
			cfg := patient
			if test.want == decision.PolicyTimeout {
				cfg = decision.Config{}
			}
			engine, problems := decision.Load(t.Context(), with(minimal(), "policy/"+string(point)+".rego", "package catalogd."+string(point)+"\n\n"+test.body), cfg)
			if engine == nil {
				if name != "unknown" && name != "obligation" && name != "approval" {
					t.Errorf("%s, %s: %v", point, name, problems)
				}
				continue
			}
			if d := ask(t.Context(), engine, point); d.Allow || d.Code != test.want || len(d.Reasons) == 0 {
				t.Errorf("%s, %s: %v, want %s", point, name, d, test.want)
			}
		}
	}
}

const entries = `entries:
  api: {host: mcp.example.com, path: /v1}
  tool: {command: [/opt/tools/run, -q]}
`

// An entry for one address and one command covers nothing that only looks like them.
func lookalikes(t *testing.T) {
	t.Parallel()
	fsys := fstest.MapFS{}
	if err := fillFrom(fsys, "../policy"); err != nil {
		t.Fatal(err)
	}
	fsys["policy/trust/data.yaml"] = file(entries)
	engine := load(t, fsys)
	address := func(scheme, host string, port int, p string) trust.Target {
		return trust.Target{Kind: trust.HTTP, URL: &trust.URL{Scheme: scheme, Host: host, Port: port, Path: p, Segments: strings.FieldsFunc(p, func(r rune) bool { return r == '/' })}}
	}
	command := func(declared, real string, args ...string) trust.Target {
		return trust.Target{Kind: trust.Exec, Command: &trust.Command{Declared: declared, Path: real, Args: args}}
	}
	for _, test := range []struct {
		target trust.Target
		ok     bool
	}{
		{address("https", "mcp.example.com", 443, "/v1"), true},
		{address("https", "mcp.example.com.evil", 443, "/v1"), false},
		{address("https", "evil-mcp.example.com", 443, "/v1"), false},
		{address("https", "mcp.example.com.", 443, "/v1"), false},
		{address("https", "MCP.example.com", 443, "/v1"), false},
		{address("https", "xn--mcp-0ra.example.com", 443, "/v1"), false},
		{address("https", "example.com", 443, "/v1"), false},
		{address("https", "mcpxexample.com", 443, "/v1"), false},
		{address("https", "mcp.example.com", 444, "/v1"), false},
		{address("http", "mcp.example.com", 443, "/v1"), false},
		{address("http", "mcp.example.com", 80, "/v1"), false},
		{address("https", "mcp.example.com", 443, "/v1-evil"), false},
		{address("https", "mcp.example.com", 443, "/v2"), false},
		{address("https", "mcp.example.com", 443, "/"), false},
		{command("/opt/tools/run", "/opt/tools/run", "-q"), true},
		{command("/opt/tools/run", "/opt/tools/run", "-q", "x"), false},
		{command("/opt/tools/run", "/opt/tools/run", "x", "-q"), false},
		{command("/opt/tools/run", "/opt/tools/run"), false},
		{command("/opt/tools/link", "/bin/sh", "-q"), false},
		{command("/opt/tools-evil/run", "/opt/tools-evil/run", "-q"), false},
		{command("/opt/tools/../../bin/sh", "/bin/sh", "-q"), false},
		{command("run", "/opt/tools-evil/run", "-q"), false},
		{command("/opt/tools/running", "/opt/tools/running", "-q"), false},
	} {
		_, d := engine.Connect(t.Context(), decision.ConnectInput{Subject: decision.Subject{Kind: "tool", Name: "t", Effect: "read"}, Target: test.target})
		if d.Allow != test.ok {
			t.Errorf("%+v %+v: %v", test.target.URL, test.target.Command, d)
		}
	}
}

// fillFrom copies a folder of the repository below policy/.
func fillFrom(into fstest.MapFS, dir string) error {
	return walk(os.DirFS(dir), func(name string, data []byte) {
		into[path.Join("policy", name)] = &fstest.MapFile{Data: data, Mode: 0o644}
	})
}

func walk(fsys fs.FS, visit func(name string, data []byte)) error {
	return fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(fsys, name)
		visit(name, data)
		return err
	})
}
