package daemon_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/daemon"
	"github.com/catalogd/catalogd/internal/generation"
	"github.com/catalogd/catalogd/internal/servetest"
	"github.com/catalogd/catalogd/internal/upstream"
	"github.com/catalogd/catalogd/loader"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

func TestOpen(t *testing.T) {
	t.Parallel()
	h := servetest.OpenHouse(t)
	s := h.Status()
	if !s.Healthy || s.Failed != nil || s.Version != "test" || s.Generation.Adopted != "bootstrap" || s.Generation.Tools != 5 ||
		s.Generation.Branches != 3 || s.Generation.Hidden != 0 || s.Generation.Since.IsZero() || s.Generation.Policy == "" || s.Warnings == nil {
		t.Errorf("%+v", s)
	}
	if len(s.Servers) != 1 || !s.Servers[0].Trusted || s.Servers[0].Trust != "remote" || s.Servers[0].State != "idle" || s.Servers[0].Pos.String() != "catalog/home.cue:35:10" {
		t.Errorf("%+v", s.Servers)
	}
	for branch, want := range map[string][]string{
		"default": {"clock", "intent_cancel", "intent_get", "intent_list", "remote_echo", "secret", "upper", "wipe"}, "public": {"clock", "intent_cancel", "intent_get", "intent_list", "upper", "wipe"}, "small": {"upper"},
	} {
		if got := h.Names(t, branch); !slices.Equal(got, want) {
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
		if got := h.Call(t, test.branch, test.tool, test.args); got != test.want {
			t.Errorf("%s through %s: %s, want %s", test.tool, test.branch, got, test.want)
		}
	}
	if len(h.Changed) != 0 || len(h.Ended) != 1 || h.Ended[0].Result != "adopted" || !slices.Equal(h.Ended[0].Changed, []string{"default", "public", "small"}) {
		t.Errorf("changed %v, ended %+v", h.Changed, h.Ended)
	}
}

// policyFailures are the ways in which files can be unfit, each with the reason and a place that the report must name.
var policyFailures = []struct {
	name, reason, place string
	spoil               func(testing.TB, *servetest.House)
	// start says that a first generation is refused for it too.
	start bool
}{
	{"CUE syntax", "problems", "catalog/home.cue:39:1", func(t testing.TB, h *servetest.House) { h.Set("catalog/home.cue", servetest.HomeCUE+"]\n") }, true},
	{"CUE value", "problems", "catalog/home.cue:10:", func(t testing.TB, h *servetest.House) {
		h.Replace(t, "catalog/home.cue", `effect: "read"`, `effect: "reed"`)
	}, true},
	{"no catalog", "problems", ".: no_catalog", func(t testing.TB, h *servetest.House) {
		maps.DeleteFunc(h.Files, func(name string, _ *fstest.MapFile) bool { return strings.HasPrefix(name, "catalog/") })
	}, true},
	{"another schema", "problems", "schema.cue", func(t testing.TB, h *servetest.House) { h.Set("schema.cue", h.Get("schema.cue")+"\n") }, true},
	{"jq", "problems", "catalog/home.cue:11:", func(t testing.TB, h *servetest.House) {
		h.Replace(t, "catalog/home.cue", `".text | ascii_upcase"`, `".text |"`)
	}, true},
	{"pre", "problems", "catalog/home.cue:11:", func(t testing.TB, h *servetest.House) {
		h.Replace(t, "catalog/home.cue", `binding: jq: program: ".text`, "pre: \"}\"\n\tbinding: jq: program: \".text")
	}, true},
	{"a command line as command", "problems", "catalog/home.cue:22:", func(t testing.TB, h *servetest.House) {
		h.Replace(t, "catalog/home.cue", `"date"`, `"date of today"`)
	}, true},
	{"Rego syntax", "problems", "policy/call.rego:", func(t testing.TB, h *servetest.House) {
		h.Set("policy/call.rego", h.Get("policy/call.rego")+"\nallow if {")
	}, true},
	{"Rego point", "problems", "policy", func(t testing.TB, h *servetest.House) { delete(h.Files, "policy/call.rego") }, true},
	{"data", "problems", "policy/access/data.yaml:1", func(t testing.TB, h *servetest.House) { h.Set("policy/access/data.yaml", "branches: [") }, true},
	{"a data field that nobody reads", "problems", "policy/trust/data.yaml", func(t testing.TB, h *servetest.House) {
		h.Set("policy/trust/data.yaml", servetest.HomeTrust+"  more: {comand: [ls]}\n")
	}, true},
	{"no policy", "problems", "policy", func(t testing.TB, h *servetest.House) {
		maps.DeleteFunc(h.Files, func(name string, _ *fstest.MapFile) bool { return strings.HasPrefix(name, "policy/") })
	}, true},
	{"CUE and Rego", "problems", "policy/list.rego:", func(t testing.TB, h *servetest.House) {
		h.Set("catalog/home.cue", servetest.HomeCUE+"]\n")
		h.Set("policy/list.rego", h.Get("policy/list.rego")+"]\n")
	}, true},
	{"adoption", "adoption_denied", "policy", func(t testing.TB, h *servetest.House) {
		h.Replace(t, "catalog/home.cue", `branches: small: select: names: ["upper"]`, `branches: small: {select: names: ["upper"], hide: names: ["*"]}`)
	}, false},
	{"unreadable", "source", "catalog", func(t testing.TB, h *servetest.House) { h.Unreadable = true }, true},
}

// lastGood holds for every way to fail: what serves goes on, the status says why, and the fix is served at once.
func lastGood(t *testing.T) {
	t.Parallel()
	h := servetest.OpenHouse(t)
	round := 0
	for _, f := range policyFailures {
		t.Run(f.name, func(t *testing.T) {
			good := maps.Clone(h.Files)
			defer func() { h.Files, h.Unreadable = good, false }()
			serving, names, changed := h.Status().Generation, h.Names(t, "default"), len(h.Changed)
			f.spoil(t, h)
			for range 2 { // failing twice is as failing once
				o := h.MustReload(t, "refused")
				if o.Generation != serving.ID || len(o.Changed) != 0 || !o.Problems.HasErrors() {
					t.Errorf("outcome %+v", o)
				}
				s := h.Status()
				if s.Healthy || s.Failed == nil || s.Failed.Reason != f.reason || !reflect.DeepEqual(s.Generation, serving) || s.Failed.At.IsZero() || (s.Failed.Digest == "") != (f.reason == "source") {
					t.Fatalf("status %+v, failed %+v", s, s.Failed)
				}
				if !slices.ContainsFunc(s.Failed.Problems, func(p problem.Problem) bool { return strings.HasPrefix(p.String(), f.place) }) {
					t.Errorf("nothing is reported at %s: %v", f.place, s.Failed.Problems)
				}
			}
			if got := h.Names(t, "default"); !slices.Equal(got, names) {
				t.Errorf("lists %v, want %v", got, names)
			}
			if got := h.Call(t, "default", "upper", `{"text":"a"}`); got != "A" {
				t.Errorf("call: %s", got)
			}
			if len(h.Changed) != changed {
				t.Errorf("told %v", h.Changed[changed:])
			}

			// Taking the edit back is no new generation; a fix with something new in it is.
			h.Files, h.Unreadable = maps.Clone(good), false
			h.MustReload(t, "unchanged")
			if s := h.Status(); !s.Healthy || s.Failed != nil || !reflect.DeepEqual(s.Generation, serving) {
				t.Errorf("taken back: %+v", s)
			}
			f.spoil(t, h)
			h.MustReload(t, "refused")
			h.Files, h.Unreadable = maps.Clone(good), false
			round++
			h.Set("catalog/more/more.cue", fmt.Sprintf("package catalog\n\ntools: more: {description: \"%d\", effect: \"read\", binding: jq: program: \"%d\"}\n", round, round))
			good = h.Files
			h.MustReload(t, "adopted")
			if s := h.Status(); !s.Healthy || s.Generation.ID == serving.ID || s.Generation.Adopted != "adopted" {
				t.Errorf("fixed: %+v", s)
			}
			if got := h.Call(t, "default", "more", ``); got != fmt.Sprint(round) {
				t.Errorf("after the fix: %s", got)
			}
		})
	}
}

// openRefuses holds that what can't be reloaded can't be started with either, and that everything is said.
func openRefuses(t *testing.T) {
	t.Parallel()
	for _, f := range policyFailures {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			h := servetest.NewHouse(t)
			f.spoil(t, h)
			err := h.Open(t)
			if !f.start {
				if err != nil {
					t.Fatalf("%v, though there was nothing to lose", err)
				}
				return
			}
			refused, ok := err.(*daemon.RefusedError)
			if !ok || !strings.Contains(err.Error(), f.place) {
				t.Fatalf("%T %v", err, err)
			}
			if !slices.ContainsFunc(refused.Problems, func(p problem.Problem) bool { return strings.HasPrefix(p.String(), f.place) }) {
				t.Errorf("nothing is reported at %s: %v", f.place, refused.Problems)
			}
			h.Unlinked(t)
		})
	}
}

