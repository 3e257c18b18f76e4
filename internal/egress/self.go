package egress

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
)

// Nice values for Self: Background is that of a process that calls don't wait for, so that on a busy machine
// they go first; Foreground that of one that they do wait for.
const (
	Foreground = 0
	Background = 5
)

// Self starts this very program again, as a process that evaluates CUE or runs jq programs: with args behind
// its own name, no environment but TZ, the root as its directory, its priority lowered by nice, and otherwise as Start does. It takes
// no Trust, because nothing of a catalog decides what runs here.
func Self(nice int, args ...string) (*Process, error) {
	path := "/proc/self/exe" // this program even when its file has been replaced since
	if runtime.GOOS != "linux" {
		var err error
		if path, err = os.Executable(); err != nil {
			return nil, err
		}
	}
	env := []string{}
	if zone, set := os.LookupEnv("TZ"); set {
		env = append(env, "TZ="+zone)
	}
	p := &Process{grace: DefaultGrace, stderr: &tailBuffer{}, done: make(chan struct{})}
	err := p.start(&exec.Cmd{
		Path:        path,
		Args:        append([]string{os.Args[0]}, args...),
		Env:         env,
		Dir:         "/",
		SysProcAttr: processAttributes(),
	})
	if err != nil {
		return nil, err
	}
	if nice == Foreground {
		return p, nil
	}
	// The group, because on Linux a priority is each thread's own, and a thread gets that of the one that
	// made it.
	if err := syscall.Setpriority(syscall.PRIO_PGRP, p.pid, nice); err != nil && !errors.Is(err, syscall.ESRCH) {
		p.Kill()
		p.Stdout.Close()
		return nil, fmt.Errorf("lower the priority of process %d: %w", p.pid, err)
	}
	return p, nil
}
