package binding_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/decision/trust"
	"github.com/catalogd/catalogd/decision/trusttest"
	"github.com/catalogd/catalogd/internal/binding"
	"github.com/catalogd/catalogd/internal/worker"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// TestMain lets the test binary play the commands of these tests.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "child" {
		// Not os.Exit, which waits for a second under the race detector.
		syscall.Exit(child(os.Args[2], os.Args[3:]))
	}
	os.Exit(m.Run())
}

func child(part string, args []string) int {
	switch part {
	case "worker":
		return worker.Child(os.Stdin, os.Stdout)
	case "args":
		b, err := json.Marshal(args)
		if err != nil {
			return 1
		}
		os.Stdout.Write(b)
	case "print":
		fmt.Print(strings.Join(args, " "))
	case "env":
		var found []string
		for _, name := range args {
			if value, ok := os.LookupEnv(name); ok {
				found = append(found, name+"="+value)
			}
		}
		fmt.Print(strings.Join(found, "\n"))
	case "cat":
		io.Copy(os.Stdout, os.Stdin)
	case "sleep":
		time.Sleep(time.Hour)
	case "fail":
		fmt.Print("some output")
		fmt.Fprint(os.Stderr, "it went wrong: \x1b[31m", os.Getenv("TOKEN"), "\x1b[0m")
		return 3
	case "effect": // does it, notes so in the file, and ends as it is told
		f, err := os.OpenFile(args[0], os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return 1
		}
		fmt.Fprintln(f, os.Getenv(trust.KeyVariable))
		f.Close()
		switch how := args[1]; how {
		case "killed":
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
		case "hangs":
			time.Sleep(time.Hour)
		case "floods":
			for range 1000 {
				os.Stdout.WriteString(strings.Repeat("x", 4096))
			}
		case "floods and fails":
			for range 1000 {
				os.Stdout.WriteString(strings.Repeat("x", 4096))
			}
			fmt.Fprint(os.Stderr, "at last it failed")
			return 7
		case "leaves a child": // which leaves the group, and holds the streams open
			left := exec.Command(os.Args[0], "child", "sleep")
			left.Stdout, left.Stderr, left.SysProcAttr = os.Stdout, os.Stderr, &syscall.SysProcAttr{Setsid: true}
			if err := left.Start(); err != nil {
				return 1
			}
			os.WriteFile(args[0]+".pid", []byte(fmt.Sprint(left.Process.Pid)), 0o600)
			fmt.Print(`"done"`)
		default:
			fmt.Print(how)
		}
	case "flood":
		for {
			if _, err := os.Stdout.WriteString(strings.Repeat("x", 4096)); err != nil {
				return 1
			}
		}
	case "raw":
		os.Stdout.WriteString("a\xffb\x1b]52;c;ZXZpbA==\x07c\x1b[2Jd\x00e\tf\n\u009bg")
	default:
		return 99
	}
	return 0
}

// args makes a contract's spec of "name", "name?" (optional) or "name=default", each with ":type|type".
func args(t testing.TB, declared ...string) contract.Spec {
	t.Helper()
	properties, required := map[string]any{}, []string{}
	spec := contract.Spec{Strictness: contract.Closed}
	for _, d := range declared {
		name, types, ok := strings.Cut(d, ":")
		f := contract.Field{Types: strings.Split(types, "|")}
		if !ok {
			f.Types = []string{"string"}
		}
		slices.Sort(f.Types)
		property := map[string]any{"type": f.Types}
		if n, def, ok := strings.Cut(name, "="); ok {
			name, f.Default = n, json.RawMessage(def)
			property["default"] = f.Default
		} else if n, ok := strings.CutSuffix(name, "?"); ok {
			name = n
		} else {
			f.Required = true
			required = append(required, name)
		}
		f.Name = name
		properties[name] = property
		spec.Fields = append(spec.Fields, f)
	}
	schema, err := json.Marshal(map[string]any{"type": "object", "properties": properties, "required": required, "additionalProperties": false})
	if err != nil {
		t.Fatal(err)
	}
	spec.Schema = schema
	return spec
}

