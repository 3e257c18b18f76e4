package invoke_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/invoke"
	"github.com/catalogd/catalogd/registry"
)

// A panic wherever a call may go is a failure of that call: recorded like any, told to the model by the call's id and to
// the operator with its text.
func TestPanics(t *testing.T) {
	const secret = "a secret in a panic"
	boom := func() { panic(secret) }
	var none *registry.Result
	transform := func(context.Context, json.RawMessage, int) (json.RawMessage, error) { boom(); return nil, nil }
	for _, test := range []struct {
		name   string
		script *script
		bound  registry.Bound
		decide func(context.Context, decision.CallInput) decision.Decision
		runs   int
	}{
		{name: "the tool", script: &script{answer: func(context.Context) (*registry.Result, error) { boom(); return nil, nil }}, runs: 1},
		{name: "the tool, with an error", script: &script{answer: func(context.Context) (*registry.Result, error) { panic(errors.New(secret)) }}, runs: 1},
		{name: "the tool, with nil", script: &script{answer: func(context.Context) (*registry.Result, error) { panic(nil) }}, runs: 1},
		{name: "the tool, at runtime", script: &script{answer: func(context.Context) (*registry.Result, error) { return &registry.Result{Content: none.Content}, nil }}, runs: 1},
		{name: "the decision", script: &script{}, decide: func(context.Context, decision.CallInput) decision.Decision { boom(); return decision.Decision{} }},
		{name: "pre", script: &script{}, bound: registry.Bound{Pre: transform}},
		{name: "post", script: &script{}, bound: registry.Bound{Post: transform}, runs: 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := open(t, test.script, test.bound, nil)
			if test.decide != nil {
				f.path.Decide = test.decide
			}
			call := f.call(`{"city":"Oslo"}`)
			if call.Status != registry.Failed || call.Err == nil || call.Err.Code != registry.Internal || call.Result != nil || f.script.runs != test.runs {
				t.Fatalf("%+v, %d runs", call, f.script.runs)
			}
			if strings.Contains(call.Err.Msg, secret) || !strings.Contains(call.Err.Msg, call.ID) {
				t.Errorf("the caller is told %q", call.Err.Msg)
			}
			log := f.log.String()
			if strings.Count(log, "\n") != 1 || !strings.Contains(log, call.ID) || !strings.Contains(log, "panic: ") || !strings.Contains(log, `"level":"ERROR"`) {
				t.Errorf("the log has %s", log)
			}
		})
	}
	f := open(t, &script{}, registry.Bound{}, nil)
	f.path.Decide = func(context.Context, decision.CallInput) decision.Decision { boom(); return decision.Decision{} }
	plan, call := f.path.Plan(context.Background(), invoke.Request{Tool: "forecast", Arguments: json.RawMessage(`{"city":"Oslo"}`)})
	if call.Err == nil || call.Err.Code != registry.Internal || plan.Kind != "" || strings.Contains(fmt.Sprint(call.Err.Msg), secret) {
		t.Errorf("%+v %+v", plan, call)
	}
}
