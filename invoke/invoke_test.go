package invoke_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/invoke"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// script is an Invoker that counts its runs and answers as told.
type script struct {
	runs   int
	got    string
	answer func(context.Context) (*registry.Result, error)
}

func (s *script) Invoke(ctx context.Context, in registry.Invocation) (*registry.Result, error) {
	s.runs++
	s.got = string(in.Args.JSON())
	if s.answer != nil {
		return s.answer(ctx)
	}
	return &registry.Result{Content: []json.RawMessage{registry.Text("ran")}}, nil
}

func (s *script) Plan(args contract.Args) (registry.Plan, error) {
	return registry.Plan{Kind: "jq", Args: args.JSON()}, nil
}

func allow(context.Context, decision.CallInput) decision.Decision {
	return decision.Decision{Point: decision.Call, Allow: true, Code: decision.Allowed}
}

func spec(schema string, fields ...contract.Field) contract.Spec {
	return contract.Spec{Schema: json.RawMessage(schema), Strictness: contract.Closed, Fields: fields}
}

var city = spec(`{"type":"object","properties":{"city":{"type":"string","minLength":1},"days":{"type":"integer","default":3}},"required":["city"],"additionalProperties":false}`,
	contract.Field{Name: "city", Types: []string{"string"}, Required: true},
	contract.Field{Name: "days", Types: []string{"integer"}, Default: json.RawMessage("3")})

// fixture is one tool on one branch.
type fixture struct {
	script *script
	path   *invoke.Path
	log    *bytes.Buffer
}

func open(t testing.TB, s *script, bound registry.Bound, change func(*registry.Tool)) fixture {
	t.Helper()
	tool := registry.Tool{
		Name: "forecast", Description: "Forecast.", Args: city, Effect: registry.Read, Timeout: time.Minute,
		Binding: registry.Binding{JQ: &registry.JQ{Program: "."}}, Source: registry.Source{Digest: "d"},
	}
	if change != nil {
		change(&tool)
	}
	bound.Invoker = s
	r, problems := registry.New(&registry.Build{Tools: []registry.Tool{tool}}, func(registry.Tool) (registry.Bound, problem.List) { return bound, nil }, nil, nil)
	if problems.HasErrors() {
		t.Fatal(problems.Err())
	}
	view := registry.NewView(r, registry.Branch{Name: "research", Labels: map[string]string{"team": "r"}}, func(*registry.Entry) bool { return true })
	log := &bytes.Buffer{}
	return fixture{s, &invoke.Path{View: view, Generation: "g1", Decide: allow, Judge: release, Rates: &invoke.Rates{}, Log: slog.New(slog.NewJSONHandler(log, nil))}, log}
}

func (f fixture) call(args string) registry.Call {
	return f.path.Call(context.Background(), invoke.Request{Tool: "forecast", Arguments: json.RawMessage(args), Principal: decision.Local()})
}

func TestCallIsACompleteEvent(t *testing.T) {
	f := open(t, &script{}, registry.Bound{}, nil)
	call := f.call(`{"city":"Oslo"}`)
	if call.Status != registry.Succeeded || call.Err != nil || call.Result == nil {
		t.Fatalf("%+v", call)
	}
	if call.ID == "" || call.Branch != "research" || call.Tool != "forecast" || call.Principal != "local" ||
		call.Generation != "g1" || call.Decision != "allowed" || call.Start.IsZero() || call.Duration <= 0 {
		t.Errorf("incomplete: %+v", call)
	}
	const checked = `{"city":"Oslo","days":3}`
	if f.script.got != checked || string(call.Arguments.JSON()) != checked {
		t.Errorf("ran %s, recorded %s, want %s", f.script.got, call.Arguments.JSON(), checked)
	}
}

// unavailable is a Transform whose program can't be run.
func unavailable(context.Context, json.RawMessage, int) (json.RawMessage, error) {
	return nil, &registry.Error{Code: registry.Unavailable, Msg: "m", Err: errors.New("no process")}
}

