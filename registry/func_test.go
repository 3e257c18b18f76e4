package registry_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/internal/intent/attempttest"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

type place struct {
	City  string `json:"city" jsonschema:"The city."`
	Limit int    `json:"limit" default:"10" minimum:"1" maximum:"100"`
	Key   string `json:"key,omitempty" secret:"true"`
}

type weather struct {
	Degrees int64 `json:"degrees"`
}

func GetWeather(context.Context, place) (weather, error) { return weather{7}, nil }

func HTTPGet2(context.Context, struct{}) (string, error) { return "", nil }

type service struct{}

func (service) LookUp(context.Context, struct{}) (string, error) { return "", nil }

func function[In, Out any](t *testing.T, fn func(context.Context, In) (Out, error), options ...registry.FuncOption) *registry.Function {
	t.Helper()
	f, err := registry.Func("get_weather", fn, options...)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestFuncNames: a function has its Go name and the words of it, unless others are given.
func TestFuncNames(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		want, says string
		make       func(options ...registry.FuncOption) (*registry.Function, error)
	}{
		{"get_weather", "Get weather.", func(o ...registry.FuncOption) (*registry.Function, error) {
			return registry.Func("", GetWeather, o...)
		}},
		{"http_get2", "Http get2.", func(o ...registry.FuncOption) (*registry.Function, error) { return registry.Func("", HTTPGet2, o...) }},
		{"look_up", "Look up.", func(o ...registry.FuncOption) (*registry.Function, error) {
			return registry.Func("", service{}.LookUp, o...)
		}},
		{"given", "Given.", func(o ...registry.FuncOption) (*registry.Function, error) {
			return registry.Func("given", GetWeather, o...)
		}},
		{"given", "What it does.", func(o ...registry.FuncOption) (*registry.Function, error) {
			return registry.Func("given", GetWeather, append(o, registry.Description("What it does."))...)
		}},
	} {
		f, err := c.make(registry.Read)
		if err != nil || f.Name() != c.want || f.Tool().Description != c.says {
			t.Errorf("got %+v, %v, want %s: %s", f.Descriptor(), err, c.want, c.says)
		}
	}
}

// TestFuncRefused: what can't be a function is an error at construction.
func TestFuncRefused(t *testing.T) {
	t.Parallel()
	literal := func(context.Context, struct{}) (string, error) { return "", nil }
	type channel struct{ C chan int }
	for _, c := range []struct {
		name, want string
		make       func() (*registry.Function, error)
	}{
		{"no effect", "its effect is not stated", func() (*registry.Function, error) { return registry.Func("f", literal) }},
		{"two effects", "stated twice", func() (*registry.Function, error) {
			return registry.Func("f", literal, registry.Read, registry.Write)
		}},
		{"another effect", `the effect "maybe" is neither`, func() (*registry.Function, error) {
			return registry.Func("f", literal, registry.Effect("maybe"))
		}},
		{"no name", "a function literal has no name", func() (*registry.Function, error) {
			return registry.Func("", func(context.Context, struct{}) (string, error) { return "", nil }, registry.Read)
		}},
		{"bad name", "the name is not valid", func() (*registry.Function, error) { return registry.Func("a b", literal, registry.Read) }},
		{"nil", "there is no Go function", func() (*registry.Function, error) {
			return registry.Func[struct{}, string]("f", nil, registry.Read)
		}},
		{"nil option", "an option is nil", func() (*registry.Function, error) { return registry.Func("f", literal, registry.Read, nil) }},
		{"input", "its input: field C: chan int", func() (*registry.Function, error) {
			return registry.Func("f", func(context.Context, channel) (string, error) { return "", nil }, registry.Read)
		}},
		{"output", "its output: field C: chan int", func() (*registry.Function, error) {
			return registry.Func("f", func(context.Context, struct{}) (channel, error) { return channel{}, nil }, registry.Read)
		}},
	} {
		if f, err := c.make(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, %v, want %q", c.name, f, err, c.want)
		}
	}
}

