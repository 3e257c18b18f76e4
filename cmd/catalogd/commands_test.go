package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/catalogd/catalogd"
)

// patience bounds every wait: far longer than anything takes on a busy machine.
const patience = 3 * time.Minute

// poll calls done until it says so; false when patience ends.
func poll(done func() bool) bool {
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if done() {
			return true
		}
	}
	return done()
}

// exits CODE PROGRAM [ARG...] runs a program that must end with exactly this code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM [ARG...]")
	}
	code := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Check(err)
		}
		code = exit.ExitCode()
	}
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("exit code %d, want %s", code, args[0])
	}
}

// starter writes the starter catalog into the current directory.
func starter(ts *testscript.TestScript, neg bool, args []string) {
	write(ts, func(string) bool { return true })
}

// skeleton [bare] writes schema.cue, cue.mod and those files of the starter's policy that the script does not bring
// itself, or none of the policy; the script has its own catalog/.
func skeleton(ts *testscript.TestScript, neg bool, args []string) {
	write(ts, func(name string) bool {
		_, err := os.Lstat(ts.MkAbs(name))
		bare := len(args) > 0 && strings.HasPrefix(name, "policy/")
		return err != nil && !bare && !strings.HasPrefix(name, "catalog/") && !strings.HasSuffix(name, "_test.rego") && neutral[name] == ""
	})
	for name, data := range neutral {
		path := ts.MkAbs(filepath.FromSlash(name))
		if _, err := os.Lstat(path); err != nil && len(args) == 0 {
			ts.Check(os.MkdirAll(filepath.Dir(path), 0o755))
			ts.Check(os.WriteFile(path, []byte(data), 0o644))
		}
	}
}

// neutral is the policy's data of a skeleton, which speaks of no tool of the starter catalog.
var neutral = map[string]string{
	"policy/access/data.yaml": "branches:\n  default:\n    tools: [\"*\"]\n",
	"policy/trust/data.yaml":  "entries: {}\n",
}

