package intent

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/registry"
)

// children are what a child process of a test does, by its name: this test binary, run again. What it says, line by line,
// is what its test reads; it ends when its standard input does.
var children = map[string]func(dir string, args []string) error{}

func TestMain(m *testing.M) {
	if len(os.Args) > 3 && os.Args[1] == "child" {
		err := children[os.Args[2]](os.Args[3], os.Args[4:])
		if err != nil {
			fmt.Println("failed:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

type child struct {
	t   *testing.T
	cmd *exec.Cmd
	out *bufio.Scanner
	in  io.Closer
}

func start(t *testing.T, name, dir string, args ...string) *child {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := &child{t: t, cmd: exec.Command(self, append([]string{"child", name, dir}, args...)...)}
	c.cmd.Stderr = os.Stderr
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c.out = bufio.NewScanner(out)
	t.Cleanup(c.kill)
	return c
}

// says is the child's next line.
func (c *child) says() string {
	c.t.Helper()
	if !c.out.Scan() {
		c.t.Fatalf("the child has nothing more to say (%v)", c.out.Err())
	}
	return c.out.Text()
}

// rest is what it says until it ends.
func (c *child) rest() []string {
	var lines []string
	for c.out.Scan() {
		lines = append(lines, c.out.Text())
	}
	return lines
}

// kill is kill -9.
func (c *child) kill() {
	_ = c.cmd.Process.Kill() // it may have ended
	_ = c.cmd.Wait()
}

// close ends its standard input, and waits until it has ended.
func (c *child) close() {
	c.t.Helper()
	if err := c.in.Close(); err != nil {
		c.t.Fatal(err)
	}
	for _, line := range c.rest() {
		c.t.Log(line)
	}
	if err := c.cmd.Wait(); err != nil {
		c.t.Fatal(err)
	}
}

// untilClosed waits for the end of standard input.
func untilClosed() { _, _ = io.Copy(io.Discard, os.Stdin) }

func newDir(t testing.TB) string { return filepath.Join(t.TempDir(), "intents") }

func open(t testing.TB, dir string, more ...func(*Config)) *Store {
	t.Helper()
	cfg := Config{Dir: dir, Durability: Process}
	for _, m := range more {
		m(&cfg)
	}
	s, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// anIntent is one to be staged, its digest its arguments'.
func anIntent(args string) Intent {
	return Intent{
		Branch: "default", Tool: "orders.create", Principal: "alice", State: Staged, Credential: "c", Fingerprint: "p", Policy: "y", Generation: "g",
		Arguments: json.RawMessage(args), Digest: "sha256:" + args,
	}
}

func approvalOf(groups ...string) *Approval { return &Approval{Groups: groups, Reason: "it is large"} }

func stage(t testing.TB, s *Store, in Intent) Intent {
	t.Helper()
	got, made, err := s.Stage(context.Background(), in)
	if err != nil || !made {
		t.Fatalf("staging %s: made %v, %v", in.Arguments, made, err)
	}
	return got
}

func get(t testing.TB, s *Store, id string) Intent {
	t.Helper()
	in, err := s.Get(context.Background(), id)
	if err != nil {
		t.Fatal(err)
	}
	return in
}

func steps(states ...State) []Step {
	var all []Step
	for _, s := range states {
		all = append(all, Step{State: s})
	}
	return all
}

// path is a shortest way to a state.
var path = map[State][]State{
	Staged: {}, AwaitingApproval: {}, Released: {Released}, Attempted: {Released, Attempted}, AwaitingInput: {Released, Attempted, AwaitingInput},
	Succeeded: {Attempted, Succeeded}, Failed: {Attempted, Failed}, Unknown: {Attempted, Unknown},
	Refused: {Refused}, Cancelled: {Cancelled}, Expired: {Released, Expired},
}

// inState stages an intent and brings it to a state.
func inState(t testing.TB, s *Store, state State, in Intent) Intent {
	t.Helper()
	if state == AwaitingApproval {
		in.State, in.Approval = state, approvalOf("ops")
	}
	got := stage(t, s, in)
	if way := path[state]; len(way) > 0 {
		if err := s.Change(context.Background(), got.ID, Staged, Change{Steps: steps(way...)}); err != nil {
			t.Fatal(err)
		}
	}
	return get(t, s, got.ID)
}

func textResult(s string) *registry.Result {
	return &registry.Result{Content: []json.RawMessage{registry.Text(s)}}
}

func states(in Intent) string {
	var all []string
	for _, s := range in.History {
		all = append(all, string(s.State))
	}
	return strings.Join(all, " ")
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
