// Package conversation stores conversation branches: branches that a client forks from a declared branch, or
// from another conversation branch of its own, for as long as a conversation lasts. It holds what each takes
// away from its parent, and the Go functions that the program adds; generation derives from that what it shows and
// may do.
//
// A Branch is plain data and belongs to its owner alone. It ends when its time is up, when it is deleted, or with
// its parent. A Store outlives generations, and with a directory also the process: each branch is a file of its
// own there. A Branch in a Store is never modified: a change replaces it by one with a new Revision.
package conversation

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/catalogd/catalogd/registry"
)

// Prefix is what the names of conversation branches begin with. 128 random bits in base32 follow, so that no
// name can be guessed.
const Prefix = "session-"

// LabelPrefix is what the labels that a conversation branch adds begin with.
const LabelPrefix = "session/"

// Owner is the principal that a conversation branch belongs to.
type Owner struct {
	Name string `json:"name"`
	// Local marks the operator of this machine, who needs no token.
	Local bool `json:"local,omitempty"`
}

// Terms are what a conversation branch takes away from its parent, and what the client may replace.
type Terms struct {
	// Select matches the tools of the parent that the branch may show; nil means all. Hide matches those that it
	// doesn't show.
	Select *registry.Selector `json:"select,omitempty"`
	Hide   *registry.Selector `json:"hide,omitempty"`
	// Tools says of single tools, by their name in the parent, that they are shown although Select or Hide
	// leaves them out (true), or not shown (false).
	Tools map[string]bool `json:"tools,omitempty"`
	// Narrow is how the branch shows single tools otherwise than its parent, by their names there.
	Narrow map[string]registry.Narrowing `json:"narrow,omitempty"`
	// Functions are the Go functions that the program has added to the branch.
	Functions Functions `json:"functions,omitempty"`
}

// Branch is one conversation branch.
type Branch struct {
	Name string `json:"name"`
	// From is the branch that it was forked from, and Root the declared branch at the top.
	From string `json:"from"`
	Root string `json:"root"`
	// Depth is the number of forks from Root: 1 for a fork of a declared branch.
	Depth int   `json:"depth"`
	Owner Owner `json:"owner"`
	// Labels are added to those of the parent; each begins with LabelPrefix.
	Labels map[string]string `json:"labels,omitempty"`
	Terms
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires"`
	// Showed are the names of the tools that it showed when it was forked or last changed.
	Showed []string `json:"showed"`

	// Revision is different for each state of each branch of a Store, and not stored.
	Revision uint64 `json:"-"`
}

// Revisions names the state of a chain: it differs for each state of each branch in it.
func Revisions(chain []Branch) string {
	var all strings.Builder
	for _, b := range chain {
		fmt.Fprintf(&all, "%d.", b.Revision)
	}
	return all.String()
}

// Clone returns a deep copy.
func (b Branch) Clone() Branch {
	b.Labels, b.Terms, b.Showed = maps.Clone(b.Labels), b.Terms.Clone(), slices.Clone(b.Showed)
	return b
}

// Clone returns a deep copy.
func (t Terms) Clone() Terms {
	t.Select, t.Hide, t.Tools, t.Narrow = t.Select.Clone(), t.Hide.Clone(), maps.Clone(t.Tools), maps.Clone(t.Narrow)
	t.Functions = maps.Clone(t.Functions)
	for name, n := range t.Narrow {
		n.Args = n.Args.Clone()
		t.Narrow[name] = n
	}
	return t
}

// Shown returns the name by which the branch shows a tool of its parent's.
func (t Terms) Shown(tool string) string { return cmp.Or(t.Narrow[tool].Name, tool) }

// Parent returns the name in the parent of what the branch shows under a name.
func (t Terms) Parent(shown string) string {
	for tool, n := range t.Narrow {
		if n.Name == shown {
			return tool
		}
	}
	return shown
}

// Admits reports whether the branch shows a tool that its parent shows, as far as its own terms go.
func (t Terms) Admits(tool registry.Tool) bool {
	if shown, said := t.Tools[tool.Name]; said {
		return shown
	}
	return registry.Branch{Select: t.Select, Hide: t.Hide}.Admits(tool)
}

// IsName reports whether a name has the form of a conversation branch's.
func IsName(name string) bool { return namePattern.MatchString(name) }

