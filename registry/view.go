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

// View is what one branch sees of a registry. A tool is in it exactly when a call of it is not answered as
// unknown.
type View struct {
	branch  Branch
	entries []*Entry
	index   map[string]*Entry
	digest  string
	all     *Registry
}

// NewView makes the view of a branch: what the branch selects and doesn't hide, what can be reached, and of
// that what visible leaves. visible is called in the order of names, from one goroutine.
func NewView(r *Registry, b Branch, visible func(*Entry) bool) *View {
	v := &View{branch: b.clone(), index: make(map[string]*Entry, len(r.entries)), all: r}
	sum := sha256.New()
	for _, e := range r.entries {
		if e.bound.Hidden != "" || !b.Admits(e.tool) || !visible(e) {
			continue
		}
		if to, ok := b.Strictness[e.tool.Name]; ok {
			stricter, err := e.tighten(to)
			if err != nil {
				continue // New has refused such a branch; of one that it never saw, the tool stays hidden
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

// With is the view with further tools, which are in no registry, in their place by name.
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

// tighten is the tool with a stricter rule for its keys: what is listed, what is checked and what the tool is
// said to declare are the stricter ones.
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
	stricter.listed, err = stricter.shown()
	return &stricter, err
}

// contradictions are what a branch says of the strictness of tools that can't be: a rule that is not stricter
// than the tool's, or one that asks for every argument of a tool that lets some be left out.
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
			continue // its own problem says why
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

// Branch is a copy of the branch's declaration.
func (v *View) Branch() Branch { return v.branch.clone() }

// Declared is the branch's declaration itself, for reading on hot paths: the caller must not change what it
// points to.
func (v *View) Declared() *Branch { return &v.branch }

// Digest names what a client is shown: two views with equal digests list the same.
func (v *View) Digest() string { return v.digest }

// Len is the number of visible tools.
func (v *View) Len() int { return len(v.entries) }

// Entries are the visible tools in the order of their names.
func (v *View) Entries() []*Entry { return slices.Clone(v.entries) }

// Names are the visible tools' names in order.
func (v *View) Names() []string {
	names := make([]string, len(v.entries))
	for i, e := range v.entries {
		names[i] = e.tool.Name
	}
	return names
}

// Lookup returns the visible tool of that name. Its error says the same for a hidden tool and for one that
// never was.
func (v *View) Lookup(name string) (*Entry, *Error) {
	if e, ok := v.index[name]; ok {
		return e, nil
	}
	return nil, unknownTool(name, v.Nearest(name), v.Names())
}

// Find is the tool of that name, nil where the view has none.
func (v *View) Find(name string) *Entry { return v.index[name] }

// Hides reports whether there is a tool of that name which is not visible. It is for the operator: no client
// may know.
func (v *View) Hides(name string) bool {
	_, visible := v.index[name]
	_, known := v.all.index[name]
	return known && !visible
}

// Select returns the chosen visible tools. The error is an UnknownError, which has every name that the branch
// doesn't see, hidden or not there.
func (v *View) Select(s Selection) ([]*Entry, error) { return s.of(v.entries, v.index) }

// Admits reports whether the branch's select and hide leave the tool.
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

// MatchName reports whether a name matches a pattern in which * stands for any run of characters, and
// everything else for itself. The loader warns of patterns by this function too, so that what it says is what
// a branch shows.
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