// TestFuncErrors: what each error of a function becomes, and what it says of the effect of a write.
func TestFuncErrors(t *testing.T) {
	t.Parallel()
	plain := errors.New("no such city")
	hidden := errors.New("password of the database")
	refused := &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	for _, c := range []struct {
		name    string
		err     error
		panics  bool
		exits   bool   // ends its goroutine
		text    string // of the model
		code    registry.ErrorCode
		kind    string
		outcome registry.Outcome
	}{
		{name: "plain", err: plain, text: "no such city", kind: "error", outcome: registry.OutcomeFailed},
		{name: "with a kind", err: registry.Fail("not_found", plain), text: "not_found: no such city", kind: "not_found", outcome: registry.OutcomeFailed},
		{name: "wrapped", err: fmt.Errorf("looking: %w", registry.Fail("not_found", plain)), text: "not_found: looking: no such city", kind: "not_found", outcome: registry.OutcomeFailed},
		{name: "not done", err: registry.NotDone(plain), text: "no such city. Nothing was run", code: registry.BindingFailed, outcome: registry.OutcomeUnsent},
		{name: "maybe done", err: registry.MaybeDone(plain), text: "no such city", kind: "error", outcome: registry.OutcomeUnclear},
		{name: "the network", err: fmt.Errorf("asking: %w", refused), text: "asking: dial: connection refused", kind: "error", outcome: registry.OutcomeUnclear},
		{name: "the network, before anything", err: registry.NotDone(refused), text: "dial: connection refused. Nothing was run", code: registry.BindingFailed, outcome: registry.OutcomeUnsent},
		{name: "half an answer", err: io.ErrUnexpectedEOF, text: "unexpected EOF", kind: "error", outcome: registry.OutcomeUnclear},
		{name: "a deadline of its own", err: context.DeadlineExceeded, text: "context deadline exceeded", kind: "error", outcome: registry.OutcomeUnclear},
		{name: "internal", err: registry.InternalError(hidden), text: "the tool failed; the operator's log says why", code: registry.BindingFailed, outcome: registry.OutcomeFailed},
		{name: "internal, not done", err: registry.NotDone(registry.InternalError(hidden)), text: "the tool failed; the operator's log says why", code: registry.BindingFailed, outcome: registry.OutcomeUnsent},
		{name: "of another tool", err: &registry.Error{Code: registry.Denied, Msg: "not today", Err: hidden}, text: "denied: not today", kind: "denied", outcome: registry.OutcomeFailed},
		{name: "panic", panics: true, text: "internal error; the operator's log says more", code: registry.Internal, outcome: registry.OutcomeUnclear},
		{name: "exit", exits: true, text: "internal error; the operator's log says more", code: registry.Internal, outcome: registry.OutcomeUnclear},
	} {
		f := function(t, func(ctx context.Context, in struct{}) (string, error) {
			switch {
			case c.panics:
				panic(hidden)
			case c.exits:
				runtime.Goexit()
			}
			return "", c.err
		}, registry.Write)
		args := accepted(t, f, `{}`)
		result, err := f.Bound().Invoker.Invoke(t.Context(), registry.Invocation{
			Args: args, Attempt: attempttest.Of(registry.AttemptSubject{Intent: "i", Number: 1, Tool: "get_weather", Digest: args.Digest(), Key: "k"}),
		})
		if got := registry.OutcomeOf(result, err); got != c.outcome {
			t.Errorf("%s: got the outcome %s, want %s", c.name, got, c.outcome)
		}
		var failed *registry.Error
		text, kind, code := "", "", registry.ErrorCode("")
		if errors.As(err, &failed) {
			text, code = failed.Msg, failed.Code
		} else if result != nil {
			var block struct{ Text string }
			var meta map[string]string
			if err := errors.Join(json.Unmarshal(result.Content[0], &block), json.Unmarshal(result.Meta, &meta)); err != nil || !result.IsError {
				t.Errorf("%s: got %+v, %v", c.name, result, err)
			}
			text, kind = block.Text, meta[registry.MetaErrorKind]
		}
		if text != c.text || kind != c.kind || code != c.code {
			t.Errorf("%s: got %q, kind %q, code %q, want %q, %q, %q", c.name, text, kind, code, c.text, c.kind, c.code)
		}
		if strings.Contains(text, "password") {
			t.Errorf("%s: the model reads what is internal: %s", c.name, text)
		}
	}
}

