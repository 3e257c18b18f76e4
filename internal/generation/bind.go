package generation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/decision/trust"
	"github.com/catalogd/catalogd/internal/binding"
	"github.com/catalogd/catalogd/internal/jq"
	"github.com/catalogd/catalogd/invoke"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// compiled is what depends on a tool's declaration alone: its checked binding and programs.
type compiled struct {
	binding   *binding.Compiled
	target    string // digest of the binding's target; empty without one
	pre, post registry.Transform
}

// command returns the path of the command of an exec tool; empty for the others.
func (c compiled) command() string {
	if target, ok := c.binding.Target(); ok && target.Kind == trust.Exec {
		return target.Command.Path
	}
	return ""
}

// bind is the registry's Bind: it checks a tool's binding and programs, and requests the connect decision for
// its target.
func (a *assembly) bind(t registry.Tool) (_ registry.Bound, problems problem.List) {
	defer func() {
		a.checking.Done()
		if p := recover(); p != nil { // runs on a goroutine of the registry
			problems = a.panicked(t.Pos, "tools."+t.Name, p)
		}
	}()
	if invoke.Builtin(t.Name) {
		return a.reserved(t)
	}
	c, problems := a.compileTool(t)
	if problems.HasErrors() || a.engine == nil {
		return registry.Bound{Hidden: "its declaration is not valid"}, problems
	}
	if why := c.binding.Missing(); why != "" {
		target, _ := c.binding.Target()
		a.lacks(decision.Subject{Kind: "tool", Name: t.Name, Effect: string(t.Effect), Pos: t.Pos}, target, why)
		return registry.Bound{Hidden: why}, problems
	}
	bound := registry.Bound{Pre: c.pre, Post: c.post}
	bound.Before, bound.After = registry.BindProcessors(a.Processors, t.Name)
	function := a.Functions.By[t.Binding.Func]
	if t.Binding.Func != "" && function == nil {
		bound.Hidden = absent
		return bound, problems
	}
	var granted trust.Trust
	asked := decision.ConnectInput{Subject: decision.Subject{Kind: "tool", Name: t.Name, Effect: string(t.Effect), Pos: t.Pos}}
	if target, outward := c.binding.Target(); outward {
		asked = a.question(asked.Subject, target)
		answer := a.connect(asked, c.target)
		if answer.decision.Code == decision.PolicyTimeout {
			bound.Hidden = notDecided
			return bound, problems
		}
		if why := unreachable(answer, func() error { return c.binding.Check(answer.trust, asked.Observed.InTree) }); why != "" {
			bound.Hidden = "what it reaches is " + notTrusted + why
			problems.Warnf(problem.UntrustedBinding, t.At("binding"), "tools."+t.Name+".binding",
				"tool %q is hidden, because what it reaches is not trusted: %s; %s", t.Name, why, proposeCommand(t.Name))
			return bound, problems
		}
		granted = answer.trust
		bound.Trust, bound.Reach = granted.Name(), granted.Digest()
	}
	if t.Binding.MCP != nil {
		if why, hidden := a.missing[t.Binding.MCP.Server]; hidden {
			bound.Hidden = "its server can't be started: " + why
			return bound, problems
		}
		if why, hidden := a.untrusted[t.Binding.MCP.Server]; hidden {
			bound.Hidden = fmt.Sprintf("its server %q is %s%s", t.Binding.MCP.Server, notTrusted, why)
			return bound, problems
		}
		if why, waits := a.quarantined[remote{t.Binding.MCP.Server, t.Binding.MCP.Tool}]; waits {
			bound.Hidden = "it is quarantined: " + why
			return bound, problems
		}
		of := a.g.servers[t.Binding.MCP.Server]
		bound.Trust, bound.Reach = of.Name(), of.Digest()
	}
	bound.Invoker = c.binding.Bind(granted, binding.Deps{
		Upstream: a.g.upstream.Call, UpstreamWrite: a.g.upstream.Execute, Redirect: redirect(a.g.engine, asked, granted), Digests: &a.observer.Digests, Homes: a.Homes, JQ: a.JQ, Func: function,
	})
	return bound, problems
}

