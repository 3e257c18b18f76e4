package functions

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/catalogd/catalogd"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
	"github.com/catalogd/catalogd/test/internal/harness"
)

// open opens a catalog in memory whose tool t is the function f.
func open(t *testing.T, f *registry.Function, change func(*catalogd.Config)) *catalogd.Catalog {
	t.Helper()
	dir := t.TempDir()
	harness.EmptyStarter(t, dir)
	harness.WriteFile(t, filepath.Join(dir, "catalog/tools.cue"), "package catalog\n\ntools: t: {description: \"T.\", effect: \""+
		string(f.Effect())+"\", timeout: \"1h\", binding: func: \""+f.Name()+"\"}\nbranches: default: {}\n")
	if err := os.Remove(filepath.Join(dir, "schema.cue")); err != nil {
		t.Fatal(err)
	}
	cfg := catalogd.Config{FS: os.DirFS(dir), Functions: []*registry.Function{f}, PolicyDeadline: harness.Timeout}
	if change != nil {
		change(&cfg)
	}
	c, err := catalogd.New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// TestWhatIsOpened: exactly one catalog must be named, and it must not be empty.
func TestWhatIsOpened(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cfg  catalogd.Config
		want string
	}{
		"nothing":            {catalogd.Config{}, "no catalog is named"},
		"an fs and a build":  {catalogd.Config{FS: fstest.MapFS{}, Build: "x"}, "keep one"},
		"a state of no name": {catalogd.Config{FS: fstest.MapFS{}, State: "x"}, "needs a Config.Dir"},
	} {
		if _, err := catalogd.New(t.Context(), c.cfg); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
	for name, cfg := range map[string]catalogd.Config{"an empty directory": {Dir: t.TempDir()}, "an empty fs.FS": {FS: fstest.MapFS{}}} {
		_, err := catalogd.New(t.Context(), cfg)
		var refused *catalogd.RefusedError
		if !errors.As(err, &refused) || !refused.Problems.Has(problem.NoCatalog) {
			t.Errorf("%s: got %v, want no_catalog", name, err)
		}
	}
}

// TestBranchTool: one tool of a branch, and whether there is one.
func TestBranchTool(t *testing.T) {
	t.Parallel()
	c := open(t, must(registry.Func("f", func(context.Context, struct{}) (string, error) { return "done", nil }, registry.Read)), nil)
	b := c.Branch("default")
	if tool, err := b.Tool("t"); err != nil || tool.Name != "t" || tool.Binding.Kind() != "func" || !b.Has("t") {
		t.Errorf("got %+v, %v", tool, err)
	}
	var unknown *registry.UnknownError
	if _, err := b.Tool("tt"); !errors.As(err, &unknown) || unknown.Tools[0].Nearest[0] != "t" || b.Has("tt") {
		t.Errorf("got %v, want the near name", err)
	}
	if _, err := c.Branch("none").Tool("t"); err == nil || c.Branch("none").Has("t") {
		t.Error("a branch that does not exist has a tool")
	}
}

// TestCallJSON: the record of a call has stable keys, and neither arguments nor what is for the log.
func TestCallJSON(t *testing.T) {
	t.Parallel()
	type in struct {
		Word string `json:"word"`
	}
	c := open(t, must(registry.Func("f", func(_ context.Context, in in) (map[string]string, error) {
		if in.Word == "fail" {
			return nil, registry.InternalError(errors.New("sorrowful"))
		}
		return map[string]string{"said": "well"}, nil
	}, registry.Read)), nil)
	keys := func(args string) (map[string]json.RawMessage, string) {
		call, err := c.Branch("default").Call(t.Context(), "t", []byte(args))
		if err != nil {
			t.Fatal(err)
		}
		data, err := json.Marshal(call)
		if err != nil {
			t.Fatal(err)
		}
		var all map[string]json.RawMessage
		if err := json.Unmarshal(data, &all); err != nil {
			t.Fatal(err)
		}
		return all, string(data)
	}
	all, text := keys(`{"word":"wistful"}`)
	want := []string{
		"branch", "decision", "digest", "duration_ns", "generation", "id", "principal", "result", "started", "status", "tool",
	}
	if got := slices.Sorted(maps.Keys(all)); !slices.Equal(got, want) || !strings.HasPrefix(string(all["digest"]), `"sha256:`) || strings.Contains(text, "wistful") {
		t.Errorf("got %s, want the keys %v and the digest of the arguments", text, want)
	}
	if all, text := keys(`{"word":"fail"}`); !strings.Contains(string(all["error"]), `"code":"binding_failed"`) || strings.Contains(text, "sorrowful") {
		t.Errorf("got %s, want the code and nothing of the log", text)
	}
}

// TestWhoEndsTheCall: a cancellation and a deadline of the caller are not blamed on the tool, whose time limit is.
func TestWhoEndsTheCall(t *testing.T) {
	t.Parallel()
	for _, effect := range []registry.Effect{registry.Read, registry.Write} {
		started := make(chan struct{}, 3)
		c := open(t, must(registry.Func("f", func(ctx context.Context, _ struct{}) (string, error) {
			started <- struct{}{}
			<-ctx.Done()
			return "", ctx.Err()
		}, effect)), func(cfg *catalogd.Config) {
			cfg.Intents = catalogd.Intents{Dir: filepath.Join(t.TempDir(), "intents"), Durability: "process"}
		})
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-started; cancel() }()
		call, err := c.Branch("default").Call(ctx, "t", nil)
		if err != nil || effect == registry.Read && (call.Err == nil || call.Err.Code != registry.Cancelled) ||
			effect == registry.Write && call.Status != registry.Accepted {
			t.Errorf("%s, cancelled: got %+v, %v", effect, call, err)
		}
		ctx, cancel = context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
		defer cancel()
		call, err = c.Branch("default").Call(ctx, "t", nil)
		if err != nil || call.Err == nil || call.Err.Code != registry.Cancelled {
			t.Errorf("%s, late before it began: got %+v, %v", effect, call, err)
		}
	}
	release := make(chan struct{})
	c := open(t, must(registry.Func("f", func(ctx context.Context, _ struct{}) (string, error) {
		<-release // which ignores its context
		return "", nil
	}, registry.Read)), nil)
	defer close(release)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second) // any: the function runs until it is over
	defer cancel()
	call, err := c.Branch("default").Call(ctx, "t", nil)
	if err != nil || call.Err == nil || call.Err.Code != registry.Cancelled || !strings.Contains(call.Err.Msg, "caller's own deadline") && !strings.Contains(call.Err.Msg, "was cancelled") {
		t.Errorf("late: got %+v, %v, want cancelled", call, err)
	}
}

