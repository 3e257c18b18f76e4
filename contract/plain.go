package contract

import (
	"encoding/json"
	"regexp/syntax"
	"slices"
	"strings"
)

// plain reports whether a schema is of the plain sort that internal/derive writes: known keywords alone, each with a
// value of its type, and $ref into its own $defs. Such a schema can't fail to compile, so that New may put the work off:
// a catalog of ten thousand tools is loaded for a handful to be called.
func plain(schema any) bool {
	top, ok := schema.(map[string]any)
	if !ok {
		return false
	}
	defs, _ := top["$defs"].(map[string]any)
	return plainSchema(schema, defs, true)
}

func plainSchema(schema any, defs map[string]any, top bool) bool {
	m, ok := schema.(map[string]any)
	if !ok {
		_, ok = schema.(bool)
		return ok && !top
	}
	for keyword, v := range m {
		if !plainKeyword(keyword, v, defs, top) {
			return false
		}
	}
	return true
}

func plainKeyword(keyword string, v any, defs map[string]any, top bool) bool {
	switch keyword {
	case "const", "default":
		return true
	case "examples":
		_, ok := v.([]any)
		return ok
	case "deprecated", "readOnly", "writeOnly", "uniqueItems":
		_, ok := v.(bool)
		return ok
	case "format":
		name, _ := v.(string)
		return slices.Contains(formats, name)
	case "contentEncoding":
		return v == "base64"
	case "multipleOf":
		n, ok := v.(json.Number)
		return ok && n[0] != '-' && strings.Trim(string(n), "0.") != "" && !strings.ContainsAny(string(n), "eE")
	case "description", "title", "$comment":
		_, ok := v.(string)
		return ok
	case "type":
		return plainType(v)
	case "enum":
		list, ok := v.([]any)
		return ok && len(list) > 0
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum":
		return isNumber(v)
	case "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties":
		n, ok := v.(json.Number)
		return ok && len(n) < 10 && strings.Trim(string(n), "0123456789") == ""
	case "pattern":
		s, ok := v.(string)
		return ok && plainPattern(s)
	case "required":
		return distinctStrings(v)
	case "$ref":
		s, ok := v.(string)
		name, inside := strings.CutPrefix(s, "#/$defs/")
		_, defined := defs[name]
		return ok && inside && defined && !strings.ContainsAny(name, "~%/")
	case "items", "additionalProperties", "not", "contains", "if", "then", "else", "propertyNames":
		return plainSchema(v, defs, false)
	case "prefixItems", "anyOf", "oneOf", "allOf":
		list, ok := v.([]any)
		return ok && len(list) > 0 && !slices.ContainsFunc(list, func(s any) bool { return !plainSchema(s, defs, false) })
	case "$defs":
		return top && plainSchemas(v, defs, false)
	case "properties":
		return plainSchemas(v, defs, false)
	case "patternProperties":
		return plainSchemas(v, defs, true)
	}
	return false
}

func plainSchemas(v any, defs map[string]any, patterns bool) bool {
	m, ok := v.(map[string]any)
	if !ok {
		return false
	}
	for name, s := range m {
		if patterns && !plainPattern(name) || !plainSchema(s, defs, false) {
			return false
		}
	}
	return true
}

func plainPattern(s string) bool {
	_, err := syntax.Parse(s, syntax.Perl)
	return err == nil
}

func plainType(v any) bool {
	names := []string{"array", "boolean", "integer", "null", "number", "object", "string"}
	if s, ok := v.(string); ok {
		return slices.Contains(names, s)
	}
	list, ok := v.([]any)
	return ok && len(list) > 0 && distinctStrings(v) && !slices.ContainsFunc(list, func(t any) bool { return !slices.Contains(names, t.(string)) })
}

func distinctStrings(v any) bool {
	list, ok := v.([]any)
	if !ok {
		return false
	}
	seen := make(map[string]bool, len(list))
	for _, item := range list {
		s, ok := item.(string)
		if !ok || seen[s] {
			return false
		}
		seen[s] = true
	}
	return true
}
