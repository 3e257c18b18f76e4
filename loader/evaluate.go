package loader

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"cuelang.org/go/cue"

	"github.com/catalogd/catalogd/internal/derive"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// result holds the declarations of one package, as plain data.
type result struct {
	tools    []registry.Tool
	servers  []registry.Server
	branches []registry.Branch
	// declared holds every name that the package declares, including those with errors.
	declared []declared
	problems problem.List
}

// declared is one name at the position where a package declares it.
type declared struct {
	field, name string
	pos         problem.Position
	// written reports that the name is written in a file of the package's own directory, rather than
	// computed.
	written bool
	// tags and anyTag are those of the declaration's syntax.
	tags   []string
	anyTag bool
}

// unit is one package while it is evaluated.
type unit struct {
	compiler *Compiler
	id       pkgID
	key      string                                // identifies everything that the package's value depends on
	file     string                                // the position of problems that have no more exact one
	own      map[string]map[string]registry.Source // field, name: the position in the package's own files
	above    map[string]map[string]bool            // field, name: written in a directory above
	unknown  map[string]bool                       // paths of unknown fields already reported from the syntax
	syntax   *derive.Package
	sources  *sources
	result   result
}

// evaluate compiles one package. A panic of CUE's evaluator becomes a problem of this package.
func (c *Compiler) evaluate(s *sources, id pkgID, key string, tags []string) (r result) {
	u := &unit{compiler: c, id: id, key: key, sources: s, file: s.place(id), own: map[string]map[string]registry.Source{}, above: map[string]map[string]bool{}, unknown: map[string]bool{}}
	defer func() {
		if p := recover(); p != nil {
			c.logger.Error("the CUE evaluator failed", "package", id.dir, "panic", fmt.Sprint(p))
			u.result.problems.Errorf(problem.CUEValue, problem.Position{File: u.file}, "",
				"CUE's evaluator failed on this package; take out what was written last, and report it to catalogd with the file")
			r = u.result
		}
	}()
	u.index(s)
	b := &builder{sources: s, tags: tags}
	v, ok := b.value(id)
	u.result.problems = append(u.result.problems, b.problems...)
	unread := b.unread || slices.ContainsFunc(above(id.dir), func(dir string) bool { return s.refused[dir] })
	switch {
	case ok && id.name == rootName:
		u.catalog(v)
		u.result.computed()
	case ok:
		if err := v.Validate(); err != nil {
			u.errors(err, nil)
		}
	}
	var unresolved problem.List
	own, _, _ := s.files(id)
	for _, f := range own {
		unresolved = append(unresolved, f.problems...)
	}
	for _, p := range u.result.problems {
		if p.Code == problem.CUEReference || p.Code == problem.CUEImport && !isUnused(p) {
			unresolved = append(unresolved, p)
		}
	}
	u.result.problems = slices.DeleteFunc(u.result.problems, func(p problem.Problem) bool {
		return consequence(p, b.opened, unread) || follows(p, unresolved, b.undeclared)
	})
	u.result.problems = oncePerPlace(withoutUses(u.result.problems))
	for i, p := range u.result.problems {
		if !p.IsValid() || p.File == schemaPath { // the author can't edit the schema
			u.result.problems[i].Position = u.place(p.Path)
		}
	}
	return u.result
}

// place returns the position where a declaration writes the value at a catalog path, or the nearest enclosing
// value.
func (u *unit) place(path string) problem.Position {
	parts := strings.SplitN(path, ".", 3)
	if len(parts) > 1 {
		if src, ok := u.own[parts[0]][parts[1]]; ok {
			if len(parts) == 3 {
				return src.At(parts[2])
			}
			return src.Pos
		}
	}
	return problem.Position{File: u.file}
}

// consequence reports whether a problem may only be the result of another: a value that was opened because a
// reference is unresolved (opened), or anything that a file that could not be read may declare (unread).
func consequence(p problem.Problem, opened, unread bool) bool {
	switch p.Code {
	case problem.CUEIncomplete, problem.UnsupportedConstr:
		return opened || unread
	case problem.MissingField, problem.CUEReference:
		return unread
	}
	return false
}

// follows reports whether a problem may only be the result of names that refer to nothing: of a value that is
// one, or of what is unused because its name is misspelt where it is used.
func follows(p problem.Problem, unresolved problem.List, undeclared []string) bool {
	for _, r := range unresolved {
		if p.Code == problem.MissingField && r.Code == problem.CUEReference && r.Path != "" && strings.HasPrefix(p.Path, r.Path+".") {
			return true
		}
		if p.Position == r.Position && p.Line > 0 && (isUnused(p) || p.Code == problem.CUEValue && r.Code == problem.CUEReference) {
			return true
		}
	}
	name, unused := unusedName(p)
	return unused && slices.ContainsFunc(undeclared, func(u string) bool { return nearest(u, []string{name}) != "" })
}

// withoutUses takes away the problems of texts into which a value is put that has a problem itself.
func withoutUses(l problem.List) problem.List {
	const use = "invalid interpolation: "
	own := map[string]bool{}
	for _, p := range l {
		if !strings.Contains(p.Message, use) {
			own[p.Path] = true
		}
	}
	return slices.DeleteFunc(l, func(p problem.Problem) bool { return own[p.Path] && strings.Contains(p.Message, use) })
}

