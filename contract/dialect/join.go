package dialect

import (
	"encoding/json"
	"math"
	"regexp"
	"slices"
	"strconv"
	"unicode/utf8"
)

// annotations are keywords that don't affect what is accepted.
var annotations = []string{
	"description", "title", "default", "examples", "deprecated", "readOnly", "writeOnly",
	"$schema", "$id", "$comment", "$anchor", "$defs", "definitions",
}

// together are keywords that have a meaning only in combination, so they are joined or kept apart as one.
var together = [][]string{{"if", "then", "else"}, {"contains", "minContains", "maxContains"}, {"items", "prefixItems"}}

var objectKeywords = []string{"properties", "patternProperties", "additionalProperties"}

var (
	lowerBounds = []string{"minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"}
	upperBounds = []string{"maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"}
)

// trivial reports whether a schema accepts everything.
func trivial(schema *object) bool {
	return !slices.ContainsFunc(schema.members, func(m member) bool { return !slices.Contains(annotations, m.key) })
}

// join returns a schema that accepts exactly what both accept. What no keyword can express stays in an allOf.
// It returns false if nothing is accepted.
func join(a, b *object) (*object, bool) {
	out, rest := a.clone(), &object{}
	if !joinTypes(out, b) || !joinLiterals(out, b) {
		return nil, false
	}
	done := append([]string{"type", "enum", "const"}, objectKeywords...)
	for _, group := range together {
		joinGroup(out, b, rest, group)
		done = append(done, group...)
	}
	joinObjects(out, b, rest)
	for _, m := range b.members {
		old, ok := out.get(m.key)
		switch {
		case slices.Contains(done, m.key):
		case !ok:
			out.set(m.key, m.value)
		case m.key == "required":
			out.set(m.key, unite(out.list(m.key), b.list(m.key)))
		case m.key == "allOf":
			out.set(m.key, append(slices.Clone(out.list(m.key)), b.list(m.key)...))
		case m.key == "writeOnly" && m.value == true:
			out.set(m.key, true)
		case slices.Contains(annotations, m.key) || same(out, m):
		case slices.Contains(lowerBounds, m.key) || slices.Contains(upperBounds, m.key):
			x, okX := old.(json.Number)
			y, okY := m.value.(json.Number)
			if okX && okY && (compare(y, x) > 0) == slices.Contains(lowerBounds, m.key) {
				out.set(m.key, y)
			}
		default:
			rest.set(m.key, m.value)
		}
	}
	if len(rest.members) > 0 {
		out.set("allOf", append(slices.Clone(out.list("allOf")), rest))
	}
	return sound(out)
}

// sound returns a schema without the literals that its other keywords exclude. It returns false if nothing is
// accepted.
func sound(schema *object) (*object, bool) {
	out := schema
	if values, ok := literals(schema); ok {
		kept := slices.DeleteFunc(slices.Clone(values), func(v any) bool { return !admits(schema, v) })
		if len(kept) == 0 {
			return nil, false
		}
		if len(kept) < len(values) {
			out = schema.clone()
			setLiterals(out, kept)
		}
	}
	for _, name := range out.list("required") {
		if n, ok := name.(string); ok && at(out, n) == false {
			return nil, false
		}
	}
	return out, true
}

