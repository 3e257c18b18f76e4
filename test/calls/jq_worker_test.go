package calls

import (
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/catalogd/catalogd"
	"github.com/catalogd/catalogd/test/internal/harness"
)

// hungryPrograms have programs of each kind that take too much: memory step by step and in one step, stack, and time.
const hungryPrograms = `package catalog

_d: {description: "d", effect: "read", args: n!: int}
_eats: "if .n > 1 then reduce range(.n) as $i (0; [.]) | tojson | {n: length} else . end"
tools: grows: {_d, binding: jq: program: "[range(.n)] | length"}
tools: leaps: {_d, binding: jq: program: "\"x\" * .n | length"}
tools: nests: {_d, binding: jq: program: "reduce range(.n) as $i (0; [.]) | tojson | length"}
tools: loops: {_d, timeout: "1s", binding: jq: program: "if .n > 1 then def f: f; f else 1 end"}
tools: before: {_d, pre: _eats, binding: jq: program: ".n"}
tools: behind: {_d, post: _eats + " | .n", binding: jq: program: "{n: .n}"}
branches: shop: {}
`

// TestHungryPrograms: a jq program that takes all memory, stack or time that it can fails its own call, whether it is a
// tool's binding, its pre or its post. The daemon lives, and so do the calls that follow.
func TestHungryPrograms(t *testing.T) {
	dir := harness.Starter(t)
	harness.WriteFile(t, filepath.Join(dir, "catalog/hungry.cue"), hungryPrograms)
	access := filepath.Join(dir, "policy/access/data.yaml")
	harness.WriteFile(t, access, strings.Replace(harness.ReadFile(t, access), "branches:\n  default:", "branches:\n  shop:\n    tools: [\"*\"]\n  default:", 1))
	r := harness.Serve(t, catalogd.Config{Dir: dir, Worker: []string{compileWorker}})
	harness.Await(t, "a process for the programs, before any call", func() bool { return len(r.Status().JQ.PIDs) > 0 })
	l := harness.Connect(t, r.URL, "shop", harness.Modern)
	works := func() {
		t.Helper()
		for _, tool := range []string{"grows", "leaps", "nests", "loops", "before", "behind"} {
			want := "1"
			if tool == "nests" {
				want = "3" // [0]
			}
			// A busy machine may be late for the call with the short timeout.
			harness.Await(t, tool+" to answer "+want, func() bool { return l.Answer(t.Context(), tool, map[string]any{"n": 1}) == want })
		}
	}
	works()
	for _, test := range []struct {
		tool string
		n    int
		says string
	}{
		{"grows", 1_000_000_000, "the tool's program failed on these arguments: the jq program was stopped, because it needs more than "},
		{"leaps", 2_000_000_000, "the tool's program failed on these arguments: the jq program was stopped, because it needs more than "},
		{"nests", 2_000_000, "the tool's program failed on these arguments: the jq program was stopped, because it needs more than "},
		{"loops", 2, "the time of the call was up"},
		{"before", 2_000_000, "the tool's pre program refused the arguments: the jq program was stopped, because it needs more than "},
		{"behind", 2_000_000, "the tool's post program failed on its result: the jq program was stopped, because it needs more than "},
	} {
		if got := l.Answer(t.Context(), test.tool, map[string]any{"n": test.n}); !strings.HasPrefix(got, "failed: ") || !strings.Contains(got, test.says) {
			t.Errorf("%s: got %.300s, want %q", test.tool, got, test.says)
		}
		works()
	}
	// Which limit a program meets first, memory or processor time, depends on the machine; the loop meets that of its call.
	s := r.Status().JQ
	if s.Deaths+s.Timeouts != 5 || s.Kills != s.Timeouts+1 || s.Runs < 7*6 || s.Sandbox == nil {
		t.Errorf("got %+v, want 5 that met a limit of the child, one that met its own, and the runs that worked", *s)
	}
	resp, err := http.Get(r.URL + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	metrics, err := io.ReadAll(resp.Body)
	if want := fmt.Sprintf("\ncatalogd_jq_failures_total{why=\"death\"} %d\n", s.Deaths); err != nil || !strings.Contains(string(metrics), want) {
		t.Errorf("the metrics do not have %q: %v", want, err)
	}
	if checker := r.Status().Checker.PIDs; slices.ContainsFunc(s.PIDs, func(pid int) bool { return slices.Contains(checker, pid) }) {
		t.Errorf("programs and checks with CUE share a process: %v, %v", s.PIDs, checker)
	}
}
