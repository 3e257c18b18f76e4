package decision

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"

	"github.com/catalogd/catalogd/decision/internal/shape"
)

// stuck is what units.parse waits for where it is given "stuck", cancelled or not.
var stuck atomic.Pointer[chan struct{}]

func init() {
	stock := topdown.GetBuiltin("units.parse")
	topdown.RegisterBuiltinFunc("units.parse", func(bctx topdown.BuiltinContext, args []*ast.Term, iter func(*ast.Term) error) error {
		if stringOf(args[0]) != "stuck" {
			return stock(bctx, args, iter)
		}
		<-*stuck.Load()
		return iter(ast.IntNumberTerm(1))
	})
}

// calling is an engine whose call decision allows under a condition.
func calling(t *testing.T, condition string, cfg Config) *Engine {
	t.Helper()
	fsys := fstest.MapFS{}
	for _, point := range Points() {
		fsys["policy/"+string(point)+".rego"] = &fstest.MapFile{Data: fmt.Appendf(nil, "package catalogd.%s\n\ndefault allow := false\n", point)}
	}
	fsys["policy/call.rego"] = &fstest.MapFile{Data: fmt.Appendf(nil, "package catalogd.call\n\ndefault allow := false\n\nallow if {\n\t%s\n}\n", condition)}
	engine, problems := Load(t.Context(), fsys, cfg)
	if problems.HasErrors() {
		t.Fatal(problems.Err())
	}
	return engine
}

func question(tool, arguments string) CallInput {
	return CallInput{
		Branch: Branch{Name: "b", Labels: map[string]string{}}, Tool: Tool{Name: tool, Effect: "read", Binding: "jq", Tags: []string{}},
		Principal: Local(), Arguments: []byte(arguments), Time: time.Now(),
	}
}

// TestOverdue: whoever asks has an answer whatever the evaluator does. Evaluations that do not end are
// counted, the point is not asked while there are many of them, and it is again when they have ended.
func TestOverdue(t *testing.T) {
	gate := make(chan struct{})
	stuck.Store(&gate)
	e := calling(t, `units.parse(input.tool.name) == 1`, Config{Deadline: 100 * time.Millisecond})
	var asking sync.WaitGroup
	for range maxOverdue {
		asking.Go(func() {
			if d := e.Call(t.Context(), question("stuck", "{}")); d.Code != PolicyTimeout {
				t.Errorf("%v", d)
			}
		})
	}
	asking.Wait()
	if all := OverdueEvaluations(); len(all) != maxOverdue || all[0].Point != Call {
		t.Errorf("%d overdue: %v", len(all), all)
	}
	if d := e.Call(t.Context(), question("1", "{}")); d.Code != PolicyTimeout || !strings.Contains(d.Reasons[0], "overdue") {
		t.Errorf("%v", d)
	}
	if d := e.List(t.Context(), ListInput{Branch: Branch{Labels: map[string]string{}}, Tool: Tool{Tags: []string{}}, Principal: Local()}); d.Code != Denied {
		t.Errorf("another point: %v", d)
	}
	close(gate)
	for len(OverdueEvaluations()) > 0 {
		time.Sleep(time.Millisecond)
	}
	if d := e.Call(t.Context(), question("1", "{}")); !d.Allow {
		t.Errorf("%v", d)
	}
}

// TestWithdrawnWhileStuck: a caller that cancels is released too.
func TestWithdrawnWhileStuck(t *testing.T) {
	gate := make(chan struct{})
	stuck.Store(&gate)
	e := calling(t, `units.parse(input.tool.name) == 1`, Config{Deadline: time.Hour})
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	if d := e.Call(ctx, question("stuck", "{}")); d.Code != PolicyError {
		t.Errorf("%v", d)
	}
	x, err := e.Explain(ctx, Call, question("stuck", "{}"))
	if err != nil || x.Decision.Code != PolicyError {
		t.Errorf("%v, %v", x, err)
	}
	close(gate)
	for len(OverdueEvaluations()) > 0 {
		time.Sleep(time.Millisecond)
	}
}

