// Package registry is the domain: the declared tools, servers and branches, and what a call of a tool is.
//
// A Build is plain data that a catalog compiles to. New makes a Registry of it: every contract compiled and every
// binding built, so that a tool in a registry is callable; else it says everything that is wrong. A View is what one
// branch sees of a registry. Registry, Entry and View are immutable and safe for concurrent use; a change makes new
// ones, and what they hand out are copies.
package registry

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/internal/placeholder"
	"github.com/catalogd/catalogd/problem"
)

// Transform runs a jq program over one JSON value. The output is one, too: compact, and of at most limit
// bytes, counted without the quotes and escapes if it is a string. An *Error of code OutputTooLarge says that
// it would be larger, one of Unavailable that the program could not be run; any other error is ctx's or the
// program's own.
type Transform func(ctx context.Context, in json.RawMessage, limit int) (json.RawMessage, error)

// Bound is how a tool runs.
type Bound struct {
	Invoker Invoker
	// Pre and Post are nil where the tool declares none.
	Pre, Post Transform
	// Trust is the name of the trust entry through which the tool reaches out; empty where it reaches
	// nothing.
	Trust string
	// Reach names what the tool reaches and on which terms; empty where it reaches nothing.
	Reach string
	// Hidden says why the tool can't be offered to anyone, such as a server that is not trusted; Invoker is
	// then nil.
	Hidden string
}

// Bind builds how a tool runs, and says everything that is wrong with its binding. It is called from several
// goroutines at once.
type Bind func(Tool) (Bound, problem.List)

// Rest gives the check of what a contract's schema can't say.
type Rest func(r contract.Remainder, open bool) contract.Rest

// Entry is a tool of a registry: declared, its contract compiled, its binding built.
type Entry struct {
	tool     Tool
	contract *contract.Contract
	result   *contract.Contract
	bound    Bound
	// key is the template of the idempotency key, nil where none is declared; output is the output schema.
	key    placeholder.Template
	output json.RawMessage
	listed string
	rest   Rest // for the same tool with stricter keys
}

// Name is the tool's name.
func (e *Entry) Name() string { return e.tool.Name }

// Tool is a copy of the declaration.
func (e *Entry) Tool() Tool { return e.tool.clone() }

// Effect is the tool's effect.
func (e *Entry) Effect() Effect { return e.tool.Effect }

// Declared is the declaration itself, for reading on hot paths: the caller must not change what it points to.
func (e *Entry) Declared() *Tool { return &e.tool }

// Contract is what the tool accepts.
func (e *Entry) Contract() *contract.Contract { return e.contract }

// Result is what the tool's structured result must be; nil where nothing is declared.
func (e *Entry) Result() *contract.Contract { return e.result }

// Output is the output schema of the tool that tools/list has: one that every structured content of an answer
// fits, nil where nothing is promised. Of a write tool it is Tool.Output or HandleSchema, since a caller may
// be handed either. The caller must not change it.
func (e *Entry) Output() json.RawMessage { return e.output }

// Pre and Post are the tool's programs over its arguments and its result; nil where it declares none.
func (e *Entry) Pre() Transform  { return e.bound.Pre }
func (e *Entry) Post() Transform { return e.bound.Post }

// Trust is the name of the trust entry through which the tool reaches out; empty where it reaches nothing.
func (e *Entry) Trust() string { return e.bound.Trust }

// Server is the upstream server whose tool it is; empty for none.
func (e *Entry) Server() string {
	if m := e.tool.Binding.MCP; m != nil {
		return m.Server
	}
	return ""
}

// Hidden says why the tool can't be offered to anyone; empty where it can.
func (e *Entry) Hidden() string { return e.bound.Hidden }

// Listed names the content of what a client is shown of the tool, and nothing else: two entries with equal
// Listed look alike in a list.
func (e *Entry) Listed() string { return e.listed }

// Registry holds a catalog's tools, servers and branches by name.
type Registry struct {
	entries  []*Entry // by name
	index    map[string]*Entry
	servers  []Server
	branches []Branch
}

// New makes a registry: it compiles every contract and binds every tool, on all cores, and returns every
// problem. The registry is nil when one of them is an error. What is unchanged since prev (by the
// declaration's digest) is not compiled again; prev may be nil. bind is called for every tool, rest for every
// contract that is compiled and has a remainder; nil gives none.
func New(build *Build, bind Bind, rest Rest, prev *Registry) (*Registry, problem.List) {
	r := &Registry{
		entries:  make([]*Entry, len(build.Tools)),
		index:    make(map[string]*Entry, len(build.Tools)),
		servers:  slices.SortedFunc(slices.Values(build.Servers), func(a, b Server) int { return cmp.Compare(a.Name, b.Name) }),
		branches: slices.SortedFunc(slices.Values(build.Branches), func(a, b Branch) int { return cmp.Compare(a.Name, b.Name) }),
	}
	found := make([]problem.List, len(build.Tools))
	parallel(len(build.Tools), func(i int) {
		r.entries[i], found[i] = newEntry(build.Tools[i], bind, rest, prev)
	})
	problems := slices.Concat(found...)
	for _, e := range r.entries {
		if first, ok := r.index[e.tool.Name]; ok {
			problems = append(problems, duplicate(first.tool, e.tool))
			continue
		}
		r.index[e.tool.Name] = e
	}
	for _, b := range r.branches {
		problems = append(problems, r.contradictions(b)...)
	}
	if problems.HasErrors() {
		return nil, problems
	}
	slices.SortFunc(r.entries, func(a, b *Entry) int { return cmp.Compare(a.tool.Name, b.tool.Name) })
	return r, problems
}

