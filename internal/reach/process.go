package reach

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/catalogd/catalogd/decision/trust"
)

const (
	// DefaultGrace is the time between SIGTERM and SIGKILL.
	DefaultGrace = 2 * time.Second
	// drain bounds the wait for the streams of a child that has ended: a process that left the group can hold them open.
	drain = time.Second
	// tailSize is how much of standard error is kept.
	tailSize = 16 << 10
)

// Command is what a target leaves open: how this one start of it is filled in.
type Command struct {
	// Root is the catalog's directory: relative file: secrets and the working directory lie below it.
	Root string
	// Args are the elements behind the command, placeholders filled in. Elements without a placeholder must be the
	// target's own.
	Args []string
	// Env holds the declared variables, exactly the names of the target.
	Env map[string]Value
	// Stderr, where it is not nil, gets what the child writes to standard error as it comes, beside the end of it that
	// Process.Stderr keeps. It is written to by one goroutine, until Process.Done; it must neither fail nor wait, for the
	// child would be held up.
	Stderr io.Writer
	// Grace is the time between SIGTERM and SIGKILL; 0 means DefaultGrace.
	Grace time.Duration
	// Digests remembers the digests of programs that a trust entry pins; nil reads a pinned program at each start.
	Digests *Digests
}

// Process is a running child with its group. Its methods are safe for concurrent use.
type Process struct {
	// Stdin is the child's standard input; closing it is how most children are asked to end.
	Stdin io.WriteCloser
	// Stdout is the child's standard output. A read ends soon after the child does, even when something still holds the
	// other end.
	Stdout io.ReadCloser

	pid    int
	grace  time.Duration
	stderr *tail
	also   io.Writer // gets standard error too; may be nil
	ending sync.Once
	done   chan struct{}
	exit   Exit // written before done closes
}

// Exit is how a child ended.
type Exit struct {
	// Code is the exit status, -1 when a signal ended the child.
	Code int
	// Signal is the name of the signal that ended it, else empty.
	Signal string
}

// Success reports a status of 0.
func (e Exit) Success() bool { return e.Code == 0 }

func (e Exit) String() string {
	if e.Signal != "" {
		return "signal " + e.Signal
	}
	return fmt.Sprintf("exit status %d", e.Code)
}

// Start runs the target's command, without a shell, until it ends by itself, ctx ends or Stop is called. The child has
// its own process group, which is killed as a whole, also when only its first process has ended. (A process that moves
// itself to a new session escapes that.) It gets the declared environment and what tr names of the daemon's, and no
// descriptor but its three streams. A command that tr pins by a digest has it at the moment of its start.
func Start(ctx context.Context, tr trust.Trust, target trust.Target, c Command) (*Process, error) {
	cmd, err := prepare(tr, target, c)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	pinned, err := hold(tr, *target.Command, c.Digests)
	if err != nil {
		return nil, err
	}
	if pinned != nil {
		pinned.apply(cmd)
	}
	p := &Process{grace: c.Grace, stderr: &tail{}, also: c.Stderr, done: make(chan struct{})}
	if p.grace <= 0 {
		p.grace = DefaultGrace
	}
	err = p.start(cmd)
	if pinned != nil {
		changed := pinned.release(target.Command.Path)
		if err == nil && changed != nil {
			p.Kill()
			p.Stdout.Close()
			return nil, changed
		}
	}
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", target.Command.Path, err)
	}
	unhook := context.AfterFunc(ctx, p.Stop)
	go func() {
		<-p.done
		unhook()
	}()
	return p, nil
}

// prepare checks everything that was decided on and makes the command line of it.
func prepare(tr trust.Trust, target trust.Target, c Command) (*exec.Cmd, error) {
	if err := Check(tr, target); err != nil {
		return nil, err
	}
	decided := target.Command
	if decided == nil {
		return nil, fmt.Errorf("a target of kind %q has no command to run", target.Kind)
	}
	// The path may have become a link, or lost what made it usable, since the decision.
	if path, err := Resolve(decided.Path, c.Root); err != nil {
		return nil, err
	} else if path != decided.Path {
		return nil, fmt.Errorf("command %q was trusted as %s, which has since become a link to %s", decided.Declared, decided.Path, path)
	}
	if err := sameArgs(decided.Args, c.Args); err != nil {
		return nil, err
	}
	env, err := environment(tr, decided.Env, c)
	if err != nil {
		return nil, err
	}
	return &exec.Cmd{
		Path:        decided.Path,
		Args:        append([]string{argv0(*decided)}, c.Args...),
		Env:         env,
		Dir:         Dir(decided.Dir, c.Root),
		SysProcAttr: processAttributes(),
	}, nil
}

// argv0 is what a shell would pass: the name as it is written, by which a program of many names knows its part.
func argv0(c trust.Command) string {
	if strings.Contains(c.Declared, "/") && !filepath.IsAbs(c.Declared) {
		return c.Path
	}
	return c.Declared
}

