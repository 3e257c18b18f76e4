package generation_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/daemon"
	"github.com/catalogd/catalogd/internal/generation"
	"github.com/catalogd/catalogd/internal/mcpserver"
	"github.com/catalogd/catalogd/internal/servetest"
	"github.com/catalogd/catalogd/internal/token"
	"github.com/catalogd/catalogd/invoke"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// Principals of whom the policy reads the same are one to it: they share what was decided, and its bytes.
func TestViewsAreShared(t *testing.T) {
	t.Parallel()
	h := servetest.OpenHouse(t)
	view := func(p decision.Principal) *registry.View {
		g, release := h.Pin()
		defer release()
		path, _ := g.PathFor("default", p)
		return path.View
	}
	if view(servetest.Person("ann")) != view(servetest.Person("bob", "staff")) {
		t.Error("a policy that reads nothing of the bearers of tokens tells them apart")
	}
	h.Set("policy/staff.rego", servetest.StaffOnly)
	h.MustReload(t, "adopted")
	asked := func() int { return strings.Count(h.Log.String(), "list decisions") }
	if view(servetest.Person("ann", "staff")) != view(servetest.Person("bob", "staff")) || view(servetest.Person("ann", "guests")) != view(servetest.Person("eve", "guests")) {
		t.Error("principals of the same groups have views of their own")
	}
	before := asked()
	for i := range 20 {
		view(servetest.Person(fmt.Sprint("p", i), "staff"))
		view(servetest.Person(fmt.Sprint("p", i), "guests"))
	}
	if asked() != before {
		t.Error("it was decided again")
	}
	if view(servetest.Person("x", "guests")) != view(servetest.Person("x", "guests", "more")) {
		t.Error("what shows the same is kept twice")
	}
	if got := h.Sees(t, "default", servetest.Person("ann", "staff")); !slices.Contains(got, "secret") {
		t.Errorf("staff: %v", got)
	}
	if got := h.Sees(t, "default", servetest.Person("ann", "guests")); slices.Contains(got, "secret") {
		t.Errorf("guests: %v", got)
	}
}

// A reload that changes one tool asks about one tool for each principal, and no principal keeps an answer of another policy.
func TestViewsAreInherited(t *testing.T) {
	t.Parallel()
	h := servetest.NewHouse(t)
	h.Set("policy/staff.rego", servetest.StaffOnly)
	if err := h.Open(t); err != nil {
		t.Fatal(err)
	}
	// The operator doesn't see it, and others may.
	for _, w := range h.Status().Warnings {
		if w.Code == problem.UnseenTool {
			t.Errorf("%v", w)
		}
	}
	ann, eve := servetest.Person("ann", "staff"), servetest.Person("eve", "guests")
	h.Sees(t, "default", ann)
	h.Sees(t, "default", eve)
	asked := func(who string, branch string) string {
		var last string
		for line := range strings.Lines(h.Log.String()) {
			if strings.Contains(line, "list decisions") && strings.Contains(line, "branch="+branch+" principal="+who+" ") {
				last = line[strings.Index(line, "asked="):]
			}
		}
		return strings.TrimSpace(last)
	}
	if got := asked("eve", "default"); got != "asked=5" {
		t.Errorf("the first time: %s", got)
	}
	h.Replace(t, "catalog/home.cue", `tags: ["internal"]`, `tags: ["internal", "new"]`)
	h.MustReload(t, "adopted")
	for _, p := range []decision.Principal{ann, eve} {
		h.Sees(t, "default", p)
		if got := asked(p.Name, "default"); got != "asked=1" {
			t.Errorf("%s after one tool has changed: %s", p.Name, got)
		}
	}
	h.Replace(t, "policy/staff.rego", "not \"staff\"", "\"staff\"")
	h.MustReload(t, "adopted")
	if got := h.Sees(t, "default", eve); !slices.Contains(got, "secret") {
		t.Errorf("eve, whom the new policy lets: %v", got)
	}
	if got := h.Sees(t, "default", ann); slices.Contains(got, "secret") {
		t.Errorf("ann, whom it doesn't: %v", got)
	}
}

