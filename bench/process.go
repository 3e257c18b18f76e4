package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// process is a program that is measured.
type process struct {
	cmd   *exec.Cmd
	ended chan struct{}
}

// start starts a program. What it says goes to a file of its own in dir: catalogd logs each call, and writing that is part of
// what a call costs.
func start(dir, name string, args ...string) (*process, error) {
	p := &process{cmd: exec.Command(name, args...), ended: make(chan struct{})}
	p.cmd.Dir = dir
	log, err := os.CreateTemp(dir, "*.log")
	if err != nil {
		return nil, err
	}
	defer log.Close()
	p.cmd.Stdout, p.cmd.Stderr = log, log
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = p.cmd.Wait() // it is ended by stop
		close(p.ended)
	}()
	return p, nil
}

// stop ends the program, by force if it takes too long.
func (p *process) stop() {
	_ = p.cmd.Process.Signal(os.Interrupt) // or it has ended
	select {
	case <-p.ended:
	case <-time.After(10 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.ended
	}
}

// free is an address that nothing listens on.
func free() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// listed polls until the endpoint lists at least want tools, and returns their names and how long it took.
func (p *process) listed(ctx context.Context, url string, want int) ([]string, time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	from, client := time.Now(), newClient()
	defer client.CloseIdleConnections()
	for {
		s, err := open(ctx, url, client)
		var names []string
		if err == nil {
			names, _, err = s.list(ctx)
		}
		if err == nil && len(names) >= want {
			return names, time.Since(from), s.close(ctx)
		}
		select {
		case <-p.ended:
			return nil, 0, fmt.Errorf("%s has ended", filepath.Base(p.cmd.Path))
		case <-ctx.Done():
			return nil, 0, fmt.Errorf("%s lists %d of %d tools: %w", url, len(names), want, err)
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// memory is what is resident of the process itself, in bytes: all of it, and what is its own, without the pages of its
// program and other files, which any process shares and the system takes back when it likes.
func (p *process) memory() (all, own int, err error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.SplitSeq(string(status), "\n") {
		for name, n := range map[string]*int{"VmRSS:": &all, "RssAnon:": &own} {
			if value, ok := strings.CutPrefix(line, name); ok {
				if *n, err = strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(value), " kB")); err != nil {
					return 0, 0, err
				}
				*n *= 1024
			}
		}
	}
	return all, own, nil
}

// cpu is the CPU time that the process itself has taken so far.
func (p *process) cpu() (time.Duration, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	// The fields from the third on: the second is the name, in parentheses.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 13 {
		return 0, fmt.Errorf("/proc has %q", stat)
	}
	user, err := strconv.Atoi(fields[11])
	if err != nil {
		return 0, err
	}
	system, err := strconv.Atoi(fields[12])
	if err != nil {
		return 0, err
	}
	const tick = 10 * time.Millisecond // the kernel counts in hundredths of a second
	return time.Duration(user+system) * tick, nil
}
