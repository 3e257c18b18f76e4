package registry

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Fork returns the view of a conversation branch: those tools of v for which visible returns true, narrowed as
// narrow says by their names in v. A tool that can't be narrowed so (CheckNarrowing) is left out, and so are
// two that would have one name. visible is called from one goroutine.
func (v *View) Fork(b Branch, narrow map[string]Narrowing, visible func(*Entry) bool) *View {
	fork := &View{branch: b.clone(), index: make(map[string]*Entry, len(v.entries)), all: v.all}
	named := map[string]int{} // by the name in lower case
	for _, e := range v.entries {
		if !visible(e) {
			continue
		}
		if n, narrowed := narrow[e.Name()]; narrowed {
			if v.CheckNarrowing(e.Name(), n) != nil {
				continue
			}
			shown, err := v.narrowed(e, n)
			if err != nil {
				continue
			}
			e = shown
			fork.branch.rename(e)
		}
		fork.entries = append(fork.entries, e)
		named[strings.ToLower(e.Name())]++
	}
	if len(narrow) > 0 {
		fork.entries = slices.DeleteFunc(fork.entries, func(e *Entry) bool { return named[strings.ToLower(e.Name())] > 1 })
		slices.SortFunc(fork.entries, byName)
	}
	sum := sha256.New()
	for _, e := range fork.entries {
		fork.index[e.Name()] = e
		sum.Write([]byte(e.listed))
	}
	fork.digest = hex.EncodeToString(sum.Sum(nil))
	return fork
}

// rename makes Shown and Catalog tell the name by which the branch shows an entry. The branch must not be shared.
func (b *Branch) rename(e *Entry) {
	if b.Shown(e.tool.Name) == e.Name() {
		return
	}
	b.Narrow = maps.Clone(b.Narrow)
	if b.Narrow == nil {
		b.Narrow = map[string]Narrowing{}
	}
	n := b.Narrow[e.tool.Name]
	n.Name = e.Name()
	b.Narrow[e.tool.Name] = n
}

// narrowed returns a tool of the view as a fork narrows it.
func (v *View) narrowed(e *Entry, n Narrowing) (*Entry, error) {
	return e.in(Branch{Narrow: map[string]Narrowing{e.tool.Name: n}}, v.all.forms)
}

// CheckNarrowing returns an error if a fork of the view can't narrow a tool so: an *UnknownError for a tool that
// the view doesn't have, a *contract.NarrowingError for arguments that it doesn't narrow, or what else is wrong.
func (v *View) CheckNarrowing(tool string, n Narrowing) error {
	found, err := v.Select(Names(tool))
	if err != nil {
		return err
	}
	e := found[0]
	blank := func(text string) bool { return text != "" && strings.TrimSpace(text) == "" }
	switch {
	case e.tool.Binding.Intent != "":
		return errors.New("this is a built-in tool, and can't be narrowed")
	case n == Narrowing{}:
		return errors.New("nothing is said of the tool; say what the fork changes, or leave it out")
	case n.Name == tool:
		return errors.New("the tool has this name already")
	case n.Name != "" && !ValidName(n.Name):
		return fmt.Errorf("%q is not a name of a tool; use a letter or _, then up to 62 letters, digits, _ or -", Shown(n.Name))
	case blank(n.Title), blank(n.Description):
		return errors.New("a title and a description are not blank")
	}
	shown, err := v.narrowed(e, n)
	if err != nil {
		return err
	}
	if n.Args != nil && e.keyFixed(shown) {
		return errors.New("every argument in the tool's idempotency key is fixed, so that all calls would be one effect: leave one to the call")
	}
	return nil
}

// keyFixed reports whether the entry has an idempotency key all of whose arguments are fixed in shown, which is
// the same tool narrowed.
func (e *Entry) keyFixed(shown *Entry) bool {
	if e.key == nil {
		return false
	}
	for _, part := range e.key {
		if _, free := shown.tool.Args.Field(part.Arg); free && part.Arg != "" {
			return false
		}
	}
	return true
}
