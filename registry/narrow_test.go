package registry_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// cities are arguments of a server's tool: open, and with a default that is the server's own.
func cities(t *registry.Tool) {
	t.Args = contract.Spec{
		Schema:   json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"},"tenant":{"type":"string"},"limit":{"anyOf":[{"type":"integer","maximum":100},{"type":"null"}],"default":10}},"required":["tenant"]}`),
		Upstream: true, NoFill: true, Strictness: contract.Open,
		Fields: []contract.Field{{Name: "city"}, {Name: "tenant", Required: true}, {Name: "limit"}},
	}
	t.Annotations = json.RawMessage(`{"title":"Of the server","readOnlyHint":true}`)
}

func narrow(args string) registry.Narrowing {
	return registry.Narrowing{Args: &contract.Narrowing{Schema: json.RawMessage(args)}}
}

func branchOf(narrow map[string]registry.Narrowing) registry.Branch {
	return registry.Branch{Name: "b", Narrow: narrow, Source: registry.Source{Fields: map[string]problem.Position{
		"narrow.search.args.limit": {File: "b.cue", Line: 5}, "narrow.search.args": {File: "b.cue", Line: 4},
		"narrow.search.name": {File: "b.cue", Line: 6}, "narrow.other.name": {File: "b.cue", Line: 7},
	}}}
}

// TestNarrowedView: lists, lookups, near names and copies have the branch's name, and the declaration has the catalog's, by which
// policies decide.
func TestNarrowedView(t *testing.T) {
	t.Parallel()
	n := narrow(`{"properties":{"tenant":{"const":"acme"},"limit":{"maximum":50,"default":5}}}`)
	n.Name, n.Title, n.Description = "find", "Find", "Finds."
	b := branchOf(map[string]registry.Narrowing{"search": n})
	r, problems := registry.New(&registry.Build{Tools: []registry.Tool{tool("search", cities), tool("glance")}, Branches: []registry.Branch{b}}, bindEcho, nil, nil)
	if problems.HasErrors() {
		t.Fatal(problems.Err())
	}
	v := registry.NewView(r, b, everything)
	if got := strings.Join(v.Names(), " "); got != "find glance" {
		t.Errorf("got the names %s, want find glance", got)
	}
	if got := strings.Join(v.Catalog(), " "); got != "glance search" {
		t.Errorf("got the catalog's names %s, want glance search", got)
	}
	e, unknown := v.Lookup("find")
	if unknown != nil {
		t.Fatal(unknown)
	}
	d := e.Declared()
	if e.Name() != "find" || d.Name != "search" || e.Tool().Name != "find" || d.Title != "Find" || d.Description != "Finds." ||
		string(d.Annotations) != `{"title":"Find","readOnlyHint":true}` || strings.Contains(string(d.Args.Schema), "tenant") {
		t.Errorf("got %s, %+v", e.Name(), d)
	}
	if _, unknown = v.Lookup("search"); unknown == nil || strings.Contains(unknown.Msg, "tenant") || !v.Hides("search") {
		t.Errorf("got %v for the name in the catalog, want unknown, as hidden", unknown)
	}
	if entries, err := v.Select(registry.Names("find")); err != nil || len(entries) != 1 {
		t.Errorf("selected %v, %v", entries, err)
	}
	for call, want := range map[string]string{
		`{"city":"x"}`:                  `{"city":"x","limit":5,"tenant":"acme"}`,
		`{"more":1,"limit":50}`:         `{"limit":50,"more":1,"tenant":"acme"}`,
		`{"tenant":"acme"}`:             "", // a fixed argument, and in other case
		`{"TENANT":"evil"}`:             "",
		`{"limit":51}`:                  "",
		`{"limit":null}`:                `{"limit":null,"tenant":"acme"}`,
		`{"tenant":null,"city":"Oslo"}`: "",
	} {
		args, found, err := e.Contract().Check(t.Context(), json.RawMessage(call))
		if err != nil || (found != nil) != (want == "") || found == nil && string(args.JSON()) != want {
			t.Errorf("%s: got %s %v %v, want %s", call, args.JSON(), found, err, want)
		}
	}
	if name, ok := b.Catalog("find"); !ok || name != "search" {
		t.Errorf("got %s, %v for find", name, ok)
	}
	if name, ok := b.Catalog("search"); ok {
		t.Errorf("got %s for search, which is shown as find", name)
	}
}

