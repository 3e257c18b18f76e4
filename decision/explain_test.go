package decision_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/catalogd/catalogd/decision"
)

func lines(rules []decision.Rule) []string {
	var out []string
	for _, r := range rules {
		out = append(out, r.String())
	}
	return out
}

func TestExplain(t *testing.T) {
	t.Parallel()
	engine := load(t, with(with(minimal(), "policy/call.rego", `package catalogd.call

import data.catalogd.lib.who

default allow := false

allow if who.known(input.branch.name)

allow if input.tool.name == "ping"

deny contains "not this one" if {
	input.tool.name == "drop"
}
`), "policy/lib/who.rego", `package catalogd.lib.who

known(name) if name == "default"

known(name) if name == "other"
`))
	in := callInput()
	tests := []struct {
		name, branch, tool string
		allow              bool
		rules, unmet       []string
	}{
		{"allowed", "default", "t", true, []string{
			"policy/call.rego:7:1: allow if who.known(input.branch.name)",
			`policy/lib/who.rego:3:1: known(name) if name == "default"`,
		}, nil},
		{"denied by a rule", "other", "drop", false, []string{
			"policy/call.rego:7:1: allow if who.known(input.branch.name)",
			`policy/call.rego:11:1: deny contains "not this one" if`,
			`policy/lib/who.rego:5:1: known(name) if name == "other"`,
		}, nil},
		{"allowed by none", "nobody", "t", false, nil, []string{
			"policy/call.rego:7:1: allow if who.known(input.branch.name)",
			`policy/call.rego:9:1: allow if input.tool.name == "ping"`,
		}},
	}
	for _, test := range tests {
		in.Branch.Name, in.Tool.Name = test.branch, test.tool
		x, err := engine.Explain(t.Context(), decision.Call, in)
		if err != nil || x.Decision.Allow != test.allow {
			t.Fatalf("%s: %v %v", test.name, x, err)
		}
		if got := lines(x.Rules); !slices.Equal(got, test.rules) {
			t.Errorf("%s: true rules\n%s\nwant\n%s", test.name, strings.Join(got, "\n"), strings.Join(test.rules, "\n"))
		}
		if got := lines(x.Unmet); !slices.Equal(got, test.unmet) {
			t.Errorf("%s: unmet rules\n%s\nwant\n%s", test.name, strings.Join(got, "\n"), strings.Join(test.unmet, "\n"))
		}
	}
}

// What Explain says is what the decision was.
func TestExplainAgrees(t *testing.T) {
	t.Parallel()
	engine := shipped(t)
	x, err := engine.Explain(t.Context(), decision.Connect, connectInput())
	if err != nil || !x.Decision.Allow || x.Entry.String() != engine.TrustPosition("clock").String() {
		t.Errorf("%v %v", x, err)
	}
	b, err := json.Marshal(x)
	if err != nil || !strings.Contains(string(b), `"entry":{"file":"policy/trust/data.yaml"`) {
		t.Errorf("%s %v", b, err)
	}
	if text := x.String(); !strings.Contains(text, "allowed by trust entry clock\n  written at policy/trust/data.yaml:") {
		t.Error(text)
	}
	for point, input := range map[decision.Point]any{
		decision.List: callInput(), decision.Call: nil, decision.Release: callInput(), "nonsense": callInput(),
	} {
		if _, err := engine.Explain(t.Context(), point, input); err == nil {
			t.Errorf("%s takes %T", point, input)
		}
	}
}

func TestPolicyTests(t *testing.T) {
	t.Parallel()
	report, problems := decision.Test(t.Context(), os.DirFS(".."), decision.TestConfig{Timeout: time.Minute})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	cases := 0
	for _, test := range report.Tests {
		cases += max(test.Cases, 1)
		if !test.Pass {
			t.Errorf("%s: %s: %s %v", test.Position, test.Name, test.Message, test.Failed)
		}
	}
	if cases < 250 || !report.Passed() {
		t.Errorf("%d cases", cases)
	}
	for _, f := range report.Files {
		if f.Coverage < 95 {
			t.Errorf("%s: %.0f %% covered; not: %v", f.File, f.Coverage, f.NotCovered)
		}
	}
	t.Logf("%d tests, %d cases, %.1f %% covered", len(report.Tests), cases, report.Coverage)
}

