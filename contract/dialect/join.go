package dialect

import (
	"encoding/json"
	"math"
	"regexp"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/catalogd/catalogd/internal/strictjson"
)

// annotations are keywords that don't affect what is accepted.
var annotations = []string{
	"description", "title", "default", "examples", "deprecated", "readOnly", "writeOnly", "x-mcp-header",
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
	return !slices.ContainsFunc(schema.Members, func(m member) bool { return !slices.Contains(annotations, m.Key) })
}

// join returns a schema that accepts exactly what both accept. What no keyword can express stays in an allOf.
// It returns false if nothing is accepted.
func join(a, b *object) (*object, bool) {
	out, rest := a.Clone(), &object{}
	if !joinTypes(out, b) || !joinLiterals(out, b) {
		return nil, false
	}
	done := append([]string{"type", "enum", "const"}, objectKeywords...)
	for _, group := range together {
		joinGroup(out, b, rest, group)
		done = append(done, group...)
	}
	joinObjects(out, b, rest)
	for _, m := range b.Members {
		old, ok := out.Find(m.Key)
		switch {
		case slices.Contains(done, m.Key):
		case !ok:
			out.Set(m.Key, m.Value)
		case m.Key == "required":
			out.Set(m.Key, unite(out.List(m.Key), b.List(m.Key)))
		case m.Key == "allOf":
			out.Set(m.Key, append(slices.Clone(out.List(m.Key)), b.List(m.Key)...))
		case m.Key == "writeOnly" && m.Value == true:
			out.Set(m.Key, true)
		case slices.Contains(annotations, m.Key) || same(out, m):
		case slices.Contains(lowerBounds, m.Key) || slices.Contains(upperBounds, m.Key):
			x, okX := old.(json.Number)
			y, okY := m.Value.(json.Number)
			if okX && okY && (compare(y, x) > 0) == slices.Contains(lowerBounds, m.Key) {
				out.Set(m.Key, y)
			}
		default:
			rest.Set(m.Key, m.Value)
		}
	}
	if len(rest.Members) > 0 {
		out.Set("allOf", append(slices.Clone(out.List("allOf")), rest))
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
			out = schema.Clone()
			setLiterals(out, kept)
		}
	}
	for _, name := range out.List("required") {
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
		v, _ := b.Find("type")
		out.Set("type", v)
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
		o.Set("type", names[0])
		return
	}
	o.Set("type", anys(names))
}

