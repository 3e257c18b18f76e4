package derive

import (
	"bytes"
	"encoding/json"
	"strconv"

	"github.com/catalogd/catalogd/problem"
)

// node is one JSON Schema. Its zero value accepts everything.
type node struct {
	ref      *definition
	name     string // of the definition that a reference has led to; not part of the schema
	never    bool   // nothing satisfies it: the schema is false
	types    []string
	enum     []json.RawMessage // one value is written as const
	fallback json.RawMessage   // default
	// Annotations, which constrain nothing.
	title, description    string
	examples              []json.RawMessage
	deprecated, writeOnly bool
	header                string // of 2026-07-28, in which a call repeats it
	// Keywords of numbers, in CUE's notation.
	minimum, exclusiveMinimum, maximum, exclusiveMaximum, multipleOf json.RawMessage
	// Keywords of strings. Further patterns and exclusions go to allOf.
	minLength, maxLength *int64
	format, encoding     string
	patterns             []string
	not                  []*node
	// Keywords of arrays.
	prefix             []*node
	items              *node
	noItems            bool
	minItems, maxItems *int64
	unique             bool
	contains           []*node
	// Keywords of objects.
	properties                   []property
	required                     []string
	patternProperties            []property
	additional                   *node
	closed                       bool
	minProperties, maxProperties *int64

	anyOf []*node
	also  []*node // of allOf, for repeated keywords
	// guards apply under a condition.
	guards []guard
	// derived are fields that CUE fills in: they are not properties, and not required.
	derived []property
	defs    []property
	pos     problem.Position

	// lossy: something in it is not expressed, so it accepts more than CUE.
	lossy bool
	// settled: it consists of structs that are lossy only in what several of them declare.
	settled bool
	// unnamed: there may be fields with names unknown to the walk; ellipsis is the position of a ....
	unnamed  bool
	ellipsis problem.Position
	// counter: it counts the items or fields of whatever list or struct a call sends.
	counter bool
	// definition: it is the value of a named definition, which CUE closes wherever it is used.
	definition bool
}

// guard is an author's if: what applies if a condition holds, and what otherwise. then and otherwise may be
// nil.
type guard struct {
	condition, then, otherwise *node
}

// property is a named node.
type property struct {
	name     string
	required bool
	// computed: CUE fills it in, from other arguments.
	computed bool
	// unmarked: it is written without ! or ?.
	unmarked bool
	// starred: it has a default of its own, *d | T.
	starred bool
	// text is the source text, if that consists of constants and types only.
	text string
	pos  problem.Position
	*node
}

func (n *node) requiredNames() (names []string) {
	for _, p := range n.properties {
		if p.required {
			names = append(names, p.name)
		}
	}
	return names
}

// subschemas counts n and every schema in it.
func (n *node) subschemas() int {
	count := 1
	n.children(func(m *node) { count += m.subschemas() })
	return count
}

// children calls f with every schema directly in n.
func (n *node) children(f func(*node)) {
	below := func(nodes ...*node) {
		for _, m := range nodes {
			if m != nil {
				f(m)
			}
		}
	}
	below(n.items, n.additional)
	below(n.prefix...)
	below(n.not...)
	below(n.contains...)
	below(n.anyOf...)
	below(n.also...)
	for _, g := range n.guards {
		below(g.condition, g.then, g.otherwise)
	}
	for _, properties := range [][]property{n.properties, n.patternProperties, n.defs} {
		for _, p := range properties {
			below(p.node)
		}
	}
}

// patterned reports whether keys are declared by pattern.
func (n *node) patterned() bool { return len(n.patternProperties) > 0 || n.additional != nil }

func (n *node) isConst() bool { return len(n.enum) == 1 }

// json writes the schema with its keys in a fixed order and properties as declared.
func (n *node) json() json.RawMessage {
	var b bytes.Buffer
	n.write(&b)
	return b.Bytes()
}

func (n *node) write(b *bytes.Buffer) {
	if n.never {
		b.WriteString("false")
		return
	}
	o := object{b: b}
	o.open()
	if n.ref != nil {
		o.text("$ref", "#/$defs/"+n.ref.name)
	}
	switch len(n.types) {
	case 0:
	case 1:
		o.text("type", n.types[0])
	default:
		o.texts("type", n.types)
	}
	if n.title != "" {
		o.text("title", n.title)
	}
	if n.description != "" {
		o.text("description", n.description)
	}
	n.writeScalar(&o)
	n.writeArray(&o)
	n.writeObject(&o)
	o.nodes("anyOf", n.anyOf)
	if len(n.guards) == 1 {
		n.guards[0].write(&o)
	}
	o.nodes("allOf", n.allOf())
	n.writeNotes(&o)
	o.named("$defs", n.defs)
	o.close()
}

func (n *node) writeNotes(o *object) {
	o.raw("default", n.fallback)
	if len(n.examples) > 0 {
		o.raws("examples", n.examples)
	}
	if n.deprecated {
		o.raw("deprecated", json.RawMessage("true"))
	}
	if n.writeOnly {
		o.raw("writeOnly", json.RawMessage("true"))
	}
	if n.header != "" {
		o.text("x-mcp-header", n.header)
	}
}