// bothInOneSave (C12): CUE fixed and Rego broken in one save is still refused, and neither applies.
func bothInOneSave(t *testing.T) {
	t.Parallel()
	h := servetest.OpenHouse(t)
	rego := h.Get("policy/list.rego")
	h.Set("catalog/home.cue", servetest.HomeCUE+"]\n")
	h.MustReload(t, "refused")
	h.Set("catalog/home.cue", strings.Replace(servetest.HomeCUE, "upper:", "upper_case:", 1))
	h.Set("policy/list.rego", rego+"]\n")
	h.MustReload(t, "refused")
	if got := h.Call(t, "default", "upper_case", `{"text":"a"}`); got != "unknown_tool" {
		t.Errorf("half of the save was served: %s", got)
	}
	h.Set("policy/list.rego", rego)
	h.Set("catalog/home.cue", servetest.HomeCUE)
	h.MustReload(t, "unchanged")
}

// unchanged (C10): the same content is no generation and nobody is notified.
func unchanged(t *testing.T) {
	t.Parallel()
	h := servetest.OpenHouse(t)
	before, release := h.Pin()
	release()
	for name, file := range h.Files {
		h.Files[name] = &fstest.MapFile{Data: bytes.Clone(file.Data), ModTime: time.Now().Add(time.Hour)}
	}
	h.Set("catalog/notes.txt", "no part of the catalog")
	o := h.MustReload(t, "unchanged")
	after, release := h.Pin()
	release()
	if before != after || len(h.Changed) != 0 || o.Generation != before.ID || o.Problems == nil || o.Changed == nil {
		t.Errorf("%p, then %p; told %v; %+v", before, after, h.Changed, o)
	}
}

