package functions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/catalogd/catalogd"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
	"github.com/catalogd/catalogd/test/internal/harness"
)

type lookup struct {
	City  string `json:"city" jsonschema:"The city to look up."`
	Units string `json:"units" jsonschema:"The units of the answer." enum:"celsius,fahrenheit" default:"celsius"`
	ID    int64  `json:"id,omitempty"`
	Token string `json:"token,omitempty" secret:"true"`
}

type report struct {
	City  string `json:"city"`
	Units string `json:"units"`
	ID    int64  `json:"id"`
}

func getWeather(_ context.Context, in lookup) (report, error) {
	switch in.City {
	case "Atlantis":
		return report{}, registry.Fail("not_found", fmt.Errorf("there is no city %q", in.City))
	case "Sealed":
		return report{}, registry.InternalError(errors.New("the database vanished"))
	case "Echo":
		return report{}, fmt.Errorf("the key %s is not valid", in.Token)
	case "Abyss":
		panic("the abyss of " + in.City)
	}
	return report{in.City, in.Units, in.ID}, nil
}

// orders remembers what its write function was given.
type orders struct {
	mu   sync.Mutex
	runs []registry.Run
}

func (o *orders) place(ctx context.Context, in struct {
	What string `json:"what"`
}) (map[string]string, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.runs = append(o.runs, registry.RunOf(ctx))
	switch in.What {
	case "nothing":
		return nil, registry.NotDone(errors.New("there is nothing to order"))
	case "fog":
		return nil, registry.MaybeDone(errors.New("the line went dead"))
	case "gold":
		return nil, errors.New("sold out")
	}
	return map[string]string{"ordered": in.What}, nil
}

func must(f *registry.Function, err error) *registry.Function {
	if err != nil {
		panic(err)
	}
	return f
}

const declared = `package catalog

tools: weather: {
	description: "The weather in a city."
	effect:      "read"
	binding: func: "get_weather"
}
tools: weather_at_home: {
	description: "The weather, of fewer cities."
	effect:      "read"
	args: {
		city!: "Oslo" | "Rome"
		units: *"celsius" | "fahrenheit"
	}
	binding: func: "get_weather"
}
tools: order: {
	description: "Order something."
	effect:      "write"
	binding: func: "place_order"
}
branches: default: {}
`

func serve(t *testing.T) (*harness.Daemon, *orders) {
	t.Helper()
	dir := t.TempDir()
	harness.EmptyStarter(t, dir)
	harness.WriteFile(t, filepath.Join(dir, "catalog/tools.cue"), declared)
	o := &orders{}
	return harness.Serve(t, catalogd.Config{
		Dir: dir, Intents: catalogd.Intents{Dir: filepath.Join(t.TempDir(), "intents"), Durability: "process"},
		Functions: []*registry.Function{
			must(registry.Func("get_weather", getWeather, registry.Read)),
			must(registry.Func("place_order", o.place, registry.Write)),
		},
	}), o
}

// TestCalls: a Go function is called through a branch, over MCP and by an envelope, as every tool is.
func TestCalls(t *testing.T) {
	t.Parallel()
	d, _ := serve(t)
	call, err := d.Branch("default").Call(t.Context(), "weather", json.RawMessage(`{"city":"Oslo","id":9007199254740993}`))
	want := `{"city":"Oslo","units":"celsius","id":9007199254740993}`
	if err != nil || call.Err != nil || string(call.Result.Structured) != want {
		t.Fatalf("got %+v, %v, want %s", call, err, want)
	}
	for _, era := range []string{harness.Modern, harness.Legacy} {
		c := harness.Connect(t, d.URL, "default", era)
		if got := c.Answer(t.Context(), "weather", map[string]any{"city": "Rome", "units": "fahrenheit"}); got != `{"city":"Rome","units":"fahrenheit","id":0}` {
			t.Errorf("%s: got %s", c, got)
		}
		tools, err := c.ListTools(t.Context(), mcp.ListToolsRequest{})
		if err != nil {
			t.Fatal(err)
		}
		listed, err := json.Marshal(tools)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range []string{`"The city to look up."`, `"default":"celsius"`, `"enum":["celsius","fahrenheit"]`, `"readOnlyHint":true`} {
			if !strings.Contains(string(listed), part) {
				t.Errorf("%s: lists %s, without %s", c, listed, part)
			}
		}
	}
	answer, err := d.Branch("default").Act(t.Context(), []byte(`{"function":"weather_at_home","arguments":{"city":"Rome"}}`), catalogd.ActOrder{})
	if err != nil || !strings.Contains(string(answer), `"units":"celsius"`) && !strings.Contains(string(answer), `\"units\":\"celsius\"`) {
		t.Errorf("Act: got %s, %v", answer, err)
	}
	for args, part := range map[string]string{
		`{"City":"Oslo"}`:                          `did you mean \"city\"`,
		`{"city":"Oslo","extra":1}`:                "unexpected key",
		`{"city":"Oslo","city":"Rome"}`:            "twice",
		`{"city":"Oslo","units":"kelvin"}`:         "fahrenheit",
		`{"city":"Oslo","id":9223372036854775808}`: "9223372036854775807",
	} {
		call, err := d.Branch("default").Call(t.Context(), "weather", json.RawMessage(args))
		if err != nil || call.Err == nil || call.Err.Code != registry.InvalidArguments || !strings.Contains(fmt.Sprintf("%q", call.Err.Msg), strings.ReplaceAll(part, `\"`, `\"`)) {
			t.Errorf("%s: got %v, %v, want invalid_arguments with %s", args, call.Err, err, part)
		}
	}
	if call, err := d.Branch("default").Call(t.Context(), "weather_at_home", json.RawMessage(`{"city":"Atlantis"}`)); err != nil || call.Err == nil || call.Err.Code != registry.InvalidArguments {
		t.Errorf("beyond the declaration: got %+v, %v", call, err)
	}
}

