package dialect

import (
	"fmt"
	"slices"
	"strings"

	"github.com/catalogd/catalogd/internal/strictjson"
)

const (
	// maxAlternatives caps the alternatives of a schema after they are multiplied with its siblings. Above
	// it, they become one alternative that accepts what each of them does.
	maxAlternatives = 16
	// maxReferences caps the chain of references and alternatives that is followed from one schema.
	maxReferences = 64
)

// alternative is a schema without in-place applicators: no allOf, anyOf, oneOf, conditions and references,
// except an allOf for what no keyword can express, and a reference without siblings. via are the definitions
// that were inlined for it.
type alternative struct {
	*object
	via []string
	// mixed: it mixes alternatives, or cases of a condition, so an argument that it has is not necessarily
	// accepted.
	mixed bool
}

// expander expands a schema to a list of alternatives. lost records where they express less than the schema.
type expander struct {
	defs *object
	// conditional keeps conditions (if, dependentSchemas) as they are.
	conditional bool
	lost        []member
	// narrows are the keywords whose alternatives became one that accepts less than they do.
	narrows []string
	// chosen are the keywords whose alternatives are listed, with their values.
	chosen []member
	// overlap: a value may match several of the alternatives of a oneOf.
	overlap bool
	// open are the definitions that are being inlined: one that leads back to itself restricts nothing.
	open []string
	// steps counts the expanded schemas; above maxWritten none is expanded.
	steps int
}

// over reports whether the schema is too large to be expanded.
func (e *expander) over() bool { return e.steps > maxWritten }

// inPlace are the applicators that expand removes.
var inPlace = []string{"$ref", "allOf", "anyOf", "oneOf"}

var conditions = []string{"if", "then", "else", "dependentSchemas"}

// expand returns a schema as alternatives; none if nothing is accepted.
func (e *expander) expand(v any, depth int) []alternative {
	schema, ok := v.(*object)
	e.steps++
	switch {
	case v == false || e.over():
		return nil
	case !ok || depth > maxReferences:
		return []alternative{{object: &object{}}}
	}
	base := schema.Clone()
	base.Remove(inPlace...)
	if !e.conditional {
		base.Remove(conditions...)
	}
	ref := schema.Text("$ref")
	if ref != "" && trivial(without(schema, "$ref")) {
		return []alternative{{object: schema}}
	}
	if base, ok = sound(base); !ok {
		return nil
	}
	list := []alternative{{object: base}}
	lost := len(e.lost)
	if ref != "" {
		list = e.product(list, []alternative{{object: strictjson.New("$ref", ref)}}, depth)
	}
	conditional := []*object{schema}
	for _, part := range schema.List("allOf") {
		if p, ok := part.(*object); ok && !e.conditional && !p.Has("unevaluatedProperties") {
			conditional = append(conditional, p) // which applies to the whole
			part = without(p, conditions...)
		}
		list = e.product(list, e.expand(part, depth+1), depth)
	}
	for _, key := range []string{"anyOf", "oneOf"} {
		choices, ok := schema.Find(key)
		if !ok {
			continue
		}
		var all []alternative
		for _, c := range schema.List(key) {
			all = append(all, e.expand(c, depth+1)...)
		}
		twice := len(all)
		all = apart(all)
		switch twice = twice - len(all); {
		case e.mixes(list, all):
			e.lost = append(e.lost, member{Key: key, Value: choices})
			e.overlap = e.overlap || key == "oneOf" && !separate(all, all)
			all = e.one(e.resolved(all, depth), key)
		case len(all) > 1:
			e.chosen = append(e.chosen, member{Key: key, Value: choices})
			if key == "oneOf" && (twice > 0 || !exclusive(all)) {
				e.lost = append(e.lost, member{Key: key, Value: choices})
				e.overlap = true
			}
		case key == "oneOf" && twice > 0:
			return nil // a value that matches one matches another
		}
		list = e.product(list, all, depth)
	}
	if !e.conditional {
		for _, s := range conditional {
			list = e.conditions(s, list, depth)
		}
	}
	if extra, ok := schema.Find("unevaluatedProperties"); ok {
		if len(list) > 1 || len(e.lost) > lost || slices.ContainsFunc(list, unjoined) {
			e.chosen = append(e.chosen, member{Key: "unevaluatedProperties", Value: extra})
			if len(e.lost) > lost || slices.ContainsFunc(list, unjoined) {
				e.lost = append(e.lost, member{Key: "unevaluatedProperties", Value: extra})
			}
		}
		for i, a := range list {
			if a.Text("$ref") != "" {
				continue // the writer reports its siblings
			}
			list[i].object = without(a.object, "unevaluatedProperties")
			if !a.Has("additionalProperties") && !unjoined(a) {
				list[i].Set("additionalProperties", extra)
			}
		}
	}
	return apart(list)
}