// TestChanged holds that exactly those branches are named whose lists differ.
func TestChanged(t *testing.T) {
	t.Parallel()
	h := servetest.OpenHouse(t)
	for _, test := range []struct {
		name string
		edit func()
		want []string
	}{
		{"a comment", func() { h.Set("catalog/home.cue", "// A comment.\n"+servetest.HomeCUE) }, []string{}},
		{"what a tool runs", func() { h.Replace(t, "catalog/home.cue", `"\"secret\""`, `"\"other\""`) }, []string{}},
		{"a description that two branches show", func() { h.Replace(t, "catalog/home.cue", "The time.", "The time in UTC.") }, []string{"default", "public"}},
		{"a tool that one branch shows", func() { h.Replace(t, "catalog/home.cue", "Not for the public.", "Private.") }, []string{"default"}},
		{"a new tool", func() {
			h.Set("catalog/a/b.cue", "package catalog\n\ntools: upward: {description: \"x\", effect: \"read\", binding: jq: program: \"1\"}\n")
		}, []string{"default", "public"}},
		{"access data", func() {
			h.Replace(t, "policy/access/data.yaml", "small: {tools: [\"*\"]}", "small: {tools: [\"*\"], effects: [read]}")
		}, []string{}},
		{"access data that take away", func() { h.Replace(t, "policy/access/data.yaml", "deny: [remote_*]", "deny: [remote_*, upward]") }, []string{"public"}},
		{"a rule", func() {
			h.Set("policy/list.rego", h.Get("policy/list.rego")+"\ndeny contains \"no clocks\" if input.tool.name == \"clock\"\n")
		}, []string{"default", "public"}},
		{"a branch's labels", func() { h.Replace(t, "catalog/home.cue", `audience: "public"`, `audience: "staff"`) }, []string{"public"}},
		{"a new branch", func() { h.Set("catalog/home.cue", h.Get("catalog/home.cue")+"branches: extra: {}\n") }, []string{"extra"}},
		{"a branch is gone", func() { h.Replace(t, "catalog/home.cue", "branches: extra: {}\n", "") }, []string{"extra"}},
	} {
		told := len(h.Changed)
		test.edit()
		o := h.MustReload(t, "adopted")
		if !slices.Equal(o.Changed, test.want) || len(h.Changed) != told+1 || !slices.Equal(h.Changed[told], test.want) {
			t.Errorf("%s: changed %v, told %v, want %v", test.name, o.Changed, h.Changed[told:], test.want)
		}
	}
	if got := h.Call(t, "default", "secret", ``); got != "other" {
		t.Errorf("secret answers %s", got)
	}
}

