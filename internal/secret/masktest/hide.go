package masktest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"math/rand/v2"
	"net/url"
	"strings"
)

// Hide writes a value in other case, or not, and in up to that many encodings.
func Hide(r *rand.Rand, value string, layers int) string {
	value = []func(string) string{strings.ToUpper, strings.ToLower, strings.Clone}[r.IntN(3)](value)
	for range 1 + r.IntN(layers) {
		value = encoders[r.IntN(len(encoders))](r, value)
	}
	return value
}

// encoders are ways to write a text, each of which the oracle can read.
var encoders = []func(*rand.Rand, string) string{
	func(_ *rand.Rand, s string) string { return s },
	func(r *rand.Rand, s string) string { // some characters as \u
		var b strings.Builder
		for _, c := range s {
			if c < 0x10000 && r.IntN(2) == 0 || c == '"' || c == '\\' || c < ' ' {
				fmt.Fprintf(&b, `\u%04x`, c)
			} else {
				b.WriteRune(c)
			}
		}
		return b.String()
	},
	func(_ *rand.Rand, s string) string { raw, _ := json.Marshal(s); return string(raw[1 : len(raw)-1]) },
	func(_ *rand.Rand, s string) string { return url.QueryEscape(s) },
	func(_ *rand.Rand, s string) string { return url.PathEscape(s) },
	func(r *rand.Rand, s string) string {
		var b strings.Builder
		for i := range len(s) {
			fmt.Fprintf(&b, []string{"%%%02x", "%%%02X"}[r.IntN(2)], s[i])
		}
		return b.String()
	},
	func(_ *rand.Rand, s string) string { return html.EscapeString(s) },
	func(r *rand.Rand, s string) string {
		var b strings.Builder
		for _, c := range s {
			fmt.Fprintf(&b, []string{"&#%d;", "&#x%x;", "&#X%X;"}[r.IntN(3)], c)
		}
		return b.String()
	},
	func(r *rand.Rand, s string) string {
		enc := []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding}[r.IntN(4)]
		return enc.EncodeToString([]byte(Filler(r, r.IntN(4)) + s + Filler(r, r.IntN(4))))
	},
	func(r *rand.Rand, s string) string {
		return fmt.Sprintf([]string{"%x", "%X", "% x"}[r.IntN(3)], Filler(r, r.IntN(4))+s)
	},
}

// Filler is n characters of text that is no value.
func Filler(r *rand.Rand, n int) string {
	const letters = "abcdefghijklmnop ,.:;{}[]\"'<>/\n0123456789ÄÖ"
	runes := []rune(letters)
	var b strings.Builder
	for range n {
		b.WriteRune(runes[r.IntN(len(runes))])
	}
	return b.String()
}

// Value is a value of eight bytes and more, with characters that encodings write in their own way.
func Value(r *rand.Rand) string {
	runes := []rune("abcXYZ0189@.-_+ /\\\"'<>&%#=äÖß世😀")
	var b strings.Builder
	for b.Len() < 8+r.IntN(24) {
		b.WriteRune(runes[r.IntN(len(runes))])
	}
	return b.String()
}
