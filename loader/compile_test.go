package loader_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/loader"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

func compiler(t testing.TB) *loader.Compiler {
	return loader.NewCompiler(loader.Config{Schema: schema(t)})
}

// sound loads a catalog that must have no problems.
func sound(t testing.TB, c *loader.Compiler, files map[string]string) *registry.Build {
	t.Helper()
	b, problems := load(t, c, loader.Tree{FS: tree(t, files)})
	if len(problems) > 0 {
		t.Fatalf("problems:\n%s", full(problems))
	}
	return b
}

const everything = `package catalog

tools: {
	run: {
		title:       "Run"
		description: "Run it."
		effect:      "write"
		strictness:  "open"
		args: {a!: string, b: *1 | int}
		pre: "."
		post: ".x"
		tags: ["one", "two"]
		timeout: "1m30s"
		deprecated: "use walk"
		examples: [{args: a: "x"}, {args: {}, rejected: "/a"}, {args: a: "y", result: {n: 9007199254740993}}]
		binding: exec: {
			command: "ls"
			argv: ["-l", "{a}"]
			joined: true
			stdin:  "json"
			stdout: "json"
			cwd:    "sub"
			env: {PLAIN: "x", TOKEN: {secret: "env:TOKEN", prefix: "Bearer "}}
			maxOutput: 10
		}
	}
	plain: {description: "p", effect: "read", binding: exec: command: "date"}
	fetch: {
		description: "f"
		effect:      "read"
		args: city!: string
		binding: http: {
			method: "POST"
			url:    "https://example.com/{city}"
			headers: {Accept: "text/plain", Authorization: secret: "file:/run/token"}
			body: {kind: "form", args: ["city"]}
			output: "json"
		}
	}
	get: {description: "g", effect: "read", binding: http: url: "https://example.com/"}
	up_search: {description: "s", effect: "read", binding: mcp: server: "up"}
	other: {description: "o", effect: "read", binding: mcp: {server: "up", tool: "Other One"}}
	jq: {description: "j", effect: "read", result: {n!: int}, binding: jq: program: ".a"}
}
servers: {
	up: {protocol: "2025-06-18", prefix: "up_", maxConnections: 2, isolate: "branch", eager: true, connectTimeout: "1s", initializeTimeout: "3s", callTimeout: "2s", transport: stdio: {command: "npx", args: ["x"], cwd: "y", env: E: secret: "env:E"}}
	web: transport: http: {url: "https://example.com/mcp", headers: A: "b"}
}
branches: {
	default: {}
	team: {description: "d", labels: {team: "t"}, select: {names: ["up_*"], tags: ["one"], servers: ["up"]}, hide: names: ["get"]}
}
`