func accepted(t *testing.T, f *registry.Function, args string) contract.Args {
	t.Helper()
	c, err := contract.New(f.Tool().Args, nil)
	if err != nil {
		t.Fatal(err)
	}
	checked, found, err := c.Check(t.Context(), json.RawMessage(args))
	if err != nil || found != nil {
		t.Fatal(found, err)
	}
	return checked
}

// TestInvokerOfWrite: the accessor of a write function's invoker runs nothing without an attempt.
func TestInvokerOfWrite(t *testing.T) {
	t.Parallel()
	ran := false
	f := function(t, func(context.Context, struct{}) (string, error) { ran = true; return "", nil }, registry.Write)
	_, err := f.Bound().Invoker.Invoke(t.Context(), registry.Invocation{Args: accepted(t, f, `{}`)})
	var refused *registry.Error
	if !errors.As(err, &refused) || refused.Code != registry.EffectorRequired || !refused.Unsent || ran {
		t.Errorf("got %v, ran %v, want effector_required", err, ran)
	}
	e, err := registry.NewEntry(f.Tool(), f.Bound(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Invoke(t.Context(), accepted(t, f, `{}`), registry.Listener{}); !errors.As(err, &refused) || refused.Code != registry.EffectorRequired || ran {
		t.Errorf("Entry.Invoke: got %v, ran %v, want effector_required", err, ran)
	}
}

// TestFuncEndsWithItsContext: a function that ignores its context does not hold up the call, and TearDown waits for it.
func TestFuncEndsWithItsContext(t *testing.T) {
	t.Parallel()
	release, torn := make(chan struct{}), make(chan struct{})
	f := function(t, func(context.Context, struct{}) (string, error) { <-release; return "", nil }, registry.Read,
		registry.Teardown(func(context.Context) error { close(torn); return nil }))
	if err := f.SetUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := f.Bound().Invoker.Invoke(ctx, registry.Invocation{Args: accepted(t, f, `{}`)})
		done <- err
	}()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		var unsent *registry.Error
		if !errors.As(err, &unsent) || unsent.Code != registry.Cancelled {
			t.Errorf("got %v, want the context's end", err)
		}
	}
	ended := make(chan error)
	go func() { ended <- f.TearDown(t.Context()) }()
	close(release)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	<-torn
}