// TestDeclaredResult: a declared result that the function's type does not fit refuses the catalog, unless a processor
// of the program makes the result.
func TestDeclaredResult(t *testing.T) {
	t.Parallel()
	degrees := func(context.Context, struct{}) (struct {
		Degrees int8 `json:"degrees"`
	}, error) {
		panic("it is not called")
	}
	warm := func(context.Context, string, json.RawMessage) (json.RawMessage, error) { return nil, nil }
	dir := t.TempDir()
	harness.EmptyStarter(t, dir)
	harness.WriteFile(t, filepath.Join(dir, "catalog/tools.cue"), "package catalog\n\ntools: t: {description: \"T.\", effect: \"read\", "+
		"result: {warm!: bool}, binding: func: \"f\"}\nbranches: default: {}\n")
	for _, c := range []struct {
		tools string
		opens bool
	}{{"other", false}, {"t", true}} {
		got, err := catalogd.New(t.Context(), catalogd.Config{
			FS: os.DirFS(dir), Functions: []*registry.Function{must(registry.Func("f", degrees, registry.Read))},
			Processors:     []registry.Processor{{Tools: []string{c.tools}, After: warm}},
			PolicyDeadline: harness.Timeout,
		})
		var refused *catalogd.RefusedError
		if errors.As(err, &refused) == c.opens || !c.opens && !refused.Problems.Has(problem.FunctionMismatch) {
			t.Errorf("with a processor of %s: got %v, want it opened: %v", c.tools, err, c.opens)
		}
		if got != nil {
			got.Close()
		}
	}
}

