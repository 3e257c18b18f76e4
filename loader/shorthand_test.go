package loader_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/catalogd/catalogd/internal/binding"
	"github.com/catalogd/catalogd/loader"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// bound loads a catalog with one tool that has this binding, which begins at column 11 of line 6.
func bound(t *testing.T, source, more string) (*registry.Build, problem.List) {
	t.Helper()
	src := fmt.Sprintf("package catalog\ntools: a: {\n\tdescription: \"d\"\n\teffect: \"read\"\n\targs: id!: string\n\tbinding: %s\n}\n%s\n", source, more)
	return load(t, loader.NewCompiler(loader.Config{Schema: schema(t)}), loader.Tree{FS: tree(t, map[string]string{"catalog/a.cue": src})})
}

// A shorthand and its full form make the same tool, and its parts have the positions of what is written.
func TestShorthand(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/bindings.md")
	must(t, err)
	_, section, _ := strings.Cut(string(page), "\n## Short forms\n")
	section, _, _ = strings.Cut(section, "\n## ")
	cases := []struct{ short, full, more, at, col string }{
		{`jq: ".id"`, `jq: program: ".id"`, ``, "binding.jq.program", "11"},
		{`http: "https://example.com/{id}"`, `http: url: "https://example.com/{id}"`, ``, "binding.http.url", "11"},
		{`exec: ["true"]`, `exec: command: "true"`, ``, "binding.exec.command", "18"},
		{`exec: ["git", "log", "{id}"]`, `exec: {command: "git", argv: ["log", "{id}"]}`, ``, "binding.exec.argv.1", "32"},
		{`_#b & {_a: "git"}`, `exec: {command: "git", argv: ["log"]}`, `_#b: {_a: string, exec: [_a, "log"]}`, "binding.exec.argv.0", "2"},
		{`exec: ["git", if true {"log"}]`, `exec: {command: "git", argv: ["log"]}`, ``, "binding.exec.command", "18"},
	}
	rows := regexp.MustCompile("(?m)^\\| `(.*)` \\| `(.*)` \\|$").FindAllStringSubmatch(section, -1)
	if len(rows) != 3 {
		t.Errorf("docs/bindings.md shows %d short forms", len(rows))
	}
	for _, row := range rows {
		cases = append(cases, struct{ short, full, more, at, col string }{row[1], row[2], "", "binding", "2"})
	}
	for _, tt := range cases {
		short, problems := bound(t, tt.short, tt.more)
		if len(problems) > 0 {
			t.Errorf("%s: %v", tt.short, problems)
			continue
		}
		full, problems := bound(t, tt.full, "")
		if len(problems) > 0 {
			t.Fatalf("%s: %v", tt.full, problems)
		}
		if diff := cmp.Diff(full.Tools, short.Tools, cmpopts.IgnoreFields(registry.Source{}, "Pos", "Fields")); diff != "" {
			t.Errorf("%s (-full +short):\n%s", tt.short, diff)
		}
		if got := short.Tools[0].At(tt.at); fmt.Sprint(got.Col) != tt.col {
			t.Errorf("%s: %s is at %v, want column %s", tt.short, tt.at, got, tt.col)
		}
		for path := range short.Tools[0].Fields {
			if strings.HasPrefix(path, "binding.exec.0") {
				t.Errorf("%s: a position of the shorthand is left: %s", tt.short, path)
			}
		}
	}
}

