package generation_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/conversation"
	"github.com/catalogd/catalogd/internal/generation"
	"github.com/catalogd/catalogd/internal/servetest"
	"github.com/catalogd/catalogd/invoke"
	"github.com/catalogd/catalogd/registry"
)

// sessionPolicy reads what conversation branches add: session/mode quiet denies a tool at each point, and a
// caller may be told less in a conversation than outside.
const sessionPolicy = `package catalogd.%s

deny contains "this conversation is quiet" if {
	input.branch.labels["session/mode"] == "quiet"
	input.tool.name == "upper"
}
`

// conversing serves the house with conversation branches, under a policy that reads their labels at the points.
func conversing(t testing.TB, points ...string) *servetest.House {
	t.Helper()
	h := servetest.NewHouse(t)
	for _, point := range points {
		h.Set("policy/session_"+point+".rego", fmt.Sprintf(sessionPolicy, point))
	}
	var err error
	if h.Conversations, err = conversation.Open(conversation.Config{}); err != nil {
		t.Fatal(err)
	}
	if err := h.Open(t); err != nil {
		t.Fatal(err)
	}
	return h
}

// fork forks a branch for a principal.
func fork(t testing.TB, h *servetest.House, from string, p decision.Principal, terms conversation.Terms, labels map[string]string) generation.Conversation {
	t.Helper()
	g, release := h.Pin()
	defer release()
	c, err := g.Fork(from, p, terms, labels, 0)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func callAs(t testing.TB, h *servetest.House, branch string, p decision.Principal, tool, args string) registry.Call {
	t.Helper()
	g, release := h.Pin()
	defer release()
	path, ok := g.PathFor(branch, p)
	if !ok {
		t.Fatalf("no branch %s", branch)
	}
	return path.Call(t.Context(), invoke.Request{Tool: tool, Arguments: json.RawMessage(args), Principal: p})
}

func hide(names ...string) conversation.Terms {
	return conversation.Terms{Hide: &registry.Selector{Names: names}}
}

func choose(names ...string) conversation.Terms {
	return conversation.Terms{Select: &registry.Selector{Names: names}}
}

// TestForkOnlyTakesAway tries to get more from a fork than its parent shows.
func TestForkOnlyTakesAway(t *testing.T) {
	t.Parallel()
	h := conversing(t, "list", "call", "result")
	ann, bob := servetest.Person("ann"), servetest.Person("bob")
	g, release := h.Pin()
	defer release()
	refused := func(what string, from string, p decision.Principal, terms conversation.Terms, labels map[string]string, as any) {
		t.Helper()
		if _, err := g.Fork(from, p, terms, labels, 0); err == nil || !errors.As(err, as) {
			t.Errorf("%s: got %v, want %T", what, err, as)
		}
	}
	small := fork(t, h, "small", ann, choose("*"), nil)
	if got := small.Path.View.Names(); !slices.Equal(got, []string{"upper"}) {
		t.Errorf("select * of a branch that shows upper: got %v", got)
	}
	refused("a tool that the root hides", "small", ann, choose("clock"), nil, new(*registry.UnknownError))
	refused("a tool that does not exist", "small", ann, hide("cloock"), nil, new(*registry.UnknownError))
	refused("another label of the catalog's", "public", ann, conversation.Terms{}, map[string]string{"audience": "staff"}, new(*conversation.InvalidError))
	refused("a branch that does not exist", "nonsense", ann, conversation.Terms{}, nil, new(*generation.UnknownBranchError))
	refused("another's branch", small.Name, bob, conversation.Terms{}, nil, new(*generation.UnknownBranchError))
	if _, ok := g.PathFor(small.Name, bob); ok {
		t.Error("another principal opens a conversation branch by its name")
	}
	if _, ok := g.PathFor(small.Name, decision.Local()); ok {
		t.Error("the operator opens another's conversation branch")
	}

	hidden := fork(t, h, "default", ann, hide("upper"), nil)
	below := fork(t, h, hidden.Name, ann, conversation.Terms{}, nil)
	for _, name := range []string{hidden.Name, below.Name} {
		_, err := g.Change(name, ann, 0, func(terms *conversation.Terms, parent, own *registry.View) error {
			_, err := terms.Put(parent, own, "upper", false)
			return err
		})
		if own := name == hidden.Name; own != (err == nil) {
			t.Errorf("showing again what was hidden in the branch: %v, what its parent hides: want an error", err)
		}
	}
	if got := callAs(t, h, below.Name, ann, "upper", `{"text":"a"}`); got.Err != nil {
		t.Errorf("the parent shows it again, and the fork answers %v", got.Err)
	}

	// What a policy denies for a label stays denied below, and a fork can't take the label off.
	quiet := fork(t, h, "default", ann, conversation.Terms{}, map[string]string{"session/mode": "quiet"})
	refused("another value for the label of the parent", quiet.Name, ann, conversation.Terms{}, map[string]string{"session/mode": "loud"}, new(*generation.ConflictError))
	louder := fork(t, h, quiet.Name, ann, conversation.Terms{}, map[string]string{"session/note": "loud"})
	for _, c := range []generation.Conversation{quiet, louder} {
		if slices.Contains(c.Path.View.Names(), "upper") {
			t.Errorf("%s lists upper in spite of the policy", c.Name)
		}
		if got := callAs(t, h, c.Name, ann, "upper", `{"text":"a"}`); got.Err == nil || got.Err.Code != registry.UnknownTool {
			t.Errorf("a call of upper: %v, want an unknown tool", got.Err)
		}
	}
	if got := callAs(t, h, "default", ann, "upper", `{"text":"a"}`); got.Err != nil || got.Session != "" {
		t.Errorf("the declared branch answers %v of session %q", got.Err, got.Session)
	}
	if got := callAs(t, h, below.Name, ann, "upper", `{"text":"a"}`); got.Branch != "default" || got.Session != below.Name {
		t.Errorf("the call counts for %q of session %q", got.Branch, got.Session)
	}
}

// TestAncestorsDecide checks that an ancestor's own answer counts at each point: the policy denies the fork in the
// middle alone, by its name.
func TestAncestorsDecide(t *testing.T) {
	t.Parallel()
	for point, want := range map[string]registry.ErrorCode{"call": registry.Denied, "result": registry.ResultDenied} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			h := conversing(t)
			ann := servetest.Person("ann")
			middle := fork(t, h, "default", ann, conversation.Terms{}, map[string]string{"session/mode": "quiet"})
			below := fork(t, h, middle.Name, ann, conversation.Terms{}, map[string]string{"session/note": "below"})
			aside := fork(t, h, "default", ann, conversation.Terms{}, map[string]string{"session/note": "below"})
			h.Set("policy/middle.rego", fmt.Sprintf("package catalogd.%s\n\ndeny contains \"not through this one\" if {\n\tinput.branch.session == %q\n\t%s\n}\n",
				point, middle.Name, map[string]string{"call": `input.arguments.text == "a"`, "result": `input.result.text[0] == "A"`}[point]))
			h.MustReload(t, "adopted")
			for _, name := range []string{middle.Name, below.Name} {
				if got := callAs(t, h, name, ann, "upper", `{"text":"a"}`); got.Err == nil || got.Err.Code != want {
					t.Errorf("a call through %s: %v, want %s", name, got.Err, want)
				}
			}
			for _, name := range []string{"default", aside.Name} {
				if got := callAs(t, h, name, ann, "upper", `{"text":"a"}`); got.Err != nil {
					t.Errorf("a call through %s: %v", name, got.Err)
				}
			}
			if got := callAs(t, h, below.Name, ann, "upper", `{"text":"b"}`); got.Err != nil {
				t.Errorf("a call that no branch denies: %v", got.Err)
			}
		})
	}
}

