package loader

import (
	"encoding/json"
	"maps"
	"strconv"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/errors"

	"github.com/catalogd/catalogd/internal/derive"
)

// A shorthand is a list or a string in place of a struct: exec: ["git", "log"]. The schema declares it as a
// disjunction. The loader turns it into the full form before anything else reads it, so that both forms make
// the same tool, with the same digest.

// alternative returns the value of a field whose schema is a disjunction of values of different kinds, as if
// the schema had only the alternative of the value's own kind. Its errors are all errors of the value, where
// those of a disjunction are the first of each alternative. It returns false for another field, and for a
// value of a kind that no alternative has.
func alternative(v cue.Value) (cue.Value, bool) {
	op, conjuncts := v.Expr()
	if op != cue.AndOp {
		return v, false
	}
	var declared []cue.Value
	var alternatives []cue.Value
	for _, c := range conjuncts {
		op, of := c.Expr()
		if op == cue.OrOp && derive.Position(c.Pos()).File == schemaPath {
			alternatives = of
		} else {
			declared = append(declared, c)
		}
	}
	if len(declared) == 0 {
		return v, false
	}
	value := declared[0]
	for _, d := range declared[1:] {
		value = value.Unify(d)
	}
	if len(alternatives) > 0 && value.IncompleteKind() == cue.BottomKind {
		return value, true // an error of its own, whatever it was meant to be
	}
	for _, a := range alternatives {
		if a.IncompleteKind()&value.IncompleteKind() != 0 {
			return value.Unify(a), true
		}
	}
	return v, false
}

// errorsOf returns the errors of a field of a declaration. Those of a value below it that has a shorthand are
// the errors of the form that its author chose.
func errorsOf(v cue.Value, s *shape, concrete cue.Option) error {
	err := v.Validate(concrete)
	if err == nil || s == nil {
		return err
	}
	var out errors.Error
	replaced := map[string]bool{}
	for name, below := range s.fields {
		if !below.mixed() {
			continue
		}
		field := v.LookupPath(cue.MakePath(cue.Str(name)))
		if !field.Exists() || field.Validate(concrete) == nil {
			continue
		}
		if chosen, ok := alternative(field); ok {
			if err := chosen.Validate(concrete); err != nil {
				replaced[pathOf(pathsOf(field))] = true
				out = errors.Append(out, errors.Promote(err, ""))
			}
		}
	}
	for _, e := range errors.Errors(err) {
		if !within(pathOf(e.Path()), replaced) {
			out = errors.Append(out, e)
		}
	}
	return out
}

func pathsOf(v cue.Value) (path []string) {
	for _, s := range v.Path().Selectors() {
		path = append(path, s.String())
	}
	return path
}

// within reports whether a path is one of those above, or below one.
func within(path string, above map[string]bool) bool {
	for a := range above {
		if path == a || strings.HasPrefix(path, a+".") {
			return true
		}
	}
	return false
}

// full replaces the shorthands in a binding by the full forms, with the schema's defaults, and moves the
// positions of their parts.
func (o *object) full(binding map[string]json.RawMessage, s *shape) {
	for kind, given := range binding {
		short := s.fields[kind]
		if short == nil || !short.mixed() || len(given) == 0 || given[0] == '{' {
			continue
		}
		form := maps.Clone(short.defaults)
		switch {
		case kind == shortCommand:
			var line []json.RawMessage
			if json.Unmarshal(given, &line) != nil || len(line) == 0 {
				continue // decoding reports it
			}
			form["command"], form["argv"] = line[0], encoded(line[1:])
			o.moveLine(join("binding", kind), len(line))
		case kind == "http":
			form["url"] = given
		case kind == "jq":
			form["program"] = given
		}
		binding[kind] = encoded(form)
	}
}

// moveLine gives the parts of a command that is written as a list the positions of the list's elements.
func (o *object) moveLine(at string, n int) {
	fields := maps.Clone(o.src.Fields)
	for i := range n {
		from := join(at, strconv.Itoa(i))
		if pos, ok := fields[from]; ok {
			fields[join(at, commandPart(i))] = pos
			delete(fields, from)
		}
	}
	o.src.Fields = fields
}

// shortCommand is the field of a binding that a list stands for.
const shortCommand = "exec"

// commandPart names an element of such a list as in the full form.
func commandPart(i int) string {
	if i == 0 {
		return "command"
	}
	return "argv." + strconv.Itoa(i-1)
}

// encoded encodes parts of a value that has been decoded from JSON.
func encoded(v any) json.RawMessage {
	data, err := json.Marshal(v)
	if err != nil {
		panic("loader: what was decoded always encodes: " + err.Error())
	}
	return data
}