func write(ts *testscript.TestScript, wanted func(name string) bool) {
	ts.Check(fs.WalkDir(catalogd.Starter(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !wanted(name) {
			return err
		}
		data, err := fs.ReadFile(catalogd.Starter(), name)
		if err != nil {
			return err
		}
		path := ts.MkAbs(filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		return os.WriteFile(path, data, 0o644)
	}))
}

// given holds the ports that freeport gave out, so that no two scripts get the same.
var given = struct {
	sync.Mutex
	ports map[string]bool
}{ports: map[string]bool{}}

// freeport NAME sets NAME to an address that nothing listens on. Its port is none of those that a kernel gives to
// whoever asks for any, so that no other program takes it before the script's does.
func freeport(ts *testscript.TestScript, neg bool, args []string) {
	given.Lock()
	defer given.Unlock()
	for {
		addr := fmt.Sprintf("127.0.0.1:%d", 10_000+rand.IntN(20_000))
		ln, err := net.Listen("tcp", addr)
		if err != nil {
			continue // it is in use
		}
		ts.Check(ln.Close())
		if !given.ports[addr] {
			given.ports[addr] = true
			ts.Setenv(args[0], addr)
			return
		}
	}
}

// ready ADDR waits until a daemon answers there.
func ready(ts *testscript.TestScript, neg bool, args []string) {
	var err error
	ok := poll(func() bool {
		var resp *http.Response
		if resp, err = http.Get("http://" + args[0] + "/readyz"); err != nil {
			return false
		}
		return resp.Body.Close() == nil && resp.StatusCode == http.StatusOK
	})
	if !ok {
		ts.Fatalf("no daemon answers at %s: %v", args[0], err)
	}
}

// http METHOD URL STATUS [HEADER...] sends a request, which must be answered with the status; the body is stdout.
func request(ts *testscript.TestScript, neg bool, args []string) {
	req, err := http.NewRequest(args[0], args[1], nil)
	ts.Check(err)
	for _, h := range args[3:] {
		name, value, _ := strings.Cut(h, ": ")
		if name == "Host" {
			req.Host = value
		}
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	ts.Check(err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	ts.Check(err)
	fmt.Fprintf(ts.Stdout(), "%s", body)
	if strconv.Itoa(resp.StatusCode) != args[2] {
		ts.Fatalf("status %d, want %s: %s", resp.StatusCode, args[2], body)
	}
}

// until REGEXP PROGRAM [ARG...] runs a program again and again until what it prints matches.
func until(ts *testscript.TestScript, neg bool, args []string) {
	want := regexp.MustCompile("(?m)" + args[0])
	var last string
	if !poll(func() bool {
		// How it ends is not the question here: status, for one, exits 1 while a daemon is degraded.
		_ = ts.Exec(args[1], args[2:]...)
		last = ts.ReadFile("stdout") + ts.ReadFile("stderr")
		return want.MatchString(last)
	}) {
		ts.Fatalf("never printed %q; the last time it was:\n%s", args[0], last)
	}
}

// signal NAME sends a signal to every command in the background.
func sendSignal(ts *testscript.TestScript, neg bool, args []string) {
	sig, ok := map[string]os.Signal{"TERM": syscall.SIGTERM, "KILL": os.Kill, "HUP": syscall.SIGHUP, "INT": os.Interrupt}[args[0]]
	if !ok {
		ts.Fatalf("unknown signal %s", args[0])
	}
	for _, cmd := range ts.BackgroundCmds() {
		ts.Check(cmd.Process.Signal(sig))
	}
}

// gone FILE waits until none of the processes whose ids stand in the file is there; with !, each must be there.
func gone(ts *testscript.TestScript, neg bool, args []string) {
	for _, field := range strings.Fields(ts.ReadFile(args[0])) {
		pid, err := strconv.Atoi(field)
		ts.Check(err)
		alive := func() bool { return syscall.Kill(pid, 0) == nil }
		if neg && !alive() {
			ts.Fatalf("process %d is gone", pid)
		}
		if !neg && !poll(func() bool { return !alive() }) {
			ts.Fatalf("process %d is still there", pid)
		}
	}
}

// What differs from run to run and from machine to machine.
var changing = []struct {
	pattern *regexp.Regexp
	name    string
}{
	{regexp.MustCompile(`cat_[0-9A-Za-z]{49}`), "cat_SECRET"},
	{regexp.MustCompile(`sha256:[0-9a-f]{64}`), "sha256:DIGEST"},
	{regexp.MustCompile(`"sha256": ?"[0-9a-f]{64}"`), `"sha256": "DIGEST"`},
	{regexp.MustCompile(`sha256:[0-9a-f]{12}`), "sha256:SHORT"},
	{regexp.MustCompile(`\b[0-9a-f]{40}\b`), "COMMIT"},
	{regexp.MustCompile(`\([0-9a-f]{8}\)`), "(COMMIT)"},
	{regexp.MustCompile(`\b[0-9a-f]{32}\b`), "ID"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[0-9.]*(Z|[+-]\d\d:\d\d)`), "TIME"},
	{regexp.MustCompile(`"(duration|duration_ns)": ?\d+`), `"$1": 0`},
	{regexp.MustCompile(`(/usr)?/bin/`), "/BIN/"},
	{regexp.MustCompile(`127\.0\.0\.1:\d+`), "ADDR"},
	{regexp.MustCompile(`(\S) {3,}`), "$1  "},                       // columns are as wide as what stands in them
	{regexp.MustCompile(`(?s)"(worker|jq)": ?\{.*?\}`), `"$1": {}`}, // of the kernel that the test runs on
	{regexp.MustCompile(`(policy/catalogd/(?:access|forward)\.rego):\d+:\d+`), "$1:LINE"},
	{regexp.MustCompile(`duration=[0-9.]+[a-zµ]+`), "duration=0s"},
}

// redact FILE prints a file, or the last stdout or stderr, with $WORK and what differs from run to run replaced.
func redact(ts *testscript.TestScript, neg bool, args []string) {
	text := ts.ReadFile(args[0])
	// The commands that testscript.Main put on PATH.
	if self, err := exec.LookPath("catalogd"); err == nil {
		text = strings.ReplaceAll(text, filepath.Dir(self)+"/", "/BIN/")
	}
	for _, c := range changing {
		text = c.pattern.ReplaceAllString(text, c.name)
	}
	// macOS hands out temporary directories through a symlink.
	work := ts.Getenv("WORK")
	if real, err := filepath.EvalSymlinks(work); err == nil {
		text = strings.ReplaceAll(text, real, "$WORK")
	}
	text = strings.ReplaceAll(text, work, "$WORK")
	fmt.Fprint(ts.Stdout(), text)
}

// replace FILE OLD NEW edits a file as an editor does: it writes another and renames it.
func replace(ts *testscript.TestScript, neg bool, args []string) {
	path := ts.MkAbs(args[0])
	old, err := os.ReadFile(path)
	ts.Check(err)
	if !strings.Contains(string(old), args[1]) {
		ts.Fatalf("%s does not hold %q", args[0], args[1])
	}
	ts.Check(os.WriteFile(path+"~", []byte(strings.Replace(string(old), args[1], args[2], 1)), 0o644))
	ts.Check(os.Rename(path+"~", path))
}

// bearer FILE has the commands that follow show the token whose secret stands in the file.
func bearer(ts *testscript.TestScript, neg bool, args []string) {
	ts.Setenv("CATALOGD_TOKEN", strings.TrimSpace(ts.ReadFile(args[0])))
}

// fill FILE BYTES appends comment lines of 64 bytes until the file has at least so many.
func fill(ts *testscript.TestScript, neg bool, args []string) {
	size, err := strconv.Atoi(args[1])
	ts.Check(err)
	data := ts.ReadFile(args[0])
	if missing := size - len(data); missing > 0 {
		data += strings.Repeat("//"+strings.Repeat("x", 61)+"\n", missing/64+1)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(data), 0o644))
}

// commit TAG commits everything in the current directory to a git repository there, which is made where there is none.
func commit(ts *testscript.TestScript, neg bool, args []string) {
	ts.Check(commitAll(ts.MkAbs("."), args[0]))
}

func commitAll(dir, tag string) error {
	repository, err := git.PlainOpen(dir)
	if errors.Is(err, git.ErrRepositoryNotExists) {
		repository, err = git.PlainInit(dir, false)
	}
	if err != nil {
		return err
	}
	worktree, err := repository.Worktree()
	if err != nil {
		return err
	}
	if err := worktree.AddWithOptions(&git.AddOptions{All: true}); err != nil {
		return err
	}
	who := &object.Signature{Name: "Ann", Email: "ann@example.com", When: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	hash, err := worktree.Commit(tag, &git.CommitOptions{Author: who, Committer: who})
	if err != nil {
		return err
	}
	_, err = repository.CreateTag(tag, hash, nil)
	return err
}

// event NAME FILE REGEXP sets NAME to the id of the first decision in a log or its rotated files that matches, which it prints.
func event(ts *testscript.TestScript, neg bool, args []string) {
	pattern := regexp.MustCompile(args[2])
	files, err := filepath.Glob(ts.MkAbs(args[1]) + "*")
	ts.Check(err)
	for _, file := range files {
		for line := range strings.Lines(ts.ReadFile(file)) {
			if !pattern.MatchString(line) {
				continue
			}
			var e struct {
				ID string `json:"decision_id"`
			}
			ts.Check(json.Unmarshal([]byte(line), &e))
			ts.Setenv(args[0], e.ID)
			fmt.Fprint(ts.Stdout(), line)
			return
		}
	}
	ts.Fatalf("no event in %v matches %s", files, args[2])
}

// opa ARG... runs stock OPA.
func opa(ts *testscript.TestScript, neg bool, args []string) {
	path, err := stockOPA()
	ts.Check(err)
	if err := ts.Exec(path, args...); (err != nil) != neg {
		ts.Fatalf("opa %v: %v", args, err)
	}
}

// stockOPA is the path of the opa command in tools/go.mod.
var stockOPA = sync.OnceValues(func() (string, error) {
	cmd := exec.Command("go", "tool", "-modfile=../../tools/go.mod", "-n", "opa")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-trimpath") // as the Makefile builds it
	out, err := cmd.Output()
	return strings.TrimSpace(string(out)), err
})

// intent NAME PATTERN sets NAME to the id of the newest intent whose line in `catalogd intents list` matches.
func intentID(ts *testscript.TestScript, neg bool, args []string) {
	pattern := regexp.MustCompile(args[1])
	ts.Check(ts.Exec("catalogd", append([]string{"intents", "list"}, args[2:]...)...))
	for line := range strings.Lines(ts.ReadFile("stdout")) {
		if pattern.MatchString(line) {
			ts.Setenv(args[0], strings.Fields(line)[0])
			return
		}
	}
	ts.Fatalf("no intent matches %q", args[1])
}