// unjoined reports whether some keys of an object are only in the parts that no keyword can express.
func unjoined(a alternative) bool {
	return slices.ContainsFunc(a.List("allOf"), func(part any) bool {
		p, ok := part.(*object)
		return ok && (p.Has("additionalProperties") || p.Has("patternProperties"))
	})
}

// apart removes duplicate alternatives.
func apart(list []alternative) (out []alternative) {
	seen := map[string]bool{}
	for _, a := range list {
		if key := string(encode(a.object)); !seen[key] {
			seen[key] = true
			out = append(out, a)
		}
	}
	return out
}

// mixes reports whether alternatives are merged into one, which mixes them: if they differ only in which
// arguments they require, or if multiplying them with their siblings would give too many.
func (e *expander) mixes(list, choices []alternative) bool {
	if len(choices) < 2 || len(list) == 1 && trivial(list[0].object) {
		return false
	}
	if len(list)*len(choices) > maxAlternatives {
		return true
	}
	beside := slices.ContainsFunc(list, func(a alternative) bool { return a.Has("properties") })
	return beside && !slices.ContainsFunc(choices, func(a alternative) bool { return a.Has("properties") || a.Has("$ref") })
}

// one returns the union of alternatives.
func (e *expander) one(list []alternative, keyword string) []alternative {
	if len(list) < 2 {
		return list
	}
	var objects []*object
	var via []string
	for _, a := range list {
		objects, via = append(objects, a.object), append(via, a.via...)
	}
	wide := e.conditional && (e.overlap && !separate(list, list) || slices.ContainsFunc(objects, func(o *object) bool {
		return slices.ContainsFunc(conditions, o.Has)
	}))
	out, narrows := union(objects, wide)
	if narrows {
		e.narrows = append(e.narrows, keyword)
	}
	return []alternative{{out, via, true}}
}

// product joins each alternative of list with each of with.
func (e *expander) product(list, with []alternative, depth int) (out []alternative) {
	for _, a := range list {
		for _, b := range with {
			out = append(out, e.joined(a, b, depth)...)
		}
	}
	if len(out) > maxAlternatives*maxAlternatives {
		out = e.one(e.resolved(out, depth), "anyOf")
	}
	return out
}

func (e *expander) joined(a, b alternative, depth int) (out []alternative) {
	via := slices.Concat(a.via, b.via)
	switch {
	case trivial(a.object) && b.Has("$ref"):
		if !a.Has("description") {
			return []alternative{{b.object, via, b.mixed}}
		}
		o := b.Clone()
		d, _ := a.Find("description")
		o.Set("description", d)
		return []alternative{{o, via, b.mixed}}
	case a.Has("$ref") && trivial(b.object):
		return []alternative{{a.object, via, a.mixed}}
	case a.Has("$ref"):
		return e.product(e.target(a, depth), []alternative{b}, depth+1)
	case b.Has("$ref"):
		return e.product([]alternative{a}, e.target(b, depth), depth+1)
	}
	if o, ok := join(a.object, b.object); ok {
		out = append(out, alternative{o, via, a.mixed || b.mixed})
	}
	return out
}

