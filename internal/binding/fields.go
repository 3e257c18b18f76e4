package binding

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/internal/placeholder"
	"github.com/catalogd/catalogd/problem"
)

// A name of a request's placeholder is an argument, or a field inside of one: filter.city.

// field looks up an argument, or a field inside of one, and reports an unknown one.
func (c *check) field(at, name string) (contract.Field, bool) {
	if f, ok := c.tool.Args.Field(name); ok {
		return f, true
	}
	top, inner, nested := strings.Cut(name, ".")
	if !nested {
		return c.argument(at, name)
	}
	f, ok := c.argument(at, top)
	if !ok {
		return f, false
	}
	var schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if err := json.Unmarshal(c.tool.Args.Schema, &schema); err != nil {
		c.errorf(problem.BadPlaceholder, at, "{%s}: the arguments have no schema that can be read: %v", name, err)
		return f, false
	}
	raw := schema.Properties[top]
	for key := range strings.SplitSeq(inner, ".") {
		s := c.schema(raw)
		next, ok := s.Properties[key]
		if !ok {
			c.errorf(problem.BadPlaceholder, at, "{%s}: argument %q declares no field %q there%s", name, f.Name, key, known(s.Properties))
			return f, false
		}
		only := slices.Equal(f.Types, []string{"object"})
		required := slices.Contains(s.Required, key)
		raw = next
		s = c.schema(raw)
		always := f.Always() && only
		f = contract.Field{Name: name, Types: s.types(), Required: always && required}
		if always {
			f.Default = s.Default
		}
	}
	return f, true
}

// known says which fields there are.
func known(properties map[string]json.RawMessage) string {
	if len(properties) == 0 {
		return ""
	}
	return "; it has " + strings.Join(sortedKeys(properties), ", ")
}

// fieldSchema is the part of a JSON Schema that says which fields there are, and of which types.
type fieldSchema struct {
	Ref        string                     `json:"$ref"`
	Type       json.RawMessage            `json:"type"`
	Const      json.RawMessage            `json:"const"`
	Enum       []json.RawMessage          `json:"enum"`
	Default    json.RawMessage            `json:"default"`
	Properties map[string]json.RawMessage `json:"properties"`
	Required   []string                   `json:"required"`
}

// schema reads a schema, and follows its reference into $defs. What it can't read has no types and no fields.
func (c *check) schema(raw json.RawMessage) (s fieldSchema) {
	for range 8 {
		s = fieldSchema{}
		if json.Unmarshal(raw, &s) != nil {
			return fieldSchema{}
		}
		name, ok := strings.CutPrefix(s.Ref, "#/$defs/")
		if !ok {
			return s
		}
		var top struct {
			Defs map[string]json.RawMessage `json:"$defs"`
		}
		if json.Unmarshal(c.tool.Args.Schema, &top) != nil {
			return fieldSchema{}
		}
		raw = top.Defs[strings.NewReplacer("~1", "/", "~0", "~").Replace(name)]
	}
	return fieldSchema{}
}

// types are the JSON types that the schema accepts; none where it doesn't say.
func (s fieldSchema) types() []string {
	var one string
	var some []string
	if json.Unmarshal(s.Type, &one) == nil && one != "" {
		return []string{one}
	}
	if json.Unmarshal(s.Type, &some) == nil && len(some) > 0 {
		return some
	}
	values := s.Enum
	if s.Const != nil {
		values = append(values, s.Const)
	}
	for _, v := range values {
		if t := typeOf(v); !slices.Contains(some, t) {
			some = append(some, t)
		}
	}
	return some
}

// typeOf returns the JSON type of a value.
func typeOf(v json.RawMessage) string {
	switch v = bytes.TrimSpace(v); v[0] {
	case '"':
		return "string"
	case '{':
		return "object"
	case '[':
		return "array"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	}
	return "number"
}

// topArgument returns the argument that a placeholder's name stands for, or is inside of.
func (c *check) topArgument(name string) string {
	if c.declared(name) {
		return name
	}
	top, _, _ := strings.Cut(name, ".")
	return top
}

// lookup returns an argument, or a field inside of one; false where a call has none.
func lookup(args contract.Args, name string) (any, bool) {
	if v, ok := args.Lookup(name); ok {
		return v, true
	}
	top, inner, nested := strings.Cut(name, ".")
	v, ok := args.Lookup(top)
	if !ok || !nested {
		return nil, false
	}
	for key := range strings.SplitSeq(inner, ".") {
		object, _ := v.(map[string]any)
		if v, ok = object[key]; !ok {
			return nil, false
		}
	}
	return v, true
}

// joins are the separators of lists that become one text, by the name of the argument.
type joins map[string]string

// newJoins checks the declared separators.
func newJoins(c *check, field string, declared map[string]string) joins {
	for _, name := range sortedKeys(declared) {
		at := field + "." + name
		f, ok := c.field(at, name)
		separator := declared[name]
		switch {
		case !ok:
		case !mayBe(f, "array"):
			c.errorf(problem.BadPlaceholder, at, "argument %q is never a list, so there is nothing to join", name)
		case separator == "" || len(separator) > 8 || strings.Trim(separator, printable) != "":
			c.errorf(problem.BadBinding, at, "the separator %q is not 1 to 8 characters of printable ASCII", separator)
		}
	}
	return declared
}

// unused refuses separators of arguments that no text of the request has.
func (j joins) unused(c *check, field string, placed map[string]bool) {
	for _, name := range sortedKeys(j) {
		if !c.problems.HasErrors() && !placed[c.topArgument(name)] {
			c.errorf(problem.BadPlaceholder, field+"."+name, "argument %q is in no text of the request, so nothing is joined; take it away", name)
		}
	}
}

// printable are the characters of printable ASCII.
var printable = func() string {
	var b strings.Builder
	for r := ' '; r <= '~'; r++ {
		b.WriteRune(r)
	}
	return b.String()
}()

func mayBe(f contract.Field, kind string) bool {
	return len(f.Types) == 0 || slices.Contains(f.Types, kind)
}

// text returns a value as one text, a list by its declared separator. false means that there is none: the
// value is absent, null or an empty list. What can't be one text is refused.
func (j joins) text(refused *violations, args contract.Args, name string) (string, bool) {
	v, ok := lookup(args, name)
	if !ok || v == nil {
		return "", false
	}
	if s, single := placeholder.Text(v); single {
		return s, true
	}
	list, isList := v.([]any)
	separator, joined := j[name]
	if !isList || !joined {
		refused.add(name, "a value with others inside", "a single value, because it becomes one text of the request")
		return "", false
	}
	parts := make([]string, 0, len(list))
	for _, one := range list {
		s, single := placeholder.Text(one)
		switch {
		case !single:
			refused.add(name, "a list with other than single values", "a list of single values, because they become one text of the request")
			return "", false
		case strings.Contains(s, separator):
			refused.add(name, fmt.Sprintf("a list with an element that contains %q", separator), "elements without it, because it separates them in the request")
			return "", false
		}
		parts = append(parts, s)
	}
	return strings.Join(parts, separator), len(parts) > 0
}
