package compat

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/internal/strictjson"
)

const (
	// maxSchema bounds the schemas that are compared, in bytes, and maxSubschemas in subschemas.
	maxSchema     = 1 << 20
	maxSubschemas = 5000
	// maxValidation bounds what one document's validator does in a comparison, in subschemas applied;
	// maxValue bounds what it does for one value.
	maxValidation = 2_000_000
	maxValue      = 50_000
)

// document is one schema, read for comparing.
type document struct {
	top        any    // decoded
	text       string // canonical, without annotations; empty where the JSON can't be read
	broken     string // why it can't be compared; empty where it can
	upstream   bool   // as in contract.Spec
	root       *subschema
	subschemas map[key]*subschema
	validator  *contract.Validator
	work       int // what the validator may still do
}

// key names a subschema in its document.
type key struct {
	pointer string
	fills   bool
}

// unreadable is the panic by which nested readers give up; readDocument turns it into document.broken.
type unreadable string

// readDocument reads the schema of a spec. fills says that defaults are filled in before it is applied.
func readDocument(spec contract.Spec, fills bool) (d *document) {
	d = &document{subschemas: map[key]*subschema{}, upstream: spec.Upstream, work: maxValidation}
	defer func() {
		if r := recover(); r != nil {
			why, ok := r.(unreadable)
			if !ok {
				panic(r)
			}
			d.broken = string(why)
		}
	}()
	if len(spec.Schema) > maxSchema {
		panic(unreadable(fmt.Sprintf("it is longer than %d bytes", maxSchema)))
	}
	var err error
	if d.top, err = spec.Document(); err != nil {
		panic(unreadable(err.Error()))
	}
	d.text = canonical(withoutAnnotations(d.top))
	spec.NoFill = !fills
	if d.validator, err = spec.Validator(); err != nil {
		panic(unreadable(err.Error()))
	}
	d.root = d.read("", fills)
	if fills {
		d.refuseInterference()
	}
	return d
}

// find is the part of the document at a JSON pointer.
func (d *document) find(pointer string) any {
	v := d.top
	for _, step := range strings.Split(pointer, "/")[1:] {
		step = strings.ReplaceAll(strings.ReplaceAll(step, "~1", "/"), "~0", "~")
		found := false
		switch parent := v.(type) {
		case map[string]any:
			v, found = parent[step]
		case []any:
			if i, err := strconv.Atoi(step); err == nil && i >= 0 && i < len(parent) {
				v, found = parent[i], true
			}
		}
		if !found {
			panic(unreadable("a $ref leads nowhere"))
		}
	}
	return v
}

// spend reserves the validator for a value, and reports whether it may be applied.
func (d *document) spend(at *subschema, v any) bool {
	cost := at.cost(v, maxValue)
	d.work -= cost + 10
	return cost < maxValue && d.work >= 0
}

// check asks the validator about a whole value, with defaults filled in where this document has them filled
// in. decided is false where it can't be asked.
func (d *document) check(v any) (found []contract.Violation, decided bool) {
	if !d.spend(d.root, v) {
		return nil, false
	}
	return d.validator.Check(v)
}

// accepts asks the validator whether v is valid against s alone. decided is false where it can't be asked.
func (s *subschema) accepts(v any) (valid, decided bool) {
	if !s.doc.spend(s, v) {
		return false, false
	}
	return s.doc.validator.Valid(s.pointer, v)
}

// cost bounds what a validator does for v at s: the number of subschemas that it applies, up to limit.
func (s *subschema) cost(v any, limit int) int {
	spent := 1
	visit := func(c *subschema, v any) {
		if c != nil && spent < limit {
			spent += c.cost(v, limit-spent)
		}
	}
	for _, c := range s.inPlace() {
		visit(c, v)
	}
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			for _, c := range s.member(name) {
				visit(c, value)
			}
			visit(s.names, name)
		}
	case []any:
		for i, value := range v {
			visit(s.item(i), value)
			visit(s.contains, value)
		}
		if s.equal["uniqueItems"] != "" {
			spent += len(v) * len(v)
		}
	}
	return spent
}

// withoutAnnotations is a schema without the keywords that change nothing of what is accepted or filled in.
// Names of properties and the values of const, enum and default are not keywords, and stay.
func withoutAnnotations(schema any) any {
	m, ok := schema.(map[string]any)
	if !ok {
		return schema
	}
	out := make(map[string]any, len(m))
	for keyword, v := range m {
		switch keyword {
		case "title", "description", "examples", "$comment", "deprecated", "readOnly", "writeOnly":
			continue
		case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas":
			if named, ok := v.(map[string]any); ok {
				each := make(map[string]any, len(named))
				for name, s := range named {
					each[name] = withoutAnnotations(s)
				}
				v = each
			}
		case "allOf", "anyOf", "oneOf", "prefixItems":
			if list, ok := v.([]any); ok {
				each := make([]any, len(list))
				for i, s := range list {
					each[i] = withoutAnnotations(s)
				}
				v = each
			}
		case "items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames",
			"unevaluatedItems", "unevaluatedProperties":
			v = withoutAnnotations(v)
		case "required":
			if _, ok := v.([]any); ok {
				v = sortedTexts(v)
			}
		}
		out[keyword] = v
	}
	return out
}

// sameText reports whether two subschemas accept the same because they are written the same. What a $ref
// leads to is not compared, so it has to be in the same document.
func sameText(a, b *subschema) bool {
	switch {
	case a == b:
		return true
	case a.text != b.text || a.fills != b.fills || a.doc.upstream != b.doc.upstream && dependsOnOrigin(a.text):
		return false
	}
	return a.doc == b.doc || !strings.Contains(a.text, `"$ref":`)
}

// dependsOnOrigin reports whether a schema means something else where it is an upstream server's
// (contract.Spec.Upstream).
func dependsOnOrigin(text string) bool {
	return strings.Contains(text, `"format":`) || strings.Contains(text, `"pattern`) ||
		strings.Contains(text, `"content`)
}

// canonical is a decoded value as JSON with sorted keys. Numbers keep their digits.
func canonical(v any) string { return string(strictjson.AppendSorted(nil, v)) }

// sortedTexts are the strings in a list, or a string alone, sorted and each once.
func sortedTexts(v any) []string {
	if s, ok := v.(string); ok {
		return []string{s}
	}
	list, _ := v.([]any)
	out := []string{}
	for _, item := range list {
		if s, ok := item.(string); ok {
			out = append(out, s)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
