package decision_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"golang.org/x/tools/txtar"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/problem"
)

// minimal is a policy that loads and denies everything.
func minimal() fstest.MapFS {
	fsys := fstest.MapFS{}
	for _, point := range decision.Points() {
		fsys["policy/"+string(point)+".rego"] = file(fmt.Sprintf("package catalogd.%s\n\ndefault allow := false\n", point))
	}
	return fsys
}

func file(content string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(content), Mode: 0o644} }

// with puts one module in the place of another.
func with(fsys fstest.MapFS, name, content string) fstest.MapFS {
	fsys[name] = file(content)
	return fsys
}

// TestBadInput runs testdata/policy: the rows of the project's list of bad inputs by id, and what else a policy can get
// wrong. The files of an archive stand beside or over the minimal policy. Its comment says what must come of it:
//
//	empty                                       begin with nothing instead of the minimal policy
//	problem <position> <code> <part of message> exactly these problems refuse it
//	decision <point> <code> <part of a reason>  it loads, and decides so
func TestBadInput(t *testing.T) {
	archives, err := filepath.Glob("../testdata/policy/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, name := range archives {
		id := strings.TrimSuffix(filepath.Base(name), ".txtar")
		t.Run(strings.Replace(id, "-", "/", 1), func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			runCase(t, archive)
		})
	}
	t.Run("B14/print", silent)
	t.Run("B15/large", large)
}

func runCase(t *testing.T, archive *txtar.Archive) {
	fsys := minimal()
	var problems, decisions []string
	for line := range strings.Lines(string(archive.Comment)) {
		switch word, rest, _ := strings.Cut(strings.TrimSpace(line), " "); word {
		case "empty":
			fsys = fstest.MapFS{}
		case "problem":
			problems = append(problems, rest)
		case "decision":
			decisions = append(decisions, rest)
		}
	}
	if len(problems)+len(decisions) == 0 {
		t.Fatal("the case expects nothing")
	}
	for _, f := range archive.Files {
		fsys[f.Name] = file(string(f.Data))
	}
	cfg := patient
	if strings.Contains(strings.Join(decisions, "\n"), string(decision.PolicyTimeout)) {
		cfg = decision.Config{}
	}
	engine, found := decision.Load(t.Context(), fsys, cfg)
	if (engine == nil) != found.HasErrors() {
		t.Fatalf("an engine and errors exclude each other: %v, %v", engine, found)
	}
	matchProblems(t, problems, found)
	if engine == nil {
		return
	}
	for _, want := range decisions {
		matchDecision(t, want, engine)
	}
}

func matchProblems(t *testing.T, want []string, found problem.List) {
	t.Helper()
	if len(want) != len(found) {
		t.Errorf("%d problems, want %d", len(found), len(want))
	}
	for i, p := range found {
		if p.Message == "" || strings.Contains(p.Message, "\n") {
			t.Errorf("the message is no line: %q", p.Message)
		}
		if i >= len(want) {
			t.Errorf("unexpected: %v", p)
			continue
		}
		parts := strings.SplitN(want[i], " ", 3)
		if p.Position.String() != parts[0] || string(p.Code) != parts[1] {
			t.Errorf("got  %v\nwant %s", p, want[i])
		}
		if len(parts) == 3 && !strings.Contains(p.Path+": "+p.Message, parts[2]) {
			t.Errorf("%v\ndoes not say %q", p, parts[2])
		}
	}
}

func matchDecision(t *testing.T, want string, engine *decision.Engine) {
	t.Helper()
	parts := strings.SplitN(want, " ", 3)
	d := ask(t.Context(), engine, decision.Point(parts[0]))
	if string(d.Code) != parts[1] || d.Allow != (d.Code == decision.Allowed) {
		t.Errorf("got  %v\nwant %s", d, want)
	}
	if d.Allow != (len(d.Reasons) == 0) {
		t.Errorf("reasons stand where it denies: %v", d)
	}
	if len(parts) == 3 && !strings.Contains(strings.Join(d.Reasons, "; "), parts[2]) {
		t.Errorf("%v\ndoes not say %q", d, parts[2])
	}
	if strings.Contains(d.String(), "hunter2") {
		t.Errorf("an argument shows: %v", d)
	}
}

