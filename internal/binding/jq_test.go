package binding_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/decision/trust"
	"github.com/catalogd/catalogd/internal/binding"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

func program(spec contract.Spec, source string) registry.Tool {
	return registry.Tool{Name: "tool", Args: spec, Binding: registry.Binding{JQ: &registry.JQ{Program: source}}}
}

func TestJQ(t *testing.T) {
	t.Parallel()
	for name, deps := range map[string]binding.Deps{"children": {JQ: programRunner(t)}, "in process": {}} {
		t.Run(name, func(t *testing.T) { testJQ(t, deps) })
	}
}

func testJQ(t *testing.T, deps binding.Deps) {
	for _, tt := range []struct {
		program, want string
		isError       bool
		structured    string
	}{
		{".s", "a\nb", false, ""},
		{"{n: (.n + 1)}", `{"n":9007199254740994}`, false, `{"n":9007199254740994}`},
		{"[.n, .s]", `[9007199254740993,"a\nb"]`, false, ""},
		{".n", "9007199254740993", false, ""},
		{"null", "null", false, ""},
		{"1, 2", "1", false, ""},
		{"empty", "the tool's program gave no output for these arguments", true, ""},
		{`error("too far")`, "the tool's program failed on these arguments: error: too far", true, ""},
		{".s.x", "the tool's program failed on these arguments: expected an object but got: string (\"a\\nb\")", true, ""},
	} {
		tool := program(args(t, "s", "n:integer"), tt.program)
		r, err := bind(t, tool, trust.Terms{}, deps).Invoke(t.Context(), registry.Invocation{Args: checked(t, tool, `{"s":"a\nb","n":9007199254740993}`)})
		if err != nil {
			t.Errorf("%s: %v", tt.program, err)
			continue
		}
		if got := content(t, r); got != tt.want || r.IsError != tt.isError || string(r.Structured) != tt.structured {
			t.Errorf("%s: got %q, error %v, structured %s", tt.program, got, r.IsError, r.Structured)
		}
	}
	none := program(args(t), ". | length")
	if r, err := bind(t, none, trust.Terms{}, deps).Invoke(t.Context(), registry.Invocation{Args: contract.Args{}}); err != nil || content(t, r) != "0" {
		t.Errorf("no arguments: %+v, %v", r, err)
	}
	long := program(args(t), `"x" * 2000000`)
	if _, err := bind(t, long, trust.Terms{}, deps).Invoke(t.Context(), registry.Invocation{Args: contract.Args{}}); code(err) != registry.OutputTooLarge {
		t.Errorf("a long string: %v", err)
	}
}

// TestJQUnavailable: a program that no process could run is no failure of the tool, and nothing was run.
func TestJQUnavailable(t *testing.T) {
	t.Parallel()
	runner := programRunner(t)
	runner.Close()
	_, err := bind(t, program(args(t), "."), trust.Terms{}, binding.Deps{JQ: runner}).Invoke(t.Context(), registry.Invocation{Args: contract.Args{}})
	var known *registry.Error
	if !errors.As(err, &known) || known.Code != registry.Unavailable || !known.Unsent || known.Err == nil {
		t.Errorf("got %#v, want an unsent %s", err, registry.Unavailable)
	}
}

func TestBadPrograms(t *testing.T) {
	t.Parallel()
	base := func() registry.Tool { return program(args(t), ".") }
	is := func(source string) func(*registry.Tool) {
		return func(t *registry.Tool) { t.Binding.JQ.Program = source }
	}
	testBad(t, base, []bad{
		{"syntax", is(".a\n| ]"), problem.BadJQ, "binding.jq.program", "line 2, column 3"},
		{"function", is("nosuch(1)"), problem.BadJQ, "binding.jq.program", "function not defined: nosuch/1"},
		{"empty", is(""), problem.BadJQ, "binding.jq.program", "empty"},
	})
	testBad(t, func() registry.Tool {
		return registry.Tool{Name: "tool", Binding: registry.Binding{MCP: &registry.MCP{Server: "s", Tool: "t"}}}
	}, []bad{
		{"no server", func(t *registry.Tool) { t.Binding.MCP.Server = "" }, problem.BadBinding, "binding.mcp.server", "name one of servers"},
		{"no tool", func(t *registry.Tool) { t.Binding.MCP.Tool = "" }, problem.BadBinding, "binding.mcp.tool", "empty"},
	})
}

func TestUpstreamMissing(t *testing.T) {
	t.Parallel()
	mcp := registry.Tool{Name: "tool", Args: args(t), Binding: registry.Binding{MCP: &registry.MCP{Server: "s", Tool: "t"}}}
	if _, err := bind(t, mcp, trust.Terms{}, binding.Deps{}).Invoke(t.Context(), registry.Invocation{Args: contract.Args{}}); code(err) != registry.BindingFailed {
		t.Errorf("no upstream: %v", err)
	}
}

// BenchmarkJQ is one call of a jq tool, in a child and in this process.
func BenchmarkJQ(b *testing.B) {
	for name, deps := range map[string]binding.Deps{"child": {JQ: programRunner(b)}, "in-process": {}} {
		b.Run(name, func(b *testing.B) {
			tool := program(args(b, "a:integer", "b:integer"), "{sum: (.a + .b)}")
			invoker := bind(b, tool, trust.Terms{}, deps)
			in := checked(b, tool, `{"a":1,"b":9007199254740993}`)
			b.ReportAllocs()
			for b.Loop() {
				r, err := invoker.Invoke(b.Context(), registry.Invocation{Args: in})
				if err != nil || !strings.Contains(string(r.Structured), "9007199254740994") {
					b.Fatal(r, err)
				}
			}
		})
	}
}

func BenchmarkExec(b *testing.B) {
	tool := command(b, args(b, "v"), "print", "{v}")
	invoker := bind(b, tool, trust.Terms{}, binding.Deps{})
	in := checked(b, tool, `{"v":"x"}`)
	for b.Loop() {
		if _, err := invoker.Invoke(b.Context(), registry.Invocation{Args: in}); err != nil {
			b.Fatal(err)
		}
	}
}
