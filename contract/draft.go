package contract

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/catalogd/catalogd/internal/strictjson"
)

// draft is a version of JSON Schema.
type draft int

const (
	draft04   draft = 4
	draft06   draft = 6
	draft07   draft = 7
	draft2019 draft = 2019
	draft2020 draft = 2020
)

// draftURIs maps the meta-schema URIs, without scheme and fragment, to drafts.
var draftURIs = map[string]draft{
	"json-schema.org/draft-04/schema":      draft04,
	"json-schema.org/draft-06/schema":      draft06,
	"json-schema.org/draft-07/schema":      draft07,
	"json-schema.org/draft/2019-09/schema": draft2019,
	"json-schema.org/draft/2020-12/schema": draft2020,
	"json-schema.org/schema":               draft2020,
}

// draftNamed returns the draft of a $schema; ok is false for an unknown one.
func draftNamed(uri string) (d draft, ok bool) {
	uri = strings.TrimSuffix(uri, "#")
	if rest, cut := strings.CutPrefix(uri, "https://"); cut {
		uri = rest
	} else {
		uri = strings.TrimPrefix(uri, "http://")
	}
	d, ok = draftURIs[uri]
	return d, ok
}

// UnknownDialect returns the $schema of a schema if it is unknown, so that Latest detects the draft by the
// keywords used; it returns "" for every other schema.
func UnknownDialect(schema json.RawMessage) string {
	top, err := decodeOrdered(schema)
	if err != nil {
		return ""
	}
	o, _ := top.(*strictjson.Object)
	if o == nil {
		return ""
	}
	uri, _ := o.Get("$schema").(string)
	if _, known := draftNamed(uri); known {
		return ""
	}
	return uri
}

// draftOf returns the draft of a document, by its $schema or else by the keywords that it uses: MCP
// prescribes 2020-12 without $schema, so another draft is assumed only if the document uses keywords that
// 2020-12 lacks.
func draftOf(top any) draft {
	if o, ok := top.(*strictjson.Object); ok {
		uri, _ := o.Get("$schema").(string)
		if d, known := draftNamed(uri); known {
			return d
		}
	}
	used := map[string]bool{}
	eachSchema(top, "", func(o *strictjson.Object, _ string) {
		for _, m := range o.Members {
			used[m.Key] = true
			_, isBool := m.Value.(bool)
			_, isList := m.Value.([]any)
			switch {
			case isBool && (m.Key == "exclusiveMinimum" || m.Key == "exclusiveMaximum"):
				used["boolean bound"] = true
			case isList && m.Key == "items":
				used["list of items"] = true
			}
		}
	})
	uses := func(keywords ...string) bool {
		return slices.ContainsFunc(keywords, func(k string) bool { return used[k] })
	}
	switch {
	case uses("prefixItems", "$dynamicRef", "$dynamicAnchor"):
		return draft2020
	case uses("$defs", "dependentRequired", "dependentSchemas", "unevaluatedProperties", "unevaluatedItems",
		"minContains", "maxContains", "$anchor", "$recursiveRef", "$recursiveAnchor"):
		if uses("list of items", "additionalItems", "$recursiveRef", "$recursiveAnchor") {
			return draft2019
		}
		return draft2020
	case uses("boolean bound") && !uses("const", "contains", "propertyNames", "if", "$id"):
		return draft04
	case uses("boolean bound", "list of items", "additionalItems", "dependencies", "definitions"):
		return draft07
	}
	return draft2020
}

// The keywords of any draft that hold schemas: one schema, a list of schemas, or schemas by name. items and
// the values of dependencies have two forms.
var (
	schemaKeywords = []string{
		"additionalItems", "additionalProperties", "contains", "else", "if", "items", "not", "propertyNames", "then",
		"unevaluatedItems", "unevaluatedProperties",
	}
	schemaLists = []string{"allOf", "anyOf", "items", "oneOf", "prefixItems"}
	schemaMaps  = []string{
		"$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties",
	}
)

// eachSchema visits every schema in v that is an object, with its pointer, outer ones first.
func eachSchema(v any, pointer string, visit func(o *strictjson.Object, pointer string)) {
	o, ok := v.(*strictjson.Object)
	if !ok {
		return
	}
	visit(o, pointer)
	for _, m := range o.Members {
		at := pointer + "/" + escapePointer(m.Key)
		switch below := m.Value.(type) {
		case []any:
			if slices.Contains(schemaLists, m.Key) {
				for i, item := range below {
					eachSchema(item, at+"/"+itoa(i), visit)
				}
			}
		case *strictjson.Object:
			switch {
			case slices.Contains(schemaMaps, m.Key):
				for _, named := range below.Members {
					eachSchema(named.Value, at+"/"+escapePointer(named.Key), visit)
				}
			case slices.Contains(schemaKeywords, m.Key):
				eachSchema(below, at, visit)
			}
		}
	}
}
