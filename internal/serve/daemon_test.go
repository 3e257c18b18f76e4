package serve_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/serve"
	"github.com/catalogd/catalogd/internal/upstream"
	"github.com/catalogd/catalogd/invoke"
	"github.com/catalogd/catalogd/loader"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// house is a catalog in memory that a test edits, with the policy of this repository, and a daemon that serves it. It
// is the daemon's loader.Source.
type house struct {
	*serve.Daemon
	files fstest.MapFS
	pool  *upstream.Pool
	log   *syncBuffer
	// changed are the branches that each swap named; mu guards it, because servers make swaps too.
	mu      sync.Mutex
	changed [][]string
	ended   []serve.Outcome
	// told is called at each swap, where it is set.
	told func(branches []string)
	// unreadable makes every snapshot fail.
	unreadable bool
	// root is the catalog's directory; a temporary one where empty.
	root   string
	commit func(context.Context, string) decision.Commit // nil where nobody knows
}

func (h *house) Snapshot(ctx context.Context) (*loader.Snapshot, problem.List) {
	if h.unreadable {
		var l problem.List
		l.Errorf(problem.Unreadable, problem.Position{File: "catalog"}, "", "the disk is on fire")
		return nil, l
	}
	return loader.Tree{FS: h.files}.Snapshot(ctx)
}

func (h *house) swapped(branches []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.changed = append(h.changed, branches)
	if h.told != nil {
		h.told(branches)
	}
}

func (h *house) set(name, content string) { h.files[name] = &fstest.MapFile{Data: []byte(content)} }

func (h *house) get(name string) string { return string(h.files[name].Data) }

// replace edits a file.
func (h *house) replace(t testing.TB, name, old, new string) {
	t.Helper()
	before := h.get(name)
	after := strings.Replace(before, old, new, 1)
	if before == after {
		t.Fatalf("%s has no %q", name, old)
	}
	h.set(name, after)
}

// save is an edit and a reload that must end as told.
func (h *house) reload(t testing.TB, result string) serve.Outcome {
	t.Helper()
	o := h.Reload(t.Context())
	if o.Result != result {
		t.Fatalf("reload: %s, want %s: %v", o.Result, result, o.Problems)
	}
	return o
}

const homeCUE = `package catalog

branches: default: {}
branches: public: labels: audience: "public"
branches: small: select: names: ["upper"]

tools: upper: {
	description: "Upper-case a text."
	args: text!: string
	effect: "read"
	binding: jq: program: ".text | ascii_upcase"
}
tools: secret: {
	description: "Not for the public."
	effect:      "read"
	tags: ["internal"]
	binding: jq: program: "\"secret\""
}
tools: clock: {
	description: "The time."
	effect:      "read"
	binding: exec: {command: "date", argv: ["-u"]}
}
tools: wipe: {
	description: "Delete all."
	args: force: *false | bool
	effect: "write"
	binding: jq: program: "\"gone\""
}
tools: remote_echo: {
	description: "Of a server."
	effect:      "read"
	binding: mcp: server: "remote"
}
servers: remote: {
	prefix: "remote_"
	transport: http: url: "http://127.0.0.1:1/mcp"
}
`

const homeAccess = `branches:
  default: {tools: ["*"]}
  public: {tools: ["*"], deny: [remote_*]}
  small: {tools: ["*"]}
hide:
  - labels: {audience: public}
    tags: [internal]
    reason: not for the public
`

const homeTrust = `entries:
  clock: {command: [date, -u]}
  remote: {scheme: http, host: 127.0.0.1, port: 1, path: /mcp, addresses: [127.0.0.0/8]}
`

