package clients

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/catalogd/catalogd/internal/strictjson"
)

// Merge returns a client's configuration file with the entry of one server in it, in place of an entry of that
// name, and with the inputs that the entry needs. Every other byte stays as it is: comments, order, indentation,
// ends of lines. What it did is added, replaced or unchanged. It refuses a file that is not JSON, with comments
// and trailing commas as editors take it, or whose servers are no object.
func (c Client) Merge(file []byte, s Server) (merged []byte, did string, err error) {
	if c.YAML {
		return nil, "", fmt.Errorf("%s's file is YAML, which is not merged into: put in what is printed without --merge",
			c.Title)
	}
	for _, input := range c.inputs(s) {
		if file, err = appendInput(file, input); err != nil {
			return nil, "", err
		}
	}
	d, err := parseDocument(file)
	if err != nil {
		return nil, "", err
	}
	return d.set([]string{c.Under[0], s.Name}, c.server(s))
}

// document is a JSON object as editors take it. plain has its comments and trailing commas blanked out, with the
// same offsets.
type document struct {
	text, plain []byte
	root        *strictjson.Object
	open, end   int // of the root
	unit, line  string
}

// maxDepth is the deepest nesting of a client's file.
const maxDepth = 64

func parseDocument(text []byte) (*document, error) {
	refused := func(err error) error {
		var bad *strictjson.Error
		if !errors.As(err, &bad) {
			return err
		}
		return fmt.Errorf("line %d: it is not JSON as an editor takes it; `catalogd import mcp-config` says what is wrong",
			1+bytes.Count(text[:min(bad.Offset, len(text))], []byte("\n")))
	}
	plain, err := strictjson.Standardize(text)
	if err != nil {
		return nil, refused(err)
	}
	root, err := strictjson.Decode(plain, strictjson.Options{MaxDepth: maxDepth})
	if err != nil {
		return nil, refused(err)
	}
	o, ok := root.(*strictjson.Object)
	if !ok {
		return nil, errors.New("it is no JSON object")
	}
	d := &document{text: text, plain: plain, root: o, line: "\n", unit: "  "}
	d.open, d.end = bytes.IndexByte(plain, '{'), bytes.LastIndexByte(plain, '}')+1
	if bytes.Contains(text, []byte("\r\n")) {
		d.line = "\r\n"
	}
	if len(o.Members) > 0 {
		if indent, first := d.indentAt(o.Members[0].KeyAt); first && indent != "" {
			d.unit = indent
		}
	}
	return d, nil
}

// set sets the member at a path of keys, of which the last need not be there, and neither those before it.
func (d *document) set(path []string, value any) (text []byte, did string, err error) {
	in, open, end := d.root, d.open, d.end
	for i, key := range path {
		m, ok := in.Member(key)
		last := i == len(path)-1
		switch {
		case !ok:
			for j := len(path) - 1; j > i; j-- {
				value = strictjson.New(path[j], value)
			}
			return d.insert(open, end, members(in), key, value), "added", nil
		case last && bytes.Equal(strictjson.AppendSorted(nil, m.Value), strictjson.AppendSorted(nil, value)):
			return d.text, "unchanged", nil
		case last:
			indent, _ := d.indentAt(m.KeyAt)
			return d.splice(m.At, m.End, d.written(value, indent)), "replaced", nil
		}
		if in, ok = m.Value.(*strictjson.Object); !ok {
			return nil, "", fmt.Errorf("%s is no object", strings.Join(path[:i+1], "."))
		}
		open, end = m.At, m.End
	}
	return nil, "", errors.New("a path has no key")
}

// span is where a member of an object or an item of a list begins and ends.
type span struct{ at, end int }

func members(o *strictjson.Object) (spans []span) {
	for _, m := range o.Members {
		spans = append(spans, span{m.KeyAt, m.End})
	}
	return spans
}

