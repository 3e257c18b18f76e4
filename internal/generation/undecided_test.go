package generation_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/daemon"
	"github.com/catalogd/catalogd/internal/servetest"
	"github.com/catalogd/catalogd/problem"
)

// hundred is a house with a hundred tools more, whose policy is replaced at one point.
func hundred(t testing.TB, binding, file, policy string) *servetest.House {
	h := servetest.NewHouse(t)
	var b strings.Builder
	b.WriteString("package catalog\n\n")
	for i := range 100 {
		fmt.Fprintf(&b, "tools: t%d: {description: \"x\", effect: \"read\", binding: %s}\n", i, binding)
	}
	h.Set("catalog/many.cue", b.String())
	h.Set(file, policy)
	delete(h.Files, strings.Replace(file, ".rego", "_test.rego", 1))
	return h
}

// oneOf is a list policy whose rule for the tool t50 has that condition.
func oneOf(rule string) string {
	return `package catalogd.list

default allow := false

allow if input.tool.name != "t50"

allow if {
	input.tool.name == "t50"
	` + rule + `
}
`
}

// TestThreatPolicy: what a policy that fails at a build costs: the tool that it fails for, and where it does
// not end, the build.
func TestThreatPolicy(t *testing.T) {
	t.Parallel()
	t.Run("T4/one of a hundred", func(t *testing.T) {
		t.Parallel()
		for name, rule := range map[string]string{"fails": `to_number("x") == 1`, "conflicts": "data.catalogd.lib.both.of(count(input.tool.name) - 2)"} {
			h := hundred(t, `jq: program: "1"`, "policy/list.rego", oneOf(rule))
			h.Set("policy/lib/both.rego", "package catalogd.lib.both\n\nof(x) := 1 if x > 0\n\nof(x) := 2 if x < 2\n")
			g, problems := h.Build(t, time.Minute)
			if g == nil {
				t.Fatalf("%s: %v", name, problems)
			}
			path, _ := g.Path("default")
			names := path.View.Names()
			if len(names) != 107 || strings.Contains(strings.Join(names, " "), "t50") {
				t.Errorf("%s: %v", name, names)
			}
		}
	})
	t.Run("T5/one of a hundred loops", func(t *testing.T) {
		t.Parallel()
		g, problems := hundred(t, `jq: program: "1"`, "policy/list.rego", oneOf(servetest.Never)).Build(t, time.Second)
		if g != nil {
			t.Fatal("it was built")
		}
		timedOut(t, problems, 2, `tool "t50" in branch "`)
	})
	for point, binding := range map[string]string{"list": `jq: program: "1"`, "connect": `exec: {command: "date", argv: []}`} {
		t.Run("T5/every "+point+" decision loops", func(t *testing.T) {
			t.Parallel()
			h := hundred(t, binding, "policy/"+point+".rego", "package catalogd."+point+"\n\ndefault allow := false\n\nallow if {\n\tinput != {}\n\t"+servetest.Never+"\n}\n")
			g, problems := h.Build(t, 30*time.Millisecond)
			if g != nil {
				t.Fatal("it was built")
			}
			timedOut(t, problems, 1, "data.catalogd."+point)
			timedOut(t, problems, 1, "the last one about")
			if asked := strings.Count(h.Log.String(), `msg="connect decision"`); asked > 20 {
				t.Errorf("%d connect decisions were asked", asked)
			}
		})
	}
}

// timedOut holds problems to so many, all of code policy_timeout and about that.
func timedOut(t *testing.T, problems problem.List, n int, about string) {
	t.Helper()
	if len(problems) != n {
		t.Errorf("%d problems, want %d: %v", len(problems), n, problems)
	}
	for _, p := range problems {
		if p.Code != problem.PolicyTimeout || p.Severity != problem.Error || !strings.Contains(p.String(), about) {
			t.Errorf("%v, want a policy_timeout about %s", p, about)
		}
	}
}

// gates are what policies of tests wait at: semver.compare of a gate's name answers 0 once that is open.
// Before, it does not end: where the gate is stuck, cancelled or not.
var gates sync.Map

type gate struct {
	opened chan struct{}
	stuck  bool
}

func init() {
	stock := topdown.GetBuiltin("semver.compare")
	ast.BuiltinMap["semver.compare"].CanSkipBctx = false // what cancels is in that
	topdown.RegisterBuiltinFunc("semver.compare", func(bctx topdown.BuiltinContext, args []*ast.Term, iter func(*ast.Term) error) error {
		name, _ := args[0].Value.(ast.String)
		g, ok := gates.Load(string(name))
		if !ok {
			return stock(bctx, args, iter)
		}
		for {
			select {
			case <-g.(*gate).opened:
				return iter(ast.IntNumberTerm(0))
			default:
				if g.(*gate).stuck {
					time.Sleep(time.Millisecond)
				} else if bctx.Cancel.Cancelled() {
					return errors.New("cancelled")
				}
			}
		}
	})
}

// gated is a list policy that waits at a gate of the test for the tool "upper".
func gated(t *testing.T, h *servetest.House, stuck bool) (open func()) {
	t.Helper()
	g := &gate{make(chan struct{}), stuck}
	gates.Store(t.Name(), g)
	open = sync.OnceFunc(func() { close(g.opened) })
	t.Cleanup(open)
	delete(h.Files, "policy/list_test.rego")
	h.Set("policy/list.rego", fmt.Sprintf(`package catalogd.list

default allow := false

allow if input.tool.name != "upper"

allow if {
	input.tool.name == "upper"
	semver.compare(%q, input.branch.name) == 0
}
`, t.Name()))
	return open
}

