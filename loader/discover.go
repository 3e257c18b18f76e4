package loader

import (
	"encoding/json"

	"cuelang.org/go/cue"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// discover reads which tools of a server are adopted, and what the catalog declares about them. All of it is
// concrete except results, whose values are types.
func (o *object) discover(s *registry.Server) {
	const field = "discover"
	v, ok := o.fields[field]
	if !ok {
		return
	}
	s.Discover = &registry.Discover{}
	o.each(v, field, func(name, path string, v cue.Value) {
		switch name {
		case "only":
			o.read(v, path, &s.Discover.Only)
		case "except":
			o.read(v, path, &s.Discover.Except)
		case "tools":
			s.Discover.Tools = map[string]registry.Override{}
			o.each(v, path, func(tool, path string, v cue.Value) {
				over := o.override(v, path)
				if over.Result != nil && over.Result.Remainder != nil {
					over.Result.Remainder.Path = resultPath(s.Name, tool)
				}
				s.Discover.Tools[tool] = over
			})
		}
	})
}

// resultPath returns the CUE path of the result type that a server's discover declares for a tool.
func resultPath(server, tool string) string {
	return cue.MakePath(cue.Str(serversField), cue.Str(server), cue.Str("discover"), cue.Str("tools"),
		cue.Str(tool), cue.Str("result")).String()
}

// each calls visit for every field of a struct.
func (o *object) each(v cue.Value, path string, visit func(name, path string, v cue.Value)) {
	fields, err := v.Fields()
	if err != nil {
		o.fail(err)
		return
	}
	for fields.Next() {
		name := fields.Selector().Unquoted()
		visit(name, join(path, name), fields.Value())
	}
}

// read reads a value that must be concrete.
func (o *object) read(v cue.Value, path string, into any) {
	if !o.validate(v, nil, cue.Concrete(true)) {
		return
	}
	o.fields[path] = v
	o.decode(path, into)
}

func (o *object) override(v cue.Value, path string) (over registry.Override) {
	plain := map[string]json.RawMessage{}
	o.each(v, path, func(name, path string, v cue.Value) {
		switch name {
		case "result":
			if !o.isResult(v, path) {
				return
			}
			spec := o.contract(v, cue.Value{}, contract.Closed, path)
			over.Result = &spec
		case "timeout":
			if o.validate(v, nil, cue.Concrete(true)) {
				o.fields[path] = v
				o.duration(path, &over.Timeout)
			}
		default:
			var raw json.RawMessage
			o.read(v, path, &raw)
			if raw != nil {
				plain[name] = raw
			}
		}
	})
	data, err := json.Marshal(plain)
	if err == nil {
		err = json.Unmarshal(data, &over)
	}
	if err != nil {
		o.errorf(problem.CUEValue, path, "the value can't be read: %v", err)
	}
	o.text(join(path, "title"), over.Title)
	o.text(join(path, "description"), over.Description)
	o.text(join(path, "effectNote"), over.EffectNote)
	return over
}
