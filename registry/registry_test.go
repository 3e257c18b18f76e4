package registry_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// echo is an Invoker that answers with the arguments' JSON as text.
type echo struct{}

func (echo) Invoke(_ context.Context, in registry.Invocation) (*registry.Result, error) {
	return &registry.Result{Content: []json.RawMessage{registry.Text(string(in.Args.JSON()))}}, nil
}

func (echo) Plan(args contract.Args) (registry.Plan, error) {
	return registry.Plan{Kind: "jq", Args: args.JSON()}, nil
}

func bindEcho(registry.Tool) (registry.Bound, problem.List) {
	return registry.Bound{Invoker: echo{}}, nil
}

func spec() contract.Spec {
	return contract.Spec{
		Schema:     json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"],"additionalProperties":false}`),
		Strictness: contract.Closed,
		Fields:     []contract.Field{{Name: "city", Types: []string{"string"}, Required: true}},
	}
}

func tool(name string, change ...func(*registry.Tool)) registry.Tool {
	t := registry.Tool{
		Name: name, Description: "Says " + name + ".", Args: spec(), Effect: registry.Read, Timeout: time.Second,
		Binding: registry.Binding{JQ: &registry.JQ{Program: "."}}, Tags: []string{"a"},
		Source: registry.Source{
			Pos:    problem.Position{File: "catalog/" + name + ".cue", Line: 3, Col: 1},
			Fields: map[string]problem.Position{"binding.jq": {File: "catalog/" + name + ".cue", Line: 7, Col: 2}},
			Digest: "digest of " + name,
		},
	}
	for _, f := range change {
		f(&t)
	}
	return t
}

func open(t testing.TB, tools ...registry.Tool) *registry.Registry {
	t.Helper()
	r, problems := registry.New(&registry.Build{Tools: tools}, bindEcho, nil, nil)
	if len(problems) > 0 {
		t.Fatal(problems.Err())
	}
	return r
}

func names(tools []registry.Tool) []string {
	out := []string{}
	for _, t := range tools {
		out = append(out, t.Name)
	}
	return out
}

