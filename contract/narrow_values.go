package contract

import (
	"reflect"
	"slices"

	"github.com/catalogd/catalogd/contract/internal/quote"
	"github.com/catalogd/catalogd/internal/strictjson"
)

// takes reports whether the contract accepts a value at a spot.
func (w *narrower) takes(at spot, value any) bool {
	if at.free {
		return true
	}
	valid, decided := w.valid.Valid(at.at, value)
	return valid && decided
}

// fits reports whether the fragment accepts a value at a spot.
func (w *narrower) fits(at spot, value any) bool {
	valid, decided := w.said.Valid(at.says, value)
	return valid && decided
}

// secretIn reports whether a spot is a part of a secret, or has one in it.
func (w *narrower) secretIn(at spot) bool {
	find := secretFinder{defs: w.defs, seen: map[string]bool{}}
	_, ok := find.in(at.node, nil)
	return at.secret || ok
}

// properties narrows the members of an object.
func (w *narrower) properties(at spot, frag *strictjson.Object, r *narrowing) {
	has := at.node.Object("properties")
	props := &strictjson.Object{}
	if has != nil {
		props = has.Clone()
	}
	required := slices.Clone(at.node.List("required"))
	asked := frag.List("required")
	by := &strictjson.Object{}
	var must []any // what by requires
	var here, filled []string
	for _, m := range members(frag.Object("properties")) {
		path := at.path + "/" + escapePointer(m.Key)
		to := spot{
			at: at.at + "/properties/" + escapePointer(m.Key), free: at.free, path: path,
			says: at.says + "/properties/" + escapePointer(m.Key), secret: at.secret || w.secretField(at, m.Key),
		}
		schema, ok := w.property(at, has, m.Key, path)
		if !ok {
			continue
		}
		sub := m.Value.(*strictjson.Object)
		if to, ok = w.resolve(schema, to); !ok {
			continue
		}
		if c, ok := sub.Find("const"); ok {
			if !w.fix(to, sub, unordered(c)) {
				continue
			}
			if slices.Contains(asked, any(m.Key)) {
				w.fault(path, "the argument is fixed, so a call can't have it: take it out of required")
			}
			props.Remove(m.Key)
			required = slices.DeleteFunc(required, func(name any) bool { return name == m.Key })
			by.Add(m.Key, strictjson.New("const", c))
			here = append(here, m.Key)
			r.changed = true
			continue
		}
		to.asked = slices.Contains(asked, any(m.Key))
		before := len(w.faults)
		below := w.schema(to, sub)
		needs := below.needed || to.asked
		was := slices.Contains(required, any(m.Key))
		switch {
		case needs && sub.Has("default") && !below.needed:
			w.fault(path, "the argument has a default, so no call needs it: take it out of required, or leave the default out")
		case needs:
			below.own.Remove("default")
			below.by.Remove("default")
			below.changed = below.changed || !was
			if !was {
				required = append(required, m.Key)
			}
			must = append(must, m.Key)
		case below.by.Has("default"):
			below.changed = below.changed || was
			filled = append(filled, m.Key)
			required = slices.DeleteFunc(required, func(name any) bool { return name == m.Key })
		}
		if !below.changed && len(w.faults) == before {
			w.fault(path, nothingTaken)
		}
		props.Set(m.Key, below.own)
		by.Add(m.Key, below.by)
		r.changed = true
		r.fixed = append(r.fixed, below.fixed...)
	}
	for _, name := range asked {
		name, _ := name.(string)
		path := at.path + "/" + escapePointer(name)
		if frag.Object("properties").Has(name) {
			continue
		}
		if _, ok := w.property(at, has, name, path); !ok {
			continue
		}
		if slices.Contains(required, any(name)) {
			w.fault(path, "the tool requires the argument already: leave it out")
			continue
		}
		required, must = append(required, name), append(must, name)
		if o, ok := props.Get(name).(*strictjson.Object); ok {
			o = o.Clone()
			o.Remove("default")
			props.Set(name, o)
		}
		r.changed = true
	}
	if len(by.Members) > 0 {
		r.by.Add("properties", by)
	}
	if len(must) > 0 {
		r.by.Add("required", must)
	}
	setOrRemove(r.own, "properties", props, has != nil)
	if len(required) > 0 {
		r.own.Set("required", required)
	} else {
		r.own.Remove("required")
	}
	r.fixed = append(r.fixed, here...)
	w.withoutRules(r.own, here, r.fixed, at.path)
	w.rulesAbout(r.own, filled, at.path)
}

