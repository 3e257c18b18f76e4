package binding_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/decision/trust"
	"github.com/catalogd/catalogd/internal/binding"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// documentedCommand is the tool of the tables of docs/bindings.md about commands.
func documentedCommand(t testing.TB, argv string) registry.Tool {
	t.Helper()
	spec := args(t, "name", "limit?:integer", "verbose?:boolean", "files?:array", "points?:array", "any?:array", "mixed?:boolean|string")
	spec.Schema = json.RawMessage(`{"type": "object", "additionalProperties": false, "required": ["name"], "properties": {
		"name": {"type": "string"}, "limit": {"type": "integer"}, "verbose": {"type": "boolean"}, "mixed": {"type": ["boolean", "string"]},
		"files": {"type": "array", "items": {"type": "string"}}, "points": {"type": "array", "items": {"type": "object"}}, "any": {"type": "array"}}}`)
	var elements []string
	if err := json.Unmarshal([]byte(argv), &elements); err != nil {
		t.Fatalf("%s: %v", argv, err)
	}
	tool := command(t, spec, "args", elements...)
	tool.Binding.Exec.Joined = true
	return tool
}

// Every row of the tables about commands is what the child is started with, or is refused as it says.
func TestDocsCommands(t *testing.T) {
	t.Parallel()
	for _, row := range rows(t, "| argv | arguments | command line |") {
		tool := documentedCommand(t, row[0])
		tool.Binding.Exec.Stdout = "json"
		in := checked(t, tool, row[1])
		plan, err := bind(t, tool, trust.Terms{}, binding.Deps{}).Plan(in)
		if at, ok := strings.CutPrefix(row[2], "refused at "); ok {
			var e *registry.Error
			if !errors.As(err, &e) || e.Code != registry.InvalidArguments || len(e.Violations) != 1 || e.Violations[0].Pointer != at {
				t.Errorf("%s with %s: got %v, want it %s", row[0], row[1], err, row[2])
			}
			continue
		}
		if err != nil {
			t.Errorf("%s with %s: %v", row[0], row[1], err)
			continue
		}
		var want []string
		if err := json.Unmarshal([]byte(row[2]), &want); err != nil {
			t.Fatalf("%s: %v", row[2], err)
		}
		if got := plan.Argv[3:]; !slices.Equal(got, want) {
			t.Errorf("%s with %s: got %q, want %q", row[0], row[1], got, want)
		}
	}
	for _, row := range rows(t, "| argv | problem |") {
		tool := documentedCommand(t, row[0])
		_, problems := binding.Compile(tool, "")
		if !slices.ContainsFunc(problems, func(p problem.Problem) bool {
			return p.Code == problem.BadPlaceholder && p.Path == "tools.tool.binding.exec.argv.2" && p.Message == row[1]
		}) {
			t.Errorf("%s: got %v, want %s", row[0], problems, row[1])
		}
	}
}

// A started child has exactly the elements that the arguments allow, and the capability covers no other.
func TestCommandsWithMarks(t *testing.T) {
	t.Parallel()
	tool := documentedCommand(t, `["{verbose?-v}", "{limit?--limit}", "--", "{files*}"]`)
	tool.Binding.Exec.Stdout = "json"
	c, problems := binding.Compile(tool, t.TempDir())
	if problems.HasErrors() {
		t.Fatal(problems.Err())
	}
	target, _ := c.Target()
	if got := target.Command.FromCall; !slices.Equal(got, []string{"files", "limit", "verbose"}) {
		t.Errorf("a call puts %v on the command line", got)
	}
	r, err := bind(t, tool, trust.Terms{}, binding.Deps{}).Invoke(t.Context(), registry.Invocation{
		Args: checked(t, tool, `{"name": "a", "verbose": true, "limit": 3, "files": ["-x", "$(y)"]}`)})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := content(t, r), `["-v","--limit","3","--","-x","$(y)"]`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Standard input is one argument as it is. A model then writes all of it, so the entry names the argument too.
func TestCommandReadsAnArgument(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ stdin, raw, want string }{
		{"{name}", `{"name": "a\n\u0000-b"}`, "a\n-b"}, // the output loses its control character
		{"{limit}", `{"name": "a", "limit": 12}`, "12"},
		{"{limit}", `{"name": "a"}`, ""},
	} {
		tool := documentedCommand(t, `[]`)
		tool.Binding.Exec.Argv, tool.Binding.Exec.Stdin = []string{"child", "cat"}, tt.stdin
		r, err := bind(t, tool, trust.Terms{}, binding.Deps{}).Invoke(t.Context(), registry.Invocation{Args: checked(t, tool, tt.raw)})
		if err != nil || content(t, r) != tt.want {
			t.Errorf("%s of %s: got %+v, %v, want %q", tt.stdin, tt.raw, r, err, tt.want)
		}
		c, _ := binding.Compile(tool, t.TempDir())
		target, _ := c.Target()
		if got := target.Command; !got.Stdin || !slices.Equal(got.FromCall, []string{strings.Trim(tt.stdin, "{}")}) {
			t.Errorf("%s: stdin %v, from_call %v", tt.stdin, got.Stdin, got.FromCall)
		}
	}
	for stdin, want := range map[string]string{
		"{files}": `can be an array, which is not a text`, "{nme}": `there is no argument "nme"; did you mean "name"?`,
		"{name?}": "is not one of none, json, or {name}", "x{name}": "is not one of none, json, or {name}", "{{name}}": "is not one of none",
	} {
		tool := documentedCommand(t, `[]`)
		tool.Binding.Exec.Stdin = stdin
		if _, problems := binding.Compile(tool, ""); !strings.Contains(problems.Err().Error(), want) {
			t.Errorf("%s: got %v, want %s", stdin, problems, want)
		}
	}
}