// newHouse is the files of a house that serves nothing yet.
func newHouse(t testing.TB) *house {
	t.Helper()
	h := &house{files: fstest.MapFS{}, log: &syncBuffer{}}
	root := os.DirFS("../..")
	for _, part := range []string{"schema.cue", "cue.mod", "policy"} {
		err := fs.WalkDir(root, part, func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || strings.HasSuffix(name, "_test.rego") { // tests change its policy
				return err
			}
			data, err := fs.ReadFile(root, name)
			h.set(name, string(data))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	h.set("catalog/home.cue", homeCUE)
	h.set("policy/access/data.yaml", homeAccess)
	h.set("policy/trust/data.yaml", homeTrust)
	return h
}

// readSchema is the schema that the binary knows, whatever a test does to its own copy.
func readSchema(t testing.TB) []byte {
	t.Helper()
	schema, err := os.ReadFile("../../schema.cue")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// open makes the daemon. Its error is Open's.
func (h *house) open(t testing.TB) error {
	t.Helper()
	log := slog.New(slog.NewTextHandler(h.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	live := serve.NewLive()
	h.pool = upstream.NewPool(upstream.Config{Logger: log, Watch: live.Watch()})
	t.Cleanup(h.pool.Close)
	d, err := serve.Open(t.Context(), serve.DaemonConfig{
		Source: h,
		Builder: &serve.Builder{
			Root: cmp.Or(h.root, t.TempDir()), Pool: h.pool, Live: live, Log: log,
			Compiler: loader.NewCompiler(loader.Config{Schema: readSchema(t), Logger: log}),
			// The machine that runs the tests may be busy.
			Policy: decision.Config{Deadline: 10 * time.Second, Logger: log},
		},
		Version: "test", Log: log,
		Changed: h.swapped, Commit: h.commit,
		Ended: func(o serve.Outcome) { h.ended = append(h.ended, o) },
	})
	if err == nil {
		h.Daemon = d
		t.Cleanup(d.Close)
	}
	return err
}

func openHouse(t testing.TB) *house {
	t.Helper()
	h := newHouse(t)
	if err := h.open(t); err != nil {
		t.Fatal(err)
	}
	return h
}

// names are the tools that a branch lists.
func (h *house) names(t testing.TB, branch string) []string {
	t.Helper()
	g, release := h.Pin()
	defer release()
	path, ok := g.Path(branch)
	if !ok {
		t.Fatalf("no branch %s", branch)
	}
	return path.View.Names()
}

// call is what a call on the serving generation comes to: its text, or its code.
func (h *house) call(t testing.TB, branch, tool, args string) string {
	t.Helper()
	g, release := h.Pin()
	defer release()
	return outcome(t, callOn(t, g, branch, tool, args))
}

func callOn(t testing.TB, g *serve.Generation, branch, tool, args string) registry.Call {
	t.Helper()
	path, ok := g.Path(branch)
	if !ok {
		t.Fatalf("no branch %s", branch)
	}
	return path.Call(t.Context(), invoke.Request{Tool: tool, Arguments: json.RawMessage(args), Principal: decision.Local()})
}

func outcome(t testing.TB, c registry.Call) string {
	t.Helper()
	if c.Err != nil {
		return string(c.Err.Code)
	}
	var block struct{ Text string }
	if err := json.Unmarshal(c.Result.Content[0], &block); err != nil {
		t.Fatal(err)
	}
	return block.Text
}

// unlinked waits until no generation holds a server any more.
func (h *house) unlinked(t testing.TB) {
	t.Helper()
	until(t, "the servers to be let go", func() bool { return len(h.pool.Status()) == 0 })
}

func TestOpen(t *testing.T) {
	t.Parallel()
	h := openHouse(t)
	s := h.Status()
	if !s.Healthy || s.Failed != nil || s.Version != "test" || s.Generation.Adopted != "bootstrap" || s.Generation.Tools != 5 ||
		s.Generation.Branches != 3 || s.Generation.Hidden != 0 || s.Generation.Since.IsZero() || s.Generation.Policy == "" || s.Warnings == nil {
		t.Errorf("%+v", s)
	}
	if len(s.Servers) != 1 || !s.Servers[0].Trusted || s.Servers[0].Trust != "remote" || s.Servers[0].State != "idle" || s.Servers[0].Pos.String() != "catalog/home.cue:35:10" {
		t.Errorf("%+v", s.Servers)
	}
	for branch, want := range map[string][]string{
		"default": {"clock", "remote_echo", "secret", "upper", "wipe"}, "public": {"clock", "upper", "wipe"}, "small": {"upper"},
	} {
		if got := h.names(t, branch); !slices.Equal(got, want) {
			t.Errorf("%s lists %v, want %v", branch, got, want)
		}
	}
	for _, test := range []struct{ branch, tool, args, want string }{
		{"default", "upper", `{"text": "a"}`, "A"},
		{"default", "upper", `{}`, "invalid_arguments"},
		{"default", "secret", ``, "secret"},
		{"public", "secret", ``, "unknown_tool"},
		{"small", "secret", ``, "unknown_tool"},
		{"default", "nothing", ``, "unknown_tool"},
		{"default", "wipe", ``, "effector_required"},
		{"default", "remote_echo", ``, "unavailable"},
	} {
		if got := h.call(t, test.branch, test.tool, test.args); got != test.want {
			t.Errorf("%s through %s: %s, want %s", test.tool, test.branch, got, test.want)
		}
	}
	if len(h.changed) != 0 || len(h.ended) != 1 || h.ended[0].Result != "adopted" || !slices.Equal(h.ended[0].Changed, []string{"default", "public", "small"}) {
		t.Errorf("changed %v, ended %+v", h.changed, h.ended)
	}
}

// failures are the ways in which files can be unfit, each with the reason and a place that the report must name.
var failures = []struct {
	name, reason, place string
	spoil               func(testing.TB, *house)
	// start says that a first generation is refused for it too.
	start bool
}{
	{"CUE syntax", "problems", "catalog/home.cue:39:1", func(t testing.TB, h *house) { h.set("catalog/home.cue", homeCUE+"]\n") }, true},
	{"CUE value", "problems", "catalog/home.cue:10:", func(t testing.TB, h *house) { h.replace(t, "catalog/home.cue", `effect: "read"`, `effect: "reed"`) }, true},
	{"no catalog", "problems", ".: no_catalog", func(t testing.TB, h *house) {
		maps.DeleteFunc(h.files, func(name string, _ *fstest.MapFile) bool { return strings.HasPrefix(name, "catalog/") })
	}, true},
	{"another schema", "problems", "schema.cue", func(t testing.TB, h *house) { h.set("schema.cue", h.get("schema.cue")+"\n") }, true},
	{"jq", "problems", "catalog/home.cue:11:", func(t testing.TB, h *house) { h.replace(t, "catalog/home.cue", `".text | ascii_upcase"`, `".text |"`) }, true},
	{"pre", "problems", "catalog/home.cue:11:", func(t testing.TB, h *house) {
		h.replace(t, "catalog/home.cue", `binding: jq: program: ".text`, "pre: \"}\"\n\tbinding: jq: program: \".text")
	}, true},
	{"no such command", "problems", "catalog/home.cue:22:", func(t testing.TB, h *house) { h.replace(t, "catalog/home.cue", `"date"`, `"no-such-command-here"`) }, true},
	{"Rego syntax", "problems", "policy/call.rego:", func(t testing.TB, h *house) { h.set("policy/call.rego", h.get("policy/call.rego")+"\nallow if {") }, true},
	{"Rego point", "problems", "policy", func(t testing.TB, h *house) { delete(h.files, "policy/call.rego") }, true},
	{"data", "problems", "policy/access/data.yaml:1", func(t testing.TB, h *house) { h.set("policy/access/data.yaml", "branches: [") }, true},
	{"a data field that nobody reads", "problems", "policy/trust/data.yaml", func(t testing.TB, h *house) {
		h.set("policy/trust/data.yaml", homeTrust+"  more: {comand: [ls]}\n")
	}, true},
	{"no policy", "problems", "policy", func(t testing.TB, h *house) {
		maps.DeleteFunc(h.files, func(name string, _ *fstest.MapFile) bool { return strings.HasPrefix(name, "policy/") })
	}, true},
	{"CUE and Rego", "problems", "policy/list.rego:", func(t testing.TB, h *house) {
		h.set("catalog/home.cue", homeCUE+"]\n")
		h.set("policy/list.rego", h.get("policy/list.rego")+"]\n")
	}, true},
	{"adoption", "adoption_denied", "policy", func(t testing.TB, h *house) {
		h.replace(t, "catalog/home.cue", `branches: small: select: names: ["upper"]`, `branches: small: {select: names: ["upper"], hide: names: ["*"]}`)
	}, false},
	{"unreadable", "source", "catalog", func(t testing.TB, h *house) { h.unreadable = true }, true},
}

// lastGood holds for every way to fail: what serves goes on, the status says why, and the fix is served at once.
func lastGood(t *testing.T) {
	t.Parallel()
	h := openHouse(t)
	round := 0
	for _, f := range failures {
		t.Run(f.name, func(t *testing.T) {
			good := maps.Clone(h.files)
			defer func() { h.files, h.unreadable = good, false }()
			serving, names, changed := h.Status().Generation, h.names(t, "default"), len(h.changed)
			f.spoil(t, h)
			for range 2 { // failing twice is as failing once
				o := h.reload(t, "refused")
				if o.Generation != serving.ID || len(o.Changed) != 0 || !o.Problems.HasErrors() {
					t.Errorf("outcome %+v", o)
				}
				s := h.Status()
				if s.Healthy || s.Failed == nil || s.Failed.Reason != f.reason || s.Generation != serving || s.Failed.At.IsZero() || (s.Failed.Digest == "") != (f.reason == "source") {
					t.Fatalf("status %+v, failed %+v", s, s.Failed)
				}
				if !slices.ContainsFunc(s.Failed.Problems, func(p problem.Problem) bool { return strings.HasPrefix(p.String(), f.place) }) {
					t.Errorf("nothing is reported at %s: %v", f.place, s.Failed.Problems)
				}
			}
			if got := h.names(t, "default"); !slices.Equal(got, names) {
				t.Errorf("lists %v, want %v", got, names)
			}
			if got := h.call(t, "default", "upper", `{"text":"a"}`); got != "A" {
				t.Errorf("call: %s", got)
			}
			if len(h.changed) != changed {
				t.Errorf("told %v", h.changed[changed:])
			}

			// Taking the edit back is no new generation; a fix with something new in it is.
			h.files, h.unreadable = maps.Clone(good), false
			h.reload(t, "unchanged")
			if s := h.Status(); !s.Healthy || s.Failed != nil || s.Generation != serving {
				t.Errorf("taken back: %+v", s)
			}
			f.spoil(t, h)
			h.reload(t, "refused")
			h.files, h.unreadable = maps.Clone(good), false
			round++
			h.set("catalog/more/more.cue", fmt.Sprintf("package catalog\n\ntools: more: {description: \"%d\", effect: \"read\", binding: jq: program: \"%d\"}\n", round, round))
			good = h.files
			h.reload(t, "adopted")
			if s := h.Status(); !s.Healthy || s.Generation.ID == serving.ID || s.Generation.Adopted != "adopted" {
				t.Errorf("fixed: %+v", s)
			}
			if got := h.call(t, "default", "more", ``); got != fmt.Sprint(round) {
				t.Errorf("after the fix: %s", got)
			}
		})
	}
}

// openRefuses holds that what can't be reloaded can't be started with either, and that everything is said.
func openRefuses(t *testing.T) {
	t.Parallel()
	for _, f := range failures {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			f.spoil(t, h)
			err := h.open(t)
			if !f.start {
				if err != nil {
					t.Fatalf("%v, though there was nothing to lose", err)
				}
				return
			}
			refused, ok := err.(*serve.RefusedError)
			if !ok || !strings.Contains(err.Error(), f.place) {
				t.Fatalf("%T %v", err, err)
			}
			if !slices.ContainsFunc(refused.Problems, func(p problem.Problem) bool { return strings.HasPrefix(p.String(), f.place) }) {
				t.Errorf("nothing is reported at %s: %v", f.place, refused.Problems)
			}
			h.unlinked(t)
		})
	}
}

// bothInOneSave (C12): CUE fixed and Rego broken in one save is still refused, and neither applies.
func bothInOneSave(t *testing.T) {
	t.Parallel()
	h := openHouse(t)
	rego := h.get("policy/list.rego")
	h.set("catalog/home.cue", homeCUE+"]\n")
	h.reload(t, "refused")
	h.set("catalog/home.cue", strings.Replace(homeCUE, "upper:", "upper_case:", 1))
	h.set("policy/list.rego", rego+"]\n")
	h.reload(t, "refused")
	if got := h.call(t, "default", "upper_case", `{"text":"a"}`); got != "unknown_tool" {
		t.Errorf("half of the save was served: %s", got)
	}
	h.set("policy/list.rego", rego)
	h.set("catalog/home.cue", homeCUE)
	h.reload(t, "unchanged")
}

// unchanged (C10): the same content is no generation and nobody is told.
func unchanged(t *testing.T) {
	t.Parallel()
	h := openHouse(t)
	before, release := h.Pin()
	release()
	for name, file := range h.files {
		h.files[name] = &fstest.MapFile{Data: bytes.Clone(file.Data), ModTime: time.Now().Add(time.Hour)}
	}
	h.set("catalog/notes.txt", "no part of the catalog")
	o := h.reload(t, "unchanged")
	after, release := h.Pin()
	release()
	if before != after || len(h.changed) != 0 || o.Generation != before.ID || o.Problems == nil || o.Changed == nil {
		t.Errorf("%p, then %p; told %v; %+v", before, after, h.changed, o)
	}
}

// TestChanged holds that exactly those branches are named whose lists differ.
func TestChanged(t *testing.T) {
	t.Parallel()
	h := openHouse(t)
	for _, test := range []struct {
		name string
		edit func()
		want []string
	}{
		{"a comment", func() { h.set("catalog/home.cue", "// A comment.\n"+homeCUE) }, []string{}},
		{"what a tool runs", func() { h.replace(t, "catalog/home.cue", `"\"secret\""`, `"\"other\""`) }, []string{}},
		{"a description that two branches show", func() { h.replace(t, "catalog/home.cue", "The time.", "The time in UTC.") }, []string{"default", "public"}},
		{"a tool that one branch shows", func() { h.replace(t, "catalog/home.cue", "Not for the public.", "Private.") }, []string{"default"}},
		{"a new tool", func() {
			h.set("catalog/a/b.cue", "package catalog\n\ntools: upward: {description: \"x\", effect: \"read\", binding: jq: program: \"1\"}\n")
		}, []string{"default", "public"}},
		{"access data", func() {
			h.replace(t, "policy/access/data.yaml", "small: {tools: [\"*\"]}", "small: {tools: [\"*\"], effects: [read]}")
		}, []string{}},
		{"access data that take away", func() { h.replace(t, "policy/access/data.yaml", "deny: [remote_*]", "deny: [remote_*, upward]") }, []string{"public"}},
		{"a rule", func() {
			h.set("policy/list.rego", h.get("policy/list.rego")+"\ndeny contains \"no clocks\" if input.tool.name == \"clock\"\n")
		}, []string{"default", "public"}},
		{"a branch's labels", func() { h.replace(t, "catalog/home.cue", `audience: "public"`, `audience: "staff"`) }, []string{"public"}},
		{"a new branch", func() { h.set("catalog/home.cue", h.get("catalog/home.cue")+"branches: extra: {}\n") }, []string{"extra"}},
		{"a branch is gone", func() { h.replace(t, "catalog/home.cue", "branches: extra: {}\n", "") }, []string{"extra"}},
	} {
		told := len(h.changed)
		test.edit()
		o := h.reload(t, "adopted")
		if !slices.Equal(o.Changed, test.want) || len(h.changed) != told+1 || !slices.Equal(h.changed[told], test.want) {
			t.Errorf("%s: changed %v, told %v, want %v", test.name, o.Changed, h.changed[told:], test.want)
		}
	}
	if got := h.call(t, "default", "secret", ``); got != "other" {
		t.Errorf("secret answers %s", got)
	}
}

// TestTrustComesAndGoes: what is not trusted any more leaves list and call in one generation, with a warning, and
// comes back with its entry.
func TestTrustComesAndGoes(t *testing.T) {
	t.Parallel()
	h := openHouse(t)
	all := h.names(t, "default")
	for range 2 {
		h.set("policy/trust/data.yaml", "entries: {}\n")
		o := h.reload(t, "adopted")
		if !slices.Equal(o.Changed, []string{"default", "public"}) {
			t.Errorf("changed %v", o.Changed)
		}
		if got, want := h.names(t, "default"), []string{"secret", "upper", "wipe"}; !slices.Equal(got, want) {
			t.Errorf("lists %v, want %v", got, want)
		}
		for _, tool := range []string{"clock", "remote_echo"} {
			if got := h.call(t, "default", tool, ``); got != "unknown_tool" {
				t.Errorf("%s: %s", tool, got)
			}
		}
		s := h.Status()
		if !s.Healthy || s.Generation.Hidden != 2 || s.Servers[0].Trusted || s.Servers[0].State != "untrusted" || len(s.Servers[0].Reasons) == 0 {
			t.Errorf("%+v", s)
		}
		codes := map[problem.Code]problem.Position{}
		for _, w := range s.Warnings {
			codes[w.Code] = w.Position
		}
		if codes[problem.UntrustedServer].String() != "catalog/home.cue:35:10" || codes[problem.UntrustedBinding].Line != 22 {
			t.Errorf("warnings %v", s.Warnings)
		}
		h.unlinked(t)

		h.set("policy/trust/data.yaml", homeTrust)
		h.reload(t, "adopted")
		if got := h.names(t, "default"); !slices.Equal(got, all) {
			t.Errorf("lists %v, want %v", got, all)
		}
		if got := h.call(t, "default", "clock", ``); !strings.Contains(got, "UTC") {
			t.Errorf("clock: %s", got)
		}
	}
}

// swapIsSeenWhole holds that whoever is told of a change finds the new generation, and nobody a mix.
func swapIsSeenWhole(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	edit := func(i int) {
		text := strings.Replace(homeCUE, `"Not for the public."`, fmt.Sprintf(`"%d"`, i), 1)
		h.set("catalog/home.cue", strings.Replace(text, `"\"secret\""`, fmt.Sprintf(`"\"%d\""`, i), 1))
	}
	edit(0)
	if err := h.open(t); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for ctx.Err() == nil {
				g, release := h.Pin()
				call := callOn(t, g, "default", "secret", ``)
				e, ok := g.Registry().Lookup("secret")
				if !ok || call.Generation != g.ID {
					t.Errorf("generation %s, call %+v", g.ID, call)
				} else if want := e.Declared().Description; outcome(t, call) != want {
					t.Errorf("a tool described as %s answers %s", want, outcome(t, call))
				}
				release()
				time.Sleep(time.Millisecond) // the reloads need the machine too
			}
		})
	}
	for i := range 10 {
		edit(i + 1)
		h.reload(t, "adopted")
	}
	stop()
	readers.Wait()
}

