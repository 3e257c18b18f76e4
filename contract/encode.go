package contract

import (
	"encoding/json"
	"slices"
	"strings"
)

// appendJSON appends a decoded value in canonical form: no spaces, sorted keys, numbers with their original
// digits, strings with the fewest escapes.
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

// Integer returns n without fraction and exponent if its value is an integer: 5.0 becomes 5, 1e2 becomes 100,
// -0 becomes 0; otherwise it returns n. A decoder must have bounded the exponent, as Check's does.
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

// smallInt parses an exponent, which the decoder has bounded.
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