// TestRefusalsRunNothing holds that each refusal has its code, tells the model what to do, and runs nothing.
func TestRefusalsRunNothing(t *testing.T) {
	for _, test := range []struct {
		name, tool, args string
		change           func(*registry.Tool)
		decide           func(context.Context, decision.CallInput) decision.Decision
		pre              registry.Transform
		code             registry.ErrorCode
		says             []string
	}{
		{name: "unknown", tool: "forecats", args: `{}`, code: registry.UnknownTool, says: []string{`"forecats"`, `"forecast"`}},
		{name: "every violation at once", tool: "forecast", args: `{"city":"","day":1}`, code: registry.InvalidArguments, says: []string{"/city", "/day", "days"}},
		{name: "denied with every reason", tool: "forecast", args: `{"city":"x"}`, code: registry.Denied,
			decide: func(context.Context, decision.CallInput) decision.Decision {
				return decision.Decision{Code: decision.Denied, Reasons: []string{"not on Mondays", "not in Oslo"}}
			}, says: []string{"not on Mondays", "not in Oslo"}},
		{name: "a zero decision denies", tool: "forecast", args: `{"city":"x"}`, code: registry.Denied,
			decide: func(context.Context, decision.CallInput) decision.Decision { return decision.Decision{} }},
		{name: "write", tool: "forecast", args: `{"city":"x"}`, code: registry.EffectorRequired,
			change: func(t *registry.Tool) { t.Effect = registry.Write }, says: []string{`"forecast"`, "Nothing was run"}},
		{name: "an effect that nobody knows", tool: "forecast", args: `{"city":"x"}`, code: registry.EffectorRequired,
			change: func(t *registry.Tool) { t.Effect = "both" }},
		{name: "pre refuses", tool: "forecast", args: `{"city":"x"}`, code: registry.ProcessorFailed,
			pre: func(context.Context, json.RawMessage, int) (json.RawMessage, error) {
				return nil, errors.New("no city of that name")
			},
			says: []string{"no city of that name"}},
		{name: "what pre makes is checked again", tool: "forecast", args: `{"city":"x"}`, code: registry.InvalidArguments,
			pre: func(context.Context, json.RawMessage, int) (json.RawMessage, error) {
				return json.RawMessage(`{"city":""}`), nil
			},
			says: []string{"after the tool's pre program", "/city"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := open(t, &script{}, registry.Bound{Pre: test.pre}, test.change)
			if test.decide != nil {
				f.path.Decide = test.decide
			}
			call := f.path.Call(context.Background(), invoke.Request{Tool: test.tool, Arguments: json.RawMessage(test.args), Principal: decision.Local()})
			if f.script.runs != 0 {
				t.Error("the tool ran")
			}
			if call.Status != registry.Rejected || call.Err == nil || call.Err.Code != test.code || call.Result != nil {
				t.Fatalf("status %s, error %v", call.Status, call.Err)
			}
			for _, want := range test.says {
				if !strings.Contains(call.Err.Msg, want) {
					t.Errorf("%q does not say %q", call.Err.Msg, want)
				}
			}
		})
	}
}

// TestPreUnavailable: a pre program that can't be run says nothing of the arguments.
func TestPreUnavailable(t *testing.T) {
	f := open(t, &script{}, registry.Bound{Pre: unavailable}, nil)
	call := f.call(`{"city":"x"}`)
	if call.Err == nil || call.Err.Code != registry.Unavailable || !strings.Contains(call.Err.Msg, "nothing was run") || f.script.runs != 0 {
		t.Errorf("got %v, %d runs", call.Err, f.script.runs)
	}
}

// TestDecidedIsExecuted holds that the policy sees exactly the bytes that run, after defaults and pre.
func TestDecidedIsExecuted(t *testing.T) {
	pre := func(_ context.Context, in json.RawMessage, _ int) (json.RawMessage, error) {
		return bytes.Replace(in, []byte("oslo"), []byte("OSLO"), 1), nil
	}
	f := open(t, &script{}, registry.Bound{Pre: pre}, nil)
	var decided decision.CallInput
	f.path.Decide = func(ctx context.Context, in decision.CallInput) decision.Decision {
		decided = in
		return allow(ctx, in)
	}
	call := f.call(`{"city":"oslo","days":9007199254740993}`)
	const want = `{"city":"OSLO","days":9007199254740993}`
	if call.Err != nil || string(decided.Arguments) != want || f.script.got != want {
		t.Errorf("decided %s, ran %s, want %s (%v)", decided.Arguments, f.script.got, want, call.Err)
	}
	if decided.Branch.Name != "research" || decided.Branch.Labels["team"] != "r" || decided.Tool.Name != "forecast" ||
		decided.Tool.Effect != "read" || decided.Tool.Binding != "jq" || decided.Principal.Name != "local" || decided.Time.IsZero() {
		t.Errorf("input %+v", decided)
	}
}

