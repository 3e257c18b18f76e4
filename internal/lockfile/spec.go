package lockfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/internal/strictjson"
)

// maxSchemaDepth and maxSchemas cap a schema: the nesting of its JSON, and its number of objects.
const maxSchemaDepth, maxSchemas = 64, 5000

// readSpec makes a contract of a locked schema, as the server sent it. The strictness follows the schema,
// closed where it allows no further keys and open else, unless another is requested; closing an open schema
// adds to it. Defaults are annotations only, unless fill is set: then calls get them. A schema that can't be
// compiled or exceeds the caps is an error.
func readSpec(schema json.RawMessage, strictness contract.Strictness, fill bool) (contract.Spec, error) {
	spec := contract.Spec{Schema: schema, Upstream: true, NoFill: !fill}
	v, err := parse(schema)
	if err != nil {
		return spec, err
	}
	o, _ := v.(*strictjson.Object)
	if o.Text("type") != "object" {
		return spec, errors.New(`its type must be "object"`)
	}
	if depth, count := extent(v); depth > maxSchemaDepth || count > maxSchemas {
		return spec, fmt.Errorf("it has %d objects in %d levels, more than %d in %d", count, depth, maxSchemas, maxSchemaDepth)
	}
	says := contract.Open
	extra, stands := o.Member("additionalProperties")
	if extra.Value == any(false) {
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
				schema = slices.Concat(schema[:extra.At], []byte("false"), schema[extra.End:])
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

// readResult makes a contract of the locked schema of a tool's results; since 2026-07-28 a result may be any
// JSON value.
func readResult(schema json.RawMessage) (contract.Spec, error) {
	v, err := parse(schema)
	if err != nil {
		return contract.Spec{}, err
	}
	if o, _ := v.(*strictjson.Object); o.Text("type") == "object" {
		return readSpec(schema, "", false)
	}
	spec := contract.Spec{Schema: schema, Upstream: true, NoFill: true, Strictness: contract.Open, Value: true}
	if depth, count := extent(v); depth > maxSchemaDepth || count > maxSchemas {
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

// extent returns the nesting depth of a value, and its number of objects.
func extent(v any) (depth, count int) {
	deeper := func(below any) {
		d, c := extent(below)
		depth, count = max(depth, d), count+c
	}
	switch v := v.(type) {
	case *strictjson.Object:
		count++
		for _, m := range v.Members {
			deeper(m.Value)
		}
	case []any:
		for _, item := range v {
			deeper(item)
		}
	default:
		return 0, 0
	}
	return depth + 1, count
}

// fields returns the declared arguments, in the order of the schema.
func fields(o *strictjson.Object, fill bool) []contract.Field {
	var out []contract.Field
	declared := o.Object("properties")
	if declared == nil {
		return nil
	}
	for _, m := range declared.Members {
		property, _ := m.Value.(*strictjson.Object)
		f := contract.Field{
			Name: m.Key, Types: types(property), Required: slices.Contains(o.List("required"), any(m.Key)),
		}
		if d, ok := property.Find("default"); ok && fill && !f.Required {
			f.Default = strictjson.AppendSorted(nil, d)
		}
		out = append(out, f)
	}
	return out
}

var allTypes = []string{"array", "boolean", "integer", "null", "number", "object", "string"}

// types returns an upper bound of the JSON types that a property accepts.
func types(property *strictjson.Object) []string {
	var out []string
	switch v := property.Get("type").(type) {
	case string:
		out = []string{v}
	case []any:
		for _, item := range v {
			if name, ok := item.(string); ok {
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
