package contract

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
)

// translation is a pattern of ECMA-262, read as with its flag u, in the syntax of the two engines.
type translation struct {
	re2, ecma strings.Builder
	// beyond: RE2 can't express it.
	beyond bool
}

func (t *translation) both(s string) {
	t.re2.WriteString(s)
	t.ecma.WriteString(s)
}

// char writes one character by its code point.
func (t *translation) char(r rune) {
	fmt.Fprintf(&t.re2, `\x{%X}`, r)
	if r > 0xffff {
		fmt.Fprintf(&t.ecma, `\u{%X}`, r)
	} else {
		fmt.Fprintf(&t.ecma, `\u%04X`, r)
	}
}

// ranges writes ranges of characters inside a class.
func (t *translation) ranges(table []rune) {
	for i := 0; i < len(table); i += 2 {
		t.char(table[i])
		t.both("-")
		t.char(table[i+1])
	}
}

// Spaces are the characters that \s matches (ECMA-262, WhiteSpace and LineTerminator), as first and last of
// each range; line ends are the characters that . doesn't match.
var (
	ecmaSpaces = []rune{
		'\t', '\r', ' ', ' ', 0xa0, 0xa0, 0x1680, 0x1680, 0x2000, 0x200a, 0x2028, 0x2029, 0x202f, 0x202f,
		0x205f, 0x205f, 0x3000, 0x3000, 0xfeff, 0xfeff,
	}
	notEcmaSpaces = complement(ecmaSpaces)
	ecmaLineEnds  = []rune{'\n', '\n', '\r', '\r', 0x2028, 0x2029}
)

func complement(table []rune) (out []rune) {
	next := rune(0)
	for i := 0; i < len(table); i += 2 {
		if table[i] > next {
			out = append(out, next, table[i]-1)
		}
		next = table[i+1] + 1
	}
	return append(out, next, unicode.MaxRune)
}

var posixClass = regexp.MustCompile(`^\[:\^?[a-z]+:\]`)

// translate translates a pattern. It copies unknown syntax for the engines to judge, and stops once the
// result is longer than maxTranslated.
func translate(pattern string) *translation {
	t := &translation{}
	inClass := false
	for i := 0; i < len(pattern) && t.re2.Len() <= maxTranslated; {
		switch c := pattern[i]; {
		case c == '\\' && i+1 < len(pattern):
			n, set := t.escape(pattern[i:], inClass)
			i += n
			if set && inClass && i+1 < len(pattern) && pattern[i] == '-' && pattern[i+1] != ']' {
				// A class can't begin a range.
				t.both(`\-`)
				i++
			}
		case inClass && c == '[':
			if posix := posixClass.FindString(pattern[i:]); posix != "" {
				t.both(posix)
				i += len(posix)
				continue
			}
			t.both(`\[`)
			i++
		case inClass:
			inClass = c != ']'
			t.both(pattern[i : i+1])
			i++
		case c == '[':
			inClass = true
			t.both("[")
			if i++; i < len(pattern) && pattern[i] == '^' {
				t.both("^")
				i++
			}
		case c == '.':
			t.both("[^")
			t.ranges(ecmaLineEnds)
			t.both("]")
			i++
		case c == '(' && strings.HasPrefix(pattern[i:], "(?"):
			i += t.group(pattern[i:])
		default:
			t.both(pattern[i : i+1])
			i++
		}
	}
	return t
}

// group translates a construct that begins with (? and returns its length in the pattern.
func (t *translation) group(rest string) int {
	for _, around := range []string{"(?=", "(?!", "(?<=", "(?<!", "(?>"} {
		if strings.HasPrefix(rest, around) {
			t.beyond = true
			t.both(around)
			return len(around)
		}
	}
	if strings.HasPrefix(rest, "(?P<") { // Python's syntax for (?<
		t.both("(?<")
		return len("(?P<")
	}
	if name, ok := strings.CutPrefix(rest, "(?P="); ok { // and for \k<
		if end := strings.IndexByte(name, ')'); end >= 0 {
			t.beyond = true
			t.both(`\k<` + name[:end] + `>`)
			return len("(?P=") + end + 1
		}
	}
	t.both("(?")
	return len("(?")
}

// escape translates an escape sequence. It returns its length in the pattern and whether it is a class of
// characters.
func (t *translation) escape(rest string, inClass bool) (n int, set bool) {
	switch c := rest[1]; c {
	case 'd', 'D', 'w', 'W':
		t.both(rest[:2])
		return 2, true
	case 's', 'S':
		table := ecmaSpaces
		if c == 'S' {
			table = notEcmaSpaces
		}
		if !inClass {
			t.both("[")
		}
		t.ranges(table)
		if !inClass {
			t.both("]")
		}
		return 2, true
	case 'b':
		if inClass {
			t.char('\b')
		} else {
			t.both(`\b`)
		}
		return 2, false
	case 'u':
		if r, n := codePoint(rest); n > 0 {
			t.char(r)
			return n, false
		}
	case 'x':
		if r, n := hexDigits(rest[2:], 2); n > 0 {
			t.char(r)
			return 2 + n, false
		}
	case 'c':
		if len(rest) > 2 && (rest[2]|0x20) >= 'a' && (rest[2]|0x20) <= 'z' {
			t.char(rune(rest[2] & 0x1f))
			return 3, false
		}
	case '0':
		if len(rest) == 2 || rest[2] < '0' || rest[2] > '9' {
			t.char(0)
			return 2, false
		}
	case 'p', 'P':
		if n := t.property(rest, inClass); n > 0 {
			return n, true
		}
	case 'Z': // Python's syntax for the end
		if !inClass {
			t.both(`\z`)
			return 2, false
		}
	case 'k':
		t.beyond = t.beyond || !inClass
	case '1', '2', '3', '4', '5', '6', '7', '8', '9':
		t.beyond = t.beyond || !inClass
	case '-', '/', '_', '#', ' ', '"', '\'', '%', '&', ',', ':', ';', '<', '=', '>', '@', '`', '!', '~':
		t.char(rune(c))
		return 2, false
	}
	t.both(rest[:2])
	return 2, false
}