// sameArgs refuses a command line that is not one of those that the decided template stands for.
func sameArgs(template, args []string) error {
	if len(template) != len(args) {
		return fmt.Errorf("the command line has %d arguments, and %d were trusted", len(args), len(template))
	}
	for i, arg := range args {
		if strings.ContainsRune(arg, 0) {
			return fmt.Errorf("argument %d holds a NUL byte, which no command line can carry", i+1)
		}
		if !strings.Contains(template[i], "{") && arg != template[i] {
			return fmt.Errorf("argument %d differs from the one that was trusted", i+1)
		}
	}
	return nil
}

// environment is the child's whole environment: what tr names of the daemon's own, and over it what is declared.
func environment(tr trust.Trust, declared []string, c Command) ([]string, error) {
	names := slices.Sorted(maps.Keys(c.Env))
	if !slices.Equal(names, declared) {
		return nil, errors.New("the environment's names differ from the ones that were trusted")
	}
	vars := make(map[string]string)
	for _, name := range tr.Env() {
		if value, ok := os.LookupEnv(name); ok {
			vars[name] = value
		}
	}
	for _, name := range names {
		if err := CheckEnvName(name); err != nil {
			return nil, err
		}
		value, err := c.Env[name].Resolve(c.Root)
		if err != nil {
			return nil, fmt.Errorf("environment variable %s: %w", name, err)
		}
		if strings.ContainsRune(value, 0) {
			return nil, fmt.Errorf("environment variable %s: the value holds a NUL byte", name)
		}
		vars[name] = value
	}
	// Never nil, which os/exec would take for "everything".
	env := []string{}
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		env = append(env, name+"="+vars[name])
	}
	return env, nil
}

// CheckEnvName is nil when name can stand in an environment.
func CheckEnvName(name string) error {
	if name == "" || strings.ContainsAny(name, "=\x00") {
		return fmt.Errorf("environment variable %q: a name is not empty and holds no = and no NUL byte", name)
	}
	return nil
}

// start makes the pipes and starts cmd. The goroutine that starts the child waits for it too, on one locked thread: on
// Linux the parent whose death the child is told of is a thread.
func (p *Process) start(cmd *exec.Cmd) error {
	var ours, theirs [3]*os.File
	closeAll := func(files [3]*os.File) {
		for _, f := range files {
			if f != nil {
				f.Close()
			}
		}
	}
	for i := range ours {
		r, w, err := os.Pipe()
		if err != nil {
			closeAll(ours)
			closeAll(theirs)
			return err
		}
		ours[i], theirs[i] = r, w
		if i == 0 {
			ours[i], theirs[i] = w, r
		}
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs[0], theirs[1], theirs[2]
	p.Stdin, p.Stdout = ours[0], ours[1]

	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := sealDescriptors()
		if err == nil {
			err = cmd.Start()
		}
		closeAll(theirs)
		if err != nil {
			closeAll(ours)
			started <- err
			return
		}
		p.pid = cmd.Process.Pid
		started <- nil
		p.wait(cmd, ours)
	}()
	return <-started
}

func (p *Process) wait(cmd *exec.Cmd, ours [3]*os.File) {
	copied := make(chan struct{})
	go func() {
		defer close(copied)
		// The end of the stream and the deadline below are the only ways out, and both are fine.
		var to io.Writer = p.stderr
		if p.also != nil {
			to = io.MultiWriter(p.stderr, p.also)
		}
		_, _ = io.Copy(to, ours[2])
	}()
	err := cmd.Wait()
	killGroup(p.pid)
	ours[0].Close()
	ours[2].SetReadDeadline(time.Now().Add(drain))
	<-copied
	ours[2].Close()
	ours[1].SetReadDeadline(time.Now().Add(drain))
	p.exit = exitOf(cmd, err)
	close(p.done)
}

// Pid is the child's process id and the id of its group.
func (p *Process) Pid() int { return p.pid }

// Done closes when the child has ended and its group was killed.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait blocks until the child has ended.
func (p *Process) Wait() Exit {
	<-p.done
	return p.exit
}

// Stderr is the end of what the child wrote to standard error so far, at most 16 KiB.
func (p *Process) Stderr() string { return p.stderr.String() }

// Stop asks the whole group to end (SIGTERM), kills it (SIGKILL) after the grace, and returns when the child has ended.
func (p *Process) Stop() {
	p.ending.Do(func() {
		select {
		case <-p.done:
			return
		default:
		}
		terminateGroup(p.pid)
		kill := time.NewTimer(p.grace)
		defer kill.Stop()
		select {
		case <-p.done:
		case <-kill.C:
			killGroup(p.pid)
		}
	})
	<-p.done
}

// Kill ends the whole group at once and returns when the child has ended.
func (p *Process) Kill() {
	select {
	case <-p.done:
		return
	default:
		killGroup(p.pid)
	}
	<-p.done
}
