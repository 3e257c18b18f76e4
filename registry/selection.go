package registry

import (
	"errors"
	"fmt"
	"strings"
)

// Selection selects tools: All, None or Names. The zero value is None. Select returns nil for None, and an
// empty non-nil list for Names without arguments.
type Selection struct {
	all   bool
	names []string
}

// All selects every tool.
func All() Selection { return Selection{all: true} }

// None selects nothing; Select then returns nil.
func None() Selection { return Selection{} }

// Names selects tools by name, in the given order. Duplicates count once.
func Names(names ...string) Selection { return Selection{names: append([]string{}, names...)} }

// ErrUnknown is what errors.Is finds in the error of Select for unknown names.
var ErrUnknown = errors.New("unknown tool")

// UnknownError has all selected names that no tool has.
type UnknownError struct{ Tools []Unknown }

// Unknown is an unknown name with at most three similar names of tools.
type Unknown struct {
	// Name is the name that is unknown.
	Name string `json:"name"`
	// Nearest are similar names of visible tools.
	Nearest []string `json:"nearest"`
}

// Error returns all unknown names in one line.
func (e *UnknownError) Error() string {
	var each []string
	for _, u := range e.Tools {
		text := fmt.Sprintf("%v %q", ErrUnknown, Shown(u.Name))
		if len(u.Nearest) > 0 {
			text += " (did you mean " + strings.Join(u.Nearest, " or ") + "?)"
		}
		each = append(each, text)
	}
	return strings.Join(each, ", ")
}

// Is reports whether target is ErrUnknown.
func (e *UnknownError) Is(target error) bool { return target == ErrUnknown }

// of returns the selected entries; index has the same entries by name.
func (s Selection) of(entries []*Entry, index map[string]*Entry) ([]*Entry, error) {
	if s.all {
		return append([]*Entry{}, entries...), nil
	}
	if s.names == nil {
		return nil, nil
	}
	out := make([]*Entry, 0, len(s.names))
	seen := map[string]bool{}
	unknown := &UnknownError{}
	for _, name := range s.names {
		if seen[name] {
			continue
		}
		seen[name] = true
		if e, ok := index[name]; ok {
			out = append(out, e)
			continue
		}
		names := make([]string, len(entries))
		for i, e := range entries {
			names[i] = e.Name()
		}
		unknown.Tools = append(unknown.Tools, Unknown{name, append([]string{}, Nearest(name, names)...)})
	}
	if len(unknown.Tools) > 0 {
		return nil, unknown
	}
	return out, nil
}
