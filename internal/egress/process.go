package egress

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/catalogd/catalogd/decision/trust"
	"github.com/catalogd/catalogd/internal/secret"
)

const (
	// DefaultGrace is the time between SIGTERM and SIGKILL.
	DefaultGrace = 2 * time.Second
	// drain caps the wait for the streams of a child that has ended: a process that left the group can hold
	// them open.
	drain = time.Second
	// tailSize is how much of standard error is kept, in bytes.
	tailSize = 16 << 10
)

// Command completes a target for one start.
type Command struct {
	// Root is the catalog's directory: relative file: secrets and a relative working directory lie below it.
	Root string
	// Args are the arguments of the command, with placeholders filled in. Elements for which the target has
	// no placeholder must equal the target's.
	Args []string
	// Filled, if not nil, is what each element of the target's Args became, in place of Args. An element with a
	// placeholder {name?} or {name*} of a call's argument may have become several, or none.
	Filled [][]string
	// Env holds the declared variables, exactly the names of the target.
	Env map[string]secret.Value
	// Owner is the server or tool whose child it is, such as "tool clock", and Homes has its private
	// directory. Where Homes is nil, this child gets a temporary directory of its own.
	Owner string
	Homes *Homes
	// Stderr, if not nil, receives the child's standard error as it is written, besides the tail that
	// Process.Stderr keeps. It is written to by one goroutine, until Process.Done; it must neither fail nor
	// block, for that would block the child.
	Stderr io.Writer
	// Key is the idempotency key of a call with a side effect, which the child is given as trust.KeyVariable;
	// empty for none.
	Key string
	// Finish lets Run's child run to its end where its output exceeds the cap: the effect matters more than
	// the output.
	Finish bool
	// Grace is the time between SIGTERM and SIGKILL; 0 means DefaultGrace.
	Grace time.Duration
	// Digests remembers the digests of programs that a trust entry pins; nil reads a pinned program at each
	// start.
	Digests *Digests
}

