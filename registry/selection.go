package registry

import (
	"errors"
	"fmt"
	"strings"
)

// Selection chooses tools: All, None, or Names. The zero value is None; Names of nothing is an empty choice,
// which Select answers with an empty, non-nil list, while None gives nil.
type Selection struct {
	all   bool
	names []string
}

// All chooses every tool.
func All() Selection { return Selection{all: true} }

// None chooses no tool and no list.
func None() Selection { return Selection{} }

// Names chooses tools by name, in the order given; a name given twice is one choice.
func Names(names ...string) Selection { return Selection{names: append([]string{}, names...)} }

// ErrUnknown is the kind of error that Select returns for names that don't exist.
var ErrUnknown = errors.New("unknown tool")

// UnknownError lists every selected name that no tool has.
type UnknownError struct{ Tools []Unknown }

// Unknown is a name that there is no tool of, and at most three that it was perhaps meant to be.
type Unknown struct {
	Name    string   `json:"name"`
	Nearest []string `json:"nearest"`
}

// Error names them all, in one line.
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

// Is makes it an ErrUnknown.
func (e *UnknownError) Is(target error) bool { return target == ErrUnknown }

// of are the chosen ones of entries, which index has by name.
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
			names[i] = e.tool.Name
		}
		unknown.Tools = append(unknown.Tools, Unknown{name, append([]string{}, Nearest(name, names)...)})
	}
	if len(unknown.Tools) > 0 {
		return nil, unknown
	}
	return out, nil
}