var namePattern = regexp.MustCompile(`^` + Prefix + `[a-z2-7]{26}$`)

func newName() string { return Prefix + strings.ToLower(rand.Text()) }

// The most labels of one branch, bytes of a label's value, names of one selector, and Go functions of one branch.
const (
	maxLabels    = 32
	maxValue     = 256
	maxSelectors = 1000
	maxFunctions = 100
)

var labelPattern = regexp.MustCompile(`^` + LabelPrefix + `[A-Za-z0-9_][A-Za-z0-9._/-]{0,62}$`)

// CheckLabels returns an error if labels can't be those of a conversation branch.
func CheckLabels(labels map[string]string) error {
	if len(labels) > maxLabels {
		return fmt.Errorf("there are %d labels, and a branch may have %d", len(labels), maxLabels)
	}
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		if !strings.HasPrefix(name, LabelPrefix) {
			return fmt.Errorf("label %q must begin with %s: the other labels are the catalog's", registry.Shown(name), LabelPrefix)
		}
		if !labelPattern.MatchString(name) {
			return fmt.Errorf("label %q is not one: after %s come up to 63 letters, digits and . _ / -, the first a letter, a digit or _",
				registry.Shown(name), LabelPrefix)
		}
		if value := labels[name]; len(value) > maxValue || !utf8.ValidString(value) || strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			return fmt.Errorf("the value of label %q must be a text of at most %d bytes without control characters", name, maxValue)
		}
	}
	return nil
}

// Check returns an error if the terms can't be those of a branch.
func (t Terms) Check() error {
	for what, s := range map[string]*registry.Selector{"select": t.Select, "hide": t.Hide} {
		if s == nil {
			continue
		}
		all := slices.Concat(s.Names, s.Tags, s.Servers)
		if len(all) > maxSelectors {
			return fmt.Errorf("%s has %d names, tags and servers, and may have %d; use patterns (get_*)", what, len(all), maxSelectors)
		}
		if slices.ContainsFunc(all, func(s string) bool { return strings.TrimSpace(s) == "" }) {
			return fmt.Errorf("%s has an empty name, tag or server", what)
		}
	}
	if len(t.Narrow) > maxSelectors {
		return fmt.Errorf("narrow has %d tools, and may have %d", len(t.Narrow), maxSelectors)
	}
	if len(t.Functions) > maxFunctions {
		return fmt.Errorf("the branch would have %d Go functions, and may have %d; remove some (Remove)", len(t.Functions), maxFunctions)
	}
	return nil
}

// Put adds a tool of the parent's view to what the branch shows, whatever Select and Hide say. If own, the view of
// the branch, has it already, the error wraps registry.ErrDuplicate, or with update what was said of the tool is
// replaced. The error for a tool that the parent doesn't show is a *registry.UnknownError.
func (t *Terms) Put(parent, own *registry.View, tool string, update bool) (replaced bool, err error) {
	if e := t.Functions[tool]; e != nil && own.Find(tool) == e {
		return false, fmt.Errorf("%w %q: it is a Go function, which only the program that has added it replaces", registry.ErrDuplicate, tool)
	}
	if _, err := parent.Select(registry.Names(tool)); err != nil {
		return false, err
	}
	replaced = own.Find(t.Shown(tool)) != nil
	if replaced && !update {
		return false, fmt.Errorf("%w %q: it is shown already; set update to replace it", registry.ErrDuplicate, tool)
	}
	t.say(tool, true)
	return replaced, nil
}

// Remove takes a tool away from what the branch shows, and a Go function from the branch, also one that it does not
// show. The error for any other tool that own, the view of the branch, doesn't have is a *registry.UnknownError.
func (t *Terms) Remove(own *registry.View, tool string) error {
	function, added := t.Functions[tool]
	delete(t.Functions, tool)
	if e := own.Find(tool); added && (e == nil || e == function) {
		return nil
	}
	if _, err := own.Select(registry.Names(tool)); err != nil {
		return err
	}
	t.say(t.Parent(tool), false)
	return nil
}

func (t *Terms) say(tool string, shown bool) {
	if t.Tools == nil {
		t.Tools = map[string]bool{}
	}
	t.Tools[tool] = shown
}