// insert adds a member, or with an empty key an item, at the end of the object or list from open to end.
func (d *document) insert(open, end int, all []span, key string, value any) []byte {
	name := ""
	if key != "" {
		name = string(strictjson.Append(nil, key)) + ": "
	}
	outer, _ := d.indentAt(open)
	indent, at, comma := outer+d.unit, open+1, ""
	if len(all) > 0 {
		if own, first := d.indentAt(all[len(all)-1].at); first {
			indent = own
		}
		at, comma = all[len(all)-1].end, ","
		if !bytes.Contains(d.text[open:end], []byte("\n")) {
			return d.splice(at, at, ", "+name+string(strictjson.Append(nil, value)))
		}
	}
	after, trailing := d.rest(at, end-1)
	if trailing {
		comma = ""
	}
	closing := ""
	if !bytes.Contains(d.text[after:end-1], []byte("\n")) {
		closing = d.line + outer
	}
	text := comma + string(d.text[at:after]) + d.line + indent + name + d.written(value, indent) + closing
	return d.splice(at, after, text)
}

// rest returns the end of what stands between an offset and the closing bracket beside blanks, which are comments
// and a trailing comma, and whether there is one.
func (d *document) rest(from, to int) (after int, comma bool) {
	after = from
	for i := from; i < to; i++ {
		switch c := d.text[i]; {
		case c == ' ' || c == '\t' || c == '\r' || c == '\n':
		case c == ',':
			comma, after = true, i+1
		case bytes.HasPrefix(d.text[i:to], []byte("//")):
			n := bytes.IndexByte(d.text[i:to], '\n')
			if n < 0 {
				n = to - i
			}
			after = i + len(bytes.TrimRight(d.text[i:i+n], "\r"))
			i += n - 1
		case bytes.HasPrefix(d.text[i:to], []byte("/*")):
			i += 3 + bytes.Index(d.text[i+2:to], []byte("*/"))
			after = i + 1
		}
	}
	return after, comma
}

// indentAt returns the blanks at the begin of the line with an offset, and whether nothing else is before it.
func (d *document) indentAt(at int) (indent string, first bool) {
	begin := bytes.LastIndexByte(d.text[:at], '\n') + 1
	line := d.text[begin:at]
	n := len(line) - len(bytes.TrimLeft(line, " \t"))
	return string(line[:n]), n == len(line)
}

// written is a value as the file would have it behind a line's indentation.
func (d *document) written(value any, indent string) string {
	var b bytes.Buffer
	if err := json.Indent(&b, strictjson.Append(nil, value), indent, d.unit); err != nil {
		panic("clients: plain data must encode: " + err.Error())
	}
	return strings.ReplaceAll(b.String(), "\n", d.line)
}

func (d *document) splice(from, to int, text string) []byte {
	return append(append(bytes.Clone(d.text[:from]), text...), d.text[to:]...)
}

// appendInput adds an input of VS Code, unless there is one with its id.
func appendInput(file []byte, input *strictjson.Object) ([]byte, error) {
	d, err := parseDocument(file)
	if err != nil {
		return nil, err
	}
	m, ok := d.root.Member("inputs")
	if !ok {
		text, _, err := d.set([]string{"inputs"}, []any{input})
		return text, err
	}
	list, ok := m.Value.([]any)
	if !ok {
		return nil, errors.New("inputs is no list")
	}
	for _, have := range list {
		if o, ok := have.(*strictjson.Object); ok && o.Text("id") == input.Text("id") {
			return file, nil
		}
	}
	var spans []span
	for _, at := range strictjson.Elements(d.plain, m.At) {
		spans = append(spans, span{at: at})
	}
	if len(spans) > 0 {
		before := bytes.TrimRight(d.plain[m.At:m.End-1], " \t\r\n")
		spans[len(spans)-1].end = m.At + len(before)
	}
	return d.insert(m.At, m.End, spans, "", input), nil
}