// TestProcessors: the order of what runs around a tool, and the code of each that fails.
func TestProcessors(t *testing.T) {
	t.Parallel()
	type words struct {
		Said string `json:"said"`
	}
	dir := t.TempDir()
	harness.EmptyStarter(t, dir)
	harness.WriteFile(t, filepath.Join(dir, "catalog/tools.cue"), `package catalog

tools: t: {
	description: "T."
	effect:      "read"
	pre:         #"if .said == "jq" then error("no jq") else .said += ">pre" end"#
	post:        #"if (.said | contains("post!")) then error("no post") else .said += ">post" end"#
	result: said!: string
	binding: func: "f"
}
branches: default: {}
`)
	step := func(name string) registry.Process {
		return func(_ context.Context, tool string, in json.RawMessage) (json.RawMessage, error) {
			var w words
			if err := json.Unmarshal(in, &w); err != nil || tool != "t" {
				return nil, err
			}
			switch {
			case w.Said == "broken>pre" && name == "before1":
				return json.RawMessage(`{"other":1}`), nil
			case w.Said == "refused>pre":
				return nil, registry.Fail("unfit", errors.New("no "+name))
			case strings.HasPrefix(w.Said, "late") && strings.HasPrefix(name, "after"):
				return nil, errors.New("secretive")
			}
			return json.Marshal(words{w.Said + ">" + name})
		}
	}
	c, err := catalogd.New(t.Context(), catalogd.Config{
		Dir: dir, PolicyDeadline: harness.Timeout,
		Functions: []*registry.Function{must(registry.Func("f", func(_ context.Context, in words) (words, error) {
			if strings.HasPrefix(in.Said, "tool") {
				return words{}, errors.New("no tool")
			}
			return words{in.Said + ">tool"}, nil
		}, registry.Read))},
		Processors: []registry.Processor{
			{Before: step("before1"), After: step("after1")},
			{Tools: []string{"t*"}, Before: step("before2"), After: step("after2")},
			{Tools: []string{"other"}, Before: step("never"), After: step("never")},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for said, want := range map[string]struct {
		text string
		code registry.ErrorCode
	}{
		"x":       {`{"said":"x>pre>before1>before2>tool>after2>after1>post"}`, ""},
		"jq":      {"the tool's pre program refused the arguments: ", registry.ProcessorFailed},
		"broken":  {`after a processor of the program, the arguments of "t" are not valid`, registry.InvalidArguments},
		"refused": {"a processor of the program refused the arguments: unfit: no before1. Nothing was run", registry.ProcessorFailed},
		"tool":    {"no tool", ""},
		"late":    {"a processor of the program failed on the tool's result; the operator's log says why. The tool has run", registry.ProcessorFailed},
		"post!":   {"the tool's post program failed on its result", registry.ProcessorFailed},
	} {
		args, err := json.Marshal(words{said})
		if err != nil {
			t.Fatal(err)
		}
		call, err := c.Branch("default").Call(t.Context(), "t", args)
		var code registry.ErrorCode
		if call.Err != nil {
			code = call.Err.Code
		}
		if err != nil || code != want.code || !strings.HasPrefix(call.Text(), want.text) {
			t.Errorf("%s: got %q (%s), %v, want %q (%s)", said, call.Text(), code, err, want.text, want.code)
		}
		if code == registry.ProcessorFailed && (call.Status == registry.Rejected) != (said == "refused" || said == "jq") {
			t.Errorf("%s: got the status %s", said, call.Status)
		}
	}
}

// TestBuildFile: a build file has no functions either; the program that serves it has them.
func TestBuildFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	harness.EmptyStarter(t, dir)
	harness.WriteFile(t, filepath.Join(dir, "catalog/tools.cue"),
		"package catalog\n\ntools: t: {description: \"T.\", effect: \"read\", binding: func: \"f\"}\nbranches: default: {}\n")
	built, problems, err := catalogd.Build(t.Context(), catalogd.Config{Dir: dir, FunctionsElsewhere: true})
	if err != nil || built == nil {
		t.Fatal(problems, err)
	}
	file := filepath.Join(t.TempDir(), "catalog.build")
	if err := os.WriteFile(file, built.Data, 0o600); err != nil {
		t.Fatal(err)
	}
	var refused *catalogd.RefusedError
	if _, err := catalogd.New(t.Context(), catalogd.Config{Build: file}); !errors.As(err, &refused) || !refused.Problems.Has(problem.UnknownFunction) {
		t.Errorf("without the function: got %v, want unknown_function", err)
	}
	f := must(registry.Func("f", func(context.Context, struct{}) (string, error) { return "done", nil }, registry.Read))
	c, err := catalogd.New(t.Context(), catalogd.Config{Build: file, Functions: []*registry.Function{f}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if call, err := c.Branch("default").Call(t.Context(), "t", nil); err != nil || call.Text() != "done" {
		t.Errorf("got %+v, %v", call, err)
	}
}
