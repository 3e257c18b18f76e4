package contract

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"
)

// appendJSON appends a decoded value in canonical form: no spaces, keys sorted, numbers with the digits that they have,
// strings with the fewest escapes.
func appendJSON(b []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return append(b, "null"...)
	case bool:
		if v {
			return append(b, "true"...)
		}
		return append(b, "false"...)
	case json.Number:
		return append(b, v...)
	case string:
		return appendString(b, v)
	case []any:
		b = append(b, '[')
		for i, item := range v {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendJSON(b, item)
		}
		return append(b, ']')
	case map[string]any:
		var few [16]string // keeps the keys of most calls off the heap
		keys := few[:0]
		for k := range v {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		b = append(b, '{')
		for i, k := range keys {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendString(b, k)
			b = append(b, ':')
			b = appendJSON(b, v[k])
		}
		return append(b, '}')
	}
	panic("contract: a decoded value is one of JSON's six kinds")
}

func appendString(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c >= 0x20:
			b = append(b, c)
		case c == '\n':
			b = append(b, '\\', 'n')
		case c == '\r':
			b = append(b, '\\', 'r')
		case c == '\t':
			b = append(b, '\\', 't')
		default:
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
	}
	return append(b, '"')
}

// Integer is n without fraction and exponent where its value is whole: 5.0 is 5, 1e2 is 100, -0 is 0; else it is n. The
// exponent must be one that a decoder has bounded, as Check's has.
func Integer(n json.Number) json.Number {
	s := string(n)
	if !strings.ContainsAny(s, ".eE") {
		if s == "-0" {
			return "0"
		}
		return n
	}
	sign := ""
	if s[0] == '-' {
		sign, s = "-", s[1:]
	}
	mantissa, exponent := s, 0
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		mantissa = s[:i]
		exponent = smallInt(s[i+1:])
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits, point := whole+fraction, len(whole)+exponent
	if strings.Trim(digits, "0") == "" {
		return "0"
	}
	switch {
	case point <= 0:
		return n
	case point >= len(digits):
		digits += strings.Repeat("0", point-len(digits))
	case strings.Trim(digits[point:], "0") != "":
		return n
	default:
		digits = digits[:point]
	}
	return json.Number(sign + strings.TrimLeft(digits, "0"))
}

// smallInt reads an exponent, which the decoder has bounded.
func smallInt(s string) int {
	n, sign := 0, 1
	for _, c := range s {
		switch c {
		case '-':
			sign = -1
		case '+':
		default:
			n = n*10 + int(c-'0')
		}
	}
	return sign * n
}

// clip is at most 60 characters of s, on one line.
func clip(s string) string { return clipTo(s, 60) }

// clipTo is at most so many characters of s, on one line.
func clipTo(s string, most int) string {
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