// TestObligationsOfAncestors checks that a call counts at the declared branch, against the limits of every
// ancestor.
func TestObligationsOfAncestors(t *testing.T) {
	t.Parallel()
	h := conversing(t)
	h.Set("policy/rate.rego", `package catalogd.call

rate_limit := {"calls": 3, "per": "1h"} if not input.branch.labels["session/mode"]

rate_limit := {"calls": 2, "per": "1h"} if input.branch.labels["session/mode"]
`)
	h.MustReload(t, "adopted")
	ann := servetest.Person("ann")
	limited := func(branch string) bool {
		got := callAs(t, h, branch, ann, "upper", `{"text":"a"}`)
		return got.Err != nil && got.Err.Code == registry.RateLimited
	}
	strict := fork(t, h, "default", ann, conversation.Terms{}, map[string]string{"session/mode": "strict"})
	below := fork(t, h, strict.Name, ann, conversation.Terms{}, nil)
	if limited(strict.Name) || limited("default") {
		t.Fatal("the first two calls are limited")
	}
	if !limited(below.Name) || !limited(strict.Name) {
		t.Error("a third call through a fork that may make two is not limited")
	}
	if limited("default") {
		t.Error("a third call through the declared branch, which may make three, is limited")
	}
	if again := fork(t, h, "default", ann, conversation.Terms{}, nil); !limited(again.Name) || !limited("default") {
		t.Error("a fourth call is not limited through a new fork")
	}
}

