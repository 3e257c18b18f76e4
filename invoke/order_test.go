package invoke_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/invoke"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// TestOrder holds the order of what a call meets by what each step sees: the keys; coercion; defaults; the schema, then
// CUE; pre, and the schema and CUE again; then the decision, the tool and the record, all with the one value that came out.
func TestOrder(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, args, pre string
		want            []string
	}{
		{"all the way", `{"n":"5.0"}`, `{"n":6.0,"sum":"of before"}`, []string{
			`cue {"n":5}`, `pre {"n":5,"sum":"cue","unit":"m"}`, `cue {"n":6}`,
			`decide {"n":6,"sum":"cue","unit":"m"}`, `run {"n":6,"sum":"cue","unit":"m"}`, `log {"n":6,"sum":"cue","unit":"m"}`,
		}},
		{"the scan is first", `{"n":"5","n":"6"}`, `{}`, []string{`refused /n`}},
		{"an unexpected key ends it", `{"n":"5","x":1}`, `{}`, []string{`refused /x`}},
		{"what coercion can't mend ends it", `{"n":"five"}`, `{}`, []string{`refused /n`}},
		{"CUE ends it before pre", `{"n":13}`, `{}`, []string{`cue {"n":13}`, `refused /n`}},
		{"the schema after pre", `{"n":1}`, `{"n":1,"x":2}`, []string{`cue {"n":1}`, `pre {"n":1,"sum":"cue","unit":"m"}`, `refused /x`}},
		{"coercion after pre", `{"n":1}`, `{"n":"2"}`, []string{
			`cue {"n":1}`, `pre {"n":1,"sum":"cue","unit":"m"}`, `cue {"n":2}`,
			`decide {"n":2,"sum":"cue","unit":"m"}`, `run {"n":2,"sum":"cue","unit":"m"}`, `log {"n":2,"sum":"cue","unit":"m"}`,
		}},
		{"CUE after pre", `{"n":1}`, `{"n":13}`, []string{`cue {"n":1}`, `pre {"n":1,"sum":"cue","unit":"m"}`, `cue {"n":13}`, `refused /n`}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var trace []string
			see := func(what string, v any) { trace = append(trace, fmt.Sprintf("%s %s", what, v)) }
			rest := func(_ context.Context, args json.RawMessage) (json.RawMessage, []contract.Violation, error) {
				see("cue", args)
				if strings.Contains(string(args), "13") {
					return nil, []contract.Violation{{Pointer: "/n", Got: "the number 13", Expected: "another"}}, nil
				}
				return json.RawMessage(strings.Replace(string(args), `}`, `,"sum":"cue","unit":"m"}`, 1)), nil, nil
			}
			tool := registry.Tool{
				Name: "measure", Description: "Measure.", Effect: registry.Read, Timeout: time.Minute,
				Binding: registry.Binding{JQ: &registry.JQ{Program: "."}}, Source: registry.Source{Digest: "d"},
				Args: contract.Spec{
					Schema:     json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"},"unit":{"type":"string","default":"m"}},"required":["n"],"additionalProperties":false}`),
					Strictness: contract.Closed, Coerce: true, Remainder: &contract.Remainder{Package: "p"},
					Fields: []contract.Field{{Name: "n", Required: true}, {Name: "unit", Default: json.RawMessage(`"m"`)}, {Name: "sum", Computed: true}},
				},
			}
			s := &script{answer: func(context.Context) (*registry.Result, error) {
				return &registry.Result{Content: []json.RawMessage{registry.Text("ran")}}, nil
			}}
			bind := func(registry.Tool) (registry.Bound, problem.List) {
				return registry.Bound{Invoker: traced{s, see}, Pre: func(_ context.Context, in json.RawMessage, _ int) (json.RawMessage, error) {
					see("pre", in)
					return json.RawMessage(tc.pre), nil
				}}, nil
			}
			r, problems := registry.New(&registry.Build{Tools: []registry.Tool{tool}}, bind, func(contract.Remainder, bool) contract.Rest { return rest }, nil)
			if problems.HasErrors() {
				t.Fatal(problems.Err())
			}
			log := &strings.Builder{}
			path := &invoke.Path{
				View: registry.NewView(r, registry.Branch{Name: "b"}, func(*registry.Entry) bool { return true }),
				Log:  slog.New(slog.NewJSONHandler(log, nil)),
				Decide: func(_ context.Context, in decision.CallInput) decision.Decision {
					see("decide", in.Arguments)
					return decision.Decision{Allow: true, Code: decision.Allowed}
				},
				Judge: release,
			}
			call := path.Call(context.Background(), invoke.Request{Tool: "measure", Arguments: json.RawMessage(tc.args), Principal: decision.Local()})
			if call.Err != nil {
				for _, v := range call.Err.Violations {
					see("refused", v.Pointer)
				}
			} else if strings.Contains(log.String(), call.Arguments.Digest()) {
				see("log", call.Arguments.JSON())
			}
			if diff := cmp.Diff(tc.want, trace); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// traced tells of each run what it was given.
type traced struct {
	*script
	see func(string, any)
}

func (s traced) Invoke(ctx context.Context, in registry.Invocation) (*registry.Result, error) {
	s.see("run", in.Args.JSON())
	return s.script.Invoke(ctx, in)
}

// TestResultCheck: a result that does not fit is never passed on as one that does.
func TestResultCheck(t *testing.T) {
	t.Parallel()
	result := contract.Spec{Schema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`), Strictness: contract.Open,
		Fields: []contract.Field{{Name: "n", Required: true}}}
	for _, tc := range []struct {
		check     registry.ResultCheck
		gives     registry.Result
		text      string // the blocks' text, in one
		advertise bool
		warned    bool
		code      registry.ErrorCode
		says      string // in the error
	}{
		{check: registry.FailResult, gives: structured(`{"n":1}`), text: `{"n":1}`, advertise: true},
		{check: registry.FailResult, gives: structured(`{"n":"x"}`), code: registry.ResultInvalid, advertise: true},
		{check: registry.FailResult, gives: words("no object"), code: registry.ResultInvalid, advertise: true, says: "its text is not a JSON object"},
		{check: registry.FailResult, gives: words("5"), code: registry.ResultInvalid, advertise: true, says: "its text is not a JSON object"},
		{check: registry.FailResult, gives: words(`{"n":1}`), text: `{"n":1}`, advertise: true},
		{check: "", gives: structured(`{"n":"x"}`), code: registry.ResultInvalid, advertise: true},
		{check: registry.WarnResult, gives: structured(`{"n":1}`), text: `{"n":1}`},
		{check: registry.WarnResult, gives: structured(`{"n":"x"}`), warned: true,
			text: "Note: the answer of tool \"forecast\" does not match its declared result:\n- /n: got the string \"x\", expected an integer\nWhat follows is that answer; don't rely on its form.|{\"n\":\"x\"}"},
		{check: registry.IgnoreResult, gives: structured(`{"n":"x"}`), text: `{"n":"x"}`},
	} {
		f := open(t, &script{answer: func(context.Context) (*registry.Result, error) { r := tc.gives; return &r, nil }}, registry.Bound{}, func(tool *registry.Tool) {
			tool.Result, tool.ResultCheck = &result, tc.check
		})
		entry, unknown := f.path.View.Lookup("forecast")
		if unknown != nil || (entry.Declared().Output() != nil) != tc.advertise {
			t.Errorf("%q: advertised: %s", tc.check, entry.Declared().Output())
		}
		call := f.call(`{"city":"Oslo"}`)
		if warned := strings.Contains(f.log.String(), `"msg":"result does not match its declaration"`); warned != tc.warned {
			t.Errorf("%q: warned: %v", tc.check, warned)
		}
		if tc.code != "" {
			if call.Err == nil || call.Err.Code != tc.code || call.Result != nil || !strings.Contains(call.Err.Msg, tc.says) {
				t.Errorf("%q: got %+v, want an error %s with %q", tc.check, call, tc.code, tc.says)
			}
			continue
		}
		if call.Err != nil {
			t.Errorf("%q: %v", tc.check, call.Err)
			continue
		}
		var texts []string
		for _, raw := range call.Result.Content {
			var block struct{ Text string }
			if err := json.Unmarshal(raw, &block); err != nil {
				t.Fatal(err)
			}
			texts = append(texts, block.Text)
		}
		if got := strings.Join(texts, "|"); got != tc.text || call.Result.Structured == nil {
			t.Errorf("%q: %s, structured %s", tc.check, got, call.Result.Structured)
		}
	}
}

func structured(object string) registry.Result {
	return registry.Result{Structured: json.RawMessage(object)}
}

func words(text string) registry.Result {
	return registry.Result{Content: []json.RawMessage{registry.Text(text)}}
}

// TestSecretsAreNotTold: the value of a secret argument stands in no error, log, reason or plan, whoever puts it there.
func TestSecretsAreNotTold(t *testing.T) {
	t.Parallel()
	const secret = "hunter2-of-this-test"
	for name, tc := range map[string]struct {
		args   string
		answer func(context.Context) (*registry.Result, error)
		pre    registry.Transform
		post   registry.Transform
		decide func(context.Context, decision.CallInput) decision.Decision
	}{
		"a violation":    {args: `{"city":"Oslo","key":"` + secret + secret + `"}`},
		"a misspelt key": {args: `{"city":"Oslo","kye":"` + secret + `"}`},
		"the tool's own error": {answer: func(context.Context) (*registry.Result, error) {
			return nil, &registry.Error{Code: registry.BindingFailed, Msg: "refused " + secret, Err: fmt.Errorf("GET /?key=%s", secret)}
		}},
		"an error": {answer: func(context.Context) (*registry.Result, error) { return nil, fmt.Errorf("GET /?key=%s", secret) }},
		"pre": {pre: func(context.Context, json.RawMessage, int) (json.RawMessage, error) {
			return nil, fmt.Errorf("not %s", secret)
		}},
		"post": {post: func(context.Context, json.RawMessage, int) (json.RawMessage, error) {
			return nil, fmt.Errorf("not %s", secret)
		}},
		"a reason": {decide: func(context.Context, decision.CallInput) decision.Decision {
			return decision.Decision{Code: decision.Denied, Reasons: []string{"never " + secret}}
		}},
		"a result that is an error": {answer: func(context.Context) (*registry.Result, error) {
			return &registry.Result{
				IsError: true, Content: []json.RawMessage{registry.Text("error: \"" + secret + "\"")},
				Structured: json.RawMessage(`{"at":["` + secret + `"],"` + secret + `":1.50}`), Meta: json.RawMessage(`{"k":"` + secret + `"}`),
			}, nil
		}},
		"a plan": {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := open(t, &script{answer: tc.answer}, registry.Bound{Pre: tc.pre, Post: tc.post}, func(tool *registry.Tool) {
				tool.Args = spec(`{"type":"object","properties":{"city":{"type":"string"},"key":{"type":"string","maxLength":25,"writeOnly":true}},"required":["city"],"additionalProperties":false}`,
					contract.Field{Name: "city", Required: true}, contract.Field{Name: "key", Secret: true})
			})
			if tc.decide != nil {
				f.path.Decide = tc.decide
			}
			args := tc.args
			if args == "" {
				args = `{"city":"Oslo","key":"` + secret + `"}`
			}
			call := f.call(args)
			if (call.Err == nil) != (name == "a plan" || name == "a result that is an error") {
				t.Fatalf("%v", call.Err)
			}
			told := f.log.String()
			if call.Err != nil {
				told += call.Err.Error() + fmt.Sprint(call.Err.Violations, call.Reasons)
			}
			if call.Result != nil {
				if call.Result.IsError {
					told += fmt.Sprintf("%s %s %s", call.Result.Content, call.Result.Structured, call.Result.Meta)
				}
			}
			plan, planned := f.path.Plan(context.Background(), invoke.Request{Tool: "forecast", Arguments: json.RawMessage(args), Principal: decision.Local()})
			told += fmt.Sprintf("%s %v", plan.Args, planned.Err)
			if strings.Contains(told, "hunter2") {
				t.Errorf("told: %s", told)
			}
			if name == "a plan" && string(plan.Args) != `{"city":"Oslo","key":"REDACTED"}` {
				t.Errorf("planned %s", plan.Args)
			}
			if name == "a plan" && f.script.got != args {
				t.Errorf("ran with %s", f.script.got)
			}
		})
	}
}

// TestErrorsAreShort: what a model learns of a thousand wrong values fits its context.
func TestErrorsAreShort(t *testing.T) {
	t.Parallel()
	var args strings.Builder
	args.WriteString(`{"city":"Oslo"`)
	for i := range 1000 {
		fmt.Fprintf(&args, `,"%d%s":"%s"`, i, strings.Repeat("k", 200), strings.Repeat("v", 500))
	}
	args.WriteString("}")
	call := open(t, &script{}, registry.Bound{}, nil).call(args.String())
	if call.Err == nil || len(call.Err.Msg) > 5<<10 || !strings.Contains(call.Err.Msg, "\n- and ") || len(call.Err.Violations) > 100 {
		t.Fatalf("%d bytes: %v", len(call.Err.Msg), call.Err)
	}
}