func TestSelect(t *testing.T) {
	r := open(t, tool("b"), tool("a"), tool("c"))
	for _, test := range []struct {
		name    string
		choose  registry.Selection
		want    []string
		isNil   bool
		unknown string
	}{
		{name: "all, by name", choose: registry.All(), want: []string{"a", "b", "c"}},
		{name: "none", choose: registry.None(), want: []string{}, isNil: true},
		{name: "the zero value is none", want: []string{}, isNil: true},
		{name: "an empty choice is not none", choose: registry.Names(), want: []string{}},
		{name: "one", choose: registry.Names("b"), want: []string{"b"}},
		{name: "in the order given, once each", choose: registry.Names("c", "a", "c"), want: []string{"c", "a"}},
		{name: "every unknown name is named", choose: registry.Names("x", "a", "y"), unknown: "x y"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := r.Select(test.choose)
			if test.unknown != "" {
				for name := range strings.FieldsSeq(test.unknown) {
					if !errors.Is(err, registry.ErrUnknown) || !strings.Contains(err.Error(), `"`+name+`"`) {
						t.Errorf("error %v does not name %s", err, name)
					}
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if (got == nil) != test.isNil {
				t.Errorf("nil: %v, want %v", got == nil, test.isNil)
			}
			if diff := cmp.Diff(test.want, names(got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDuplicatesNameBothPlaces(t *testing.T) {
	second := tool("a", func(t *registry.Tool) { t.Pos.File = "catalog/other.cue" })
	r, problems := registry.New(&registry.Build{Tools: []registry.Tool{tool("a"), second}}, bindEcho, nil, nil)
	if r != nil || len(problems) != 1 {
		t.Fatalf("registry %v, problems %v", r, problems)
	}
	want := `catalog/other.cue:3:1: duplicate_name: tools.a: tool "a" is declared twice; keep one declaration (see catalog/a.cue:3:1)`
	if got := problems[0].String(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestWithAddsAndUpdatesWholeTools(t *testing.T) {
	r := open(t, tool("a"), tool("c"))
	if _, err := r.With(tool("a"), registry.Bound{Invoker: echo{}}, nil, false); !errors.Is(err, registry.ErrDuplicate) {
		t.Fatalf("a taken name: %v", err)
	}
	added, err := r.With(tool("b"), registry.Bound{Invoker: echo{}}, nil, false)
	if err != nil {
		t.Fatal(err)
	}
	updated, err := added.With(tool("a", func(t *registry.Tool) { t.Description, t.Tags = "New.", nil }), registry.Bound{Invoker: echo{}}, nil, true)
	if err != nil {
		t.Fatal(err)
	}
	all, err := updated.Select(registry.All())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a", "b", "c"}, names(all)); diff != "" {
		t.Error(diff)
	}
	if all[0].Description != "New." || all[0].Tags != nil {
		t.Errorf("an update merged: %+v", all[0])
	}
	if old, _ := r.Lookup("a"); old.Tool().Description != "Says a." || r.Len() != 2 {
		t.Error("the registry that was added to has changed")
	}
	broken := tool("d", func(t *registry.Tool) { t.Args.Schema = json.RawMessage(`{"type":"string"}`) })
	if _, err := r.With(broken, registry.Bound{}, nil, false); err == nil {
		t.Error("a tool whose contract does not compile was added")
	}
}

// TestCopiesOut changes everything that a registry and a view hand out, at every depth, and looks again.
func TestCopiesOut(t *testing.T) {
	declared := tool("a", func(t *registry.Tool) {
		t.Binding = registry.Binding{Exec: &registry.Exec{Command: "date", Argv: []string{"-u"}, Env: map[string]registry.Value{"A": {Literal: "b"}}}}
		t.Examples = []registry.Example{{Args: json.RawMessage(`{"city":"x"}`)}}
	})
	build := &registry.Build{
		Tools:    []registry.Tool{declared},
		Servers:  []registry.Server{{Name: "s", Stdio: &registry.Stdio{Command: "x", Args: []string{"y"}}}},
		Branches: []registry.Branch{{Name: "b", Labels: map[string]string{"k": "v"}, Select: &registry.Selector{Tags: []string{"a"}}}},
	}
	r, problems := registry.New(build, bindEcho, nil, nil)
	if problems.HasErrors() {
		t.Fatal(problems.Err())
	}
	dump := func() string {
		all, err := r.Select(registry.All())
		if err != nil {
			t.Fatal(err)
		}
		b, err := json.Marshal([]any{all, r.Servers(), r.Branches(), registry.NewView(r, r.Branches()[0], everything).Branch()})
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	before := dump()
	for range 2 {
		all, err := r.Select(registry.All())
		if err != nil {
			t.Fatal(err)
		}
		a := all[0]
		a.Args.Schema[0], a.Args.Fields[0].Types[0], a.Tags[0] = '!', "changed", "changed"
		a.Binding.Exec.Argv[0], a.Binding.Exec.Env["A"] = "changed", registry.Value{Literal: "changed"}
		a.Examples[0].Args[0], a.Fields["binding.jq"] = '!', problem.Position{}
		r.Servers()[0].Stdio.Args[0] = "changed"
		branch := r.Branches()[0]
		branch.Labels["k"], branch.Select.Tags[0] = "changed", "changed"
		view := registry.NewView(r, r.Branches()[0], everything).Branch()
		view.Labels["k"] = "changed"
	}
	if after := dump(); after != before {
		t.Errorf("the registry changed from outside\nbefore %s\nafter  %s", before, after)
	}
}

func everything(*registry.Entry) bool { return true }

func TestUnchangedContractsAreKept(t *testing.T) {
	r := open(t, tool("a"), tool("b"))
	changed := tool("b", func(t *registry.Tool) { t.Digest = "another" })
	next, problems := registry.New(&registry.Build{Tools: []registry.Tool{tool("a"), changed}}, bindEcho, nil, r)
	if problems.HasErrors() {
		t.Fatal(problems.Err())
	}
	for name, kept := range map[string]bool{"a": true, "b": false} {
		old, _ := r.Lookup(name)
		now, _ := next.Lookup(name)
		if same := old.Contract() == now.Contract(); same != kept {
			t.Errorf("%s: contract kept: %v, want %v", name, same, kept)
		}
	}
}

func TestBranchSelectsAndHides(t *testing.T) {
	r := open(t,
		tool("get_weather", func(t *registry.Tool) { t.Tags = []string{"web"} }),
		tool("get_time", func(t *registry.Tool) { t.Tags = nil }),
		tool("search", func(t *registry.Tool) {
			t.Tags = nil
			t.Binding = registry.Binding{MCP: &registry.MCP{Server: "brave", Tool: "search"}}
		}),
	)
	for _, test := range []struct {
		name         string
		choose, hide *registry.Selector
		want         string
	}{
		{"everything without a select", nil, nil, "get_time get_weather search"},
		{"an empty select matches nothing", &registry.Selector{}, nil, ""},
		{"by pattern", &registry.Selector{Names: []string{"get_*"}}, nil, "get_time get_weather"},
		{"a pattern matches whole names", &registry.Selector{Names: []string{"get"}}, nil, ""},
		{"several stars", &registry.Selector{Names: []string{"*e*t*"}}, nil, "get_time get_weather"},
		{"parts of a pattern don't overlap", &registry.Selector{Names: []string{"search*search", "get_tim*ime"}}, nil, ""},
		{"only a star is special", &registry.Selector{Names: []string{"get_[a-z]*", "sear?h", "searc\\h*"}}, nil, ""},
		{"by tag or server", &registry.Selector{Tags: []string{"web"}, Servers: []string{"brave"}}, nil, "get_weather search"},
		{"hide takes away", &registry.Selector{Names: []string{"*"}}, &registry.Selector{Tags: []string{"web"}}, "get_time search"},
		{"hide wins over select", &registry.Selector{Names: []string{"search"}}, &registry.Selector{Servers: []string{"brave"}}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			v := registry.NewView(r, registry.Branch{Name: "b", Select: test.choose, Hide: test.hide}, everything)
			if got := strings.Join(v.Names(), " "); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// TestHiddenAndMissingAnswerAlike is the property that list equals call: a name that is not visible gets the same answer
// as one that never was, and no answer names what is not visible.
func TestHiddenAndMissingAnswerAlike(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		universe := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-c]{1,4}`), 1, 12, rapid.ID[string]).Draw(t, "names")
		visible := map[string]bool{}
		var all, some []registry.Tool
		for _, name := range universe {
			all = append(all, tool(name))
			if rapid.Bool().Draw(t, "visible "+name) {
				visible[name] = true
				some = append(some, tool(name))
			}
		}
		r, problems := registry.New(&registry.Build{Tools: all}, bindEcho, nil, nil)
		less, more := registry.New(&registry.Build{Tools: some}, bindEcho, nil, nil)
		if problems.HasErrors() || more.HasErrors() {
			t.Fatal(problems, more)
		}
		hidden := registry.NewView(r, registry.Branch{Name: "b"}, func(e *registry.Entry) bool { return visible[e.Name()] })
		missing := registry.NewView(less, registry.Branch{Name: "b"}, everything)
		if diff := cmp.Diff(missing.Names(), hidden.Names()); diff != "" {
			t.Fatal(diff)
		}
		for _, name := range universe {
			_, a := hidden.Lookup(name)
			_, b := missing.Lookup(name)
			if (a == nil) != visible[name] {
				t.Fatalf("%s: listed %v, callable %v", name, visible[name], a == nil)
			}
			if a != nil && a.Error() != b.Error() {
				t.Fatalf("%s: hidden says %q, missing says %q", name, a, b)
			}
			if a != nil {
				for _, near := range a.Nearest {
					if !visible[near] {
						t.Fatalf("%s: suggests %s, which is not visible", name, near)
					}
				}
			}
		}
	})
}

func TestViewDigestFollowsWhatIsShown(t *testing.T) {
	digest := func(change func(*registry.Tool)) string {
		return registry.NewView(open(t, tool("a", change)), registry.Branch{Name: "b"}, everything).Digest()
	}
	base := digest(func(*registry.Tool) {})
	for name, change := range map[string]func(*registry.Tool){
		"description": func(t *registry.Tool) { t.Description = "Other." },
		"title":       func(t *registry.Tool) { t.Title = "Other" },
		"effect":      func(t *registry.Tool) { t.Effect = registry.Write },
		"deprecated":  func(t *registry.Tool) { t.Deprecated = "use b" },
		"schema": func(t *registry.Tool) {
			t.Args.Schema = json.RawMessage(`{"type":"object","properties":{"city":{"type":"string","minLength":1}},"required":["city"],"additionalProperties":false}`)
		},
		"name": func(t *registry.Tool) { t.Name = "other" },
	} {
		if digest(change) == base {
			t.Errorf("a new %s leaves the digest as it was", name)
		}
	}
	for name, change := range map[string]func(*registry.Tool){
		"binding":  func(t *registry.Tool) { t.Binding.JQ.Program = ".city" },
		"timeout":  func(t *registry.Tool) { t.Timeout = time.Minute },
		"position": func(t *registry.Tool) { t.Pos.Line = 9 },
	} {
		if digest(change) != base {
			t.Errorf("another %s, which no client is shown, changes the digest", name)
		}
	}
}

func TestSourceAt(t *testing.T) {
	s := tool("a").Source
	for path, line := range map[string]int{"binding.jq": 7, "binding.jq.program": 7, "binding": 3, "args.city": 3, "": 3} {
		if got := s.At(path).Line; got != line {
			t.Errorf("%q: line %d, want %d", path, got, line)
		}
	}
}
