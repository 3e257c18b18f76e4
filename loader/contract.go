package loader

import (
	"cuelang.org/go/cue"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/internal/derive"
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