// TestDescriptor: the JSON of a function is its description, without the values of secrets, and nothing to run comes
// back from it.
func TestDescriptor(t *testing.T) {
	t.Parallel()
	type guarded struct {
		Key string `json:"key" secret:"true" default:"hunterhunter"`
	}
	f := function(t, func(context.Context, guarded) (weather, error) { return weather{}, nil }, registry.Read)
	data, err := json.Marshal(f)
	if err != nil || strings.Contains(string(data), "hunterhunter") || !strings.Contains(string(data), `"binding":"func"`) {
		t.Errorf("got %s, %v", data, err)
	}
	e, err := registry.NewEntry(f.Tool(), f.Bound(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if same, err := json.Marshal(e); err != nil || string(same) != string(data) {
		t.Errorf("the entry: got %s, %v, want %s", same, err, data)
	}
	for name, into := range map[string]any{"a function": new(registry.Function), "an entry": new(registry.Entry)} {
		if err := json.Unmarshal(data, into); err == nil || !strings.Contains(err.Error(), "registry.Func") {
			t.Errorf("decoding %s: got %v, want an error that names registry.Func", name, err)
		}
	}
	var d registry.Descriptor
	if err := json.Unmarshal(data, &d); err != nil {
		t.Fatal(err)
	}
	standIn, err := registry.StandIn(d)
	if err != nil {
		t.Fatal(err)
	}
	_, err = standIn.Bound().Invoker.Invoke(t.Context(), registry.Invocation{Args: accepted(t, f, `{}`)})
	if err == nil || !strings.Contains(err.Error(), "which is not this one") {
		t.Errorf("a call of a stand-in: got %v", err)
	}
	exec := registry.Tool{Name: "x", Binding: registry.Binding{Exec: &registry.Exec{Command: "curl", Env: map[string]registry.Value{"TOKEN": {Literal: "hunterhunter"}}}}, Args: f.Tool().Args}
	if data, err := json.Marshal(exec.Descriptor()); err != nil || strings.Contains(string(data), "hunterhunter") || strings.Contains(string(data), "curl") {
		t.Errorf("got %s, %v, want neither the command nor its variables", data, err)
	}
}

// TestComplete: what is left out is the function's, and what is declared must be proved to be taken.
func TestComplete(t *testing.T) {
	t.Parallel()
	f := function(t, GetWeather, registry.Read)
	spec := func(strictness contract.Strictness, schema string, fields ...contract.Field) contract.Spec {
		return contract.Spec{Schema: json.RawMessage(schema), Strictness: strictness, Fields: fields}
	}
	city := contract.Field{Name: "city", Types: []string{"string"}, Required: true}
	limit := contract.Field{Name: "limit", Types: []string{"integer"}, Default: json.RawMessage("5")}
	for _, c := range []struct {
		name string
		args contract.Spec
		want string // a part of the path and message of the problem; empty for none
	}{
		{"left out", contract.Spec{Strictness: contract.Closed}, ""},
		{"left out, exact", contract.Spec{Strictness: contract.Exact}, "argument that is not required"},
		{"left out, open", contract.Spec{Strictness: contract.Open}, "strictness open would take"},
		{"narrower", spec(contract.Closed, `{"type":"object","properties":{"city":{"type":"string","maxLength":3},"limit":{"type":"integer","minimum":1,"maximum":5,"default":5}},"required":["city"],"additionalProperties":false}`, city, limit), ""},
		{"without the optional one", spec(contract.Closed, `{"type":"object","properties":{"city":{"type":"string"}},"required":["city"],"additionalProperties":false}`, city), "limit"},
		{"wider", spec(contract.Closed, `{"type":"object","properties":{"city":{"type":"string"},"limit":{"type":"integer","minimum":1,"maximum":500,"default":5}},"required":["city"],"additionalProperties":false}`, city, limit), "args.limit"},
		{"another type", spec(contract.Closed, `{"type":"object","properties":{"city":{"type":["string","null"]},"limit":{"type":"integer","minimum":1,"maximum":5,"default":5}},"required":["city"],"additionalProperties":false}`,
			contract.Field{Name: "city", Types: []string{"null", "string"}, Required: true}, limit), "args.city"},
		{"unknown", spec(contract.Closed, `{"type":"object","properties":{"city":{"type":"string"},"limit":{"type":"integer","minimum":1,"maximum":5,"default":5},"country":{"type":"string"}},"required":["city"],"additionalProperties":false}`,
			city, limit, contract.Field{Name: "country", Types: []string{"string"}}), "args.country"},
		{"open", spec(contract.Open, `{"type":"object","properties":{"city":{"type":"string"},"limit":{"type":"integer","minimum":1,"maximum":5,"default":5}},"required":["city"]}`, city, limit), "args"},
		{"computed", contract.Spec{
			Schema:     json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"},"limit":{"type":"integer","minimum":1,"maximum":5,"default":5}},"required":["city"],"additionalProperties":false}`),
			Strictness: contract.Closed, Fields: []contract.Field{city, limit, {Name: "key", Types: []string{"string"}, Computed: true}}, Remainder: &contract.Remainder{Package: "p", Path: "x", Digest: "d"},
		}, "args.key"},
	} {
		tool := registry.Tool{Name: "weather", Effect: registry.Read, Args: c.args, Binding: registry.Binding{Func: "get_weather"}, Source: registry.Source{Digest: "sha256:declared"}}
		got, problems := f.Complete(tool)
		text := fmt.Sprint(problems)
		if c.want == "" && len(problems) > 0 || c.want != "" && !strings.Contains(text, c.want) {
			t.Errorf("%s: got %v, want %q", c.name, text, c.want)
		}
		if problems.HasErrors() {
			continue
		}
		if got.Digest == tool.Digest || got.Result == nil || got.Args.Schema == nil {
			t.Errorf("%s: got %+v, want the function's result and another digest", c.name, got)
		}
	}
	if _, problems := f.Complete(registry.Tool{Name: "w", Effect: registry.Write}); !problems.Has(problem.ContradictoryField) {
		t.Errorf("another effect: got %v", problems)
	}
}

// TestCheckResult: what a function can return must be proved to fit the declared result.
func TestCheckResult(t *testing.T) {
	t.Parallel()
	type stay struct {
		City   string   `json:"city" enum:"Oslo,Rome"`
		Nights int16    `json:"nights"`
		Notes  []string `json:"notes,omitempty"`
	}
	returns := map[string]*registry.Function{
		"stay":   function(t, func(context.Context, struct{}) (*stay, error) { return nil, nil }, registry.Read),
		"text":   function(t, func(context.Context, struct{}) (string, error) { return "", nil }, registry.Read),
		"list":   function(t, func(context.Context, struct{}) ([]stay, error) { return nil, nil }, registry.Read),
		"map":    function(t, func(context.Context, struct{}) (map[string]int8, error) { return nil, nil }, registry.Read),
		"any":    function(t, func(context.Context, struct{}) (any, error) { return nil, nil }, registry.Read),
		"raw":    function(t, func(context.Context, struct{}) (json.RawMessage, error) { return nil, nil }, registry.Read),
		"result": function(t, func(context.Context, struct{}) (*registry.Result, error) { return nil, nil }, registry.Read),
	}
	const exact = `{"type":"object","properties":{"city":{"enum":["Oslo","Rome"]},"nights":{"type":"integer","minimum":-32768,"maximum":32767},` +
		`"notes":{"type":"array","items":{"type":"string"}}},"required":["city","nights"],"additionalProperties":false}`
	for _, c := range []struct {
		name, of, result string
		check            registry.ResultCheck
		want             []string // parts of the path and message of the problem; none if there is none
	}{
		{"the same", "stay", exact, "", nil},
		{"wider", "stay", `{"type":"object","properties":{"city":{"type":"string"},"nights":{"type":"integer"}},"required":["city"]}`, "", nil},
		{"fewer values", "stay", strings.Replace(exact, `"Oslo",`, "", 1), "", []string{"tools.w.result.city", `"Oslo"`}},
		{"fewer numbers", "stay", strings.Replace(exact, "32767", "100", 1), "", []string{"tools.w.result.nights", "maximum", "100", "32767"}},
		{"another type", "stay", strings.Replace(exact, `"type":"integer","minimum":-32768,"maximum":32767`, `"type":"string"`, 1), "", []string{"tools.w.result.nights", "type", "string", "integer"}},
		{"a field that may be left out", "stay", strings.Replace(exact, `"nights"],`, `"nights","notes"],`, 1), "", []string{"tools.w.result", "notes", "required"}},
		{"a field that is not declared", "stay", strings.Replace(exact, `,"notes":{"type":"array","items":{"type":"string"}}`, "", 1), "", []string{"tools.w.result", "notes"}},
		{"one that is only passed on", "stay", strings.Replace(exact, "32767", "100", 1), registry.WarnResult, nil},
		{"a text", "text", exact, "", []string{"tools.w.result", "string"}},
		{"a list", "list", exact, "", []string{"tools.w.result", "array"}},
		{"a map that fits", "map", `{"type":"object","additionalProperties":{"type":"integer"}}`, "", nil},
		{"a map that doesn't", "map", exact, "", []string{"tools.w.result"}},
		{"what nothing is known of", "any", exact, "", nil},
		{"JSON", "raw", exact, "", nil},
		{"a result", "result", exact, "", nil},
	} {
		spec := contract.Spec{Schema: json.RawMessage(c.result), Strictness: contract.Closed,
			Fields: []contract.Field{{Name: "city"}, {Name: "nights"}, {Name: "notes"}}}
		at := problem.Position{File: "catalog/w.cue", Line: 7, Col: 3}
		problems := returns[c.of].CheckResult(registry.Tool{Name: "w", Result: &spec, ResultCheck: c.check,
			Source: registry.Source{Fields: map[string]problem.Position{"result": at}}})
		text := fmt.Sprint(problems)
		if len(problems) == 0 != (c.want == nil) || c.want != nil && (!problems.Has(problem.FunctionMismatch) || problems[0].Position != at) {
			t.Errorf("%s: got %v", c.name, text)
		}
		for _, part := range c.want {
			if !strings.Contains(text, part) {
				t.Errorf("%s: got %v, want %q", c.name, text, part)
			}
		}
	}
}

// TestRegistryIsCopied: a registry shares nothing with the build and the tools that it is made of, and takes nothing
// that could not be called.
func TestRegistryIsCopied(t *testing.T) {
	t.Parallel()
	f := function(t, GetWeather, registry.Read)
	build := &registry.Build{Tools: []registry.Tool{f.Tool()}, Branches: []registry.Branch{{Name: "b", Labels: map[string]string{"a": "1"}}}}
	build.Tools[0].Tags = []string{"one"}
	bind := func(registry.Tool) (registry.Bound, problem.List) { return f.Bound(), nil }
	r, problems := registry.New(build, bind, nil, nil)
	if problems.HasErrors() {
		t.Fatal(problems)
	}
	build.Tools[0].Tags[0], build.Branches[0].Labels["a"] = "changed", "changed"
	e, _ := r.Lookup("get_weather")
	if e.Tool().Tags[0] != "one" || r.Branches()[0].Labels["a"] != "1" {
		t.Errorf("got %v, %v: the registry shares its build", e.Tool().Tags, r.Branches())
	}
	for name, c := range map[string]struct {
		change func(*registry.Tool)
		bound  registry.Bound
		want   string
	}{
		"a nil invoker":    {func(*registry.Tool) {}, registry.Bound{}, "nil Invoker"},
		"an invalid name":  {func(t *registry.Tool) { t.Name = "a b" }, f.Bound(), "not valid"},
		"an empty name":    {func(t *registry.Tool) { t.Name = "" }, f.Bound(), "not valid"},
		"no effect":        {func(t *registry.Tool) { t.Effect = "" }, f.Bound(), "neither read nor write"},
		"no schema at all": {func(t *registry.Tool) { t.Args = contract.Spec{} }, f.Bound(), "schema"},
	} {
		tool := f.Tool()
		tool.Name = "other"
		c.change(&tool)
		if _, err := registry.NewEntry(tool, c.bound, nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("NewEntry with %s: got %v, want %q", name, err, c.want)
		}
		if _, err := r.With(tool, c.bound, nil, false); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("With %s: got %v, want %q", name, err, c.want)
		}
		bind := func(registry.Tool) (registry.Bound, problem.List) { return c.bound, nil }
		if _, problems := registry.New(&registry.Build{Tools: []registry.Tool{tool}}, bind, nil, nil); !problems.HasErrors() && tool.Effect != "" {
			t.Errorf("New with %s: got no problem", name)
		}
	}
}
