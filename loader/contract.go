package loader

import (
	"cuelang.org/go/cue"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/internal/derive"
	"github.com/catalogd/catalogd/problem"
)

// contract derives the contract of a tool's arguments or result. closed is the same value as CUE closes it,
// where there is one.
func (o *object) contract(v, closed cue.Value, s contract.Strictness, field string) contract.Spec {
	spec, places, problems := derive.Args(o.u.syntax, v, closed, s, join(o.path, field))
	complete := func(r *contract.Remainder) {
		if r != nil {
			r.Package, r.Digest = o.u.id.dir, o.u.key
		}
	}
	complete(spec.Remainder)
	if spec.WhenClosed != nil {
		complete(spec.WhenClosed.Remainder)
	}
	for path, pos := range places {
		below := join(field, path)
		if _, ok := o.src.Fields[below]; !ok && pos.IsValid() {
			o.src.Fields[below] = pos
		}
	}
	o.u.result.problems = append(o.u.result.problems, problems...)
	if problems.HasErrors() {
		o.sound = false
	}
	return spec
}

// resultStruct says what a declared result must be: MCP's structured results are objects.
const resultStruct = "result must be a struct: result: {count!: int}; a single value or a list needs a name"

// isStruct reports whether a value can be a struct, or is wrong for another reason, and reports message if it
// can't.
func (o *object) isStruct(v cue.Value, field, message string) bool {
	k := v.IncompleteKind()
	if v.Err() != nil || k == cue.TopKind || k == cue.BottomKind || k&cue.StructKind != 0 {
		return true
	}
	o.errorf(problem.CUEValue, field, "%s", message)
	return false
}

// isResult is isStruct of a declared result, which must be nothing but a struct: no alternative of it could be
// answered as structured content, and an outputSchema has type object.
func (o *object) isResult(v cue.Value, field string) bool {
	if !o.isStruct(v, field, resultStruct) {
		return false
	}
	k := v.IncompleteKind()
	if more := k &^ cue.StructKind; v.Err() == nil && k != cue.TopKind && more != cue.BottomKind {
		o.errorf(problem.CUEValue, field, "result is a struct or %s, and MCP's structured results are objects alone: "+
			"give the other alternative a name (result: {count?: int, note?: string})", more)
		return false
	}
	return true
}