// TestClosed: a daemon that has ended answers what it can, hangs nowhere and begins nothing new.
func TestClosed(t *testing.T) {
	t.Parallel()
	h := openHouse(t)
	h.Close()
	h.Close()
	if got := h.call(t, "default", "upper", `{"text":"a"}`); got != "A" {
		t.Errorf("call: %s", got)
	}
	if got := h.call(t, "default", "remote_echo", ``); got != "unavailable" {
		t.Errorf("call of a server: %s", got)
	}
	h.set("catalog/home.cue", "// New.\n"+homeCUE)
	if o := h.Reload(t.Context()); o.Result != "unchanged" {
		t.Errorf("reload: %+v", o)
	}
	h.unlinked(t)
}

// TestClosedInAReload: what is being compiled when a daemon ends is given up, whoever asked for it, and nothing is said of the
// files.
func TestClosedInAReload(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	log := slog.New(slog.NewTextHandler(h.log, nil))
	pool := upstream.NewPool(upstream.Config{})
	defer pool.Close()
	endless := &endlessCompiler{Compiler: loader.NewCompiler(loader.Config{Schema: readSchema(t)}), begun: make(chan struct{})}
	d, err := serve.Open(t.Context(), serve.DaemonConfig{Source: h, Log: log, Builder: &serve.Builder{
		Root: t.TempDir(), Pool: pool, Log: log, Compiler: endless, Policy: decision.Config{Deadline: 10 * time.Second},
	}})
	if err != nil {
		t.Fatal(err)
	}
	h.set("catalog/home.cue", "// New.\n"+homeCUE)
	reloaded := make(chan serve.Outcome, 1)
	go func() { reloaded <- d.Reload(context.Background()) }()
	<-endless.begun
	d.Close()
	if o := <-reloaded; o.Result != "refused" || strings.Contains(h.log.String(), "reload refused") {
		t.Errorf("%+v\n%s", o, h.log)
	}
}

