package decision_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"pgregory.net/rapid"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/decision/trust"
	"github.com/catalogd/catalogd/problem"
)

// patient is for tests of answers, not of deadlines: a busy machine must not deny.
var patient = decision.Config{Deadline: time.Minute}

// shipped is the engine of the repository's own policy.
func shipped(t testing.TB) *decision.Engine {
	t.Helper()
	engine, problems := decision.Load(t.Context(), os.DirFS(".."), patient)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return engine
}

func load(t testing.TB, fsys fstest.MapFS) *decision.Engine {
	t.Helper()
	engine, problems := decision.Load(t.Context(), fsys, patient)
	if problems.HasErrors() {
		t.Fatal(problems.Err())
	}
	return engine
}

func connectGrants(t *testing.T) {
	t.Parallel()
	engine, in := shipped(t), connectInput()
	granted, d := engine.Connect(t.Context(), in)
	if !d.Allow || d.Code != decision.Allowed || d.Trust != "clock" || granted.Name() != "clock" {
		t.Fatal(d, granted.Name())
	}
	if err := granted.Covers(in.Target); err != nil {
		t.Error(err)
	}
	// Any other target, however near, is not covered.
	near := []func(*trust.Command){
		func(c *trust.Command) { c.Path = "/tmp/date" },
		func(c *trust.Command) { c.Args = append(slices.Clone(c.Args), "-s") },
		func(c *trust.Command) { c.Dir = "/tmp" },
		func(c *trust.Command) { c.Env = []string{"LD_PRELOAD"} },
	}
	for i, change := range near {
		other := *in.Target.Command
		change(&other)
		if granted.Covers(trust.Target{Kind: trust.Exec, Command: &other}) == nil {
			t.Errorf("%d: %+v is covered", i, other)
		}
	}
	if pos := engine.TrustPosition("clock"); pos.File != "policy/trust/data.yaml" || pos.Line == 0 {
		t.Error(pos)
	}
}

func TestConnectDenies(t *testing.T) {
	t.Parallel()
	in := connectInput()
	in.Target.Command.Declared = "curl"
	granted, d := shipped(t).Connect(t.Context(), in)
	if d.Allow || d.Code != decision.Denied || d.Trust != "" || len(d.Reasons) != 1 {
		t.Error(d)
	}
	if granted.Covers(in.Target) == nil || granted.Name() != "" {
		t.Error("a denied decision grants")
	}
}

func TestConnectTerms(t *testing.T) {
	t.Parallel()
	engine := load(t, with(minimal(), "policy/connect.rego", `package catalogd.connect

default allow := false

allow if input.target.kind == "http"

trust := "api"

env contains "LANG"

env contains "HOME"

max_connections := 3

interpreter := true

addresses := ["10.1.0.0/16"]
`))
	target := trust.Target{Kind: trust.HTTP, URL: &trust.URL{Scheme: "https", Host: "api.example.com", Port: 443, Path: "/"}}
	granted, d := engine.Connect(t.Context(), decision.ConnectInput{Target: target})
	if !d.Allow {
		t.Fatal(d)
	}
	got := fmt.Sprintf("%s %v %d %t %v", granted.Name(), granted.Env(), granted.MaxConnections(), granted.Interpreter(), granted.Addresses())
	if want := "api [HOME LANG] 3 true [10.1.0.0/16]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestCallTimeout(t *testing.T) {
	t.Parallel()
	engine := load(t, with(minimal(), "policy/call.rego",
		"package catalogd.call\n\ndefault allow := false\n\nallow if true\n\ntimeout := \"1m30s\"\n"))
	if d := engine.Call(t.Context(), callInput()); d.Timeout != 90*time.Second {
		t.Error(d)
	}
}

