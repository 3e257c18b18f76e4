package contract

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// annotation reports whether a keyword says nothing about what is accepted or filled in.
func annotation(keyword string) bool {
	switch keyword {
	case "title", "description", "examples", "$comment", "deprecated", "readOnly", "writeOnly":
		return true
	}
	return false
}

// bare is a schema without its annotations. Names of properties and the values of const, enum and default are not
// keywords and stay.
func bare(schema any) any {
	m, ok := schema.(map[string]any)
	if !ok {
		return schema
	}
	out := make(map[string]any, len(m))
	for keyword, v := range m {
		if annotation(keyword) {
			continue
		}
		switch keyword {
		case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas":
			if named, ok := v.(map[string]any); ok {
				each := make(map[string]any, len(named))
				for name, s := range named {
					each[name] = bare(s)
				}
				v = each
			}
		case "allOf", "anyOf", "oneOf", "prefixItems":
			if list, ok := v.([]any); ok {
				each := make([]any, len(list))
				for i, s := range list {
					each[i] = bare(s)
				}
				v = each
			}
		case "items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames", "unevaluatedItems", "unevaluatedProperties":
			v = bare(v)
		case "required":
			if list, ok := v.([]any); ok {
				names := make([]any, 0, len(list))
				for _, name := range texts(list) {
					names = append(names, name)
				}
				v = names
			}
		}
		out[keyword] = v
	}
	return out
}

// inPlace are the schemas that a value meets together with n.
func (n *node) inPlace() (out []*node) {
	out = slices.Concat(n.allOf, n.anyOf, n.oneOf)
	for _, c := range []*node{n.ref, n.not, n.when, n.then, n.otherwise} {
		if c != nil {
			out = append(out, c)
		}
	}
	return out
}

// cost bounds what a validator does for v at n: the number of schemas that it may ask, up to limit.
func (n *node) cost(v any, limit int) int {
	spent := 1
	visit := func(c *node, v any) {
		if c != nil && spent < limit {
			spent += c.cost(v, limit-spent)
		}
	}
	for _, c := range n.inPlace() {
		visit(c, v)
	}
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			for _, c := range n.member(name) {
				visit(c, value)
			}
			visit(n.names, name)
		}
	case []any:
		for i, value := range v {
			visit(n.item(i), value)
			visit(n.contains, value)
		}
		if n.unique {
			spent += len(v) * len(v)
		}
	}
	return spent
}

// member are the schemas that n has for the value of a key.
func (n *node) member(name string) (out []*node) {
	if p := n.properties[name]; p != nil {
		out = append(out, p)
	}
	for pattern, re := range n.regexps {
		if re.MatchString(name) {
			out = append(out, n.patterns[pattern])
		}
	}
	if out == nil && n.additional != nil {
		out = append(out, n.additional)
	}
	return out
}

// item is the schema that n has for an item; nil where it has none.
func (n *node) item(i int) *node {
	if i < len(n.prefix) {
		return n.prefix[i]
	}
	return n.items
}

const (
	// maxValidation bounds what validators do for one comparison, in schemas asked.
	maxValidation = 2_000_000
	// maxValue bounds what they do for one value.
	maxValue = 50_000
)

// accepts asks the validator about v at a node. sure is false where it can't be asked.
func (n *node) accepts(v any) (accepted, sure bool) {
	cost := n.cost(v, maxValue)
	if n.doc.work -= cost + 10; cost >= maxValue || n.doc.work < 0 {
		return false, false
	}
	schema, err := n.doc.schema(n.pointer)
	if err != nil {
		return false, false
	}
	accepted = schema.Validate(v) == nil
	return accepted, !n.doc.gaveUp()
}

// gaveUp reports whether the patterns of the document have taken too long to match.
func (d *document) gaveUp() bool { return d.patterns.watch != nil && d.patterns.watch.out }

// check asks about a whole value as Check does: with defaults filled in, where this document has them filled in.
func (d *document) check(v any) (err error, sure bool) {
	cost := d.root.cost(v, maxValue)
	if d.work -= cost + 10; cost >= maxValue || d.work < 0 {
		return nil, false
	}
	schema, err := d.schema("")
	if err != nil {
		return nil, false
	}
	if d.shape != nil {
		again, _ := decode(appendJSON(nil, v)) // fill changes what it gets
		w := &work{left: maxValue}
		if v = d.shape.fill(again, w); w.spent() {
			return nil, false
		}
	}
	err = schema.Validate(v)
	return err, !d.gaveUp()
}

// neutral refuses a schema where filling in defaults may change what it accepts in another way than that a property
// with a default is not required: where a default is wrong by its own schema, or makes a key appear that another
// keyword counts, forbids or chooses by. Which schemas these are depends on more than the two that are compared.
func (d *document) neutral() {
	first := ""
	for n := range d.fillable() {
		if why := n.disturbed(); why != "" {
			if why = fmt.Sprintf("at %q a default is filled in %s", n.pointer, why); first == "" || why < first {
				first = why
			}
		}
	}
	if first != "" {
		panic(unreadable(first))
	}
}