// list_changed reaches those whose list has changed, and nobody else.
func TestBearersAreTold(t *testing.T) {
	t.Parallel()
	h := servetest.NewHouse(t)
	h.Set("policy/staff.rego", servetest.StaffOnly)
	var front *mcpserver.Server
	h.Told = func(branches []string) { front.Changed(branches) }
	people := servetest.Issue(t, slog.New(slog.DiscardHandler),
		token.Token{Name: "ann", Branches: []string{"*"}, Groups: []string{"staff"}},
		token.Token{Name: "bea", Branches: []string{"default"}, Groups: []string{"staff"}},
		token.Token{Name: "eve", Branches: []string{"*"}, Groups: []string{"guests"}},
	)
	b := servetest.Backend{
		Version: "test", Log: slog.New(slog.DiscardHandler), Tokens: people.Store,
		Pin:    func() (*generation.Generation, func()) { return h.Pin() },
		Status: func() daemon.Status { return h.Status() },
		Reload: func(ctx context.Context) daemon.Outcome { return h.Reload(ctx) },
	}
	d := servetest.Listening(t, b)
	front = d.Server
	if err := h.Open(t); err != nil {
		t.Fatal(err)
	}
	const path, small = "/branches/default/mcp", "/branches/small/mcp"
	heard := map[string]<-chan string{
		"ann":              d.Stream(t, path, d.SessionAs(t, path, people.Header["ann"])).Events(),
		"bea, modern":      d.Listen(t, path, people.Header["bea"]).Events(),
		"eve":              d.Stream(t, path, d.SessionAs(t, path, people.Header["eve"])).Events(),
		"eve, modern":      d.Listen(t, path, people.Header["eve"]).Events(),
		"ann, at a branch": d.Stream(t, small, d.SessionAs(t, small, people.Header["ann"])).Events(),
	}
	hear := func(who string) {
		t.Helper()
		for {
			select {
			case event := <-heard[who]:
				if strings.Contains(event, "list_changed") {
					return
				}
			case <-time.After(2 * time.Minute):
				t.Fatalf("%s hears nothing", who)
			}
		}
	}
	h.Replace(t, "catalog/home.cue", "Not for the public.", "Not at all for the public.")
	h.MustReload(t, "adopted")
	hear("ann")
	hear("bea, modern")
	// The next change is everyone's at that branch: what they hear next must be it, and the first.
	h.Replace(t, "catalog/home.cue", "The time.", "The time of day.")
	h.MustReload(t, "adopted")
	for _, who := range []string{"ann", "bea, modern", "eve", "eve, modern"} {
		hear(who)
	}
	for who, events := range heard {
		for len(events) > 0 {
			if event := <-events; strings.Contains(event, "list_changed") {
				t.Errorf("%s hears of what is not theirs: %s", who, event)
			}
		}
	}
	for who, want := range map[string]bool{"ann": true, "eve": false} {
		list := servetest.Listed(t, d.Modern(t, path, "tools/list", "", people.Header[who]...))
		if slices.Contains(list, "secret") != want {
			t.Errorf("%s lists %v", who, list)
		}
		r := d.Modern(t, path, "tools/call", `"name":"secret"`, people.Header[who]...)
		if _, failure := r.Result(t); (failure == nil) != want {
			t.Errorf("%s calls: %s", who, r.Body)
		}
	}
}

// conditions are what random policies look at.
var conditions = []string{
	`"staff" in input.principal.groups`, `not "staff" in input.principal.groups`, `input.principal.name == "p1"`, `input.principal.admin`,
	`"internal" in input.tool.tags`, `input.tool.effect == "write"`, `input.branch.labels.audience == "public"`, `input.tool.name == input.principal.name`,
	`count(input.principal.groups) > 1`, `startswith(input.tool.name, "t1")`, `input.principal == {"name": "p2", "groups": [], "admin": false, "local": false}`,
}

func randomRule(rng *rand.Rand, point string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "package catalogd.%s\n\n", point)
	for i := range 1 + rng.IntN(2) {
		fmt.Fprintf(&b, "deny contains \"rule %d\" if {\n", i)
		for _, c := range rng.Perm(len(conditions))[:1+rng.IntN(2)] {
			fmt.Fprintf(&b, "\t%s\n", conditions[c])
		}
		b.WriteString("}\n")
	}
	return b.String()
}

func randomTools(rng *rand.Rand) string {
	var b strings.Builder
	b.WriteString("package catalog\n\nbranches: default: {}\nbranches: public: labels: audience: \"public\"\nbranches: small: select: names: [\"t1*\"]\n")
	for i := range 14 {
		fmt.Fprintf(&b, "tools: t%d: {description: \"Tool %d.\", effect: %q, tags: %s, binding: jq: program: \"1\"}\n",
			i, i, []string{"read", "write"}[rng.IntN(4)/3], []string{"[]", `["internal"]`, `["internal", "x"]`}[rng.IntN(3)])
	}
	return b.String()
}

// Under random catalogs, policies and principals, over generations that take over what they can from each other: a branch
// lists to a principal exactly what a fresh engine lets that principal see and call, and exactly what is listed is not
// unknown to a call and can be called (I1, T3).
func TestListIsWhatCallAllows(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(6, 1))
	h := servetest.NewHouse(t)
	h.Set("policy/adopt/data.yaml", "may_empty: [default, public, small]\n")
	h.Set("catalog/home.cue", randomTools(rng))
	h.Set("policy/random_list.rego", randomRule(rng, "list"))
	h.Set("policy/random_call.rego", strings.Replace(h.Get("policy/random_list.rego"), "catalogd.list", "catalogd.call", 1))
	if err := h.Open(t); err != nil {
		t.Fatal(err)
	}
	people := []decision.Principal{decision.Local()}
	for i := range 8 {
		p := servetest.Person(fmt.Sprint("p", i))
		for _, group := range []string{"staff", "guests", "x"} {
			if rng.IntN(2) == 0 {
				p.Groups = append(p.Groups, group)
			}
		}
		p.Admin = rng.IntN(4) == 0
		people = append(people, p)
	}
	for range 6 {
		fresh, problems := decision.Load(t.Context(), h.Files, decision.Config{Deadline: 10 * time.Second})
		if fresh == nil {
			t.Fatal(problems.Err())
		}
		var all sync.WaitGroup // principals come at once, as clients do
		for _, p := range people {
			all.Go(func() { listIsWhatCallAllowsTo(t, h, fresh, p) })
		}
		all.Wait()
		// One of both changes, or both do.
		what := rng.IntN(3)
		if what != 1 {
			h.Set("catalog/home.cue", randomTools(rng))
		}
		if what != 0 {
			h.Set("policy/random_list.rego", randomRule(rng, "list"))
			h.Set("policy/random_call.rego", randomRule(rng, "call"))
		}
		if o := h.Reload(t.Context()); o.Result == "refused" {
			t.Fatal(o.Problems)
		}
	}
}

