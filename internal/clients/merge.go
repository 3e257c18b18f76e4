package clients

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/tailscale/hujson"

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
	root, err := parseJSON(file)
	if err != nil {
		return nil, "", err
	}
	object, ok := root.Value.(*hujson.Object)
	if !ok {
		return nil, "", errors.New("it is no JSON object")
	}
	w := writer{line: "\n", unit: "  "}
	if bytes.Contains(file, []byte("\r\n")) {
		w.line = "\r\n"
	}
	if len(object.Members) > 0 {
		if own := indent(object.Members[0].Name.BeforeExtra, ""); own != "" {
			w.unit = own
		}
	}
	for _, input := range c.inputs(s) {
		if err := w.addInput(object, input); err != nil {
			return nil, "", err
		}
	}
	if did, err = w.setServer(object, c.Under[0], s.Name, c.server(s)); err != nil {
		return nil, "", err
	}
	return root.Pack(), did, nil
}

// maxDepth is the deepest nesting of a client's file.
const maxDepth = 64

// parseJSON reads JSON as editors take it. The error quotes nothing of the file, which may hold secrets.
func parseJSON(text []byte) (v hujson.Value, err error) {
	plain, err := strictjson.Standardize(text)
	if err == nil {
		_, err = strictjson.Decode(plain, strictjson.Options{MaxDepth: maxDepth})
	}
	var bad *strictjson.Error
	if errors.As(err, &bad) {
		return v, fmt.Errorf("line %d: it is not JSON as an editor takes it; `catalogd import mcp-config` says what is wrong",
			1+bytes.Count(text[:min(bad.Offset, len(text))], []byte("\n")))
	}
	if err != nil {
		return v, err
	}
	if v, err = hujson.Parse(text); err != nil {
		return v, errors.New("it is not JSON as an editor takes it")
	}
	return v, nil
}

// writer writes values in the style of a file: with its line ends, and its unit of indentation.
type writer struct{ line, unit string }

// setServer puts a server's entry into the object below a key, which it adds if there is none.
func (w writer) setServer(root *hujson.Object, under, name string, entry *strictjson.Object) (did string, err error) {
	servers := member(root, under)
	if servers == nil {
		return "added", w.addMember(root, "", under, strictjson.New(name, entry))
	}
	object, ok := servers.Value.Value.(*hujson.Object)
	if !ok {
		return "", fmt.Errorf("%s is no object", under)
	}
	outer := indent(servers.Name.BeforeExtra, "")
	m := member(object, name)
	if m == nil {
		return "added", w.addMember(object, outer, name, entry)
	}
	have := m.Value.Clone()
	have.Minimize()
	is, err := strictjson.Decode(have.Pack(), strictjson.Options{MaxDepth: maxDepth})
	if err != nil || bytes.Equal(strictjson.AppendSorted(nil, is), strictjson.AppendSorted(nil, entry)) {
		return "unchanged", err
	}
	value, err := w.value(entry, indent(m.Name.BeforeExtra, outer), false)
	m.Value.Value = value.Value
	return "replaced", err
}

// addInput adds an input of VS Code, unless there is one with its id.
func (w writer) addInput(root *hujson.Object, input *strictjson.Object) error {
	inputs := member(root, "inputs")
	if inputs == nil {
		return w.addMember(root, "", "inputs", []any{input})
	}
	list, ok := inputs.Value.Value.(*hujson.Array)
	if !ok {
		return errors.New("inputs is no list")
	}
	for _, e := range list.Elements {
		if o, ok := e.Value.(*hujson.Object); ok {
			if id := member(o, "id"); id != nil && text(id.Value) == input.Text("id") {
				return nil
			}
		}
	}
	var last *hujson.Value
	if n := len(list.Elements); n > 0 {
		last = &list.Elements[n-1]
	}
	place := w.end(list, last, last, &list.AfterExtra, indent(inputs.Name.BeforeExtra, ""))
	value, err := w.value(input, place.indent, place.inline)
	value.BeforeExtra, value.AfterExtra = place.before, place.after
	list.Elements = append(list.Elements, value)
	return err
}

// addMember adds a member at the end of an object, whose own line is indented by outer.
func (w writer) addMember(o *hujson.Object, outer, key string, v any) error {
	var begin, last *hujson.Value
	if n := len(o.Members); n > 0 {
		begin, last = &o.Members[n-1].Name, &o.Members[n-1].Value
	}
	place := w.end(o, begin, last, &o.AfterExtra, outer)
	value, err := w.value(v, place.indent, place.inline)
	value.BeforeExtra, value.AfterExtra = hujson.Extra(" "), place.after
	name := hujson.Value{BeforeExtra: place.before, Value: hujson.String(key)}
	o.Members = append(o.Members, hujson.ObjectMember{Name: name, Value: value})
	return err
}

// place is where a new last member or element stands: what is before and behind it.
type place struct {
	before, after hujson.Extra
	indent        string
	inline        bool
}

// end makes room at the end of an object or a list, whose last member or element goes from begin to last, which
// are nil if there is none. closing is what stands before its closing bracket.
func (w writer) end(in hujson.ValueTrimmed, begin, last *hujson.Value, closing *hujson.Extra, outer string) (p place) {
	p.indent = outer + w.unit
	if last != nil {
		p.indent = indent(begin.BeforeExtra, p.indent)
		p.after, last.AfterExtra = last.AfterExtra, nil // a trailing comma, if there is one, follows the new one
		whole := hujson.Value{Value: in}
		p.inline = !bytes.Contains(whole.Pack(), []byte("\n"))
	}
	comments := bytes.TrimRight(*closing, " \t\r\n")
	*closing = (*closing)[len(comments):]
	if p.inline {
		p.before = append(bytes.Clone(comments), ' ')
		return p
	}
	p.before = append(bytes.Clone(comments), w.line+p.indent...)
	if !bytes.Contains(*closing, []byte("\n")) {
		*closing = hujson.Extra(w.line + outer)
	}
	return p
}

// value is a value as the file would have it, behind a line's indentation.
func (w writer) value(v any, indent string, inline bool) (hujson.Value, error) {
	b := strictjson.Append(nil, v)
	if !inline {
		var lines bytes.Buffer
		if err := json.Indent(&lines, b, indent, w.unit); err != nil {
			return hujson.Value{}, err
		}
		b = bytes.ReplaceAll(lines.Bytes(), []byte("\n"), []byte(w.line))
	}
	return hujson.Parse(b)
}

// member returns the member of an object; nil if it has none.
func member(o *hujson.Object, key string) *hujson.ObjectMember {
	for i := range o.Members {
		if text(o.Members[i].Name) == key {
			return &o.Members[i]
		}
	}
	return nil
}

// text returns a string's text, or "" for anything else.
func text(v hujson.Value) string {
	if l, ok := v.Value.(hujson.Literal); ok && l.Kind() == '"' {
		return l.String()
	}
	return ""
}

// indent returns the blanks before what begins a line, given what is before it; or what holds if it begins none.
func indent(before hujson.Extra, otherwise string) string {
	i := bytes.LastIndexByte(before, '\n')
	if i < 0 || len(bytes.Trim(before[i+1:], " \t")) > 0 {
		return otherwise
	}
	return string(before[i+1:])
}