// TestTrustComesAndGoes: what is not trusted any more leaves list and call in one generation, with a warning, and
// comes back with its entry.
func TestTrustComesAndGoes(t *testing.T) {
	t.Parallel()
	h := servetest.OpenHouse(t)
	all := h.Names(t, "default")
	for range 2 {
		h.Set("policy/trust/data.yaml", "entries: {}\n")
		o := h.MustReload(t, "adopted")
		if !slices.Equal(o.Changed, []string{"default", "public"}) {
			t.Errorf("changed %v", o.Changed)
		}
		if got, want := h.Names(t, "default"), []string{"intent_cancel", "intent_get", "intent_list", "secret", "upper", "wipe"}; !slices.Equal(got, want) {
			t.Errorf("lists %v, want %v", got, want)
		}
		for _, tool := range []string{"clock", "remote_echo"} {
			if got := h.Call(t, "default", tool, ``); got != "unknown_tool" {
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
		h.Unlinked(t)

		h.Set("policy/trust/data.yaml", servetest.HomeTrust)
		h.MustReload(t, "adopted")
		if got := h.Names(t, "default"); !slices.Equal(got, all) {
			t.Errorf("lists %v, want %v", got, all)
		}
		if got := h.Call(t, "default", "clock", ``); !strings.Contains(got, "UTC") {
			t.Errorf("clock: %s", got)
		}
	}
}

// swapIsSeenWhole holds that whoever learns of a change finds the new generation, and nobody a mix.
func swapIsSeenWhole(t *testing.T) {
	t.Parallel()
	h := servetest.NewHouse(t)
	edit := func(i int) {
		text := strings.Replace(servetest.HomeCUE, `"Not for the public."`, fmt.Sprintf(`"%d"`, i), 1)
		h.Set("catalog/home.cue", strings.Replace(text, `"\"secret\""`, fmt.Sprintf(`"\"%d\""`, i), 1))
	}
	edit(0)
	if err := h.Open(t); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for ctx.Err() == nil {
				g, release := h.Pin()
				call := servetest.CallOn(t, g, "default", "secret", ``)
				e, ok := g.Registry().Lookup("secret")
				if !ok || call.Generation != g.ID {
					t.Errorf("generation %s, call %+v", g.ID, call)
				} else if want := e.Declared().Description; servetest.Outcome(t, call) != want {
					t.Errorf("a tool described as %s answers %s", want, servetest.Outcome(t, call))
				}
				release()
				time.Sleep(time.Millisecond) // the reloads need the machine too
			}
		})
	}
	for i := range 10 {
		edit(i + 1)
		h.MustReload(t, "adopted")
	}
	stop()
	readers.Wait()
}