func listIsWhatCallAllowsTo(t *testing.T, h *servetest.House, fresh *decision.Engine, p decision.Principal) {
	g, release := h.Pin()
	defer release()
	for _, branch := range g.Branches() {
		path, ok := g.PathFor(branch, p)
		if !ok {
			t.Errorf("no branch %s", branch)
			return
		}
		declared := path.View.Branch()
		for _, e := range g.Registry().Entries() {
			name := e.Name()
			_, unknown := path.View.Lookup(name)
			listed := unknown == nil
			allowed := fresh.List(t.Context(), decision.ListInput{Branch: invoke.PolicyBranch(declared), Tool: invoke.PolicyTool(e), Principal: p})
			callable := fresh.Call(t.Context(), decision.CallInput{Branch: invoke.PolicyBranch(declared), Tool: invoke.PolicyTool(e), Principal: p})
			if want := declared.Admits(*e.Declared()) && allowed.Allow && callable.Allow; listed != want {
				t.Errorf("%s lists %s to %+v: %v, want %v (%v, %v)", branch, name, p, listed, want, allowed.Reasons, callable.Reasons)
			}
			call := path.Call(t.Context(), invoke.Request{Tool: name, Principal: p})
			code := registry.ErrorCode("")
			if call.Err != nil {
				code = call.Err.Code
			}
			if (code == registry.UnknownTool) == listed {
				t.Errorf("%s lists %s to %+v: %v, and a call is answered %q", branch, name, p, listed, code)
			}
			if !listed && call.Decision != "" {
				t.Errorf("%s: the policy was asked about a call of the hidden %s", branch, name)
			}
			if listed && code == registry.Denied {
				t.Errorf("%s lists %s to %+v, and a call is denied: %v", branch, name, p, call.Reasons)
			}
		}
	}
}

// What is kept for principals is bounded, however many come; what is not kept is decided on again, and the same.
func TestViewsAreBounded(t *testing.T) {
	t.Parallel()
	for _, bound := range []struct {
		name                    string
		rule                    string
		views, tools            int
		kept, keptTools, differ int // at the end; kept is 0 where only the bounds are reported
	}{
		// Everyone's list is one of two, of 5 tools and of 4, and the three built-in ones.
		{"views", `input.tool.name == "upper"; endswith(input.principal.name, "7")`, 30, 1000, 30, 15, 2},
		// Everyone has a list of their own, of at most 5 tools.
		{"tools", `bits.and(to_number(trim_left(input.principal.name, "p")), {"upper": 1, "secret": 2, "clock": 4, "wipe": 8, "remote_echo": 16}[input.tool.name]) != 0`, 1000, 20, 0, 0, 32},
	} {
		t.Run(bound.name, func(t *testing.T) {
			t.Parallel()
			h := servetest.NewHouse(t)
			h.Set("policy/each.rego", "package catalogd.list\n\ndeny contains \"not yours\" if {\n\t"+bound.rule+"\n}\n")
			if err := h.Open(t); err != nil {
				t.Fatal(err)
			}
			g, release := h.Pin()
			defer release()
			g.BoundViews(bound.views, bound.tools)
			first, digests := map[string][]string{}, map[string]bool{}
			for round := range 2 {
				for i := range 64 {
					p := servetest.Person(fmt.Sprint("p", i))
					path, _ := g.PathFor("default", p)
					digests[path.View.Digest()] = true
					if round == 0 {
						first[p.Name] = path.View.Names()
					} else if names := path.View.Names(); !slices.Equal(names, first[p.Name]) {
						t.Errorf("%s: %v, and first %v", p.Name, names, first[p.Name])
					}
					if views, tools := g.KeptViews(); views > bound.views || tools > bound.tools {
						t.Fatalf("%d views of %d tools are kept", views, tools)
					}
				}
			}
			if views, tools := g.KeptViews(); bound.kept != 0 && (views != bound.kept || tools != bound.keptTools) || len(digests) != bound.differ {
				t.Errorf("%d views of %d tools are kept; %d are different", views, tools, len(digests))
			}
		})
	}
}
