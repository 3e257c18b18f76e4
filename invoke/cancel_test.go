package invoke_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/invoke"
	"github.com/catalogd/catalogd/registry"
)

// A caller that cancels its call is not answered that the policy denied it, whichever decision it cancels.
func TestCancelledDecision(t *testing.T) {
	t.Parallel()
	const endless = "package catalogd.%s\n\ndefault allow := false\n\nallow if {\n\tinput.arguments.city\n\tcount(numbers.range(1, 100000000)) > 0\n}\n"
	for _, test := range []struct {
		point decision.Point
		runs  int
		says  string
	}{{decision.Call, 0, "nothing was run"}, {decision.Result, 1, "The tool has run"}} {
		t.Run(string(test.point), func(t *testing.T) {
			t.Parallel()
			policy := fstest.MapFS{}
			for _, p := range decision.Points() {
				text := fmt.Sprintf("package catalogd.%s\n\ndefault allow := false\n\nallow if true\n", p)
				if p == test.point {
					text = fmt.Sprintf(endless, p)
				}
				policy["policy/"+string(p)+".rego"] = &fstest.MapFile{Data: []byte(text), Mode: 0o644}
			}
			engine, problems := decision.Load(t.Context(), policy, decision.Config{Deadline: time.Minute})
			if problems.HasErrors() {
				t.Fatal(problems.Err())
			}
			f := open(t, &script{}, registry.Bound{}, nil)
			asked, told := make(chan decision.Point, 4), make(chan decision.Event, 4)
			f.path.Decide = func(ctx context.Context, in decision.CallInput) decision.Decision {
				asked <- decision.Call
				return engine.Call(ctx, in)
			}
			f.path.Release = func(ctx context.Context, in decision.ResultInput, result func() decision.ToolResult) decision.Decision {
				asked <- decision.Result
				return engine.Result(ctx, in, result)
			}
			f.path.Decided = func(e decision.Event) { told <- e }
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				for p := range asked {
					if p == test.point {
						cancel()
					}
				}
			}()
			call := f.path.Call(ctx, invoke.Request{Tool: "forecast", Arguments: json.RawMessage(`{"city":"Bern"}`), Principal: decision.Local()})
			close(asked)
			if call.Err == nil || call.Err.Code != registry.Cancelled || !strings.Contains(call.Err.Msg, test.says) || f.script.runs != test.runs {
				t.Errorf("the call ended with %v after %d runs", call.Err, f.script.runs)
			}
			close(told)
			for e := range told {
				if e.Decision.Code != decision.Allowed {
					t.Errorf("a decision that nobody made is recorded: %+v", e.Decision)
				}
			}
			if strings.Contains(f.log.String(), "policy_error") {
				t.Errorf("the log has\n%s", f.log)
			}
		})
	}
}
