package binding_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/catalogd/catalogd/decision/trust"
	"github.com/catalogd/catalogd/internal/binding"
	"github.com/catalogd/catalogd/internal/jq"
	"github.com/catalogd/catalogd/registry"
)

// What holds for every kind of binding. Each kind plays four parts: echo answers its arguments as structured content,
// block never ends, fail answers an error, flood answers too much (nil where the cap is another package's).
type parts struct {
	echo, block, fail, flood func(t *testing.T) (registry.Tool, trust.Terms, binding.Deps)
}

func kinds(t *testing.T) map[string]parts {
	t.Helper()
	spec := args(t, "text", "n:integer", "x:number", "on:boolean", "list:array", "deep:object", "none?:null|string")
	type made = func(t *testing.T) (registry.Tool, trust.Terms, binding.Deps)

	execTool := func(part string, argv ...string) made {
		return func(t *testing.T) (registry.Tool, trust.Terms, binding.Deps) {
			tool := command(t, spec, part, argv...)
			tool.Binding.Exec.Stdin, tool.Binding.Exec.Stdout = "json", "json"
			return tool, trust.Terms{}, binding.Deps{}
		}
	}
	httpTool := func(serve http.HandlerFunc) made {
		return func(t *testing.T) (registry.Tool, trust.Terms, binding.Deps) {
			server := httptest.NewServer(serve)
			t.Cleanup(server.Close)
			return registry.Tool{Name: "tool", Effect: registry.Read, Args: spec, Binding: registry.Binding{HTTP: &registry.HTTP{
				Method: "POST", URL: server.URL + "/echo", Output: "json", Body: &registry.Body{Kind: "json"},
			}}}, loopback, binding.Deps{}
		}
	}
	jqTool := func(program string, runner jq.Runner) made {
		return func(t *testing.T) (registry.Tool, trust.Terms, binding.Deps) {
			return registry.Tool{Name: "tool", Args: spec, Binding: registry.Binding{JQ: &registry.JQ{Program: program}}}, trust.Terms{}, binding.Deps{JQ: runner}
		}
	}
	jqParts := func(runner jq.Runner) parts {
		return parts{jqTool(".", runner), jqTool("def f: f; f", runner), jqTool(`error("no")`, runner), jqTool("[range(400000)]", runner)}
	}
	type call = func(ctx context.Context, args json.RawMessage) (*registry.Result, error)
	mcpTool := func(f call) made {
		return func(t *testing.T) (registry.Tool, trust.Terms, binding.Deps) {
			return registry.Tool{Name: "tool", Args: spec, Binding: registry.Binding{MCP: &registry.MCP{Server: "s", Tool: "remote"}}}, trust.Terms{},
				binding.Deps{Upstream: func(ctx context.Context, server, tool string, args json.RawMessage, _ registry.Listener) (*registry.Result, error) {
					if server != "s" || tool != "remote" {
						t.Errorf("called %s of %s", tool, server)
					}
					return f(ctx, args)
				}}
		}
	}
	echo := func(_ context.Context, args json.RawMessage) (*registry.Result, error) {
		return &registry.Result{Content: []json.RawMessage{registry.Text(string(args))}, Structured: args}, nil
	}
	block := func(ctx context.Context, _ json.RawMessage) (*registry.Result, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	fail := func(context.Context, json.RawMessage) (*registry.Result, error) {
		return &registry.Result{Content: []json.RawMessage{registry.Text("no")}, IsError: true}, nil
	}
	return map[string]parts{
		"exec": {execTool("cat"), execTool("sleep"), execTool("fail"), execTool("flood")},
		"http": {
			httpTool(func(w http.ResponseWriter, r *http.Request) { io.Copy(w, r.Body) }),
			httpTool(func(w http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body); <-r.Context().Done() }),
			httpTool(func(w http.ResponseWriter, r *http.Request) { http.Error(w, "no", http.StatusTeapot) }),
			httpTool(func(w http.ResponseWriter, r *http.Request) {
				for r.Context().Err() == nil {
					if _, err := io.WriteString(w, strings.Repeat("x", 4096)); err != nil {
						return
					}
				}
			}),
		},
		"jq": jqParts(programRunner(t)), "jq in process": jqParts(nil),
		"mcp": {mcpTool(echo), mcpTool(block), mcpTool(fail), nil},
	}
}

const some = `{"text":"t","n":1,"x":0.5,"on":true,"list":[],"deep":{}}`