// Only these functions are there: each of the others refuses the policy by its name.
func builtins(t *testing.T) {
	t.Parallel()
	allowed := map[string]bool{}
	for _, b := range ast.DefaultBuiltins {
		if b.Infix != "" || strings.HasPrefix(b.Name, "internal.") || b.IsDeprecated() {
			continue
		}
		args := make([]string, b.Decl.Arity())
		for i := range args {
			args[i] = "input.arguments.x"
		}
		if strings.HasSuffix(b.Name, "_schema") { // must be written out
			args[len(args)-1] = "{}"
		}
		fsys := with(minimal(), "policy/call.rego", fmt.Sprintf(
			"package catalogd.call\n\ndefault allow := false\n\nallow if {\n\t%s(%s)\n}\n", b.Name, strings.Join(args, ", ")))
		engine, problems := decision.Load(t.Context(), fsys, patient)
		if engine != nil {
			allowed[b.Name] = true
			continue
		}
		if len(problems) != 1 || problems[0].Code != problem.RegoBuiltin || !strings.Contains(problems[0].Message, b.Name+" is not allowed") ||
			problems[0].Position.String() != "policy/call.rego:6:2" {
			t.Errorf("%s: %v", b.Name, problems)
		}
	}
	forbidden := []string{
		"http.send", "net.lookup_ip_addr", "net.cidr_contains_matches", "net.cidr_expand", "opa.runtime", "rego.parse_module",
		"rego.metadata.rule", "rego.metadata.chain", "uuid.rfc4122", "uuid.parse",
		"rand.intn", "time.now_ns", "trace", "io.jwt.decode_verify", "io.jwt.verify_rs256", "io.jwt.encode_sign",
		"crypto.x509.parse_and_verify_certificates", "crypto.parse_private_keys", "providers.aws.sign_req", "graphql.parse",
	}
	for _, name := range forbidden {
		if allowed[name] {
			t.Errorf("%s may be called", name)
		}
	}
	page, err := os.ReadFile("../docs/policy.md")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(page), "\n## Built-in functions\n")
	list, _, _ = strings.Cut(list, "\n`print` ")
	listed := map[string]bool{}
	for _, name := range regexp.MustCompile("`([a-z0-9_.]+)`").FindAllStringSubmatch(list, -1) {
		listed[name[1]] = true
		if !allowed[name[1]] {
			t.Errorf("docs/policy.md lists %s, which may not be called", name[1])
		}
	}
	for name := range allowed {
		if !listed[name] && ast.BuiltinMap[name].Infix == "" && !strings.HasPrefix(name, "internal.") {
			t.Errorf("docs/policy.md does not list %s", name)
		}
	}
	for _, name := range []string{
		"count", "regex.match", "glob.match", "object.get", "sprintf", "time.parse_rfc3339_ns", "time.date", "time.clock", "time.weekday", "time.add_date",
		"time.diff", "time.format", "net.cidr_contains", "net.cidr_intersects", "net.cidr_is_valid", "net.cidr_merge", "io.jwt.decode", "json.match_schema", "json.verify_schema",
	} {
		if !allowed[name] {
			t.Errorf("%s may not be called", name)
		}
	}
}

// Whatever the policy answers: it allows only where allow is true, deny is a set of strings that is empty, and the rest
// is well typed.
func wrongOutputsNeverAllow(t *testing.T) {
	t.Parallel()
	values := rapid.SampledFrom([]string{
		"true", "false", "null", "0", "1", "-1", "1.5", `""`, `"true"`, `"10s"`, "[]", "[true]", `["x"]`, "{}", `{"a": 1}`,
		"set()", "{true}", `{"why"}`, "{1}", "[[1]]", `{"allow": true}`, `{"self": true}`,
	})
	rapid.Check(t, func(rt *rapid.T) {
		allow, deny := values.Draw(rt, "allow"), values.Draw(rt, "deny")
		timeout, approval := values.Draw(rt, "timeout"), values.Draw(rt, "require_approval")
		engine, problems := decision.Load(t.Context(), with(minimal(), "policy/call.rego", fmt.Sprintf(
			"package catalogd.call\n\ndefault allow := false\n\nallow := %s if input.tool.name\n\ndeny := %s\n\ntimeout := %s\n\nrequire_approval := %s\n",
			allow, deny, timeout, approval)), patient)
		if problems.HasErrors() {
			rt.Fatal(problems.Err())
		}
		in := callInput()
		in.Tool.Effect = "write"
		d := engine.Call(t.Context(), in)
		want := allow == "true" && deny == "set()" && timeout == `"10s"` && approval == `{"self": true}`
		if d.Allow != want || d.Allow != (d.Code == decision.Allowed) || d.Allow == (len(d.Reasons) > 0) {
			rt.Errorf("%v, want allow %v", d, want)
		}
	})
}

