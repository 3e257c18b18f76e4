package binding_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/catalogd/catalogd/decision/trust"
	"github.com/catalogd/catalogd/decision/trusttest"
	"github.com/catalogd/catalogd/internal/binding"
	"github.com/catalogd/catalogd/internal/egress"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// One argument is one element, whatever it holds.
func execHostileValues(t *testing.T) {
	t.Parallel()
	tool := command(t, args(t, "v"), "args", "{v}", "--file={v}", "[{v}|{v}]", "{{v}}", `{"a":1}`, "--", "{v}")
	tool.Binding.Exec.Joined = true
	tool.Binding.Exec.Stdout = "json"
	canary := filepath.Join(t.TempDir(), "X")
	invoker := bind(t, tool, trust.Terms{}, binding.Deps{})
	for _, v := range []string{
		"plain", "", " ", "two words", "; touch " + canary, "$(touch " + canary + ")", "`touch " + canary + "`", "| touch " + canary, "a\nb\n", "\t",
		"%s%n%d", "*", "~", "$HOME", "${HOME}", "{v}", "{{v}}", `"quoted"`, `'`, `\`, "\u202e", "é🙂", "--"[:0] + "a--", strings.Repeat("x", 50<<10),
	} {
		raw, err := json.Marshal(map[string]string{"v": v})
		if err != nil {
			t.Fatal(err)
		}
		r, err := invoker.Invoke(t.Context(), registry.Invocation{Args: checked(t, tool, string(raw))})
		if err != nil {
			t.Errorf("%.30q: %v", v, err)
			continue
		}
		var got []string
		if err := json.Unmarshal([]byte(content(t, r)), &got); err != nil {
			t.Fatal(err)
		}
		want := []string{v, "--file=" + v, "[" + v + "|" + v + "]", "{v}", `{"a":1}`, "--", v}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%.30q: (-want +got)\n%s", v, diff)
		}
	}
	if _, err := os.Stat(canary); err == nil {
		t.Error("a value ran")
	}
}

func execRefusesValues(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 128<<10)
	for _, tt := range []struct {
		argv   []string
		v      string
		expect string // in the violation; empty when the call is fine
	}{
		{[]string{"{v}"}, "-oProxyCommand=x", "take it for an option"},
		{[]string{"{v}"}, "--output=/etc/x", "take it for an option"},
		{[]string{"{v}"}, "-", "take it for an option"},
		{[]string{"{v}.txt"}, "-x", "take it for an option"},
		{[]string{"{v}-x"}, "", "take it for an option"},
		{[]string{"{v}", "--"}, "-x", "take it for an option"},
		{[]string{"-n", "{v}"}, "-5", "take it for an option"},
		{[]string{"--", "{v}"}, "-x", ""},
		{[]string{"--n={v}"}, "-5", ""},
		{[]string{"-{v}"}, "-5", ""},
		{[]string{"{v}"}, "a\x00b", "NUL"},
		{[]string{"--", "{v}"}, "\x00", "NUL"},
		{[]string{"{v}"}, long, "at most 131071 bytes"},
		{[]string{"{v}"}, long[1:], ""},
		{[]string{"--x={v}"}, long[1:], "at most 131071 bytes"},
		{slices.Repeat([]string{"{v}"}, 40), long[1:], "too long for one command line"},
	} {
		tool := command(t, args(t, "v"), "args", tt.argv...)
		tool.Binding.Exec.Joined = true
		raw, err := json.Marshal(map[string]string{"v": tt.v})
		if err != nil {
			t.Fatal(err)
		}
		_, err = bind(t, tool, trust.Terms{}, binding.Deps{}).Invoke(t.Context(), registry.Invocation{Args: checked(t, tool, string(raw))})
		switch {
		case tt.expect == "" && err != nil:
			t.Errorf("%q with %.20q: %v", tt.argv, tt.v, err)
		case tt.expect != "" && (code(err) != registry.InvalidArguments || !strings.Contains(err.Error(), tt.expect)):
			t.Errorf("%.60q with %.20q: got %v, want %q", tt.argv, tt.v, err, tt.expect)
		}
	}
}

func execNumbersAndBooleans(t *testing.T) {
	t.Parallel()
	tool := command(t, args(t, "n:integer", "x:number", "on:boolean", "d=7:integer"), "print", "--n={n}", "--x={x}", "{on}", "{d}")
	tool.Binding.Exec.Joined = true
	invoker := bind(t, tool, trust.Terms{}, binding.Deps{})
	for raw, want := range map[string]string{
		`{"n":9007199254740993,"x":0.10,"on":true}`:    "--n=9007199254740993 --x=0.10 true 7",
		`{"n":-5,"x":-1.5,"on":false,"d":8}`:           "--n=-5 --x=-1.5 false 8",
		`{"n":123456789012345678901,"x":1,"on":false}`: "--n=123456789012345678901 --x=1 false 7",
	} {
		r, err := invoker.Invoke(t.Context(), registry.Invocation{Args: checked(t, tool, raw)})
		if err != nil {
			t.Fatal(err)
		}
		if got := content(t, r); got != want {
			t.Errorf("%s: got %q, want %q", raw, got, want)
		}
	}
}

func execResults(t *testing.T) {
	t.Setenv("EXEC_TOKEN", "s3cr3t-value")
	for _, tt := range []struct {
		part, stdout string
		argv         []string
		want         string
		isError      bool
		structured   string
	}{
		{"print", "text", []string{"hello"}, "hello", false, ""},
		{"print", "text", nil, "", false, ""},
		{"print", "json", []string{` {"b": 9007199254740993, "a": "<&>"} `}, `{"b":9007199254740993,"a":"<&>"}`, false, `{"b":9007199254740993,"a":"<&>"}`},
		{"print", "json", []string{`{"b": 1, "a": {"k": 1, "k": 2}}`}, `{"a":{"k":2},"b":1}`, false, `{"a":{"k":2},"b":1}`},
		{"print", "json", []string{"[1, 2]"}, "[1,2]", false, ""},
		{"print", "json", []string{"not json"}, "the command's output was to be one JSON value, and is not. It begins:\nnot json", true, ""},
		{"print", "json", []string{"{} {}"}, "the command's output was to be one JSON value, and is not. It begins:\n{} {}", true, ""},
		{"print", "json", nil, "the command's output was to be one JSON value, and is not. It begins:\n", true, ""},
		{"fail", "text", nil, "the command ended with exit status 3, in a private directory (its binding has no cwd):\nit went wrong: ***\nsome output", true, ""},
		{"fail", "json", nil, "the command ended with exit status 3, in a private directory (its binding has no cwd):\nit went wrong: ***\nsome output", true, ""},
		{"env", "text", []string{"TOKEN"}, "TOKEN=Key ***", false, ""},
		{"raw", "text", nil, "a\uFFFDbcde\tf\ng", false, ""},
	} {
		tool := command(t, args(t), tt.part, tt.argv...)
		tool.Binding.Exec.Stdout = tt.stdout
		tool.Binding.Exec.Env = map[string]registry.Value{"TOKEN": {Secret: "env:EXEC_TOKEN", Prefix: "Key "}}
		if tt.part == "fail" {
			tool.Binding.Exec.Env = map[string]registry.Value{"TOKEN": {Secret: "env:EXEC_TOKEN"}}
		}
		r, err := bind(t, tool, trust.Terms{Env: []string{"TOKEN"}}, binding.Deps{}).Invoke(t.Context(), registry.Invocation{Args: checked(t, tool, "{}")})
		if err != nil {
			t.Errorf("%s: %v", tt.part, err)
			continue
		}
		if got := content(t, r); got != tt.want || r.IsError != tt.isError || string(r.Structured) != tt.structured {
			t.Errorf("%s %q: got %q, error %v, structured %s", tt.part, tt.argv, got, r.IsError, r.Structured)
		}
	}
}

func execEnvironmentAndPlan(t *testing.T) {
	t.Setenv("EXEC_TOKEN", "s3cr3t-value")
	t.Setenv("EXEC_PASSED", "passed-value")
	t.Setenv("EXEC_OTHER", "leak")
	tool := command(t, args(t, "n:integer"), "env", "EXEC_FIXED", "EXEC_OTHER", "EXEC_PASSED", "LANG", "TOKEN", "{n}")
	tool.Binding.Exec.Stdin = "json"
	tool.Binding.Exec.Env = map[string]registry.Value{"TOKEN": {Secret: "env:EXEC_TOKEN", Prefix: "Bearer "}, "LANG": {Literal: "C"}}
	invoker := bind(t, tool, trust.Terms{
		Env: []string{"EXEC_FIXED", "EXEC_PASSED", "EXEC_UNSET", "LANG", "TOKEN"}, Fixed: map[string]string{"EXEC_FIXED": "1"},
	}, binding.Deps{})
	in := checked(t, tool, `{"n":3}`)
	r, err := invoker.Invoke(t.Context(), registry.Invocation{Args: in})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := content(t, r), "EXEC_FIXED=1\nEXEC_PASSED=passed-value\nLANG=C\nTOKEN=Bearer ***"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	plan, err := invoker.Plan(in)
	if err != nil {
		t.Fatal(err)
	}
	if plan.Argv[len(plan.Argv)-1] != "3" || !filepath.IsAbs(plan.Argv[0]) || plan.Stdin != `{"n":3}` || plan.Dir != "" ||
		!slices.Equal(plan.Env, []string{"EXEC_FIXED=1", "EXEC_PASSED=***", "LANG=C", "TOKEN=Bearer ***"}) {
		t.Errorf("plan %+v", plan)
	}
	// A secret that is not there fails the call and says why only to the operator.
	tool.Binding.Exec.Env = map[string]registry.Value{"TOKEN": {Secret: "env:EXEC_UNSET"}}
	_, err = bind(t, tool, trust.Terms{Env: []string{"TOKEN"}}, binding.Deps{}).Invoke(t.Context(), registry.Invocation{Args: in})
	if code(err) != registry.BindingFailed || !strings.Contains(err.Error(), "EXEC_UNSET") {
		t.Errorf("an unset secret: %v", err)
	}
}

// What a model writes reaches a command line only where the trust names it: the check of a build says so, and
// a call is refused.
func execFromCallNeedsNaming(t *testing.T) {
	t.Parallel()
	tool := command(t, args(t, "a", "b", "c", "n=1:integer"), "args", "{a}", "--x={n}", "{{b}}", "{c", "{a}")
	tool.Binding.Exec.Joined, tool.Binding.Exec.Stdin = true, "json"
	c, problems := binding.Compile(tool, t.TempDir())
	if problems.HasErrors() {
		t.Fatal(problems.Err())
	}
	target, _ := c.Target()
	if got := target.Command.FromCall; !slices.Equal(got, []string{"a", "n"}) {
		t.Fatalf("a call puts %v on the command line", got)
	}
	in := checked(t, tool, `{"a":"1","b":"2","c":"3"}`)
	for want, granted := range map[string][]string{
		"puts a, n on": nil, "puts n on": {"a", "b"}, "puts a on": {"n", "A", "a=1", "*"}, "": {"b", "n", "a"},
	} {
		tr := trusttest.New(target, trust.Terms{FromCall: granted, Stdin: true})
		_, err := c.Bind(tr, binding.Deps{}).Invoke(t.Context(), registry.Invocation{Args: in})
		if why := c.Check(tr, false); want == "" && (why != nil || err != nil) || want != "" && (why == nil || !strings.Contains(why.Error(), want) || code(err) != registry.BindingFailed) {
			t.Errorf("granted %v: check %v, call %v", granted, why, err)
		}
	}
}

func execInterpreterNeedsSaying(t *testing.T) {
	t.Parallel()
	tool := command(t, args(t), "")
	tool.Binding.Exec.Command, tool.Binding.Exec.Argv = "/bin/sh", []string{"-c", "echo hi"}
	in := checked(t, tool, "{}")
	c, problems := binding.Compile(tool, "")
	if problems.HasErrors() {
		t.Fatal(problems.Err())
	}
	target, _ := c.Target()
	for interpreter, enough := range map[bool]bool{false: false, true: true} {
		if err := c.Check(trusttest.New(target, trust.Terms{Interpreter: interpreter}), false); (err == nil) != enough {
			t.Errorf("interpreter %v: %v", interpreter, err)
		}
	}
	if err := c.Check(trust.Trust{}, false); err == nil {
		t.Error("no trust is enough")
	}
	if _, err := bind(t, tool, trust.Terms{}, binding.Deps{}).Invoke(t.Context(), registry.Invocation{Args: in}); code(err) != registry.BindingFailed || !strings.Contains(err.Error(), "interpreter: true") {
		t.Errorf("got %v", err)
	}
	if r, err := bind(t, tool, trust.Terms{Interpreter: true}, binding.Deps{}).Invoke(t.Context(), registry.Invocation{Args: in}); err != nil || content(t, r) != "hi\n" {
		t.Errorf("got %+v, %v", r, err)
	}
}

func execBad(t *testing.T) {
	t.Parallel()
	base := func() registry.Tool {
		tool := command(t, args(t, "city", "units?", "limit=10:integer", "list:array", "maybe:null|string", "any:object|string|integer"), "args", "{city}", "{limit}")
		tool.Binding.Exec.Env = map[string]registry.Value{"A": {Literal: "1"}}
		return tool
	}
	commandIs := func(s string) func(*registry.Tool) { return func(t *registry.Tool) { t.Binding.Exec.Command = s } }
	argvIs := func(argv ...string) func(*registry.Tool) {
		return func(t *registry.Tool) { t.Binding.Exec.Argv = argv }
	}
	valueIs := func(v registry.Value) func(*registry.Tool) {
		return func(t *registry.Tool) { t.Binding.Exec.Env["A"] = v }
	}
	testBad(t, base, []bad{
		{"empty command", commandIs(""), problem.BadBinding, "binding.exec.command", "empty"},
		{"command line", commandIs("ls -l"), problem.BadBinding, "binding.exec.command", "put arguments into argv"},
		{"no name", commandIs(".."), problem.BadBinding, "binding.exec.command", "is a directory"},
		{"unknown placeholder", argvIs("x", "{cty}"), problem.BadPlaceholder, "binding.exec.argv.1", `did you mean "city"? (for the text {cty} write {{cty}})`},
		{"nothing near", argvIs("{zebra}"), problem.BadPlaceholder, "binding.exec.argv.0", `there is no argument "zebra" (for`},
		{"optional", argvIs("{units}"), problem.BadPlaceholder, "binding.exec.argv.0", "optional and has no default"},
		{"list", argvIs("{list}"), problem.BadPlaceholder, "binding.exec.argv.0", "can be an array"},
		{"null", argvIs("{maybe}"), problem.BadPlaceholder, "binding.exec.argv.0", "can be null"},
		{"some object", argvIs("{any}"), problem.BadPlaceholder, "binding.exec.argv.0", "can be an object"},
		{"not joined", argvIs("--city={city}"), problem.BadPlaceholder, "binding.exec.argv.0", "set joined: true"},
		{"two in one", argvIs("{city}{city}"), problem.BadPlaceholder, "binding.exec.argv.0", "set joined: true"},
		{"NUL", argvIs("a\x00"), problem.BadBinding, "binding.exec.argv.0", "NUL"},
		{"stdin", func(t *registry.Tool) { t.Binding.Exec.Stdin = "xml" }, problem.BadBinding, "binding.exec.stdin", "not one of none, json"},
		{"stdout", func(t *registry.Tool) { t.Binding.Exec.Stdout = "" }, problem.BadBinding, "binding.exec.stdout", "not one of text, json"},
		{"cwd", func(t *registry.Tool) { t.Binding.Exec.Cwd = "no/such" }, problem.BadBinding, "binding.exec.cwd", "no directory"},
		{"cap", func(t *registry.Tool) { t.Binding.Exec.MaxOutput = -1 }, problem.BadBinding, "binding.exec.maxOutput", "above 0"},
		{"variable's name", func(t *registry.Tool) { t.Binding.Exec.Env["B=C"] = registry.Value{} }, problem.BadBinding, "binding.exec.env.B=C", "no ="},
		{"pasted secret", valueIs(registry.Value{Secret: "hunter2"}), problem.BadSecret, "binding.exec.env.A", "never the value itself"},
		{"both", valueIs(registry.Value{Secret: "env:A", Literal: "x"}), problem.BadSecret, "binding.exec.env.A", "both"},
		{"prefix alone", valueIs(registry.Value{Prefix: "x"}), problem.BadSecret, "binding.exec.env.A", "no secret"},
		{"NUL value", valueIs(registry.Value{Literal: "\x00"}), problem.BadBinding, "binding.exec.env.A", "NUL"},
	})
	_, problems := binding.Compile(base(), "")
	var unused []string
	for _, p := range problems {
		if p.Severity == problem.Warning && strings.Contains(p.Message, "goes nowhere") {
			unused = append(unused, p.Path)
		}
	}
	if want := []string{"tools.tool.args.units", "tools.tool.args.list", "tools.tool.args.maybe", "tools.tool.args.any"}; !slices.Equal(unused, want) {
		t.Errorf("unused: %q", unused)
	}
}

// FuzzArgv holds expansion against a second reading of the rule: each element of the template is one element of the
// command line, and a value appears in it as it is, never read again.
func FuzzArgv(f *testing.F) {
	f.Add("{x}", "--y={y}", "a b", "c")
	f.Add("{{x}}", "{{{x}}}", "{x}", "$(touch X)")
	f.Add("{x}{y}", "{", "{y}", "\n")
	f.Add("{ x }", `{"x":1}`, "-", "--")
	rule := regexp.MustCompile(`\{\{([A-Za-z_][A-Za-z0-9_-]*)\}\}|\{(x|y)\}`)
	f.Fuzz(func(t *testing.T, first, second, x, y string) {
		raw, err := json.Marshal(map[string]string{"x": x, "y": y})
		if err != nil {
			t.Fatal(err)
		}
		template := []string{"--", first, second}
		tool := command(t, args(t, "x", "y"), "args", template...)
		tool.Binding.Exec.Joined = true
		c, problems := binding.Compile(tool, "")
		if problems.HasErrors() {
			return
		}
		in := checked(t, tool, string(raw))
		values := map[string]string{}
		for name, v := range in.Object() {
			values[name] = v.(string) // as the contract has it: invalid UTF-8 was replaced by the encoder
		}
		plan, err := c.Bind(trust.Trust{}, binding.Deps{}).Plan(in)
		if err != nil {
			if code(err) != registry.InvalidArguments {
				t.Fatal(err)
			}
			return
		}
		if got, want := len(plan.Argv), 1+len(tool.Binding.Exec.Argv); got != want {
			t.Fatalf("%d elements of %d", got, want)
		}
		for i, text := range template {
			want := rule.ReplaceAllStringFunc(text, func(m string) string {
				if name, ok := strings.CutPrefix(m, "{{"); ok {
					return "{" + strings.TrimSuffix(name, "}}") + "}"
				}
				return values[m[1:len(m)-1]]
			})
			if got := plan.Argv[3+i]; got != want {
				t.Errorf("%q with x=%q y=%q: got %q, want %q", text, values["x"], values["y"], got, want)
			}
		}
	})
}

// execMissing holds that a command of which there is no file, or one that can't be run, is a warning and compiles, so
// that only its tool is hidden. What the binding's own environment says of PATH has no influence.
func execMissing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "only-there"), []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	dangling := filepath.Join(dir, "dangling")
	if err := os.Symlink("nowhere", dangling); err != nil {
		t.Fatal(err)
	}
	plain, setuid := filepath.Join(dir, "plain"), filepath.Join(dir, "setuid")
	for path, mode := range map[string]os.FileMode{plain: 0o644, setuid: 0o755 | os.ModeSetuid} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct{ declared, why string }{
		{"no-such-program", "is not on PATH"},
		{"only-there", "is not on PATH"},
		{"./no/such", "no/such does not exist; install it"},
		{"/no/such/program", "/no/such/program does not exist; install it"},
		{plain + "/x", "plain/x does not exist; install it"},
		{dangling, "dangling is a symbolic link to nowhere, and what it leads to does not exist"},
		{dir, "is a directory"},
		{plain, "not executable"},
		{setuid, "setuid"},
	} {
		tool := command(t, args(t), "")
		tool.Binding.Exec.Command = tt.declared
		tool.Binding.Exec.Env = map[string]registry.Value{"PATH": {Literal: dir}}
		tool.Fields = map[string]problem.Position{"binding.exec.command": {File: "a.cue", Line: 7, Col: 3}}
		c, problems := binding.Compile(tool, dir)
		if c == nil || len(problems) != 1 {
			t.Errorf("%s: got %v, %v; want a warning alone", tt.declared, c, problems)
			continue
		}
		p, missing := problems[0], c.Missing()
		if p.Code != problem.MissingCommand || p.Severity != problem.Warning || p.Line != 7 || !strings.HasSuffix(p.Message, ": "+missing) {
			t.Errorf("%s: got %v", tt.declared, p)
		}
		if !strings.HasPrefix(missing, egress.NotHere) && !strings.HasPrefix(missing, egress.NotRunnable) || !strings.Contains(missing, tt.why) {
			t.Errorf("%s: missing is %q, want it with %q", tt.declared, missing, tt.why)
		}
	}
}
