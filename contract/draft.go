package contract

import (
	"encoding/json"
	"slices"
	"strings"
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

// draftURIs are the meta-schemas of the drafts, without scheme and fragment.
var draftURIs = map[string]draft{
	"json-schema.org/draft-04/schema":      draft04,
	"json-schema.org/draft-06/schema":      draft06,
	"json-schema.org/draft-07/schema":      draft07,
	"json-schema.org/draft/2019-09/schema": draft2019,
	"json-schema.org/draft/2020-12/schema": draft2020,
	"json-schema.org/schema":               draft2020,
}

// draftNamed is the draft of a $schema; ok is false for one that is not known.
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

// UnknownDialect is the $schema of a schema whose draft Latest goes by what the schema uses, because it
// doesn't know that $schema; empty for every other schema.
func UnknownDialect(schema json.RawMessage) string {
	top, err := readOrdered(schema)
	if err != nil {
		return ""
	}
	o, _ := top.(*ordered)
	if o == nil {
		return ""
	}
	uri, _ := o.get("$schema").(string)
	if _, known := draftNamed(uri); known {
		return ""
	}
	return uri
}

// draftOf is the draft of a document, by its $schema or else by the keywords that it uses: 2020-12 is what
// MCP says of one without $schema, so another is assumed only where the document has what 2020-12 doesn't.
func draftOf(top any) draft {
	if o, ok := top.(*ordered); ok {
		uri, _ := o.get("$schema").(string)
		if d, known := draftNamed(uri); known {
			return d
		}
	}
	used := map[string]bool{}
	eachSchema(top, "", func(o *ordered, _ string) {
		for _, m := range o.members {
			used[m.key] = true
			_, isBool := m.value.(bool)
			_, isList := m.value.([]any)
			switch {
			case isBool && (m.key == "exclusiveMinimum" || m.key == "exclusiveMaximum"):
				used["boolean bound"] = true
			case isList && m.key == "items":
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

// The keywords below which schemas stand in any draft: one schema, a list of them, one by name. items and the
// values of dependencies are of two kinds.
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
func eachSchema(v any, pointer string, visit func(o *ordered, pointer string)) {
	o, ok := v.(*ordered)
	if !ok {
		return
	}
	visit(o, pointer)
	for _, m := range o.members {
		at := pointer + "/" + escapePointer(m.key)
		switch below := m.value.(type) {
		case []any:
			if slices.Contains(schemaLists, m.key) {
				for i, item := range below {
					eachSchema(item, at+"/"+itoa(i), visit)
				}
			}
		case *ordered:
			switch {
			case slices.Contains(schemaMaps, m.key):
				for _, named := range below.members {
					eachSchema(named.value, at+"/"+escapePointer(named.key), visit)
				}
			case slices.Contains(schemaKeywords, m.key):
				eachSchema(below, at, visit)
			}
		}
	}
}
