package generation_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/generation"
	"github.com/catalogd/catalogd/internal/servetest"
	"github.com/catalogd/catalogd/problem"
)

// TestWorkPerChange: what an edit doesn't touch is neither compiled nor decided again.
func TestWorkPerChange(t *testing.T) {
	t.Parallel()
	h := servetest.OpenHouse(t)
	if connect, list := h.Asked(); connect != 2 || list != 11 {
		t.Errorf("at the start %d connect and %d list decisions were asked, want 2 and 11", connect, list)
	}
	all := []string{"clock", "remote_echo", "secret", "upper", "wipe"}
	for _, test := range []struct {
		name          string
		edit          func()
		fresh         []string // tools that are compiled again
		connect, list int
		policy        bool // the engine is another
	}{
		{name: "a comment at the end", edit: func() { h.Set("catalog/home.cue", servetest.HomeCUE+"// The end.\n") }},
		{name: "a tool's program", edit: func() { h.Replace(t, "catalog/home.cue", `"\"gone\""`, `"\"all gone\""`) }, fresh: []string{"wipe"}},
		{name: "a tool's tags", edit: func() { h.Replace(t, "catalog/home.cue", "The time.\"", "The time.\"\n\ttags: [\"x\"]") },
			// Its position moves what stands below it, and the policy sees where a target is declared.
			fresh: []string{"clock"}, connect: 1, list: 2},
		{name: "a new package", edit: func() {
			h.Set("catalog/a/a.cue", "package catalog\n\ntools: extra: {description: \"x\", effect: \"read\", binding: jq: program: \"1\"}\n")
		}, list: 2},
		{name: "a test of the policy", edit: func() { h.Set("policy/house_test.rego", "package catalogd.house_test\n\ntest_one if true\n") }},
		{name: "data", edit: func() {
			h.Set("policy/access/data.yaml", strings.Replace(servetest.HomeAccess, "not for", "not meant for", 1))
		}, connect: 2, list: 13, policy: true},
		{name: "a new branch", edit: func() { h.Set("catalog/a/a.cue", h.Get("catalog/a/a.cue")+"branches: b: {}\n") }, list: 6},
		{name: "a server's address", edit: func() { h.Replace(t, "catalog/home.cue", "/mcp\"", "/mcp/x\"") }, connect: 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			before, release := h.Pin()
			defer release()
			test.edit()
			h.MustReload(t, "adopted")
			after, release := h.Pin()
			defer release()
			connect, list := h.Asked()
			if connect != test.connect || list != test.list {
				t.Errorf("%d connect and %d list decisions were asked, want %d and %d", connect, list, test.connect, test.list)
			}
			if same := before.Engine().Digest() == after.Engine().Digest(); same == test.policy {
				t.Errorf("the same policy: %v", same)
			}
			for _, tool := range all {
				old, _ := before.Registry().Lookup(tool)
				now, _ := after.Registry().Lookup(tool)
				kept := before.Compiled(tool) == after.Compiled(tool) && old.Contract() == now.Contract()
				if kept == slices.Contains(test.fresh, tool) {
					t.Errorf("%s was kept: %v", tool, kept)
				}
			}
		})
	}
}

// TestEveryProblemInOnePass: problems of the language, of bindings, of servers and of the policy come together.
func TestEveryProblemInOnePass(t *testing.T) {
	t.Parallel()
	h := servetest.NewHouse(t)
	h.Replace(t, "catalog/home.cue", `".text | ascii_upcase"`, `".text |"`)
	h.Replace(t, "catalog/home.cue", `argv: ["-u"]`, `argv: ["{zone}"]`)
	h.Replace(t, "catalog/home.cue", `"http://127.0.0.1:1/mcp"`, `"http://user:pass@127.0.0.1:1/mcp"`)
	h.Set("catalog/other/other.cue", "package catalog\n\ntools: other: effect: \"reads\"\n")
	h.Set("policy/list.rego", h.Get("policy/list.rego")+"\nallow if input.nothing\n")
	err := h.Open(t)
	if err == nil {
		t.Fatal("it is served")
	}
	for _, want := range []string{
		"catalog/home.cue:11:", string(problem.BadJQ), "catalog/home.cue:22:", string(problem.BadPlaceholder),
		"catalog/home.cue:37:", "catalog/other/other.cue:3:", "policy/list.rego:", string(problem.RegoCompile),
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%s is not said:\n%v", want, err)
		}
	}
}

// TestReachesAreListed: every way out stands with its decision, by kind and name.
func TestReachesAreListed(t *testing.T) {
	t.Parallel()
	h := servetest.OpenHouse(t)
	g, release := h.Pin()
	defer release()
	var got []string
	for _, r := range g.Reaches() {
		got = append(got, fmt.Sprintf("%s %s %s %v %s", r.Kind, r.Name, r.Trust, r.Decision.Allow, r.Pos))
		if r.Decision.Code != decision.Allowed {
			t.Errorf("%+v", r.Decision)
		}
	}
	want := []string{"server remote remote true catalog/home.cue:35:10", "tool clock clock true catalog/home.cue:19:8"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestQuestionsDiffer: whatever a list decision may look at makes another question. A field that is added to the input
// and forgotten in the question would hand out the answers of before.
func TestQuestionsDiffer(t *testing.T) {
	t.Parallel()
	seen := map[any]string{}
	ask := func(what string, b decision.Branch, tool decision.Tool) {
		q := generation.Question(b, tool)
		if other, ok := seen[q]; ok {
			t.Errorf("%s asks the same as %s", what, other)
		}
		seen[q] = what
	}
	ask("nothing", decision.Branch{}, decision.Tool{})
	for _, of := range []reflect.Type{reflect.TypeFor[decision.Branch](), reflect.TypeFor[decision.Tool]()} {
		for i := range of.NumField() {
			var b decision.Branch
			var tool decision.Tool
			field := reflect.ValueOf(&b).Elem()
			if of == reflect.TypeOf(tool) {
				field = reflect.ValueOf(&tool).Elem()
			}
			switch field = field.Field(i); field.Interface().(type) {
			case string:
				field.SetString("x")
			case bool:
				field.SetBool(true)
			case []string:
				field.Set(reflect.ValueOf([]string{"x"}))
			case map[string]string:
				field.Set(reflect.ValueOf(map[string]string{"x": ""}))
			default:
				t.Fatalf("%s.%s: this test doesn't know %s", of, of.Field(i).Name, field.Type())
			}
			ask(of.String()+"."+of.Field(i).Name, b, tool)
		}
	}
	ask("one tag", decision.Branch{}, decision.Tool{Tags: []string{"a b"}})
	ask("two tags", decision.Branch{}, decision.Tool{Tags: []string{"a", "b"}})
	ask("other order", decision.Branch{}, decision.Tool{Tags: []string{"b", "a"}})
	ask("a label", decision.Branch{Name: "n", Labels: map[string]string{"a": "b"}}, decision.Tool{})
	ask("name and label", decision.Branch{Name: "na", Labels: map[string]string{"": "b"}}, decision.Tool{})
	ask("label's value", decision.Branch{Name: "n", Labels: map[string]string{"ab": ""}}, decision.Tool{})
}
