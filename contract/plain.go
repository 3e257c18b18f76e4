package contract

import (
	"encoding/json"
	"regexp/syntax"
	"slices"
	"strings"
)

// plain reports whether a schema has the simple form that internal/derive writes: only known keywords, each
// with a value of its type, and $ref only into its own $defs. Such a schema can't fail to compile, so New may
// compile it lazily: of a catalog of ten thousand tools only a few are called.
func plain(schema any, upstream bool) bool {
	top, ok := schema.(map[string]any)
	if !ok {
		return false
	}
	defs, _ := top["$defs"].(map[string]any)
	return plainReader{defs, upstream}.schema(schema, true)
}

type plainReader struct {
	defs map[string]any
	// upstream is as in Spec.
	upstream bool
}

func (r plainReader) schema(schema any, top bool) bool {
	m, ok := schema.(map[string]any)
	if !ok {
		_, ok = schema.(bool)
		return ok && !top
	}
	for keyword, v := range m {
		if !r.keyword(keyword, v, top) {
			return false
		}
	}
	return true
}

func (r plainReader) keyword(keyword string, v any, top bool) bool {
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
		name, ok := v.(string)
		return slices.Contains(formats, name) || r.upstream && ok
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
		return ok && r.pattern(s)
	case "required":
		return distinctStrings(v)
	case "$ref":
		s, ok := v.(string)
		name, inside := strings.CutPrefix(s, "#/$defs/")
		_, defined := r.defs[name]
		return ok && inside && defined && !strings.ContainsAny(name, "~%/")
	case "items", "additionalProperties", "not", "contains", "if", "then", "else", "propertyNames":
		return r.schema(v, false)
	case "prefixItems", "anyOf", "oneOf", "allOf":
		list, ok := v.([]any)
		return ok && len(list) > 0 && !slices.ContainsFunc(list, func(s any) bool { return !r.schema(s, false) })
	case "$defs":
		return top && r.schemas(v, false)
	case "properties":
		return r.schemas(v, false)
	case "patternProperties":
		return r.schemas(v, true)
	}
	return false
}

func (r plainReader) schemas(v any, patterns bool) bool {
	m, ok := v.(map[string]any)
	if !ok {
		return false
	}
	for name, s := range m {
		if patterns && !r.pattern(name) || !r.schema(s, false) {
			return false
		}
	}
	return true
}

func (r plainReader) pattern(s string) bool {
	if r.upstream {
		t := translate(s)
		if s = t.re2.String(); t.beyond || len(s) > maxTranslated {
			return false
		}
	}
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
