package contract

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

const (
	// maxDepth bounds nesting, so that no document can exhaust a stack here or in what runs after the check.
	maxDepth = 128
	// maxNumber bounds a number's text and its exponent: 1e1000000000 is twelve bytes, and a gigabyte once it is digits.
	maxNumber   = 400
	maxExponent = 400
)

// decoder reads one JSON document strictly: it refuses what readers of JSON disagree on (duplicate keys, lone
// surrogates, invalid UTF-8, numbers beyond a float64), because the bytes that were checked here are read again by
// policies, bindings and upstream servers, and all of them must see the same thing. Numbers keep their digits.
//
// A duplicate key or a bad number is noted and reading goes on; broken syntax ends it.
type decoder struct {
	in    []byte
	at    int
	path  []segment
	found []Violation
	// inOrder has objects be *ordered.
	inOrder bool
}

// segment is one step of a JSON pointer: a key, or an index where array is set.
type segment struct {
	key   string
	index int
	array bool
}

// broken is the panic by which nested readers give up; decode turns it into a Violation.
type broken struct{ expected string }

// decode reads all of in. Its result is meaningless when it found a violation.
func decode(in []byte) (v any, found []Violation) { return (&decoder{in: in}).decode() }

func (d *decoder) decode() (v any, found []Violation) {
	defer func() {
		if r := recover(); r != nil {
			b, ok := r.(broken)
			if !ok {
				panic(r)
			}
			d.note(fmt.Sprintf("broken JSON at byte %d", d.at), b.expected)
			v, found = nil, d.found
		}
	}()
	v = d.value()
	if d.space(); d.at < len(d.in) {
		d.fail("one JSON object and nothing after it")
	}
	return v, d.found
}

func (d *decoder) fail(expected string) { panic(broken{expected}) }

func (d *decoder) note(got, expected string) {
	if len(d.found) < maxViolations {
		d.found = append(d.found, Violation{Pointer: d.pointer(), Got: got, Expected: expected})
	}
}

func (d *decoder) pointer() string {
	var b strings.Builder
	for _, s := range d.path {
		b.WriteByte('/')
		if s.array {
			b.WriteString(strconv.Itoa(s.index))
		} else {
			b.WriteString(escapePointer(s.key))
		}
	}
	return b.String()
}

func (d *decoder) space() {
	for d.at < len(d.in) {
		switch d.in[d.at] {
		case ' ', '\t', '\n', '\r':
			d.at++
		default:
			return
		}
	}
}

// next is the next byte that is no space, unread; 0 at the end.
func (d *decoder) next() byte {
	d.space()
	if d.at < len(d.in) {
		return d.in[d.at]
	}
	return 0
}

func (d *decoder) value() any {
	switch c := d.next(); {
	case c == '{':
		return d.object()
	case c == '[':
		return d.array()
	case c == '"':
		return d.string()
	case c == '-' || '0' <= c && c <= '9':
		return d.number()
	case c == 't' && d.word("true"):
		return true
	case c == 'f' && d.word("false"):
		return false
	case c == 'n' && d.word("null"):
		return nil
	}
	d.fail("a JSON value")
	return nil
}

func (d *decoder) word(w string) bool {
	if len(d.in)-d.at < len(w) || string(d.in[d.at:d.at+len(w)]) != w {
		return false
	}
	d.at += len(w)
	return true
}

func (d *decoder) enter() {
	if len(d.path) >= maxDepth {
		d.path = nil // a pointer of that many steps helps nobody
		d.fail(fmt.Sprintf("at most %d levels of nesting", maxDepth))
	}
}

func (d *decoder) object() any {
	d.enter()
	d.at++
	object, members := make(map[string]any), &ordered{}
	if d.next() == '}' {
		d.at++
		return d.either(object, members)
	}
	for {
		if d.next() != '"' {
			d.fail("a key in double quotes")
		}
		key := d.string()
		if d.next() != ':' {
			d.fail("a colon after a key")
		}
		d.at++
		d.path = append(d.path, segment{key: key})
		if _, dup := object[key]; dup {
			d.note("the key twice in one object", "each key once")
		}
		object[key] = d.value()
		if d.inOrder {
			members.members = append(members.members, orderedMember{key, object[key]})
		}
		d.path = d.path[:len(d.path)-1]
		switch d.next() {
		case ',':
			d.at++
		case '}':
			d.at++
			return d.either(object, members)
		default:
			d.fail("a comma or } in an object")
		}
	}
}

