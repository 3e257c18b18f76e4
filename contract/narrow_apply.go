package contract

import (
	"encoding/json"
	"slices"

	"github.com/catalogd/catalogd/contract/internal/jsontype"
	"github.com/catalogd/catalogd/internal/strictjson"
)

// kindOfKeyword is the type of which a keyword says something.
var kindOfKeyword = map[string]jsontype.Set{
	"minimum": jsontype.Number, "maximum": jsontype.Number, "exclusiveMinimum": jsontype.Number, "exclusiveMaximum": jsontype.Number,
	"multipleOf": jsontype.Number, "minLength": jsontype.String, "maxLength": jsontype.String, "pattern": jsontype.String,
	"minItems": jsontype.Array, "maxItems": jsontype.Array, "uniqueItems": jsontype.Array, "items": jsontype.Array,
	"properties": jsontype.Object, "required": jsontype.Object,
}

// apply applies the keywords of scalars and of the number of items.
func (w *narrower) apply(at spot, frag *strictjson.Object, r *narrowing, want jsontype.Set) bool {
	before := len(w.faults)
	for _, m := range frag.Members {
		if kind, ok := kindOfKeyword[m.Key]; ok && want&kind == 0 {
			w.fault(at.path, "%s is about %s, and the tool accepts %s here", m.Key, kind, want)
		}
	}
	if len(w.faults) > before {
		return false
	}
	w.limits(at, frag, r)
	if n, ok := frag.Find("multipleOf"); ok {
		w.multiple(at, n.(json.Number), r)
	}
	if p, ok := frag.Find("pattern"); ok {
		r.by.Add("pattern", p)
		switch own, has := r.own.Find("pattern"); {
		case !has:
			r.own.Add("pattern", p)
			r.changed = true
		case own != p:
			r.own.Set("allOf", append(slices.Clone(r.own.List("allOf")), strictjson.New("pattern", p)))
			r.changed = true
		}
	}
	if u, ok := frag.Find("uniqueItems"); ok {
		r.by.Add("uniqueItems", u)
		if u == true && r.own.Get("uniqueItems") != true {
			r.own.Set("uniqueItems", true)
			r.changed = true
		}
	}
	return len(w.faults) == before
}

// items narrows the items of a list.
func (w *narrower) items(at spot, frag *strictjson.Object, r *narrowing) {
	path := at.path + "/*"
	if at.node.Has("prefixItems") {
		w.fault(path, "the tool's list has items by position, which can't be narrowed")
		return
	}
	item, has := at.node.Find("items")
	if !has && w.applied(at.node) {
		w.fault(path, "the items of the tool's list are declared in an anyOf, oneOf or allOf, which can't be narrowed")
		return
	}
	if !has {
		item = true
	}
	to := spot{at: at.at + "/items", free: at.free || !has, path: path, says: at.says + "/items", secret: at.secret}
	to, ok := w.resolve(item, to)
	if !ok {
		return
	}
	before := len(w.faults)
	below := w.schema(to, frag)
	if !below.changed && len(w.faults) == before {
		w.fault(path, nothingTaken)
	}
	if frag.Has("default") || below.needed {
		w.fault(path, "an item of a list has no default: leave it out")
	}
	r.by.Add("items", below.by)
	r.own.Set("items", below.own)
	r.changed = true
	r.fixed = append(r.fixed, below.fixed...)
	w.withoutRules(r.own, nil, r.fixed, at.path)
}

// applied reports whether a schema has others beside it, or in the place of it.
func (w *narrower) applied(node *strictjson.Object) bool {
	return node.Has("anyOf") || node.Has("oneOf") || node.Has("allOf") || node.Has("if")
}

// types returns the types that a schema of the contract accepts.
func (w *narrower) types(v any, depth int) jsontype.Set {
	node, ok := v.(*strictjson.Object)
	switch {
	case v == false:
		return 0
	case !ok || depth > maxDepth:
		return jsontype.All
	}
	k := jsontype.All
	if t, ok := node.Find("type"); ok {
		k = typesNamed(t)
	}
	var listed []any
	if c, ok := node.Find("const"); ok {
		listed = []any{c}
	} else {
		listed = node.List("enum")
	}
	if len(listed) > 0 {
		var some jsontype.Set
		for _, v := range listed {
			some |= jsontype.Of(unordered(v))
		}
		k &= some
	}
	if ref, ok := node.Get("$ref").(string); ok {
		k &= w.types(w.target(ref), depth+1)
	}
	for _, keyword := range []string{"anyOf", "oneOf"} {
		if list := node.List(keyword); len(list) > 0 {
			var some jsontype.Set
			for _, one := range list {
				some |= w.types(one, depth+1)
			}
			k &= some
		}
	}
	for _, one := range node.List("allOf") {
		k &= w.types(one, depth+1)
	}
	return k
}

func typesNamed(t any) (k jsontype.Set) {
	list, ok := t.([]any)
	if !ok {
		list = []any{t}
	}
	for _, name := range list {
		name, _ := name.(string)
		k |= jsontype.Named(name)
	}
	return k
}

// setType writes the keyword type, at the front where it is new.
func (w *narrower) setType(own *strictjson.Object, want jsontype.Set) {
	var names []any
	for _, name := range []string{"array", "boolean", "number", "integer", "null", "object", "string"} {
		if of := jsontype.Named(name); want&of == of && (name != "integer" || want&jsontype.Fraction == 0) {
			names = append(names, name)
		}
	}
	var t any = names
	if len(names) == 1 {
		t = names[0]
	}
	if own.Has("type") {
		own.Set("type", t)
		return
	}
	own.Members = slices.Insert(own.Members, 0, strictjson.Member{Key: "type", Value: t})
}

func namesOf(k jsontype.Set) (names []string) {
	for _, name := range []string{"array", "boolean", "integer", "null", "number", "object", "string"} {
		if of := jsontype.Named(name); k&of == of && (name != "integer" || k&jsontype.Fraction == 0) {
			names = append(names, name)
		}
	}
	return names
}
