package contract

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/catalogd/catalogd/contract/internal/jsontype"
	"github.com/catalogd/catalogd/contract/internal/quote"
	"github.com/catalogd/catalogd/internal/strictjson"
)

// Narrowed is what a narrowed Spec has besides its schema.
type Narrowed struct {
	// Base is the Spec that was narrowed, as JSON, because a type of plain data can't contain itself. Its
	// contract checks every call last, so that nothing passes that it refuses.
	Base json.RawMessage `json:"base"`
	// By is the schema of the narrowing: the arguments that Check returns match it. A const in its properties
	// is a fixed argument, a default is filled in.
	By json.RawMessage `json:"by"`
}

func (n *Narrowed) clone() *Narrowed {
	if n == nil {
		return nil
	}
	return &Narrowed{slices.Clone(n.Base), slices.Clone(n.By)}
}

// base returns the Spec that was narrowed.
func (n *Narrowed) base() (s Spec, err error) {
	if err = json.Unmarshal(n.Base, &s); err != nil {
		err = fmt.Errorf("contract: narrowed: %w", err)
	}
	return s, err
}

// Narrow returns the same contract with some arguments fixed, restricted or described anew. Each keyword of n
// must be at least as strict as the contract's own; every argument that n names must change; and what n
// leaves out stays. The error is a *NarrowingError with all faults.
func (s Spec) Narrow(n Narrowing) (Spec, error) {
	w := &narrower{spec: s}
	var doc any
	var err error
	if s.Upstream {
		doc, err = latest(s.Schema)
	} else {
		doc, err = decodeOrdered(s.Schema)
	}
	top, ok := doc.(*strictjson.Object)
	if err == nil && (!ok || s.Value) {
		err = fmt.Errorf("the contract is not one of an object")
	}
	if err == nil {
		w.valid, err = s.Validator()
	}
	if err != nil {
		return Spec{}, fmt.Errorf("contract: schema: %w", err)
	}
	w.defs = top.Object("$defs")
	frag, ok := w.fragment(n)
	if !ok {
		return Spec{}, w.err()
	}
	r := w.schema(spot{node: top}, frag)
	if len(w.faults) == 0 && !r.changed {
		w.fault("", nothingTaken)
	}
	if len(w.faults) == 0 {
		w.refusedAsFixed(r.by)
	}
	if len(w.faults) > 0 {
		return Spec{}, w.err()
	}
	return w.narrowed(r)
}

// nothingTaken is the fault of a narrowing that a reader would believe to do something.
const nothingTaken = "this takes nothing away from what the tool accepts, and says nothing new: leave it out, or write what the branch changes"

// narrower applies one narrowing to the schema of a contract.
type narrower struct {
	spec   Spec
	defs   *strictjson.Object // of the contract
	valid  *Validator         // of the contract
	said   *Validator         // of the fragment
	faults []NarrowingFault
	losses []Loss
}

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

func (w *narrower) err() error { return &NarrowingError{sortedFaults(w.faults)} }

func (w *narrower) fault(path, format string, args ...any) {
	w.faults = append(w.faults, NarrowingFault{path, fmt.Sprintf(format, args...)})
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

// narrowed makes the Spec.
func (w *narrower) narrowed(r narrowing) (Spec, error) {
	base, err := json.Marshal(w.spec)
	if err != nil {
		return Spec{}, fmt.Errorf("contract: schema: %w", err)
	}
	s := w.spec.Clone()
	s.WhenClosed = nil
	s.Narrowed = &Narrowed{Base: base, By: appendOrdered(nil, r.by)}
	pruneDefs(r.own)
	if !s.Upstream {
		withoutNotes(r.own, r.fixed)
	}
	if s.Upstream && draftOf(r.own) != draft2020 {
		r.own.Members = slices.Insert(r.own.Members, 0, strictjson.Member{Key: "$schema", Value: "https://json-schema.org/draft/2020-12/schema"})
	}
	s.Schema = appendOrdered(nil, r.own)
	properties, required := r.own.Object("properties"), r.own.List("required")
	fixed := func(name string) bool { return r.by.Object("properties").Object(name).Has("const") }
	s.Fields = slices.DeleteFunc(s.Fields, func(f Field) bool { return fixed(f.Name) })
	for i, f := range s.Fields {
		property, ok := properties.Get(f.Name).(*strictjson.Object)
		if f.Computed || !ok {
			continue
		}
		s.Fields[i].Required = slices.Contains(required, any(f.Name))
		if d, ok := property.Find("default"); ok && !s.NoFill && !s.Fields[i].Required {
			s.Fields[i].Default = strictjson.AppendSorted(nil, d)
		} else {
			s.Fields[i].Default = nil
		}
		if types := w.types(property, 0); types != jsontype.All {
			s.Fields[i].Types = namesOf(types)
		}
	}
	for i, l := range s.Losses {
		if mentionsWord(l.What, r.fixed) {
			s.Losses[i].What = "a constraint that is also about what the branch fixes"
		}
	}
	s.Losses = slices.DeleteFunc(s.Losses, func(l Loss) bool {
		name, _, _ := strings.Cut(l.Path, ".")
		return fixed(name)
	})
	s.Losses = append(s.Losses, w.losses...)
	return s, nil
}

func namesOf(k jsontype.Set) (names []string) {
	for _, name := range []string{"array", "boolean", "integer", "null", "number", "object", "string"} {
		if of := jsontype.Named(name); k&of == of && (name != "integer" || k&jsontype.Fraction == 0) {
			names = append(names, name)
		}
	}
	return names
}

// withoutNotes removes from descriptions the notes of internal/derive ("Also: >start") that mention what is fixed.
func withoutNotes(own *strictjson.Object, fixed []string) {
	eachSchema(own, "", func(o *strictjson.Object, _ string) {
		text, ok := o.Get("description").(string)
		if !ok {
			return
		}
		lines := strings.Split(text, "\n")
		last := lines[len(lines)-1]
		if !strings.HasPrefix(last, "Also: ") || !mentionsWord(last, fixed) {
			return
		}
		if lines = lines[:len(lines)-1]; len(lines) == 0 {
			o.Remove("description")
		} else {
			o.Set("description", strings.Join(lines, "\n"))
		}
	})
}

// pruneDefs removes the definitions that nothing refers to any more, which may describe what is fixed.
func pruneDefs(own *strictjson.Object) {
	defs := own.Object("$defs")
	if defs == nil {
		return
	}
	used := map[string]bool{}
	var visit func(v any)
	visit = func(v any) {
		eachSchema(v, "", func(o *strictjson.Object, _ string) {
			ref, _ := o.Get("$ref").(string)
			if name, ok := strings.CutPrefix(ref, "#/$defs/"); ok {
				if name = first(steps("/" + name)); !used[name] {
					used[name] = true
					visit(defs.Get(name))
				}
			}
		})
	}
	rest := own.Clone()
	rest.Remove("$defs")
	visit(rest)
	kept := &strictjson.Object{}
	for _, m := range defs.Members {
		if used[m.Key] {
			kept.Add(m.Key, m.Value)
		}
	}
	if len(kept.Members) == 0 {
		own.Remove("$defs")
		return
	}
	own.Set("$defs", kept)
}

// sortedFaults orders faults by pointer.
func sortedFaults(all []NarrowingFault) []NarrowingFault {
	slices.SortStableFunc(all, func(a, b NarrowingFault) int { return cmp.Compare(a.Pointer, b.Pointer) })
	return all
}