func (d *decoder) either(object map[string]any, members *ordered) any {
	if d.inOrder {
		return members
	}
	return object
}

func (d *decoder) array() any {
	d.enter()
	d.at++
	array := []any{}
	if d.next() == ']' {
		d.at++
		return array
	}
	for {
		d.path = append(d.path, segment{index: len(array), array: true})
		array = append(array, d.value())
		d.path = d.path[:len(d.path)-1]
		switch d.next() {
		case ',':
			d.at++
		case ']':
			d.at++
			return array
		default:
			d.fail("a comma or ] in an array")
		}
	}
}

// number reads a number by JSON's grammar and keeps its text.
func (d *decoder) number() any {
	start := d.at
	if d.in[d.at] == '-' {
		d.at++
	}
	switch whole := d.digits(); {
	case whole == 0:
		d.fail("a digit")
	case whole > 1 && d.in[d.at-whole] == '0':
		d.fail("a number without leading zeros")
	}
	if d.at < len(d.in) && d.in[d.at] == '.' {
		d.at++
		if d.digits() == 0 {
			d.fail("a digit after the decimal point")
		}
	}
	exponent := 0
	if d.at < len(d.in) && (d.in[d.at] == 'e' || d.in[d.at] == 'E') {
		d.at++
		if d.at < len(d.in) && (d.in[d.at] == '+' || d.in[d.at] == '-') {
			d.at++
		}
		n := d.digits()
		if n == 0 {
			d.fail("a digit in the exponent")
		}
		for _, c := range d.in[d.at-n : d.at] {
			exponent = min(exponent*10+int(c-'0'), maxExponent+1)
		}
	}
	text := string(d.in[start:d.at])
	if !d.sane(text, exponent) {
		d.note("the number "+clip(text), "a number that a 64-bit float can hold")
	}
	return json.Number(text)
}

func (d *decoder) sane(text string, exponent int) bool {
	if len(text) < 16 && exponent == 0 {
		return true
	}
	if len(text) > maxNumber || exponent > maxExponent {
		return false
	}
	_, err := strconv.ParseFloat(text, 64)
	return err == nil
}

func (d *decoder) digits() (n int) {
	for d.at < len(d.in) && '0' <= d.in[d.at] && d.in[d.at] <= '9' {
		d.at++
		n++
	}
	return n
}

func (d *decoder) string() string {
	d.at++
	start := d.at
	for d.at < len(d.in) {
		switch c := d.in[d.at]; {
		case c == '"':
			s := string(d.in[start:d.at])
			if !utf8.ValidString(s) {
				d.fail("text in UTF-8")
			}
			d.at++
			return s
		case c == '\\':
			return d.escaped(start)
		case c < 0x20:
			d.fail("control characters in a string escaped")
		}
		d.at++
	}
	d.fail("a closing double quote")
	return ""
}

// escaped reads the rest of a string that has escapes, from its first one on.
func (d *decoder) escaped(start int) string {
	out := append(make([]byte, 0, d.at-start+32), d.in[start:d.at]...)
	for d.at < len(d.in) {
		c := d.in[d.at]
		switch {
		case c == '"':
			if !utf8.Valid(out) {
				d.fail("text in UTF-8")
			}
			d.at++
			return string(out)
		case c < 0x20:
			d.fail("control characters in a string escaped")
		case c != '\\':
			out = append(out, c)
			d.at++
			continue
		}
		d.at++
		if d.at == len(d.in) {
			break
		}
		e := d.in[d.at]
		d.at++
		if i := strings.IndexByte(`"\/bfnrt`, e); i >= 0 {
			out = append(out, "\"\\/\b\f\n\r\t"[i])
			continue
		}
		if e != 'u' {
			d.fail("an escape that JSON knows")
		}
		r := d.hex4()
		if utf16.IsSurrogate(r) {
			if !d.word(`\u`) {
				d.fail("both halves of a surrogate pair")
			}
			if r = utf16.DecodeRune(r, d.hex4()); r == utf8.RuneError {
				d.fail("both halves of a surrogate pair")
			}
		}
		out = utf8.AppendRune(out, r)
	}
	d.fail("a closing double quote")
	return ""
}

func (d *decoder) hex4() rune {
	if len(d.in)-d.at < 4 {
		d.fail("four hexadecimal digits after \\u")
	}
	n, err := strconv.ParseUint(string(d.in[d.at:d.at+4]), 16, 16)
	if err != nil {
		d.fail("four hexadecimal digits after \\u")
	}
	d.at += 4
	return rune(n)
}
