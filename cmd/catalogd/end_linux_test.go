package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/catalogd/catalogd"
)

// TestEndsByForce: a process that can't end, as its client reads nothing, is ended all the same, and says so.
func TestEndsByForce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.CopyFS(dir, catalogd.Starter()); err != nil {
		t.Fatal(err)
	}
	cmd, _, errs := started(t, dir, "stdio")
	cmd.Stdout = nil
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// The answers of as many requests as it takes fill the pipe, and then requests can not be written either.
	if _, err := io.WriteString(in, message(false, 0, "initialize", initializing)+"\n"+`{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n"); err != nil {
		t.Fatal(err)
	}
	first := make([]byte, 1)
	if _, err := out.Read(first); err != nil { // it serves
		t.Fatal(err)
	}
	go func() {
		for i := 1; ; i++ {
			if _, err := io.WriteString(in, message(false, i, "tools/list", "")+"\n"); err != nil {
				return
			}
		}
	}()
	if !poll(func() bool { return full(t, cmd.Process.Pid, 0) && full(t, cmd.Process.Pid, 1) }) {
		t.Fatal("requests and answers do not fill the pipes")
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 1 || !strings.Contains(errs.String(), "not ended in time") {
		t.Errorf("%v\n%s", err, errs)
	}
}

// full reports whether a pipe that is a process's descriptor takes nothing more.
func full(t *testing.T, pid, descriptor int) bool {
	t.Helper()
	fd, err := unix.Open(fmt.Sprintf("/proc/%d/fd/%d", pid, descriptor), unix.O_WRONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}, 0)
	return err == nil && n == 0 // an interrupted look is repeated
}
