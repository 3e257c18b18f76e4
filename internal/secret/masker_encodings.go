package secret

import (
	"bytes"
	"encoding/json"
	"html"
	"slices"
	"strconv"
	"unicode/utf8"
)

// escape is one way to write a character by others. read returns the value of the escape at the beginning of
// a text and the length of the escape; 0 where there is none.
type escape struct {
	mark byte
	read func([]byte) ([]byte, int)
}

var escapes = []escape{{'\\', jsonEscape}, {'%', urlEscape}, {'&', htmlEscape}}

// unescape returns text with every escape replaced by its value, and where each part comes from; nil where
// there is none.
func (e escape) unescape(text []byte) (plain []byte, from pieces) {
	next := bytes.IndexByte(text, e.mark)
	if next < 0 {
		return nil, nil
	}
	done := 0 // what is in plain already
	for next >= 0 {
		meant, n := e.read(text[next:])
		if n == 0 {
			n = 1
		} else {
			if plain == nil {
				plain = make([]byte, 0, len(text))
			}
			from.add(len(plain), next-done, done, next-done)
			plain = append(plain, text[done:next]...)
			from.add(len(plain), len(meant), next, n)
			plain = append(plain, meant...)
			done = next + n
		}
		next += n
		if k := bytes.IndexByte(text[next:], e.mark); k >= 0 {
			next += k
		} else {
			next = -1
		}
	}
	if plain == nil {
		return nil, nil
	}
	from.add(len(plain), len(text)-done, done, len(text)-done)
	return append(plain, text[done:]...), from
}

// jsonEscape reads an escape of JSON (RFC 8259, 7), or \xNN or \u{N}, which JavaScript and other languages
// write.
func jsonEscape(s []byte) ([]byte, int) {
	if len(s) < 2 {
		return nil, 0
	}
	switch s[1] {
	case '\'', '`':
		return s[1:2], 2
	case 'x':
		if len(s) >= 4 && hexValue(s[2]) >= 0 && hexValue(s[3]) >= 0 {
			return []byte{byte(hexValue(s[2])<<4 | hexValue(s[3]))}, 4
		}
		return nil, 0
	case 'u':
		if end := bytes.IndexByte(s[:min(len(s), 12)], '}'); end > 3 && s[2] == '{' {
			if r, err := strconv.ParseUint(string(s[3:end]), 16, 32); err == nil && utf8.ValidRune(rune(r)) {
				return utf8.AppendRune(nil, rune(r)), end + 1
			}
		}
	}
	n := 2
	if s[1] == 'u' {
		n = 6
		if len(s) >= 12 && s[6] == '\\' && s[7] == 'u' && (s[2] == 'd' || s[2] == 'D') {
			n = 12 // a surrogate pair, mostly
		}
	}
	var text string
	if len(s) < n || json.Unmarshal([]byte(`"`+string(s[:n])+`"`), &text) != nil {
		return nil, 0
	}
	return []byte(text), n
}

// urlEscape reads a percent-encoded byte (RFC 3986, 2.1).
func urlEscape(s []byte) ([]byte, int) {
	if len(s) < 3 || hexValue(s[1]) < 0 || hexValue(s[2]) < 0 {
		return nil, 0
	}
	return []byte{byte(hexValue(s[1])<<4 | hexValue(s[2]))}, 3
}

// longestReference is the length of the longest named character reference of HTML,
// &CounterClockwiseContourIntegral;.
const longestReference = 33

// htmlEscape reads a character reference.
func htmlEscape(s []byte) ([]byte, int) {
	n := 1
	for n < len(s) && n < longestReference && (alphanumeric(s[n]) || n == 1 && s[n] == '#') {
		n++
	}
	if n < len(s) && s[n] == ';' {
		n++
	}
	meant := html.UnescapeString(string(s[:n]))
	if meant == string(s[:n]) {
		return nil, 0
	}
	for n > 2 { // some names need no semicolon, and letters may follow
		shorter := html.UnescapeString(string(s[:n-1]))
		if shorter == string(s[:n-1]) || shorter+string(s[n-1:n]) != meant {
			break
		}
		meant, n = shorter, n-1
	}
	return []byte(meant), n
}

func alphanumeric(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

func hexValue(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

// code is an encoding of bytes as digits of a few bits each.
type code struct {
	bits int
	// alignments are the digits at which a byte may begin.
	alignments int
	value      [256]int8 // of a digit; none for what is no digit, between for what may be between two
}

const (
	none    = -1
	between = -2
	// gap parts runs among digits.
	gap = 0xff
)

var (
	base64Code = newCode(6, 4, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", "\r\n")
	hexCode    = newCode(4, 2, "0123456789abcdef", " +:-,\r\n")
)

func newCode(bits, alignments int, digits, separators string) code {
	c := code{bits: bits, alignments: alignments}
	for i := range c.value {
		c.value[i] = none
	}
	for i := range len(digits) {
		c.value[digits[i]] = int8(i)
	}
	for i := range len(separators) {
		c.value[separators[i]] = between
	}
	if bits == 6 {
		c.value['-'], c.value['_'] = 62, 63
	} else {
		for d := range 6 {
			c.value['A'+d] = int8(10 + d)
		}
	}
	return c
}

// mostBetween is how many characters may be between two digits: a line break of two.
const mostBetween = 2

// runs returns the digits of all runs in text that are long enough for a value, each run followed by a gap,
// and the position of each digit in text.
func (c *code) runs(text []byte) (digits []byte, at []int32) {
	least := (MinText*8 + c.bits - 1) / c.bits
	begin, apart := 0, 0 // of the run that is read
	end := func() {
		if len(digits)-begin < least {
			digits, at = digits[:begin], at[:begin]
		} else {
			digits, at = append(digits, gap), append(at, 0)
		}
		begin, apart = len(digits), 0
	}
	for i, b := range text {
		switch v := c.value[b]; {
		case v >= 0:
			if digits == nil {
				digits, at = make([]byte, 0, len(text)-i+1), make([]int32, 0, len(text)-i+1)
			}
			digits, at, apart = append(digits, byte(v)), append(at, int32(i)), 0
		case v == between && len(digits) > begin && apart < mostBetween:
			apart++
		case len(digits) > begin:
			end()
		}
	}
	if len(digits) > begin {
		end()
	}
	return digits, at
}

// decode returns the bytes of runs of digits, the first byte of each run beginning at its digit skip, with a
// byte that no text has between two runs, and a function that maps bytes i to j to the digits that they come
// from.
func (c *code) decode(digits []byte, skip int) ([]byte, func(i, j int) (from, to int)) {
	if len(digits) == 0 {
		return nil, nil
	}
	type run struct{ out, digit int } // where each begins
	var runs []run
	out := make([]byte, 0, len(digits)*c.bits/8+1)
	for begin := 0; begin < len(digits); {
		length := bytes.IndexByte(digits[begin:], gap)
		runs = append(runs, run{len(out), begin + skip})
		var have, bits uint
		for _, d := range digits[min(begin+skip, begin+length) : begin+length] {
			have, bits = have<<c.bits|uint(d), bits+uint(c.bits)
			if bits >= 8 {
				bits -= 8
				out = append(out, byte(have>>bits))
			}
		}
		out = append(out, 0xff)
		begin += length + 1
	}
	return out, func(i, j int) (from, to int) {
		k, found := slices.BinarySearchFunc(runs, i, func(r run, i int) int { return r.out - i })
		if !found {
			k--
		}
		r := runs[k]
		return r.digit + (i-r.out)*8/c.bits, r.digit + ((j-r.out)*8+c.bits-1)/c.bits
	}
}
