// Package problem has the type of the problems that a person has to fix in a file: position, code, and a
// message that says what is wrong and what to do.
//
// The loader (CUE), the decision engine (Rego), the registry and the bindings return a List with all problems
// that they find, not only the first. codes.go has the closed list of codes, and docs.go their meanings and
// remedies, from which docs/problems.md is generated.
//
// Semantic versioning holds for this package (CONTRIBUTING.md).
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

// Severity says whether a problem fails the build.
type Severity string

const (
	// Error fails the build: nothing of it is served.
	Error Severity = "error"
	// Warning is only reported.
	Warning Severity = "warning"
)

// Position is a position in a file of the catalog. File is slash-separated and relative to the catalog's
// root. Line and Col count from 1; 0 means unknown.
type Position struct {
	// File is the path of the file, relative to the root of the catalog.
	File string `json:"file,omitempty"`
	// Line is the line, from 1 on; 0 is unknown.
	Line int `json:"line,omitempty"`
	// Col is the column in bytes, from 1 on; 0 is unknown.
	Col int `json:"col,omitempty"`
}

// IsValid reports whether p names a file.
func (p Position) IsValid() bool { return p.File != "" }

// String returns file:line:col without unknown parts, and "-" for the zero Position.
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

// Problem is one problem in a file.
type Problem struct {
	// Code is the kind of problem: docs/problems.md.
	Code Code `json:"code"`
	// Severity is error or warning.
	Severity Severity `json:"severity"`
	Position
	// Path is the CUE path (tools.get_weather.args.city) or the Rego package; empty if there is none.
	Path string `json:"path,omitempty"`
	// Message says what is wrong and how to fix it, in one line without a full stop at the end.
	Message string `json:"message"`
	// Also has further positions of the problem, such as the second declaration of a name.
	Also []Position `json:"also,omitempty"`
	// Paste is text that resolves the problem when it is put where Message says, if it is meant; often empty.
	Paste string `json:"paste,omitempty"`
}

// String returns file:line:col: code: path: message, which editors can parse. A warning has "warning: " after
// the code, and further positions follow in parentheses.
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

// List is a list of problems.
type List []Problem

// Errorf adds an error.
func (l *List) Errorf(code Code, pos Position, path, format string, args ...any) {
	l.add(Error, code, pos, path, fmt.Sprintf(format, args...))
}

// Warnf adds a warning.
func (l *List) Warnf(code Code, pos Position, path, format string, args ...any) {
	l.add(Warning, code, pos, path, fmt.Sprintf(format, args...))
}

// Maximum lengths in bytes, because paths and messages may quote a whole file.
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

// Sorted returns a copy sorted by file, line, column, code, path and message, without duplicates.
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

// Discreet returns the list. If it has a LiteralSecret problem, it returns only those, because other messages
// might repeat the secret.
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

// HasErrors reports whether the list has an Error.
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

// Err returns nil if the list has no Error, else an error with all of them, one a line.
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

// Printable returns s for a terminal or a log: control characters, line separators, invisible characters,
// characters that change the writing direction, and invalid UTF-8 are escaped as in a Go string.
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

// PrintableJSON returns valid JSON with the characters that Printable escapes written as JSON escapes; the
// value is the same. It may return raw itself.
func PrintableJSON(raw []byte) []byte {
	hidden := func(r rune) bool { return r >= utf8.RuneSelf && unseen(r) } // in valid JSON the others are escaped or white space
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

// Hidden returns a description of a character that is invisible or changes how others are shown; it is empty
// for all others, and for line ends, tabs and the emoji style selectors U+FE0E and U+FE0F.
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

// unseen reports whether a character must be escaped for a terminal or a log. The joiners U+200C and U+200D
// are not escaped, because words and emoji contain them.
func unseen(r rune) bool { return r != '\u200c' && r != '\u200d' && invisible(r) }

// invisible reports whether a character is a control character, a line separator, or one that renderers
// ignore (Default_Ignorable_Code_Point, UAX #44).
func invisible(r rune) bool {
	if r < 0x7f {
		return r < 0x20
	}
	return r != '\ufe0e' && r != '\ufe0f' && unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp,
		unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}