// TestReloadOfConversations checks that a reload derives conversation branches anew, and what they say they lost.
func TestReloadOfConversations(t *testing.T) {
	t.Parallel()
	h := conversing(t)
	ann := servetest.Person("ann")
	one := fork(t, h, "default", ann, choose("upper", "clock", "wipe"), map[string]string{"session/mode": "quiet"})
	two := fork(t, h, one.Name, ann, conversation.Terms{}, nil)
	now := func(name string) generation.Conversation {
		t.Helper()
		g, release := h.Pin()
		defer release()
		c, ok := g.Conversation(name, ann)
		if !ok {
			t.Fatalf("%s does not exist any more", name)
		}
		return c
	}
	if c := now(two.Name); len(c.Lost) != 0 {
		t.Errorf("lost before the reload: %v", c.Lost)
	}
	before := h.Get("catalog/home.cue")
	h.Replace(t, "catalog/home.cue", "tools: clock:", "tools: watch:")
	h.Replace(t, "catalog/home.cue", "branches: default: {}", `branches: default: labels: "session/mode": "loud"`)
	h.Set("policy/trust/data.yaml", strings.Replace(h.Get("policy/trust/data.yaml"), "  clock:", "  watch:", 1))
	h.MustReload(t, "adopted")
	for _, name := range []string{one.Name, two.Name} {
		c := now(name)
		lost := fmt.Sprint(c.Lost)
		if !strings.Contains(lost, "clock") || strings.Contains(lost, "upper") {
			t.Errorf("%s says that it lost %v, want clock", name, c.Lost)
		}
		if names := c.Path.View.Names(); slices.Contains(names, "clock") || slices.Contains(names, "watch") || !slices.Contains(names, "upper") {
			t.Errorf("%s shows %v", name, names)
		}
		if got := c.Path.View.Declared().Labels["session/mode"]; got != "loud" {
			t.Errorf("%s has the label %q, want that of the declared branch", name, got)
		}
	}
	if lost := now(one.Name).Lost; !slices.ContainsFunc(lost, func(m generation.Missing) bool { return m.Label == "session/mode" }) {
		t.Errorf("got %v, want the label that the declared branch has taken", lost)
	}

	h.Replace(t, "catalog/home.cue", `branches: default: labels: "session/mode": "loud"`, `branches: other: {}`)
	h.Set("policy/access/data.yaml", strings.Replace(h.Get("policy/access/data.yaml"), "  default:", "  other:", 1))
	h.MustReload(t, "adopted")
	gone := now(two.Name)
	if gone.Path != nil || len(gone.Lost) != 1 || gone.Lost[0].Branch != "default" {
		t.Errorf("without its declared branch: got %v, want that it lost that", gone.Lost)
	}
	g, release := h.Pin()
	if _, ok := g.PathFor(two.Name, ann); ok {
		t.Error("a branch is open whose declared branch is gone")
	}
	release()

	h.Set("catalog/home.cue", before)
	h.Set("policy/access/data.yaml", servetest.HomeAccess)
	h.Set("policy/trust/data.yaml", servetest.HomeTrust)
	h.MustReload(t, "adopted")
	if c := now(two.Name); len(c.Lost) != 0 || !slices.Contains(c.Path.View.Names(), "clock") {
		t.Errorf("after the files are as before: lost %v", c.Lost)
	}
}

