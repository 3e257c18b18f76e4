package decision

import (
	"encoding/binary"
	"encoding/json"
	"maps"
	"reflect"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/catalogd/catalogd/decision/internal/shape"
)

// readSet is what modules mention of a document, in any rule: all of it, or some of its fields.
type readSet struct {
	// whole says that the document is mentioned without naming a field: all of it, or a field whose name is
	// computed.
	whole  bool
	fields map[string]*readSet
}

func newReadSet() *readSet { return &readSet{fields: map[string]*readSet{}} }

// readSetOf is what compiled modules mention of the input.
func readSetOf(modules map[string]*ast.Module) *readSet {
	all := newReadSet()
	for _, module := range modules {
		all.collect(module)
	}
	return all
}

// collect adds what a node of a module mentions of the input.
func (r *readSet) collect(node any) {
	input := ast.InputRootDocument.Value
	var visitor *ast.GenericVisitor
	visitor = ast.NewGenericVisitor(func(x any) bool {
		switch x := x.(type) {
		case ast.Ref:
			if len(x) == 0 || x[0].Value.Compare(input) != 0 {
				return false
			}
			r.add(x[1:])
			for _, term := range x[1:] { // input.branch.labels[input.tool.name]
				visitor.Walk(term)
			}
			return true
		case ast.Var:
			if x.Compare(input) == 0 {
				r.whole = true
			}
		}
		return false
	})
	visitor.Walk(node)
}

func (r *readSet) add(path ast.Ref) {
	for _, term := range path {
		name, ok := term.Value.(ast.String)
		if !ok {
			break
		}
		if r.fields[string(name)] == nil {
			r.fields[string(name)] = newReadSet()
		}
		r = r.fields[string(name)]
	}
	r.whole = true
}

// mention reports whether the part at path is mentioned, or one that it is in or that is in it.
func (r *readSet) mention(path []string) bool {
	for _, name := range path {
		if r == nil || r.whole {
			break
		}
		r = r.fields[name]
	}
	return r != nil
}

// part is one part of a Go value that modules read.
type part struct {
	index []int // as reflect's FieldByIndex takes it
	shape *shape.Shape
}

// parts are those of an object of the shape that r mentions; each is read whole.
func (r *readSet) parts(s *shape.Shape) (parts []part) {
	if r == nil {
		return nil
	}
	if r.whole || s.Kind != shape.Object {
		return []part{{shape: s}}
	}
	for _, f := range s.Fields {
		for _, p := range r.fields[f.Name].parts(f.Shape) {
			parts = append(parts, part{append([]int{f.Index}, p.index...), p.shape})
		}
	}
	return parts
}

// appendParts appends a key of the parts of v: two values have the same key only if modules that read no
// other parts can't distinguish them.
func appendParts(key []byte, v reflect.Value, parts []part) []byte {
	for _, p := range parts {
		if len(p.index) == 0 {
			return p.shape.AppendKey(key, v) // the only part
		}
		key = p.shape.AppendKey(key, v.FieldByIndex(p.index))
	}
	return key
}

// appendData is appendParts of decoded JSON.
func (r *readSet) appendData(key []byte, data any) ([]byte, error) {
	if r.whole {
		text, err := json.Marshal(data)
		return append(binary.AppendUvarint(append(key, 1), uint64(len(text))), text...), err
	}
	object, ok := data.(map[string]any)
	if !ok {
		return append(key, 0), nil // no field of it has a value
	}
	key = append(key, 2)
	for _, name := range slices.Sorted(maps.Keys(r.fields)) {
		value, ok := object[name]
		if !ok {
			key = append(key, 0)
			continue
		}
		var err error
		if key, err = r.fields[name].appendData(append(key, 3), value); err != nil {
			return key, err
		}
	}
	return key, nil
}

// claims are the parts of the input's principal that modules read.
func claims(spec pointSpec, read *readSet) []part {
	if spec.input == nil {
		return nil
	}
	for _, f := range spec.input.Fields {
		if f.Name != "principal" {
			continue
		}
		if read.whole {
			return []part{{shape: f.Shape}}
		}
		return read.fields[f.Name].parts(f.Shape)
	}
	return nil
}

// ListClaims is a key of what the list and call decisions read of a principal: two principals with the same
// key see the same tools. Empty means that they read nothing of it.
func (e *Engine) ListClaims(p Principal) string {
	list, call := e.points[List].claims, e.points[Call].claims
	if list == nil && call == nil {
		return ""
	}
	v := reflect.ValueOf(p)
	return string(appendParts(appendParts(nil, v, list), v, call))
}