func unite(a, b []any) []any {
	out := []any{}
	for _, v := range slices.Concat(a, b) {
		if _, ok := v.(string); ok && !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	return out
}

func joinTypes(out, b *object) bool {
	theirs := types(b)
	switch mine := types(out); {
	case len(theirs) == 0:
	case len(mine) == 0:
		v, _ := b.get("type")
		out.set("type", v)
	default:
		var both []string
		for _, t := range mine {
			switch {
			case slices.Contains(theirs, t), t == "integer" && slices.Contains(theirs, "number"):
				both = append(both, t)
			case t == "number" && slices.Contains(theirs, "integer") && !slices.Contains(mine, "integer"):
				both = append(both, "integer")
			}
		}
		if len(both) == 0 {
			return false
		}
		setTypes(out, both)
	}
	return true
}

func setTypes(o *object, names []string) {
	if len(names) == 1 {
		o.set("type", names[0])
		return
	}
	o.set("type", anys(names))
}

func joinLiterals(out, b *object) bool {
	mine, ok := literals(out)
	theirs, also := literals(b)
	if !also {
		return true
	}
	if !ok {
		for _, key := range []string{"enum", "const"} {
			if v, ok := b.get(key); ok {
				out.set(key, v)
			}
		}
		return true
	}
	kept := slices.DeleteFunc(slices.Clone(mine), func(v any) bool {
		return !slices.ContainsFunc(theirs, func(w any) bool { return equal(v, w) })
	})
	if b.has("enum") && out.has("const") {
		out.set("enum", kept)
	}
	setLiterals(out, kept)
	return len(kept) > 0
}

// admits reports whether the type and the bounds of a schema accept a literal value.
func admits(schema *object, v any) bool {
	if ts := types(schema); len(ts) > 0 {
		kind := typeOfValue(v)
		if !slices.Contains(ts, kind) && (kind != "integer" || !slices.Contains(ts, "number")) {
			return false
		}
	}
	if not, ok := literals(schema.object("not")); ok && len(schema.object("not").members) == 1 {
		if slices.ContainsFunc(not, func(w any) bool { return equal(v, w) }) {
			return false
		}
	}
	within := func(n json.Number, lower, upper string, strict bool) bool {
		low, hasLow := schema.get(lower)
		high, hasHigh := schema.get(upper)
		least, most := 0, 0
		if strict {
			least, most = 1, -1
		}
		l, okL := low.(json.Number)
		h, okH := high.(json.Number)
		return (!hasLow || !okL || compare(n, l) >= least) && (!hasHigh || !okH || compare(n, h) <= most)
	}
	switch v := v.(type) {
	case json.Number:
		return within(v, "minimum", "maximum", false) && within(v, "exclusiveMinimum", "exclusiveMaximum", true)
	case string:
		if !within(json.Number(strconv.Itoa(utf8.RuneCountInString(v))), "minLength", "maxLength", false) {
			return false
		}
		re, err := regexp.Compile(schema.text("pattern"))
		return err != nil || re.MatchString(v)
	}
	return true
}

// typeOfValue returns the JSON type of a value; a whole number is an integer.
func typeOfValue(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case json.Number:
		if n, err := strconv.ParseFloat(string(v), 64); err == nil && n == math.Trunc(n) {
			return "integer"
		}
		return "number"
	case []any:
		return "array"
	}
	return "object"
}

// equal reports whether two values are equal; 1.0 equals 1.
func equal(v, w any) bool {
	x, okX := v.(json.Number)
	y, okY := w.(json.Number)
	return okX && okY && compare(x, y) == 0 || string(encode(v)) == string(encode(w))
}

// setLiterals sets the values of a const or an enum.
func setLiterals(o *object, values []any) {
	if len(values) == 1 && !o.has("enum") {
		o.set("const", values[0])
		return
	}
	o.remove("const")
	o.set("enum", values)
}

// joinGroup joins keywords that have a meaning only in combination.
func joinGroup(out, b, rest *object, group []string) {
	differs, mine, theirs := false, false, &object{}
	for _, key := range group {
		mine = mine || out.has(key)
		if v, ok := b.get(key); ok {
			theirs.set(key, v)
			differs = differs || !same(out, member{key, v})
		} else {
			differs = differs || out.has(key)
		}
	}
	switch {
	case len(theirs.members) == 0:
	case !mine:
		out.members = append(out.members, theirs.members...)
	case !differs:
	case group[0] == "items" && !theirs.has("prefixItems") && !out.has("prefixItems"):
		x, _ := out.get("items")
		y, _ := b.get("items")
		out.set("items", both(x, y))
	default:
		rest.members = append(rest.members, theirs.members...)
	}
}