// TestNarrowFaults: each fault is at the narrowing, and names the position of what the tool declares.
func TestNarrowFaults(t *testing.T) {
	t.Parallel()
	search := tool("search", cities, func(t *registry.Tool) { t.Fields["args.limit"] = problem.Position{File: "s.cue", Line: 9} })
	keyed := order("{order_id}")
	keyed.Name = "search"
	for _, tc := range []struct {
		name string
		tool registry.Tool
		says map[string]registry.Narrowing
		want string
	}{
		{"wider", search, map[string]registry.Narrowing{"search": narrow(`{"properties":{"limit":{"maximum":101}}}`)},
			`b.cue:5: bad_narrowing: branches.b.narrow.search.args.limit: tool "search": /limit: maximum 101 is wider than the tool's own maximum 100: a branch only takes away (see s.cue:9)`},
		{"nothing", search, map[string]registry.Narrowing{"search": {}}, "changes nothing"},
		{"its own name", search, map[string]registry.Narrowing{"search": {Name: "search"}}, "b.cue:6: bad_narrowing: branches.b.narrow.search.name: this is the tool's own name"},
		{"no name", search, map[string]registry.Narrowing{"search": {Name: "a b"}}, "b.cue:6: bad_name"},
		{"another's name", search, map[string]registry.Narrowing{"search": {Name: "Other"}}, `b.cue:6: duplicate_name: branches.b.narrow.search.name: branch "b" would show two tools`},
		{"one name for two", search, map[string]registry.Narrowing{"search": {Name: "x"}, "other": {Name: "x"}}, "duplicate_name"},
		{"an unknown tool", search, map[string]registry.Narrowing{"serach": {Name: "x"}}, "unknown_tool: branches.b.narrow.serach: there is no tool serach; did you mean search?"},
		{"one key for all calls", keyed, map[string]registry.Narrowing{"search": narrow(`{"properties":{"order_id":{"const":"7"}}}`)},
			"b.cue:4: bad_narrowing: branches.b.narrow.search.args: every argument in the idempotencyKey"},
	} {
		b := branchOf(tc.says)
		tools := []registry.Tool{tc.tool, tool("other")}
		if _, problems := registry.New(&registry.Build{Tools: tools, Branches: []registry.Branch{b}}, bindEcho, nil, nil); !strings.Contains(problems.Err().Error(), tc.want) {
			t.Errorf("%s: got %v, want %s", tc.name, problems, tc.want)
		}
		// The same said by a branch that was never checked shows none of the tools that it is about.
		r := open(t, tools...)
		for name, n := range tc.says {
			if v := registry.NewView(r, b, everything); n.Args != nil && tc.name == "wider" && slices.Contains(v.Catalog(), name) || strings.Contains(tc.want, "duplicate") && v.Len() > 1 {
				t.Errorf("%s: got %v shown", tc.name, v.Names())
			}
		}
	}
}

// TestNarrowedFingerprint: an approval is good for what the branch says of the arguments, and for no other.
func TestNarrowedFingerprint(t *testing.T) {
	t.Parallel()
	r := open(t, tool("search", cities))
	of := func(n registry.Narrowing, strictness map[string]contract.Strictness) *registry.Entry {
		b := branchOf(map[string]registry.Narrowing{"search": n})
		b.Strictness = strictness
		v := registry.NewView(r, b, everything)
		if v.Len() != 1 {
			t.Fatalf("%v is not shown", n)
		}
		return v.Entries()[0]
	}
	acme, evil := of(narrow(`{"properties":{"tenant":{"const":"acme"}}}`), nil), of(narrow(`{"properties":{"tenant":{"const":"evil"}}}`), nil)
	if acme.Fingerprint() == evil.Fingerprint() {
		t.Error("another fixed value has the same fingerprint")
	}
	// exact is about what is shown: with the optional arguments fixed, none is left.
	exact := of(narrow(`{"properties":{"city":{"const":"Oslo"},"limit":{"const":1}}}`), map[string]contract.Strictness{"search": contract.Exact})
	if got := exact.Declared().Args; got.Strictness != contract.Exact || len(got.Fields) != 1 {
		t.Errorf("got %+v", got)
	}
	if args, found, err := exact.Contract().Check(t.Context(), json.RawMessage(`{"tenant":"t"}`)); err != nil || found != nil || string(args.JSON()) != `{"city":"Oslo","limit":1,"tenant":"t"}` {
		t.Errorf("got %s %v %v", args.JSON(), found, err)
	}
	if _, found, err := exact.Contract().Check(t.Context(), json.RawMessage(`{"tenant":"t","more":1}`)); err != nil || found == nil {
		t.Errorf("got %v %v, want a further key refused", found, err)
	}
}
