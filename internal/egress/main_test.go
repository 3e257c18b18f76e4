package egress_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestMain lets the test binary play the children of these tests: the second argument says the part.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "child" {
		// Not os.Exit, which waits for a second under the race detector.
		syscall.Exit(child(os.Args[2], os.Args[3:]))
	}
	os.Exit(m.Run())
}

// until is a context that is cancelled when ok is true, or at last after two minutes.
func until(t *testing.T, ok func() bool) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	go func() {
		for ctx.Err() == nil && !ok() {
			time.Sleep(time.Millisecond)
		}
		cancel()
	}()
	return ctx
}

func child(part string, args []string) int {
	switch part {
	case "env":
		fmt.Print(strings.Join(os.Environ(), "\x00"))
	case "args":
		fmt.Print(strings.Join(args, "\x00"))
	case "cat":
		if _, err := io.Copy(os.Stdout, os.Stdin); err != nil {
			return 1
		}
	case "dir":
		dir, err := os.Getwd()
		if err != nil {
			return 1
		}
		fmt.Print(dir)
	case "exit":
		fmt.Fprint(os.Stderr, strings.Repeat("noise\n", 10_000), "the last line")
		code, _ := strconv.Atoi(args[0])
		return code
	case "descriptors":
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			return 1
		}
		for _, e := range entries {
			if target, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil {
				fmt.Println(e.Name(), target)
			}
		}
	case "flood":
		for {
			if _, err := os.Stdout.WriteString(strings.Repeat("x", 4096)); err != nil {
				return 1
			}
		}
	case "floods-then-marks": // writes more than a pipe holds, then a file
		for range 1000 {
			if _, err := os.Stdout.WriteString(strings.Repeat("x", 4096)); err != nil {
				return 1
			}
		}
		if err := os.WriteFile(args[0], nil, 0o600); err != nil {
			return 1
		}
		return 4
	case "sleep":
		if len(args) > 0 { // marks that it runs
			if err := os.WriteFile(args[0], nil, 0o600); err != nil {
				return 1
			}
		}
		fmt.Println("ready")
		time.Sleep(time.Hour)
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
		fmt.Println("ready")
		time.Sleep(time.Hour)
	case "parent", "leaver":
		// A grandchild that holds our streams open.
		grandchild := exec.Command(os.Args[0], "child", "stubborn")
		grandchild.Stdout, grandchild.Stderr = os.Stdout, os.Stderr
		if err := grandchild.Start(); err != nil {
			return 1
		}
		fmt.Println(grandchild.Process.Pid)
		if part == "parent" {
			time.Sleep(time.Hour)
		}
	default:
		return 99
	}
	return 0
}
