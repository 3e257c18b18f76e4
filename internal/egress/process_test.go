package egress_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/catalogd/catalogd/decision/trust"
	"github.com/catalogd/catalogd/decision/trusttest"
	"github.com/catalogd/catalogd/internal/egress"
	"github.com/catalogd/catalogd/internal/secret"
)

// self is a target that runs this test binary as a child with these arguments.
func self(t *testing.T, args ...string) trust.Target {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path, err := egress.Resolve(exe, "")
	if err != nil {
		t.Fatal(err)
	}
	return trust.Target{Kind: trust.Exec, Command: &trust.Command{Declared: exe, Path: path, Args: append([]string{"child"}, args...)}}
}

func run(t *testing.T, target trust.Target, terms trust.Terms, c egress.Command, stdin string) *egress.Output {
	t.Helper()
	if c.Args == nil {
		c.Args = target.Command.Args
	}
	out, err := egress.Run(t.Context(), trusttest.New(target, terms), target, c, []byte(stdin), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// start is egress.Start on these terms.
func start(t *testing.T, target trust.Target, terms trust.Terms, c egress.Command) (*egress.Process, error) {
	t.Helper()
	return egress.Start(t.Context(), trusttest.New(target, terms), target, c)
}

func runNeedsTrust(t *testing.T) {
	t.Parallel()
	target := self(t, "env")
	other := self(t, "dir")
	for name, tr := range map[string]trust.Trust{"zero": {}, "another target": trusttest.New(other, trust.Terms{})} {
		if _, err := egress.Run(t.Context(), tr, target, egress.Command{Args: target.Command.Args}, nil, 10); err == nil {
			t.Errorf("%s trust: the command ran", name)
		}
	}
	tr := trusttest.New(target, trust.Terms{})
	for name, c := range map[string]egress.Command{
		"another argument":    {Args: []string{"child", "dir"}},
		"one argument more":   {Args: []string{"child", "env", "x"}},
		"an undeclared value": {Args: target.Command.Args, Env: map[string]secret.Value{"A": {Literal: "1"}}},
	} {
		if _, err := egress.Run(t.Context(), tr, target, c, nil, 10); err == nil {
			t.Errorf("%s: the command ran", name)
		}
	}
}

func argumentsArriveAsTheyAre(t *testing.T) {
	t.Parallel()
	values := []string{"; touch X", "$(touch X)", "`touch X`", "a\nb", "%s%n", "", " ", "--output=/x", "*", "~", "\"'\\", "\u202e", strings.Repeat("x", 100<<10)}
	template := []string{"args"}
	for range values {
		template = append(template, "{v}")
	}
	target := self(t, template...)
	target.Command.FromCall = []string{"v"}
	terms := trust.Terms{FromCall: []string{"v"}}
	out := run(t, target, terms, egress.Command{Args: append([]string{"child", "args"}, values...)}, "")
	if got := strings.Split(string(out.Stdout), "\x00"); !slices.Equal(got, values) {
		t.Errorf("got %q, want %q", got, values)
	}
	target = self(t, "args", "{v}")
	target.Command.FromCall = []string{"v"}
	_, err := egress.Run(t.Context(), trusttest.New(target, terms), target, egress.Command{Args: []string{"child", "args", "a\x00b"}}, nil, 10)
	if err == nil || !strings.Contains(err.Error(), "NUL") {
		t.Errorf("a NUL byte: %v", err)
	}
}

// An element differs from the one that was trusted only by what the target names and the trust grants.
func onlyWhatIsNamedIsFilledIn(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		element, arg   string
		named, granted []string
		refused        string
	}{
		{"{v}", "x", []string{"v"}, []string{"v"}, ""},
		{"--a={v}-{w}", "--a=1-2", []string{"v", "w"}, []string{"w", "v"}, ""},
		{"{v}", "x", []string{"v"}, nil, "puts v on the command line"},
		{"{v}", "x", []string{"v"}, []string{"w"}, "puts v on the command line"},
		{"{v}", "x", nil, []string{"v"}, "differs"},
		{"{w}", "x", []string{"v"}, []string{"v", "w"}, "differs"},
		{"{v", "x", []string{"v"}, []string{"v"}, "differs"},
		{"v", "x", []string{"v"}, []string{"v"}, "differs"},
		{"{}", "x", nil, nil, "differs"},
		{"{v}", "{v}", nil, nil, ""}, // a server's
		{"{{v}}", "{v}", nil, nil, ""},
		{"{{v}}", "x", nil, nil, "differs"},
	} {
		target := self(t, "args", tt.element)
		target.Command.FromCall = tt.named
		tr := trusttest.New(target, trust.Terms{FromCall: tt.granted})
		_, err := egress.Run(t.Context(), tr, target, egress.Command{Args: []string{"child", "args", tt.arg}}, nil, 1<<10)
		if tt.refused == "" && err != nil || tt.refused != "" && (err == nil || !strings.Contains(err.Error(), tt.refused)) {
			t.Errorf("%s as %s, named %v, granted %v: %v", tt.element, tt.arg, tt.named, tt.granted, err)
		}
	}
	// Only an element with a mark becomes several, or none.
	for _, tt := range []struct {
		element string
		became  []string
		refused string
	}{
		{"{v*}", []string{"a", "b"}, ""},
		{"{v?--v}", nil, ""},
		{"{v?--v}", []string{"--v", "a"}, ""},
		{"{v}", []string{"a", "b"}, "became 2"},
		{"{v}", nil, "became 0"},
		{"v", nil, "became 0"},
		{"{w*}", []string{"a", "b"}, "became 2"},
		{"{v*}", []string{"a", "b\x00"}, "NUL"},
	} {
		target := self(t, "args", tt.element)
		target.Command.FromCall = []string{"v"}
		tr := trusttest.New(target, trust.Terms{FromCall: []string{"v"}})
		filled := [][]string{{"child"}, {"args"}, tt.became}
		_, err := egress.Run(t.Context(), tr, target, egress.Command{Filled: filled}, nil, 1<<10)
		if tt.refused == "" && err != nil || tt.refused != "" && (err == nil || !strings.Contains(err.Error(), tt.refused)) {
			t.Errorf("%s as %q: %v, want %q", tt.element, tt.became, err, tt.refused)
		}
	}
}

func noDescriptorIsInherited(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("reads /proc")
	}
	f, err := os.Create(filepath.Join(t.TempDir(), "canary"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	// As a descriptor that the daemon's own parent left open: without the close-on-exec mark.
	if _, _, errno := syscall.Syscall(syscall.SYS_FCNTL, f.Fd(), syscall.F_SETFD, 0); errno != 0 {
		t.Fatal(errno)
	}
	out := run(t, self(t, "descriptors"), trust.Terms{}, egress.Command{}, "")
	for line := range strings.Lines(string(out.Stdout)) {
		number, target, _ := strings.Cut(strings.TrimSpace(line), " ")
		if fd, _ := strconv.Atoi(number); fd > 2 && !ownDescriptor(target) {
			t.Errorf("the child has descriptor %s: %s", number, target)
		}
	}
}

// ownDescriptor tells what the Go runtime of the child opened itself.
func ownDescriptor(target string) bool {
	return strings.HasPrefix(target, "/proc/") || strings.HasPrefix(target, "/sys/fs/cgroup/") || strings.HasPrefix(target, "anon_inode:")
}

func TestRunStreamsAndStatus(t *testing.T) {
	t.Parallel()
	if out := run(t, self(t, "cat"), trust.Terms{}, egress.Command{}, "through"); string(out.Stdout) != "through" || !out.Exit.Success() {
		t.Errorf("cat: %q, %s", out.Stdout, out.Exit)
	}
	// Input that nobody reads does not hold the run up.
	big := strings.Repeat("x", 1<<20)
	out := run(t, self(t, "exit", "7"), trust.Terms{}, egress.Command{}, big)
	if out.Exit.Code != 7 || out.Exit.String() != "exit status 7" {
		t.Errorf("exit: %+v", out.Exit)
	}
	if !strings.HasSuffix(out.Stderr, "the last line") || len(out.Stderr) > 16<<10 {
		t.Errorf("stderr has %d bytes, ending %q", len(out.Stderr), out.Stderr[len(out.Stderr)-20:])
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	kept := realDir(t)
	homes := egress.NewHomes(kept, dir)
	for cwd, want := range map[string]string{".": dir, "sub": filepath.Join(dir, "sub"), "": "private"} {
		target := self(t, "dir")
		target.Command.Dir = cwd
		got := string(run(t, target, trust.Terms{InTree: true}, egress.Command{Root: dir, Homes: homes, Owner: "tool where"}, "").Stdout)
		if strings.HasPrefix(got, kept+"/tool-where-") && filepath.Base(got) == "work" {
			got = "private"
		}
		if got != want {
			t.Errorf("cwd %q: ran in %q, want %q", cwd, got, want)
		}
	}
}

// A long-lived child is talked to over its pipes, and ends when its input does.
func TestStartTalks(t *testing.T) {
	t.Parallel()
	target := self(t, "cat")
	p, err := egress.Start(t.Context(), trusttest.New(target, trust.Terms{}), target, egress.Command{Args: target.Command.Args})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Stdout.Close()
	answers := bufio.NewReader(p.Stdout)
	for _, line := range []string{"one\n", "two\n"} {
		if _, err := io.WriteString(p.Stdin, line); err != nil {
			t.Fatal(err)
		}
		if got, err := answers.ReadString('\n'); err != nil || got != line {
			t.Errorf("got %q, %v", got, err)
		}
	}
	if err := p.Stdin.Close(); err != nil {
		t.Fatal(err)
	}
	if exit := p.Wait(); !exit.Success() {
		t.Errorf("%s", exit)
	}
	if _, err := answers.ReadString('\n'); err != io.EOF {
		t.Errorf("after the end: %v", err)
	}
}

func runCapsOutput(t *testing.T) {
	t.Parallel()
	target := self(t, "flood")
	out, err := egress.Run(t.Context(), trusttest.New(target, trust.Terms{}), target, egress.Command{Args: target.Command.Args}, nil, 10_000)
	if err != nil {
		t.Fatal(err)
	}
	if !out.TooLarge || len(out.Stdout) != 10_000 || out.Exit.Signal != "SIGKILL" {
		t.Errorf("too large %v, %d bytes, %s", out.TooLarge, len(out.Stdout), out.Exit)
	}
}

func cancelEndsTheWholeGroup(t *testing.T) {
	t.Parallel()
	target := self(t, "parent")
	ctx, cancel := context.WithCancel(t.Context())
	p, err := egress.Start(ctx, trusttest.New(target, trust.Terms{}), target, egress.Command{Args: target.Command.Args, Grace: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Stdout.Close()
	grandchild := readPid(t, p.Stdout)
	cancel()
	if exit := p.Wait(); exit.Signal != "SIGTERM" {
		t.Errorf("the child ended by %s", exit)
	}
	gone(t, grandchild)
	gone(t, p.Pid())
}

// A child that ignores SIGTERM is killed after the grace.
func stopKillsAfterTheGrace(t *testing.T) {
	t.Parallel()
	target := self(t, "stubborn")
	p, err := egress.Start(t.Context(), trusttest.New(target, trust.Terms{}), target, egress.Command{Args: target.Command.Args, Grace: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Stdout.Close()
	if _, err := bufio.NewReader(p.Stdout).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	p.Stop()
	p.Stop()
	p.Kill()
	if exit := p.Wait(); exit.Signal != "SIGKILL" {
		t.Errorf("the child ended by %s", exit)
	}
}

// A grandchild that holds the streams open neither holds up the run nor outlives it.
func TestRunEndsWithItsFirstProcess(t *testing.T) {
	t.Parallel()
	out := run(t, self(t, "leaver"), trust.Terms{}, egress.Command{}, "")
	pid, err := strconv.Atoi(strings.Fields(string(out.Stdout))[0])
	if err != nil {
		t.Fatal(err)
	}
	if !out.Exit.Success() {
		t.Errorf("%s", out.Exit)
	}
	gone(t, pid)
}

func TestCancelledBeforeTheStart(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	target := self(t, "sleep")
	if _, err := egress.Run(ctx, trusttest.New(target, trust.Terms{}), target, egress.Command{Args: target.Command.Args}, nil, 10); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func inlineCodeNeedsSaying(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program := filepath.Join(dir, "program")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		line    string
		refused bool
	}{
		{"sh -c date", true}, {"bash -lc date", true}, {"/bin/bash -c date", true}, {"bash", true}, {"zsh -ic x", true}, {"bash {script}", true},
		{"python -c 1", true}, {"python3.12 -c 1", true}, {"python3 -Ic 1", true}, {"python3 -", true}, {"python3 -W ignore -c x", true},
		{"node -e 1", true}, {"node --eval=1", true}, {"node -pe 1", true}, {"node --import x y.js", true}, {"perl -e 1", true}, {"perl -ne 1", true},
		{"ruby -e 1", true}, {"php -r 1", true}, {"env date", true}, {"xargs date", true}, {"busybox sh", true}, {"timeout 1 sh", true},
		{"awk {program}", true}, {"find . -exec x", true}, {"npx -c x", true}, {"npx --call=x y", true}, {"deno eval 1", true}, {"bun -e 1", true},
		{"bash run.sh -c {x}", false}, {"bash -e run.sh", false}, {"python3 -m server", false}, {"python3 -u tool.py {x}", false}, {"python3 -m {x}", true},
		{"node server.js -e", false}, {"npx --no-install mcp-server-everything", false}, {"deno run tool.ts", false}, {"date +%s", false}, {"envsubst x", false},
	} {
		words := strings.Fields(tt.line)
		target := trust.Target{Kind: trust.Exec, Command: &trust.Command{Declared: words[0], Path: program, Args: words[1:]}}
		path, err := egress.Resolve(program, "")
		if err != nil {
			t.Fatal(err)
		}
		target.Command.Path = path
		_, err = egress.Run(t.Context(), trusttest.New(target, trust.Terms{InTree: true}), target, egress.Command{Root: dir, Args: words[1:]}, nil, 10)
		if got := err != nil && strings.Contains(err.Error(), "interpreter: true"); got != tt.refused {
			t.Errorf("%s: refused %v (%v), want %v", tt.line, got, err, tt.refused)
		}
		if _, err := egress.Run(t.Context(), trusttest.New(target, trust.Terms{Interpreter: true, Unpinned: true, InTree: true}), target, egress.Command{Root: dir, Args: words[1:]}, nil, 10); err != nil {
			t.Errorf("%s: with the entry's leave: %v", tt.line, err)
		}
	}
}

// A relative script is that of the catalog's root, or of the declared directory, whatever lies in the private one.
func TestScriptsAreAbsolute(t *testing.T) {
	t.Parallel()
	root, kept := realDir(t), realDir(t)
	if err := os.Mkdir(filepath.Join(root, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"x.sh", "sub/x.sh"} {
		put(t, filepath.Join(root, name), "echo $0 of "+name+" in $PWD: $*")
	}
	homes := egress.NewHomes(kept, root)
	for _, tt := range []struct {
		dir, line, want string
	}{
		{"", "x.sh x.sh", root + "/x.sh of x.sh in PRIVATE: x.sh"},
		{"", "./sub/../x.sh a", root + "/x.sh of x.sh in PRIVATE: a"},
		{"", "-e sub/x.sh", root + "/sub/x.sh of sub/x.sh in PRIVATE:"},
		{"", root + "/x.sh", root + "/x.sh of x.sh in PRIVATE:"},
		{"sub", "x.sh", root + "/sub/x.sh of sub/x.sh in " + root + "/sub:"},
		{"sub", "../x.sh", root + "/x.sh of x.sh in " + root + "/sub:"},
	} {
		path, err := egress.Resolve("sh", "")
		if err != nil {
			t.Fatal(err)
		}
		target := trust.Target{Kind: trust.Exec, Command: &trust.Command{Declared: "sh", Path: path, Args: strings.Fields(tt.line), Dir: tt.dir}}
		target.Command.Script = egress.Script(*target.Command, root)
		got := strings.TrimSpace(string(run(t, target, trust.Terms{InTree: true}, egress.Command{Root: root, Homes: homes}, "").Stdout))
		if private, err := filepath.Glob(kept + "/*/work"); err == nil && len(private) == 1 {
			got = strings.ReplaceAll(got, private[0], "PRIVATE")
		}
		if got != tt.want {
			t.Errorf("%s in %q: got %q, want %q", tt.line, tt.dir, got, tt.want)
		}
	}
	for _, c := range []trust.Command{
		{Declared: "sh", Args: []string{"-c", "x.sh"}}, {Declared: "cat", Args: []string{"x.sh"}}, {Declared: "python3", Args: []string{"-m", "x"}},
		{Declared: "deno", Args: []string{"serve", "x.ts"}}, {Declared: "sh", Args: []string{"{x}"}}, {Declared: "sh"},
	} {
		if got := egress.Script(c, root); got != "" {
			t.Errorf("%v: the script is %s", c, got)
		}
	}
	if got := egress.Script(trust.Command{Declared: "sh", Args: []string{"x.sh"}}, ""); got != "" {
		t.Errorf("without a root the script is %s", got)
	}
}

// A path that becomes a link after the decision does not run.
func swappedCommand(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	tool, evil := filepath.Join(dir, "tool"), filepath.Join(dir, "evil")
	for _, p := range []string{tool, evil} {
		if err := os.WriteFile(p, []byte("#!/bin/sh\necho "+filepath.Base(p)+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	target := trust.Target{Kind: trust.Exec, Command: &trust.Command{Declared: "./tool", Path: tool}}
	if out := run(t, target, trust.Terms{InTree: true}, egress.Command{Root: dir}, ""); string(out.Stdout) != "tool\n" {
		t.Errorf("got %q", out.Stdout)
	}
	if err := os.Remove(tool); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(evil, tool); err != nil {
		t.Fatal(err)
	}
	if out, err := egress.Run(t.Context(), trusttest.New(target, trust.Terms{InTree: true}), target, egress.Command{Root: dir}, nil, 10); err == nil {
		t.Errorf("the link ran: %q", out.Stdout)
	}
}

func readPid(t *testing.T, r io.Reader) int {
	t.Helper()
	line, err := bufio.NewReader(r).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// gone waits until no process has the id (or only a zombie that init has not reaped).
func gone(t *testing.T, pid int) {
	t.Helper()
	for range 18000 {
		if err := syscall.Kill(pid, 0); errors.Is(err, syscall.ESRCH) || zombie(pid) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("process %d is still there", pid)
}

func zombie(pid int) bool {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	_, state, ok := strings.Cut(string(b), ") ")
	return ok && strings.HasPrefix(state, "Z")
}