// TestUndecided: a tool that the policy does not decide on in time costs itself: the rest is served, the
// status says what is missing, and the policy is asked again until it has decided, without an edit.
func TestUndecided(t *testing.T) {
	t.Parallel()
	h := servetest.NewHouse(t)
	open := gated(t, h, false)
	if err := h.OpenShort(t, 200*time.Millisecond, false); err != nil {
		t.Fatal(err)
	}
	if got := h.Names(t, "default"); slices.Contains(got, "upper") || len(got) != 7 {
		t.Errorf("lists %v", got)
	}
	s := h.Status()
	if s.Healthy || len(s.Undecided) != 3 || s.Undecided[0].Name != "upper" || s.Undecided[0].Point != decision.List {
		t.Errorf("healthy %t, undecided %+v", s.Healthy, s.Undecided)
	}
	warned := slices.ContainsFunc(s.Warnings, func(p problem.Problem) bool {
		return p.Code == problem.PolicyTimeout && p.Path == "tools.upper" && p.Severity == problem.Warning
	})
	if !warned {
		t.Errorf("warnings: %v", s.Warnings)
	}
	open()
	servetest.Until(t, "the tool to be decided on", func() bool { return h.Status().Healthy })
	if got := h.Names(t, "default"); !slices.Contains(got, "upper") {
		t.Errorf("lists %v", got)
	}
	h.Mu.Lock()
	defer h.Mu.Unlock()
	if n := len(h.Changed); n == 0 || !slices.Contains(h.Changed[n-1], "default") {
		t.Errorf("reported %v", h.Changed)
	}
}

// TestUndecidedOnce: where nobody waits for what is decided later, it is an error.
func TestUndecidedOnce(t *testing.T) {
	t.Parallel()
	h := servetest.NewHouse(t)
	gated(t, h, false)
	var refused *daemon.RefusedError
	if err := h.OpenShort(t, 200*time.Millisecond, true); !errors.As(err, &refused) {
		t.Fatalf("%v", err)
	}
	timedOut(t, refused.Problems, 3, `tool "upper"`)
}

// TestUndecidedAdoption: a generation about whose adoption the policy does not decide in time is not served,
// and is asked about again by itself.
func TestUndecidedAdoption(t *testing.T) {
	t.Parallel()
	h := servetest.NewHouse(t)
	if err := h.OpenShort(t, 200*time.Millisecond, false); err != nil {
		t.Fatal(err)
	}
	g := &gate{opened: make(chan struct{})}
	gates.Store(t.Name(), g)
	h.Set("policy/adopt.rego", fmt.Sprintf("package catalogd.adopt\n\ndefault allow := false\n\nallow if semver.compare(%q, input.candidate.policy) == 0\n", t.Name()))
	o := h.MustReload(t, "refused")
	timedOut(t, o.Problems, 1, "catalogd.adopt")
	close(g.opened)
	servetest.Until(t, "the adoption", func() bool { return h.Status().Healthy })
}

// TestStuckEvaluation: an evaluation that no cancelling ends is left behind. The build and the daemon go on,
// the status counts it, and it is over when it ends.
func TestStuckEvaluation(t *testing.T) {
	t.Parallel()
	h := servetest.NewHouse(t)
	open := gated(t, h, true)
	h.Set("catalog/home.cue", strings.ReplaceAll(servetest.HomeCUE, "branches: public", "branches: other: {}\nbranches: public"))
	if err := h.OpenShort(t, 100*time.Millisecond, false); err != nil {
		t.Fatal(err)
	}
	s := h.Status()
	if len(s.Undecided) == 0 || len(s.Overdue) == 0 || s.Overdue[0].Point != decision.List {
		t.Errorf("undecided %+v, overdue %+v", s.Undecided, s.Overdue)
	}
	open()
	servetest.Until(t, "the evaluations to end", func() bool { s := h.Status(); return s.Healthy && len(s.Overdue) == 0 })
	if got := h.Names(t, "default"); !slices.Contains(got, "upper") {
		t.Errorf("lists %v", got)
	}
}

// TestStandingsTimeOut: what may be called is an error where the policy does not say so in time, and not an access.
func TestStandingsTimeOut(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"list", "call"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			h := servetest.NewHouse(t)
			if point == "list" {
				h.Set("policy/list.rego", fmt.Sprintf("package catalogd.list\n\ndefault allow := false\n\nallow if input.principal.name == \"local\"\n\nallow if semver.compare(%q, input.tool.name) == 0\n", t.Name()))
			} else {
				h.Set("policy/call.rego", fmt.Sprintf("package catalogd.call\n\ndefault allow := false\n\nallow if input.principal.name == \"local\"\n\nallow if semver.compare(%q, input.tool.name) == 0\n", t.Name()))
			}
			gates.Store(t.Name(), &gate{opened: make(chan struct{})})
			g, problems := h.Build(t, 200*time.Millisecond)
			if g == nil {
				t.Fatal(problems)
			}
			all, err := g.AccessMatrix(t.Context(), []decision.Principal{{Name: "ann", Groups: []string{}}})
			if err == nil || !strings.Contains(err.Error(), "policy_timeout") || !strings.Contains(err.Error(), point+" decision about tool") {
				t.Errorf("%v, %v", all, err)
			}
		})
	}
}