func TestFailures(t *testing.T) {
	for _, test := range []struct {
		name   string
		answer func(context.Context) (*registry.Result, error)
		code   registry.ErrorCode
	}{
		{"a known error keeps its code", func(context.Context) (*registry.Result, error) {
			return nil, fmt.Errorf("outer: %w", &registry.Error{Code: registry.Unavailable, Msg: "down"})
		}, registry.Unavailable},
		{"an unknown error says nothing of itself", func(context.Context) (*registry.Result, error) {
			return nil, errors.New("secret-in-error")
		}, registry.BindingFailed},
		{"the decision's time is up", func(ctx context.Context) (*registry.Result, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}, registry.Timeout},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := open(t, &script{answer: test.answer}, registry.Bound{}, nil)
			f.path.Decide = func(context.Context, decision.CallInput) decision.Decision {
				timeout := time.Minute
				if test.code == registry.Timeout {
					timeout = time.Millisecond
				}
				return decision.Decision{Allow: true, Code: decision.Allowed, Timeout: timeout}
			}
			call := f.call(`{"city":"x"}`)
			if call.Status != registry.Failed || call.Err == nil || call.Err.Code != test.code {
				t.Fatalf("status %s, error %v", call.Status, call.Err)
			}
			if strings.Contains(call.Err.Msg, "secret-in-error") {
				t.Errorf("told the client: %s", call.Err.Msg)
			}
		})
	}
	t.Run("cancelled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		f := open(t, &script{answer: func(ctx context.Context) (*registry.Result, error) {
			cancel()
			<-ctx.Done()
			return nil, ctx.Err()
		}}, registry.Bound{}, nil)
		call := f.path.Call(ctx, invoke.Request{Tool: "forecast", Arguments: json.RawMessage(`{"city":"x"}`)})
		if call.Err == nil || call.Err.Code != registry.Cancelled {
			t.Errorf("%v", call.Err)
		}
	})
}

func TestResults(t *testing.T) {
	degrees := spec(`{"type":"object","properties":{"degrees":{"type":"number"}},"required":["degrees"],"additionalProperties":false}`,
		contract.Field{Name: "degrees", Types: []string{"number"}, Required: true})
	double := func(_ context.Context, in json.RawMessage, _ int) (json.RawMessage, error) {
		return bytes.Replace(in, []byte("}"), []byte(`,"more":true}`), 1), nil
	}
	structured := func(raw string) func(context.Context) (*registry.Result, error) {
		return func(context.Context) (*registry.Result, error) {
			return &registry.Result{Content: []json.RawMessage{registry.Text(raw)}, Structured: json.RawMessage(raw)}, nil
		}
	}
	for _, test := range []struct {
		name     string
		declared *contract.Spec
		answer   func(context.Context) (*registry.Result, error)
		post     registry.Transform
		want     string
		code     registry.ErrorCode
	}{
		{"as declared, its digits kept", &degrees, structured(`{"degrees": 1.50}`), nil, `{"degrees": 1.50}`, ""},
		{"text that is the object", &degrees, func(context.Context) (*registry.Result, error) {
			return &registry.Result{Content: []json.RawMessage{registry.Text(`{"degrees":2}`)}}, nil
		}, nil, `{"degrees":2}`, ""},
		{"not as declared", &degrees, structured(`{"degrees":"warm"}`), nil, "", registry.ResultInvalid},
		{"no structure at all", &degrees, func(context.Context) (*registry.Result, error) {
			return &registry.Result{Content: []json.RawMessage{registry.Text("warm")}}, nil
		}, nil, "", registry.ResultInvalid},
		{"what post makes is checked", &degrees, structured(`{"degrees":1}`), double, "", registry.ResultInvalid},
		{"post without a declaration", nil, structured(`{"degrees":1}`), double, `{"degrees":1,"more":true}`, ""},
		{"post makes too much", nil, structured(`{"degrees":1}`), func(_ context.Context, _ json.RawMessage, limit int) (json.RawMessage, error) {
			return nil, &registry.Error{Code: registry.OutputTooLarge, Msg: fmt.Sprint(limit)}
		}, "", registry.OutputTooLarge},
		{"post fails", nil, structured(`{"degrees":1}`), func(context.Context, json.RawMessage, int) (json.RawMessage, error) { return nil, errors.New("x") }, "", registry.ProcessorFailed},
		{"post can't be run", nil, structured(`{"degrees":1}`), unavailable, "", registry.Unavailable},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := open(t, &script{answer: test.answer}, registry.Bound{Post: test.post}, func(t *registry.Tool) { t.Result = test.declared })
			call := f.call(`{"city":"x"}`)
			if test.code != "" {
				if call.Err == nil || call.Err.Code != test.code {
					t.Fatalf("error %v, want %s", call.Err, test.code)
				}
				return
			}
			if call.Err != nil || string(call.Result.Structured) != test.want {
				t.Errorf("got %s (%v), want %s", call.Result.Structured, call.Err, test.want)
			}
		})
	}
	t.Run("an error of the tool passes as it is", func(t *testing.T) {
		f := open(t, &script{answer: func(context.Context) (*registry.Result, error) {
			return &registry.Result{Content: []json.RawMessage{registry.Text("no such city")}, IsError: true}, nil
		}}, registry.Bound{Post: double}, func(t *registry.Tool) { t.Result = &degrees })
		if call := f.call(`{"city":"x"}`); call.Err != nil || call.Status != registry.Failed || !call.Result.IsError {
			t.Errorf("%+v %v", call, call.Err)
		}
	})
}

