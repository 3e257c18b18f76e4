package main

import (
	"errors"
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
	if !poll(func() bool { return full(t, out.(*os.File)) }) {
		t.Fatal("its answers do not fill the pipe")
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 1 || !strings.Contains(errs.String(), "not ended in time") {
		t.Errorf("%v\n%s", err, errs)
	}
}

// full reports whether a pipe that is read here takes nothing more, but for less than a page.
func full(t *testing.T, pipe *os.File) bool {
	t.Helper()
	size, err := unix.FcntlInt(pipe.Fd(), unix.F_GETPIPE_SZ, 0)
	if err != nil {
		t.Fatal(err)
	}
	held, err := unix.IoctlGetInt(int(pipe.Fd()), unix.TIOCINQ)
	if err != nil {
		t.Fatal(err)
	}
	return held > size-os.Getpagesize()
}
