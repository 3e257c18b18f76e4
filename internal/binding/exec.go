package binding

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/decision/trust"
	"github.com/catalogd/catalogd/internal/reach"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// grace is what a command has between SIGTERM and SIGKILL, so that a cancelled call ends within a second.
const grace = 500 * time.Millisecond

// execKind runs a command with an exact command line.
type execKind struct {
	command trust.Target
	argv    argv
	env     map[string]reach.Value
	root    string
	limit   int64
	// stdin: the arguments are sent as JSON. stdout: the output is JSON.
	stdin, stdout bool
	// raw keeps control characters in text.
	raw bool
}

func newExec(c *check) kind {
	e := c.tool.Binding.Exec
	const field = "binding.exec"
	path, err := reach.Resolve(e.Command, c.root)
	if err != nil {
		c.errorf(problem.BadBinding, field+".command", "%v", err)
	}
	c.oneOf(field+".stdin", e.Stdin, "none", "json")
	c.oneOf(field+".stdout", e.Stdout, "text", "json")
	if info, err := os.Stat(reach.Dir(e.Cwd, c.root)); err != nil || !info.IsDir() {
		c.errorf(problem.BadBinding, field+".cwd", "cwd %q is no directory; it is absolute, or relative to the catalog's root", e.Cwd)
	}
	for _, name := range sortedKeys(e.Env) {
		if err := reach.CheckEnvName(name); err != nil {
			c.errorf(problem.BadBinding, field+".env."+name, "%v", err)
		}
	}
	k := &execKind{
		argv:  newArgv(c, field+".argv", e.Argv, e.Joined),
		env:   c.values(field+".env", e.Env),
		root:  c.root,
		limit: c.maxOutput(field+".maxOutput", e.MaxOutput),
		stdin: e.Stdin == "json", stdout: e.Stdout == "json",
		raw: c.raw(field+".raw", e.Raw, e.Stdout == "json"),
	}
	if !k.stdin {
		used := map[string]bool{}
		k.argv.used(used)
		c.unused(used, `put {name} into argv, or set stdin: "json"`)
	}
	k.command = trust.Target{Kind: trust.Exec, Command: &trust.Command{
		Declared: e.Command,
		Path:     path,
		Args:     append([]string{}, e.Argv...),
		Dir:      e.Cwd,
		Env:      append([]string{}, sortedKeys(e.Env)...),
	}}
	return k
}

func (k *execKind) target() (trust.Target, bool) { return k.command, true }

func (k *execKind) bind(tr trust.Trust, deps Deps) registry.Invoker {
	return &execInvoker{k, tr, deps.Digests}
}

type execInvoker struct {
	*execKind
	trust   trust.Trust
	digests *reach.Digests
}

func (x *execInvoker) Invoke(ctx context.Context, args contract.Args) (*registry.Result, error) {
	argv, err := x.argv.expand(args)
	if err != nil {
		return nil, err
	}
	out, err := reach.Run(ctx, x.trust, x.command, reach.Command{Root: x.root, Args: argv, Env: x.env, Grace: grace, Digests: x.digests}, x.input(args), x.limit)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, syscall.E2BIG):
		return nil, &registry.Error{Code: registry.InvalidArguments, Msg: "the arguments are too long for one command line; give shorter ones", Err: err}
	case err != nil:
		return nil, &registry.Error{Code: registry.BindingFailed, Msg: "the tool's command could not be run; the operator's log says why", Err: err}
	case out.TooLarge:
		return nil, tooLarge("the command's output", x.limit)
	}
	mask := reach.Mask(x.env, x.root)
	stdout := mask.Replace(string(out.Stdout))
	if !out.Exit.Success() {
		status := "the command ended with " + out.Exit.String()
		if stderr := strings.TrimSpace(plain(mask.Replace(out.Stderr))); stderr != "" {
			status += ":\n" + tail(stderr)
		}
		return textResult(true, status, tail(plain(stdout))), nil
	}
	if x.stdout {
		return jsonResult(stdout, "the command's output"), nil
	}
	return textResult(false, shown(stdout, x.raw)), nil
}

func (x *execInvoker) input(args contract.Args) []byte {
	if !x.stdin {
		return nil
	}
	return args.JSON()
}

func (x *execInvoker) Plan(args contract.Args) (registry.Plan, error) {
	argv, err := x.argv.expand(args)
	if err != nil {
		return registry.Plan{}, err
	}
	plan := registry.Plan{
		Kind:  "exec",
		Argv:  append([]string{x.command.Command.Path}, argv...),
		Dir:   reach.Dir(x.command.Command.Dir, x.root),
		Stdin: string(x.input(args)),
	}
	for _, name := range sortedKeys(x.env) {
		plan.Env = append(plan.Env, fmt.Sprintf("%s=%s", name, x.env[name].Masked()))
	}
	// What is passed on from the daemon's environment may be a secret, too.
	for _, name := range x.trust.Env() {
		if _, declared := x.env[name]; declared {
			continue
		}
		if _, ok := os.LookupEnv(name); ok {
			plan.Env = append(plan.Env, name+"=***")
		}
	}
	return plan, nil
}