// target returns what a reference without siblings refers to.
func (e *expander) target(a alternative, depth int) (out []alternative) {
	name, target, ok := definition(e.defs, a.Text("$ref"))
	if !ok || depth > maxReferences || slices.Contains(e.open, name) {
		return nil
	}
	e.open = append(e.open, name)
	defer func() { e.open = e.open[:len(e.open)-1] }()
	for _, t := range e.expand(target, depth+1) {
		t.via = slices.Concat(a.via, []string{name}, t.via)
		for _, m := range a.Members {
			if m.Key != "$ref" {
				t.object = t.Clone()
				t.Set(m.Key, m.Value)
			}
		}
		if t.Has("$ref") {
			out = append(out, e.target(t, depth+1)...)
			continue
		}
		out = append(out, t)
	}
	return out
}

// resolved replaces references without siblings by their targets.
func (e *expander) resolved(list []alternative, depth int) (out []alternative) {
	for _, a := range list {
		if a.Has("$ref") {
			out = append(out, e.target(a, depth)...)
			continue
		}
		out = append(out, a)
	}
	return out
}

// conditions adds what conditions may add to each alternative: every argument that they name, none of them
// required.
func (e *expander) conditions(schema *object, list []alternative, depth int) []alternative {
	may := func(keyword string, told, asked any, cases ...any) {
		e.lost = append(e.lost, member{Key: keyword, Value: told})
		var kept []alternative
		for _, a := range e.resolved(list, depth) {
			var all []alternative
			for _, c := range cases {
				all = append(all, e.resolved(e.product([]alternative{a}, e.expand(c, depth+1), depth), depth)...)
			}
			if len(all) == 0 {
				continue // none of the cases is possible
			}
			one := e.one(apart(all), keyword)[0]
			one.mixed = true
			one.object = undecided(one.object, a.object, asked)
			kept = append(kept, one)
		}
		list = kept
	}
	if v, ok := schema.Find("if"); ok && (schema.Has("then") || schema.Has("else")) {
		branch := func(key string) any {
			if b, ok := schema.Find(key); ok {
				return b
			}
			return true
		}
		may("if", schema, v, branch("else"), strictjson.New("allOf", []any{v, branch("then")}))
	}
	for _, d := range child(schema, "dependentSchemas").Members {
		may("dependentSchemas", strictjson.New(d.Key, d.Value), nil, true, d.Value)
	}
	return list
}

// undecided returns an object in which the arguments that a condition requires, and that the schema around it
// does not mention, accept any value.
func undecided(schema, around *object, condition any) *object {
	c, ok := condition.(*object)
	if !ok {
		return schema
	}
	out := schema
	for _, p := range child(c, "properties").Members {
		own, declared := child(schema, "properties").Find(p.Key)
		if !declared || accepting(own) || !accepting(at(around, p.Key)) {
			continue
		}
		properties := child(out, "properties").Clone()
		properties.Set(p.Key, either([]any{own, &object{}}))
		out = out.Clone()
		out.Set("properties", properties)
	}
	return out
}

// exclusive reports whether no value matches two of the alternatives: their types or constants differ, or
// those of an argument that each of them requires.
func exclusive(list []alternative) bool {
	for i, a := range list {
		for _, b := range list[:i] {
			if !disjoint(a.object, b.object) {
				return false
			}
		}
	}
	return true
}

// separate reports whether one of the alternatives in said can be given so that no other of all matches: by
// its constants, or by what the others require.
func separate(said, all []alternative) bool {
	return slices.ContainsFunc(said, func(a alternative) bool {
		return !slices.ContainsFunc(all, func(b alternative) bool {
			if a.object == b.object || disjoint(a.object, b.object) {
				return false
			}
			if !slices.Contains(types(a.object), "object") || !slices.Contains(types(b.object), "object") {
				return trivial(b.object)
			}
			return !slices.ContainsFunc(b.List("required"), func(name any) bool { return !slices.Contains(a.List("required"), name) })
		})
	})
}

