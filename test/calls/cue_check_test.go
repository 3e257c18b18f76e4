package calls

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/catalogd/catalogd"
	"github.com/catalogd/catalogd/test/internal/harness"
)

// cueCheckedTools are of each kind that CUE checks at the call, in each kind of binding. PORT and RAN are put in.
const cueCheckedTools = `package catalog

_names: {first!: string, last: *"Byron" | string, full: "\(first) \(last)"}
_d: {description: "d", effect: "read"}
tools: span: {_d, args: {start!: int, end!: >start}, binding: jq: program: "."}
tools: reason: {_d, args: {from!: int, to!: int, if to < from {why!: string}}, binding: jq: program: "."}
tools: after: {_d, args: {start!: int, end: *(start + 1) | int}, binding: jq: program: "."}
tools: names_jq: {_d, args: _names, binding: jq: program: "."}
tools: names_exec: {_d, args: _names, binding: exec: {command: "tee", argv: ["RAN"], stdin: "json", stdout: "json"}}
tools: names_http: {_d, args: _names, binding: http: {method: "POST", url: "http://127.0.0.1:PORT/echo", body: kind: "json", output: "json"}}
tools: word: {_d, args: text!: string, result: word!: =~"(?i)^[a-z]+$", binding: jq: program: "{word: .text}"}
tools: hush: {_d, args: {key!: string @secret(), lo!: int, hi!: >lo, name!: string, other!: !=name}, binding: jq: program: "."}
tools: loose: {_d, strictness: "open", args: {n!: int, m!: int, if n > m {extra?: string}}, binding: jq: program: "."}
tools: slow: {_d, args: {n!: int, l!: [...>n]}, binding: jq: program: "(.l | length)"}
branches: shop: {}
branches: strict: strictness: loose: "closed"
`

func cueCheckedCatalog(t *testing.T) string {
	t.Helper()
	echo := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.Copy(w, r.Body) // a client that is gone
	}))
	t.Cleanup(echo.Close)
	u, err := url.Parse(echo.URL)
	if err != nil {
		t.Fatal(err)
	}
	dir := harness.Starter(t)
	ran := filepath.Join(t.TempDir(), "ran.json")
	tools := strings.NewReplacer("PORT", u.Port(), "RAN", ran).Replace(cueCheckedTools)
	harness.WriteFile(t, filepath.Join(dir, "catalog/remainder.cue"), tools)
	trust := filepath.Join(dir, "policy/trust/data.yaml")
	harness.WriteFile(t, trust, harness.ReadFile(t, trust)+fmt.Sprintf("  tee: {command: [tee, %q], stdin: true}\n  echo: {scheme: http, host: 127.0.0.1, port: %s, addresses: [127.0.0.0/8]}\n", ran, u.Port()))
	access := filepath.Join(dir, "policy/access/data.yaml")
	harness.WriteFile(t, access, strings.Replace(harness.ReadFile(t, access), "branches:\n  default:", "branches:\n  shop: &all\n    tools: [\"*\"]\n  strict: *all\n  default:", 1))
	return dir
}

// cueCheckedCalls say what becomes of calls: what the binding's output has, or what the refusal says after !.
var cueCheckedCalls = []struct{ tool, args, want string }{
	{"span", `{"start":1,"end":2}`, `{"end":2,"start":1}`},
	{"span", `{"start":5,"end":3}`, `! /end: got the number 3, expected > start, which is 5`},
	{"reason", `{"from":1,"to":2}`, `{"from":1,"to":2}`},
	{"reason", `{"from":2,"to":1}`, `! /why: got nothing`},
	{"reason", `{"from":2,"to":1,"why":"back"}`, `{"from":2,"to":1,"why":"back"}`},
	{"reason", `{"from":1,"to":2,"why":"back"}`, `! /why: got the string "back", expected nothing`},
	{"after", `{"start":41}`, `{"end":42,"start":41}`},
	{"after", `{"start":41,"end":7}`, `{"end":7,"start":41}`},
	{"names_jq", `{"first":"Ada"}`, `{"first":"Ada","full":"Ada Byron","last":"Byron"}`},
	{"names_exec", `{"first":"Ada","last":"King"}`, `{"first":"Ada","full":"Ada King","last":"King"}`},
	{"names_http", `{"first":"Ada"}`, `{"first":"Ada","full":"Ada Byron","last":"Byron"}`},
	{"names_http", `{"first":"Ada","full":"x"}`, `! /full: got a value for a computed argument`},
	{"word", `{"text":"Abc"}`, `{"word":"Abc"}`},
	{"word", `{"text":"a1"}`, `! /word: got something else`},
}

