// Package registry has the domain types: declared tools, servers and branches (Tool, Server, Branch), and
// calls (Call, Result, Error).
//
// A catalog compiles to a Build, which is plain data. New makes a Registry of it: it compiles all contracts
// and builds all bindings, so that every tool of a registry can be called, or returns all problems. A View
// has the tools of a registry that one branch shows. Registry, Entry and View are immutable and safe for
// concurrent use, and return copies unless a method says otherwise.
//
// Semantic versioning holds for this package (CONTRIBUTING.md).
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
	"reflect"
	"runtime"
	"slices"
	"sync"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/internal/cache"
	"github.com/catalogd/catalogd/internal/placeholder"
	"github.com/catalogd/catalogd/problem"
)

// Transform runs a jq program over one JSON value. The output is one, too: compact, and of at most limit
// bytes, counted without the quotes and escapes if it is a string. An *Error of code OutputTooLarge says that
// it would be larger, one of Unavailable that the program could not be run, one of BindingFailed that it was
// stopped or gave no output; any other error is ctx's or the program's own, which may quote the input.
type Transform func(ctx context.Context, in json.RawMessage, limit int) (json.RawMessage, error)

// Bound is the built binding of a tool.
type Bound struct {
	Invoker Invoker
	// Pre and Post are nil if the tool declares none.
	Pre, Post Transform
	// Before and After are Go functions of the program (Processor): Before after Pre, and After before Post.
	Before, After []Transform
	// Trust is the name of the trust entry that lets the tool reach its target; empty if it needs none.
	Trust string
	// Reach is a digest of the tool's target and the terms of its trust; empty if it needs none.
	Reach string
	// Hidden is the reason why the tool can't be shown to anyone, such as a server that is not trusted;
	// Invoker is then nil. It is empty for a tool that can be called.
	Hidden string
}

// Bind builds the binding of a tool and returns all problems with it. It is called concurrently.
type Bind func(Tool) (Bound, problem.List)

// Rest returns the check of the constraints that a contract's schema can't express.
type Rest func(r contract.Remainder, open bool) contract.Rest

// Entry is a tool of a registry: its declaration, its compiled contract and its binding.
type Entry struct {
	tool     Tool
	contract *contract.Contract
	result   *contract.Contract
	bound    Bound
	// key is the template of the idempotency key, nil if none is declared; output is the output schema.
	key    placeholder.Template
	output json.RawMessage
	listed string
	rest   Rest // kept for the forms that branches give it
	// name is the one that a branch shows, if it is not the tool's own; narrowing is what the branch says of
	// its arguments.
	name, narrowing string
}

// Name returns the name by which the tool is listed and called. Declared().Name is the one in the catalog; an
// entry of a View may have another.
func (e *Entry) Name() string { return cmp.Or(e.name, e.tool.Name) }

// Tool returns a copy of the declaration, under Name.
func (e *Entry) Tool() Tool {
	t := e.tool.clone()
	t.Name = e.Name()
	return t
}

// Effect returns the tool's effect.
func (e *Entry) Effect() Effect { return e.tool.Effect }

// Declared returns the declaration without copying it, for hot paths. The caller must not change it.
func (e *Entry) Declared() *Tool { return &e.tool }

// Contract returns the contract of the tool's arguments.
func (e *Entry) Contract() *contract.Contract { return e.contract }

// Result returns the contract of the tool's structured result; nil if none is declared.
func (e *Entry) Result() *contract.Contract { return e.result }

// Output returns the tool's output schema in tools/list, which the structured content of every result
// matches; nil if there is none. For a write tool it is Tool.Output or HandleSchema, because the caller may
// get a handle. The caller must not change it.
func (e *Entry) Output() json.RawMessage { return e.output }

// Pre and Post return the tool's jq programs for its arguments and its result; nil if it declares none.
func (e *Entry) Pre() Transform  { return e.bound.Pre }
func (e *Entry) Post() Transform { return e.bound.Post }

// Before and After return the program's processors of the tool, in the order in which they run.
func (e *Entry) Before() []Transform { return e.bound.Before }
func (e *Entry) After() []Transform  { return e.bound.After }

