package diff

import (
	"strings"
	"unicode"

	"golang.org/x/text/width"
)

// indent is how many spaces the lines of a wrapped text begin with, but for the first.
const indent = 2

// wrap breaks a text into lines of at most so many terminal columns, all but the first one indented: after a
// space, or else after punctuation, or anywhere. 0 columns means that it is not broken; other numbers are at
// least indent + 2.
func wrap(s string, columns int) (lines []string) {
	if columns == 0 {
		return []string{s}
	}
	before := ""
	for {
		room := columns - len(before)
		if columnsOf(s) <= room {
			return append(lines, before+s)
		}
		end, space, mark, used := 0, 0, 0, 0
		for i, r := range s {
			size := columnsOfRune(r)
			if used += size; used > room && end > 0 {
				break
			}
			end = i + len(string(r))
			switch {
			case r == ' ':
				space = end
			case strings.ContainsRune("-_./:;", r):
				mark = end
			}
		}
		if space > 0 {
			end = space
		} else if mark > 0 {
			end = mark
		}
		lines = append(lines, before+strings.TrimRight(s[:end], " "))
		s, before = s[end:], strings.Repeat(" ", indent)
	}
}

// columnsOf returns how many terminal columns a printable text takes.
func columnsOf(s string) (n int) {
	for _, r := range s {
		n += columnsOfRune(r)
	}
	return n
}

// columnsOfRune returns 2 for a wide character (UAX #11), 0 for one that is drawn with the one before it, and 1
// for all others.
func columnsOfRune(r rune) int {
	switch kind := width.LookupRune(r).Kind(); {
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case kind == width.EastAsianWide, kind == width.EastAsianFullwidth:
		return 2
	}
	return 1
}
