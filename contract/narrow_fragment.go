package contract

import (
	"fmt"
	"slices"
	"strings"

	"github.com/catalogd/catalogd/contract/internal/quote"
	"github.com/catalogd/catalogd/internal/strictjson"
)

// spot is one schema of the contract that the fragment is about.
type spot struct {
	node *strictjson.Object
	// at is its pointer in the contract's schema; free says that there is none there, as for the items of a
	// list that takes any.
	at   string
	free bool
	// path is the pointer of the argument, with * for items; says is the pointer in the fragment.
	path, says string
	// secret: the argument is part of a secret.
	secret bool
	// asked: the fragment requires the argument, so that a default would never be filled in.
	asked bool
}

// narrowing is the outcome for one schema: as it is advertised (own), as the final arguments must match it (by),
// and the names of what is fixed in it.
type narrowing struct {
	own, by *strictjson.Object
	fixed   []string
	changed bool
	// needed: the argument always exists, and a call has to bring it, since the contract wants more of it
	// than the narrowing gives.
	needed bool
}

// fragment reads and compiles the fragment.
func (w *narrower) fragment(n Narrowing) (*strictjson.Object, bool) {
	text, err := n.MarshalJSON()
	if err != nil {
		w.fault("", "the narrowing can't be read: %v", err)
		return nil, false
	}
	v, err := decodeOrdered(text)
	frag, ok := v.(*strictjson.Object)
	if err == nil && !ok {
		err = fmt.Errorf("it is not an object")
	}
	if err != nil {
		w.fault("", "the narrowing can't be read: %v", err)
		return nil, false
	}
	if w.keywords(frag, ""); len(w.faults) > 0 {
		return nil, false
	}
	if w.said, err = compileDocument(unordered(frag), w.spec.Upstream); err == nil {
		err = checkCost(unordered(frag))
	}
	if err != nil {
		w.fault("", "the narrowing is not a valid schema: %v", err)
	}
	return frag, err == nil
}

// keywords checks the names of the keywords, and the forms of those that hold schemas.
func (w *narrower) keywords(frag *strictjson.Object, path string) {
	below := func(v any, path string) {
		if o, ok := v.(*strictjson.Object); ok {
			w.keywords(o, path)
		} else {
			w.fault(path, "this must be an object of keywords, not %s", describe(unordered(v)))
		}
	}
	for _, m := range frag.Members {
		switch {
		case m.Key == "properties":
			named, ok := m.Value.(*strictjson.Object)
			if !ok {
				w.fault(path, "properties must be an object of arguments by name")
				continue
			}
			for _, p := range named.Members {
				below(p.Value, path+"/"+escapePointer(p.Key))
			}
		case m.Key == "items":
			below(m.Value, path+"/*")
		case !slices.Contains(narrowingKeywords, m.Key):
			w.fault(path, "a narrowing can't have %s: it has %s", quote.Clip(text(m.Key)), strings.Join(narrowingKeywords, ", "))
		}
	}
}

// narrowingKeywords are the keywords of a Narrowing.
var narrowingKeywords = []string{
	"properties", "required", "items", "const", "type", "enum", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum",
	"multipleOf", "minLength", "maxLength", "pattern", "minItems", "maxItems", "uniqueItems", "default", "title", "description",
}

// annotations are keywords beside a $ref that constrain nothing.
var annotations = []string{"title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "$comment"}

// resolve returns the schema at a spot with its reference, if it is one, written out.
func (w *narrower) resolve(v any, at spot) (spot, bool) {
	var outer []strictjson.Member
	for range maxDepth {
		switch schema := v.(type) {
		case bool:
			if !schema {
				w.fault(at.path, "the tool accepts nothing here")
				return at, false
			}
			at.node = &strictjson.Object{}
		case *strictjson.Object:
			ref, refers := schema.Get("$ref").(string)
			if !refers {
				at.node = schema.Clone()
				break
			}
			for _, m := range schema.Members {
				if m.Key == "$ref" {
					continue
				}
				if !slices.Contains(annotations, m.Key) {
					w.fault(at.path, "the tool's schema has %s beside a $ref here, which can't be narrowed", quote.Clip(text(m.Key)))
					return at, false
				}
				if !slices.ContainsFunc(outer, func(o strictjson.Member) bool { return o.Key == m.Key }) {
					outer = append(outer, m)
				}
			}
			at.at, v = strings.TrimPrefix(ref, "#"), w.target(ref)
			continue
		default:
			w.fault(at.path, "the tool's schema is not one here")
			return at, false
		}
		for _, m := range outer {
			at.node.Set(m.Key, m.Value)
		}
		return at, true
	}
	w.fault(at.path, "the tool's schema refers to itself here")
	return at, false
}

// target returns the definition that a reference leads to.
func (w *narrower) target(ref string) any {
	name, _ := strings.CutPrefix(ref, "#/$defs/")
	return w.defs.Get(first(steps("/" + name)))
}

// schema narrows one schema of the contract by a fragment.
func (w *narrower) schema(at spot, frag *strictjson.Object) narrowing {
	r := narrowing{own: at.node.Clone(), by: &strictjson.Object{}}
	has := w.types(at.node, 0)
	want := has
	t, ok := frag.Find("type")
	switch { // what goes on in an object or in items is about nothing else: a null would not have the fixed member
	case ok:
	case frag.Has("properties") || frag.Has("required"):
		t, ok = "object", true
	case frag.Has("items"):
		t, ok = "array", true
	}
	if ok {
		r.by.Add("type", t)
		if want = has & typesNamed(t); want == 0 {
			w.fault(at.path, "this is %s, and the tool accepts %s here", typesNamed(t), has)
			return r
		}
		if want != has {
			w.setType(r.own, want)
			r.changed = true
		}
	}
	if !w.apply(at, frag, &r, want) {
		return r
	}
	if n, ok := frag.Find("items"); ok {
		w.items(at, n.(*strictjson.Object), &r)
	}
	if frag.Has("properties") || frag.Has("required") {
		w.properties(at, frag, &r)
	}
	w.enumerated(at, frag, &r)
	w.defaults(at, frag, &r)
	for _, key := range []string{"title", "description"} {
		if v, ok := frag.Find(key); ok {
			r.changed = r.changed || r.own.Get(key) != v
			r.own.Set(key, v)
			r.by.Add(key, v)
		}
	}
	return r
}