func disjoint(a, b *object) bool {
	if a.Has("$ref") || b.Has("$ref") {
		return false
	}
	if !joinTypes(a.Clone(), b) {
		return true
	}
	mine, ok := literals(a)
	theirs, also := literals(b)
	if ok && also {
		return !slices.ContainsFunc(mine, func(v any) bool {
			return slices.ContainsFunc(theirs, func(w any) bool { return equal(v, w) })
		})
	}
	if !slices.Contains(types(a), "object") || len(types(a)) > 1 || len(types(b)) > 1 {
		return false
	}
	for _, name := range a.List("required") {
		if !slices.Contains(b.List("required"), name) {
			continue
		}
		x, okX := at(a, name.(string)).(*object)
		y, okY := at(b, name.(string)).(*object)
		if okX && okY && disjoint(x, y) {
			return true
		}
	}
	return false
}

// told describes in one line which arguments belong together: those that each alternative requires, with
// their constants.
func told(list []alternative) string {
	var each []string
	for _, a := range list {
		var names []string
		for _, name := range a.List("required") {
			n, _ := name.(string)
			if p, ok := at(a.object, n).(*object); ok {
				if values, fixed := literals(p); fixed && len(values) == 1 {
					n += ": " + short(values[0])
				}
			}
			names = append(names, n)
		}
		text := "(" + strings.Join(names, ", ") + ")"
		if len(names) == 0 {
			text = "(nothing required)"
		}
		if !slices.Contains(each, text) {
			each = append(each, text)
		}
	}
	const most = 12
	more := ""
	if len(each) > most {
		each, more = each[:most], fmt.Sprintf(" or %d more", len(each)-most)
	}
	return "Arguments that go together: " + clipTo(strings.Join(each, " or "), 600) + more + "."
}

// alternatives returns the alternatives of a schema and the annotations around them. It records as losses
// what they don't express.
func (w *writer) alternatives(v any, path string) (list []alternative, notes *object, overlap bool) {
	schema, ok := v.(*object)
	if v == true {
		schema, ok = &object{}, true
	}
	if !ok {
		return nil, nil, false
	}
	notes = annotationsOf(schema)
	name, _, ok := definition(w.defs, schema.Text("$ref"))
	if rest := without(schema, annotations...); ok && slices.Contains(w.inlining, name) && len(rest.Members) > 1 {
		w.besideRef(rest, path) // inlining it would not end
		schema = strictjson.New("$ref", schema.Text("$ref"))
	}
	e := expander{defs: w.defs}
	list = e.expand(without(schema, annotations...), 0)
	w.noted(&e, path)
	if w.written += e.steps - 1; e.over() {
		w.refuse(TooLong, path, tooLong)
	}
	return list, notes, e.overlap
}

// maxWritten caps the number of schemas that a tool's schema is rewritten to.
const maxWritten = 20_000

// countSchema counts a schema that is written, and reports whether the cap allows it.
func (w *writer) countSchema(path string) bool {
	w.written++
	if w.written > maxWritten && !slices.ContainsFunc(w.refused, func(r Refusal) bool { return r.Code == TooLong }) {
		w.refuse(TooLong, path, tooLong)
	}
	return w.written <= maxWritten
}

var tooLong = fmt.Sprintf("written out, the arguments are more than %d schemas", maxWritten)

// implied returns the type whose values a schema without type describes; "" if it describes none.
func implied(schema *object) string {
	for _, t := range []string{"object", "array", "string", "number"} {
		if slices.ContainsFunc(schema.Members, func(m member) bool { return slices.Contains(typed[m.Key], t) }) {
			return t
		}
	}
	return ""
}