// Every mistake in a shorthand, or in the full form beside it, is one problem at its own position, in words
// that a reader of the catalog understands.
func TestShorthandMistakes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		source, more string
		want         []string // column (of line 6) or position: the message, or its beginning
	}{
		{`jq: 1`, ``, []string{`15: jq must be {program: ...} or a string that is not empty`}},
		{`jq: ""`, ``, []string{`15: jq must be {program: ...} or a string that is not empty (invalid value ""`}},
		{`jq: ["."]`, ``, []string{`15: jq must be {program: ...} or a string that is not empty`}},
		{`jq: null`, ``, []string{`15: jq must be {program: ...} or a string that is not empty`}},
		{`jq: {prgram: "."}`, ``, []string{`16: there is no field "prgram" here; did you mean "program"?`}},
		{`jq: {}`, ``, []string{`11: program is missing; write program: ...`}},
		{`jq: {program: 1, output: "xml"}`, ``, []string{
			`25: program must be a string that is not empty (conflicting values 1 and`, `36: output must be "json" or "content"`}},
		{`http: 1`, ``, []string{`17: http must be {url: ...} or a string that is not empty`}},
		{`http: " "`, ``, []string{`17: http must be {url: ...} or a string that is not empty (invalid value " "`}},
		{`http: ["x"]`, ``, []string{`17: http must be {url: ...} or a string that is not empty`}},
		{`http: string`, ``, []string{`11: incomplete value`}},
		{`http: {uri: "x", method: "get"}`, ``, []string{
			`18: there is no field "uri" here; did you mean "url"?`, `36: method must be "GET", "HEAD", "POST"`}},
		{`http: {url: "https://example.com", headers: X: ["a"], body: {kind: "xml"}}`, ``, []string{
			`58: X must be a string, or {secret:`, `78: kind must be "json", "form", "multipart" or "raw"`}},
		{`exec: "git log"`, ``, []string{`17: exec must be {command: ...} or a list of at least one string`}},
		{`exec: true`, ``, []string{`17: exec must be {command: ...} or a list of at least one string`}},
		{`exec: []`, ``, []string{`11: exec must be {command: ...} or a list of at least one string (the list is empty)`}},
		{`exec: [""]`, ``, []string{`18: an item of exec must be a string that is not empty (invalid value ""`}},
		{`exec: [1, "a", 2, ["b"]]`, ``, []string{
			`18: an item of exec must be a string that is not empty (conflicting values 1 and`,
			`26: an item of exec must be a string (conflicting values 2 and string`,
			`29: an item of exec must be a string (conflicting values ["b"] and string`}},
		{`exec: ["a", nosuch]`, ``, []string{`23: nothing is called "nosuch"`}},
		{`exec: [string]`, ``, []string{`18: incomplete value`}},
		{`exec: ["a"] & {command: "a"}`, ``, []string{`17: conflicting values ["a"] and {command:"a"}`}},
		{`exec: {comand: "a"}`, ``, []string{`18: there is no field "comand" here; did you mean "command"?`}},
		{`exec: {command: "a", argv: ["x", 1], stdin: "yaml", joined: "yes", cwd: ""}`, ``, []string{
			`44: an item of argv must be a string (conflicting values 1 and string`, `55: stdin must be`,
			`71: joined must be false or true`, `83: cwd must be a string that is not empty`}},
		{`_b`, "_b: exec: [\"a\",\n 1]", []string{`catalog/a.cue:9:2: an item of exec must be a string (conflicting values 1 and string`}},
		{`_b`, "_b: exec: {command: 1,\n argv: [2]}", []string{
			`catalog/a.cue:8:21: command must be a string that is not empty`, `catalog/a.cue:9:9: an item of argv must be a string`}},
		{`{jq: ".", exec: ["a"]}`, ``, []string{`2: binding has exec and jq; keep exactly one`}},
		{`jq: "."`, `tools: a: binding: jq: {program: ".", output: "json"}`, []string{`catalog/a.cue:6:15: conflicting values "." and {program:".",output:"json"}`}},
	} {
		_, problems := bound(t, tt.source, tt.more)
		var got []string
		for _, p := range problems {
			got = append(got, fmt.Sprintf("%s: %s: %s", p.Position, p.Path, p.Message))
		}
		if len(got) != len(tt.want) {
			t.Errorf("%s: got %d problems, want %d:\n%s", tt.source, len(got), len(tt.want), strings.Join(got, "\n"))
			continue
		}
		for i, want := range tt.want {
			at, message, _ := strings.Cut(want, ": ")
			if !strings.Contains(at, ":") {
				at = "catalog/a.cue:6:" + at
			}
			p := problems[i]
			if p.Position.String() != at || !strings.HasPrefix(p.Message, message) || strings.Contains(p.Message, "disjunction") || strings.Contains(p.Message, "alternatives") {
				t.Errorf("%s: got  %s\nwant %s: %s", tt.source, got[i], at, message)
			}
		}
	}
}

// What a binding's own check reports of a shorthand is at the element or value that it is about.
func TestShorthandPlaceholders(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ source, want string }{
		{`exec: ["echo", "x", "{ide}"]`, `catalog/a.cue:6:31: bad_placeholder: tools.a.binding.exec.argv.1: there is no argument "ide"; did you mean "id"?`},
		{`exec: ["no-such-program", "{id}"]`, `catalog/a.cue:6:18: missing_command: warning: tools.a.binding.exec.command: `},
		{`http: "https://example.com/{ide}"`, `catalog/a.cue:6:11: bad_placeholder: tools.a.binding.http.url: there is no argument "ide"; did you mean "id"?`},
		{`jq: ".id +"`, `catalog/a.cue:6:11: bad_jq: tools.a.binding.jq.program: `},
	} {
		b, problems := bound(t, tt.source, "")
		if problems.HasErrors() {
			t.Fatalf("%s: %v", tt.source, problems)
		}
		if _, problems = binding.Compile(b.Tools[0], t.TempDir()); len(problems) != 1 || !strings.HasPrefix(problems[0].String(), tt.want) {
			t.Errorf("%s: got %v, want %s", tt.source, problems, tt.want)
		}
	}
	_, problems := bound(t, `exec: ["curl", "--header", "Authorization: Bearer c29tZS1zZWNyZXQtdmFsdWUtMTIz"]`, "")
	if len(problems) != 1 || problems[0].Code != problem.LiteralSecret || problems[0].Col != 38 {
		t.Errorf("a literal secret: %v", problems)
	}
}