// TestCompileData holds what a declaration becomes, defaults filled in.
func TestCompileData(t *testing.T) {
	t.Parallel()
	b, problems := load(t, compiler(t), loader.Tree{FS: tree(t, map[string]string{"catalog/a.cue": everything})})
	if problems.HasErrors() {
		t.Fatal(problems.Err())
	}
	raw := func(s string) json.RawMessage { return json.RawMessage(s) }
	want := &registry.Build{
		Tools: []registry.Tool{
			{Name: "fetch", Description: "f", Effect: registry.Read, Timeout: 30 * time.Second, Tags: []string{}, Binding: registry.Binding{HTTP: &registry.HTTP{
				Method: "POST", URL: "https://example.com/{city}", Output: "json", MaxOutput: 1 << 20,
				Headers: map[string]registry.Value{"Accept": {Literal: "text/plain"}, "Authorization": {Secret: "file:/run/token"}},
				Body:    &registry.Body{Kind: "form", Args: []string{"city"}},
			}}},
			{Name: "get", Description: "g", Effect: registry.Read, Timeout: 30 * time.Second, Tags: []string{}, Binding: registry.Binding{HTTP: &registry.HTTP{
				Method: "GET", URL: "https://example.com/", Output: "text", MaxOutput: 1 << 20,
			}}},
			{Name: "jq", Description: "j", Effect: registry.Read, ResultCheck: registry.FailResult, Timeout: 30 * time.Second, Tags: []string{}, Binding: registry.Binding{JQ: &registry.JQ{Program: ".a"}}},
			{Name: "other", Description: "o", Effect: registry.Read, Timeout: 30 * time.Second, Tags: []string{}, Binding: registry.Binding{MCP: &registry.MCP{Server: "up", Tool: "Other One"}}},
			{Name: "plain", Description: "p", Effect: registry.Read, Timeout: 30 * time.Second, Tags: []string{}, Binding: registry.Binding{Exec: &registry.Exec{
				Command: "date", Argv: []string{}, Stdin: "none", Stdout: "text", MaxOutput: 1 << 20,
			}}},
			{
				Name: "run", Title: "Run", Description: "Run it.", Effect: registry.Write, Pre: ".", Post: ".x", Tags: []string{"one", "two"},
				Timeout: 90 * time.Second, Deprecated: "use walk",
				Examples: []registry.Example{
					{Args: raw(`{"a":"x"}`)}, {Args: raw(`{}`), Rejected: "/a"}, {Args: raw(`{"a":"y"}`), Result: raw(`{"n":9007199254740993}`)},
				},
				Binding: registry.Binding{Exec: &registry.Exec{
					Command: "ls", Argv: []string{"-l", "{a}"}, Joined: true, Stdin: "json", Stdout: "json", Cwd: "sub", MaxOutput: 10,
					Env: map[string]registry.Value{"PLAIN": {Literal: "x"}, "TOKEN": {Secret: "env:TOKEN", Prefix: "Bearer "}},
				}},
			},
			{Name: "up_search", Description: "s", Effect: registry.Read, Timeout: 30 * time.Second, Tags: []string{}, Binding: registry.Binding{MCP: &registry.MCP{Server: "up", Tool: "search"}}},
		},
		Servers: []registry.Server{
			{Name: "up", Protocol: "2025-06-18", Prefix: "up_", MaxConnections: 2, Isolate: registry.ByBranch, Eager: true, ConnectTimeout: time.Second, InitializeTimeout: 3 * time.Second, CallTimeout: 2 * time.Second, Stdio: &registry.Stdio{
				Command: "npx", Args: []string{"x"}, Cwd: "y", Env: map[string]registry.Value{"E": {Secret: "env:E"}},
			}},
			{Name: "web", MaxConnections: 4, ConnectTimeout: 10 * time.Second, InitializeTimeout: 20 * time.Second, CallTimeout: time.Minute, HTTP: &registry.HTTPAddress{
				URL: "https://example.com/mcp", Headers: map[string]registry.Value{"A": {Literal: "b"}},
			}},
		},
		Branches: []registry.Branch{
			{Name: "default"},
			{
				Name: "team", Description: "d", Labels: map[string]string{"team": "t"},
				Select: &registry.Selector{Names: []string{"up_*"}, Tags: []string{"one"}, Servers: []string{"up"}}, Hide: &registry.Selector{Names: []string{"get"}},
			},
		},
	}
	ignore := cmp.Options{
		cmpopts.IgnoreTypes(registry.Source{}, contract.Spec{}), cmpopts.IgnoreFields(registry.Tool{}, "Result"),
		cmpopts.IgnoreFields(registry.Build{}, "Digest"), cmpopts.EquateEmpty(),
	}
	if diff := cmp.Diff(want, b, ignore); diff != "" {
		t.Errorf("build (-want +got):\n%s", diff)
	}

	run := b.Tools[slices.IndexFunc(b.Tools, func(t registry.Tool) bool { return t.Name == "run" })]
	if run.Args.Strictness != contract.Open || len(run.Args.Fields) != 2 {
		t.Errorf("the contract of run is %+v", run.Args)
	}
	lines := strings.Split(everything, "\n")
	for path, text := range map[string]string{
		"": "run: {", "args": "args:", "args.b": "b: *1", "binding.exec.argv.1": `"{a}"`, "binding.exec.env.TOKEN.secret": "secret:",
		"examples.1": `{args: {}, rejected`, "timeout": "timeout:", "binding.exec.argv.7": "argv:",
	} {
		p := run.At(path)
		if p.File != "catalog/a.cue" || !strings.HasPrefix(lines[p.Line-1][p.Col-1:], text) {
			t.Errorf("%q is at %s, which is not where %q stands", path, p, text)
		}
	}
	for _, tool := range b.Tools {
		if tool.Name == "jq" && tool.Result == nil || tool.Name != "jq" && tool.Result != nil {
			t.Errorf("%s: result is %v", tool.Name, tool.Result)
		}
	}
	data, err := json.Marshal(b)
	must(t, err)
	var back registry.Build
	must(t, json.Unmarshal(data, &back))
	if diff := cmp.Diff(b, &back, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("a build does not survive JSON (-before +after):\n%s", diff)
	}
}

