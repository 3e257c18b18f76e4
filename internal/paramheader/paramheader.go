// Package paramheader mirrors arguments of a tool into HTTP headers, as the revision 2026-07-28 of MCP asks a
// client over streamable HTTP to (Custom Headers from Tool Parameters): a property of the tool's inputSchema
// that is annotated with x-mcp-header travels in Mcp-Param-NAME too. A tool one of whose annotations is not
// valid must not be used at all.
package paramheader

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"net/http"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"
)

const (
	// Prefix begins the name of each header.
	Prefix = "Mcp-Param-"
	// keyword is the annotation.
	keyword = "x-mcp-header"
)

// Param is an annotated property: where its value is in the arguments, and the name behind Prefix.
type Param struct {
	Path []string
	Name string
}

// Error is an annotation that is not valid: where it stands in the schema, and why.
type Error struct {
	Path   []string
	Reason string
}

func (e *Error) Error() string { return fmt.Sprintf("%s at %s: %s", keyword, shown(e.Path), e.Reason) }

// Read returns the annotated properties of an inputSchema in the order of their paths. Its error is an *Error
// of the first annotation that is not valid. What is no schema has none: whether it is one is not decided here.
func Read(inputSchema json.RawMessage) ([]Param, error) {
	r := reader{names: map[string]string{}}
	if err := r.schema(inputSchema, nil, true); err != nil {
		return nil, err
	}
	return r.params, nil
}

type reader struct {
	params []Param
	names  map[string]string // in lower case, to the place
}

// Keywords that hold a schema, a list of schemas and schemas by name. items and dependencies hold either of
// two.
var (
	oneSchema = []string{
		"items", "additionalItems", "additionalProperties", "unevaluatedItems", "unevaluatedProperties", "contains",
		"propertyNames", "not", "if", "then", "else", "contentSchema",
	}
	manySchemas = []string{"allOf", "anyOf", "oneOf", "prefixItems", "items"}
	namedOnes   = []string{"$defs", "definitions", "patternProperties", "dependentSchemas", "dependencies"}
)

// schema reads one schema at path. reached says that only keys of properties lead to it.
func (r *reader) schema(raw json.RawMessage, path []string, reached bool) error {
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil {
		return nil // true, false, or what is no schema
	}
	if annotation, ok := members[keyword]; ok {
		if err := r.annotation(annotation, members["type"], path, reached); err != nil {
			return &Error{path, err.Error()}
		}
	}
	each := func(raw json.RawMessage, name string, reached bool) error {
		return r.schema(raw, append(slices.Clip(path), name), reached)
	}
	var properties map[string]json.RawMessage
	if json.Unmarshal(members["properties"], &properties) == nil {
		for _, name := range slices.Sorted(maps.Keys(properties)) {
			if err := each(properties[name], name, reached); err != nil {
				return err
			}
		}
	}
	for _, name := range oneSchema {
		if err := each(members[name], name, false); err != nil {
			return err
		}
	}
	for _, name := range manySchemas {
		var list []json.RawMessage
		if json.Unmarshal(members[name], &list) != nil {
			continue
		}
		for _, raw := range list {
			if err := each(raw, name, false); err != nil {
				return err
			}
		}
	}
	for _, name := range namedOnes {
		var named map[string]json.RawMessage
		if json.Unmarshal(members[name], &named) != nil {
			continue
		}
		for _, key := range slices.Sorted(maps.Keys(named)) {
			if err := each(named[key], name, false); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *reader) annotation(raw, kind json.RawMessage, path []string, reached bool) error {
	var name string
	switch {
	case !reached || len(path) == 0:
		return fmt.Errorf("only a property that properties alone lead to can have it")
	case len(raw) == 0 || raw[0] != '"' || json.Unmarshal(raw, &name) != nil || name == "":
		return fmt.Errorf("it must be a text that is not empty")
	case !httpguts.ValidHeaderFieldName(name):
		return fmt.Errorf("%q is not a header name (RFC 9110, 5.1)", name)
	}
	if first, taken := r.names[strings.ToLower(name)]; taken {
		return fmt.Errorf("%q is the name of %s too", name, first)
	}
	types, primitive := typesOf(kind), false
	for _, t := range types {
		switch t {
		case "string", "integer", "boolean":
			primitive = true
		case "null": // its header is left out
		default:
			return fmt.Errorf("its type is %s, and only a string, an integer or a boolean can be mirrored", t)
		}
	}
	if !primitive {
		return fmt.Errorf("it must have the type string, integer or boolean")
	}
	r.names[strings.ToLower(name)] = shown(path)
	r.params = append(r.params, Param{Path: path, Name: name})
	return nil
}

func typesOf(raw json.RawMessage) (types []string) {
	var one string
	if json.Unmarshal(raw, &one) == nil && one != "" {
		return []string{one}
	}
	if json.Unmarshal(raw, &types) != nil {
		return nil
	}
	return types
}

// shown is a path as a JSON pointer.
func shown(path []string) string {
	if len(path) == 0 {
		return "the root"
	}
	return "/" + strings.Join(path, "/")
}

// Headers adds to h the header of each param whose value is in a call's arguments, and is neither null nor of
// a type that can't be mirrored.
func Headers(h http.Header, params []Param, args json.RawMessage) {
	for _, p := range params {
		if value, ok := lookup(args, p.Path); ok {
			h[http.CanonicalHeaderKey(Prefix+p.Name)] = []string{Encode(value)}
		}
	}
}

// lookup is the value at path as a text.
func lookup(args json.RawMessage, path []string) (string, bool) {
	for _, name := range path {
		var members map[string]json.RawMessage
		if json.Unmarshal(args, &members) != nil {
			return "", false
		}
		args = members[name]
	}
	var text string
	switch {
	case len(args) == 0 || string(args) == "null":
		return "", false
	case args[0] == '"':
		err := json.Unmarshal(args, &text)
		return text, err == nil
	case string(args) == "true" || string(args) == "false":
		return string(args), true
	}
	return integer(string(args))
}

// maxSafe is the greatest integer that every program reads exactly.
var maxSafe = big.NewInt(1<<53 - 1)

// integer is a JSON number without a fraction in decimal digits.
func integer(number string) (string, bool) {
	var f big.Float
	_, _, err := f.SetPrec(200).Parse(number, 10)
	if err != nil || !f.IsInt() || f.MantExp(nil) > maxSafe.BitLen() {
		return "", false
	}
	if n, _ := f.Int(nil); n.CmpAbs(maxSafe) <= 0 {
		return n.String(), true
	}
	return "", false
}

// Encode is a text as the value of a header: itself, or in Base64 where it is not plain ASCII, has white
// space at an end, or looks like an encoded one.
func Encode(text string) string {
	const begin, end = "=?base64?", "?="
	plain := strings.Trim(text, " \t") == text && !(strings.HasPrefix(text, begin) && strings.HasSuffix(text, end))
	for i := 0; plain && i < len(text); i++ {
		plain = text[i] >= ' ' && text[i] <= '~' || text[i] == '\t'
	}
	if plain {
		return text
	}
	return begin + base64.StdEncoding.EncodeToString([]byte(text)) + end
}
