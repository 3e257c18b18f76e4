package docs

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/catalogd/catalogd/test/internal/harness"
)

// TestReadme does what the README says, block by block, in a copy of this repository:
//
//   - sh: runs and must succeed. `make run` goes on in the background, as the reader is asked to leave it, and on a free
//     port, which stands for the default one in all blocks; `make test` is what runs this test, so only that CI calls
//     exactly it is checked.
//   - console: each command after $ runs, and must print what follows it; ... stands for any lines.
//   - cue: is saved under the name in its first line.
//   - json: is a client's configuration, which must reach the branch.
func TestReadme(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", filepath.Join(t.TempDir(), "state"))
	stockTools(t, "cue", "opa")
	dir := copyRepository(t)
	r := reader{t: t, dir: dir, addr: "127.0.0.1:" + harness.FreePort(t)}
	for _, b := range harness.Blocks(t, "README.md") {
		at := fmt.Sprintf("README.md:%d", b.Line)
		b.Text = strings.ReplaceAll(b.Text, defaultAddr, r.addr)
		switch b.Kind {
		case "sh":
			r.shell(at, strings.TrimSpace(b.Text))
		case "console":
			r.console(at, b.Text)
		case "cue":
			r.save(at, b.Text)
		case "json":
			r.connect(at, b.Text)
		default:
			t.Errorf("%s: no test runs blocks of kind %q", at, b.Kind)
		}
	}
}

// copyRepository copies the files that git would have in a clone, and leads to the installed npm packages.
func copyRepository(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("git", "ls-files", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		t.Fatalf("git ls-files: %v", err)
	}
	dir := t.TempDir()
	for name := range strings.Lines(string(out)) {
		name = strings.TrimSuffix(name, "\n")
		data, err := os.ReadFile(name)
		if os.IsNotExist(err) {
			continue // removed and not committed yet
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	modules, err := filepath.Abs("node_modules")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(modules); err != nil {
		t.Fatalf("the pinned npm packages are not installed; run `make node` (%v)", err)
	}
	if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	return dir
}

type reader struct {
	t   *testing.T
	dir string
	// addr is where makeRun serves.
	addr string
}

// defaultAddr is where `make run` serves for whoever follows the README. Something else may be there where the tests run.
const defaultAddr = "127.0.0.1:8420"

func (r *reader) shell(at, script string) {
	switch script {
	case "make run":
		r.makeRun(at)
		return
	case "make test":
		ci, err := os.ReadFile(".ci/run")
		if err != nil {
			r.t.Fatal(err)
		}
		if !regexp.MustCompile(`(?m)^make test$`).Match(ci) {
			r.t.Errorf("%s: .ci/run does not call `make test`", at)
		}
		return
	}
	if strings.HasPrefix(script, "go install ") {
		r.installed(at, script)
		return
	}
	cmd := exec.Command("bash", "-euo", "pipefail", "-c", script)
	cmd.Dir = r.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		r.t.Errorf("%s: %v\n%s", at, err, out)
	}
}

// installed checks that what a reader is asked to install are the versions of tools/go.mod, which the other blocks run.
func (r *reader) installed(at, script string) {
	for line := range strings.Lines(script) {
		pkg, version, _ := strings.Cut(strings.TrimSpace(strings.TrimPrefix(line, "go install ")), "@")
		out, err := exec.Command("go", "list", "-modfile=tools/go.mod", "-f", "{{.Module.Version}}", pkg).CombinedOutput()
		if err != nil {
			r.t.Fatalf("%s: %s: %v\n%s", at, pkg, err, out)
		}
		if want := strings.TrimSpace(string(out)); version != want {
			r.t.Errorf("%s: got %s@%s, want the version of tools/go.mod, %s", at, pkg, version, want)
		}
	}
}

// stockTools puts commands of tools/go.mod on the PATH.
func stockTools(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		cmd := exec.Command("go", "tool", "-modfile=tools/go.mod", "-n", name)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-trimpath") // as `make` builds them
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("go tool -n %s: %v", name, err)
		}
		dir := filepath.Dir(strings.TrimSpace(string(out)))
		t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	}
}