// TestForksShowSubsets makes random trees of forks, and checks each against its parent: what it shows the parent
// shows, and a call that it accepts the parent accepts.
func TestForksShowSubsets(t *testing.T) {
	t.Parallel()
	h := conversing(t, "list", "call")
	people := []decision.Principal{decision.Local(), servetest.Person("ann"), servetest.Person("bob", "staff")}
	calls := map[string]string{"upper": `{"text":"a"}`, "secret": `{}`, "clock": `{}`, "wipe": `{}`, "nonsense": `{}`}
	names := []string{"upper", "secret", "clock", "wipe", "remote_echo"}
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 1))
	t.Logf("seed %d", seed)
	some := func(of []string) *registry.Selector {
		s := &registry.Selector{}
		for _, name := range of {
			if rng.IntN(2) == 0 {
				s.Names = append(s.Names, name)
			}
		}
		if rng.IntN(3) == 0 {
			s.Names = append(s.Names, []string{"*", "u*", "*e*"}[rng.IntN(3)])
		}
		if rng.IntN(3) == 0 {
			s.Tags = []string{"internal"}
		}
		return s
	}
	for range 20 {
		who := people[rng.IntN(len(people))]
		branches := []string{[]string{"default", "public", "small"}[rng.IntN(3)]}
		for range 5 {
			from := branches[rng.IntN(len(branches))]
			g, release := h.Pin()
			parent, ok := g.PathFor(from, who)
			if !ok {
				t.Fatalf("no branch %s", from)
			}
			var terms conversation.Terms
			shown := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return parent.View.Find(name) == nil })
			if rng.IntN(2) == 0 {
				terms.Select = some(shown)
			}
			if rng.IntN(2) == 0 {
				terms.Hide = some(shown)
			}
			for _, name := range shown {
				if rng.IntN(4) == 0 {
					if terms.Tools == nil {
						terms.Tools = map[string]bool{}
					}
					terms.Tools[name] = rng.IntN(2) == 0
				}
			}
			labels := map[string]string{}
			if key := []string{"session/mode", "session/note"}[rng.IntN(2)]; parent.View.Declared().Labels[key] == "" && rng.IntN(2) == 0 {
				labels[key] = []string{"quiet", "loud"}[rng.IntN(2)]
			}
			c, err := g.Fork(from, who, terms, labels, 0)
			if err != nil && !errors.Is(err, conversation.ErrLimit) {
				t.Fatalf("fork of %s: %v", from, err)
			}
			release()
			if err != nil {
				continue
			}
			branches = append(branches, c.Name)
			above := parent.View.Names()
			for _, name := range c.Path.View.Names() {
				if !slices.Contains(above, name) {
					t.Errorf("%+v shows %s, which its parent %s does not", c.Branch, name, from)
				}
			}
			for tool, args := range calls {
				own, parents := callAs(t, h, c.Name, who, tool, args), callAs(t, h, from, who, tool, args)
				if accepted(own) && !accepted(parents) {
					t.Errorf("%+v accepts a call of %s, which its parent %s answers %v", c.Branch, tool, from, parents.Err)
				}
				if accepted(own) && c.Path.View.Find(tool) == nil {
					t.Errorf("%+v accepts a call of %s, which it does not list", c.Branch, tool)
				}
			}
		}
		g, release := h.Pin()
		for _, c := range g.Conversations(who) {
			if err := g.EndConversation(c.Name, who); err != nil && !errors.Is(err, conversation.ErrUnknown) {
				t.Error(err)
			}
		}
		release()
	}
}

// accepted reports whether a call was allowed; a tool with a side effect is not run here.
func accepted(c registry.Call) bool { return c.Decision == "allowed" }

// TestConversationsUnderReloads forks, calls and ends branches while the catalog is reloaded.
func TestConversationsUnderReloads(t *testing.T) {
	t.Parallel()
	h := conversing(t, "list")
	ctx, end := context.WithTimeout(t.Context(), time.Minute)
	defer end()
	var all sync.WaitGroup
	for i := range 4 {
		who := servetest.Person(fmt.Sprintf("person%d", i))
		all.Go(func() {
			for range 15 {
				c := fork(t, h, "default", who, hide("secret"), map[string]string{"session/mode": "quiet"})
				below := fork(t, h, c.Name, who, conversation.Terms{}, nil)
				if err := addFunction(t, h, c.Name, who, goTool(t, "whoami", who.Name), false); err != nil {
					t.Error(err)
				}
				if got := callAs(t, h, below.Name, who, "whoami", `{"city":"a"}`); got.Err != nil || !strings.Contains(string(got.Result.Structured), who.Name) {
					t.Errorf("the function of %s: %+v, %v", who.Name, got.Result, got.Err)
				}
				for _, tool := range []string{"secret", "upper"} {
					if got := callAs(t, h, below.Name, who, tool, `{"text":"a"}`); got.Err == nil || got.Err.Code != registry.UnknownTool {
						t.Errorf("a call of %s: %v", tool, got.Err)
					}
				}
				g, release := h.Pin()
				if err := g.EndConversation(c.Name, who); err != nil {
					t.Error(err)
				}
				release()
			}
		})
	}
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	for i := 0; ; i++ {
		select {
		case <-done:
			return
		case <-ctx.Done():
			t.Fatal("the forks did not end")
		default:
			h.Set("catalog/more.cue", fmt.Sprintf("package catalog\n\nbranches: more: labels: team: \"t%d\"\n", i))
			h.MustReload(t, "adopted")
		}
	}
}