func newEntry(t Tool, bind Bind, rest Rest, prev *Registry) (*Entry, problem.List) {
	e := &Entry{tool: t, rest: rest}
	var problems problem.List
	if old, ok := prev.Lookup(t.Name); ok && t.Digest != "" && old.tool.Digest == t.Digest {
		e.contract, e.result, e.key, e.output, e.listed = old.contract, old.result, old.key, old.output, old.listed
	} else {
		problems = e.compile(rest)
	}
	bound, more := bind(t)
	e.bound = bound
	return e, append(problems, more...)
}

func (rest Rest) of(s contract.Spec) contract.Rest {
	if rest == nil || s.Remainder == nil {
		return nil
	}
	return rest(*s.Remainder, s.Strictness == contract.Open)
}

func (e *Entry) compile(rest Rest) (problems problem.List) {
	t := e.tool
	var err error
	if e.contract, err = contract.New(t.Args, rest.of(t.Args)); err != nil {
		problems.Errorf(problem.UnsupportedConstr, t.At("args"), "tools."+t.Name+".args", "%v", err)
	}
	if t.Result != nil {
		if e.result, err = contract.New(*t.Result, rest.of(*t.Result)); err != nil {
			problems.Errorf(problem.UnsupportedConstr, t.At("result"), "tools."+t.Name+".result", "%v", err)
		}
	}
	problems = append(problems, e.compileWrite()...)
	if problems.HasErrors() {
		return problems // a schema that can't be read is said once
	}
	if e.output, err = t.told(); err != nil {
		problems.Errorf(problem.UnsupportedConstr, t.At("result"), "tools."+t.Name+".result", "%v", err)
	}
	if e.listed, err = e.shown(); err != nil {
		problems.Errorf(problem.UnsupportedConstr, t.Pos, "tools."+t.Name, "the derived schema is not valid JSON: %v", err)
	}
	return problems
}

// shown names the content of what a client is shown of the tool.
func (e *Entry) shown() (string, error) {
	t := &e.tool
	b, err := json.Marshal(struct {
		Name, Title, Description, Deprecated string
		Effect                               Effect
		Idempotent                           bool
		Args, Output                         json.RawMessage
		Annotations, Icons, Meta             json.RawMessage
	}{t.Name, t.Title, t.Description, t.Deprecated, t.Effect, t.Idempotent, t.Args.Schema, e.output, t.Annotations, t.Icons, t.Meta})
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:]), err
}

func duplicate(first, second Tool) problem.Problem {
	return problem.Problem{
		Code: problem.DuplicateName, Severity: problem.Error, Position: second.Pos, Path: "tools." + second.Name,
		Message: fmt.Sprintf("tool %q is declared twice; one tool has one place", second.Name),
		Also:    []problem.Position{first.Pos},
	}
}

// parallel calls f(0) to f(n-1) on all cores.
func parallel(n int, f func(int)) {
	var wg sync.WaitGroup
	next := make(chan int, n)
	for i := range n {
		next <- i
	}
	close(next)
	for range min(n, runtime.GOMAXPROCS(0)) {
		wg.Go(func() {
			for i := range next {
				f(i)
			}
		})
	}
	wg.Wait()
}

// Lookup returns the tool of that name. A nil Registry has none.
func (r *Registry) Lookup(name string) (*Entry, bool) {
	if r == nil {
		return nil, false
	}
	e, ok := r.index[name]
	return e, ok
}

// Len is the number of tools.
func (r *Registry) Len() int { return len(r.entries) }

// Entries are the tools in the order of their names.
func (r *Registry) Entries() []*Entry { return slices.Clone(r.entries) }

// Servers are copies of the declared servers in the order of their names.
func (r *Registry) Servers() []Server {
	out := make([]Server, len(r.servers))
	for i, s := range r.servers {
		out[i] = s.clone()
	}
	return out
}

// Branches are copies of the declared branches in the order of their names.
func (r *Registry) Branches() []Branch {
	out := make([]Branch, len(r.branches))
	for i, b := range r.branches {
		out[i] = b.clone()
	}
	return out
}

// Select returns copies of the chosen declarations. The error is an UnknownError, which has every unknown
// name.
func (r *Registry) Select(s Selection) ([]Tool, error) {
	entries, err := s.of(r.entries, r.index)
	if entries == nil || err != nil {
		return nil, err
	}
	out := make([]Tool, len(entries))
	for i, e := range entries {
		out[i] = e.Tool()
	}
	return out, nil
}

// ErrDuplicate is the kind of error that With returns for a name that is taken.
var ErrDuplicate = errors.New("duplicate tool")

// With returns a registry that has the tool too; r itself stays as it is. A name that is taken is an error
// unless update is set, which replaces the whole tool: nothing of the old one is merged. rest is as in New.
func (r *Registry) With(t Tool, bound Bound, rest Rest, update bool) (*Registry, error) {
	if _, ok := r.index[t.Name]; ok && !update {
		return nil, fmt.Errorf("%w %q; set update to replace it", ErrDuplicate, t.Name)
	}
	e := &Entry{tool: t.clone(), bound: bound}
	if err := e.compile(rest).Err(); err != nil {
		return nil, err
	}
	next := &Registry{index: maps.Clone(r.index), servers: r.servers, branches: r.branches}
	next.index[t.Name] = e
	next.entries = slices.SortedFunc(maps.Values(next.index), func(a, b *Entry) int { return cmp.Compare(a.tool.Name, b.tool.Name) })
	return next, nil
}
