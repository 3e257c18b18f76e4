package decision

import (
	"reflect"

	"github.com/open-policy-agent/opa/v1/ast"
)

// reads is what modules mention of a document, in any place, reached or not: all of it, or some of its fields.
type reads struct {
	// whole says that the document is mentioned without naming a field: all of it, or a field whose name is computed.
	whole  bool
	fields map[string]*reads
}

// inputsRead is what compiled modules mention of the input.
func inputsRead(modules map[string]*ast.Module) *reads {
	all := &reads{fields: map[string]*reads{}}
	input := ast.InputRootDocument.Value
	var visitor *ast.GenericVisitor
	visitor = ast.NewGenericVisitor(func(x any) bool {
		switch x := x.(type) {
		case ast.Ref:
			if len(x) == 0 || x[0].Value.Compare(input) != 0 {
				return false
			}
			all.add(x[1:])
			for _, term := range x[1:] { // input.branch.labels[input.tool.name]
				visitor.Walk(term)
			}
			return true
		case ast.Var:
			if x.Compare(input) == 0 {
				all.whole = true
			}
		}
		return false
	})
	for _, module := range modules {
		visitor.Walk(module)
	}
	return all
}

func (r *reads) add(path ast.Ref) {
	for _, term := range path {
		name, ok := term.Value.(ast.String)
		if !ok {
			break
		}
		if r.fields[string(name)] == nil {
			r.fields[string(name)] = &reads{fields: map[string]*reads{}}
		}
		r = r.fields[string(name)]
	}
	r.whole = true
}

// mention reports whether the part at path is mentioned, or one that it is in or that is in it.
func (r *reads) mention(path []string) bool {
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
	shape *shape
}

// parts are those of an object of the shape that r mentions; each is read whole.
func (r *reads) parts(s *shape) (parts []part) {
	if r == nil {
		return nil
	}
	if r.whole || s.kind != objectShape {
		return []part{{shape: s}}
	}
	for _, f := range s.fields {
		for _, p := range r.fields[f.name].parts(f.shape) {
			parts = append(parts, part{append([]int{f.index}, p.index...), p.shape})
		}
	}
	return parts
}

// appendParts writes the parts of v such that two values have the same bytes only if modules that read no other parts
// can't tell them apart.
func appendParts(key []byte, v reflect.Value, parts []part) []byte {
	for _, p := range parts {
		if len(p.index) == 0 {
			return p.shape.appendKey(key, v) // the only part
		}
		key = p.shape.appendKey(key, v.FieldByIndex(p.index))
	}
	return key
}

// claims are the parts of the input's principal that modules read.
func claims(spec pointSpec, read *reads) []part {
	if spec.input == nil {
		return nil
	}
	for _, f := range spec.input.fields {
		if f.name != "principal" {
			continue
		}
		if read.whole {
			return []part{{shape: f.shape}}
		}
		return read.fields[f.name].parts(f.shape)
	}
	return nil
}

// ListClaims is what the list decision reads of a principal: two principals with the same claims are answered the same,
// for whatever branch and tool. Empty means that it reads nothing of them.
func (e *Engine) ListClaims(p Principal) string {
	parts := e.points[List].claims
	if parts == nil {
		return ""
	}
	return string(appendParts(nil, reflect.ValueOf(p), parts))
}
