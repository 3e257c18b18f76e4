package binding

import (
	"context"
	"errors"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/decision/trust"
	"github.com/catalogd/catalogd/internal/egress"
	"github.com/catalogd/catalogd/internal/placeholder"
	"github.com/catalogd/catalogd/internal/secret"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// grace is the time between SIGTERM and SIGKILL for a command, so that a cancelled call ends within a second.
const grace = 500 * time.Millisecond

// execKind runs a command with an exact command line.
type execKind struct {
	tool    string // its name
	command trust.Target
	argv    argv
	env     map[string]secret.Value
	root    string
	limit   int64
	stdin   string // json: all arguments as JSON; else the name of the argument that is sent as it is, or empty
	// stdout is what the output is: text, json or content.
	stdout string
	// raw keeps control characters in text.
	raw bool
	// write says that the tool has a side effect.
	write bool
}

func newExec(c *check) kind {
	e := c.tool.Binding.Exec
	const field = "binding.exec"
	path, err := egress.Resolve(e.Command, c.root)
	if why, unusable := egress.Unusable(err); unusable { // on this machine; the declaration may be right on others
		c.missing = why
		c.warnf(problem.MissingCommand, field+".command", "tool %q is hidden: %s", c.tool.Name, c.missing)
	} else if err != nil {
		c.errorf(problem.BadBinding, field+".command", "%v", err)
	}
	input := c.stdin(field+".stdin", e.Stdin)
	c.output(field+".stdout", e.Stdout, "text", "json", "content")
	if info, err := os.Stat(egress.Dir(e.Cwd, c.root)); e.Cwd != "" && (err != nil || !info.IsDir()) {
		c.errorf(problem.BadBinding, field+".cwd", "cwd %q is no directory; it is absolute, or relative to the catalog's root", e.Cwd)
	}
	for _, name := range sortedKeys(e.Env) {
		if err := egress.CheckEnvName(name); err != nil {
			c.errorf(problem.BadBinding, field+".env."+name, "%v", err)
		}
	}
	k := &execKind{
		tool:  c.tool.Name,
		argv:  newArgv(c, field+".argv", e.Argv, e.Joined),
		env:   c.values(field+".env", e.Env),
		root:  c.root,
		limit: c.maxOutput(field+".maxOutput", e.MaxOutput),
		stdin: input, stdout: e.Stdout,
		raw:   c.raw(field+".raw", e.Raw, e.Stdout == "json"),
		write: c.tool.Effect == registry.Write,
	}
	used := map[string]bool{}
	k.argv.used(used)
	switch k.stdin {
	case "":
		c.unused(used, `put {name} into argv, or set stdin: "json"`)
	case allArguments:
	default:
		used[k.stdin] = true
		c.unused(used, `put {name} into argv`)
	}
	k.command = trust.Target{Kind: trust.Exec, Command: &trust.Command{
		Declared: e.Command,
		Path:     path,
		Args:     append([]string{}, e.Argv...),
		Dir:      e.Cwd,
		FromCall: sortedKeys(used),
		Stdin:    k.stdin != "",
		Env:      append([]string{}, sortedKeys(e.Env)...),
	}}
	k.command.Secrets = secret.References(k.env)
	k.command.Command.Script = egress.Script(*k.command.Command, c.root)
	return k
}

func (k *execKind) target() (trust.Target, bool) { return k.command, true }

func (k *execKind) bind(tr trust.Trust, deps Deps) registry.Invoker {
	return &execInvoker{k, tr, deps}
}

type execInvoker struct {
	*execKind
	trust trust.Trust
	deps  Deps
}

func (x *execInvoker) Invoke(ctx context.Context, call registry.Invocation) (*registry.Result, error) {
	key, write, err := keyOf(call)
	if err != nil {
		return nil, err
	}
	argv, err := x.argv.expand(call.Args)
	if err != nil {
		return nil, err
	}
	out, err := egress.Run(ctx, x.trust, x.command, egress.Command{
		Root: x.root, Filled: argv, Env: x.env, Owner: "tool " + x.tool, Homes: x.deps.Homes, Grace: grace, Digests: x.deps.Digests,
		Key: key, Finish: write,
	}, x.input(call.Args), x.limit)
	switch {
	case ctx.Err() != nil && (err != nil || !write):
		return nil, ended(ctx, err)
	case errors.Is(err, syscall.E2BIG):
		return nil, nothingRan(registry.InvalidArguments, "the arguments are too long for one command line; give shorter ones", err)
	case err != nil:
		return nil, &registry.Error{Code: registry.BindingFailed, Msg: "the tool's command could not be run; the operator's log says why", Err: err, Unsent: unsent(err)}
	case out.TooLarge && !write:
		return nil, askLess("the command's output", x.limit)
	}
	mask := secret.MaskerFor(x.env, x.root)
	stdout := mask.Replace(string(out.Stdout))
	switch {
	case !out.Exit.Success():
		status := "the command ended with " + out.Exit.String()
		if x.command.Command.Dir == "" { // mostly why a command that works in a shell fails here
			status += ", in a private directory (its binding has no cwd)"
		}
		if stderr := strings.TrimSpace(plain(mask.Replace(out.Stderr))); stderr != "" {
			status += ":\n" + tail(stderr)
		}
		r := textResult(true, status, tail(plain(stdout)))
		r.Unclear = out.Exit.Signal != "" // whoever sent the signal, the progress of the command is unknown
		return r, nil
	case out.TooLarge:
		return nil, hidden(registry.OutputTooLarge, registry.OutcomeSucceeded, tooLarge("the command's output", x.limit))
	}
	return outputResult(stdout, "the command's output", x.stdout, x.raw, write)
}

// allArguments is the stdin of a command that reads all arguments as one JSON object. It is no argument's name.
const allArguments = "{}"

// stdin reads what is sent to standard input: empty for nothing, allArguments, or the name of one argument.
func (c *check) stdin(field, declared string) string {
	switch declared {
	case "none":
		return ""
	case "json":
		return allArguments
	}
	e := parseElement(declared, c.declared)
	if len(e) != 1 || e[0].arg == "" || e[0].mark != 0 {
		c.errorf(problem.BadBinding, field, `%q is not one of none, json, or {name} for one argument as it is`, declared)
		return ""
	}
	if f, ok := c.argument(field, e[0].arg); ok && placeholder.NotScalar(f) != "" {
		c.errorf(problem.BadPlaceholder, field, `argument %q can be %s, which is not a text; use string, int, number or bool, or stdin: "json"`, e[0].arg, placeholder.NotScalar(f))
	}
	return e[0].arg
}

// input returns what a call writes to standard input; nothing for an argument that is left out.
func (x *execInvoker) input(args contract.Args) []byte {
	switch x.stdin {
	case "":
		return nil
	case allArguments:
		return args.JSON()
	}
	v, _ := args.Lookup(x.stdin)
	text, _ := placeholder.Text(v)
	return []byte(text)
}

func (x *execInvoker) Plan(args contract.Args) (registry.Plan, error) {
	argv, err := x.argv.expand(args)
	if err != nil {
		return registry.Plan{}, err
	}
	plan := registry.Plan{
		Kind:  "exec",
		Argv:  append([]string{x.command.Command.Path}, egress.Argv(*x.command.Command, argv)...),
		Stdin: string(x.input(args)),
	}
	if cwd := x.command.Command.Dir; cwd != "" {
		plan.Dir = egress.Dir(cwd, x.root)
	}
	for _, v := range egress.Variables(x.trust, x.command) {
		switch v.From {
		case egress.FromDaemon:
			plan.Env = append(plan.Env, v.Name+"=***") // a passed-on variable may hold a secret, too
		case egress.FromDeclaration:
			plan.Env = append(plan.Env, v.Name+"="+x.env[v.Name].Masked())
		case egress.FromEntry:
			plan.Env = append(plan.Env, v.Name+"="+v.Value)
		}
	}
	if x.write {
		plan.Env = append(plan.Env, trust.KeyVariable+"="+someKey)
	}
	return plan, nil
}