// Process is a running child with its group. Its methods are safe for concurrent use.
type Process struct {
	// Stdin is the child's standard input; most children exit when it is closed.
	Stdin io.WriteCloser
	// Stdout is the child's standard output. A read ends soon after the child does, even when something still
	// holds the other end.
	Stdout io.ReadCloser

	pid    int
	grace  time.Duration
	stderr *tailBuffer
	also   io.Writer // also receives standard error; may be nil
	homes  *Homes    // this child's alone, removed when it has ended; may be nil
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

// Success reports whether the exit status is 0.
func (e Exit) Success() bool { return e.Code == 0 }

func (e Exit) String() string {
	if e.Signal != "" {
		return "signal " + e.Signal
	}
	return fmt.Sprintf("exit status %d", e.Code)
}

// Start runs the target's command, without a shell, until it exits, ctx ends or Stop is called. The child has
// its own process group, which is killed as a whole, also when only its first process has exited. (A process
// that moves itself to a new session escapes that.) It gets the environment listed by Variables, and no
// descriptor but its three streams. A command that tr pins by a digest is checked at the moment of its start.
// The error is an *UnsentError where nothing was started.
func Start(ctx context.Context, tr trust.Trust, target trust.Target, c Command) (_ *Process, err error) {
	started := false
	defer func() {
		if err != nil && !started {
			err = &UnsentError{err}
		}
	}()
	var own *Homes
	if c.Homes == nil {
		own = NewHomes("", c.Root)
		c.Homes = own
		defer func() {
			if err != nil {
				own.Close()
			}
		}()
	}
	cmd, err := prepare(tr, target, c)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	pinned, err := openPinned(tr, *target.Command, c.Digests)
	if err != nil {
		return nil, err
	}
	if pinned != nil {
		pinned.apply(cmd)
	}
	p := &Process{grace: c.Grace, stderr: &tailBuffer{}, also: c.Stderr, homes: own, done: make(chan struct{})}
	if p.grace <= 0 {
		p.grace = DefaultGrace
	}
	err = p.start(cmd)
	started = err == nil
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

// prepare checks everything that was decided on and builds the command line from it.
func prepare(tr trust.Trust, target trust.Target, c Command) (*exec.Cmd, error) {
	if err := Check(tr, target, target.Command != nil && InTree(*target.Command, c.Root)); err != nil {
		return nil, err
	}
	decided := target.Command
	if decided == nil {
		return nil, fmt.Errorf("a target of kind %q has no command to run", target.Kind)
	}
	// Since the decision, the path may have become a link or a file that can't be used.
	if path, err := Resolve(decided.Path, c.Root); err != nil {
		return nil, err
	} else if path != decided.Path {
		return nil, fmt.Errorf("command %q was trusted as %s, which has since become a link to %s", decided.Declared, decided.Path, path)
	}
	filled := c.Filled
	if filled == nil {
		filled = each(c.Args)
	}
	if err := sameArgs(*decided, filled); err != nil {
		return nil, err
	}
	private, err := c.Homes.of(c.Owner, tr.Name())
	if err != nil {
		return nil, err
	}
	env, err := environment(tr, target, c, private.home)
	if err != nil {
		return nil, err
	}
	dir := private.work
	if decided.Dir != "" {
		dir = Dir(decided.Dir, c.Root)
	}
	return &exec.Cmd{
		Path:        decided.Path,
		Args:        append([]string{argv0(*decided)}, Argv(*decided, filled)...),
		Env:         env,
		Dir:         dir,
		SysProcAttr: processAttributes(),
	}, nil
}

// doubled matches {{name}} in a tool's command line, which stands for the text {name}.
var doubled = regexp.MustCompile(`\{\{([^{}]*)\}\}`)

// each returns each text as a list of its own.
func each(texts []string) [][]string {
	out := make([][]string, len(texts))
	for i := range texts {
		out[i] = texts[i : i+1]
	}
	return out
}

// Argv returns the arguments of a start of c as the program gets them: what each element became, with the
// script's absolute path.
func Argv(c trust.Command, filled [][]string) (args []string) {
	script := slices.Index(c.Args, Recognise(c).Script)
	for i, elements := range filled {
		if c.Script != "" && i == script {
			elements = []string{c.Script}
		}
		args = append(args, elements...)
	}
	return args
}

// argv0 returns what a shell would pass: the name as written, from which a multi-call program chooses its
// function.
func argv0(c trust.Command) string {
	if strings.Contains(c.Declared, "/") && !filepath.IsAbs(c.Declared) {
		return c.Path
	}
	return c.Declared
}

// sameArgs rejects a command line that the decided template does not cover: each element must have become
// exactly the template's, unless that has a placeholder that a call may fill. Only one with a mark, {name?} or
// {name*}, may have become several elements, or none.
func sameArgs(decided trust.Command, filled [][]string) error {
	template := decided.Args
	if len(template) != len(filled) {
		return fmt.Errorf("the command line has %d arguments, and %d were trusted", len(filled), len(template))
	}
	for i, elements := range filled {
		has := func(end string) bool {
			return slices.ContainsFunc(decided.FromCall, func(name string) bool { return strings.Contains(template[i], "{"+name+end) })
		}
		marked := has("?") || has("*")
		if len(elements) != 1 && !marked {
			return fmt.Errorf("argument %d became %d, and one was trusted", i+1, len(elements))
		}
		for _, arg := range elements {
			if strings.ContainsRune(arg, 0) {
				return fmt.Errorf("argument %d holds a NUL byte, which no command line can carry", i+1)
			}
			if !marked && !has("}") && arg != template[i] && arg != doubled.ReplaceAllString(template[i], "{$1}") {
				return fmt.Errorf("argument %d differs from the one that was trusted", i+1)
			}
		}
	}
	return nil
}

// start creates the pipes and starts cmd. The goroutine that starts the child also waits for it, on one
// locked thread: on Linux the parent-death signal is tied to a thread.
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
		err := closeInheritedOnExec()
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
		// The copy ends at the end of the stream or at the deadline below; neither is an error.
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
	if p.homes != nil {
		p.homes.Close()
	}
	close(p.done)
}

// Pid returns the child's process id, which is also the id of its group.
func (p *Process) Pid() int { return p.pid }

// Done closes when the child has ended and its group was killed.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait blocks until the child has ended.
func (p *Process) Wait() Exit {
	<-p.done
	return p.exit
}

// Stderr returns the end of the standard error written so far, at most 16 KiB.
func (p *Process) Stderr() string { return p.stderr.String() }

// Stop sends SIGTERM to the whole group, SIGKILL after the grace, and returns when the child has ended.
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

// Kill kills the whole group at once and returns when the child has ended.
func (p *Process) Kill() {
	select {
	case <-p.done:
		return
	default:
		killGroup(p.pid)
	}
	<-p.done
}
