// Package binding executes tools. Compile checks a declared binding against the tool's contract, once, and
// reports every problem at its position; Bind joins it with the trust that the policy granted and makes the
// registry.Invoker that runs calls.
//
// There is one kind per file: exec (a command, never a shell), http (one request), mcp (a tool of an upstream
// server), jq (a program over the arguments) and func (a Go function of the program). Arguments have passed the contract before they reach a
// binding. Where the contract is not enough (a command line can't carry a NUL byte, a path segment can't be
// ..), a call is refused as invalid_arguments before anything runs. What a model can act on, such as an exit
// status or an HTTP status, is a result with isError; a *registry.Error means that there is no result at all.
//
// Each end of a run records what is known of it (registry.OutcomeOf). A run with an attempt is sent at most
// once, with the attempt's idempotency key; docs/bindings.md has the table of outcomes and the form of the
// key.
package binding

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/catalogd/catalogd/decision/trust"
	"github.com/catalogd/catalogd/internal/egress"
	"github.com/catalogd/catalogd/internal/intent/attempt"
	"github.com/catalogd/catalogd/internal/jq"
	"github.com/catalogd/catalogd/internal/placeholder"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// Deps is what bindings need of other parts of the daemon.
type Deps struct {
	// Upstream calls a tool of an upstream MCP server; the mcp binding needs it. The tool's progress and log
	// messages go to the listener.
	Upstream func(ctx context.Context, server, tool string, args json.RawMessage, to registry.Listener) (*registry.Result, error)
	// UpstreamWrite is Upstream for a tool with a side effect: it sends the call at most once, with the
	// attempt's key.
	UpstreamWrite func(ctx context.Context, server, tool string, args json.RawMessage, a attempt.Attempt, to registry.Listener) (*registry.Result, error)
	// JQ runs jq programs; nil runs them in this process.
	JQ jq.Runner
	// Redirect decides whether a redirect to another path of the same service is followed; nil follows none.
	Redirect func(ctx context.Context, to trust.Target) error
	// Digests remembers the digests of pinned commands; nil reads a pinned command at each call.
	Digests *egress.Digests
	// Homes has the private directories of commands; nil makes one for each call.
	Homes *egress.Homes
	// Func is the Go function of a func binding.
	Func *registry.Function
}

// Compiled is a binding that has passed every check that needs no call. It is immutable and safe for
// concurrent use.
type Compiled struct {
	kind    kind
	missing string
}

// kind is one way to execute a tool.
type kind interface {
	// target is what it connects to or runs; false when there is none.
	target() (trust.Target, bool)
	bind(tr trust.Trust, deps Deps) registry.Invoker
}

var kinds = map[string]func(c *check) kind{
	"exec": newExec,
	"http": newHTTP,
	"mcp":  newMCP,
	"jq":   newJQ,
	"func": newFunc,
}

// Compile checks the binding of a tool. root is the catalog's directory, to which relative paths refer; empty
// for a catalog that has none. Compiled is nil when a problem is an error.
func Compile(t registry.Tool, root string) (*Compiled, problem.List) {
	c := &check{tool: t, root: root}
	make, ok := kinds[t.Binding.Kind()]
	if !ok {
		c.errorf(problem.BadBinding, "binding", "the binding has no kind; give it exactly one of exec, http, mcp, jq, func")
		return nil, c.problems
	}
	if n := declared(t.Binding); n > 1 {
		c.errorf(problem.BadBinding, "binding", "the binding has %d kinds; leave exactly one of exec, http, mcp, jq, func", n)
		return nil, c.problems
	}
	k := make(c)
	if c.problems.HasErrors() {
		return nil, c.problems
	}
	return &Compiled{kind: k, missing: c.missing}, c.problems
}

func declared(b registry.Binding) (n int) {
	for _, set := range []bool{b.Exec != nil, b.HTTP != nil, b.MCP != nil, b.JQ != nil, b.Func != ""} {
		if set {
			n++
		}
	}
	return n
}

// Missing says that the tool's command can't be run on this machine, so that it can't be bound; empty if it can.
func (c *Compiled) Missing() string { return c.missing }

// Target returns the target of the connect decision; false for jq and func, which have none, and for
// mcp, whose server has its own connect decision.
func (c *Compiled) Target() (trust.Target, bool) { return c.kind.target() }

// Check returns nil when tr is enough for Target, and else an error with what is missing, such as
// interpreter: true. Without it a tool with too little trust would be listed and fail at every call. inTree
// reports that the executable is in the catalog's tree.
func (c *Compiled) Check(tr trust.Trust, inTree bool) error {
	target, outward := c.Target()
	if !outward {
		return nil
	}
	return egress.Check(tr, target, inTree)
}

// Bind makes the invoker. tr is the trust granted for Target; the zero Trust where there is none. A Trust
// that does not cover the target makes an invoker that fails every call.
func (c *Compiled) Bind(tr trust.Trust, deps Deps) registry.Invoker { return c.kind.bind(tr, deps) }

// check collects the problems of one tool's binding.
type check struct {
	tool     registry.Tool
	root     string
	problems problem.List
	missing  string // Compiled.Missing
}

// declared reports whether the tool has an argument of that name.
func (c *check) declared(name string) bool { _, ok := c.tool.Args.Field(name); return ok }

// errorf reports an error at the field, such as binding.exec.argv.1.
func (c *check) errorf(code problem.Code, field, format string, args ...any) {
	c.problems.Errorf(code, c.tool.At(field), c.path(field), format, args...)
}

func (c *check) warnf(code problem.Code, field, format string, args ...any) {
	c.problems.Warnf(code, c.tool.At(field), c.path(field), format, args...)
}

func (c *check) path(field string) string { return "tools." + c.tool.Name + "." + field }

// oneOf reports a word that is not in the allowed list.
func (c *check) oneOf(field, word string, allowed ...string) {
	if !slices.Contains(allowed, word) {
		c.errorf(problem.BadBinding, field, "%q is not one of %s", word, strings.Join(allowed, ", "))
	}
}

// output reports a kind of output that is none of those allowed, and one that post would undo.
func (c *check) output(field, kind string, allowed ...string) {
	c.oneOf(field, kind, allowed...)
	if kind == "content" && c.tool.Post != "" {
		c.errorf(problem.BadBinding, field, `post makes a result of its own, without the blocks of this one; take post away, or declare "json"`)
	}
}

// raw reports an option that would have no effect: JSON has no literal control characters.
func (c *check) raw(field string, raw, json bool) bool {
	if raw && json {
		c.errorf(problem.BadBinding, field, "raw is for text; take it away, for JSON holds control characters only as escapes")
	}
	return raw
}

// unused warns about required or optional arguments that nothing uses, not even the idempotency key. It warns
// of none where the binding has an error, such as a misspelt placeholder, which may be the cause.
func (c *check) unused(used map[string]bool, fix string) {
	if c.problems.HasErrors() {
		return
	}
	key := placeholder.Parse(c.tool.IdempotencyKey, c.declared)
	for _, f := range c.tool.Args.Fields {
		if !used[f.Name] && !slices.Contains(key, placeholder.Part{Arg: f.Name}) {
			c.warnf(problem.BadPlaceholder, "args."+f.Name, "argument %q goes nowhere: the binding does not use it; %s", f.Name, fix)
		}
	}
}

// maxOutput returns the declared cap, or the default.
func (c *check) maxOutput(field string, declared int64) int64 {
	if declared < 0 {
		c.errorf(problem.BadBinding, field, "maxOutput is %d; it is a number of bytes above 0", declared)
	}
	if declared == 0 {
		return defaultMaxOutput
	}
	return declared
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
