package loader

import (
	"fmt"
	"regexp"
	"slices"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/errors"

	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// result is what one package declares, as plain data.
type result struct {
	tools    []registry.Tool
	servers  []registry.Server
	branches []registry.Branch
	// declared holds every name that the package declares, with errors or without.
	declared []declared
	problems problem.List
}

// declared is one name where a package declares it.
type declared struct {
	field, name string
	pos         problem.Position
	// written tells that the name stands in a file of the package's own directory, rather than being computed.
	written bool
}

// unit is one package while it is evaluated.
type unit struct {
	compiler *Compiler
	id       pkgID
	own      map[string]map[string]registry.Source // field, name: where the package's own files write it
	above    map[string]map[string]bool            // field, name: written by a directory above
	unknown  map[string]bool                       // paths of unknown fields that the syntax has shown already
	opened   bool
	result   result
}

// evaluate compiles one package. A panic of CUE's evaluator becomes a problem of this package.
func (c *Compiler) evaluate(s *sources, id pkgID, tags []string) (r result) {
	u := &unit{compiler: c, id: id, own: map[string]map[string]registry.Source{}, above: map[string]map[string]bool{}, unknown: map[string]bool{}}
	defer func() {
		if p := recover(); p != nil {
			c.logger.Error("the CUE evaluator failed", "package", id.dir, "panic", fmt.Sprint(p))
			u.result.problems.Errorf(problem.CUEValue, problem.Position{File: u.place(s)}, "",
				"CUE's evaluator failed on this package; take out what was written last, and report it to catalogd with the file")
			r = u.result
		}
	}()
	u.index(s)
	b := &builder{sources: s, schema: c.schema, tags: tags}
	v, ok := b.value(id)
	u.result.problems = append(u.result.problems, b.problems...)
	u.opened = b.opened || slices.ContainsFunc(above(id.dir), func(dir string) bool { return s.refused[dir] })
	if ok {
		u.catalog(v)
	}
	if u.opened {
		u.result.problems = slices.DeleteFunc(u.result.problems, consequence)
	}
	return u.result
}

// consequence reports whether a problem may only be there because something else could not be read.
func consequence(p problem.Problem) bool {
	switch p.Code {
	case problem.CUEIncomplete, problem.MissingField, problem.UnsupportedConstr:
		return true
	}
	return false
}

// place is a file that stands for the whole package.
func (u *unit) place(s *sources) string {
	own, _, _ := s.files(u.id)
	return own[0].place
}

// index notes what the package's files, and those above, write.
func (u *unit) index(s *sources) {
	own, inherited, _ := s.files(u.id)
	for _, f := range own {
		for field, ds := range f.declared {
			for _, d := range ds {
				u.note(field, d)
			}
		}
		for _, p := range f.foreign {
			u.unknown[p.Path] = true
		}
	}
	for _, f := range inherited {
		for field, ds := range f.declared {
			if u.above[field] == nil {
				u.above[field] = map[string]bool{}
			}
			for _, d := range ds {
				u.above[field][d.name] = true
			}
		}
		for _, p := range f.foreign {
			u.unknown[p.Path] = true
		}
	}
}

func (u *unit) note(field string, d declaration) {
	if u.own[field] == nil {
		u.own[field] = map[string]registry.Source{}
	}
	src, again := u.own[field][d.name]
	if !again {
		src = registry.Source{Pos: d.pos, Fields: map[string]problem.Position{}}
	}
	for path, pos := range d.fields {
		if _, ok := src.Fields[path]; !ok {
			src.Fields[path] = pos
		}
	}
	u.own[field][d.name] = src
	u.result.declared = append(u.result.declared, declared{field, d.name, d.pos, true})
}

// catalog reads the three fields of the package's value, and checks what stands beside them.
func (u *unit) catalog(v cue.Value) {
	all, err := v.Fields(cue.All())
	if err != nil {
		u.errors(err, nil)
		return
	}
	for all.Next() {
		sel := all.Selector()
		label := sel.String()
		switch {
		case definitions[label] != "":
			u.declarations(label, all.Value())
		case u.compiler.ofSchema[label]:
		case sel.LabelType() == cue.StringLabel:
			if !u.unknown[sel.Unquoted()] {
				u.result.problems.Errorf(problem.UnknownField, position(all.Value().Pos()), sel.Unquoted(), "%s",
					unknownField(sel.Unquoted(), []string{branchesField, serversField, toolsField}))
			}
		default:
			if err := all.Value().Validate(); err != nil {
				u.errors(err, nil)
			}
		}
	}
}

// namePattern is #Name of the schema.
var namePattern = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]{0,62}$`)

// declarations reads every tool, server or branch that the package itself declares.
func (u *unit) declarations(field string, v cue.Value) {
	fields, err := v.Fields()
	if err != nil {
		u.errors(err, nil)
		return
	}
	for fields.Next() {
		name := fields.Selector().Unquoted()
		src, written := u.own[field][name]
		if !written {
			if u.above[field][name] {
				continue
			}
			src = registry.Source{Pos: u.computed(fields.Value()), Fields: map[string]problem.Position{}}
			u.result.declared = append(u.result.declared, declared{field, name, src.Pos, false})
		}
		if !namePattern.MatchString(name) {
			u.result.problems.Errorf(problem.BadName, src.Pos, join(field, name),
				"%q is no name that every client and model provider takes; use a letter or _, then up to 62 letters, digits, _ or -", printable(name))
		}
		switch field {
		case toolsField:
			u.tool(name, fields.Value(), src)
		case serversField:
			u.server(name, fields.Value(), src)
		case branchesField:
			u.branch(name, fields.Value(), src)
		}
	}
}

// computed is the position of a declaration whose name does not stand in the syntax: of one of the values in it.
func (u *unit) computed(v cue.Value) problem.Position {
	best := problem.Position{}
	take := func(p problem.Position) {
		if p.IsValid() && p.File != schemaPath && !best.IsValid() {
			best = p
		}
	}
	take(position(v.Pos()))
	if fields, err := v.Fields(); err == nil {
		for fields.Next() {
			take(position(fields.Value().Pos()))
		}
	}
	return best
}

// errors takes in an error of CUE.
func (u *unit) errors(err error, known func([]string) problem.Position) {
	for _, p := range group(err, known) {
		if p.Code == problem.UnknownField {
			if u.unknown[p.Path] {
				continue
			}
			u.unknown[p.Path] = true
			p.Message = u.compiler.suggestion(p, err)
		}
		u.result.problems = append(u.result.problems, p)
	}
}

// suggestion words an unknown field that only the evaluation has shown.
func (c *Compiler) suggestion(p problem.Problem, err error) string {
	for _, e := range errors.Errors(err) {
		path := e.Path()
		if pathOf(path) != p.Path || len(path) < 3 {
			continue
		}
		if s := c.shapes[path[0]].at(path[2 : len(path)-1]); s != nil && s.fields != nil {
			return unknownField(path[len(path)-1], s.names())
		}
	}
	return p.Message
}
