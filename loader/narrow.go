package loader

import (
	"cuelang.org/go/cue"

	"github.com/catalogd/catalogd/internal/derive"
	"github.com/catalogd/catalogd/registry"
)

// narrow reads what a branch narrows of tools. All of it is concrete except arguments, whose values are types.
func (o *object) narrow(b *registry.Branch) {
	const field = "narrow"
	v, ok := o.fields[field]
	if !ok {
		return
	}
	b.Narrow = map[string]registry.Narrowing{}
	o.each(v, field, func(tool, path string, v cue.Value) {
		var n registry.Narrowing
		o.each(v, path, func(name, path string, v cue.Value) {
			switch name {
			case "name":
				o.read(v, path, &n.Name)
			case "title":
				o.read(v, path, &n.Title)
			case "description":
				o.read(v, path, &n.Description)
			case "args":
				o.narrowArgs(v, path, &n)
			}
		})
		o.text(join(path, "title"), n.Title)
		o.text(join(path, "description"), n.Description)
		b.Narrow[tool] = n
	})
}

func (o *object) narrowArgs(v cue.Value, path string, n *registry.Narrowing) {
	args, places, problems := derive.Narrowing(o.u.syntax, v, join(o.path, path))
	for below, pos := range places {
		below = join(path, below)
		if _, ok := o.src.Fields[below]; !ok && pos.IsValid() {
			o.src.Fields[below] = pos
		}
	}
	n.Args = args
	o.u.result.problems = append(o.u.result.problems, problems...)
	if problems.HasErrors() {
		o.sound = false
	}
}
