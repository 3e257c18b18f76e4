package contract

import (
	"encoding/json"
	"fmt"
	"math/big"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// kinds is a set of the kinds of JSON values. Whole numbers and others are two kinds, so that integer is one of them.
type kinds uint8

const (
	nullKind kinds = 1 << iota
	booleanKind
	wholeKind
	fractionKind
	stringKind
	arrayKind
	objectKind

	numberKinds = wholeKind | fractionKind
	allKinds    = objectKind<<1 - 1
)

var kindNames = map[string]kinds{
	"null": nullKind, "boolean": booleanKind, "integer": wholeKind, "number": numberKinds,
	"string": stringKind, "array": arrayKind, "object": objectKind,
}

func (k kinds) String() string {
	if k == allKinds {
		return "anything"
	}
	var names []string
	for _, name := range []string{"null", "boolean", "number", "integer", "string", "array", "object"} {
		if mask := kindNames[name]; k&mask == mask && (name != "integer" || k&fractionKind == 0) {
			names = append(names, name)
		}
	}
	if k == fractionKind {
		names = append(names, "number that is no integer")
	}
	return strings.Join(names, " or ")
}

// document is one schema read for comparing.
type document struct {
	top       any
	canonical string // without annotations; empty where the JSON is broken
	broken    string // why it can't be compared
	root      *node
	upstream  bool // as in Spec
	patterns  *engine
	nodes     map[nodeKey]*node
	compiler  *jsonschema.Compiler
	compiled  map[string]*jsonschema.Schema
	shape     *shape // where defaults are filled in
	defs      string // what definitions answers
	work      int    // what validators may still do
}

type nodeKey struct {
	pointer string
	filled  bool
}

// node is one schema in a document: a conjunction of all that its keywords say.
type node struct {
	doc     *document
	pointer string // in the document
	text    string // canonical, for telling the same from the different
	// filled: Check fills in the defaults of the properties here, so that none of them is required.
	filled bool
	never  bool
	// synthetic: of the prover's own making, in no document; role tells nodes at one pointer apart.
	synthetic bool
	role      string
	rest      *node // what without answers

	kinds     kinds
	finite    bool
	enum      []any
	opaque    []string // keywords that only an equal schema is known to imply
	ref       *node
	allOf     []*node
	anyOf     []*node
	oneOf     []*node
	not       *node
	when      *node // if
	then      *node
	otherwise *node

	lower, upper *limit
	multipleOf   *big.Rat
	minLength    int
	maxLength    int    // -1: none, as with the other maxima
	content      string // contentEncoding and its like, as one text
	pattern      string
	format       string
	minItems     int
	maxItems     int
	unique       bool
	prefix       []*node
	items        *node
	contains     *node
	minContains  int
	maxContains  int
	minProps     int
	maxProps     int
	required     []string
	properties   map[string]*node
	patterns     map[string]*node
	regexps      map[string]jsonschema.Regexp
	additional   *node
	names        *node
	dependent    map[string][]string
	defaults     map[string]any
	example      []any // default, examples: worth a try as witnesses
}

// limit is one end of a range of numbers.
type limit struct {
	at   *big.Rat
	open bool // the number itself is outside
}

// unreadable is the panic by which nested readers give up; readDocument turns it into document.broken.
type unreadable string

func readDocument(spec Spec, filled bool) (d *document) {
	schema := spec.Schema
	d = &document{
		nodes: map[nodeKey]*node{}, compiled: map[string]*jsonschema.Schema{}, work: maxValidation,
		upstream: spec.Upstream, patterns: &engine{ecma: spec.Upstream},
	}
	defer func() {
		if r := recover(); r != nil {
			why, ok := r.(unreadable)
			if !ok {
				panic(r)
			}
			d.broken = string(why)
		}
	}()
	if len(schema) > maxSchema {
		panic(unreadable(fmt.Sprintf("it is longer than %d bytes", maxSchema)))
	}
	top, found := decode(schema)
	if len(found) > 0 {
		panic(unreadable(found[0].String()))
	}
	if d.upstream {
		latest, err := latest(schema)
		if err != nil {
			panic(unreadable(err.Error()))
		}
		top = unordered(latest)
	}
	d.top = top
	d.canonical = string(appendJSON(nil, bare(top)))
	if err := affordable(top); err != nil {
		panic(unreadable(err.Error()))
	}
	d.compile(filled)
	d.root = d.read("", filled)
	if filled {
		d.neutral()
	}
	return d
}

const (
	maxSchema    = 1 << 20
	documentName = "contract:compared"
)

func (d *document) compile(filled bool) {
	d.compiler = newCompiler(d.upstream, d.patterns)
	if err := d.compiler.AddResource(documentName, d.top); err != nil {
		panic(unreadable(err.Error()))
	}
	validator, err := d.schema("")
	if err != nil {
		panic(unreadable(clip(err.Error())))
	}
	if filled {
		if d.shape, _, err = shapes(d.top, d.upstream, d.patterns); err != nil {
			panic(unreadable(err.Error()))
		}
		d.shape.link(validator)
	}
}

// schema is the compiled schema at a pointer of the document.
func (d *document) schema(pointer string) (*jsonschema.Schema, error) {
	if s := d.compiled[pointer]; s != nil {
		return s, nil
	}
	s, err := d.compiler.Compile(documentName + "#" + (&url.URL{Fragment: pointer}).EscapedFragment())
	if err == nil {
		d.compiled[pointer] = s
	}
	return s, err
}

// find is the part of the document that a pointer leads to.
func (d *document) find(pointer string) any {
	v := d.top
	for _, step := range strings.Split(pointer, "/")[1:] {
		step = strings.ReplaceAll(strings.ReplaceAll(step, "~1", "/"), "~0", "~")
		switch parent := v.(type) {
		case map[string]any:
			child, ok := parent[step]
			if !ok {
				panic(unreadable("a $ref leads nowhere"))
			}
			v = child
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(parent) {
				panic(unreadable("a $ref leads nowhere"))
			}
			v = parent[i]
		default:
			panic(unreadable("a $ref leads nowhere"))
		}
	}
	return v
}

func (d *document) read(pointer string, filled bool) *node {
	key := nodeKey{pointer, filled}
	if n := d.nodes[key]; n != nil {
		return n
	}
	n := &node{doc: d, pointer: pointer, filled: filled, kinds: allKinds,
		maxLength: -1, maxItems: -1, maxProps: -1, minContains: 1, maxContains: -1}
	d.nodes[key] = n
	if len(d.nodes) > maxNodes {
		panic(unreadable(fmt.Sprintf("it has more than %d schemas", maxNodes)))
	}
	switch schema := d.find(pointer).(type) {
	case bool:
		n.never = !schema
		n.text = strconv.FormatBool(schema)
	case map[string]any:
		n.text = string(appendJSON(nil, bare(schema)))
		n.read(schema)
	default:
		panic(unreadable("a schema is neither an object nor true or false"))
	}
	return n
}

const maxNodes = 5000

// any reports whether n accepts everything.
func (n *node) any() bool { return n.text == "true" || n.text == "{}" }

func (n *node) child(keyword string, steps ...string) *node {
	return n.at(n.filled, keyword, steps...)
}

// judged is a child that only judges a value: nothing is filled in by it.
func (n *node) judged(keyword string, steps ...string) *node {
	return n.at(false, keyword, steps...)
}

func (n *node) at(filled bool, keyword string, steps ...string) *node {
	p := n.pointer + "/" + keyword
	for _, s := range steps {
		p += "/" + escapePointer(s)
	}
	return n.doc.read(p, filled)
}

func (n *node) read(m map[string]any) {
	for keyword, v := range m {
		n.keyword(keyword, v, m)
	}
	if _, ok := m["contains"]; !ok {
		n.contains = nil
	}
	if n.filled {
		n.required = slices.DeleteFunc(n.required, func(name string) bool { _, ok := n.defaults[name]; return ok })
	}
}

func (n *node) keyword(keyword string, v any, m map[string]any) {
	switch keyword {
	case "type":
		n.kinds = 0
		for _, name := range texts(v) {
			n.kinds |= kindNames[name]
		}
	case "enum":
		list, _ := v.([]any)
		n.values(list)
	case "const":
		n.values([]any{v})
	case "$ref":
		n.ref = n.refer(v)
	case "allOf":
		n.allOf = n.list(keyword, v, n.filled)
	case "anyOf":
		n.anyOf = n.list(keyword, v, n.filled)
	case "oneOf":
		n.oneOf = n.list(keyword, v, n.filled)
	case "not":
		n.not = n.judged(keyword)
	case "if":
		n.when = n.judged(keyword)
		if _, ok := m["then"]; ok {
			n.then = n.child("then")
		}
		if _, ok := m["else"]; ok {
			n.otherwise = n.child("else")
		}
	case "minimum":
		n.raise(&limit{at: rat(v)})
	case "exclusiveMinimum":
		n.raise(&limit{at: rat(v), open: true})
	case "maximum":
		n.lowerTo(&limit{at: rat(v)})
	case "exclusiveMaximum":
		n.lowerTo(&limit{at: rat(v), open: true})
	case "multipleOf":
		if n.multipleOf = rat(v); n.multipleOf.Sign() <= 0 {
			panic(unreadable("multipleOf is not above zero"))
		}
	case "minLength":
		n.minLength = size(v)
	case "maxLength":
		n.maxLength = size(v)
	case "pattern":
		n.pattern, _ = v.(string)
	case "format":
		if s, err := n.doc.schema(n.pointer); err != nil || s.Format != nil { // others are annotations to the validator
			n.format, _ = v.(string)
		}
	case "prefixItems":
		n.prefix = n.list(keyword, v, n.filled)
	case "items":
		if _, tuple := v.([]any); tuple {
			panic(unreadable("items is a list, which draft 2020-12 calls prefixItems"))
		}
		n.items = n.child(keyword)
	case "contains":
		n.contains = n.judged(keyword)
	case "minContains":
		n.minContains = size(v)
	case "maxContains":
		n.maxContains = size(v)
	case "minItems":
		n.minItems = size(v)
	case "maxItems":
		n.maxItems = size(v)
	case "uniqueItems":
		n.unique = v == true
	case "minProperties":
		n.minProps = size(v)
	case "maxProperties":
		n.maxProps = size(v)
	case "required":
		n.required = texts(v)
	case "properties":
		n.members(v)
	case "patternProperties":
		n.patterned(v)
	case "additionalProperties":
		n.additional = n.child(keyword)
	case "propertyNames":
		n.names = n.judged(keyword)
	case "dependentRequired":
		n.dependencies(v)
	case "contentEncoding", "contentMediaType", "contentSchema":
		n.content = string(appendJSON(nil, map[string]any{"encoding": m["contentEncoding"], "type": m["contentMediaType"], "schema": m["contentSchema"]}))
	case "default":
		n.example = append(n.example, v)
	case "examples":
		list, _ := v.([]any)
		n.example = append(n.example, list[:min(len(list), 5)]...)
	case "$schema":
		if n.pointer != "" {
			panic(unreadable("a schema inside it has a $schema of its own"))
		}
		if uri, _ := v.(string); !n.doc.upstream && draftURIs[strings.TrimPrefix(uri, "https://")] != draft2020 {
			panic(unreadable("its dialect is not draft 2020-12"))
		}
	case "dependencies", "dependentSchemas", "additionalItems", "unevaluatedItems", "unevaluatedProperties":
		n.opaque = append(n.opaque, keyword)
	case "$id", "id", "$anchor", "$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$recursiveAnchor", "$vocabulary":
		panic(unreadable("it uses " + keyword))
	}
}

func (n *node) values(list []any) {
	if n.finite { // beside the other one, both hold
		n.opaque = append(n.opaque, "enum")
	}
	n.finite, n.enum = true, list
}

func (n *node) refer(v any) *node {
	s, _ := v.(string)
	fragment, ok := strings.CutPrefix(s, "#")
	if fragment, err := url.PathUnescape(fragment); ok && err == nil && (fragment == "" || fragment[0] == '/') {
		return n.doc.read(fragment, n.filled)
	}
	panic(unreadable("a $ref leads out of it"))
}

func (n *node) list(keyword string, v any, filled bool) (out []*node) {
	list, _ := v.([]any)
	for i := range list {
		out = append(out, n.at(filled, keyword, strconv.Itoa(i)))
	}
	return out
}

func (n *node) members(v any) {
	m, _ := v.(map[string]any)
	n.properties = make(map[string]*node, len(m))
	for name, p := range m {
		n.properties[name] = n.child("properties", name)
		if schema, ok := p.(map[string]any); ok && n.filled {
			if value, ok := schema["default"]; ok {
				if n.defaults == nil {
					n.defaults = map[string]any{}
				}
				n.defaults[name] = value
			}
		}
	}
}

func (n *node) patterned(v any) {
	m, _ := v.(map[string]any)
	n.patterns, n.regexps = make(map[string]*node, len(m)), make(map[string]jsonschema.Regexp, len(m))
	for pattern := range m {
		re, err := n.doc.patterns.compile(pattern)
		if err != nil {
			panic(unreadable("patternProperties: " + err.Error()))
		}
		n.patterns[pattern], n.regexps[pattern] = n.child("patternProperties", pattern), re
	}
}

func (n *node) dependencies(v any) {
	m, _ := v.(map[string]any)
	n.dependent = make(map[string][]string, len(m))
	for name, list := range m {
		n.dependent[name] = texts(list)
	}
}

func (n *node) raise(l *limit) {
	if n.lower == nil || stricter(l, n.lower, 1) {
		n.lower = l
	}
}

func (n *node) lowerTo(l *limit) {
	if n.upper == nil || stricter(l, n.upper, -1) {
		n.upper = l
	}
}

// stricter reports whether a excludes more than b; sign is 1 for lower limits and -1 for upper ones.
func stricter(a, b *limit, sign int) bool {
	c := a.at.Cmp(b.at) * sign
	return c > 0 || c == 0 && a.open && !b.open
}

func rat(v any) *big.Rat {
	if n, ok := v.(json.Number); ok {
		if r, ok := new(big.Rat).SetString(string(n)); ok {
			return r
		}
	}
	panic(unreadable("a bound is no number"))
}

func size(v any) int {
	n, ok := v.(json.Number)
	if i, isWhole := whole(Integer(n)); ok && isWhole && i >= 0 && i < 1<<31 {
		return int(i)
	}
	panic(unreadable("a size is no whole number below 2147483648"))
}

// texts is a string or a list of them.
func texts(v any) (out []string) {
	if s, ok := v.(string); ok {
		return []string{s}
	}
	list, _ := v.([]any)
	for _, item := range list {
		if s, ok := item.(string); ok && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	slices.Sort(out)
	return out
}
