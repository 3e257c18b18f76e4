package main

import "strings"

// shellWords splits the beginning of a command line into words as bash does, without expanding anything: blanks separate,
// quotes and backslashes keep together. The last word is empty after a blank. Of several commands on the line the last
// one counts.
func shellWords(line string) []string {
	words := []string{}
	var word strings.Builder
	var quote rune
	escaped, open := false, false
	end := func() {
		if open {
			words = append(words, word.String())
			word.Reset()
			open = false
		}
	}
	for _, r := range line {
		switch {
		case escaped:
			word.WriteRune(r)
			escaped = false
		case r == '\\' && quote != '\'':
			escaped, open = true, true
		case quote != 0:
			if r == quote {
				quote = 0
			} else {
				word.WriteRune(r)
			}
		case r == '\'' || r == '"':
			quote, open = r, true
		case r == ' ' || r == '\t' || r == '\n':
			end()
		case r == ';' || r == '|' || r == '&' || r == '(':
			end()
			words = words[:0]
		default:
			word.WriteRune(r)
			open = true
		}
	}
	return append(words, word.String())
}