// ask asks the point about branch default and tool t, on a Monday.
func ask(ctx context.Context, engine *decision.Engine, point decision.Point) decision.Decision {
	branch, tool := decision.Branch{Name: "default"}, decision.Tool{Name: "t", Effect: "read", Binding: "jq"}
	switch point {
	case decision.Connect:
		_, d := engine.Connect(ctx, connectInput())
		return d
	case decision.Discover:
		return engine.Discover(ctx, decision.DiscoverInput{Change: "identical", Details: []string{}, Findings: []string{}})
	case decision.List:
		return engine.List(ctx, decision.ListInput{Branch: branch, Tool: tool, Principal: decision.Local()})
	case decision.Call:
		return engine.Call(ctx, callInput())
	case decision.Result:
		in := resultInput()
		return engine.Result(ctx, in, func() decision.ToolResult { return in.Result })
	case decision.Release:
		return engine.Release(ctx, releaseInput())
	}
	return engine.Adopt(ctx, decision.AdoptInput{Bootstrap: true})
}

// releaseInput is about the second attempt of an intent that was approved.
func releaseInput() decision.ReleaseInput {
	call := callInput()
	call.Tool.Effect = "write"
	return decision.ReleaseInput{
		Branch: call.Branch, Tool: call.Tool, Principal: call.Principal, Arguments: call.Arguments, Time: call.Time,
		Intent: decision.Intent{
			ID: "0123456789abcdef0123456789abcdef", Staged: call.Time.Add(-time.Minute), Age: 60, Attempt: 2, Repeatable: true, Keyed: true,
			Approval: &decision.IntentApproval{
				Asked: decision.AskedApproval{Groups: []string{"ops"}, Reason: "why"}, By: decision.Approver{Name: "ann", Groups: []string{"ops"}},
				At: call.Time.Add(-time.Second),
			},
		},
	}
}

func callInput() decision.CallInput {
	return decision.CallInput{
		Branch: decision.Branch{Name: "default"}, Tool: decision.Tool{Name: "t", Effect: "read", Binding: "jq"},
		Principal: decision.Local(),
		Arguments: []byte(`{"big": 9007199254740993, "fraction": 0.1, "secret": "hunter2"}`),
		Time:      time.Date(2026, 11, 30, 1, 2, 3, 0, time.UTC),
	}
}

func resultInput() decision.ResultInput {
	call := callInput()
	return decision.ResultInput{
		Branch: call.Branch, Tool: call.Tool, Principal: call.Principal, Arguments: call.Arguments, Time: call.Time,
		Result: decision.ToolResult{
			Bytes: 47, Structured: []byte(`{"password": "hunter2", "n": 9007199254740993}`), Text: []string{"hunter2"}, Types: []string{"text"},
		},
	}
}

// A policy of a thousand modules, and one with much data, load and decide.
func large(t *testing.T) {
	t.Parallel()
	fsys := minimal()
	body := "package catalogd.call\n\ndefault allow := false\n"
	for i := range 1000 {
		fsys[fmt.Sprintf("policy/lib/m%d.rego", i)] = file(fmt.Sprintf("package catalogd.lib.m%d\n\nok if input.tool.name == \"t\"\n", i))
		body += fmt.Sprintf("\nallow if data.catalogd.lib.m%d.ok\n", i)
	}
	with(fsys, "policy/call.rego", body)
	with(fsys, "policy/big/data.json", `{"list": [`+strings.Repeat(`"0123456789",`, 100_000)+`"end"]}`)
	engine, problems := decision.Load(t.Context(), fsys, patient)
	if problems.HasErrors() {
		t.Fatal(problems.Err())
	}
	if d := ask(t.Context(), engine, decision.Call); !d.Allow {
		t.Error(d)
	}
}

// What print says about arguments reaches neither output of the process.
func silent(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out, errOut := os.Stdout, os.Stderr
	os.Stdout, os.Stderr = write, write
	engine, problems := decision.Load(t.Context(), with(minimal(), "policy/call.rego",
		"package catalogd.call\n\ndefault allow := false\n\nallow if {\n\tprint(\"hunter2\", input.arguments)\n}\n"), patient)
	var d decision.Decision
	if engine != nil {
		d = ask(t.Context(), engine, decision.Call)
	}
	os.Stdout, os.Stderr = out, errOut
	if err := write.Close(); err != nil {
		t.Fatal(err)
	}
	said := make([]byte, 1)
	if n, _ := read.Read(said); n > 0 {
		t.Error("print said something")
	}
	if problems.HasErrors() || d.Code == "" {
		t.Fatal(problems, d)
	}
}