// reserved refuses a tool with the name of a built-in one: a declared tool is an error, that of a server is
// hidden.
func (a *assembly) reserved(t registry.Tool) (registry.Bound, problem.List) {
	var l problem.List
	const why = "the name is that of a tool that catalogd has itself"
	if t.Annotations == nil && t.Binding.MCP == nil {
		l.Errorf(problem.ReservedName, t.Pos, "tools."+t.Name, "tool %q can't be declared: %s; choose another", t.Name, why)
	} else {
		l.Warnf(problem.ReservedName, t.Pos, "tools."+t.Name, "tool %q is hidden: %s; give it another (rename)", t.Name, why)
	}
	return registry.Bound{Hidden: why}, l
}

// reservedRenames refuses branches that show a tool under the name of a built-in one.
func reservedRenames(branches []registry.Branch) (problems problem.List) {
	for _, b := range branches {
		for _, tool := range slices.Sorted(maps.Keys(b.Narrow)) {
			if name := b.Narrow[tool].Name; invoke.Builtin(name) {
				field := "narrow." + tool + ".name"
				problems.Errorf(problem.ReservedName, b.At(field), "branches."+b.Name+"."+field,
					"tool %q can't be shown as %q: the name is that of a tool that catalogd has itself; choose another", tool, name)
			}
		}
	}
	return problems
}

// compileTool checks a tool's binding and programs, once per content of the declaration.
func (a *assembly) compileTool(t registry.Tool) (compiled, problem.List) {
	path := ""
	if t.Binding.Exec != nil {
		path = a.command(t.Binding.Exec.Command)
	}
	if a.prev != nil {
		if c, ok := a.prev.built[t.Digest]; ok && c.command() == path {
			a.keep(t, c)
			return c, nil
		}
	}
	var c compiled
	b, problems := binding.Compile(t, a.Root)
	c.binding = b
	if b != nil {
		if target, outward := b.Target(); outward {
			c.target = target.Digest()
		}
	}
	for _, p := range []struct {
		field, source string
		into          *registry.Transform
	}{{"pre", t.Pre, &c.pre}, {"post", t.Post, &c.post}} {
		if p.source == "" {
			continue
		}
		if err := jq.Check(p.source); err != nil {
			problems.Errorf(problem.BadJQ, t.At(p.field), "tools."+t.Name+"."+p.field, "%v", err)
			continue
		}
		*p.into = a.transform(p.source)
	}
	if len(problems) == 0 {
		a.keep(t, c)
	}
	return c, problems
}

// transform makes a Transform of a program that compiles.
func (a *assembly) transform(source string) registry.Transform {
	runner := a.JQ
	if runner == nil {
		runner = new(jq.InProcess)
	}
	return func(ctx context.Context, in json.RawMessage, limit int) (json.RawMessage, error) {
		out, err := runner.Run(ctx, source, in, limit)
		switch {
		case errors.As(err, new(jq.TooLargeError)):
			return nil, &registry.Error{Code: registry.OutputTooLarge, Msg: err.Error()}
		case errors.As(err, new(jq.UnavailableError)):
			return nil, &registry.Error{Code: registry.Unavailable, Msg: "the jq program could not be run; try again", Err: err}
		case errors.As(err, new(jq.StoppedError)) || errors.Is(err, jq.ErrNoOutput):
			return nil, &registry.Error{Code: registry.BindingFailed, Msg: err.Error()}
		}
		return out, err
	}
}

// warmJQ prepares for calls of tools with jq programs, if there are any.
func (a *assembly) warmJQ(tools []registry.Tool) {
	if a.Warm && a.JQ != nil && slices.ContainsFunc(tools, func(t registry.Tool) bool {
		http := t.Binding.HTTP
		return t.Binding.JQ != nil || t.Pre != "" || t.Post != "" || http != nil && (http.Select != "" || http.Error != "" || http.Pages != nil)
	}) {
		a.JQ.Warm()
	}
}

func (a *assembly) keep(t registry.Tool, c compiled) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.g.built[t.Digest] = c
}