// TestErrors: an error reaches the model with its kind and message, and neither what is internal nor a secret does.
func TestErrors(t *testing.T) {
	t.Parallel()
	d, _ := serve(t)
	for _, c := range []struct{ args, says, logged string }{
		{`{"city":"Atlantis"}`, `not_found: there is no city "Atlantis"`, ""},
		{`{"city":"Sealed"}`, "the tool failed; the operator's log says why", "the database vanished"},
		{`{"city":"Echo","token":"opensesame"}`, "the key REDACTED is not valid", ""},
		{`{"city":"Abyss"}`, "internal error", "the abyss of Abyss"},
	} {
		call, err := d.Branch("default").Call(t.Context(), "weather", json.RawMessage(c.args))
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if call.Err != nil {
			got = call.Err.Msg
		} else {
			var block struct{ Text string }
			if err := json.Unmarshal(call.Result.Content[0], &block); err != nil || !call.Result.IsError {
				t.Errorf("%s: got %+v, %v", c.args, call.Result, err)
			}
			got = block.Text
		}
		if !strings.HasPrefix(got, c.says) || call.Status != registry.Failed {
			t.Errorf("%s: got %q (%s), want %q", c.args, got, call.Status, c.says)
		}
		if c.logged != "" && (strings.Contains(got, c.logged) || !strings.Contains(d.Log.String(), c.logged)) {
			t.Errorf("%s: %q belongs into the log alone", c.args, c.logged)
		}
	}
	if strings.Contains(d.Log.String(), "opensesame") {
		t.Error("the log has a secret argument")
	}
}

// TestWrite: a write function runs as an intent, with the key of it, and its errors decide how the intent ends.
func TestWrite(t *testing.T) {
	t.Parallel()
	d, o := serve(t)
	for _, c := range []struct {
		what, state string
		status      registry.Status
	}{
		{"tea", "succeeded", registry.Succeeded},
		{"gold", "failed", registry.Failed},
		{"nothing", "failed", registry.Failed},
		{"fog", "unknown", registry.Failed},
	} {
		call, err := d.Branch("default").Keyed("key-"+c.what).Call(t.Context(), "order", fmt.Appendf(nil, `{"what":%q}`, c.what))
		if err != nil || call.Status != c.status || call.Intent == "" {
			t.Errorf("%s: got %+v, %v, want %s", c.what, call, err, c.status)
			continue
		}
		in, err := d.Intents().Get(t.Context(), call.Intent)
		if err != nil || string(in.State) != c.state {
			t.Errorf("%s: its intent is %s, %v, want %s", c.what, in.State, err, c.state)
		}
		run := o.runs[len(o.runs)-1]
		if run.IdempotencyKey != "key-"+c.what || run.Attempt != 1 || run.Branch != "default" || run.Principal != "local" || run.Call != call.Intent {
			t.Errorf("%s: the function saw %+v", c.what, run)
		}
	}
	before := len(o.runs)
	if call, err := d.Branch("default").Keyed("key-tea").Call(t.Context(), "order", []byte(`{"what":"tea"}`)); err != nil || call.Status != registry.Succeeded || len(o.runs) != before {
		t.Errorf("the same key again: got %+v, %v after %d runs, want %d", call, err, len(o.runs), before)
	}
}

