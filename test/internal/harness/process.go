package harness

import (
	"bytes"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// Listening starts a program that listens on a free port of 127.0.0.1 until the test ends, and returns the port.
func Listening(t testing.TB, what string, command func(port string) *exec.Cmd) (port string) {
	t.Helper()
	port = FreePort(t)
	cmd := command(port)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // it is killed
		close(ended)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // or has ended by itself
		<-ended
	})
	Await(t, what+" to listen", func() bool {
		conn, err := net.Dial("tcp", "127.0.0.1:"+port)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	return port
}

// FreePort returns a port that nothing listens on. It is none of those that a kernel gives to whoever asks for any
// port, so that no other test takes it before the program does.
func FreePort(t testing.TB) string {
	t.Helper()
	for range 1000 {
		port := strconv.Itoa(10_000 + rand.IntN(20_000))
		if l, err := net.Listen("tcp", "127.0.0.1:"+port); err == nil {
			l.Close()
			return port
		}
	}
	t.Fatal("1000 ports are all in use")
	return ""
}

// gone reports whether a process has ended.
func gone(pid int) bool { return syscall.Kill(pid, 0) != nil }

// AwaitGone waits until all of these processes have ended; when completes "waiting for the processes to end".
func AwaitGone(t testing.TB, when string, pids []int) {
	t.Helper()
	Await(t, "the processes to end "+when, func() bool { return !slices.ContainsFunc(pids, func(pid int) bool { return !gone(pid) }) })
}

// Children returns the live descendants of a process; none where there is no /proc.
func Children(pid int) (all []int) {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil
	}
	below := map[int][]int{}
	for _, stat := range stats {
		data, err := os.ReadFile(stat)
		if err != nil {
			continue // it has just ended
		}
		// pid (name) state ppid: the name may hold anything.
		fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
		child, err1 := strconv.Atoi(strings.Split(stat, "/")[2])
		parent, err2 := strconv.Atoi(fields[1])
		if err1 == nil && err2 == nil && fields[0] != "Z" {
			below[parent] = append(below[parent], child)
		}
	}
	for queue := below[pid]; len(queue) > 0; queue = queue[1:] {
		all = append(all, queue[0])
		queue = append(queue, below[queue[0]]...)
	}
	return all
}
