// Package masktest hides values in texts, and finds them again without the code of package secret: for
// tests alone.
package masktest

import (
	"encoding/base64"
	"encoding/hex"
	"html"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Finds reports whether a text has a value. It is the oracle of the masker, and shares nothing with it: it
// decodes a text in every way that a reader might, by the decoders of the standard library and regular
// expressions, and looks for the value in all that comes out.
func Finds(text, value string) bool {
	want := fold(value)
	seen := map[string]bool{}
	level := []string{text}
	for range 4 {
		var next []string
		for _, t := range level {
			if seen[t] {
				continue
			}
			seen[t] = true
			folded := fold(t)
			if strings.Contains(folded, want) || strings.Contains(strings.ReplaceAll(folded, "+", " "), strings.ReplaceAll(want, "+", " ")) {
				return true
			}
			next = append(next, readings(t)...)
		}
		level = next
	}
	return false
}

func fold(s string) string {
	s = strings.ReplaceAll(strings.ReplaceAll(s, "ẞ", "ss"), "ß", "ss")
	return strings.ToLower(strings.ToUpper(s))
}

var (
	jsonUnicode  = regexp.MustCompile(`(\\u[0-9a-fA-F]{4})+|\\["\\/bfnrt]`)
	percent      = regexp.MustCompile(`(%[0-9a-fA-F]{2})+`)
	base64Digits = regexp.MustCompile(`[A-Za-z0-9+/_-]{10,}`)
	hexDigits    = regexp.MustCompile(`[0-9a-fA-F]([ +]?[0-9a-fA-F]){11,}`)
	lineBreaks   = regexp.MustCompile(`\r?\n`)
)

// readings are the texts that t may become by one decoding.
func readings(t string) (out []string) {
	if s := jsonUnicode.ReplaceAllStringFunc(t, func(m string) string {
		if s, err := strconv.Unquote(`"` + strings.ReplaceAll(m, `\/`, `/`) + `"`); err == nil && utf8.ValidString(s) {
			return s
		}
		return m
	}); s != t {
		out = append(out, s)
	}
	if s := percent.ReplaceAllStringFunc(t, func(m string) string {
		s, err := url.PathUnescape(m)
		if err != nil {
			return m
		}
		return s
	}); s != t {
		out = append(out, s)
	}
	if s := html.UnescapeString(t); s != t {
		out = append(out, s)
	}
	for _, t := range []string{t, lineBreaks.ReplaceAllString(t, "")} {
		for _, run := range base64Digits.FindAllString(t, -1) {
			run = strings.NewReplacer("-", "+", "_", "/").Replace(run)
			for skip := range 4 {
				digits := run[skip:]
				if len(digits)%4 == 1 {
					digits = digits[:len(digits)-1]
				}
				if data, err := base64.RawStdEncoding.DecodeString(digits); err == nil {
					out = append(out, string(data))
				}
			}
		}
		for _, run := range hexDigits.FindAllString(t, -1) {
			run = strings.NewReplacer(" ", "", "+", "").Replace(run)
			for skip := range 2 {
				digits := run[skip:]
				if data, err := hex.DecodeString(digits[:len(digits)/2*2]); err == nil {
					out = append(out, string(data))
				}
			}
		}
	}
	return out
}
