// Package quote shortens what messages quote of calls and schemas.
package quote

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Clip is at most 60 characters of s, on one line.
func Clip(s string) string { return ClipTo(s, 60) }

// ClipTo is at most so many characters of s, on one line.
func ClipTo(s string, most int) string {
	if utf8.RuneCountInString(s) > most {
		n := 0
		for i := range s {
			if n++; n == most {
				s = s[:i] + "…"
				break
			}
		}
	}
	return strings.ReplaceAll(s, "\n", `\n`)
}

// List is the first 20 of words, each clipped, and how many more there are.
func List(words []string) string {
	const most = 20
	var b strings.Builder
	for i, word := range words {
		if i == most {
			fmt.Fprintf(&b, " and %d more", len(words)-most)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(Clip(word))
	}
	return b.String()
}
