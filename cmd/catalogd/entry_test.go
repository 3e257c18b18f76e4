package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/catalogd/catalogd"
	"github.com/catalogd/catalogd/decision"
	access "github.com/catalogd/catalogd/internal/token"
	"github.com/catalogd/catalogd/registry"
)

// What a policy that tells what it was asked answers: a call is denied with its whole input as the reason, but for the time and
// the rate, which differ from call to call, and the tool
// "hidden" is listed to nobody, "staff" to staff alone.
const (
	tellingCall = `package catalogd.call

default allow := false

deny contains json.marshal(object.union(object.remove(input, ["time", "rate"]), {"timed": input.time != ""}))
`
	tellingList = `package catalogd.list

default allow := false

allow if input.tool.name in {"echo", "other"}

allow if {
	input.tool.name == "staff"
	"staff" in input.principal.groups
}
`
	tellingCUE = `package catalog

branches: default: labels: team: "blue"
tools: echo: {
	description: "Say it again."
	args: {text!: string, times: *1 | int}
	effect: "read"
	tags: ["x"]
	binding: jq: program: ".text"
}
tools: [N=("hidden" | "other" | "staff")]: {
	description: "Tool \(N)."
	effect:      "read"
	binding: jq: program: "1"
}
tools: {hidden: _, other: _, staff: _}
`
	askedArguments = `{"text": "Grüße", "times": 9007199254740993}`
)

