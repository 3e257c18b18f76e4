package serve_test

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/serve"
	"github.com/catalogd/catalogd/internal/upstream"
	"github.com/catalogd/catalogd/loader"
	"github.com/catalogd/catalogd/problem"
)

// build makes a generation of the house's files, without a daemon.
func (h *house) build(t testing.TB, deadline time.Duration) (*serve.Generation, problem.List) {
	t.Helper()
	snap, problems := h.Snapshot(t.Context())
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	log := slog.New(slog.NewTextHandler(h.log, nil))
	pool := upstream.NewPool(upstream.Config{Logger: log})
	t.Cleanup(pool.Close)
	b := &serve.Builder{
		Root: t.TempDir(), Pool: pool, Log: log,
		Compiler: loader.NewCompiler(loader.Config{Schema: readSchema(t), Logger: log}),
		Policy:   decision.Config{Deadline: deadline, Logger: log},
	}
	g, problems := b.Build(t.Context(), snap, nil)
	if g != nil {
		t.Cleanup(g.Retire)
	}
	return g, problems
}

// hundred is a house with a hundred tools more, whose policy is replaced at one point.
func hundred(t testing.TB, binding, file, policy string) *house {
	h := newHouse(t)
	var b strings.Builder
	b.WriteString("package catalog\n\n")
	for i := range 100 {
		fmt.Fprintf(&b, "tools: t%d: {description: \"x\", effect: \"read\", binding: %s}\n", i, binding)
	}
	h.set("catalog/many.cue", b.String())
	h.set(file, policy)
	delete(h.files, strings.Replace(file, ".rego", "_test.rego", 1))
	return h
}

const never = "count([1 | some i in numbers.range(1, 1000000); some j in numbers.range(1, 1000000); i * j == 7]) > 0"

// TestThreatPolicy: what a policy that fails at a build costs (T4, T5, B10).
func TestThreatPolicy(t *testing.T) {
	t.Parallel()
	t.Run("T4/one of a hundred", func(t *testing.T) {
		t.Parallel()
		for name, rule := range map[string]string{"loops": never, "fails": `to_number("x") == 1`, "conflicts": "data.catalogd.lib.both.of(count(input.tool.name) - 2)"} {
			h := hundred(t, `jq: program: "1"`, "policy/list.rego", `package catalogd.list

default allow := false

allow if input.tool.name != "t50"

allow if {
	input.tool.name == "t50"
	`+rule+`
}
`)
			h.set("policy/lib/both.rego", "package catalogd.lib.both\n\nof(x) := 1 if x > 0\n\nof(x) := 2 if x < 2\n")
			g, problems := h.build(t, time.Second)
			if g == nil {
				t.Fatalf("%s: %v", name, problems)
			}
			path, _ := g.Path("default")
			names := path.View.Names()
			if len(names) != 104 || strings.Contains(strings.Join(names, " "), "t50") {
				t.Errorf("%s: %v", name, names)
			}
		}
	})
	for point, binding := range map[string]string{"list": `jq: program: "1"`, "connect": `exec: {command: "date", argv: []}`} {
		t.Run("T5/every "+point+" decision loops", func(t *testing.T) {
			t.Parallel()
			h := hundred(t, binding, "policy/"+point+".rego", "package catalogd."+point+"\n\ndefault allow := false\n\nallow if {\n\tinput\n\t"+never+"\n}\n")
			g, problems := h.build(t, 30*time.Millisecond)
			if g != nil {
				t.Fatal("it was built")
			}
			said := fmt.Sprint(problems)
			if len(problems) != 1 || problems[0].Code != problem.PolicyTimeout || !strings.Contains(said, "data.catalogd."+point) || !strings.Contains(said, "the last one about") {
				t.Errorf("%s", said)
			}
			if asked := strings.Count(h.log.String(), `msg="connect decision"`); asked > 20 {
				t.Errorf("%d connect decisions were asked", asked)
			}
		})
	}
}