// unusedName returns the name of an import or a let that nothing uses.
func unusedName(p problem.Problem) (name string, ok bool) {
	rest, ok := strings.CutPrefix(p.Message, "nothing uses ")
	name, _, _ = strings.Cut(rest, ";")
	return strings.Trim(name, `"`), ok
}

func isUnused(p problem.Problem) bool {
	_, ok := unusedName(p)
	return ok
}

// oncePerPlace keeps one of several problems that one mistake causes at many paths, such as in a definition
// that many tools share.
func oncePerPlace(l problem.List) problem.List {
	type mistake struct {
		code    problem.Code
		pos     problem.Position
		message string
	}
	seen := map[mistake]bool{}
	return slices.DeleteFunc(l.Sorted(), func(p problem.Problem) bool {
		m := mistake{p.Code, p.Position, p.Message}
		again := seen[m] && p.Line > 0 && p.Code != problem.MissingField
		seen[m] = true
		return again
	})
}

// index records what the package's files, and those above, write.
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
	u.result.declared = append(u.result.declared, declared{field, d.name, d.pos, true, d.tags, d.anyTag})
}

// catalog reads the three fields of the package's value and reports other fields.
func (u *unit) catalog(v cue.Value) {
	u.syntax = derive.NewPackage(v, &u.compiler.proven)
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
				u.result.problems.Errorf(problem.UnknownField, derive.Position(all.Value().Pos()), sel.Unquoted(), "%s",
					unknownField(sel.Unquoted(), []string{branchesField, serversField, toolsField}))
			}
		default:
			if err := all.Value().Validate(); err != nil {
				u.errors(err, func([]string) problem.Position { return derive.Position(all.Value().Pos()) })
			}
		}
	}
}

// namePattern is the schema's #Name.
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
			u.result.declared = append(u.result.declared, declared{field, name, src.Pos, false, nil, true})
		}
		if !namePattern.MatchString(name) {
			u.result.problems.Errorf(problem.BadName, src.Pos, join(field, printable(name)),
				`"%s" is not a name that every client and model provider accepts; use a letter or _, then up to 62 letters, digits, _ or -`, printable(name))
		}
		switch field {
		case toolsField:
			u.tool(name, fields.Value(), src)
			u.compiler.toolsRead.Add(1)
		case serversField:
			u.server(name, fields.Value(), src)
		case branchesField:
			u.branch(name, fields.Value(), src)
		}
	}
}

// computed returns the position of a declaration whose name is not in the syntax: that of one of its values.
func (u *unit) computed(v cue.Value) problem.Position {
	var best problem.Position
	take := func(p problem.Position) {
		if p.IsValid() && p.File != schemaPath && !best.IsValid() {
			best = p
		}
	}
	take(derive.Position(v.Pos()))
	if fields, err := v.Fields(); err == nil {
		for fields.Next() {
			take(derive.Position(fields.Value().Pos()))
		}
	}
	if !best.IsValid() {
		best.File = u.file
	}
	return best
}

// errors adds the problems of a CUE error.
func (u *unit) errors(err error, known func([]string) problem.Position) {
	conflicts := map[string]bool{}
	for _, f := range group(err, known) {
		p := f.problem
		if p.Code == problem.CUEConflict {
			conflicts[p.Path] = true
		}
		switch p.Code {
		case problem.UnknownField:
			if u.unknown[p.Path] {
				continue
			}
			u.unknown[p.Path] = true
			if s := u.compiler.shapeAt(f.path[:max(0, len(f.path)-1)]); s != nil && s.fields != nil {
				p.Message = s.unknownField(f.path[len(f.path)-1])
			}
		case problem.CUEValue:
			if u.unknownBelow(p.Path) || conflicts[p.Path] {
				continue // this is why it doesn't match
			}
			if len(f.path) == 3 && f.path[2] == "name" {
				p.Message = "the name is filled in from the field's label; leave it out"
			} else if s := u.compiler.shapeAt(f.path); s != nil && s.wanted != "" {
				last := f.path[len(f.path)-1]
				if _, err := strconv.Atoi(last); err == nil && len(f.path) > 3 {
					last = "an item of " + f.path[len(f.path)-2]
				}
				if f.alternatives {
					p.Message = fmt.Sprintf("%s must be %s", last, s.wanted)
				} else {
					p.Message = fmt.Sprintf("%s must be %s (%s)", last, s.wanted, p.Message)
				}
			}
			if u.sources.byteAt(p.Position) == '\'' {
				p.Message += `; what stands in ' are bytes: write a text in "`
			}
		}
		u.result.problems = append(u.result.problems, p)
	}
}

func (u *unit) unknownBelow(path string) bool {
	for p := range u.unknown {
		if strings.HasPrefix(p, path+".") {
			return true
		}
	}
	return false
}

// shapeAt returns the shape that the schema gives the value at a catalog path, or nil.
func (c *Compiler) shapeAt(path []string) *shape {
	switch {
	case len(path) == 0 || c.shapes[path[0]] == nil:
		return nil
	case len(path) < 3:
		return &shape{wanted: "a struct"}
	}
	return c.shapes[path[0]].at(path[2:])
}