func argumentsThatAreNoJSON(t *testing.T) {
	t.Parallel()
	engine := load(t, with(minimal(), "policy/call.rego", "package catalogd.call\n\ndefault allow := false\n\nallow if true\n"))
	for raw, want := range map[string]decision.ReasonCode{
		"": decision.Allowed, "{}": decision.Allowed, `{"a":[1,null,"x",true,{"b":1e99}]}`: decision.Allowed,
		"{": decision.PolicyError, `{} {}`: decision.PolicyError, `{"hunter2`: decision.PolicyError,
		`{"n":1e1000000000}`: decision.PolicyError, `{"n":[1E+100000]}`: decision.PolicyError, `{"n":1e-99999}`: decision.PolicyError,
	} {
		in := callInput()
		in.Arguments = json.RawMessage(raw)
		d := engine.Call(t.Context(), in)
		if d.Code != want || strings.Contains(d.String(), "hunter2") {
			t.Errorf("%s: %v, want %s", raw, d, want)
		}
	}
}

// A caller that gives up gets a no, and not for the policy's fault.
func withdrawn(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	d := shipped(t).Call(ctx, callInput())
	if d.Allow || d.Code != decision.PolicyError {
		t.Error(d)
	}
}

func deadline(t *testing.T) {
	t.Parallel()
	fsys := with(minimal(), "policy/call.rego",
		"package catalogd.call\n\ndefault allow := false\n\nallow if count(numbers.range(1, 100000000)) > 0\n")
	engine, problems := decision.Load(t.Context(), fsys, decision.Config{Deadline: time.Millisecond})
	if problems.HasErrors() {
		t.Fatal(problems.Err())
	}
	d := engine.Call(t.Context(), callInput())
	if d.Allow || d.Code != decision.PolicyTimeout || !strings.Contains(d.Reasons[0], "1ms") {
		t.Error(d)
	}
}

// One engine answers many callers at once, each with its own answer.
func TestConcurrent(t *testing.T) {
	t.Parallel()
	engine := shipped(t)
	var callers sync.WaitGroup
	for i := range 8 {
		callers.Go(func() {
			for range 50 {
				call := callInput()
				if i%2 == 1 {
					call.Branch.Name = "unknown"
				}
				if d := engine.Call(t.Context(), call); d.Allow != (i%2 == 0) {
					t.Errorf("call %d: %v", i, d)
				}
				if _, d := engine.Connect(t.Context(), connectInput()); d.Trust != "clock" {
					t.Errorf("connect %d: %v", i, d)
				}
				if x, err := engine.Explain(t.Context(), decision.Call, call); err != nil || len(x.Rules) == 0 {
					t.Errorf("explain %d: %v %v", i, x, err)
				}
			}
		})
	}
	callers.Wait()
}

func TestDigest(t *testing.T) {
	t.Parallel()
	digest := func(fsys fstest.MapFS) string { return load(t, fsys).Digest() }
	base := digest(minimal())
	if digest(minimal()) != base {
		t.Error("the digest is not stable")
	}
	if digest(with(minimal(), "policy/x/data.yaml", "a: 1\n")) == base {
		t.Error("data is not covered")
	}
	if digest(with(minimal(), "policy/lib/x.rego", "package catalogd.lib.x\n")) == base {
		t.Error("modules are not covered")
	}
	if digest(with(minimal(), "policy/call_test.rego", "package catalogd.call_test\n")) != base {
		t.Error("tests are no part of what is served")
	}
	if digest(with(minimal(), "policy/.hidden.rego", "{")) != base {
		t.Error("editors' files are no part of what is served")
	}
}

