package lock

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/catalogd/catalogd/contract"
)

// maxSchemaDepth and maxSchemas cap a schema: how deep its JSON is nested, and how many objects it has.
const maxSchemaDepth, maxSchemas = 64, 5000

// readSpec makes a contract of a locked schema, in the bytes that the server sent. Its strictness is what the schema
// says, closed where it allows no further keys and open else, unless another is asked for; closing an open schema adds
// to it. Its defaults are annotations unless fill says that calls get them. What can't be compiled, or is too much, is an
// error.
func readSpec(schema json.RawMessage, strictness contract.Strictness, fill bool) (contract.Spec, error) {
	spec := contract.Spec{Schema: schema, Upstream: true, NoFill: !fill}
	n, err := parse(schema)
	if err != nil {
		return spec, err
	}
	o, ok := n.value.(object)
	if kind, _ := o.get("type"); !ok || kind.value != any("object") {
		return spec, errors.New(`its type must be "object"`)
	}
	if depth, count := extent(n); depth > maxSchemaDepth || count > maxSchemas {
		return spec, fmt.Errorf("it has %d objects in %d levels, more than %d in %d", count, depth, maxSchemas, maxSchemaDepth)
	}
	says := contract.Open
	extra, stands := o.get("additionalProperties")
	if extra.value == any(false) {
		says = contract.Closed
	}
	spec.Strictness = says
	switch strictness {
	case "", says:
	case contract.Open:
		return spec, errors.New("strictness open contradicts it: the server itself takes no further keys")
	default:
		spec.Strictness = strictness
		if says == contract.Open {
			if stands {
				schema = slices.Concat(schema[:extra.at], []byte("false"), schema[extra.end:])
			} else {
				schema = slices.Concat(bytes.TrimSuffix(schema, []byte("}")), []byte(`,"additionalProperties":false}`))
			}
			spec.Schema = schema
		}
	}
	spec.Fields = fields(o, fill)
	if strictness == contract.Exact && slices.ContainsFunc(spec.Fields, func(f contract.Field) bool { return !f.Required }) {
		return spec, errors.New("strictness exact contradicts it: it has arguments that are not required")
	}
	return spec, checked(spec)
}

// readResult makes a contract of the locked schema of a tool's results, which from 2026-07-28 on may be of any JSON value.
func readResult(schema json.RawMessage) (contract.Spec, error) {
	n, err := parse(schema)
	if err != nil {
		return contract.Spec{}, err
	}
	o, ok := n.value.(object)
	if kind, _ := o.get("type"); ok && kind.value == any("object") {
		return readSpec(schema, "", false)
	}
	spec := contract.Spec{Schema: schema, Upstream: true, NoFill: true, Strictness: contract.Open, Value: true}
	if depth, count := extent(n); depth > maxSchemaDepth || count > maxSchemas {
		return spec, fmt.Errorf("it has %d objects in %d levels, more than %d in %d", count, depth, maxSchemas, maxSchemaDepth)
	}
	return spec, checked(spec)
}

// checked reports why no contract can be made of a schema.
func checked(spec contract.Spec) error {
	if _, err := contract.New(spec, nil); err != nil {
		return errors.New(strings.TrimPrefix(strings.TrimPrefix(err.Error(), "contract: "), "schema: "))
	}
	return nil
}

// extent is how deep a value is nested, and how many objects it has.
func extent(n node) (depth, count int) {
	deeper := func(v node) {
		d, c := extent(v)
		depth, count = max(depth, d), count+c
	}
	switch v := n.value.(type) {
	case object:
		count++
		for _, m := range v {
			deeper(m.value)
		}
	case []node:
		for _, item := range v {
			deeper(item)
		}
	default:
		return 0, 0
	}
	return depth + 1, count
}

// fields are the declared arguments, in the order of the schema.
func fields(o object, fill bool) []contract.Field {
	var out []contract.Field
	properties, _ := o.get("properties")
	required, _ := o.get("required")
	names, _ := required.value.([]node)
	declared, _ := properties.value.(object)
	for _, m := range declared {
		f := contract.Field{Name: m.name, Types: types(m.value), Required: slices.ContainsFunc(names, func(n node) bool { return n.value == any(m.name) })}
		if s, ok := m.value.value.(object); ok {
			if d, ok := s.get("default"); ok && fill && !f.Required {
				var b bytes.Buffer
				canonical(&b, d)
				f.Default = b.Bytes()
			}
		}
		out = append(out, f)
	}
	return out
}

var allTypes = []string{"array", "boolean", "integer", "null", "number", "object", "string"}

// types are the JSON types that a property takes at most.
func types(property node) []string {
	s, _ := property.value.(object)
	kind, _ := s.get("type")
	var out []string
	switch v := kind.value.(type) {
	case string:
		out = []string{v}
	case []node:
		for _, item := range v {
			if name, ok := item.value.(string); ok {
				out = append(out, name)
			}
		}
	}
	out = slices.DeleteFunc(out, func(t string) bool { return !slices.Contains(allTypes, t) })
	if len(out) == 0 {
		return slices.Clone(allTypes)
	}
	slices.Sort(out)
	return slices.Compact(out)
}
