package importer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/catalogd/catalogd/internal/strictjson"
	"github.com/catalogd/catalogd/problem"
)

// MaxBytes and maxDepth cap what is read: the files are written by hand.
const (
	MaxBytes = 4 << 20
	maxDepth = 64
)

type kind string

const (
	object  kind = "an object"
	list    kind = "a list"
	text    kind = "a string"
	number  kind = "a number"
	boolean kind = "true or false"
	null    kind = "null"
)

// value is one value of the file with its position.
type value struct {
	kind kind
	pos  problem.Position
	// text is a string's content, a number's or boolean's spelling.
	text    string
	members []member
	items   []*value
}

type member struct {
	key   string
	pos   problem.Position
	value *value
}

// get is the member of that key, or nil; null counts as absent.
func (v *value) get(key string) *value {
	if v == nil {
		return nil
	}
	for _, m := range v.members {
		if m.key == key && m.value.kind != null {
			return m.value
		}
	}
	return nil
}

// equal reports whether two values say the same, wherever they stand.
func (v *value) equal(other *value) bool {
	return v.kind == other.kind && v.text == other.text &&
		slices.EqualFunc(v.members, other.members, func(a, b member) bool { return a.key == b.key && a.value.equal(b.value) }) &&
		slices.EqualFunc(v.items, other.items, (*value).equal)
}

// anyText reports whether a string in the value, at any depth, satisfies the predicate.
func (v *value) anyText(is func(string) bool) bool {
	return v != nil && (v.kind == text && is(v.text) ||
		slices.ContainsFunc(v.members, func(m member) bool { return m.value.anyText(is) }) ||
		slices.ContainsFunc(v.items, func(item *value) bool { return item.anyText(is) }))
}

// source is a file: its text without a byte order mark, and the same without comments and trailing commas.
type source struct {
	file       string
	text, data []byte
	// ends are the offsets of the ends of its lines.
	ends []int
}

// parse reads YAML, or JSON with comments and trailing commas, as VS Code, Cursor and Zed take it. Its errors
// name places and what is expected, never what is there: that may be a secret.
func parse(file string, data []byte) (*value, error) {
	s := &source{file: file, text: bytes.TrimPrefix(data, []byte("\uFEFF"))}
	for i, c := range s.text {
		if c == '\n' {
			s.ends = append(s.ends, i)
		}
	}
	if len(data) > MaxBytes {
		note := Note{problem.Position{File: file}, "", fmt.Sprintf("the file is larger than %d bytes", MaxBytes)}
		return nil, &RefusedError{[]Note{note}}
	}
	if at := strictjson.InvalidUTF8(s.text); at >= 0 {
		return nil, s.refused(at, "the file is not UTF-8 here")
	}
	if isYAML(s.text) {
		return parseYAML(file, s.text)
	}
	plain, err := strictjson.Standardize(s.text)
	if err != nil {
		return nil, s.explain(err)
	}
	s.data = plain
	if len(bytes.TrimSpace(plain)) == 0 {
		return nil, s.refused(len(plain), "the file is empty; a client's configuration is a JSON object")
	}
	root, err := strictjson.Decode(plain, strictjson.Options{MaxDepth: maxDepth})
	if err != nil {
		return nil, s.explain(err)
	}
	return s.value(root, len(plain)-len(bytes.TrimLeft(plain, " \t\r\n"))), nil
}

// value is a decoded value that begins at an offset.
func (s *source) value(decoded any, at int) *value {
	v := &value{pos: s.pos(at)}
	switch d := decoded.(type) {
	case *strictjson.Object:
		v.kind = object
		for _, m := range d.Members {
			v.members = append(v.members, member{m.Key, s.pos(m.KeyAt), s.value(m.Value, m.At)})
		}
	case []any:
		v.kind = list
		for i, offset := range strictjson.Elements(s.data, at) {
			v.items = append(v.items, s.value(d[i], offset))
		}
	case string:
		v.kind, v.text = text, d
	case json.Number:
		v.kind, v.text = number, d.String()
	case bool:
		v.kind, v.text = boolean, strconv.FormatBool(d)
	case nil:
		v.kind = null
	}
	return v
}

// pos is the position of an offset; columns count bytes, as CUE's do.
func (s *source) pos(at int) problem.Position {
	line, _ := slices.BinarySearch(s.ends, at) // how many lines end before it
	start := 0
	if line > 0 {
		start = s.ends[line-1] + 1
	}
	return problem.Position{File: s.file, Line: line + 1, Col: at - start + 1}
}

func (s *source) refused(at int, message string) *RefusedError {
	return &RefusedError{[]Note{{s.pos(at), "", message}}}
}

// explain says what is wrong with the file. Problems in a string are reported at its start.
func (s *source) explain(err error) error {
	var bad *strictjson.Error
	if !errors.As(err, &bad) {
		return err
	}
	expected := func(what string) error { return s.refused(bad.Token, "not JSON: "+what+" is expected here") }
	switch bad.Problem {
	case strictjson.Duplicate:
		message := fmt.Sprintf("duplicate key %q", shown(bad.Text))
		all, err := strictjson.Decode(s.data, strictjson.Options{MaxDepth: maxDepth, AllowDuplicates: true})
		if first := firstOf(all, bad.Offset); err == nil && first >= 0 {
			message += fmt.Sprintf(", first at line %d", s.pos(first).Line)
		}
		return s.refused(bad.Offset, message+"; remove one")
	case strictjson.Depth:
		return s.refused(bad.Offset, fmt.Sprintf("values are nested deeper than %d here", maxDepth))
	case strictjson.Trailing:
		return s.refused(bad.Offset, "not JSON: the value ends before this, and nothing may follow it")
	case strictjson.ClosingComment:
		return s.refused(bad.Offset, "not JSON: the comment that begins here is not closed")
	case strictjson.Key:
		return expected("a key in double quotes, or },")
	case strictjson.Colon:
		return expected("a colon")
	case strictjson.CommaInObject:
		return expected("a comma or }")
	case strictjson.CommaInList:
		return expected("a comma or ]")
	case strictjson.ClosingQuote:
		return s.refused(bad.Token, "not JSON: the string that begins here is not closed on its line")
	case strictjson.Control, strictjson.Escape, strictjson.HexDigits, strictjson.Surrogate:
		if bad.Offset < len(s.data) && s.data[bad.Offset] == '\n' {
			return s.refused(bad.Token, "not JSON: the string that begins here is not closed on its line")
		}
		return s.refused(bad.Token, "not JSON: the string that begins here contains an escape or a control character "+
			"that JSON does not know")
	}
	return expected("a value")
}

// firstOf is the offset of the first key that equals the one at an offset, in the same object; -1 where there
// is none.
func firstOf(v any, at int) int {
	switch v := v.(type) {
	case *strictjson.Object:
		for _, m := range v.Members {
			if m.KeyAt == at {
				first, _ := v.Member(m.Key)
				return first.KeyAt
			}
			if first := firstOf(m.Value, at); first >= 0 {
				return first
			}
		}
	case []any:
		for _, item := range v {
			if first := firstOf(item, at); first >= 0 {
				return first
			}
		}
	}
	return -1
}