// telling is a catalog whose policy tells what it is asked.
func telling(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	files := map[string]string{"catalog/tools.cue": tellingCUE, "policy/call.rego": tellingCall, "policy/list.rego": tellingList}
	err := fs.WalkDir(catalogd.Starter(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasPrefix(name, "catalog/") || strings.HasSuffix(name, "_test.rego") {
			return err
		}
		if _, own := files[name]; own {
			return nil
		}
		data, err := fs.ReadFile(catalogd.Starter(), name)
		files[name] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// house is a served catalog, and how each entry point is reached. With a secret the principal is its bearer's.
type house struct {
	catalog   *catalogd.Catalog
	dir, url  string
	secret    string
	principal decision.Principal
}

func (h *house) branch() catalogd.Branch { return h.catalog.Branch("default").As(h.principal) }

// entry is one way in. call calls a tool and returns what is said of that; list names the tools that it shows.
type entry struct {
	call func(*testing.T, *house, string) string
	list func(*testing.T, *house) []string
	// local has no tokens: whoever uses it has the files.
	local bool
}

var entries = map[string]entry{
	"HTTP, 2026-07-28":  {call: overHTTP(true), list: listsOverHTTP(true)},
	"HTTP, older eras":  {call: overHTTP(false), list: listsOverHTTP(false)},
	"stdio, 2026-07-28": {call: overStdio(true), list: listsOverStdio(true), local: true},
	"stdio, older eras": {call: overStdio(false), list: listsOverStdio(false), local: true},
	"HTTP API, tools of a branch": {list: func(t *testing.T, h *house) (names []string) {
		var offers struct{ Tools []struct{ Name string } }
		decode(t, h.request(t, http.MethodGet, "/branches/default/tools", "", nil), &offers)
		for _, tool := range offers.Tools {
			names = append(names, tool.Name)
		}
		return names
	}},
	"HTTP API, calls of a branch": {call: func(t *testing.T, h *house, tool string) string {
		return string(h.request(t, http.MethodPost, "/branches/default/calls", envelopeOf(tool), nil))
	}},
	"catalogd act": {local: true, call: func(t *testing.T, h *house, tool string) string {
		return h.command(t, "act", "default", messageFile(t, tool))
	}},
	"catalogd act --server": {call: func(t *testing.T, h *house, tool string) string {
		return h.command(t, "act", "default", messageFile(t, tool), "--server", h.url)
	}},
	"Go, Branch.Act": {call: func(t *testing.T, h *house, tool string) string {
		out, err := h.branch().Act(t.Context(), []byte(envelopeOf(tool)), catalogd.ActOrder{})
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}},
	"catalogd call": {local: true, call: func(t *testing.T, h *house, tool string) string {
		return h.command(t, "call", "default", tool, "--args", askedArguments)
	}},
	"catalogd call --server": {call: func(t *testing.T, h *house, tool string) string {
		return h.command(t, "call", "default", tool, "--args", askedArguments, "--server", h.url)
	}},
	"catalogd call --dry-run": {local: true, call: func(t *testing.T, h *house, tool string) string {
		return h.command(t, "call", "default", tool, "--args", askedArguments, "--dry-run")
	}},
	"catalogd list": {local: true, list: func(t *testing.T, h *house) (names []string) {
		var branches []struct{ Tools []struct{ Name string } }
		decode(t, []byte(h.command(t, "list", "--format", "json")), &branches)
		for _, tool := range branches[0].Tools {
			names = append(names, tool.Name)
		}
		return names
	}},
	"catalogd schema": {local: true, list: func(t *testing.T, h *house) (names []string) {
		var offers struct{ Tools []struct{ Name string } }
		decode(t, []byte(h.command(t, "schema", "default", "--format", "json")), &offers)
		for _, tool := range offers.Tools {
			names = append(names, tool.Name)
		}
		return names
	}},
	"Go, Branch.Call": {
		call: func(t *testing.T, h *house, tool string) string {
			call, err := h.branch().Call(t.Context(), tool, []byte(askedArguments))
			return ended(t, call, err)
		},
		list: func(t *testing.T, h *house) (names []string) {
			tools, err := h.branch().Tools()
			if err != nil {
				t.Fatal(err)
			}
			for _, tool := range tools {
				names = append(names, tool.Name)
			}
			return names
		},
	},
	"Go, Branch.Plan": {
		call: func(t *testing.T, h *house, tool string) string {
			_, call, err := h.branch().Plan(t.Context(), tool, []byte(askedArguments))
			return ended(t, call, err)
		},
		list: func(t *testing.T, h *house) (names []string) {
			offers, err := h.branch().Offer(registry.All())
			if err != nil {
				t.Fatal(err)
			}
			for _, raw := range offers.Tools {
				var tool struct{ Name string }
				decode(t, raw, &tool)
				names = append(names, tool.Name)
			}
			return names
		},
	},
	"catalogd explain --server": {local: true, call: func(t *testing.T, h *house, tool string) string {
		return h.command(t, "explain", "default", tool, "--args", askedArguments, "--format", "json", "--server", h.url)
	}},
	"catalogd explain": {local: true, call: func(t *testing.T, h *house, tool string) string {
		return h.command(t, "explain", "default", tool, "--args", askedArguments, "--format", "json")
	}},
}

// envelopeOf is a provider's message with one call, in the form that tells the most.
func envelopeOf(tool string) string {
	return fmt.Sprintf(`{"function":%q,"arguments":%s}`, tool, askedArguments)
}

func messageFile(t *testing.T, tool string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "message.json")
	if err := os.WriteFile(name, []byte(envelopeOf(tool)), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// inCode are the places where a call, a question to the policy, or a look at what a branch shows begins: each with the
// entry points of this test that go through it, or why it is none.
var inCode = map[string]string{
	"act.go Branch.Act":                                               "Go, Branch.Act; catalogd act",
	"internal/httpapi/calls.go API.runCalls":                          "HTTP API, calls of a branch; catalogd act --server",
	"branch.go Branch.Call":                                           "Go, Branch.Call; catalogd call",
	"branch.go Branch.Plan":                                           "Go, Branch.Plan; catalogd call --dry-run",
	"branch.go Branch.Tools":                                          "Go, Branch.Call; catalogd list",
	"internal/mcpserver/tools_call.go branch.call":                    "HTTP, 2026-07-28; HTTP, older eras; stdio, 2026-07-28; stdio, older eras; catalogd call --server",
	"internal/mcpserver/direct_call.go Server.NotBegun":               "none: it records a call that was not begun",
	"internal/mcpserver/server.go branch.path":                        "HTTP, 2026-07-28; HTTP, older eras; stdio, 2026-07-28; stdio, older eras",
	"internal/generation/offers.go Generation.Offer":                  "HTTP API, tools of a branch; Go, Branch.Plan; catalogd schema",
	"internal/generation/offers.go Generation.Declared":               "HTTP API, tools of a branch",
	"internal/generation/explain.go Generation.Explain":               "catalogd explain",
	"cmd/catalogd/explain.go explainCmd.Run":                          "catalogd explain",
	"branch.go Branch.Explain":                                        "none: it is Generation.Explain for programs in Go",
	"internal/generation/recompute.go Generation.Recompute":           "none: it answers a past question of the log once more, for the operator",
	"internal/generation/examples.go Generation.TestExamples":         "none: examples are about tools, and whoever has the files runs them (example.go)",
	"internal/mcpserver/passthrough.go passthroughRequest.decide":     "none: it is where all requests about resources and prompts are decided, which come over MCP alone",
	"internal/generation/passthrough.go Generation.decidePassthrough": "none: it is where all lists of resources and prompts are decided",
	"internal/generation/access.go Generation.accessCell":             "none: it foretells what calls meet, for the operator (matrix, diff)",
	"internal/generation/access.go Generation.Responsible":            "none: it names the rules behind that",
	"internal/generation/explain.go explaining.run":                   "catalogd explain; catalogd explain --server",
	"internal/generation/explain_lineage.go explaining.lineage":       "catalogd explain; catalogd explain --server",
	"internal/generation/explain_lineage.go explaining.listed":        "catalogd explain; catalogd explain --server",
	"internal/httpapi/explain.go API.request":                         "catalogd explain --server",
	"internal/httpapi/explain.go API.plan":                            "none: it is Branch.Plan for the operator, over HTTP",
	"internal/generation/input.go Generation.Inputs":                  "none: it makes what a policy would be asked, and asks nothing",
	"cmd/catalogd/input.go inputCmd.Run":                              "none: it prints that",
	"internal/generation/list_decision.go calling":                    "none: it is the call of which a list is asked whether it is denied whatever it brings",
	"internal/diff/population.go newPopulation":                       "none: it makes the questions by which diff compares two policies",
	"internal/generation/unseen.go Generation.shownTo":                "none: it warns of tools that nobody sees",
	"internal/generation/unseen.go Generation.grants":                 "none: it tries what would show them",
	"internal/generation/branches.go assembly.refused":                "none: it words the warning of a branch that sees nothing",
	"internal/generation/list_cache.go listQuestions.decide":          "none: it is where all lists are decided",
	"invoke/invoke.go Path.checkAndDecide":                            "none: it is where all calls are decided",
	"internal/generation/views.go Generation.retryView":               "none: it decides a list anew that was not decided in time",
	"internal/mcpserver/tools_list.go encodedLists.keep":              "none: it keeps encoded lists",
	"internal/httpapi/metrics.go Metrics.Collect":                     "none: it counts tools for the operator",
	"internal/httpapi/server.go listDeclared":                         "none: it counts the tools of the same view",
	"internal/httpapi/conversations.go API.change":                    "none: it asks whether there is such a branch",
	"internal/httpapi/conversations.go API.deleteBranch":              "none: it asks whether there is such a branch",
	"internal/generation/fork.go Generation.Fork":                     "none: it looks at the view of the parent",
	"internal/generation/fork.go Generation.Change":                   "none: it looks at the view of the parent",
	"internal/generation/conversations.go Generation.conversation":    "none: it compares the same view with what it showed before",
	"internal/generation/fork_path.go Generation.retryFork":           "none: it decides a list anew that was not decided in time",
	"branch.go Branch.Tool":                                           "none: it looks at the view of Branch.Tools",
	"internal/generation/fork_path.go Generation.chainPath":           "none: it is the path of a conversation branch, below that of the declared one",
	"internal/generation/builtin_tools.go Generation.view":            "none: it decides on the built-in tools beside the lists of the others",
	"invoke/effect_turn.go Path.askAgain":                             "none: it decides on a call anew that was decided on, before it is executed",
	"internal/daemon/effects.go Effects.now":                          "none: it is where all intents find what they are executed on",
	"internal/generation/kept_result.go Generation.KeptResult":        "none: it shows what came of a call that was decided on, and asks the result decision again",

	"internal/generation/fork_functions.go Generation.withheldFunction": "none: it says why a function is not shown, which its owner has added",
}

// TestEntryPoints asks every way in for the same call, and holds the policy's own account of what it was asked together;
// and it holds what each shows together. A way in that is not in this test is found by looking at the code.
func TestEntryPoints(t *testing.T) {
	t.Parallel()
	dir := telling(t)
	tokens := filepath.Join(t.TempDir(), "tokens")
	secret, hash := access.New()
	if err := access.Add(tokens, access.Token{Name: "ann", Hash: hash, Branches: []string{"default"}, Groups: []string{"staff"}}); err != nil {
		t.Fatal(err)
	}
	for _, h := range []*house{
		{dir: dir, principal: decision.Local()},
		{dir: dir, principal: decision.Principal{Name: "ann", Groups: []string{"staff"}}, secret: secret},
	} {
		cfg := catalogd.Config{Dir: dir}
		shown := []string{"echo", "other"}
		if h.secret != "" {
			cfg.Tokens = tokens
			shown = append(shown, "staff")
		}
		h.serve(t, cfg)
		want := fmt.Sprintf(`{"arguments":{"text":"Grüße","times":9007199254740993},"branch":{"labels":{"team":"blue"},"name":"default","session":""},"principal":{"admin":%v,"groups":%s,"local":%v,"name":%q},`+
			`"timed":true,"tool":{"binding":"jq","deprecated":false,"discovered":false,"effect":"read","name":"echo","server":"","tags":["x"],"trust":""}}`,
			h.principal.Admin, quoted(t, h.principal.Groups), h.secret == "", h.principal.Name)
		for name, e := range entries {
			if e.local && h.secret != "" {
				continue
			}
			t.Run(h.principal.Name+"/"+name, func(t *testing.T) {
				if e.call != nil {
					if got := told(e.call(t, h, "echo")); got != want {
						t.Errorf("the policy was asked\n%s\nand elsewhere\n%s", got, want)
					}
					hidden, missing := e.call(t, h, "hidden"), e.call(t, h, "hiddem")
					if told(hidden) != "" {
						t.Errorf("the policy was asked about a call of a hidden tool: %s", hidden)
					}
					// explain is the operator's, and says what hides a tool.
					if want := strings.ReplaceAll(missing, "hiddem", "hidden"); !strings.HasPrefix(name, "catalogd explain") && withoutID(hidden) != withoutID(want) {
						t.Errorf("a hidden tool is answered\n%s\nand one that never was\n%s", hidden, want)
					}
				}
				if e.list != nil {
					if diff := cmp.Diff(shown, e.list(t, h)); diff != "" {
						t.Error(diff)
					}
				}
			})
		}
	}
}

// TestEntryPointsAreAll finds in the code what begins a call, asks the policy about lists or calls, or looks at what a
// branch shows: it must be in the table, so that TestEntryPoints can't forget a way in.
func TestEntryPointsAreAll(t *testing.T) {
	t.Parallel()
	found := map[string]bool{}
	root := os.DirFS("../..")
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (name == "bench" || d.Name() == "testdata" || d.Name() == "servetest" || d.Name() == "node_modules" || strings.HasPrefix(d.Name(), ".") && name != ".") {
			return fs.SkipDir
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		src, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, src, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, d := range file.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || !begins(fn) {
				continue
			}
			found[name+" "+nameOf(fn)] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for place := range found {
		if _, ok := inCode[place]; !ok {
			t.Errorf("%s begins a call, asks the policy or looks at what a branch shows: add it to inCode, and its way in to entries", place)
		}
	}
	for place, ways := range inCode {
		if !found[place] {
			t.Errorf("%s is in inCode and not in the code", place)
		}
		if strings.HasPrefix(ways, "none: ") {
			continue
		}
		for way := range strings.SplitSeq(ways, "; ") {
			if _, ok := entries[way]; !ok {
				t.Errorf("%s: there is no entry %q", place, way)
			}
		}
	}
	for way := range entries {
		if !slices.ContainsFunc(slices.Collect(func(yield func(string) bool) {
			for _, ways := range inCode {
				if !yield(ways) {
					return
				}
			}
		}), func(ways string) bool { return slices.Contains(strings.Split(ways, "; "), way) }) {
			t.Errorf("%s goes through nothing", way)
		}
	}
}

// begins reports whether a function makes what a call or a question begins with, or takes a branch's path.
func begins(fn *ast.FuncDecl) (yes bool) {
	ast.Inspect(fn, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CompositeLit:
			if s, ok := n.Type.(*ast.SelectorExpr); ok {
				x, _ := s.X.(*ast.Ident)
				made := fmt.Sprint(x, ".", s.Sel)
				yes = yes || slices.Contains([]string{"invoke.Request", "decision.ListInput", "decision.CallInput"}, made)
			}
		case *ast.CallExpr:
			if s, ok := n.Fun.(*ast.SelectorExpr); ok {
				x, _ := s.X.(*ast.Ident)
				yes = yes || s.Sel.Name == "PathFor" || s.Sel.Name == "Path" && x != nil && x.Name == "g"
			}
		}
		return true
	})
	return yes
}

func nameOf(fn *ast.FuncDecl) string {
	if fn.Recv == nil {
		return fn.Name.Name
	}
	t := fn.Recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	return fmt.Sprint(t, ".", fn.Name)
}

const era2025, era2026 = "2025-11-25", "2026-07-28"

const initializing = `"protocolVersion":"` + era2025 + `","capabilities":{},"clientInfo":{"name":"t","version":"1"}`

type response struct {
	header http.Header
	body   []byte
}