func TestEveryBindingEchoesExactly(t *testing.T) {
	t.Parallel()
	for kind, p := range kinds(t) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			tool, terms, deps := p.echo(t)
			invoker := bind(t, tool, terms, deps)
			for _, raw := range []string{
				some,
				`{"text":"t","n":9007199254740993,"x":0.1000000000000000055,"on":false,"list":[9007199254740993,[],{}],"deep":{"n":123456789012345678901234567890}}`,
				`{"text":"; touch X $(touch X) %s {text} \n\t\"\\ < & > \u2028 \u202e 🙂 é","n":-0,"x":-1,"on":true,"list":[null,"a",true],"deep":{"a b":{"":null}},"none":null}`,
				`{"text":"","n":0,"x":1e2,"on":true,"list":[],"deep":{}}`,
			} {
				in := checked(t, tool, raw)
				r, err := invoker.Invoke(t.Context(), registry.Invocation{Args: in})
				if err != nil {
					t.Fatal(err)
				}
				if r.IsError || !sameJSON(t, r.Structured, in.JSON()) || !sameJSON(t, []byte(content(t, r)), in.JSON()) {
					t.Errorf("sent %s\ngot  %s\nand  %s", in.JSON(), r.Structured, content(t, r))
				}
			}
		})
	}
}

// sameJSON compares values with the digits of their numbers.
func sameJSON(t *testing.T, a, b []byte) bool {
	t.Helper()
	var out [2]string
	for i, raw := range [][]byte{a, b} {
		dec := json.NewDecoder(strings.NewReader(string(raw)))
		dec.UseNumber()
		var v any
		if err := dec.Decode(&v); err != nil {
			t.Errorf("%s: %v", raw, err)
			return false
		}
		sorted, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		out[i] = string(sorted)
	}
	return out[0] == out[1]
}

func everyBindingEndsWithItsContext(t *testing.T) {
	t.Parallel()
	for kind, p := range kinds(t) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			tool, terms, deps := p.block(t)
			invoker := bind(t, tool, terms, deps)
			in := checked(t, tool, some)
			before, cancel := context.WithCancel(t.Context())
			cancel()
			if _, err := invoker.Invoke(before, registry.Invocation{Args: in}); !errors.Is(err, context.Canceled) {
				t.Errorf("cancelled before: %v", err)
			}
			during, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			done := make(chan error, 1)
			go func() { _, err := invoker.Invoke(during, registry.Invocation{Args: in}); done <- err }()
			select {
			case err := <-done:
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("got %v", err)
				}
			case <-time.After(2 * time.Minute): // generous: a hang is told from a slow machine
				t.Error("still running")
			}
		})
	}
}

func TestEveryBindingAnswersErrorsAsResults(t *testing.T) {
	t.Parallel()
	for kind, p := range kinds(t) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			tool, terms, deps := p.fail(t)
			r, err := bind(t, tool, terms, deps).Invoke(t.Context(), registry.Invocation{Args: checked(t, tool, some)})
			if err != nil || !r.IsError || content(t, r) == "" {
				t.Errorf("got %+v, %v", r, err)
			}
		})
	}
}

func everyBindingCapsItsOutput(t *testing.T) {
	t.Parallel()
	for kind, p := range kinds(t) {
		if p.flood == nil {
			continue
		}
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			tool, terms, deps := p.flood(t)
			_, err := bind(t, tool, terms, deps).Invoke(t.Context(), registry.Invocation{Args: checked(t, tool, some)})
			if code(err) != registry.OutputTooLarge || !strings.Contains(err.Error(), "1048576") {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestEveryBindingNeedsItsTrust(t *testing.T) {
	t.Parallel()
	for kind, p := range kinds(t) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			tool, _, deps := p.echo(t)
			c, problems := binding.Compile(tool, t.TempDir())
			if problems.HasErrors() {
				t.Fatal(problems.Err())
			}
			_, outward := c.Target()
			if outward != (kind == "exec" || kind == "http") {
				t.Errorf("outward: %v", outward)
			}
			r, err := c.Bind(trust.Trust{}, deps).Invoke(t.Context(), registry.Invocation{Args: checked(t, tool, some)})
			if outward != (code(err) == registry.BindingFailed) {
				t.Errorf("without trust: %+v, %v", r, err)
			}
		})
	}
}

func TestEveryBindingPlans(t *testing.T) {
	t.Parallel()
	for kind, p := range kinds(t) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			tool, terms, deps := p.block(t) // planning it does not block
			in := checked(t, tool, strings.Replace(some, `"n":1`, `"n":9007199254740993`, 1))
			plan, err := bind(t, tool, terms, deps).Plan(in)
			if err != nil || plan.Kind != tool.Binding.Kind() {
				t.Fatalf("%+v, %v", plan, err)
			}
			told, err := json.Marshal(plan)
			if err != nil || !strings.Contains(string(told), "9007199254740993") {
				t.Errorf("%s, %v", told, err)
			}
		})
	}
}

func TestKindIsExactlyOne(t *testing.T) {
	t.Parallel()
	for name, b := range map[string]registry.Binding{
		"none": {}, "two": {JQ: &registry.JQ{Program: "."}, MCP: &registry.MCP{Server: "s", Tool: "t"}},
	} {
		if c, problems := binding.Compile(registry.Tool{Name: "tool", Binding: b}, ""); c != nil || !strings.Contains(problems.Err().Error(), "exactly one of exec, http, mcp, jq, func") {
			t.Errorf("%s: %v", name, problems)
		}
	}
}
