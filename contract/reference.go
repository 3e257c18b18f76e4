package contract

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/catalogd/catalogd/contract/internal/quote"
	"github.com/catalogd/catalogd/internal/strictjson"
)

func itoa(i int) string { return strconv.Itoa(i) }

// resource is a schema with its own identifier, or the whole document: the base of the fragments and relative
// references in it.
type resource struct {
	pointer string
	base    *url.URL
	draft   draft
	anchors map[string]string // by name, to pointers
	dynamic map[string]bool   // the anchors that are $dynamicAnchor
	// recursive: its root has $recursiveAnchor true.
	recursive bool
}

func newResource(pointer string, base *url.URL, d draft) *resource {
	return &resource{pointer: pointer, base: base, draft: d, anchors: map[string]string{}, dynamic: map[string]bool{}}
}

// documentBase is the base URI of a document without an identifier.
const documentBase = "contract:///schema"

// references resolves references within one document.
type references struct {
	top       any
	byPointer map[string]*resource
	byURI     map[string]*resource
	order     []*resource // outer ones first
}

func readReferences(top any) (*references, error) {
	r := &references{top: top, byPointer: map[string]*resource{}, byURI: map[string]*resource{}}
	base, err := url.Parse(documentBase)
	if err != nil {
		return nil, err
	}
	r.add(newResource("", base, draftOf(top)))
	eachSchema(top, "", func(o *strictjson.Object, pointer string) {
		if err == nil {
			err = r.index(o, pointer)
		}
	})
	return r, err
}

func (r *references) add(s *resource) {
	if s.pointer == "" { // the document, which may have an identifier too
		r.order = nil
	}
	r.order = append(r.order, s)
	r.byPointer[s.pointer] = s
	if _, taken := r.byURI[s.base.String()]; !taken {
		r.byURI[s.base.String()] = s
	}
}

// index records the identifiers and anchors of one schema.
func (r *references) index(o *strictjson.Object, pointer string) error {
	in := r.around(pointer)
	d := in.draft
	_, refers := o.Get("$ref").(string)
	if refers && d < draft2019 {
		return nil // its siblings are ignored
	}
	if uri, ok := o.Get("$schema").(string); ok && pointer != "" {
		if named, known := draftNamed(uri); known {
			d = named
		}
	}
	keyword := "$id"
	if d == draft04 {
		keyword = "id"
	}
	if id, ok := o.Get(keyword).(string); ok && id != "" {
		u, err := url.Parse(id)
		if err != nil {
			return fmt.Errorf("%s %s is no URI reference, at %s", keyword, quote.Clip(text(id)), place(pointer))
		}
		anchor := u.Fragment
		u.Fragment, u.RawFragment = "", ""
		if u.String() != "" {
			in = newResource(pointer, in.base.ResolveReference(u), d)
			r.add(in)
		}
		if anchor != "" && d < draft2019 {
			in.anchors[anchor] = pointer
		}
	}
	if d < draft2019 {
		return nil
	}
	if anchor, ok := o.Get("$anchor").(string); ok {
		in.anchors[anchor] = pointer
	}
	if anchor, ok := o.Get("$dynamicAnchor").(string); ok && d == draft2020 {
		in.anchors[anchor], in.dynamic[anchor] = pointer, true
	}
	if d == draft2019 && in.pointer == pointer {
		in.recursive = o.Get("$recursiveAnchor") == true
	}
	return nil
}

// around returns the resource that contains a pointer of the document.
func (r *references) around(pointer string) *resource {
	for {
		if in := r.byPointer[pointer]; in != nil {
			return in
		}
		pointer = pointer[:strings.LastIndexByte(pointer, '/')]
	}
}

// resolve returns the pointer that a reference in a resource resolves to, and the resource that it names.
func (r *references) resolve(in *resource, ref string) (pointer string, named *resource, err error) {
	outside := fmt.Errorf("$ref %s leads out of the schema, and nothing is fetched", quote.Clip(text(ref)))
	u, err := url.Parse(ref)
	if err != nil {
		if !strings.HasPrefix(ref, "#") {
			return "", nil, outside
		}
		u = &url.URL{Fragment: ref[1:]} // a name with a character that a URI would escape
	}
	fragment := u.Fragment
	whole := in.base.ResolveReference(u)
	whole.Fragment, whole.RawFragment = "", ""
	named = r.byURI[whole.String()]
	if strings.HasPrefix(ref, "#") || ref == "" {
		named = in
	}
	if named == nil {
		return "", nil, outside
	}
	switch {
	case fragment == "":
		return named.pointer, named, nil
	case fragment[0] == '/':
		pointer, ok := r.follow(named.pointer, steps(fragment))
		if !ok {
			return "", nil, fmt.Errorf("$ref %s leads nowhere", quote.Clip(text(ref)))
		}
		return pointer, named, nil
	}
	if pointer, ok := named.anchors[fragment]; ok {
		return pointer, named, nil
	}
	return "", nil, fmt.Errorf("$ref %s: there is no such anchor", quote.Clip(text(ref)))
}

// follow returns the pointer reached from another by steps.
func (r *references) follow(from string, path []string) (pointer string, ok bool) {
	v, ok := r.at(from)
	for _, step := range path {
		if !ok {
			return "", false
		}
		v, ok = below(v, step)
		from += "/" + escapePointer(step)
	}
	return from, ok
}

// at returns the value at a pointer of the document.
func (r *references) at(pointer string) (v any, ok bool) {
	v, ok = r.top, true
	for _, step := range steps(pointer) {
		if v, ok = below(v, step); !ok {
			return nil, false
		}
	}
	return v, true
}

func below(v any, step string) (any, bool) {
	switch parent := v.(type) {
	case *strictjson.Object:
		return parent.Find(step)
	case []any:
		i, err := strconv.Atoi(step)
		if err == nil && i >= 0 && i < len(parent) && itoa(i) == step {
			return parent[i], true
		}
	}
	return nil, false
}

// dynamicTo returns the pointer that a $dynamicRef resolves to. The target depends on the dynamic scope: it
// is in the outermost resource with the anchor. That is the document itself if it has the anchor, or else the
// only resource that has it; other documents are refused.
func (r *references) dynamicTo(in *resource, ref string) (string, error) {
	pointer, named, err := r.resolve(in, ref)
	if err != nil {
		return "", err
	}
	_, anchor, _ := strings.Cut(ref, "#")
	if !named.dynamic[anchor] {
		return pointer, nil
	}
	return r.outermost(ref, func(s *resource) (string, bool) { return s.anchors[anchor], s.dynamic[anchor] })
}

// recursiveTo does the same for the $recursiveRef of draft 2019-09, which is always "#".
func (r *references) recursiveTo(in *resource) (string, error) {
	if !in.recursive {
		return in.pointer, nil
	}
	return r.outermost("#", func(s *resource) (string, bool) { return s.pointer, s.recursive })
}

func (r *references) outermost(ref string, has func(*resource) (string, bool)) (string, error) {
	if pointer, ok := has(r.order[0]); ok && r.order[0].pointer == "" {
		return pointer, nil
	}
	all := slices.DeleteFunc(slices.Clone(r.order), func(s *resource) bool { _, ok := has(s); return !ok })
	if len(all) > 1 {
		return "", fmt.Errorf("the dynamic reference %s may lead to several schemas, which is not supported",
			quote.Clip(text(ref)))
	}
	pointer, _ := has(all[0])
	return pointer, nil
}

func place(pointer string) string {
	if pointer == "" {
		return "the top"
	}
	return quote.Clip(pointer)
}
