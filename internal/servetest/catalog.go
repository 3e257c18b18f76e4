package servetest

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/generation"
	"github.com/catalogd/catalogd/invoke"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// Invoker is a tool in Go.
type Invoker func(context.Context, contract.Args) (*registry.Result, error)

func (f Invoker) Invoke(ctx context.Context, in registry.Invocation) (*registry.Result, error) {
	return f(ctx, in.Args)
}

func (f Invoker) Plan(contract.Args) (registry.Plan, error) { return registry.Plan{Kind: "jq"}, nil }

// Text is a tool that answers text.
func Text(s string) Invoker {
	return func(context.Context, contract.Args) (*registry.Result, error) {
		return &registry.Result{Content: []json.RawMessage{registry.Text(s)}}, nil
	}
}

// Fixture is a tool of a test catalog.
type Fixture struct {
	Tool registry.Tool
	Run  registry.Invoker
}

func Tool(name, schema string, run registry.Invoker, change ...func(*registry.Tool)) Fixture {
	if schema == "" {
		schema = `{"type":"object","properties":{},"additionalProperties":false}`
	}
	t := registry.Tool{
		Name: name, Description: "The tool " + name + ".", Effect: registry.Read, Timeout: 2 * time.Minute,
		Args:    contract.Spec{Schema: json.RawMessage(schema), Strictness: contract.Closed},
		Binding: registry.Binding{JQ: &registry.JQ{Program: "."}},
	}
	for _, c := range change {
		c(&t)
	}
	return Fixture{t, run}
}

// Catalog is a generation under construction: tools, and the branches with the names that each sees.
type Catalog struct {
	ID       string
	Tools    []Fixture
	Branches map[string][]string // nil: every tool
	Relay    []string            // what the call decision lets through
	Hosts    []string            // and the hosts of pages
	Deny     string              // the call decision denies this tool
	Limited  string              // and lets this tool be called once an hour by each
	Events   *invoke.Events      // made by Open
	Withhold string              // why the result decision lets no result out; empty: it does
}

func (c Catalog) Generation(t testing.TB, log *slog.Logger) *generation.Generation {
	t.Helper()
	build := &registry.Build{Digest: c.ID}
	runs := map[string]registry.Invoker{}
	for _, f := range c.Tools {
		build.Tools = append(build.Tools, f.Tool)
		runs[f.Tool.Name] = f.Run
	}
	r, problems := registry.New(build, func(t registry.Tool) (registry.Bound, problem.List) {
		return registry.Bound{Invoker: runs[t.Name]}, nil
	}, nil, nil)
	if r == nil {
		t.Fatal(problems.Err())
	}
	paths := map[string]*invoke.Path{}
	for name, sees := range c.Branches {
		b := registry.Branch{Name: name, Description: "Branch " + name + ".", Labels: map[string]string{"team": name}}
		if sees != nil {
			b.Select = &registry.Selector{Names: sees}
		}
		paths[name] = &invoke.Path{
			View: registry.NewView(r, b, func(*registry.Entry) bool { return true }), Generation: c.ID, Log: log, Events: c.Events,
			Rates: &invoke.Rates{},
			Decide: func(_ context.Context, in decision.CallInput) decision.Decision {
				if in.Tool.Name == c.Deny {
					return decision.Decision{Point: decision.Call, Code: "denied", Reasons: []string{"not on Sundays"}}
				}
				allowed := decision.Decision{Point: decision.Call, Allow: true, Code: "allowed", Relay: c.Relay, Hosts: c.Hosts}
				if in.Tool.Name == c.Limited {
					allowed.RateLimit = decision.RateLimit{Calls: 1, Per: time.Hour}
				}
				return allowed
			},
			Judge: func(context.Context, decision.ResultInput, func() decision.ToolResult) decision.Decision {
				if c.Withhold != "" {
					return decision.Decision{Point: decision.Result, Code: decision.Denied, Reasons: []string{c.Withhold}}
				}
				return decision.Decision{Point: decision.Result, Allow: true, Code: "allowed"}
			},
		}
	}
	return generation.Fixed(c.ID, paths)
}

const CitySchema = `{"type":"object","properties":{"city":{"type":"string","minLength":1},"units":{"enum":["celsius","fahrenheit"],"default":"celsius"}},"required":["city"],"additionalProperties":false}`

func CityFields() []contract.Field {
	return []contract.Field{
		{Name: "city", Types: []string{"string"}, Required: true},
		{Name: "units", Types: []string{"string"}, Default: json.RawMessage(`"celsius"`)},
	}
}

// Weather is a catalog with one tool of each kind of outcome, and branches that see different ones.
func Weather() Catalog {
	return Catalog{
		ID: "g1",
		Tools: []Fixture{
			Tool("weather", CitySchema, Invoker(func(_ context.Context, args contract.Args) (*registry.Result, error) {
				return &registry.Result{
					Content:    []json.RawMessage{json.RawMessage(`{"type":"text","text":"sunny","x-kept":9007199254740993}`)},
					Structured: args.JSON(), Meta: json.RawMessage(`{"example.com/a":1,"catalogd/call":"forged"}`),
				}, nil
			}), func(t *registry.Tool) {
				t.Title = "Weather"
				t.Args.Fields = CityFields()
				t.Result = &contract.Spec{Schema: json.RawMessage(`{"type":"object"}`), Strictness: contract.Open}
			}),
			Tool("broken", "", Invoker(func(context.Context, contract.Args) (*registry.Result, error) {
				return nil, fmt.Errorf("no such file /home/secret")
			})),
			Tool("complains", "", Invoker(func(context.Context, contract.Args) (*registry.Result, error) {
				return &registry.Result{Content: []json.RawMessage{registry.Text("exit status 3")}, IsError: true}, nil
			})),
			Tool("denied", "", Text("never")),
			Tool("writes", "", Text("never"), func(t *registry.Tool) { t.Effect = registry.Write }),
			Tool("panics", "", Invoker(func(context.Context, contract.Args) (*registry.Result, error) { panic("secret in a panic") })),
			Tool("old", "", Text("old"), func(t *registry.Tool) { t.Deprecated = "use weather" }),
			Tool("private", "", Text("for research only")),
		},
		Branches: map[string][]string{
			"default":  {"weather", "broken", "complains", "denied", "writes", "panics", "old"},
			"research": {"private", "weather"},
		},
		Deny: "denied",
	}
}

const Never = "count([1 | some i in numbers.range(1, 1000000); some j in numbers.range(1, 1000000); i * j == 7]) > 0"