// TestCompileDigest changes a declaration's place and then its content.
func TestCompileDigest(t *testing.T) {
	t.Parallel()
	digest := func(src string) string {
		return sound(t, compiler(t), map[string]string{"catalog/a.cue": src}).Tools[0].Digest
	}
	base := digest("package catalog\n" + plainTool("t", "d"))
	if moved := digest("// moved\npackage catalog\n\n\n" + plainTool("t", "d")); moved != base {
		t.Error("the digest of a declaration depends on its place")
	}
	if changed := digest("package catalog\n" + plainTool("t", "other")); changed == base {
		t.Error("the digest of a declaration does not depend on its content")
	}
	if changed := digest("package catalog\n" + strings.Replace(plainTool("t", "d"), "<=100", "<=99", 1)); changed == base {
		t.Error("the digest of a declaration does not depend on its arguments")
	}
}

// TestCompileKeeps edits a catalog of several packages again and again. A package that nothing has touched is not
// evaluated again, which shows in its tools being the very same values.
func TestCompileKeeps(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		"catalog/shared.cue":   "package catalog\n\n_title: \"one\"\n",
		"catalog/a/a.cue":      "package catalog\n" + plainTool("a", "a"),
		"catalog/a/deep/d.cue": "package catalog\n" + plainTool("d", "d"),
		"catalog/b/b.cue":      "package catalog\n\nimport \"example.com/catalog/lib\"\n\ntools: b: title: lib.title\n" + plainTool("b", "b"),
		"lib/lib.cue":          "package lib\n\ntitle: \"lib\"\n",
		"policy/x.rego":        "package x\n",
	}
	c := compiler(t)
	at := func() map[string]uintptr {
		out := map[string]uintptr{}
		for _, tool := range sound(t, c, files).Tools {
			out[tool.Name] = reflect.ValueOf(tool.Fields).Pointer()
		}
		return out
	}
	before := at()
	for _, step := range []struct {
		what, file, content string
		again               []string
	}{
		{"nothing", "", "", nil},
		{"a policy", "policy/x.rego", "package y\n", nil},
		{"a tool", "catalog/a/a.cue", "package catalog\n" + plainTool("a", "a2"), []string{"a", "d"}},
		{"a tool below", "catalog/a/deep/d.cue", "package catalog\n" + plainTool("d", "d2"), []string{"d"}},
		{"a library", "lib/lib.cue", "package lib\n\ntitle: \"lib2\"\n", []string{"b"}},
		{"what all inherit", "catalog/shared.cue", "package catalog\n\n_title: \"two\"\n", []string{"a", "b", "d"}},
		{"a new file", "catalog/b/c.cue", "package catalog\n", []string{"b"}},
		{"a file that is taken away", "catalog/b/c.cue", "-", []string{"b"}},
	} {
		if step.file != "" {
			files[step.file] = step.content
		}
		after := at()
		var again []string
		for _, name := range slices.Sorted(maps.Keys(after)) {
			if after[name] != before[name] {
				again = append(again, name)
			}
		}
		if !slices.Equal(again, step.again) {
			t.Errorf("%s: %v were evaluated again, want %v", step.what, again, step.again)
		}
		before = after
	}
}

// compileRecovers breaks a catalog and repairs it, with one compiler.
func compileRecovers(t *testing.T) {
	t.Parallel()
	c := compiler(t)
	good := map[string]string{"catalog/a/a.cue": "package catalog\n" + plainTool("a", "a"), "catalog/b/b.cue": "package catalog\n" + plainTool("b", "b")}
	want := sound(t, c, good)
	for _, bad := range []string{"package catalog\ntools: {", "package catalog\ntools: a: {}", "\xff", "package other", "package catalog\nimport \"x.y/z\""} {
		files := maps.Clone(good)
		files["catalog/a/a.cue"] = bad
		b, problems := load(t, c, loader.Tree{FS: tree(t, files)})
		if !problems.HasErrors() && bad != "package other" {
			t.Errorf("%q has no error", bad)
		}
		if len(b.Tools) != 1 || b.Tools[0].Name != "b" {
			t.Errorf("%q: the other package has %v", bad, listing(b))
		}
		if diff := cmp.Diff(want, sound(t, c, good)); diff != "" {
			t.Errorf("after %q (-want +got):\n%s", bad, diff)
		}
	}
}