// Trust returns the name of the trust entry that lets the tool reach its target; empty if it needs none.
func (e *Entry) Trust() string { return e.bound.Trust }

// Server returns the name of the tool's upstream server; empty if it has none.
func (e *Entry) Server() string {
	if m := e.tool.Binding.MCP; m != nil {
		return m.Server
	}
	return ""
}

// Hidden returns the reason why the tool can't be shown to anyone; empty if it can.
func (e *Entry) Hidden() string { return e.bound.Hidden }

// Listed returns a digest of everything that a client sees of the tool in a list.
func (e *Entry) Listed() string { return e.listed }

// Registry holds a catalog's tools, servers and branches by name.
type Registry struct {
	entries  []*Entry // by name
	index    map[string]*Entry
	servers  []Server
	branches []Branch
	forms    *forms
}

// New compiles every contract and binds every tool, on all cores, and returns all problems. The registry is
// nil if one of them is an error. The registry has copies of what is in build. A tool whose declaration has the same digest in prev is not compiled again;
// prev may be nil. bind is called for every tool. rest is called for every compiled contract that has a
// remainder; if rest is nil, remainders are not checked.
func New(build *Build, bind Bind, rest Rest, prev *Registry) (*Registry, problem.List) {
	r := &Registry{
		entries: make([]*Entry, len(build.Tools)), index: make(map[string]*Entry, len(build.Tools)), forms: cache.New[string, form](maxForms),
	}
	if prev != nil {
		r.forms = prev.forms
	}
	for _, s := range build.Servers {
		r.servers = append(r.servers, s.clone())
	}
	for _, b := range build.Branches {
		r.branches = append(r.branches, b.clone())
	}
	slices.SortFunc(r.servers, func(a, b Server) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(r.branches, func(a, b Branch) int { return cmp.Compare(a.Name, b.Name) })
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
		problems = append(problems, r.Check(b)...)
	}
	if problems.HasErrors() {
		return nil, problems
	}
	slices.SortFunc(r.entries, func(a, b *Entry) int { return cmp.Compare(a.tool.Name, b.tool.Name) })
	return r, problems
}

func newEntry(t Tool, bind Bind, rest Rest, prev *Registry) (*Entry, problem.List) {
	e := &Entry{rest: rest}
	var problems problem.List
	if old, ok := prev.Lookup(t.Name); ok && t.Digest != "" && old.tool.Digest == t.Digest {
		e.tool = old.tool // the same content, which is a copy already
		e.tool.Pos, e.tool.Fields = t.Pos, maps.Clone(t.Fields)
		e.contract, e.result, e.key, e.output, e.listed = old.contract, old.result, old.key, old.output, old.listed
	} else {
		e.tool = t.clone()
		problems = e.compile(rest)
	}
	bound, more := bind(t)
	e.bound = bound
	if problems = append(problems, more...); !problems.HasErrors() {
		problems = append(problems, e.checkBound()...)
	}
	return e, problems
}

// NewEntry makes a tool that belongs to no registry, such as one that a view gets in addition (View.With). It copies
// t. rest is as in New.
func NewEntry(t Tool, bound Bound, rest Rest) (*Entry, error) {
	e := &Entry{tool: t.clone(), bound: bound, rest: rest}
	problems := e.checkBound()
	if t.Effect != Read && t.Effect != Write {
		problems.Errorf(problem.CUEValue, t.At("effect"), "tools."+Shown(t.Name)+".effect", "the effect %q is neither read nor write", string(t.Effect))
	}
	if !problems.HasErrors() {
		problems = append(problems, e.compile(rest)...)
	}
	if err := problems.Err(); err != nil {
		return nil, err
	}
	return e, nil
}