// TestDeadlineCountsWork: an evaluation is not late as long as it has not worked its time, however much has
// passed; nor without end.
func TestDeadlineCountsWork(t *testing.T) {
	if runtime.GOOS != "linux" && runtime.GOOS != "darwin" {
		t.Skip("threads have no clock here")
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const budget = time.Minute
	v := &evaluation{ctx: t.Context(), budget: budget, begin: time.Now().Add(-budget - grace(budget)/2)}
	for range 100 {
		if v.Cancelled() {
			t.Fatal("it is late, and did not work")
		}
	}
	if !v.metered {
		t.Fatal("its work is not measured")
	}
	runtime.UnlockOSThread() // of the metering
	v.begin = time.Now().Add(-budget - 2*grace(budget))
	if !v.expired() {
		t.Error("it is not late after all that time")
	}
	v.begin = time.Now()
	v.since -= 2 * budget
	if !v.expired() {
		t.Error("it is not late after its work")
	}
}

// TestPrompt: a policy is evaluated where it is asked only if all that it calls is known to be done in a moment.
func TestPrompt(t *testing.T) {
	t.Parallel()
	for condition, want := range map[string]bool{
		`input.tool.name == "x"`: true, `startswith(input.tool.name, "x")`: true, `some t in input.tool.tags; t == "a"`: true,
		`regex.match("x", input.tool.name)`: false, `glob.match("x*", [], input.tool.name)`: true, `count(numbers.range(1, 2)) == 2`: false,
		`walk(input.arguments, [_, "x"])`: false,
	} {
		if got := calling(t, condition, Config{}).points[Call].fast; got != want {
			t.Errorf("%s: %t, want %t", condition, got, want)
		}
	}
}

// TestSizes: built-ins whose result would not be bounded by the size of what they are given fail, and so does
// what makes numbers that arithmetic takes too long for.
func TestSizes(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("9", shape.MaxDigits+1)
	text := strings.Repeat("a", 5000)
	for condition, arguments := range map[string]string{
		`to_number(input.arguments.x) > 1`:                                     `{"x":"` + long + `"}`,
		`to_number(input.arguments.x) >= 1`:                                    `{"x":"1e1000000"}`,
		`json.unmarshal(input.arguments.x)[0] > 1`:                             `{"x":"[1e1000000]"}`,
		`input.arguments.x > 1`:                                                `{"x":0.` + strings.Repeat("0", shape.MaxDigits) + `1}`,
		`concat(input.arguments.x, input.arguments.l) != ""`:                   `{"x":"` + text + `","l":[` + strings.Repeat(`"",`, 5000) + `""]}`,
		`replace(input.arguments.x, "a", input.arguments.x) != ""`:             `{"x":"` + text + `"}`,
		`strings.replace_n({"a": input.arguments.x}, input.arguments.x) != ""`: `{"x":"` + text + `"}`,
		`regex.replace(input.arguments.x, "a", input.arguments.x) != ""`:       `{"x":"` + text + `"}`,
		`sprintf(input.arguments.x, [1]) != ""`:                                `{"x":"` + strings.Repeat("%[1]999999d", 50) + `"}`,
		`regex.match(input.arguments.x, input.arguments.y)`:                    `{"x":"` + strings.Repeat("a?", 2000) + `","y":"` + strings.Repeat(text, 20) + `"}`,
		`count(regex.find_n("a.*z|a", input.arguments.y, -1)) > 0`:             `{"y":"` + strings.Repeat(text, 20) + `"}`,
	} {
		e := calling(t, condition, Config{Deadline: time.Minute})
		if d := e.Call(t.Context(), question("x", arguments)); d.Code != PolicyError {
			t.Errorf("%s: %v, want policy_error", condition, d)
		}
	}
	for condition, arguments := range map[string]string{
		`to_number(input.arguments.x) > 1`:                          `{"x":"12.5e3"}`,
		`concat(", ", input.arguments.l) == "a, b"`:                 `{"l":["a","b"]}`,
		`replace(input.arguments.x, "a", "bb") == "bbc"`:            `{"x":"ac"}`,
		`sprintf("%5d|%s", [input.arguments.x, "a"]) == "    7|a"`:  `{"x":7}`,
		`regex.match("^[a-z]+$", input.arguments.y)`:                `{"y":"` + strings.Repeat(text, 100) + `"}`,
		`count(regex.find_n("[0-9]+", input.arguments.y, -1)) == 0`: `{"y":"` + text + `"}`,
	} {
		e := calling(t, condition, Config{Deadline: time.Minute})
		if d := e.Call(t.Context(), question("x", arguments)); !d.Allow {
			t.Errorf("%s: %v, want allow", condition, d)
		}
	}
}
