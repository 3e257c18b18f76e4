package contract

import (
	"encoding/json"
	"math/big"

	"github.com/catalogd/catalogd/contract/internal/jsontype"
	"github.com/catalogd/catalogd/internal/strictjson"
)

// limit is a bound of numbers, lengths or counts.
type limit struct {
	keyword   string
	text      json.Number
	value     *big.Rat
	exclusive bool
}

// side is one side of a range: its keyword, and for numbers the keyword that excludes the bound itself.
type side struct {
	keyword, exclusive string
	lower              bool
	kind               jsontype.Set
}

var sides = []side{
	{"minimum", "exclusiveMinimum", true, jsontype.Number}, {"maximum", "exclusiveMaximum", false, jsontype.Number},
	{"minLength", "", true, jsontype.String}, {"maxLength", "", false, jsontype.String},
	{"minItems", "", true, jsontype.Array}, {"maxItems", "", false, jsontype.Array},
}

// stricter reports whether a is stricter than b, of which nil bounds nothing.
func (s side) stricter(a, b *limit) bool {
	if a == nil || b == nil {
		return a != nil
	}
	c := a.value.Cmp(b.value)
	if !s.lower {
		c = -c
	}
	return c > 0 || c == 0 && a.exclusive && !b.exclusive
}

// in returns the stricter of the side's bounds that are keywords of a schema.
func (s side) in(node *strictjson.Object) (out *limit) {
	for _, keyword := range []string{s.keyword, s.exclusive} {
		n, ok := node.Get(keyword).(json.Number)
		if !ok || keyword == "" {
			continue
		}
		v, ok := new(big.Rat).SetString(string(n))
		if !ok {
			continue
		}
		if l := (&limit{keyword, n, v, keyword == s.exclusive}); s.stricter(l, out) {
			out = l
		}
	}
	return out
}

// bound returns the bound that certainly holds for a schema of the contract: its own, those of all that
// applies with it, and the loosest of alternatives.
func (w *narrower) bound(v any, s side, depth int) *limit {
	node, ok := v.(*strictjson.Object)
	if !ok || depth > maxDepth {
		return nil
	}
	out := s.in(node)
	also := func(l *limit) {
		if s.stricter(l, out) {
			out = l
		}
	}
	if ref, ok := node.Get("$ref").(string); ok {
		also(w.bound(w.target(ref), s, depth+1))
	}
	for _, one := range node.List("allOf") {
		also(w.bound(one, s, depth+1))
	}
	for _, keyword := range []string{"anyOf", "oneOf"} {
		var loosest *limit
		n := 0
		for _, one := range node.List(keyword) {
			if w.types(one, depth+1)&s.kind == 0 {
				continue
			}
			l := w.bound(one, s, depth+1)
			if n == 0 || loosest != nil && s.stricter(loosest, l) {
				loosest = l
			}
			n++
		}
		also(loosest)
	}
	return out
}

// limits applies the bounds of a fragment.
func (w *narrower) limits(at spot, frag *strictjson.Object, r *narrowing) {
	for i, s := range sides {
		said := s.in(frag)
		if said == nil {
			continue
		}
		r.by.Add(said.keyword, said.text)
		has := w.bound(at.node, s, 0)
		switch {
		case s.stricter(has, said):
			w.fault(at.path, "%s %s is wider than the tool's own %s %s: a branch only takes away", said.keyword, said.text, has.keyword, has.text)
			continue
		case s.stricter(said, has):
			r.own.Remove(s.keyword, s.exclusive)
			r.own.Add(said.keyword, said.text)
			r.changed = true
		}
		opposite := sides[i^1]
		if other := opposite.in(frag); other == nil || !s.lower { // once for each pair
			if other = opposite.in(r.own); other == nil {
				other = w.bound(at.node, opposite, 0)
			}
			if other != nil && empties(said, other, s.lower) {
				w.fault(at.path, "nothing is left: no value has %s %s and %s %s", said.keyword, said.text, other.keyword, other.text)
			}
		}
	}
}

// empties reports whether a bound and one of the other side leave no value.
func empties(a, b *limit, aLower bool) bool {
	c := a.value.Cmp(b.value)
	if !aLower {
		c = -c
	}
	return c > 0 || c == 0 && (a.exclusive || b.exclusive)
}

// multiple applies multipleOf.
func (w *narrower) multiple(at spot, n json.Number, r *narrowing) {
	r.by.Add("multipleOf", n)
	own, has := r.own.Get("multipleOf").(json.Number)
	if !has {
		r.own.Add("multipleOf", n)
		r.changed = true
		return
	}
	said, ok := new(big.Rat).SetString(string(n))
	base, fine := new(big.Rat).SetString(string(own))
	if !ok || !fine || base.Sign() == 0 || !new(big.Rat).Quo(said, base).IsInt() {
		w.fault(at.path, "not every multiple of %s is a multiple of %s, as the tool wants", n, own)
		return
	}
	if said.Cmp(base) != 0 {
		r.own.Set("multipleOf", n)
		r.changed = true
	}
}
