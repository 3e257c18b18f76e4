package secret

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// JSON returns raw with the marker in the place of every value in its strings, keys included, and of every
// number that is a value or that a pattern matches. Strings are decoded first, so that no way of writing one
// hides a value; a string without a value keeps its bytes. What is not JSON becomes the marker.
func (m *Masker) JSON(raw json.RawMessage) json.RawMessage {
	if m == nil || len(raw) == 0 {
		return raw
	}
	if !json.Valid(raw) {
		return quoted(m.marker)
	}
	var out []byte
	done := 0
	put := func(begin, end int, text string) {
		out = append(append(out, raw[done:begin]...), quoted(text)...)
		done = end
	}
	for i := 0; i < len(raw); i++ {
		begin := i
		switch c := raw[i]; {
		case c == '"':
			for i++; raw[i] != '"'; i++ {
				if raw[i] == '\\' {
					i++
				}
			}
			var meant string
			if json.Unmarshal(raw[begin:i+1], &meant) != nil {
				continue
			}
			if masked := m.Replace(meant); masked != meant {
				put(begin, i+1, masked)
			}
		case c == '-' || c >= '0' && c <= '9':
			for i+1 < len(raw) && strings.IndexByte("+-.eE0123456789", raw[i+1]) >= 0 {
				i++
			}
			if m.Number(string(raw[begin : i+1])) {
				put(begin, i+1, m.marker)
			}
		}
	}
	if done == 0 {
		return raw
	}
	return append(out, raw[done:]...)
}

// Number reports whether a number of JSON is a value, however it is written, or has what a pattern matches.
func (m *Masker) Number(n string) bool {
	if m == nil {
		return false
	}
	if m.Is(n) || slices.ContainsFunc(m.patterns, func(p *regexp.Regexp) bool { return len(p.FindString(n)) > 0 }) {
		return true
	}
	if len(m.numbers) == 0 || !strings.ContainsAny(n, ".eE") && !m.fractions {
		return false
	}
	f, err := strconv.ParseFloat(n, 64)
	return err == nil && slices.Contains(m.numbers, f)
}

// number notes a value that is a number.
func (m *Masker) number(value string) {
	if len(value) < MinText {
		return // so few digits are common, and mean many things
	}
	if f, err := strconv.ParseFloat(value, 64); err == nil {
		m.numbers = append(m.numbers, f)
		m.fractions = m.fractions || strings.ContainsAny(value, ".eE")
	}
}

func quoted(s string) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		panic("secret: a string has no JSON form: " + err.Error())
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
