package generation_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"weak"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/conversation"
	"github.com/catalogd/catalogd/internal/generation"
	"github.com/catalogd/catalogd/internal/servetest"
	"github.com/catalogd/catalogd/invoke"
	"github.com/catalogd/catalogd/registry"
)

// goTool is a Go function, as a tool that no file declares. It returns the text it is given, and the city.
func goTool(t testing.TB, name, says string) *registry.Entry {
	t.Helper()
	type place struct {
		City string `json:"city"`
	}
	f, err := registry.Func(name, func(_ context.Context, in place) (map[string]string, error) {
		return map[string]string{says: in.City}, nil
	}, registry.Read)
	if err != nil {
		t.Fatal(err)
	}
	e, err := registry.NewEntry(f.Tool(), f.Bound(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func addFunction(t testing.TB, h *servetest.House, branch string, p decision.Principal, e *registry.Entry, update bool) error {
	t.Helper()
	g, release := h.Pin()
	defer release()
	_, err := g.AddFunction(branch, p, e, update)
	return err
}

// names returns what a branch shows; nil if it does not exist.
func names(h *servetest.House, branch string, p decision.Principal) []string {
	g, release := h.Pin()
	defer release()
	path, ok := g.PathFor(branch, p)
	if !ok {
		return nil
	}
	return path.View.Names()
}

// TestForkFunctions adds a Go function to one of several forks: it and those below it show it, among their tools in
// their order, and no other does.
func TestForkFunctions(t *testing.T) {
	t.Parallel()
	h := conversing(t)
	ann, bob := servetest.Person("ann"), servetest.Person("bob")
	mine := fork(t, h, "default", ann, hide("clock"), nil)
	below := fork(t, h, mine.Name, ann, conversation.Terms{}, nil)
	others := []generation.Conversation{fork(t, h, "default", ann, conversation.Terms{}, nil), fork(t, h, "default", bob, conversation.Terms{}, nil)}
	before := names(h, mine.Name, ann)
	if err := addFunction(t, h, mine.Name, ann, goTool(t, "the_weather", "sunny"), false); err != nil {
		t.Fatal(err)
	}
	want := append(slices.Clone(before), "the_weather")
	slices.Sort(want)
	answer := func(branch, tool string) string {
		c := callAs(t, h, branch, ann, tool, `{"city":"Oslo"}`)
		if c.Err != nil {
			return string(c.Err.Code)
		}
		return string(c.Result.Structured)
	}
	for _, name := range []string{mine.Name, below.Name} {
		if got := names(h, name, ann); !slices.Equal(got, want) {
			t.Errorf("%s shows %v, want %v", name, got, want)
		}
		if got := answer(name, "the_weather"); got != `{"sunny":"Oslo"}` {
			t.Errorf("%s answers %s", name, got)
		}
	}
	if got := callAs(t, h, mine.Name, ann, "the_weather", `{"town":"Oslo"}`); got.Err == nil || got.Err.Code != registry.InvalidArguments {
		t.Errorf("a call with other arguments: %v", got.Err)
	}
	for _, name := range []string{"default", others[0].Name} {
		if got := answer(name, "the_weather"); got != string(registry.UnknownTool) {
			t.Errorf("%s answers %s, want an unknown tool", name, got)
		}
	}
	if slices.Contains(names(h, others[1].Name, bob), "the_weather") || slices.Contains(names(h, "default", bob), "the_weather") {
		t.Error("another principal is shown the function")
	}
	g, release := h.Pin()
	defer release()
	path, _ := g.PathFor(below.Name, ann)
	path.View.Find("the_weather").Tool().Args.Schema[0] = '!'
	if schema := path.View.Find("the_weather").Tool().Args.Schema; schema[0] != '{' {
		t.Errorf("a schema that was handed out is shared: %s", schema)
	}

	renamed := fork(t, h, below.Name, ann, conversation.Terms{Narrow: map[string]registry.Narrowing{"the_weather": {Name: "forecast"}}}, nil)
	if got := answer(renamed.Name, "forecast"); got != `{"sunny":"Oslo"}` {
		t.Errorf("a fork that renames it answers %s", got)
	}
	for branch, tool := range map[string]string{mine.Name: "the_weather", below.Name: "the_weather", renamed.Name: "forecast"} {
		x, err := g.Explain(t.Context(), generation.ExplainRequest{Branch: branch, Request: invoke.Request{Tool: tool, Arguments: []byte(`{"city":"Oslo"}`), Principal: ann}})
		if err != nil || x.Outcome != "callable" || !strings.Contains(x.String(), "Go function that the program has added to branch "+mine.Name) {
			t.Errorf("explaining %s of %s: %v\n%s", tool, branch, err, x)
		}
		if in, err := g.Input(t.Context(), generation.InputRequest{Point: decision.Call, Branch: branch, Request: invoke.Request{Tool: tool, Arguments: []byte(`{"city":"Oslo"}`), Principal: ann}}); err != nil || in.(decision.CallInput).Tool.Binding != "func" {
			t.Errorf("the input of a call of %s of %s: %+v, %v", tool, branch, in, err)
		}
	}
	if err := addFunction(t, h, mine.Name, ann, goTool(t, "the_weather", "rainy"), true); err != nil {
		t.Error(err)
	}
	if got := names(h, mine.Name, ann); !slices.Equal(got, want) || answer(below.Name, "the_weather") != `{"rainy":"Oslo"}` {
		t.Errorf("after it was replaced: %v, and the call answers %s", got, answer(below.Name, "the_weather"))
	}
	remove := func(tool string) error {
		_, err := g.Change(mine.Name, ann, 0, func(terms *conversation.Terms, _, own *registry.View) error { return terms.Remove(own, tool) })
		return err
	}
	if err := remove("the_weather"); err != nil || !slices.Equal(names(h, mine.Name, ann), before) || answer(renamed.Name, "forecast") != string(registry.UnknownTool) {
		t.Errorf("removed: %v, and it shows %v", err, names(h, mine.Name, ann))
	}
	if err := remove("the_weather"); !errors.Is(err, registry.ErrUnknown) {
		t.Errorf("removed twice: %v, want ErrUnknown", err)
	}
	if err := addFunction(t, h, mine.Name, bob, goTool(t, "the_weather", "sunny"), false); err == nil {
		t.Error("another principal adds a function")
	}
	if err := g.EndConversation(mine.Name, ann); err != nil || names(h, below.Name, ann) != nil {
		t.Errorf("ended: %v, and the fork of it shows %v", err, names(h, below.Name, ann))
	}
}

// TestForkFunctionsRefused adds Go functions that a branch can't have, and checks that it is as before.
func TestForkFunctionsRefused(t *testing.T) {
	t.Parallel()
	h := conversing(t, "list", "call")
	h.Set("policy/functions.rego", `package catalogd.list

deny contains "not through the declared branch" if {
	input.tool.name == "rooted"
	not input.branch.session
}

deny contains "not through the declared branch" if {
	input.tool.name == "rooted"
	input.branch.session == ""
}
`)
	h.MustReload(t, "adopted")
	ann := servetest.Person("ann")
	rename := map[string]registry.Narrowing{"upper": {Name: "shout"}}
	own := fork(t, h, "default", ann, conversation.Terms{Narrow: rename}, nil)
	if err := addFunction(t, h, own.Name, ann, goTool(t, "mine", "x"), false); err != nil {
		t.Fatal(err)
	}
	below := fork(t, h, own.Name, ann, hide("mine"), nil)
	public := fork(t, h, "public", ann, conversation.Terms{}, nil)
	small := fork(t, h, "small", ann, conversation.Terms{}, nil)
	quiet := fork(t, h, "default", ann, hide("upper", "lost*"), map[string]string{"session/mode": "quiet"})
	narrowed := fork(t, h, quiet.Name, ann, conversation.Terms{}, nil)
	for _, c := range []struct {
		what, branch, name string
		update             bool
		duplicate          bool
		says               string
	}{
		{"a declared tool's name", quiet.Name, "clock", false, true, `"clock": the catalog declares a tool of this name at catalog/home.cue:19:`},
		{"to replace a declared tool", quiet.Name, "clock", true, true, "catalog/home.cue:19:"},
		{"the name of one that the fork hides", quiet.Name, "upper", false, true, "catalog/home.cue:7"},
		{"that in another case", public.Name, "Secret", false, true, "catalog/home.cue:13"},
		{"the name of one that the policy hides", public.Name, "secret", false, true, "catalog/home.cue:13"},
		{"the name of one that the parent renames", own.Name, "upper", false, true, "catalog/home.cue:7"},
		{"the name that the fork gives a tool", own.Name, "shout", false, true, "shows upper so, which the catalog declares at catalog/home.cue:7"},
		{"it in another case", own.Name, "Shout", true, true, "shows upper so"},
		{"a built-in tool's name", own.Name, "intent_get", false, true, "built-in"},
		{"twice", own.Name, "mine", false, true, "already; ReplaceFunc"},
		{"that of a branch above, hidden", below.Name, "mine", true, true, "a branch above has a Go function"},
		{"what a declared branch does not select", small.Name, "free", false, false, "branch small leaves it out"},
		{"what a fork above hides", narrowed.Name, "lost_and_found", false, false, "branch " + quiet.Name + " leaves it out"},
		{"what the policy denies the declared branch", below.Name, "rooted", false, false, "not through the declared branch"},
		{"one of a branch that is not there", "session-" + strings.Repeat("a", 26), "free", false, false, "there is no branch"},
		{"one of a declared branch", "default", "free", false, false, "branch default is declared in the catalog"},
	} {
		before := names(h, c.branch, ann)
		err := addFunction(t, h, c.branch, ann, goTool(t, c.name, "x"), c.update)
		if err == nil || errors.Is(err, registry.ErrDuplicate) != c.duplicate || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got %v, want %q", c.what, err, c.says)
		}
		if after := names(h, c.branch, ann); !slices.Equal(before, after) {
			t.Errorf("%s: it shows %v, want %v as before", c.what, after, before)
		}
	}
	g, release := h.Pin()
	defer release()
	if _, err := g.Change(own.Name, ann, 0, func(terms *conversation.Terms, _, _ *registry.View) error {
		terms.Narrow = map[string]registry.Narrowing{"clock": {Name: "Mine"}}
		return nil
	}); err == nil || !strings.Contains(err.Error(), "Go function that was added") {
		t.Errorf("a tool renamed to the function: %v", err)
	}
}

// TestForkFunctionsDropped checks that nothing keeps a function, with what it refers to, that was replaced, or whose
// branch has ended.
func TestForkFunctionsDropped(t *testing.T) {
	t.Parallel()
	h := conversing(t)
	ann := servetest.Person("ann")
	mine := fork(t, h, "default", ann, conversation.Terms{}, nil).Name
	below := fork(t, h, mine, ann, conversation.Terms{}, nil).Name
	g, release := h.Pin()
	defer release()
	add := func(says string) weak.Pointer[registry.Entry] {
		e := goTool(t, "forecast", says)
		if err := addFunction(t, h, mine, ann, e, true); err != nil {
			t.Fatal(err)
		}
		if got := callAs(t, h, below, ann, "forecast", `{"city":"a"}`); got.Err != nil {
			t.Errorf("a call: %v", got.Err)
		}
		return weak.Make(e)
	}
	dropped := func(what string, e weak.Pointer[registry.Entry]) {
		t.Helper()
		for range 1000 {
			if runtime.GC(); e.Value() == nil {
				return
			}
			time.Sleep(time.Millisecond)
		}
		t.Errorf("%s: the function is kept", what)
	}
	first := add("sunny")
	second := add("rainy")
	dropped("replaced", first)
	if second.Value() == nil {
		t.Error("the function is gone while its branch has it")
	}
	if err := g.EndConversation(mine, ann); err != nil {
		t.Fatal(err)
	}
	dropped("ended", second)
}

// TestForkFunctionsReload checks that a reload decides anew about functions, and that the branch says what it lost.
func TestForkFunctionsReload(t *testing.T) {
	t.Parallel()
	h := conversing(t)
	ann := servetest.Person("ann")
	mine := fork(t, h, "default", ann, conversation.Terms{}, nil)
	below := fork(t, h, mine.Name, ann, conversation.Terms{}, nil)
	for _, name := range []string{"forecast", "tides"} {
		if err := addFunction(t, h, mine.Name, ann, goTool(t, name, "x"), false); err != nil {
			t.Fatal(err)
		}
	}
	if err := addFunction(t, h, below.Name, ann, goTool(t, "stars", "x"), false); err != nil {
		t.Fatal(err)
	}
	home := h.Get("catalog/home.cue")
	for _, c := range []struct {
		what   string
		change func()
		lost   map[string]string // by tool: why it is lost in the branch that it was added to
	}{
		{"nothing of theirs", func() { h.Set("catalog/home.cue", home+"\nbranches: more: {}\n") }, nil},
		{"a tool of a function's name", func() {
			h.Set("catalog/home.cue", home+"\ntools: tides: {description: \"Tides.\", effect: \"read\", binding: jq: program: \"1\"}\n")
		}, map[string]string{"tides": "duplicate: the catalog"}},
		{"a branch that hides them", func() { h.Set("catalog/home.cue", home+"\nbranches: default: hide: names: [\"*s\"]\n") },
			map[string]string{"tides": "a branch above leaves it out", "stars": "a branch above leaves it out"}},
		{"a policy that denies one", func() {
			h.Set("catalog/home.cue", home)
			h.Set("policy/deny.rego", "package catalogd.list\n\ndeny contains \"embargoed\" if input.tool.name == \"stars\"\n")
		}, map[string]string{"stars": "the policy does not show it"}},
		{"a policy that denies every call", func() {
			h.Set("policy/deny.rego", "package catalogd.call\n\ndeny contains \"embargoed\" if input.tool.binding == \"func\"\n")
		}, map[string]string{"forecast": "policy", "tides": "policy", "stars": "policy"}},
		{"what it was", func() { h.Set("policy/deny.rego", "package catalogd.call\n") }, nil},
	} {
		c.change()
		h.MustReload(t, "adopted")
		g, release := h.Pin()
		for branch, tools := range map[string][]string{mine.Name: {"forecast", "tides"}, below.Name: {"stars"}} {
			now, ok := g.Conversation(branch, ann)
			if !ok {
				t.Fatalf("%s does not exist any more", branch)
			}
			reasons := fmt.Sprint(now.Lost)
			for _, tool := range tools {
				why, lost := c.lost[tool]
				shown := now.Path.View.Find(tool)
				if ours := shown != nil && shown.Declared().Binding.Func != ""; ours == lost || lost && !strings.Contains(reasons, tool+" ") || !strings.Contains(reasons, why) {
					t.Errorf("%s: %s is shown: %v, and lost: %v, want %q", c.what, tool, ours, now.Lost, why)
				}
				if strings.Contains(reasons, "embargoed") {
					t.Errorf("%s: what it says that it lost has the policy's reasons: %s", c.what, reasons)
				}
				x, err := g.Explain(t.Context(), generation.ExplainRequest{Branch: branch, Request: invoke.Request{Tool: tool, Principal: ann}})
				if err != nil || lost && why != "duplicate: the catalog" && x.Outcome != "hidden" || !lost && x.Outcome != "listed" {
					t.Errorf("%s: explaining %s: %v\n%s", c.what, tool, err, x)
				}
			}
		}
		release()
	}
}
