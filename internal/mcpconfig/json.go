package mcpconfig

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

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

// value is one value of the file with its place.
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

// parser reads JSON (RFC 8259) with comments and trailing commas, as VS Code, Cursor and Zed take it. Its errors name
// places and what is expected, never what stands there: that may be a secret.
type parser struct {
	file string
	data string
	at   int
	// line and start are the line of at and the offset of its first byte.
	line, start int
}

func parse(file string, data []byte) (*value, error) {
	p := &parser{file: file, data: strings.TrimPrefix(string(data), "\uFEFF"), line: 1}
	if len(data) > MaxBytes {
		return nil, &RefusedError{[]Note{{problem.Position{File: file}, "", fmt.Sprintf("the file is larger than %d bytes", MaxBytes)}}}
	}
	v, err := p.document()
	if err != nil {
		return nil, &RefusedError{[]Note{*err}}
	}
	return v, nil
}

func (p *parser) document() (*value, *Note) {
	if i := invalidUTF8(p.data); i >= 0 {
		for p.at < i {
			p.step()
		}
		return nil, p.wrong("the file is not UTF-8 here")
	}
	if err := p.space(); err != nil {
		return nil, err
	}
	if p.at == len(p.data) {
		return nil, p.wrong("the file is empty; a client's configuration is a JSON object")
	}
	v, err := p.value(0)
	if err != nil {
		return nil, err
	}
	if err := p.space(); err != nil {
		return nil, err
	}
	if p.at < len(p.data) {
		return nil, p.wrong("not JSON: the value ends before this, and nothing may follow it")
	}
	return v, nil
}

func invalidUTF8(s string) int {
	for i, r := range s {
		if r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD") {
			return i
		}
	}
	return -1
}

// pos is the place of the next byte; columns count bytes, as CUE's do.
func (p *parser) pos() problem.Position {
	return problem.Position{File: p.file, Line: p.line, Col: p.at - p.start + 1}
}

func (p *parser) wrong(message string) *Note { return &Note{p.pos(), "", message} }

func (p *parser) step() {
	if p.data[p.at] == '\n' {
		p.line, p.start = p.line+1, p.at+1
	}
	p.at++
}

// next is the next byte, or 0 at the end.
func (p *parser) next() byte {
	if p.at < len(p.data) {
		return p.data[p.at]
	}
	return 0
}

// space passes over blanks and comments.
func (p *parser) space() *Note {
	for p.at < len(p.data) {
		rest := p.data[p.at:]
		switch {
		case strings.IndexByte(" \t\r\n", rest[0]) >= 0:
			p.step()
		case strings.HasPrefix(rest, "//"):
			for p.at < len(p.data) && p.data[p.at] != '\n' {
				p.step()
			}
		case strings.HasPrefix(rest, "/*"):
			end := strings.Index(rest[2:], "*/")
			if end < 0 {
				return p.wrong("not JSON: the comment that begins here is not closed")
			}
			for range end + 4 {
				p.step()
			}
		default:
			return nil
		}
	}
	return nil
}

func (p *parser) value(depth int) (*value, *Note) {
	if depth > maxDepth {
		return nil, p.wrong(fmt.Sprintf("values are nested deeper than %d here", maxDepth))
	}
	v := &value{pos: p.pos()}
	switch c := p.next(); {
	case c == '{':
		v.kind = object
		return v, p.members(v, depth)
	case c == '[':
		v.kind = list
		return v, p.items(v, depth)
	case c == '"':
		v.kind = text
		s, err := p.string()
		v.text = s
		return v, err
	}
	end := p.at
	for end < len(p.data) && strings.IndexByte(" \t\r\n,]}/:\"[{", p.data[end]) < 0 {
		end++
	}
	word := p.data[p.at:end]
	switch {
	case word == "true" || word == "false":
		v.kind = boolean
	case word == "null":
		v.kind = null
	case word != "" && json.Valid([]byte(word)):
		v.kind = number
	default:
		return nil, p.wrong("not JSON: a value is expected here")
	}
	v.text = word
	p.at = end
	return v, nil
}

func (p *parser) members(v *value, depth int) *Note {
	p.step()
	for {
		if err := p.space(); err != nil {
			return err
		}
		if p.next() == '}' {
			p.step()
			return nil
		}
		if p.next() != '"' {
			return p.wrong("not JSON: a key in double quotes, or }, is expected here")
		}
		at := p.pos()
		key, err := p.string()
		if err != nil {
			return err
		}
		for _, m := range v.members {
			if m.key == key {
				return &Note{at, "", fmt.Sprintf("the key %q stands twice in one object, first at line %d; take one away", shown(key), m.pos.Line)}
			}
		}
		if err := p.space(); err != nil {
			return err
		}
		if p.next() != ':' {
			return p.wrong("not JSON: a colon is expected here")
		}
		p.step()
		if err := p.space(); err != nil {
			return err
		}
		member := member{key: key, pos: at}
		if member.value, err = p.value(depth + 1); err != nil {
			return err
		}
		v.members = append(v.members, member)
		if err := p.separator('}'); err != nil {
			return err
		}
	}
}

func (p *parser) items(v *value, depth int) *Note {
	p.step()
	for {
		if err := p.space(); err != nil {
			return err
		}
		if p.next() == ']' {
			p.step()
			return nil
		}
		item, err := p.value(depth + 1)
		if err != nil {
			return err
		}
		v.items = append(v.items, item)
		if err := p.separator(']'); err != nil {
			return err
		}
	}
}

// separator takes a comma, or leaves what closes.
func (p *parser) separator(closing byte) *Note {
	if err := p.space(); err != nil {
		return err
	}
	switch p.next() {
	case ',':
		p.step()
	case closing:
	default:
		return p.wrong(fmt.Sprintf("not JSON: a comma or %c is expected here", closing))
	}
	return nil
}

// string reads a string by the rules of encoding/json, which knows every escape.
func (p *parser) string() (string, *Note) {
	for end := p.at + 1; end < len(p.data) && p.data[end] != '\n'; end++ {
		switch p.data[end] {
		case '\\':
			end++
		case '"':
			var s string
			if json.Unmarshal([]byte(p.data[p.at:end+1]), &s) != nil {
				return "", p.wrong("not JSON: the string that begins here holds an escape or a control character that JSON does not know")
			}
			p.at = end + 1
			return s, nil
		}
	}
	return "", p.wrong("not JSON: the string that begins here is not closed on its line")
}