// The schema is what the input is: no field of the Go types is missing, and objects are closed.
func TestSchema(t *testing.T) {
	t.Parallel()
	for _, point := range decision.Points() {
		var schema struct {
			Type       string
			Properties map[string]map[string]any
			Additional bool `json:"additionalProperties"`
		}
		if err := json.Unmarshal(decision.Schema(point), &schema); err != nil || schema.Type != "object" || schema.Additional {
			t.Errorf("%s: %v %+v", point, err, schema)
		}
		if arguments := schema.Properties["arguments"]; len(arguments) > 2 || (arguments != nil) != slices.Contains([]decision.Point{decision.Call, decision.Result, decision.Release}, point) {
			t.Errorf("%s: arguments are not open: %v", point, arguments)
		}
	}
	if decision.Schema("nonsense") != nil {
		t.Error("what is no point has a schema")
	}
}

// Every field is there, empty where the input has nothing, so that a rule with not can't be fooled by its absence.
func TestEveryFieldIsPresent(t *testing.T) {
	t.Parallel()
	engine := load(t, with(minimal(), "policy/list.rego", `package catalogd.list

default allow := false

allow if {
	input.tool == {"name": "", "effect": "", "tags": [], "binding": "", "server": "", "trust": "", "deprecated": false, "discovered": false}
	input.branch == {"name": "", "labels": {}, "session": ""}
	input.principal == {"name": "", "groups": [], "admin": false, "local": false}
}
`))
	if d := engine.List(t.Context(), decision.ListInput{}); !d.Allow {
		t.Error(d)
	}
}

func BenchmarkDecision(b *testing.B) {
	engine := shipped(b)
	ctx := context.Background()
	b.Run("call", func(b *testing.B) {
		in := callInput()
		b.ReportAllocs()
		for b.Loop() {
			if d := engine.Call(ctx, in); !d.Allow {
				b.Fatal(d)
			}
		}
	})
	b.Run("call-evaluated", func(b *testing.B) {
		in, engine := callInput(), load(b, reading("not input.arguments.q == 7"))
		b.ReportAllocs()
		for b.Loop() {
			if d := engine.Call(ctx, in); !d.Allow {
				b.Fatal(d)
			}
		}
	})
	b.Run("call-foreseen", func(b *testing.B) {
		in, engine := callInput(), load(b, reading(`rules: deny contains "seven" if { input.tool.name == "another"; input.arguments.q == 7 }`))
		b.ReportAllocs()
		for b.Loop() {
			if d := engine.Call(ctx, in); !d.Allow {
				b.Fatal(d)
			}
		}
	})
	b.Run("list", func(b *testing.B) {
		in := decision.ListInput{Branch: decision.Branch{Name: "default"}, Tool: decision.Tool{Name: "t", Effect: "read"}, Principal: decision.Local()}
		b.ReportAllocs()
		for b.Loop() {
			if d := engine.List(ctx, in); !d.Allow {
				b.Fatal(d)
			}
		}
	})
	b.Run("connect", func(b *testing.B) {
		in := connectInput()
		b.ReportAllocs()
		for b.Loop() {
			if _, d := engine.Connect(ctx, in); !d.Allow {
				b.Fatal(d)
			}
		}
	})
	b.Run("explain", func(b *testing.B) {
		in := callInput()
		b.ReportAllocs()
		for b.Loop() {
			if _, err := engine.Explain(ctx, decision.Call, in); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkLoad(b *testing.B) {
	for b.Loop() {
		shipped(b)
	}
}
