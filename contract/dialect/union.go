package dialect

import (
	"slices"

	"github.com/catalogd/catalogd/internal/strictjson"
)

// declaring returns an object with a property for each name that it requires, unconditionally or together
// with another.
func declaring(schema *object) *object {
	properties, more := child(schema, "properties"), false
	names := slices.Clone(schema.List("required"))
	for _, m := range child(schema, "dependentRequired").Members {
		if beside, ok := m.Value.([]any); ok && at(schema, m.Key) != false {
			names = append(names, beside...)
		}
	}
	for _, v := range names {
		if name, ok := v.(string); ok && !properties.Has(name) && at(schema, name) != false {
			if !more {
				properties, more = properties.Clone(), true
			}
			properties.Set(name, at(schema, name))
		}
	}
	if !more {
		return schema
	}
	out := schema.Clone()
	out.Set("properties", properties)
	return out
}

// union returns an object that accepts what each of the alternatives accepts, and mixtures of them. It has
// every argument of every alternative, and requires those that all require. An alternative that accepts any
// further key accepts other values for an argument that it doesn't declare: with wide the union accepts them
// too, without it the union narrows.
func union(list []*object, wide bool) (out *object, narrows bool) {
	list = slices.Clone(list)
	for i, o := range list {
		list[i] = declaring(o)
	}
	out = list[0].Clone()
	for _, m := range list[0].Members {
		if slices.ContainsFunc(list, func(o *object) bool { return !same(o, m) || !o.Has(m.Key) }) {
			out.Remove(m.Key)
		}
	}
	var kinds []string
	var values, required []any
	typed, fixed := true, true
	for i, o := range list {
		ts := types(o)
		typed = typed && len(ts) > 0
		for _, t := range ts {
			if !slices.Contains(kinds, t) {
				kinds = append(kinds, t)
			}
		}
		own, ok := literals(o)
		fixed = fixed && ok
		values = append(values, own...)
		names := o.List("required")
		if i == 0 {
			required = slices.Clone(names)
		}
		required = slices.DeleteFunc(required, func(v any) bool { return !slices.Contains(names, v) })
	}
	if typed {
		setTypes(out, kinds)
	}
	if fixed {
		out.Remove("const")
		setLiterals(out, distinct(values))
	}
	narrows = uniteObjects(out, list, wide)
	out.Remove("required")
	if len(required) > 0 {
		out.Set("required", required)
	}
	return out, narrows
}

func uniteObjects(out *object, list []*object, wide bool) (narrows bool) {
	properties, patterns := &object{}, &object{}
	var extras []any
	open := false
	for _, o := range list {
		for _, p := range child(o, "properties").Members {
			properties.Set(p.Key, nil)
		}
		for _, p := range child(o, "patternProperties").Members {
			patterns.Set(p.Key, nil)
		}
		extra, ok := o.Find("additionalProperties")
		if !ok || accepting(extra) {
			open = true
		} else if extra != false {
			extras = append(extras, extra)
		}
	}
	for i, p := range properties.Members {
		var choices []any
		anything := false
		for _, o := range list {
			s := at(o, p.Key)
			if !child(o, "properties").Has(p.Key) && accepting(s) {
				anything = true
			} else if s != false {
				choices = append(choices, s)
			}
		}
		switch {
		case !anything || !slices.ContainsFunc(choices, func(s any) bool { return !accepting(s) }):
		case wide:
			choices = append(choices, &object{})
		default:
			narrows = true
		}
		if properties.Members[i].Value = either(choices); choices == nil && anything {
			properties.Members[i].Value = true
		}
	}
	for i, p := range patterns.Members {
		var choices []any
		for _, o := range list {
			s, ok := child(o, "patternProperties").Find(p.Key)
			if ok && s != false {
				choices = append(choices, s)
			}
			narrows = narrows || !ok && free(o)
		}
		patterns.Members[i].Value = either(choices)
	}
	out.Remove(objectKeywords...)
	if !open {
		properties.Members = slices.DeleteFunc(properties.Members, func(m member) bool { return m.Value == false })
	}
	if len(properties.Members) > 0 {
		out.Set("properties", properties)
	}
	if len(patterns.Members) > 0 {
		out.Set("patternProperties", patterns)
	}
	if !open {
		out.Set("additionalProperties", either(extras))
	}
	return narrows
}

// accepting reports whether a schema accepts everything.
func accepting(v any) bool {
	o, ok := v.(*object)
	return v == true || ok && trivial(o)
}

// either returns a schema that accepts what one of the schemas accepts.
func either(choices []any) any {
	choices = distinct(choices)
	switch len(choices) {
	case 0:
		return false
	case 1:
		return choices[0]
	}
	var values []any
	var kinds []string
	for _, c := range choices {
		o, ok := c.(*object)
		if !ok {
			return strictjson.New("anyOf", choices)
		}
		own, ok := literals(o)
		if !ok || slices.ContainsFunc(o.Members, func(m member) bool { return m.Key != "const" && m.Key != "enum" && m.Key != "type" }) {
			return strictjson.New("anyOf", choices)
		}
		values = append(values, own...)
		for _, t := range types(o) {
			if !slices.Contains(kinds, t) {
				kinds = append(kinds, t)
			}
		}
	}
	out := &object{}
	if len(kinds) > 0 && !slices.ContainsFunc(choices, func(c any) bool { return len(types(c.(*object))) == 0 }) {
		setTypes(out, kinds)
	}
	if slices.ContainsFunc(choices, func(c any) bool { return c.(*object).Has("enum") }) {
		out.Set("enum", values)
	}
	setLiterals(out, distinct(values))
	return out
}