// TestBuildErrors: a declaration that its function does not fit is an error at its place.
func TestBuildErrors(t *testing.T) {
	t.Parallel()
	weather := must(registry.Func("get_weather", getWeather, registry.Read))
	for _, c := range []struct {
		name, tool string
		want       []string // code, and parts of the message
	}{
		{"an unknown function", `effect: "read", binding: func: "get_wether"`, []string{"unknown_function", "tools.t.binding.func", `did you mean "get_weather"?`}},
		{"another effect", `effect: "write", binding: func: "get_weather"`, []string{"contradictory_field", "tools.t.effect"}},
		{"a wider argument", `effect: "read", args: {city!: string, units: *"celsius" | "fahrenheit" | "kelvin"}, binding: func: "get_weather"`, []string{"function_mismatch", "tools.t.args.units", "kelvin"}},
		{"int", `effect: "read", args: {city!: string, units: *"celsius" | "fahrenheit", id!: int}, binding: func: "get_weather"`, []string{"function_mismatch", "tools.t.args.id"}},
		{"an unknown argument", `effect: "read", args: {city!: string, units: *"celsius" | "fahrenheit", country?: string}, binding: func: "get_weather"`, []string{"function_mismatch", "tools.t.args.country"}},
		{"a missing argument", `effect: "read", args: {units: *"celsius" | "fahrenheit"}, binding: func: "get_weather"`, []string{"function_mismatch", "tools.t.args", "city"}},
		{"open", `effect: "read", strictness: "open", binding: func: "get_weather"`, []string{"contradictory_field", "tools.t.strictness"}},
		{"two bindings", `effect: "read", binding: {func: "get_weather", jq: program: "."}`, []string{"contradictory_field", "func and jq"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			harness.EmptyStarter(t, dir)
			harness.WriteFile(t, filepath.Join(dir, "catalog/tools.cue"), "package catalog\n\ntools: t: {description: \"T.\", "+c.tool+"}\nbranches: default: {}\n")
			problems, err := catalogd.Check(t.Context(), catalogd.Config{Dir: dir, Functions: []*registry.Function{weather}})
			if err != nil || !problems.HasErrors() {
				t.Fatalf("got %v, %v, want an error", problems, err)
			}
			found := slices.IndexFunc(problems, func(p problem.Problem) bool { return string(p.Code) == c.want[0] })
			if found < 0 {
				t.Fatalf("got %v, want %s", problems, c.want[0])
			}
			for _, part := range c.want {
				if p := problems[found]; !strings.Contains(p.String(), part) || p.Position.Line != 3 {
					t.Errorf("got %v, want line 3 and %q", p, part)
				}
			}
		})
	}
}

// TestSetupAndTeardown: setup runs once before the first build and teardown once at the end, whatever is reloaded, and a
// setup that fails undoes those before it.
func TestSetupAndTeardown(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	harness.EmptyStarter(t, dir)
	harness.WriteFile(t, filepath.Join(dir, "catalog/tools.cue"), "package catalog\n\ntools: t: {description: \"T.\", effect: \"read\", binding: func: \"a\"}\nbranches: default: {}\n")
	var log []string
	hooked := func(name string, fails error) *registry.Function {
		return must(registry.Func(name, func(context.Context, struct{}) (string, error) { log = append(log, "call "+name); return "done", nil }, registry.Read,
			registry.Setup(func(context.Context) error { log = append(log, "setup "+name); return fails }),
			registry.Teardown(func(context.Context) error { log = append(log, "teardown "+name); return nil })))
	}
	c, err := catalogd.New(t.Context(), catalogd.Config{Dir: dir, Functions: []*registry.Function{hooked("a", nil), hooked("b", nil)}})
	if err != nil {
		t.Fatal(err)
	}
	if call, err := c.Branch("default").Call(t.Context(), "t", nil); err != nil || call.Err != nil {
		t.Errorf("got %+v, %v", call, err)
	}
	harness.WriteFile(t, filepath.Join(dir, "catalog/more.cue"), "package catalog\n\nbranches: other: {}\n")
	if o := c.Reload(t.Context()); o.Result != "adopted" {
		t.Errorf("the reload: got %+v", o)
	}
	c.Close()
	if got, want := strings.Join(log, ", "), "setup a, setup b, call a, teardown b, teardown a"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	log = nil
	_, err = catalogd.New(t.Context(), catalogd.Config{Dir: dir, Functions: []*registry.Function{hooked("a", nil), hooked("b", errors.New("no connection"))}})
	if err == nil || !strings.Contains(err.Error(), `function "b": no connection`) || strings.Join(log, ", ") != "setup a, setup b, teardown a" {
		t.Errorf("got %v after %v", err, log)
	}
	for _, bad := range [][]*registry.Function{{nil}, {hooked("a", nil), hooked("a", nil)}} {
		if _, err := catalogd.New(t.Context(), catalogd.Config{Dir: dir, Functions: bad}); err == nil || !strings.Contains(err.Error(), "Config.Functions") {
			t.Errorf("%v: got %v", bad, err)
		}
	}
}