// TestProgramInterrupted: a pre or post program that the end of the call interrupts, or that gets no turn before it, has
// refused nothing: the model must not change its arguments, and the result is not wrong.
func TestProgramInterrupted(t *testing.T) {
	t.Parallel()
	waits := func(ctx context.Context, _ json.RawMessage, _ int) (json.RawMessage, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	for _, test := range []struct {
		name  string
		bound registry.Bound
		late  bool
		code  registry.ErrorCode
		says  string
		runs  int
	}{
		{"pre, cancelled", registry.Bound{Pre: waits}, false, registry.Cancelled, "Nothing was run", 0},
		{"pre, late", registry.Bound{Pre: waits}, true, registry.Timeout, "Nothing was run", 0},
		{"post, cancelled", registry.Bound{Post: waits}, false, registry.Cancelled, "The tool has run", 1},
		{"post, late", registry.Bound{Post: waits}, true, registry.Timeout, "The tool has run", 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			f := open(t, &script{}, test.bound, func(tool *registry.Tool) {
				if test.late {
					tool.Timeout = 10 * time.Millisecond
				}
			})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if !test.late {
				cancel()
			}
			call := f.path.Call(ctx, invoke.Request{Tool: "forecast", Arguments: json.RawMessage(`{"city":"x"}`), Principal: decision.Local()})
			if call.Err == nil || call.Err.Code != test.code || !strings.Contains(call.Err.Msg, test.says) || f.script.runs != test.runs {
				t.Errorf("got %+v after %d runs, want %s with %q after %d", call.Err, f.script.runs, test.code, test.says, test.runs)
			}
		})
	}
}

// TestPostErrorIsWithheld: what a post program says of a result quotes it, and no result decision has allowed that. What
// is no word of the program's own is told.
func TestPostErrorIsWithheld(t *testing.T) {
	t.Parallel()
	const quoted = "hunter2 of the result"
	for _, test := range []struct {
		err  error
		says string
	}{
		{errors.New(`expected an object but got: string ("` + quoted + `")`), "the operator's log says why"},
		{&registry.Error{Code: registry.BindingFailed, Msg: "it was stopped"}, "its result: it was stopped"},
	} {
		f := open(t, &script{}, registry.Bound{Post: func(context.Context, json.RawMessage, int) (json.RawMessage, error) { return nil, test.err }}, nil)
		call := f.call(`{"city":"x"}`)
		if call.Err == nil || call.Err.Code != registry.ProcessorFailed || strings.Contains(call.Err.Msg, quoted) || !strings.Contains(call.Err.Msg, test.says) {
			t.Errorf("%v: got %+v, want %q", test.err, call.Err, test.says)
		}
	}
}

// TestRecordTellsNoArguments holds that the record has digests and reasons and no value of an argument.
func TestRecordTellsNoArguments(t *testing.T) {
	f := open(t, &script{}, registry.Bound{}, nil)
	call := f.call(`{"city":"Atlantis"}`)
	f.path.Decide = func(context.Context, decision.CallInput) decision.Decision {
		return decision.Decision{Code: decision.Denied, Reasons: []string{"closed"}}
	}
	f.call(`{"city":"Atlantis"}`)
	log := f.log.String()
	if strings.Contains(log, "Atlantis") {
		t.Errorf("an argument stands in the log: %s", log)
	}
	if n := strings.Count(log, "\n"); n != 2 {
		t.Errorf("%d lines for 2 calls", n)
	}
	for _, want := range []string{call.ID, call.Arguments.Digest(), `"status":"succeeded"`, `"status":"rejected"`, `"reasons":["closed"]`, `"generation":"g1"`} {
		if !strings.Contains(log, want) {
			t.Errorf("the log has no %s: %s", want, log)
		}
	}
}

func TestPlanRunsNothing(t *testing.T) {
	f := open(t, &script{}, registry.Bound{}, func(t *registry.Tool) { t.Effect = registry.Write })
	plan, call := f.path.Plan(context.Background(), invoke.Request{Tool: "forecast", Arguments: json.RawMessage(`{"city":"x"}`)})
	if call.Err != nil || string(plan.Args) != `{"city":"x","days":3}` || f.script.runs != 0 {
		t.Errorf("plan %+v, error %v, runs %d", plan, call.Err, f.script.runs)
	}
	_, call = f.path.Plan(context.Background(), invoke.Request{Tool: "forecast", Arguments: json.RawMessage(`{}`)})
	if call.Err == nil || call.Err.Code != registry.InvalidArguments {
		t.Errorf("%v", call.Err)
	}
}