// codePoint reads \uXXXX, a surrogate pair of these, or \u{X}.
func codePoint(rest string) (r rune, n int) {
	if braced, ok := strings.CutPrefix(rest, `\u{`); ok {
		end := strings.IndexByte(braced, '}')
		if end < 1 {
			return 0, 0
		}
		v, err := strconv.ParseUint(braced[:end], 16, 32)
		if err != nil || v > unicode.MaxRune {
			return 0, 0
		}
		return rune(v), len(`\u{}`) + end
	}
	r, n = hexDigits(rest[2:], 4)
	if n == 0 {
		return 0, 0
	}
	if after := rest[6:]; utf16.IsSurrogate(r) && strings.HasPrefix(after, `\u`) {
		if low, n := hexDigits(after[2:], 4); n > 0 {
			if pair := utf16.DecodeRune(r, low); pair != unicode.ReplacementChar {
				return pair, 12
			}
		}
	}
	return r, 6
}

func hexDigits(s string, digits int) (r rune, n int) {
	if len(s) < digits {
		return 0, 0
	}
	v, err := strconv.ParseUint(s[:digits], 16, 32)
	if err != nil {
		return 0, 0
	}
	return rune(v), digits
}

// property translates \p{...}: a general category, a script or a property of Unicode. n is 0 for an unknown
// one.
func (t *translation) property(rest string, inClass bool) (n int) {
	end := strings.IndexByte(rest, '}')
	if len(rest) < 3 || rest[2] != '{' || end < 0 {
		return 0
	}
	name := rest[3:end]
	negated := rest[1] == 'P'
	if kind, value, ok := strings.Cut(name, "="); ok {
		if !slices.Contains([]string{"Script", "sc", "Script_Extensions", "scx", "General_Category", "gc"}, kind) {
			return 0
		}
		name = value
	}
	if short, ok := unicode.CategoryAliases[name]; ok {
		name = short
	}
	_, category := unicode.Categories[name]
	_, script := unicode.Scripts[name]
	if category || script {
		t.both(fmt.Sprintf(`\%c{%s}`, rest[1], name))
		return end + 1
	}
	var tables []*unicode.RangeTable
	switch name {
	case "Any":
	case "ASCII":
		tables = []*unicode.RangeTable{{R16: []unicode.Range16{{Lo: 0, Hi: 0x7f, Stride: 1}}}}
	case "Alphabetic", "Alpha":
		tables = []*unicode.RangeTable{unicode.L, unicode.Nl, unicode.Other_Alphabetic}
	case "Uppercase", "Upper":
		tables = []*unicode.RangeTable{unicode.Lu, unicode.Other_Uppercase}
	case "Lowercase", "Lower":
		tables = []*unicode.RangeTable{unicode.Ll, unicode.Other_Lowercase}
	default:
		table, ok := unicode.Properties[name]
		if !ok {
			return 0
		}
		tables = []*unicode.RangeTable{table}
	}
	set := rangesOf(tables)
	if name == "Any" {
		set = []rune{0, unicode.MaxRune}
	}
	if negated {
		set = complement(set)
	}
	if !inClass {
		t.both("[")
	}
	t.ranges(set)
	if !inClass {
		t.both("]")
	}
	return end + 1
}

// rangesOf returns the characters of tables as first and last of each range.
func rangesOf(tables []*unicode.RangeTable) (out []rune) {
	var all [][2]rune
	add := func(lo, hi, stride rune) {
		if stride == 1 {
			all = append(all, [2]rune{lo, hi})
			return
		}
		for r := lo; r <= hi; r += stride {
			all = append(all, [2]rune{r, r})
		}
	}
	for _, table := range tables {
		for _, r := range table.R16 {
			add(rune(r.Lo), rune(r.Hi), rune(r.Stride))
		}
		for _, r := range table.R32 {
			add(rune(r.Lo), rune(r.Hi), rune(r.Stride))
		}
	}
	slices.SortFunc(all, func(a, b [2]rune) int { return cmp.Compare(a[0], b[0]) })
	for _, r := range all {
		if n := len(out); n > 0 && r[0] <= out[n-1]+1 {
			out[n-1] = max(out[n-1], r[1])
		} else {
			out = append(out, r[0], r[1])
		}
	}
	return out
}