// checkBound returns problems for what no call could get along with: a name that is not valid, and a tool that can't be
// run although it is not hidden.
func (e *Entry) checkBound() (problems problem.List) {
	t := &e.tool
	switch {
	case !ValidName(t.Name):
		problems.Errorf(problem.BadName, t.Pos, "tools."+Shown(t.Name), "the name %q is not valid; use a letter or _, then up to 62 letters, digits, _ or -", Shown(t.Name))
	case e.bound.Hidden == "" && nothing(e.bound.Invoker) && t.Binding.Intent == "":
		problems.Errorf(problem.BadBinding, t.At("binding"), "tools."+t.Name+".binding", "the tool has nothing that runs it (a nil Invoker), and is not hidden")
	}
	return problems
}

// nothing reports whether an invoker is nil, or a nil pointer or function.
func nothing(i Invoker) bool {
	v := reflect.ValueOf(i)
	return i == nil || (v.Kind() == reflect.Pointer || v.Kind() == reflect.Func) && v.IsNil()
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
		return problems // the next steps would report the same schema again
	}
	if e.output, err = t.listedOutput(); err != nil {
		problems.Errorf(problem.UnsupportedConstr, t.At("result"), "tools."+t.Name+".result", "%v", err)
	}
	if e.listed, err = e.listedDigest(); err != nil {
		problems.Errorf(problem.UnsupportedConstr, t.Pos, "tools."+t.Name, "the derived schema is not valid JSON: %v", err)
	}
	return problems
}

// listedDigest computes Listed.
func (e *Entry) listedDigest() (string, error) {
	t := &e.tool
	b, err := json.Marshal(struct {
		Name, Title, Description, Deprecated string
		Effect                               Effect
		Idempotent                           bool
		Args, Output                         json.RawMessage
		Annotations, Icons, Meta             json.RawMessage
	}{e.Name(), t.Title, t.Description, t.Deprecated, t.Effect, t.Idempotent, t.Args.Schema, e.output, t.Annotations, t.Icons, t.Meta})
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:]), err
}

func duplicate(first, second Tool) problem.Problem {
	return problem.Problem{
		Code: problem.DuplicateName, Severity: problem.Error, Position: second.Pos, Path: "tools." + second.Name,
		Message: fmt.Sprintf("tool %q is declared twice; keep one declaration", second.Name),
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

// Lookup returns the tool of that name. A nil Registry has no tools.
func (r *Registry) Lookup(name string) (*Entry, bool) {
	if r == nil {
		return nil, false
	}
	e, ok := r.index[name]
	return e, ok
}

// Len returns the number of tools.
func (r *Registry) Len() int { return len(r.entries) }

// Entries returns the tools in the order of their names.
func (r *Registry) Entries() []*Entry { return slices.Clone(r.entries) }

// Servers returns copies of the declared servers in the order of their names.
func (r *Registry) Servers() []Server {
	out := make([]Server, len(r.servers))
	for i, s := range r.servers {
		out[i] = s.clone()
	}
	return out
}

// Branches returns copies of the declared branches in the order of their names.
func (r *Registry) Branches() []Branch {
	out := make([]Branch, len(r.branches))
	for i, b := range r.branches {
		out[i] = b.clone()
	}
	return out
}

// Select returns copies of the selected declarations. The error is an *UnknownError with all unknown names.
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

// ErrDuplicate is wrapped by the error of With for a name that exists.
var ErrDuplicate = errors.New("duplicate tool")

// With returns a copy of the registry with another tool. If a tool of that name exists, With returns an error
// that wraps ErrDuplicate, or with update replaces the whole tool. rest is as in New.
func (r *Registry) With(t Tool, bound Bound, rest Rest, update bool) (*Registry, error) {
	if _, ok := r.index[t.Name]; ok && !update {
		return nil, fmt.Errorf("%w %q; set update to replace it", ErrDuplicate, t.Name)
	}
	e, err := NewEntry(t, bound, rest)
	if err != nil {
		return nil, err
	}
	next := &Registry{index: maps.Clone(r.index), servers: r.servers, branches: r.branches, forms: r.forms}
	next.index[t.Name] = e
	next.entries = slices.SortedFunc(maps.Values(next.index), func(a, b *Entry) int { return cmp.Compare(a.tool.Name, b.tool.Name) })
	return next, nil
}
