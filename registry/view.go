package registry

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/problem"
)

// View has the tools of a registry that one branch shows. Calls of all other tools are answered as unknown.
type View struct {
	branch  Branch
	entries []*Entry
	index   map[string]*Entry
	digest  string
	all     *Registry
}

// NewView makes the view of a branch: the tools that the branch admits, that are not Hidden, and for which
// visible returns true. visible is called in the order of names, from one goroutine.
func NewView(r *Registry, b Branch, visible func(*Entry) bool) *View {
	v := &View{branch: b.clone(), index: make(map[string]*Entry, len(r.entries)), all: r}
	sum := sha256.New()
	for _, e := range r.entries {
		if e.bound.Hidden != "" || !b.Admits(e.tool) || !visible(e) {
			continue
		}
		if _, narrowed := b.Narrow[e.tool.Name]; narrowed {
			continue // no declaration can say so yet, and a tool is never shown wider than its branch says
		}
		if to, ok := b.Strictness[e.tool.Name]; ok {
			stricter, err := e.tighten(to)
			if err != nil {
				continue // New refuses such a branch; if the branch is not the registry's, the tool is hidden
			}
			e = stricter
		}
		v.entries = append(v.entries, e)
		v.index[e.tool.Name] = e
		sum.Write([]byte(e.listed))
	}
	v.digest = hex.EncodeToString(sum.Sum(nil))
	return v
}

// With returns a copy of the view with further tools that are not in the registry, sorted by name.
func (v *View) With(more ...*Entry) *View {
	next := *v
	next.index = maps.Clone(v.index)
	sum := sha256.New()
	sum.Write([]byte(v.digest))
	for _, e := range more {
		next.index[e.tool.Name] = e
		sum.Write([]byte(e.listed))
	}
	next.entries = slices.SortedFunc(maps.Values(next.index), func(a, b *Entry) int { return cmp.Compare(a.tool.Name, b.tool.Name) })
	next.digest = hex.EncodeToString(sum.Sum(nil))
	return &next
}

// tighten returns a copy of the entry with a stricter rule for keys in its listed schema, its contract and
// its declaration.
func (e *Entry) tighten(to contract.Strictness) (*Entry, error) {
	args, err := e.tool.Args.Tighten(to)
	if err != nil {
		return nil, err
	}
	c, err := contract.New(args, e.rest.of(args))
	if err != nil {
		return nil, err
	}
	stricter := *e
	stricter.contract = c
	stricter.tool = e.tool.clone()
	stricter.tool.Args = c.Spec()
	stricter.listed, err = stricter.listedDigest()
	return &stricter, err
}

// contradictions returns problems for impossible strictness rules of a branch: one that is not stricter than
// the tool's, or one that requires all arguments of a tool with optional arguments.
func (r *Registry) contradictions(b Branch) (problems problem.List) {
	for _, name := range slices.Sorted(maps.Keys(b.Strictness)) {
		at, path := b.At("strictness."+name), "branches."+b.Name+".strictness."+name
		e, ok := r.index[name]
		if !ok {
			message := "there is no tool " + name + "; declare it, or fix the name"
			if near := Nearest(name, slices.Sorted(maps.Keys(r.index))); near != nil {
				message = "there is no tool " + name + "; did you mean " + near[0] + "?"
			}
			problems.Errorf(problem.UnknownTool, at, path, "%s", message)
			continue
		}
		if e.contract == nil {
			continue // New reports why
		}
		if _, err := e.tighten(b.Strictness[name]); err != nil {
			problems = append(problems, problem.Problem{
				Code: problem.ContradictoryField, Severity: problem.Error, Position: at, Path: path,
				Message: fmt.Sprintf("%v; a branch can only ask for more than tool %q does: leave it out, or change the tool", err, name),
				Also:    []problem.Position{e.tool.At("strictness")},
			})
		}
	}
	return problems
}

// Branch returns a copy of the branch's declaration.
func (v *View) Branch() Branch { return v.branch.clone() }

// Declared returns the branch's declaration without copying it, for hot paths. The caller must not change it.
func (v *View) Declared() *Branch { return &v.branch }

// Digest returns a digest of the list that clients see.
func (v *View) Digest() string { return v.digest }

// Len returns the number of visible tools.
func (v *View) Len() int { return len(v.entries) }

// Entries returns the visible tools in the order of their names.
func (v *View) Entries() []*Entry { return slices.Clone(v.entries) }

// Names returns the names of the visible tools in order.
func (v *View) Names() []string {
	names := make([]string, len(v.entries))
	for i, e := range v.entries {
		names[i] = e.tool.Name
	}
	return names
}

// Lookup returns the visible tool of that name. The error for a hidden tool is the same as for one that does
// not exist.
func (v *View) Lookup(name string) (*Entry, *Error) {
	if e, ok := v.index[name]; ok {
		return e, nil
	}
	return nil, unknownTool(name, v.Nearest(name), v.Names())
}

// Find returns the visible tool of that name; nil if there is none.
func (v *View) Find(name string) *Entry { return v.index[name] }

// Hides reports whether the registry has a tool of that name that the view hides. The answer is for the
// operator; clients must not learn it.
func (v *View) Hides(name string) bool {
	_, visible := v.index[name]
	_, known := v.all.index[name]
	return known && !visible
}

// Select returns the selected visible tools. The error is an *UnknownError with all names that are not
// visible, whether hidden or missing.
func (v *View) Select(s Selection) ([]*Entry, error) { return s.of(v.entries, v.index) }

// Admits reports whether the branch selects the tool and does not hide it.
func (b Branch) Admits(t Tool) bool {
	if b.Select != nil && !b.Select.Matches(t) {
		return false
	}
	return b.Hide == nil || !b.Hide.Matches(t)
}

// Matches reports whether any of the selector's lists matches the tool.
func (s Selector) Matches(t Tool) bool {
	for _, pattern := range s.Names {
		if MatchName(pattern, t.Name) {
			return true
		}
	}
	for _, tag := range s.Tags {
		if slices.Contains(t.Tags, tag) {
			return true
		}
	}
	return t.Binding.MCP != nil && slices.Contains(s.Servers, t.Binding.MCP.Server)
}

// MatchName reports whether a name matches a pattern. In a pattern, * matches any sequence of characters, and
// every other character itself.
func MatchName(pattern, name string) bool {
	parts := strings.Split(pattern, "*")
	rest, ok := strings.CutPrefix(name, parts[0])
	if !ok || len(parts) == 1 {
		return ok && rest == ""
	}
	last := len(parts) - 1
	for _, part := range parts[1:last] {
		if _, rest, ok = strings.Cut(rest, part); !ok {
			return false
		}
	}
	return strings.HasSuffix(rest, parts[last])
}
