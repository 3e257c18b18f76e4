package worker_test

import (
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"golang.org/x/tools/txtar"

	"github.com/catalogd/catalogd/internal/worker"
	"github.com/catalogd/catalogd/loader"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// TestMain runs the test's own program as a child when it is started as one, proper or not.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "compile-worker":
			os.Exit(worker.Child(os.Stdin, os.Stdout))
		case "not-a-worker":
			fmt.Println("hello, I print something else")
			os.Exit(0)
		case "silent":
			time.Sleep(time.Hour)
		case "only-memory", "endless-steps":
			worker.AnswerForever(os.Stdin, os.Stdout, os.Args[1] == "endless-steps")
			os.Exit(0)
		case "dies":
			os.Exit(1)
		case "escapes":
			worker.TryEscapes(os.Stdout, escapes)
			os.Exit(0)
		}
	}
	os.Exit(m.Run())
}

// escapes try what a catalog must never be able to do.
var escapes = map[string]func() error{
	"dial":       func() error { return closing(net.Dial("tcp", "127.0.0.1:9")) },
	"dial udp":   func() error { return closing(net.Dial("udp", "127.0.0.1:9")) },
	"listen":     func() error { return closing(net.Listen("tcp", "127.0.0.1:0")) },
	"listen abs": func() error { return closing(net.Listen("unix", "@catalogd-test")) },
	"read":       func() error { return closing(os.Open("/etc/passwd")) },
	"read self":  func() error { return closing(os.Open("/proc/self/environ")) },
	"write":      func() error { return closing(os.Create(os.DevNull)) },
	"mkdir":      func() error { return os.Mkdir("/tmp/catalogd-worker-escape", 0o700) },
	"remove":     func() error { return os.Remove("/tmp/catalogd-worker-escape") },
	"exec":       func() error { return syscall.Exec("/bin/true", []string{"true"}, nil) },
	"start": func() error {
		_, err := syscall.ForkExec("/bin/true", []string{"true"}, &syscall.ProcAttr{Files: []uintptr{0, 1, 2}})
		return err
	},
	"signal": func() error {
		p, err := os.FindProcess(os.Getppid())
		if err != nil {
			return err
		}
		return p.Signal(os.Interrupt)
	},
}

func closing(c interface{ Close() error }, err error) error {
	if err == nil {
		c.Close()
	}
	return err
}

func schema(t testing.TB) []byte {
	t.Helper()
	data, err := os.ReadFile("../../schema.cue")
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// compiler is a Compiler with real children.
func compiler(t testing.TB, cfg worker.Config) *worker.Compiler {
	t.Helper()
	cfg.Schema = schema(t)
	if cfg.Args == nil {
		cfg.Args = []string{"compile-worker"}
	}
	c := worker.New(cfg)
	t.Cleanup(c.Close)
	return c
}

func snapshot(t testing.TB, files map[string]string, tags ...string) (*loader.Snapshot, problem.List) {
	t.Helper()
	m := fstest.MapFS{
		"schema.cue":         {Data: schema(t)},
		"cue.mod/module.cue": {Data: []byte("module: \"example.com/catalog@v0\"\nlanguage: version: \"v0.17.0\"\n")},
	}
	for name, data := range files {
		if strings.TrimSpace(data) == "-" {
			delete(m, name)
			continue
		}
		m[name] = &fstest.MapFile{Data: []byte(data)}
	}
	s, problems := loader.Tree{FS: m, Tags: tags}.Snapshot(t.Context())
	if s == nil {
		t.Fatal(problems.Err())
	}
	return s, problems
}

func compile(t testing.TB, c *worker.Compiler, files map[string]string) (*registry.Build, problem.List) {
	t.Helper()
	s, problems := snapshot(t, files)
	if problems.HasErrors() {
		t.Fatal(problems.Err())
	}
	return c.Compile(t.Context(), s)
}

func tool(name, description string) string {
	return fmt.Sprintf(`tools: %s: {
	description: %q
	args: {
		// The city name to look up.
		city!: string
		limit?: int & >=1 & <=100
		deep?: {a!: int, tags?: [...string]}
		verbose: *false | bool
	}
	effect: "read"
	tags: ["weather"]
	binding: http: {url: "https://api.example.com/weather/{city}{?limit}", headers: "X-Name": %[1]q}
}
`, name, description)
}

func good() map[string]string {
	return map[string]string{
		"catalog/a/a.cue": "package catalog\n" + tool("first", "One."),
		"catalog/b/b.cue": "package catalog\n" + tool("second", "Two."),
		"catalog/c.cue":   "package catalog\nbranches: default: description: \"All.\"\n",
	}
}

// with is a copy of the files with some of them added or replaced.
func with(files map[string]string, more ...string) map[string]string {
	out := map[string]string{}
	for name, data := range files {
		out[name] = data
	}
	for i := 0; i < len(more); i += 2 {
		out[more[i]] = more[i+1]
	}
	return out
}

// unpack splits a load case into files and expectations, as the test of loader does.
func unpack(a *txtar.Archive) (files, said map[string]string) {
	files, said = map[string]string{}, map[string]string{}
	for _, f := range a.Files {
		switch f.Name {
		case "want", "tags", "tools":
			said[f.Name] = string(f.Data)
		default:
			files[f.Name] = strings.TrimSuffix(strings.ReplaceAll(string(f.Data), "\u240d", "\r"), "\u2400\n")
		}
	}
	return files, said
}
