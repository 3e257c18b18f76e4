// Package problem is what every part of catalogd says about a file that a person has to mend: where it is, which of a
// closed list of things is wrong, and what to do about it.
//
// A Problem is found by the loader (CUE), the decision engine (Rego), the registry and the bindings; all of them hand
// back a List, and nothing stops at the first. The closed list of codes, with meaning and remedy, is in codes.go; it is
// the source of docs/problems.md.
package problem

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Severity says whether a problem refuses the build.
type Severity string

const (
	// Error refuses the build: nothing of it is served.
	Error Severity = "error"
	// Warning is reported and changes nothing.
	Warning Severity = "warning"
)

// Position is a place in a file of the catalog. File is slash-separated and relative to the catalog's root; Line and
// Col count from 1, and 0 means unknown.
type Position struct {
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
	Col  int    `json:"col,omitempty"`
}

// IsValid reports whether p names a file.
func (p Position) IsValid() bool { return p.File != "" }

// String is file:line:col, without what is unknown.
func (p Position) String() string {
	switch {
	case p.File == "":
		return "-"
	case p.Line == 0:
		return p.File
	case p.Col == 0:
		return fmt.Sprintf("%s:%d", p.File, p.Line)
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Col)
}

// Problem is one thing to mend.
type Problem struct {
	Code     Code     `json:"code"`
	Severity Severity `json:"severity"`
	Position
	// Path is the CUE path (tools.get_weather.args.city) or the Rego package; empty where there is none.
	Path string `json:"path,omitempty"`
	// Message says what is wrong and how to mend it, in one line without a final stop.
	Message string `json:"message"`
	// Also holds the other places that take part, such as the second declaration of a name.
	Also []Position `json:"also,omitempty"`
}

// String is file:line:col: code: path: message, the form that editors and people read. A warning says so behind the
// code; further places follow in brackets.
func (p Problem) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s: ", p.Position, p.Code)
	if p.Severity == Warning {
		b.WriteString("warning: ")
	}
	if p.Path != "" {
		fmt.Fprintf(&b, "%s: ", p.Path)
	}
	b.WriteString(strings.ReplaceAll(p.Message, "\n", " "))
	if len(p.Also) > 0 {
		places := make([]string, len(p.Also))
		for i, a := range p.Also {
			places[i] = a.String()
		}
		fmt.Fprintf(&b, " (see %s)", strings.Join(places, ", "))
	}
	return b.String()
}

// List is what one pass found.
type List []Problem

// Errorf adds an error.
func (l *List) Errorf(code Code, pos Position, path, format string, args ...any) {
	*l = append(*l, Problem{Code: code, Severity: Error, Position: pos, Path: path, Message: fmt.Sprintf(format, args...)})
}

// Warnf adds a warning.
func (l *List) Warnf(code Code, pos Position, path, format string, args ...any) {
	*l = append(*l, Problem{Code: code, Severity: Warning, Position: pos, Path: path, Message: fmt.Sprintf(format, args...)})
}

// Sorted returns a copy in the order of file, line, column, code, path and message, without exact repeats.
func (l List) Sorted() List {
	out := slices.Clone(l)
	slices.SortStableFunc(out, func(a, b Problem) int {
		return cmp.Or(
			cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col),
			cmp.Compare(a.Code, b.Code), cmp.Compare(a.Path, b.Path), cmp.Compare(a.Message, b.Message),
		)
	})
	return slices.CompactFunc(out, func(a, b Problem) bool {
		return a.Code == b.Code && a.Position == b.Position && a.Path == b.Path && a.Message == b.Message
	})
}

// HasErrors reports whether any problem refuses the build.
func (l List) HasErrors() bool {
	return slices.ContainsFunc(l, func(p Problem) bool { return p.Severity == Error })
}

// Count returns the numbers of errors and warnings.
func (l List) Count() (errors, warnings int) {
	for _, p := range l {
		if p.Severity == Error {
			errors++
		} else {
			warnings++
		}
	}
	return errors, warnings
}

// Err is nil without errors, else an error whose text is every error of the list, a line each.
func (l List) Err() error {
	if !l.HasErrors() {
		return nil
	}
	return listError(l.Sorted())
}

type listError List

func (e listError) Error() string {
	var lines []string
	for _, p := range e {
		if p.Severity == Error {
			lines = append(lines, p.String())
		}
	}
	return strings.Join(lines, "\n")
}
