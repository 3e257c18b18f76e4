package invoke_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/invoke"
	"github.com/catalogd/catalogd/registry"
)

// late is a context whose time is up when done is closed.
type late struct {
	context.Context
	done chan struct{}
}

func (l *late) Done() <-chan struct{} { return l.done }

func (l *late) Err() error {
	select {
	case <-l.done:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// A caller that cancels its call or whose time is up, is not answered that the policy denied it, whichever
// decision that interrupts.
func TestCancelledDecision(t *testing.T) {
	t.Parallel()
	const endless = "package catalogd.%s\n\ndefault allow := false\n\nallow if {\n\tinput.arguments.city\n\tcount(numbers.range(1, 100000000)) > 0\n}\n"
	for _, test := range []struct {
		point decision.Point
		runs  int
		// late says that the time of the call is up in place of a cancellation.
		late bool
		says string
	}{{decision.Call, 0, false, "Nothing was run"}, {decision.Result, 1, false, "The tool has run"}, {decision.Call, 0, true, "Nothing was run"}, {decision.Result, 1, true, "The tool has run"}} {
		t.Run(fmt.Sprint(test.point, test.late), func(t *testing.T) {
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
			f.path.Judge = func(ctx context.Context, in decision.ResultInput, result func() decision.ToolResult) decision.Decision {
				asked <- decision.Result
				return engine.Result(ctx, in, result)
			}
			f.path.Decided = func(e decision.Event) { told <- e }
			code := registry.Cancelled
			ctx, cancel := context.WithCancel(t.Context())
			if test.late {
				ended := &late{Context: ctx, done: make(chan struct{})}
				ctx, cancel = ended, sync.OnceFunc(func() { close(ended.done) })
			}
			go func() {
				for p := range asked {
					if p == test.point {
						cancel()
					}
				}
			}()
			call := f.path.Call(ctx, invoke.Request{Tool: "forecast", Arguments: json.RawMessage(`{"city":"Bern"}`), Principal: decision.Local()})
			close(asked)
			if call.Err == nil || call.Err.Code != code || !strings.Contains(call.Err.Msg, test.says) || f.script.runs != test.runs {
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