// compileOnePlace reaches one file by two paths.
func compileOnePlace(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write(t, filepath.Join(root, "schema.cue"), string(schema(t)))
	write(t, filepath.Join(root, "cue.mod", "module.cue"), moduleFile)
	write(t, filepath.Join(root, "catalog", "a", "a.cue"), "package catalog\n"+plainTool("a", "a"))
	write(t, filepath.Join(root, "catalog", "b", "b.cue"), "package catalog\n"+plainTool("b", "b"))
	must(t, os.Symlink("a.cue", filepath.Join(root, "catalog", "a", "again.cue")))
	must(t, os.Symlink("../a/a.cue", filepath.Join(root, "catalog", "b", "a.cue")))
	must(t, os.Symlink("b", filepath.Join(root, "catalog", "c")))
	b, problems := load(t, compiler(t), loader.Dir{Root: root})
	if len(problems) > 0 {
		t.Errorf("problems:\n%s", full(problems))
	}
	if got, want := listing(b), "tool a http catalog/a/a.cue:2:8\ntool b http catalog/b/b.cue:2:8\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	// A copy is a second place.
	write(t, filepath.Join(root, "catalog", "d", "d.cue"), "package catalog\n"+plainTool("a", "a"))
	_, problems = load(t, compiler(t), loader.Dir{Root: root})
	if got, want := summary(problems), "catalog/a/a.cue:2:8: duplicate_name catalog/d/d.cue:2:8\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func compileTooManyTools(t *testing.T) {
	t.Parallel()
	c := loader.NewCompiler(loader.Config{Schema: schema(t), MaxTools: 2})
	src := "package catalog\n" + plainTool("a", "a") + plainTool("b", "b")
	sound(t, c, map[string]string{"catalog/a.cue": src})
	_, problems := load(t, c, loader.Tree{FS: tree(t, map[string]string{"catalog/a.cue": src, "catalog/c/c.cue": "package catalog\n" + plainTool("c", "c")})})
	if got := summary(problems); got != ".: too_many_tools\n" {
		t.Errorf("got %q", got)
	}
}

func TestCompileEnds(t *testing.T) {
	t.Parallel()
	snap, _ := loader.Tree{FS: tree(t, map[string]string{"catalog/a.cue": "package catalog\n" + plainTool("a", "a")})}.Snapshot(context.Background())
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	c := compiler(t)
	if b, problems := c.Compile(ctx, snap); b != nil || !problems.HasErrors() {
		t.Errorf("a build whose context has ended gave %v and %v", b, problems)
	}
	if b, problems := c.Compile(context.Background(), snap); len(b.Tools) != 1 || len(problems) > 0 {
		t.Errorf("the build after it gave %v and %v", b, problems)
	}
}

func TestCompileBadSchema(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"", "package catalog\n\n#Tool: {", "package catalog\n\n#Tool: {}\n"} {
		_, problems := load(t, loader.NewCompiler(loader.Config{Schema: []byte(s)}), loader.Tree{FS: tree(t, nil)})
		if len(problems) == 0 || problems[0].Code != problem.SchemaDiffers {
			t.Errorf("%q: got %v", s, problems)
		}
	}
}

// TestCompileConcurrently uses one compiler from many goroutines.
func TestCompileConcurrently(t *testing.T) {
	t.Parallel()
	c := compiler(t)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			name := string(rune('a' + i%2))
			b, problems := load(t, c, loader.Tree{FS: tree(t, map[string]string{
				"catalog/x/x.cue": "package catalog\n" + plainTool("x", "x"), "catalog/y/y.cue": "package catalog\n" + plainTool(name, name),
			})})
			if len(problems) > 0 || len(b.Tools) != 2 || b.Tools[0].Name != name {
				t.Errorf("got %v and %v", listing(b), problems)
			}
		})
	}
	wg.Wait()
}

// plainTool is a tool that needs nothing but the schema.
func plainTool(name, description string) string {
	return fmt.Sprintf("tools: %s: {\n\tdescription: %q\n\teffect: \"read\"\n\targs: limit?: int & <=100\n\tbinding: http: url: \"https://example.com/\"\n}\n", name, description)
}