// TestCUEChecks has what a schema can't say hold for calls of clients of both eras and for those inside the process, for
// each kind of binding, for secrets and branches, and after a reload that changes nothing else.
func TestCUEChecks(t *testing.T) {
	dir := cueCheckedCatalog(t)
	r := harness.Serve(t, catalogd.Config{Dir: dir})
	for _, era := range []string{harness.Modern, harness.Legacy} {
		l := harness.Connect(t, r.URL, "shop", era)
		for _, c := range cueCheckedCalls {
			var args map[string]any
			if err := json.Unmarshal([]byte(c.args), &args); err != nil {
				t.Fatal(err)
			}
			got := l.Answer(t.Context(), c.tool, args)
			if says, refused := strings.CutPrefix(c.want, "! "); refused != strings.HasPrefix(got, "failed: ") || !strings.Contains(compact(got), compact(says)) {
				t.Errorf("%s: %s %s: %s, want %s", era, c.tool, c.args, got, c.want)
			}
		}
	}
	call := func(branch, tool, args string) string {
		t.Helper()
		c, err := r.Branch(branch).Call(t.Context(), tool, json.RawMessage(args))
		switch {
		case err != nil:
			t.Fatal(err)
		case c.Err != nil:
			return "! " + c.Err.Msg
		}
		return string(c.Arguments.JSON())
	}
	for _, c := range cueCheckedCalls {
		if got := call("shop", c.tool, c.args); c.tool != "word" && got != c.want && !(strings.HasPrefix(c.want, "!") && strings.Contains(got, c.want[2:])) {
			t.Errorf("inside: %s %s: %s, want %s", c.tool, c.args, got, c.want)
		}
	}

	const key = "k-81549300"
	for _, args := range []string{
		fmt.Sprintf(`{"key":%q,"lo":2,"hi":1,"name":%[1]q,"other":%[1]q}`, key), fmt.Sprintf(`{"key":%q,"lo":2,"hi":3,"name":"x","other":"y","more":%[1]q}`, key),
	} {
		if got := call("shop", "hush", args); !strings.HasPrefix(got, "!") || strings.Contains(got, key) {
			t.Error(got)
		}
	}
	if strings.Contains(r.Log.String(), key) {
		t.Error("the log has it")
	}

	// A stricter branch shows it, and has it hold; a key under an if that is false is none of the tool's in both.
	for _, c := range []struct {
		branch, args string
		refused      bool
	}{
		{"shop", `{"n":1,"m":2,"other":1}`, false}, {"strict", `{"n":1,"m":2,"other":1}`, true},
		{"strict", `{"n":3,"m":2,"extra":"x"}`, false}, {"strict", `{"n":1,"m":2,"extra":"x"}`, true},
	} {
		if got := call(c.branch, "loose", c.args); strings.HasPrefix(got, "!") != c.refused {
			t.Errorf("%s %s: %s", c.branch, c.args, got)
		}
	}
	for branch, closed := range map[string]bool{"shop": false, "strict": true} {
		if shown := shownTool(t, harness.Connect(t, r.URL, branch, harness.Modern), "loose"); strings.Contains(shown, `"additionalProperties":false`) != closed {
			t.Errorf("%s: %s", branch, shown)
		}
	}

	// The rule changes, and what the schema says of it alone is its description.
	before, shown := r.Digest(t), shownTool(t, harness.Connect(t, r.URL, "shop", harness.Modern), "span")
	file := filepath.Join(dir, "catalog/remainder.cue")
	harness.WriteFile(t, file, strings.Replace(harness.ReadFile(t, file), "end!: >start", "end!: >(start + 10)", 1))
	harness.Await(t, "the new rule", func() bool { return strings.HasPrefix(call("shop", "span", `{"start":1,"end":2}`), "! ") })
	if r.Digest(t) == before {
		t.Error("the digest is the same")
	}
	if now := shownTool(t, harness.Connect(t, r.URL, "shop", harness.Modern), "span"); now == shown || !strings.Contains(now, "(start + 10)") {
		t.Errorf("the list does not say the new rule: %s, before %s", now, shown)
	}
	if got := call("shop", "span", `{"start":1,"end":12}`); got != `{"end":12,"start":1}` {
		t.Error(got)
	}
}

func compact(s string) string { return strings.NewReplacer(" ", "", "\n", "").Replace(s) }

// TestCUECheckTimeout: arguments that keep CUE busy cost their own call, and a child that is killed costs none.
func TestCUECheckTimeout(t *testing.T) {
	r := harness.Serve(t, catalogd.Config{Dir: cueCheckedCatalog(t), Worker: []string{compileWorker}})
	l := harness.Connect(t, r.URL, "shop", harness.Modern)
	works := func() {
		t.Helper()
		// A loaded machine may be late for a quick one, too.
		harness.Await(t, "a call that is quick", func() bool { return l.Answer(t.Context(), "slow", map[string]any{"n": 1, "l": []int{2, 3}}) == "2" })
	}
	works()
	long := make([]int, 150_000)
	for i := range long {
		long[i] = i + 2
	}
	for range 2 {
		if got := l.Answer(t.Context(), "slow", map[string]any{"n": 1, "l": long}); !strings.HasPrefix(got, "failed: ") || !strings.Contains(got, "100ms") {
			t.Errorf("%.300s", got)
		}
		works()
	}
	killed := 0
	for _, pid := range checkers(t, r) {
		if err := syscall.Kill(pid, syscall.SIGKILL); err == nil {
			killed++
		}
	}
	if killed == 0 {
		t.Error("no checker runs")
	}
	works()
}

// checkers are the processes that check calls with CUE, as /status has them.
func checkers(t *testing.T, r *harness.Daemon) []int {
	t.Helper()
	resp, err := http.Get(r.URL + "/status")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var s struct{ Checker struct{ PIDs []int } }
	if err := json.NewDecoder(resp.Body).Decode(&s); err != nil {
		t.Fatal(err)
	}
	return s.Checker.PIDs
}

// TestRepositoryIsACatalog: the project's own catalog is served from its repository, where another module stands below it
// whose tools are not its own.
func TestRepositoryIsACatalog(t *testing.T) {
	root := harness.Root(t)
	if other := harness.ReadFile(t, filepath.Join(root, "testdata/dialect/cue.mod/module.cue")); !strings.Contains(other, "module:") {
		t.Fatal("no module stands below the catalog")
	}
	r := harness.Serve(t, catalogd.Config{Dir: root})
	shown := harness.Connect(t, r.URL, "default", harness.Modern).Listing(t)
	if len(shown) == 0 {
		t.Error("nothing is served")
	}
	for name := range shown {
		if dialect := harness.ReadFile(t, filepath.Join(root, "testdata/dialect/catalog/tools.cue")); strings.Contains(dialect, "tools: "+name+":") {
			t.Errorf("%s is a tool of the other module", name)
		}
	}
}
