package worker_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/catalogd/catalogd/internal/worker"
)

// confined: a confined child can do nothing of escapes.
func confined(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has one")
	}
	cmd := exec.Command(os.Args[0], "escapes")
	cmd.Env = []string{}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if !strings.Contains(lines[0], "seccomp") {
		t.Skipf("this machine allows no filter: %s", lines[0])
	}
	if len(lines) != 1+len(escapes) {
		t.Fatalf("got\n%s\nwant a line for each of %d tries", out, len(escapes))
	}
	for _, line := range lines[1:] {
		if !strings.Contains(line, "operation not permitted") && !strings.Contains(line, "permission denied") {
			t.Error(line)
		}
	}
	c := compiler(t, worker.Config{})
	if _, problems := compile(t, c, good()); len(problems) > 0 {
		t.Fatal(problems.Err())
	}
	if s := c.Status(); s.PID == 0 || !slices.Contains(s.Sandbox, "seccomp") || !slices.Contains(s.Sandbox, "rlimit_data") {
		t.Errorf("status: %+v", s)
	}
}

// TestOrphan: a child whose parent is gone exits, even during an evaluation that never ends.
func TestOrphan(t *testing.T) {
	t.Parallel()
	for name, src := range map[string]string{"idle": "package catalog\n", "evaluating": endless["A7"]} {
		cmd := exec.Command(os.Args[0], "compile-worker")
		cmd.Env = []string{}
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		s, _ := snapshot(t, with(good(), "catalog/b/b.cue", src))
		if err := worker.WriteRequest(in, schema(t), s.Sources()); err != nil {
			t.Fatal(err)
		}
		if err := worker.AwaitPackage(out, "catalog/b"); err != nil {
			t.Fatal(err)
		}
		in.Close()
		ended := make(chan error, 1)
		go func() {
			io.Copy(io.Discard, out)
			ended <- cmd.Wait()
		}()
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("%s: got %v, want exit status 0", name, err)
			}
		case <-time.After(2 * time.Minute):
			cmd.Process.Kill()
			t.Errorf("%s: the child still runs", name)
		}
	}
}

// TestChildRefuses: a child that reads something that is not of the protocol exits with status 3.
func TestChildRefuses(t *testing.T) {
	t.Parallel()
	for name, in := range map[string]string{
		"nothing": "", "text": "GET / HTTP/1.1\r\n\r\n", "too long": "\xff\xff\xff\xffs",
		"cut": "\x00\x00\x00\x05sab", "other kind": "\x00\x00\x00\x00r",
	} {
		cmd := exec.Command(os.Args[0], "compile-worker")
		cmd.Env, cmd.Stdin = []string{}, strings.NewReader(in)
		cmd.Run()
		if code, want := cmd.ProcessState.ExitCode(), map[bool]int{true: 0, false: 3}[in == ""]; code != want {
			t.Errorf("%s: got exit status %d, want %d", name, code, want)
		}
	}
}

// FuzzAnswer: whatever a child sends, the parent neither panics nor allocates for more than came.
func FuzzAnswer(f *testing.F) {
	for _, seed := range worker.AnswerStreams() {
		f.Add(seed)
		f.Add(seed[:len(seed)/2])
	}
	long := binary.BigEndian.AppendUint32(nil, 1<<24)
	f.Add(append(long, "d.."...))
	f.Add(bytes.Repeat([]byte{0, 0, 0, 0, 'e'}, 3))
	f.Fuzz(func(t *testing.T, stream []byte) { worker.HandleAnswer(stream) })
}
