package registry

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strings"
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
	shared := b.sharedNames(r) // New refuses these
	for _, e := range r.entries {
		if e.bound.Hidden != "" || !b.Admits(e.tool) || !visible(e) || shared[strings.ToLower(b.Shown(e.tool.Name))] {
			continue
		}
		e, err := e.in(b, r.forms)
		if err != nil {
			continue // New refuses such a branch; if the branch is not the registry's, the tool is hidden
		}
		v.entries = append(v.entries, e)
		v.index[e.Name()] = e
	}
	slices.SortFunc(v.entries, byName)
	sum := sha256.New()
	for _, e := range v.entries {
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
		next.index[e.Name()] = e
		sum.Write([]byte(e.listed))
	}
	next.entries = slices.SortedFunc(maps.Values(next.index), byName)
	next.digest = hex.EncodeToString(sum.Sum(nil))
	return &next
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

// Names returns the names by which the branch shows its tools, in order.
func (v *View) Names() []string {
	names := make([]string, len(v.entries))
	for i, e := range v.entries {
		names[i] = e.Name()
	}
	return names
}

// Catalog returns the names of the visible tools in the catalog, in order.
func (v *View) Catalog() []string {
	names := make([]string, len(v.entries))
	for i, e := range v.entries {
		names[i] = e.tool.Name
	}
	slices.Sort(names)
	return names
}

func byName(a, b *Entry) int { return cmp.Compare(a.Name(), b.Name()) }

// Lookup returns the tool that the branch shows under that name. The error for a hidden tool is the same as for one that does
// not exist.
func (v *View) Lookup(name string) (*Entry, *Error) {
	if e, ok := v.index[name]; ok {
		return e, nil
	}
	return nil, unknownTool(name, v.Nearest(name), v.Names())
}

// Find returns the tool that the branch shows under that name; nil if there is none.
func (v *View) Find(name string) *Entry { return v.index[name] }

// Declares returns the visible tool that has that name in the catalog; nil if there is none.
func (v *View) Declares(name string) *Entry {
	if e := v.index[v.branch.Shown(name)]; e != nil && e.tool.Name == name {
		return e
	}
	return nil
}

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

// Address returns the name under which the branch is addressed: that of the conversation branch, or else of the
// declared one.
func (b *Branch) Address() string { return cmp.Or(b.Session, b.Name) }

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
