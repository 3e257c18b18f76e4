package compat

import (
	"regexp/syntax"
	"strings"
)

// matchFor is a short text that a pattern probably matches; empty where none was found.
func matchFor(pattern string) string {
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return ""
	}
	var b strings.Builder
	appendMatch(&b, re.Simplify())
	return b.String()
}

func appendMatch(b *strings.Builder, re *syntax.Regexp) {
	const most = 200
	if b.Len() > most {
		return
	}
	switch re.Op {
	case syntax.OpLiteral:
		b.WriteString(string(re.Rune))
	case syntax.OpCharClass:
		if len(re.Rune) > 0 {
			b.WriteRune(runeOf(re.Rune))
		}
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		b.WriteByte('a')
	case syntax.OpConcat, syntax.OpCapture, syntax.OpPlus:
		for _, sub := range re.Sub {
			appendMatch(b, sub)
		}
	case syntax.OpAlternate:
		appendMatch(b, re.Sub[0])
	case syntax.OpRepeat:
		for range re.Min {
			appendMatch(b, re.Sub[0])
		}
	}
}

// runeOf is a rune of a character class, given as pairs of first and last: a plain letter or digit where
// there is one.
func runeOf(ranges []rune) rune {
	for _, want := range "a1A-_" {
		for i := 0; i+1 < len(ranges); i += 2 {
			if ranges[i] <= want && want <= ranges[i+1] {
				return want
			}
		}
	}
	return ranges[0]
}