// TestBuildPanics: a build that fails by a fault of catalogd is refused under an id, and changes nothing.
func TestBuildPanics(t *testing.T) {
	t.Parallel()
	h := openHouse(t)
	log := &syncBuffer{}
	b := &serve.Builder{Pool: h.pool, Log: slog.New(slog.NewTextHandler(log, nil)), Compiler: panicking{}}
	snap, _ := h.Snapshot(t.Context())
	g, problems := b.Build(t.Context(), snap, nil)
	if g != nil || len(problems) != 1 || problems[0].Code != problem.LoadFailed || strings.Contains(problems[0].Message, "secret") {
		t.Fatalf("%v", problems)
	}
	if !strings.Contains(log.String(), "a secret") {
		t.Errorf("the log has nothing of it: %s", log)
	}
}

type panicking struct{}

func (panicking) Compile(context.Context, *loader.Snapshot) (*registry.Build, problem.List) {
	panic("a secret")
}

// endlessCompiler compiles once, and from then on until it is told to end.
type endlessCompiler struct {
	serve.Compiler
	builds int
	begun  chan struct{}
}

func (c *endlessCompiler) Compile(ctx context.Context, s *loader.Snapshot) (*registry.Build, problem.List) {
	if c.builds++; c.builds == 1 {
		return c.Compiler.Compile(ctx, s)
	}
	close(c.begun)
	<-ctx.Done()
	var l problem.List
	l.Errorf(problem.LoadFailed, problem.Position{File: "."}, "", "the build was ended before it was done: %v", ctx.Err())
	return nil, l
}

