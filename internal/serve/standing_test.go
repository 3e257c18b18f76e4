package serve_test

import (
	"slices"
	"testing"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/serve"
)

// What a matrix says to be visible is what is listed, and what it says to be callable or denied is what calls are answered.
func TestStandingsAreWhatIsServed(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.set("policy/staff.rego", staffOnly)
	h.set("policy/eve.rego", "package catalogd.call\n\ndeny contains \"not eve\" if {\n\tinput.tool.name == \"clock\"\n\tinput.principal.name == \"eve\"\n}\n\ndeny contains \"short\" if {\n\tinput.tool.name == \"upper\"\n\tcount(input.arguments.text) > 100\n}\n")
	if err := h.open(t); err != nil {
		t.Fatal(err)
	}
	people := []decision.Principal{decision.Local(), person("ann", "staff"), person("bob"), person("eve")}
	g, release := h.Pin()
	defer release()
	all, err := g.Standings(t.Context(), people)
	if err != nil {
		t.Fatal(err)
	}
	if want := len(people) * len(g.Branches()) * g.Registry().Len(); len(all) != want {
		t.Errorf("%d standings, want %d", len(all), want)
	}
	kinds := map[serve.Access]bool{}
	for _, s := range all {
		kinds[s.Access] = true
		p := people[slices.IndexFunc(people, func(p decision.Principal) bool { return p.Name == s.Principal })]
		if listed := slices.Contains(h.sees(t, s.Branch, p), s.Tool); listed != s.Visible() {
			t.Errorf("%+v, listed: %t", s, listed)
		}
	}
	for _, kind := range []serve.Access{serve.Callable, serve.Depends, serve.Effectful, serve.Refused, serve.Hidden} {
		if !kinds[kind] {
			t.Errorf("nothing is %s", kind)
		}
	}
	eve := slices.IndexFunc(all, func(s serve.Standing) bool { return s.Principal == "eve" && s.Tool == "clock" && s.Branch == "default" })
	if s := all[eve]; s.Access != serve.Refused || s.Why != "not eve" {
		t.Errorf("%+v", s)
	}
}