// FuzzMarks: what a call makes of a template has no element that an element of the template does not allow,
// and none that begins with a dash where the author wrote none.
func FuzzMarks(f *testing.F) {
	f.Add("{limit?--limit}", "{files*-i}", "a", "-x", int64(5), true)
	f.Add("--", "{files*}", "-rf", "--", int64(-5), false)
	f.Add("--n={limit?}", "{name}/{files*}", "", "-", int64(-1), true)
	f.Add("{verbose?-v}", "{{files*}}{name?}", "{name}", "{files*}", int64(0), true)
	f.Add("{limit?}{verbose?}", "x{files*", "}", "\n", int64(7), false)
	f.Fuzz(func(t *testing.T, first, second, name, file string, limit int64, verbose bool) {
		text, err := json.Marshal([]string{first, second})
		if err != nil {
			t.Fatal(err)
		}
		tool := documentedCommand(t, string(text))
		c, problems := binding.Compile(tool, "")
		if problems.HasErrors() {
			return
		}
		raw, err := json.Marshal(map[string]any{"name": name, "limit": limit, "verbose": verbose, "files": []string{file, name}})
		if err != nil {
			t.Fatal(err)
		}
		in := checked(t, tool, string(raw))
		plan, err := c.Bind(trust.Trust{}, binding.Deps{}).Plan(in)
		if err != nil {
			if code(err) != registry.InvalidArguments {
				t.Fatal(err)
			}
			return
		}
		rest := plan.Argv[3:]
		for i, e := range tool.Binding.Exec.Argv[2:] {
			want := becomes(e, in)
			if len(rest) < len(want) || !slices.Equal(rest[:len(want)], want) {
				t.Fatalf("%q with %s: got %q, want %q of %q", []string{first, second}, raw, plan.Argv[3:], want, e)
			}
			for _, got := range want {
				written := strings.HasPrefix(e, "-") || strings.Contains(e, "?-") || strings.Contains(e, "*-") || i == 1 && first == "--"
				if strings.HasPrefix(got, "-") && !written {
					t.Errorf("%q became %q, an option", e, got)
				}
			}
			rest = rest[len(want):]
		}
		if len(rest) > 0 {
			t.Errorf("%q: elements that nothing allows: %q", plan.Argv[3:], rest)
		}
	})
}

var (
	wholeElement = regexp.MustCompile(`^\{(name|limit|verbose|files)([?*])([^{}]+)\}$`)
	inElement    = regexp.MustCompile(`\{\{([A-Za-z_][A-Za-z0-9_-]*(?:[?*][^{}]*)?)\}\}|\{(name|limit|verbose|files)[?*]?\}`)
)

// becomes is a second reading of the table for a call that has all arguments.
func becomes(element string, in contract.Args) (out []string) {
	text := func(v any) string { return fmt.Sprint(v) }
	files, _ := in.Lookup("files")
	items := []any{""}
	m := wholeElement.FindStringSubmatch(element)
	if m != nil && m[2] == "*" || m == nil && strings.Contains(inElement.ReplaceAllStringFunc(element, func(m string) string {
		return strings.TrimPrefix(m, "{{")
	}), "{files*}") {
		items = files.([]any)
	}
	for _, item := range items {
		value := func(name string) any {
			if name == "files" {
				return item
			}
			v, _ := in.Lookup(name)
			return v
		}
		switch {
		case m != nil && m[1] == "verbose":
			if value("verbose") == true {
				out = append(out, m[3])
			}
		case m != nil:
			out = append(out, m[3], text(value(m[1])))
		default:
			out = append(out, inElement.ReplaceAllStringFunc(element, func(m string) string {
				if strings.HasPrefix(m, "{{") {
					return m[1 : len(m)-1]
				}
				return text(value(strings.Trim(m, "{}?*")))
			}))
		}
	}
	return out
}
