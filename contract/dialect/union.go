package dialect

import "slices"

// declaring returns an object with a property for each name that it requires, unconditionally or together
// with another.
func declaring(schema *object) *object {
	properties, more := schema.object("properties"), false
	names := slices.Clone(schema.list("required"))
	for _, m := range schema.object("dependentRequired").members {
		if beside, ok := m.value.([]any); ok && at(schema, m.key) != false {
			names = append(names, beside...)
		}
	}
	for _, v := range names {
		if name, ok := v.(string); ok && !properties.has(name) && at(schema, name) != false {
			if !more {
				properties, more = properties.clone(), true
			}
			properties.set(name, at(schema, name))
		}
	}
	if !more {
		return schema
	}
	out := schema.clone()
	out.set("properties", properties)
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
	out = list[0].clone()
	for _, m := range list[0].members {
		if slices.ContainsFunc(list, func(o *object) bool { return !same(o, m) || !o.has(m.key) }) {
			out.remove(m.key)
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
		names := o.list("required")
		if i == 0 {
			required = slices.Clone(names)
		}
		required = slices.DeleteFunc(required, func(v any) bool { return !slices.Contains(names, v) })
	}
	if typed {
		setTypes(out, kinds)
	}
	if fixed {
		out.remove("const")
		setLiterals(out, distinct(values))
	}
	narrows = uniteObjects(out, list, wide)
	out.remove("required")
	if len(required) > 0 {
		out.set("required", required)
	}
	return out, narrows
}

func uniteObjects(out *object, list []*object, wide bool) (narrows bool) {
	properties, patterns := &object{}, &object{}
	var extras []any
	open := false
	for _, o := range list {
		for _, p := range o.object("properties").members {
			properties.set(p.key, nil)
		}
		for _, p := range o.object("patternProperties").members {
			patterns.set(p.key, nil)
		}
		extra, ok := o.get("additionalProperties")
		if !ok || accepting(extra) {
			open = true
		} else if extra != false {
			extras = append(extras, extra)
		}
	}
	for i, p := range properties.members {
		var choices []any
		anything := false
		for _, o := range list {
			s := at(o, p.key)
			if !o.object("properties").has(p.key) && accepting(s) {
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
		if properties.members[i].value = either(choices); choices == nil && anything {
			properties.members[i].value = true
		}
	}
	for i, p := range patterns.members {
		var choices []any
		for _, o := range list {
			s, ok := o.object("patternProperties").get(p.key)
			if ok && s != false {
				choices = append(choices, s)
			}
			narrows = narrows || !ok && free(o)
		}
		patterns.members[i].value = either(choices)
	}
	out.remove(objectKeywords...)
	if !open {
		properties.members = slices.DeleteFunc(properties.members, func(m member) bool { return m.value == false })
	}
	if len(properties.members) > 0 {
		out.set("properties", properties)
	}
	if len(patterns.members) > 0 {
		out.set("patternProperties", patterns)
	}
	if !open {
		out.set("additionalProperties", either(extras))
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
			return obj("anyOf", choices)
		}
		own, ok := literals(o)
		if !ok || slices.ContainsFunc(o.members, func(m member) bool { return m.key != "const" && m.key != "enum" && m.key != "type" }) {
			return obj("anyOf", choices)
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
	if slices.ContainsFunc(choices, func(c any) bool { return c.(*object).has("enum") }) {
		out.set("enum", values)
	}
	setLiterals(out, distinct(values))
	return out
}
