package invoke_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/intent"
	"github.com/catalogd/catalogd/invoke"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// narrowTo has the fixture's branch show its tool as look, with a fixed city.
func narrowTo(t *testing.T, f *fixture, bound registry.Bound, effect registry.Effect) {
	t.Helper()
	bound.Invoker = f.script
	tool := registry.Tool{
		Name: "forecast", Description: "Forecast.", Args: city, Effect: effect, Timeout: f.path.View.Entries()[0].Declared().Timeout,
		Binding: registry.Binding{JQ: &registry.JQ{Program: "."}}, Source: registry.Source{Digest: "d"},
	}
	r, problems := registry.New(&registry.Build{Tools: []registry.Tool{tool}}, func(registry.Tool) (registry.Bound, problem.List) { return bound, nil }, nil, nil)
	if problems.HasErrors() {
		t.Fatal(problems.Err())
	}
	b := registry.Branch{Name: "research", Narrow: map[string]registry.Narrowing{"forecast": {
		Name: "look", Args: &contract.Narrowing{Schema: json.RawMessage(`{"properties":{"city":{"const":"Lillehammer"}}}`)},
	}}}
	f.path.View = registry.NewView(r, b, func(*registry.Entry) bool { return true })
}

func look(f fixture, args string) registry.Call {
	return f.path.Call(context.Background(), invoke.Request{Tool: "look", Arguments: json.RawMessage(args), Principal: decision.Local()})
}

// TestNarrowedCall: what is decided on and run has the fixed argument and, for policies, the name in the catalog; the caller
// sees the branch's name only.
func TestNarrowedCall(t *testing.T) {
	t.Parallel()
	f := open(t, &script{}, registry.Bound{}, nil)
	narrowTo(t, &f, registry.Bound{}, registry.Read)
	var asked decision.CallInput
	f.path.Decide = func(_ context.Context, in decision.CallInput) decision.Decision {
		asked = in
		return decision.Decision{Point: decision.Call, Allow: true, Code: decision.Allowed, RateLimit: decision.RateLimit{Calls: 2, Per: 3600e9}}
	}
	call := look(f, `{}`)
	if call.Err != nil || f.script.got != `{"city":"Lillehammer","days":3}` || call.Tool != "look" || call.Declared != "forecast" {
		t.Fatalf("got %v %s %s %s", call.Err, f.script.got, call.Tool, call.Declared)
	}
	if asked.Tool.Name != "forecast" || string(asked.Arguments) != f.script.got {
		t.Errorf("the policy saw %s with %s", asked.Tool.Name, asked.Arguments)
	}
	for _, args := range []string{`{"city":"Oslo"}`, `{"City":"Oslo"}`, `{"city":"Lillehammer"}`} {
		if call := look(f, args); call.Err == nil || call.Err.Code != registry.InvalidArguments || strings.Contains(call.Err.Msg, "forecast") {
			t.Errorf("%s: got %v, want it refused", args, call.Err)
		}
	}
	if call := f.call(`{}`); call.Err == nil || call.Err.Code != registry.UnknownTool {
		t.Errorf("got %v for the name in the catalog", call.Err)
	}
	// The count is that of the tool, whatever its name.
	if rate := f.path.Rates; rate == nil || f.script.runs != 1 {
		t.Fatalf("%d runs", f.script.runs)
	}
	again := open(t, f.script, registry.Bound{}, nil)
	again.path.Rates, again.path.Decide = f.path.Rates, f.path.Decide
	if call := again.call(`{"city":"Oslo"}`); call.Err != nil {
		t.Fatal(call.Err)
	}
	if call := look(f, `{}`); call.Err == nil || call.Err.Code != registry.RateLimited || strings.Contains(call.Err.Msg, "forecast") {
		t.Errorf("got %v, want the limit reached", call.Err)
	}
}

// TestNarrowedPre: a pre program gets the fixed argument, and can't change it.
func TestNarrowedPre(t *testing.T) {
	t.Parallel()
	for out, fine := range map[string]bool{
		`{"city":"Lillehammer","days":9}`: true, `{"city":"Oslo"}`: false, `{"days":1}`: false,
	} {
		var in string
		pre := func(_ context.Context, args json.RawMessage, _ int) (json.RawMessage, error) {
			in = string(args)
			return json.RawMessage(out), nil
		}
		f := open(t, &script{}, registry.Bound{}, nil)
		narrowTo(t, &f, registry.Bound{Pre: pre}, registry.Read)
		call := look(f, `{}`)
		if in != `{"city":"Lillehammer","days":3}` || (call.Err == nil) != fine || (f.script.runs == 1) != fine {
			t.Errorf("%s: got %v, %d runs, pre had %s", out, call.Err, f.script.runs, in)
		}
	}
}

// TestNarrowedEffect: the stored arguments of an intent have the fixed one, and pass when they are checked again at its turn. The
// intent of an earlier narrowing is refused.
func TestNarrowedEffect(t *testing.T) {
	t.Parallel()
	f, effector := openEffects(t, &script{}, registry.Bound{})
	narrowTo(t, &f, registry.Bound{}, registry.Write)
	call := look(f, `{"days":1}`)
	if call.Err != nil || f.script.runs != 1 || f.script.got != `{"city":"Lillehammer","days":1}` {
		t.Fatalf("got %v, %d runs with %s", call.Err, f.script.runs, f.script.got)
	}
	in, err := effector.Get(t.Context(), call.Intent, intent.Person{Name: decision.Local().Name, Admin: true})
	if err != nil || in.Tool != "forecast" || string(in.Arguments) != f.script.got {
		t.Errorf("got %+v, %v", in, err)
	}
}