// makeRun starts `make run`, at r.addr in place of the default, and waits until it serves; it ends with the test.
func (r *reader) makeRun(at string) {
	cmd := exec.Command("make", "run", "ADDR="+r.addr)
	cmd.Dir = r.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		r.t.Fatalf("%s: %v", at, err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	r.t.Cleanup(func() {
		if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM); err == nil {
			<-ended
		}
		if r.t.Failed() {
			r.t.Logf("make run:\n%s", &log)
		}
	})
	deadline := time.Now().Add(15 * time.Minute) // it is built first
	for time.Now().Before(deadline) {
		select {
		case err := <-ended:
			ended <- err
			r.t.Fatalf("%s: make run ended: %v\n%s", at, err, &log)
		case <-time.After(100 * time.Millisecond):
		}
		resp, err := http.Get("http://" + r.addr + "/readyz")
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return
			}
		}
	}
	r.t.Fatalf("%s: make run does not serve", at)
}

// console runs the commands of a transcript. A command may go on in lines after "> ".
func (r *reader) console(at, text string) {
	var command, want string
	run := func() {
		if command != "" {
			r.command(at, command, want)
		}
	}
	for line := range strings.Lines(text) {
		switch rest, next := strings.CutPrefix(line, "$ "); {
		case next:
			run()
			command, want = rest, ""
		case strings.HasPrefix(line, "> ") && want == "":
			command += strings.TrimPrefix(line, "> ")
		default:
			want += line
		}
	}
	run()
}

// command runs one command until it prints what is wanted: what a daemon shows follows an edit within a second or so.
// cd changes the reader's directory.
func (r *reader) command(at, command, want string) {
	if dir, ok := strings.CutPrefix(strings.TrimSpace(command), "cd "); ok && !strings.Contains(dir, " ") {
		r.dir = filepath.Join(r.dir, filepath.FromSlash(dir))
		return
	}
	pattern := regexp.QuoteMeta(want)
	pattern = strings.ReplaceAll(pattern, `\.\.\.`+"\n", `(?:.*\n)*`)
	pattern = strings.ReplaceAll(pattern, `\.\.\.`, `[^\n]*`)
	expected := regexp.MustCompile(`^` + pattern + `$`)
	var out []byte
	for deadline := time.Now().Add(harness.Timeout); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		cmd := exec.Command("bash", "-c", command)
		cmd.Dir = r.dir
		out, _ = cmd.CombinedOutput() // a transcript may show a command that fails
		if expected.Match(out) {
			return
		}
		if !strings.Contains(command, "http://") || strings.Contains(command, ">>") || r.t.Failed() {
			break // no daemon follows, it must not be done twice, or waiting has not helped before
		}
	}
	r.t.Errorf("%s: $ %s\ngot:\n%s\nwant:\n%s", at, command, out, want)
}

func (r *reader) save(at, text string) {
	first, _, _ := strings.Cut(text, "\n")
	name := strings.TrimPrefix(first, "// ")
	if !strings.HasPrefix(name, "catalog/") {
		r.t.Fatalf("%s: the first line does not name a file", at)
	}
	if err := os.WriteFile(filepath.Join(r.dir, name), []byte(text), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

// connect uses a client's configuration as a client does.
func (r *reader) connect(at, text string) {
	var config struct {
		Servers map[string]struct {
			URL     string
			Command string
			Args    []string
		} `json:"mcpServers"`
	}
	if err := json.Unmarshal([]byte(strings.ReplaceAll(text, "/path/to/catalogd", r.dir)), &config); err != nil {
		r.t.Fatalf("%s: %v", at, err)
	}
	for name, server := range config.Servers {
		ctx, cancel := context.WithTimeout(context.Background(), harness.Timeout)
		defer cancel()
		var c *client.Client
		var err error
		if server.URL != "" {
			c, err = client.NewStreamableHttpClient(server.URL)
		} else {
			c = client.NewClient(transport.NewStdio(server.Command, nil, server.Args...))
		}
		if err != nil {
			r.t.Fatalf("%s: %v", at, err)
		}
		defer c.Close()
		if err := c.Start(ctx); err != nil {
			r.t.Fatalf("%s: %s: %v", at, name, err)
		}
		var hello mcp.InitializeRequest
		hello.Params.ProtocolVersion = "2025-11-25"
		hello.Params.ClientInfo = mcp.Implementation{Name: "readme", Version: "1"}
		if _, err := c.Initialize(ctx, hello); err != nil {
			r.t.Fatalf("%s: %s: %v", at, name, err)
		}
		tools, err := c.ListTools(ctx, mcp.ListToolsRequest{})
		if err != nil {
			r.t.Fatalf("%s: %s: %v", at, name, err)
		}
		listed := map[string]bool{}
		for _, tool := range tools.Tools {
			listed[tool.Name] = true
		}
		if !listed["greet"] || !listed["slugify"] || !listed["system_info"] {
			r.t.Errorf("%s: %s: lists %v", at, name, listed)
		}
	}
}
