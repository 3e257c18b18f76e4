package docs

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/test/internal/harness"
)

// TestGuides does what each page of docs/guides shows, in a catalog that `catalogd init` wrote:
//
//   - console: each command after $ runs, and prints what follows it; ... stands for anything. cd changes the directory.
//   - sh: a program that the page leaves running, on free ports in place of the page's; or with #! a script.
//   - js, cue, rego, yaml, json: a file whose name is in the first line; without one, a client's configuration.
//   - text: a file of another product.
func TestGuides(t *testing.T) {
	usePrograms(t)
	for name, value := range map[string]string{
		"GIT_CONFIG_GLOBAL": os.DevNull, "GIT_AUTHOR_NAME": "ann", "GIT_AUTHOR_EMAIL": "ann@example.com",
		"GIT_COMMITTER_NAME": "ann", "GIT_COMMITTER_EMAIL": "ann@example.com",
	} {
		t.Setenv(name, value)
	}
	pages, err := filepath.Glob("docs/guides/*.md")
	if err != nil || len(pages) < 11 {
		t.Fatalf("%d guides (%v)", len(pages), err)
	}
	for _, page := range pages {
		if page != goGuide {
			t.Run(strings.TrimSuffix(filepath.Base(page), ".md"), func(t *testing.T) { guide(t, page) })
		}
	}
}

// goGuide is run by the tests of the program that it is made of (TestGoPage).
const goGuide = "docs/guides/embed-in-go.md"

func guide(t *testing.T, page string) {
	t.Helper()
	text := harness.ReadFile(t, page)
	r := reader{t: t, dir: t.TempDir(), addr: "127.0.0.1:" + harness.FreePort(t)}
	if !strings.Contains(text, "$ catalogd init") {
		output(t, "catalogd", "init", filepath.Join(r.dir, "my-catalog"))
		r.dir = filepath.Join(r.dir, "my-catalog")
	}
	if strings.Contains(text, harness.EverythingServer) {
		if err := os.Symlink(filepath.Join(harness.Root(t), "node_modules"), filepath.Join(r.dir, "node_modules")); err != nil {
			t.Fatal(err)
		}
	}
	const service = "9000"
	port := harness.FreePort(t)
	here := strings.NewReplacer(defaultAddr, r.addr, "127.0.0.1:"+service, "127.0.0.1:"+port, "port: "+service, "port: "+port,
		"("+service+",", "("+port+",")
	ran := 0
	for _, b := range harness.Blocks(t, page) {
		block := here.Replace(b.Text)
		first, rest, _ := strings.Cut(block, "\n")
		at := page + ":" + first
		switch {
		case b.Kind == "console":
			ran++
			r.console(at, block)
		case b.Kind == "sh" && strings.HasPrefix(first, "#!"):
			name, _, _ := strings.Cut(strings.TrimPrefix(rest, "# "), "\n")
			harness.WriteFile(t, filepath.Join(r.dir, filepath.FromSlash(name)), block)
		case b.Kind == "sh" && strings.Contains(first, "catalogd serve"):
			r.background(first+" --addr "+r.addr, "http://"+r.addr+"/readyz")
		case b.Kind == "sh":
			r.background(first, "http://127.0.0.1:"+port)
		case b.Kind == "text":
		case strings.HasPrefix(first, "// "), strings.HasPrefix(first, "# "):
			_, name, _ := strings.Cut(first, " ")
			harness.WriteFile(t, filepath.Join(r.dir, filepath.FromSlash(name)), block)
		case b.Kind == "json":
			r.connect(at, block)
		default:
			t.Errorf("%s: no test runs blocks of kind %q", at, b.Kind)
		}
	}
	if ran == 0 {
		t.Error("no transcript ran")
	}
}

// background runs one line of a shell until the test ends, and waits until something answers at the URL.
func (r *reader) background(line, url string) {
	r.t.Helper()
	cmd := exec.Command("bash", "-c", line)
	cmd.Dir = r.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var log strings.Builder
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	r.t.Cleanup(func() {
		if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM); err == nil {
			<-ended
		}
		if r.t.Failed() {
			r.t.Logf("%s\n%s", line, &log)
		}
	})
	harness.Await(r.t, line+" to answer", func() bool {
		select {
		case err := <-ended:
			ended <- err
			r.t.Fatalf("%s ended: %v\n%s", line, err, &log)
		default:
		}
		time.Sleep(20 * time.Millisecond) // a poll, not a wait for the program
		resp, err := http.Get(url)
		return err == nil && resp.Body.Close() == nil
	})
}

// TestGuidesNameCodes: the codes in the tables of what goes wrong are codes of problems or errors.
func TestGuidesNameCodes(t *testing.T) {
	t.Parallel()
	known := slices.Concat(constants(t, "registry/error.go", "ErrorCode"), constants(t, "decision/decision.go", "ReasonCode"))
	for _, d := range problem.Docs() {
		known = append(known, string(d.Code))
	}
	pages, err := filepath.Glob("docs/guides/*.md")
	if err != nil {
		t.Fatal(err)
	}
	code := regexp.MustCompile("^\\| `([a-z]+(?:_[a-z]+)+)`")
	found := 0
	for _, page := range pages {
		_, wrong, _ := strings.Cut(harness.ReadFile(t, page), "## What goes wrong\n")
		for line := range strings.Lines(wrong) {
			if named := code.FindStringSubmatch(line); named != nil {
				if found++; !slices.Contains(known, named[1]) {
					t.Errorf("%s: %s is no code", page, named[1])
				}
			}
		}
	}
	if found < 8 {
		t.Errorf("%d codes were found, want at least 8: the search is wrong", found)
	}
}