// joinObjects joins properties, patternProperties and additionalProperties, which depend on each other.
func joinObjects(out, b, rest *object) {
	mine, theirs := &object{}, &object{}
	for _, key := range objectKeywords {
		if v, ok := out.get(key); ok {
			mine.set(key, v)
		}
		if v, ok := b.get(key); ok {
			theirs.set(key, v)
		}
	}
	switch {
	case len(theirs.members) == 0:
		return
	case len(mine.members) == 0:
		out.members = append(out.members, theirs.members...)
		return
	}
	properties := &object{}
	for _, p := range out.object("properties").members {
		properties.set(p.key, both(p.value, at(b, p.key)))
	}
	for _, p := range b.object("properties").members {
		if !properties.has(p.key) {
			properties.set(p.key, both(at(out, p.key), p.value))
		}
	}
	patterns, exact := joinPatterns(mine, theirs)
	if !exact { // both are repeated in the allOf
		out.set("allOf", append(slices.Clone(out.list("allOf")), mine.without("properties")))
		rest.members = append(rest.members, theirs.without("properties").members...)
	}
	if len(properties.members) > 0 {
		out.set("properties", properties)
	}
	if len(patterns.members) > 0 {
		out.set("patternProperties", patterns)
	}
	extra, hasMine := mine.get("additionalProperties")
	other, hasTheirs := theirs.get("additionalProperties")
	switch {
	case !exact:
		out.remove("additionalProperties")
	case hasMine && hasTheirs:
		out.set("additionalProperties", both(extra, other))
	case hasTheirs:
		out.set("additionalProperties", other)
	}
}

// joinPatterns joins the patterns of keys. It is not exact if a key may match patterns of both, or a pattern
// of one and the other's rule for further keys: the result then depends on which keys match.
func joinPatterns(a, b *object) (patterns *object, exact bool) {
	mine, theirs := a.object("patternProperties"), b.object("patternProperties")
	switch {
	case len(mine.members) == 0 && len(theirs.members) == 0:
		return mine, true
	case string(encode(mine)) == string(encode(theirs)):
		return mine, true
	case len(mine.members) > 0 && len(theirs.members) > 0:
		return mine, false
	case len(mine.members) == 0:
		a, b, mine = b, a, theirs
	}
	extra, ok := b.get("additionalProperties")
	if !ok || accepting(extra) {
		return mine, true
	}
	out := &object{}
	for _, p := range mine.members {
		re, err := regexp.Compile(p.key)
		declared := func(m member) bool { return err != nil || re.MatchString(m.key) }
		if err != nil || slices.ContainsFunc(b.object("properties").members, declared) {
			return mine, false
		}
		out.set(p.key, both(p.value, extra))
	}
	return out, true
}

// at returns the schema that an object has for a key.
func at(schema *object, name string) any {
	out, declared := schema.object("properties").get(name)
	for _, p := range schema.object("patternProperties").members {
		re, err := regexp.Compile(p.key)
		if err == nil && re.MatchString(name) {
			out, declared = both(out, p.value), true
		}
	}
	if declared {
		return out
	}
	if extra, ok := schema.get("additionalProperties"); ok {
		return extra
	}
	return true
}

// both returns a schema that accepts what two schemas both accept.
func both(a, b any) any {
	switch {
	case a == nil || a == true:
		return b
	case b == nil || b == true:
		return a
	case a == false || b == false:
		return false
	case string(encode(a)) == string(encode(b)):
		return a
	}
	if accepting(b) {
		return a
	}
	x, okX := a.(*object)
	y, okY := b.(*object)
	if okX && accepting(a) && !x.has("description") {
		return b
	}
	applies := func(o *object) bool {
		return slices.ContainsFunc(inPlace, o.has) || slices.ContainsFunc(conditions, o.has)
	}
	if okX && okY && !applies(x) && !applies(y) {
		if joined, ok := join(x, y); ok {
			return joined
		}
		return false
	}
	return obj("allOf", []any{a, b})
}