// fillable are the nodes at or below which a default is filled in.
func (d *document) fillable() map[*node]bool {
	live := map[*node]bool{}
	for again := true; again; {
		again = false
		for _, n := range d.nodes {
			if n.filled && !live[n] && (len(n.defaults) > 0 || slices.ContainsFunc(n.fills(), func(c *node) bool { return live[c] })) {
				live[n], again = true, true
			}
		}
	}
	return live
}

// fills are the schemas by which defaults are filled in at or below n.
func (n *node) fills() (out []*node) {
	out = slices.Concat(n.allOf, n.anyOf, n.oneOf, n.prefix)
	for _, c := range []*node{n.ref, n.then, n.otherwise, n.items, n.additional} {
		if c != nil {
			out = append(out, c)
		}
	}
	for _, c := range n.properties {
		out = append(out, c)
	}
	for _, c := range n.patterns {
		out = append(out, c)
	}
	return out
}

func (n *node) disturbed() string {
	own := n.properties != nil || n.patterns != nil || n.additional != nil || n.required != nil || n.minProps > 0 || n.maxProps >= 0
	switch {
	case n.oneOf != nil, n.not != nil, n.when != nil, n.dependent != nil, len(n.opaque) > 0:
		return "beside a condition on the whole value"
	case n.finite, n.unique, n.contains != nil:
		return "in a value that is compared as a whole"
	case len(n.allOf) > 0, len(n.anyOf) > 0 && (own || n.ref != nil), n.ref != nil && own:
		return "where several schemas look at the same value"
	case len(n.defaults) > 0 && (n.minProps > 0 || n.maxProps >= 0 || n.names != nil):
		return "where keys are counted or named"
	}
	for _, kind := range []kinds{objectKind, arrayKind} {
		count := 0
		for _, branch := range n.anyOf {
			for branch.ref != nil {
				branch = branch.ref
			}
			if !branch.never && branch.kinds&kind != 0 {
				count++
			}
		}
		if count > 1 {
			return "by several alternatives"
		}
	}
	for name, value := range n.defaults {
		for _, re := range n.regexps {
			if re.MatchString(name) {
				return "where several schemas look at the same value"
			}
		}
		if accepted, sure := n.properties[name].accepts(value); !sure || !accepted {
			return "that its own schema refuses"
		}
	}
	return ""
}

// defaults lists the default of every place that has one or is declared, by pointer; empty where it has none.
func (d *document) defaults() map[string]string {
	out := map[string]string{}
	d.places(func(n *node, place string) {
		for name, p := range n.properties {
			below := place + "/" + escapePointer(name)
			if _, known := out[below]; !known {
				out[below] = ""
			}
			if m, ok := d.find(p.pointer).(map[string]any); ok {
				if v, ok := m["default"]; ok {
					out[below] = string(appendJSON(nil, v))
				}
			}
		}
	})
	return out
}

// places visits the schemas with the places in a value that they are about, outer ones first.
func (d *document) places(visit func(n *node, place string)) {
	open, visits := map[*node]bool{}, 0
	var walk func(n *node, at string)
	walk = func(n *node, at string) {
		if visits++; open[n] || visits > maxNodes {
			return
		}
		open[n] = true
		defer delete(open, n)
		visit(n, at)
		for name, p := range n.properties {
			walk(p, at+"/"+escapePointer(name))
		}
		for i, p := range n.prefix {
			walk(p, at+"/"+strconv.Itoa(i))
		}
		if n.items != nil {
			walk(n.items, at+"/*")
		}
		if n.additional != nil {
			walk(n.additional, at+"/*")
		}
		for _, c := range n.inPlace() {
			walk(c, at)
		}
	}
	walk(d.root, "")
}

// readTwoWays reports whether a schema means something else as an upstream server's.
func readTwoWays(text string) bool {
	return strings.Contains(text, `"format":`) || strings.Contains(text, `"pattern`) || strings.Contains(text, `"content`)
}

// same reports whether two nodes say the same because they are written the same.
func same(a, b *node) bool {
	if a == b {
		return true
	}
	if a.text != b.text || a.filled != b.filled || a.doc.upstream != b.doc.upstream && readTwoWays(a.text) {
		return false
	}
	if a.doc == b.doc || !strings.Contains(a.text, `"$ref":`) {
		return true
	}
	return defsAlone(a.text) && a.doc.definitions() == b.doc.definitions() && defsAlone(a.doc.definitions())
}

// defsAlone reports whether every $ref in a schema's text is to a definition.
func defsAlone(text string) bool {
	inDefs := strings.Count(text, `"$ref":"#/$defs/`) + strings.Count(text, `"$ref":"#/definitions/`)
	return strings.Count(text, `"$ref":`) == inDefs
}

// definitions is the text of all that a $ref is commonly to.
func (d *document) definitions() string {
	if d.defs == "" {
		m, _ := bare(d.top).(map[string]any)
		d.defs = string(appendJSON(nil, map[string]any{"$defs": orEmpty(m["$defs"]), "definitions": orEmpty(m["definitions"])}))
	}
	return d.defs
}

func orEmpty(v any) any {
	if v == nil {
		return map[string]any{}
	}
	return v
}