func TestFailingPolicyTests(t *testing.T) {
	t.Parallel()
	fsys := with(minimal(), "policy/call_test.rego", `package catalogd.call_test

test_good if not data.catalogd.call.allow with input as {}

test_bad if {
	print("seen", 1)
	data.catalogd.call.allow with input as {}
}

test_cases[note] if {
	some note in ["a", "b"]
	note == "a"
}

test_error if to_number("x") == 1

todo_test_later if false
`)
	report, problems := decision.Test(t.Context(), fsys, decision.TestConfig{})
	if len(problems) > 0 || report.Passed() {
		t.Fatal(problems, report)
	}
	var got []string
	for _, r := range report.Tests {
		line := strings.TrimPrefix(r.Name, "data.catalogd.call_test.")
		switch {
		case r.Skipped:
			line += " skipped"
		case r.Pass:
			line += " passed"
		default:
			line += " failed"
		}
		got = append(got, r.Position.String()+" "+line+" "+strings.Join(r.Failed, ",")+" "+r.Output)
		if !r.Pass && !r.Skipped && r.Message == "" && r.Cases == 0 {
			t.Errorf("%s does not say why", r.Name)
		}
	}
	want := []string{
		"policy/call_test.rego:3:1 test_good passed  ",
		"policy/call_test.rego:5:1 test_bad failed  seen 1",
		"policy/call_test.rego:10:1 test_cases failed b ",
		"policy/call_test.rego:15:1 test_error failed  ",
		"policy/call_test.rego:17:1 todo_test_later skipped  ",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	report, _ = decision.Test(t.Context(), fsys, decision.TestConfig{Run: "test_good"})
	if len(report.Tests) != 1 || !report.Passed() {
		t.Error(report)
	}
}

func TestPolicyTestsOfABrokenPolicy(t *testing.T) {
	t.Parallel()
	report, problems := decision.Test(t.Context(), with(minimal(), "policy/call.rego", "package catalogd.call\n"), decision.TestConfig{})
	if !problems.HasErrors() || len(report.Tests) > 0 {
		t.Error(report, problems)
	}
}

// A test that doesn't end is an error of the run when the caller's context ends, and never a test that failed.
func TestPolicyTestThatDoesNotEnd(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	fsys := with(minimal(), "policy/call_test.rego", `package catalogd.call_test

test_endless if {
	some i in numbers.range(1, 100000)
	some j in numbers.range(1, 100000)
	i + j < 0
}
`)
	report, problems := decision.Test(ctx, fsys, decision.TestConfig{Timeout: time.Hour})
	if !problems.HasErrors() || len(report.Tests) > 0 {
		t.Errorf("got %v and %v, want an error", report, problems)
	}
}

// asMakeBuilds is the environment in which the Makefile builds, so that no package is compiled a second time.
func asMakeBuilds() []string { return append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-trimpath") }

// Stock OPA finds the same tests in the folder, and they pass there too.
func TestStockOPA(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the opa tool")
	}
	t.Parallel()
	report, problems := decision.Test(t.Context(), os.DirFS(".."), decision.TestConfig{Timeout: time.Minute})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	command := exec.CommandContext(t.Context(), "go", "tool", "-modfile=tools/go.mod", "opa", "test", "--format", "json", "--timeout", "2m", "policy/")
	command.Dir, command.Env = "..", asMakeBuilds()
	out, err := command.Output()
	if err != nil {
		t.Fatalf("opa test: %v\n%s", err, out)
	}
	var stock []struct{ Package, Name string }
	if err := json.Unmarshal(out, &stock); err != nil {
		t.Fatal(err)
	}
	var theirs, ours []string
	for _, r := range stock {
		theirs = append(theirs, r.Package+"."+r.Name)
	}
	for _, r := range report.Tests {
		ours = append(ours, r.Name)
	}
	slices.Sort(theirs)
	slices.Sort(ours)
	if !slices.Equal(theirs, ours) {
		t.Errorf("stock\n%v\nembedded\n%v", theirs, ours)
	}
	command = exec.CommandContext(t.Context(), "go", "tool", "-modfile=tools/go.mod", "opa", "check", "--strict", "policy/")
	command.Dir, command.Env = "..", asMakeBuilds()
	if out, err := command.CombinedOutput(); err != nil {
		t.Errorf("opa check: %v\n%s", err, out)
	}
}