func setOrRemove(o *strictjson.Object, key string, v *strictjson.Object, keep bool) {
	if keep || len(v.Members) > 0 {
		o.Set(key, v)
	}
}

func members(o *strictjson.Object) []strictjson.Member {
	if o == nil {
		return nil
	}
	return o.Members
}

// secretField reports whether an argument at the top is declared as a secret.
func (w *narrower) secretField(at spot, name string) bool {
	f, _ := w.spec.Field(name)
	return at.path == "" && f.Secret
}

// property returns the declared schema of a member.
func (w *narrower) property(at spot, has *strictjson.Object, name, path string) (any, bool) {
	if f, ok := w.spec.Field(name); ok && f.Computed && at.path == "" {
		w.fault(path, "the argument is computed from others, so a call can't have it and a branch can't narrow it: narrow the others")
		return nil, false
	}
	if schema, ok := has.Find(name); ok {
		return schema, true
	}
	if w.applied(at.node) && w.mentions(at.node, map[string]bool{}, name) {
		w.fault(path, "the tool declares the argument in an anyOf, oneOf, allOf or if, which can't be narrowed: narrow what is outside it, or fix the whole of it")
		return nil, false
	}
	var names []string
	for _, m := range members(has) {
		names = append(names, m.Key)
	}
	if near := nearest(name, names); near != "" {
		w.fault(path, "the tool has no such argument; did you mean %s?", near)
	} else {
		w.fault(path, "the tool has no such argument")
	}
	return nil, false
}

// fix checks the value of a fixed argument.
func (w *narrower) fix(at spot, frag *strictjson.Object, value any) bool {
	before := len(w.faults)
	for _, m := range frag.Members {
		if !slices.Contains([]string{"const", "type", "default", "title", "description"}, m.Key) {
			w.fault(at.path, "the argument is fixed, so %s says nothing more: leave it out", m.Key)
		}
	}
	switch d, has := frag.Find("default"); {
	case has && !reflect.DeepEqual(unordered(d), value):
		w.fault(at.path, "the argument is fixed to %s and has the default %s: keep one of them", quote.Clip(text(value)), quote.Clip(text(unordered(d))))
	case w.secretIn(at):
		w.fault(at.path, "the argument is or has a secret, whose value must not be written in a catalog")
	case !w.takes(at, value):
		w.fault(at.path, "the tool does not accept %s here", quote.Clip(text(value)))
	case !w.fits(at, value):
		w.fault(at.path, "the narrowing's own type does not accept %s", quote.Clip(text(value)))
	}
	return len(w.faults) == before
}

// enumerated applies enum (and const, of items), and leaves of the contract's enumeration what the fragment accepts.
func (w *narrower) enumerated(at spot, frag *strictjson.Object, r *narrowing) {
	listed := frag.List("enum")
	if c, ok := frag.Find("const"); ok {
		listed = []any{c}
	}
	has := at.node.List("enum")
	if c, ok := at.node.Find("const"); ok {
		has = []any{c}
	}
	if frag.Has("enum") || frag.Has("const") {
		if w.secretIn(at) {
			w.fault(at.path, "the argument is or has a secret, whose values must not be written in a catalog")
			return
		}
		r.by.Add("enum", listed)
		for _, v := range listed {
			v := unordered(v)
			if kind := kindOf(v); kind == "object" || kind == "array" { // the tool may fill in more of it
				w.fault(at.path, "a list of values can't have %s: narrow its members", describe(v))
			} else if !w.takes(at, v) {
				w.fault(at.path, "the tool does not accept %s here: a branch only takes away", quote.Clip(text(v)))
			}
		}
		if len(has) > 0 && subset(has, listed) {
			return // the same values
		}
		r.own.Remove("const")
		r.own.Set("enum", listed)
		r.changed = true
		return
	}
	if len(has) == 0 {
		return
	}
	var kept []any
	for _, v := range has {
		if w.fits(at, unordered(v)) {
			kept = append(kept, v)
		}
	}
	switch {
	case len(kept) == 0:
		w.fault(at.path, "none of the values that the tool accepts here is left")
	case len(kept) < len(has):
		r.own.Set("enum", kept)
		r.changed = true
	}
}