func joinLiterals(out, b *object) bool {
	mine, ok := literals(out)
	theirs, also := literals(b)
	if !also {
		return true
	}
	if !ok {
		for _, key := range []string{"enum", "const"} {
			if v, ok := b.Find(key); ok {
				out.Set(key, v)
			}
		}
		return true
	}
	kept := slices.DeleteFunc(slices.Clone(mine), func(v any) bool {
		return !slices.ContainsFunc(theirs, func(w any) bool { return equal(v, w) })
	})
	if b.Has("enum") && out.Has("const") {
		out.Set("enum", kept)
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
	if not, ok := literals(child(schema, "not")); ok && len(child(schema, "not").Members) == 1 {
		if slices.ContainsFunc(not, func(w any) bool { return equal(v, w) }) {
			return false
		}
	}
	within := func(n json.Number, lower, upper string, strict bool) bool {
		low, hasLow := schema.Find(lower)
		high, hasHigh := schema.Find(upper)
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
		re, err := regexp.Compile(schema.Text("pattern"))
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
	if len(values) == 1 && !o.Has("enum") {
		o.Set("const", values[0])
		return
	}
	o.Remove("const")
	o.Set("enum", values)
}

// joinGroup joins keywords that have a meaning only in combination.
func joinGroup(out, b, rest *object, group []string) {
	differs, mine, theirs := false, false, &object{}
	for _, key := range group {
		mine = mine || out.Has(key)
		if v, ok := b.Find(key); ok {
			theirs.Set(key, v)
			differs = differs || !same(out, member{Key: key, Value: v})
		} else {
			differs = differs || out.Has(key)
		}
	}
	switch {
	case len(theirs.Members) == 0:
	case !mine:
		out.Members = append(out.Members, theirs.Members...)
	case !differs:
	case group[0] == "items" && !theirs.Has("prefixItems") && !out.Has("prefixItems"):
		x, _ := out.Find("items")
		y, _ := b.Find("items")
		out.Set("items", both(x, y))
	default:
		rest.Members = append(rest.Members, theirs.Members...)
	}
}

// joinObjects joins properties, patternProperties and additionalProperties, which depend on each other.
func joinObjects(out, b, rest *object) {
	mine, theirs := &object{}, &object{}
	for _, key := range objectKeywords {
		if v, ok := out.Find(key); ok {
			mine.Set(key, v)
		}
		if v, ok := b.Find(key); ok {
			theirs.Set(key, v)
		}
	}
	switch {
	case len(theirs.Members) == 0:
		return
	case len(mine.Members) == 0:
		out.Members = append(out.Members, theirs.Members...)
		return
	}
	properties := &object{}
	for _, p := range child(out, "properties").Members {
		properties.Set(p.Key, both(p.Value, at(b, p.Key)))
	}
	for _, p := range child(b, "properties").Members {
		if !properties.Has(p.Key) {
			properties.Set(p.Key, both(at(out, p.Key), p.Value))
		}
	}
	patterns, exact := joinPatterns(mine, theirs)
	if !exact { // both are repeated in the allOf
		out.Set("allOf", append(slices.Clone(out.List("allOf")), without(mine, "properties")))
		rest.Members = append(rest.Members, without(theirs, "properties").Members...)
	}
	if len(properties.Members) > 0 {
		out.Set("properties", properties)
	}
	if len(patterns.Members) > 0 {
		out.Set("patternProperties", patterns)
	}
	extra, hasMine := mine.Find("additionalProperties")
	other, hasTheirs := theirs.Find("additionalProperties")
	switch {
	case !exact:
		out.Remove("additionalProperties")
	case hasMine && hasTheirs:
		out.Set("additionalProperties", both(extra, other))
	case hasTheirs:
		out.Set("additionalProperties", other)
	}
}

// joinPatterns joins the patterns of keys. It is not exact if a key may match patterns of both, or a pattern
// of one and the other's rule for further keys: the result then depends on which keys match.
func joinPatterns(a, b *object) (patterns *object, exact bool) {
	mine, theirs := child(a, "patternProperties"), child(b, "patternProperties")
	switch {
	case len(mine.Members) == 0 && len(theirs.Members) == 0:
		return mine, true
	case string(encode(mine)) == string(encode(theirs)):
		return mine, true
	case len(mine.Members) > 0 && len(theirs.Members) > 0:
		return mine, false
	case len(mine.Members) == 0:
		a, b, mine = b, a, theirs
	}
	extra, ok := b.Find("additionalProperties")
	if !ok || accepting(extra) {
		return mine, true
	}
	out := &object{}
	for _, p := range mine.Members {
		re, err := regexp.Compile(p.Key)
		declared := func(m member) bool { return err != nil || re.MatchString(m.Key) }
		if err != nil || slices.ContainsFunc(child(b, "properties").Members, declared) {
			return mine, false
		}
		out.Set(p.Key, both(p.Value, extra))
	}
	return out, true
}

// at returns the schema that an object has for a key.
func at(schema *object, name string) any {
	out, declared := child(schema, "properties").Find(name)
	for _, p := range child(schema, "patternProperties").Members {
		re, err := regexp.Compile(p.Key)
		if err == nil && re.MatchString(name) {
			out, declared = both(out, p.Value), true
		}
	}
	if declared {
		return out
	}
	if extra, ok := schema.Find("additionalProperties"); ok {
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
	if okX && accepting(a) && !x.Has("description") {
		return b
	}
	applies := func(o *object) bool {
		return slices.ContainsFunc(inPlace, o.Has) || slices.ContainsFunc(conditions, o.Has)
	}
	if okX && okY && !applies(x) && !applies(y) {
		if joined, ok := join(x, y); ok {
			return joined
		}
		return false
	}
	return strictjson.New("allOf", []any{a, b})
}
