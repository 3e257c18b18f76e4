// Package problem is what every part of catalogd says about a file that a person has to fix: where it is, which of a
// closed list of things is wrong, and what to do about it.
//
// A Problem is found by the loader (CUE), the decision engine (Rego), the registry and the bindings; all of them hand
// back a List, and nothing stops at the first. The closed list of codes, with meaning and remedy, is in codes.go; it is
// the source of docs/problems.md.
package problem

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
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

// Problem is one thing to fix.
type Problem struct {
	Code     Code     `json:"code"`
	Severity Severity `json:"severity"`
	Position
	// Path is the CUE path (tools.get_weather.args.city) or the Rego package; empty where there is none.
	Path string `json:"path,omitempty"`
	// Message says what is wrong and how to fix it, in one line without a final stop.
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
		fmt.Fprintf(&b, "%s: ", Printable(p.Path))
	}
	b.WriteString(Printable(strings.ReplaceAll(p.Message, "\n", " ")))
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
	l.add(Error, code, pos, path, fmt.Sprintf(format, args...))
}

// Warnf adds a warning.
func (l *List) Warnf(code Code, pos Position, path, format string, args ...any) {
	l.add(Warning, code, pos, path, fmt.Sprintf(format, args...))
}

// What is quoted from a file may be as long as the file; more than this nobody reads. In bytes.
const (
	maxPath    = 1 << 10
	maxMessage = 8 << 10
)

func (l *List) add(severity Severity, code Code, pos Position, path, message string) {
	*l = append(*l, Problem{Code: code, Severity: severity, Position: pos, Path: cut(path, maxPath), Message: cut(message, maxMessage)})
}

func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "") + "..."
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

// Discreet returns the list, or where a secret is written out only the problems that say so: any other
// message might repeat what is written there.
func (l List) Discreet() List {
	secret := func(p Problem) bool { return p.Code == LiteralSecret }
	if !slices.ContainsFunc(l, secret) {
		return l
	}
	return slices.DeleteFunc(slices.Clone(l), func(p Problem) bool { return !secret(p) })
}

// Has reports whether a problem of the list has the code.
func (l List) Has(code Code) bool {
	return slices.ContainsFunc(l, func(p Problem) bool { return p.Code == code })
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

// Printable is s as it may stand on a terminal or in a log: what moves the cursor, begins a line, turns the direction of
// writing or can't be seen is escaped, as in a Go string.
func Printable(s string) string {
	if utf8.ValidString(s) && strings.IndexFunc(s, unseen) < 0 {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD"):
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case unseen(r):
			quoted := strconv.QuoteRuneToASCII(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// PrintableJSON is valid JSON with whatever a terminal doesn't show, or shows as something else, as the escapes of JSON: the
// same value, in characters that can be seen. It may change raw.
func PrintableJSON(raw []byte) []byte {
	hidden := func(r rune) bool { return r >= utf8.RuneSelf && unseen(r) } // the others stand between tokens, or are escaped
	if bytes.IndexFunc(raw, hidden) < 0 {
		return raw
	}
	out := make([]byte, 0, len(raw)+64)
	for _, r := range string(raw) {
		switch high, low := utf16.EncodeRune(r); {
		case !hidden(r):
			out = utf8.AppendRune(out, r)
		case high == utf8.RuneError:
			out = fmt.Appendf(out, `\u%04x`, r)
		default:
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		}
	}
	return out
}

// Hidden names a character that most fonts don't show, or that changes how others are shown; empty for any other. Line
// ends and tabs are none, and neither are the selectors of an emoji's style, U+FE0E and U+FE0F.
func Hidden(r rune) string {
	switch {
	case r == '\n' || r == '\t' || r == '\r' || !invisible(r):
		return ""
	case unicode.IsControl(r):
		return fmt.Sprintf("the control character U+%04X", r)
	case r >= 0xe0000 && r <= 0xe007f:
		return fmt.Sprintf("the tag character U+%04X", r)
	case unicode.Is(unicode.Variation_Selector, r):
		return fmt.Sprintf("the variation selector U+%04X", r)
	case unicode.Is(unicode.Bidi_Control, r):
		return fmt.Sprintf("the direction mark U+%04X", r)
	}
	return fmt.Sprintf("the invisible character U+%04X", r)
}

// unseen reports whether a terminal or a log must not get a character as it is. Those that join letters and emoji (U+200C,
// U+200D) are part of words.
func unseen(r rune) bool { return r != '\u200c' && r != '\u200d' && invisible(r) }

// invisible reports whether a character is a control, a separator of lines, or one that Unicode has renderers ignore
// (Default_Ignorable_Code_Point, UAX #44).
func invisible(r rune) bool {
	if r < 0x7f {
		return r < 0x20
	}
	return r != '\ufe0e' && r != '\ufe0f' && unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp,
		unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}