func (n *node) writeScalar(o *object) {
	if n.isConst() {
		o.raw("const", n.enum[0])
	} else if len(n.enum) > 0 {
		o.raws("enum", n.enum)
	}
	o.raw("minimum", n.minimum)
	o.raw("exclusiveMinimum", n.exclusiveMinimum)
	o.raw("maximum", n.maximum)
	o.raw("exclusiveMaximum", n.exclusiveMaximum)
	o.raw("multipleOf", n.multipleOf)
	o.count("minLength", n.minLength)
	o.count("maxLength", n.maxLength)
	if n.format != "" {
		o.text("format", n.format)
	}
	if n.encoding != "" {
		o.text("contentEncoding", n.encoding)
	}
	if len(n.patterns) > 0 {
		o.text("pattern", n.patterns[0])
	}
	if len(n.not) > 0 {
		o.key("not")
		n.not[0].write(o.b)
	}
}

// allOf returns the schemas for keywords that can't be repeated.
func (n *node) allOf() (rest []*node) {
	for i := 1; i < len(n.patterns); i++ {
		rest = append(rest, &node{patterns: n.patterns[i : i+1]})
	}
	for i := 1; i < len(n.not); i++ {
		rest = append(rest, &node{not: n.not[i : i+1]})
	}
	for i := 1; i < len(n.contains); i++ {
		rest = append(rest, &node{contains: n.contains[i : i+1]})
	}
	rest = append(rest, n.also...)
	if len(n.guards) > 1 {
		for i := range n.guards {
			rest = append(rest, &node{guards: n.guards[i : i+1]})
		}
	}
	return rest
}

func (g guard) write(o *object) {
	for _, part := range []struct {
		keyword string
		*node
	}{{"if", g.condition}, {"then", g.then}, {"else", g.otherwise}} {
		if part.node != nil {
			o.key(part.keyword)
			part.node.write(o.b)
		}
	}
}

func (n *node) writeArray(o *object) {
	o.nodes("prefixItems", n.prefix)
	if n.noItems {
		o.raw("items", json.RawMessage("false"))
	} else if n.items != nil {
		o.key("items")
		n.items.write(o.b)
	}
	o.count("minItems", n.minItems)
	o.count("maxItems", n.maxItems)
	if n.unique {
		o.raw("uniqueItems", json.RawMessage("true"))
	}
	if len(n.contains) > 0 {
		o.key("contains")
		n.contains[0].write(o.b)
	}
}

func (n *node) writeObject(o *object) {
	o.named("properties", n.properties)
	if len(n.required) > 0 {
		o.texts("required", n.required)
	}
	o.named("patternProperties", n.patternProperties)
	if n.additional != nil {
		o.key("additionalProperties")
		n.additional.write(o.b)
	} else if n.closed {
		o.raw("additionalProperties", json.RawMessage("false"))
	}
	o.count("minProperties", n.minProperties)
	o.count("maxProperties", n.maxProperties)
}

// object writes one JSON object.
type object struct {
	b    *bytes.Buffer
	more bool
}

func (o *object) open()  { o.b.WriteByte('{') }
func (o *object) close() { o.b.WriteByte('}') }

func (o *object) key(k string) {
	if o.more {
		o.b.WriteByte(',')
	}
	o.more = true
	o.b.Write(quote(k))
	o.b.WriteByte(':')
}

func (o *object) raw(k string, v json.RawMessage) {
	if v != nil {
		o.key(k)
		o.b.Write(v)
	}
}

func (o *object) text(k, v string) { o.raw(k, quote(v)) }

func (o *object) count(k string, n *int64) {
	if n != nil {
		o.raw(k, strconv.AppendInt(nil, *n, 10))
	}
}

func (o *object) raws(k string, values []json.RawMessage) {
	o.key(k)
	o.b.WriteByte('[')
	for i, v := range values {
		if i > 0 {
			o.b.WriteByte(',')
		}
		o.b.Write(v)
	}
	o.b.WriteByte(']')
}

func (o *object) texts(k string, values []string) {
	raws := make([]json.RawMessage, len(values))
	for i, v := range values {
		raws[i] = quote(v)
	}
	o.raws(k, raws)
}

func (o *object) nodes(k string, nodes []*node) {
	if len(nodes) == 0 {
		return
	}
	raws := make([]json.RawMessage, len(nodes))
	for i, n := range nodes {
		raws[i] = n.json()
	}
	o.raws(k, raws)
}

func (o *object) named(k string, properties []property) {
	if len(properties) == 0 {
		return
	}
	o.key(k)
	inner := object{b: o.b}
	inner.open()
	for _, p := range properties {
		inner.key(p.name)
		p.write(o.b)
	}
	inner.close()
}

// quote returns s as JSON, without escaping <, > and &.
func quote(s string) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		panic("derive: a string always encodes: " + err.Error())
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
