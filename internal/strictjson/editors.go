package strictjson

import (
	"bytes"
	"slices"
)

// Standardize is a copy of JSON as editors take it, with its comments and trailing commas blanked out: every
// byte that is left keeps its offset. A comment that is not closed is an *Error; whatever else is wrong is
// left to whoever reads it.
func Standardize(data []byte) ([]byte, error) {
	out := slices.Clone(data)
	// comma is the offset of what may be a trailing comma, last the last byte that is no space and no comment.
	comma, last := -1, byte(0)
	for i := 0; i < len(data); {
		rest := data[i:]
		switch {
		case bytes.IndexByte([]byte(" \t\r\n"), rest[0]) >= 0:
			i++
			continue
		case bytes.HasPrefix(rest, []byte("//")):
			end := bytes.IndexByte(rest, '\n')
			if end < 0 {
				end = len(rest)
			}
			i = blank(out, i, i+end)
			continue
		case bytes.HasPrefix(rest, []byte("/*")):
			end := bytes.Index(rest[2:], []byte("*/"))
			if end < 0 {
				return nil, &Error{Problem: ClosingComment, Offset: i, Token: i}
			}
			i = blank(out, i, i+end+4)
			continue
		}
		after := last
		last = rest[0]
		switch last {
		case '"':
			i += quoted(rest)
			comma = -1
			continue
		case ',':
			comma = -1
			if after != 0 && bytes.IndexByte([]byte("[{:,"), after) < 0 { // a trailing comma is one after a value
				comma = i
			}
		case '}', ']':
			if comma >= 0 {
				out[comma] = ' '
			}
			comma = -1
		default:
			comma = -1
		}
		i++
	}
	return out, nil
}

// quoted is the length of the string that data begin with, which ends with its line at the latest.
func quoted(data []byte) int {
	for i := 1; i < len(data) && data[i] != '\n'; i++ {
		switch data[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(data)
}

// blank overwrites out from one offset to another, but for the ends of lines.
func blank(out []byte, from, to int) int {
	for i := from; i < to; i++ {
		if out[i] != '\n' {
			out[i] = ' '
		}
	}
	return to
}