// TestRunWatches: Run alone finds an edit, a broken one and its fix, and ends with its context.
func TestRunWatches(t *testing.T) {
	t.Parallel()
	h, dir := newHouse(t), t.TempDir()
	if err := os.CopyFS(dir, h.files); err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	pool := upstream.NewPool(upstream.Config{})
	defer pool.Close()
	outcomes := make(chan serve.Outcome, 100)
	d, err := serve.Open(t.Context(), serve.DaemonConfig{
		Source: loader.Dir{Root: dir}, Watch: dir, Timing: loader.WatchConfig{Quiet: 10 * time.Millisecond}, Log: log,
		Builder: &serve.Builder{
			Root: dir, Pool: pool, Log: log, Compiler: loader.NewCompiler(loader.Config{Schema: readSchema(t)}),
			Policy: decision.Config{Deadline: 10 * time.Second},
		},
		Ended: func(o serve.Outcome) { outcomes <- o },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	next := func(want string) {
		t.Helper()
		for {
			select {
			case o := <-outcomes:
				if o.Result == want {
					return
				}
			case <-time.After(30 * time.Second):
				t.Fatalf("waited for %s in vain", want)
			}
		}
	}
	save := func(text string) {
		t.Helper()
		name := filepath.Join(dir, "catalog/home.cue")
		if err := os.WriteFile(name+"~", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(name+"~", name); err != nil {
			t.Fatal(err)
		}
	}
	next("adopted") // the first
	next("unchanged")
	save("// New.\n" + homeCUE)
	next("adopted")
	save("]\n")
	next("refused")
	save(homeCUE)
	next("adopted")
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// cancelledReload: a reload whose caller gives up changes nothing, and hides nothing.
func cancelledReload(t *testing.T) {
	t.Parallel()
	h := openHouse(t)
	serving := h.Status().Generation
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	h.set("policy/access/data.yaml", homeAccess+"# New.\n")
	h.set("catalog/home.cue", "// New.\n"+homeCUE)
	if o := h.Reload(ctx); o.Result != "refused" {
		t.Errorf("%+v", o)
	}
	if got := h.Status().Generation; got != serving {
		t.Errorf("%+v serves", got)
	}
	h.reload(t, "adopted")
	if got := h.names(t, "default"); len(got) != 5 {
		t.Errorf("lists %v", got)
	}
}