// checked are arguments that have passed the tool's contract.
func checked(t testing.TB, tool registry.Tool, raw string) contract.Args {
	t.Helper()
	c, err := contract.New(tool.Args, nil)
	if err != nil {
		t.Fatal(err)
	}
	a, violations, err := c.Check(context.Background(), json.RawMessage(raw))
	if err != nil || violations != nil {
		t.Fatalf("%s: %v %v", raw, violations, err)
	}
	return a
}

// programRunner runs jq programs in child processes.
func programRunner(t testing.TB) *worker.ProgramRunner {
	t.Helper()
	r := worker.NewProgramRunner(worker.ProgramRunnerConfig{Args: []string{"child", "worker"}, Deadline: time.Minute})
	t.Cleanup(r.Close)
	return r
}

// bind compiles a tool and binds it with these terms of trust, which name what calls put on its command line, its headers and its secrets.
func bind(t testing.TB, tool registry.Tool, terms trust.Terms, deps binding.Deps) registry.Invoker {
	t.Helper()
	c, problems := binding.Compile(tool, t.TempDir())
	if problems.HasErrors() {
		t.Fatal(problems.Err())
	}
	var tr trust.Trust
	if target, outward := c.Target(); outward {
		if target.Command != nil {
			terms.FromCall, terms.Stdin = target.Command.FromCall, target.Command.Stdin
		}
		if target.URL != nil {
			terms.FromCall = target.FromCall
		}
		terms.Headers, terms.Secrets = target.Headers, target.Secrets
		tr = trusttest.New(target, terms)
	}
	return c.Bind(tr, deps)
}

// command is an exec tool that runs this test binary as a child; argv are the elements behind its part.
func command(t testing.TB, spec contract.Spec, part string, argv ...string) registry.Tool {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return registry.Tool{Name: "tool", Effect: registry.Read, Args: spec, Binding: registry.Binding{Exec: &registry.Exec{
		Command: self, Argv: append([]string{"child", part}, argv...), Stdin: "none", Stdout: "text",
	}}}
}

// content is the text of a result's blocks, one a line.
func content(t testing.TB, r *registry.Result) string {
	t.Helper()
	var lines []string
	for _, raw := range r.Content {
		var block struct{ Type, Text string }
		if err := json.Unmarshal(raw, &block); err != nil || block.Type != "text" {
			t.Fatalf("content %s: %v", raw, err)
		}
		lines = append(lines, block.Text)
	}
	return strings.Join(lines, "\n")
}

func code(err error) registry.ErrorCode {
	var e *registry.Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// bad is a declaration that does not compile.
type bad struct {
	name   string
	change func(*registry.Tool)
	// path and message are of the one error; message is a part of it.
	code          problem.Code
	path, message string
}

func testBad(t *testing.T, base func() registry.Tool, cases []bad) {
	t.Helper()
	if _, problems := binding.Compile(base(), t.TempDir()); problems.HasErrors() {
		t.Fatalf("the base is bad: %v", problems.Err())
	}
	for _, tt := range cases {
		tool := base()
		tt.change(&tool)
		// Every field stands on a line of its own, so that the position tells which one was meant.
		tool.Pos = problem.Position{File: "a.cue", Line: 1, Col: 1}
		tool.Fields = map[string]problem.Position{tt.path: {File: "a.cue", Line: 7, Col: 3}}
		c, problems := binding.Compile(tool, t.TempDir())
		if c != nil || !problems.HasErrors() {
			t.Errorf("%s: compiled; problems %v", tt.name, problems)
			continue
		}
		found := false
		for _, p := range problems {
			found = found || p.Severity == problem.Error && p.Code == tt.code && p.Path == "tools."+tool.Name+"."+tt.path && p.Line == 7 && strings.Contains(p.Message, tt.message)
		}
		if !found {
			t.Errorf("%s: want %s at %s with %q; got\n%v", tt.name, tt.code, tt.path, tt.message, problems.Err())
		}
	}
}
