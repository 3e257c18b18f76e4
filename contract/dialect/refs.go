package dialect

import (
	"slices"
	"strconv"
	"strings"
)

// defined is a schema whose references all lead into its $defs: what they lead to elsewhere in the document
// is copied there. References that lead nowhere, or out of the document, stay as they are.
func defined(schema *object) *object {
	h := hoister{root: schema, names: map[string]string{}, defs: schema.object("$defs").clone()}
	h.collect(schema)
	if len(h.names) == 0 {
		return schema
	}
	for i, d := range h.defs.members {
		h.defs.members[i].value = h.rewrite(d.value)
	}
	out := h.rewrite(schema.without("$defs", "definitions")).(*object)
	out.set("$defs", h.defs)
	return out
}

type hoister struct {
	root  *object
	names map[string]string // of the new definitions, by reference
	defs  *object
}

// collect finds the references in a schema, and in what they lead to.
func (h *hoister) collect(v any) {
	visit(v, func(schema *object) {
		ref := schema.text("$ref")
		if ref == "" || h.names[ref] != "" {
			return
		}
		if _, _, ok := definition(h.root.object("$defs"), ref); ok {
			return
		}
		target, ok := h.find(ref)
		if !ok {
			return
		}
		name := ref[strings.LastIndexAny(ref, "/#")+1:]
		if name == "" {
			name = "Arguments"
		}
		for unique, n := name, 2; ; n++ {
			if !h.defs.has(unique) {
				name = unique
				break
			}
			unique = name + strconv.Itoa(n)
		}
		h.names[ref] = name
		if o, ok := target.(*object); ok && ref == "#" {
			target = o.without("$defs", "definitions")
		}
		h.defs.set(name, target)
		h.collect(target)
	})
}

// visit visits a schema and every schema below it.
func visit(v any, f func(*object)) {
	schema, ok := v.(*object)
	if !ok {
		return
	}
	f(schema)
	within(schema, func(v any) any { visit(v, f); return v })
}

func (h *hoister) rewrite(v any) any {
	schema, ok := v.(*object)
	if !ok {
		return v
	}
	out := within(schema, h.rewrite)
	if name := h.names[schema.text("$ref")]; name != "" {
		out.set("$ref", "#/$defs/"+strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1"))
	}
	return out
}

// find is what a reference in the document leads to: a JSON pointer (RFC 6901) or an $anchor.
func (h *hoister) find(ref string) (any, bool) {
	fragment, ok := strings.CutPrefix(ref, "#")
	if id := h.root.text("$id"); !ok && id != "" {
		fragment, ok = strings.CutPrefix(strings.TrimPrefix(ref, id), "#")
	}
	switch {
	case !ok:
		return nil, false
	case fragment == "":
		return h.root, true
	case fragment[0] != '/':
		return h.anchor(fragment)
	}
	v := any(h.root)
	for _, step := range strings.Split(fragment[1:], "/") {
		step = strings.ReplaceAll(strings.ReplaceAll(step, "~1", "/"), "~0", "~")
		switch parent := v.(type) {
		case *object:
			if v, ok = parent.get(step); !ok {
				return nil, false
			}
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(parent) {
				return nil, false
			}
			v = parent[i]
		default:
			return nil, false
		}
	}
	_, isBool := v.(bool)
	_, isObject := v.(*object)
	return v, isBool || isObject
}

func (h *hoister) anchor(name string) (found any, ok bool) {
	visit(h.root, func(s *object) {
		if !ok && slices.Contains([]string{s.text("$anchor"), strings.TrimPrefix(s.text("$id"), "#")}, name) {
			found, ok = s, true
		}
	})
	return found, ok
}