// TestClosed: a daemon that has ended answers what it can, hangs nowhere and begins nothing new.
func TestClosed(t *testing.T) {
	t.Parallel()
	h := servetest.OpenHouse(t)
	h.Close()
	h.Close()
	if got := h.Call(t, "default", "upper", `{"text":"a"}`); got != "A" {
		t.Errorf("call: %s", got)
	}
	if got := h.Call(t, "default", "remote_echo", ``); got != "unavailable" {
		t.Errorf("call of a server: %s", got)
	}
	h.Set("catalog/home.cue", "// New.\n"+servetest.HomeCUE)
	if o := h.Reload(t.Context()); o.Result != "unchanged" {
		t.Errorf("reload: %+v", o)
	}
	h.Unlinked(t)
}

// TestClosedInAReload: what is being compiled when a daemon ends is given up, whoever asked for it, and nothing is said of the
// files.
func TestClosedInAReload(t *testing.T) {
	t.Parallel()
	h := servetest.NewHouse(t)
	log := slog.New(slog.NewTextHandler(h.Log, nil))
	pool := upstream.NewPool(upstream.Config{})
	defer pool.Close()
	endless := &endlessCompiler{Compiler: loader.NewCompiler(loader.Config{Schema: servetest.ReadSchema(t)}), begun: make(chan struct{})}
	d, err := daemon.Open(t.Context(), daemon.Config{Source: h, Log: log, Builder: &generation.Builder{
		Root: t.TempDir(), Pool: pool, Log: log, Compiler: endless, Policy: decision.Config{Deadline: 10 * time.Second},
	}})
	if err != nil {
		t.Fatal(err)
	}
	h.Set("catalog/home.cue", "// New.\n"+servetest.HomeCUE)
	reloaded := make(chan daemon.Outcome, 1)
	go func() { reloaded <- d.Reload(context.Background()) }()
	<-endless.begun
	d.Close()
	if o := <-reloaded; o.Result != "refused" || strings.Contains(h.Log.String(), "reload refused") {
		t.Errorf("%+v\n%s", o, h.Log)
	}
}

// TestBuildPanics: a build that fails by a fault of catalogd is refused under an id, and changes nothing.
func TestBuildPanics(t *testing.T) {
	t.Parallel()
	h := servetest.OpenHouse(t)
	log := &servetest.SyncBuffer{}
	b := &generation.Builder{Pool: h.Pool, Log: slog.New(slog.NewTextHandler(log, nil)), Compiler: panicking{}}
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

// endlessCompiler compiles once, and from then on until it is asked to end.
type endlessCompiler struct {
	generation.Compiler
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
	h, dir := servetest.NewHouse(t), t.TempDir()
	if err := os.CopyFS(dir, h.Files); err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	pool := upstream.NewPool(upstream.Config{})
	defer pool.Close()
	outcomes := make(chan daemon.Outcome, 100)
	d, err := daemon.Open(t.Context(), daemon.Config{
		Source: loader.Dir{Root: dir}, Watch: dir, Timing: loader.WatchConfig{Quiet: 10 * time.Millisecond}, Log: log,
		Builder: &generation.Builder{
			Root: dir, Pool: pool, Log: log, Compiler: loader.NewCompiler(loader.Config{Schema: servetest.ReadSchema(t)}),
			Policy: decision.Config{Deadline: 10 * time.Second},
		},
		Ended: func(o daemon.Outcome) { outcomes <- o },
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
			case <-time.After(2 * time.Minute):
				t.Fatalf("timed out waiting for %s", want)
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
	save("// New.\n" + servetest.HomeCUE)
	next("adopted")
	save("]\n")
	next("refused")
	save(servetest.HomeCUE)
	next("adopted")
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// cancelledReload: a reload whose caller gives up changes nothing, and hides nothing.
func cancelledReload(t *testing.T) {
	t.Parallel()
	h := servetest.OpenHouse(t)
	serving := h.Status().Generation
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	h.Set("policy/access/data.yaml", servetest.HomeAccess+"# New.\n")
	h.Set("catalog/home.cue", "// New.\n"+servetest.HomeCUE)
	if o := h.Reload(ctx); o.Result != "refused" {
		t.Errorf("%+v", o)
	}
	if got := h.Status().Generation; !reflect.DeepEqual(got, serving) {
		t.Errorf("%+v serves", got)
	}
	h.MustReload(t, "adopted")
	if got := h.Names(t, "default"); len(got) != 8 {
		t.Errorf("lists %v", got)
	}
}