// subset reports whether every value of a is one of b.
func subset(a, b []any) bool {
	return !slices.ContainsFunc(a, func(x any) bool {
		return !slices.ContainsFunc(b, func(y any) bool { return text(unordered(x)) == text(unordered(y)) })
	})
}

// defaults applies a new default, or holds the contract's own to the fragment.
func (w *narrower) defaults(at spot, frag *strictjson.Object, r *narrowing) {
	fills := readFills(r.by)
	if all := r.own.List("examples"); len(all) > 0 && r.changed {
		all = slices.DeleteFunc(slices.Clone(all), func(v any) bool { return !w.fits(at, unordered(v)) })
		if r.own.Remove("examples"); len(all) > 0 && len(r.fixed) == 0 {
			r.own.Add("examples", all)
		}
	}
	said, isSaid := frag.Find("default")
	own, has := at.node.Find("default")
	switch {
	case isSaid:
		if w.secretIn(at) {
			w.fault(at.path, "the argument is or has a secret, whose value must not be written in a catalog")
			return
		}
		value := unordered(said)
		given := fills.give(fills.defaults(clone(value)))
		object, _ := given.(map[string]any)
		lacks := slices.ContainsFunc(r.by.List("required"), func(name any) bool { _, ok := object[name.(string)]; return !ok })
		switch {
		case lacks && emptyObject(value):
			r.needed = true
			return
		case !w.fits(at, given):
			w.fault(at.path, "the default %s is not what the branch accepts here", quote.Clip(text(value)))
			return
		case w.takes(at, given):
		case emptyObject(value) && frag.Has("properties"):
			r.needed = true
			return
		default:
			w.fault(at.path, "the tool does not accept the default %s here", quote.Clip(text(value)))
			return
		}
		r.changed = r.changed || !has || w.spec.NoFill || text(unordered(own)) != text(value)
		r.own.Set("default", fills.without(said))
		r.by.Add("default", said)
	case has && r.changed && !at.asked:
		rest := fills.without(own)
		given := fills.give(fills.defaults(clone(unordered(rest))))
		if !w.fits(at, given) || !w.takes(at, given) {
			w.fault(at.path, "the tool's own default %s is outside what the branch accepts: write a default (*x | ...), or require the argument",
				quote.Clip(text(unordered(own))))
			return
		}
		if fills.any() { // the contract would fill in what is fixed here
			r.by.Add("default", rest)
		}
		r.own.Set("default", rest)
	}
}

func emptyObject(v any) bool {
	o, ok := v.(map[string]any)
	return ok && len(o) == 0
}

// refusedAsFixed finds fixed arguments that the contract refuses by another constraint, whatever a call has.
func (w *narrower) refusedAsFixed(by *strictjson.Object) {
	fills := readFills(by)
	given, _ := fills.give(fills.defaults(map[string]any{})).(map[string]any)
	found, decided := w.valid.Check(given)
	if !decided {
		return
	}
	for _, v := range found {
		if path := steps(v.Pointer); fills.fixes(path) {
			w.fault(v.Pointer, "the tool refuses the fixed argument: got %s, expected %s", v.Got, v.Expected)
		}
	}
}
