package loader

import (
	"crypto/sha256"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/errors"
	"cuelang.org/go/cue/parser"
	"cuelang.org/go/cue/token"

	"github.com/catalogd/catalogd/internal/derive"
	"github.com/catalogd/catalogd/problem"
)

// source summarises the syntax of one CUE file before evaluation. It is plain data, cached between builds as
// long as the file's bytes are unchanged.
type source struct {
	name  string // its path in the snapshot
	place string // the path used in its positions
	data  []byte
	sum   [sha256.Size]byte

	pkg      string
	pkgPos   problem.Position
	broken   bool // syntax error: the fields below are incomplete
	excluded bool // by @ignore() or @if(...)
	imports  []imported
	tags     tagUse
	declared map[string][]declaration // by field: tools, servers, branches
	problems problem.List
	secrets  []string // literal secrets, which are also reported as problems
	// foreign are problems that count only if the file's package is the catalog's.
	foreign problem.List
	// refers reports that tools, servers or branches is used as a value somewhere in the file.
	refers bool
	decls  int      // number of declarations, without the package clause and comments
	labels []string // by which the package's files can refer to what the file declares
	// undefined has the offsets of names that are reported because nothing is behind them.
	undefined map[int]bool
}

// imported is one import of a file.
type imported struct {
	path string
	// local is the name by which the file refers to it.
	local string
	pos   problem.Position
}

// declaration is the syntax of one tool, server or branch.
type declaration struct {
	name string
	pos  problem.Position
	// fields are the positions of the values below it, by path.
	fields map[string]problem.Position
	// tags are those that are written as texts; anyTag reports that there are others.
	tags   []string
	anyTag bool
}

// parse parses one file. Each build needs its own syntax tree, because CUE resolves references in place.
func parse(place string, data []byte, version string) (*ast.File, error) {
	return parser.ParseFile(place, data, parser.ParseComments, parser.AllErrors, parser.Version(version))
}

// read summarises one file. A panic of CUE's parser becomes a problem of this file.
func (c *Compiler) read(name, place string, data []byte, version string, set map[string]bool) (s *source) {
	s = &source{name: name, place: place, data: data, sum: sha256.Sum256(data), declared: map[string][]declaration{}, undefined: map[int]bool{}}
	defer func() {
		if p := recover(); p != nil {
			c.logger.Error("the CUE parser failed", "file", place, "panic", fmt.Sprint(p))
			s.broken = true
			s.problems.Errorf(problem.CUESyntax, problem.Position{File: place}, "",
				"CUE's parser failed on this file; take out what was written last, and report it to catalogd with the file")
		}
	}()
	f, err := parse(place, data, version)
	if err != nil {
		s.broken = true
		s.syntaxErrors(err)
	}
	if name != schemaPath {
		s.literals(f)
	}
	if f == nil {
		return s
	}
	if pos, n := crowded(f); n > maxFields {
		s.broken = true
		s.problems.Errorf(problem.TooManyFields, positionOr(derive.Position(pos), place), "",
			"this struct has %d declarations, and evaluating more than %d of them in one place takes CUE too long; split it into packages (directories)", n, maxFields)
	}
	s.pkg = f.PackageName()
	s.pkgPos = problem.Position{File: place, Line: 1, Col: 1}
	for _, d := range f.Decls {
		if p, ok := d.(*ast.Package); ok {
			s.pkgPos = derive.Position(p.Name.Pos())
		}
	}
	s.excluded = s.conditions(f, set)
	for spec := range f.ImportSpecs() {
		s.imports = append(s.imports, importOf(spec))
	}
	s.attributes(f)
	s.broken = s.misread(f) || s.broken
	s.labels = labels(f.Decls)
	s.selectors(f)
	used := idents(f)
	s.refers = used[toolsField] || used[serversField] || used[branchesField]
	for _, d := range f.Decls {
		switch d.(type) {
		case *ast.Package, *ast.CommentGroup:
		default:
			s.decls++
		}
		s.declaration(d, c.shapes, used)
	}
	return s
}

// maxFields caps the declarations in one struct, because CUE's time is quadratic in their number. It is twice
// the cap on the tools of a whole catalog.
const maxFields = 20_000

// crowded returns the struct of f, the file itself included, with the most declarations.
func crowded(f *ast.File) (at token.Pos, n int) {
	at, n = f.Pos(), len(f.Decls)
	ast.Walk(f, func(node ast.Node) bool {
		if lit, ok := node.(*ast.StructLit); ok && len(lit.Elts) > n {
			at, n = lit.Pos(), len(lit.Elts)
		}
		return true
	}, nil)
	return at, n
}

func importOf(spec *ast.ImportSpec) imported {
	i := imported{pos: derive.Position(spec.Pos())}
	if p, err := strconv.Unquote(spec.Path.Value); err == nil {
		i.path = p
		i.local = ast.ParseImportPath(p).Qualifier
		if i.local == "" {
			i.local = path.Base(p)
		}
	}
	if spec.Name != nil {
		i.local = spec.Name.Name
	}
	return i
}

// declaration records one top-level declaration of a file, which uses these identifiers.
func (s *source) declaration(d ast.Decl, shapes map[string]*shape, used map[string]bool) {
	f, field, ok := regular(d)
	if !ok {
		return
	}
	shape, known := shapes[field]
	if !known {
		message := unknownField(field, []string{branchesField, serversField, toolsField})
		if !strings.HasSuffix(message, "?") {
			message += fmt.Sprintf("; call a value of your own _%s or #%s", field, field)
		}
		s.foreign.Errorf(problem.UnknownField, derive.Position(f.Label.Pos()), field, "%s", message)
		return
	}
	for _, lit := range structs(f.Value) {
		for _, e := range lit.Elts {
			f, name, ok := regular(e)
			if !ok {
				s.hidden(e, field, used)
				continue
			}
			d := declaration{name: name, pos: derive.Position(f.Label.Pos()), fields: map[string]problem.Position{}}
			if f.Constraint != token.ILLEGAL {
				s.foreign.Errorf(problem.CUEValue, d.pos, join(field, printable(name)),
					"a declaration has no %s behind its name, because it would then declare nothing; take it away", f.Constraint)
			}
			positions(f.Value, "", d.fields)
			d.tags, d.anyTag = writtenTags(f.Value)
			s.declared[field] = append(s.declared[field], d)
			misnamed(field, join(field, printable(name)), f.Value, &s.foreign)
			shape.unknown(f.Value, join(field, name), &s.foreign)
		}
	}
}

// hidden warns of a tool, server or branch that CUE hides because of its name, unless the file uses it as a
// template.
func (s *source) hidden(d ast.Decl, field string, used map[string]bool) {
	f, ok := d.(*ast.Field)
	if !ok {
		return
	}
	name, ident, err := ast.LabelName(f.Label)
	if err != nil || !ident || used[name] {
		return
	}
	s.foreign.Warnf(problem.BadName, derive.Position(f.Label.Pos()), join(field, printable(name)),
		"nothing is declared here, because CUE hides a name that begins with _ or #; write it in quotes, or move a template of your own to the top of the file")
}

// structs returns the struct literals whose unification is x.
func structs(x ast.Expr) []*ast.StructLit {
	switch x := x.(type) {
	case *ast.StructLit:
		return []*ast.StructLit{x}
	case *ast.ParenExpr:
		return structs(x.X)
	case *ast.BinaryExpr:
		return append(structs(x.X), structs(x.Y)...)
	}
	return nil
}

// positions records the position of everything below x: of fields their labels, of list elements their
// values. It stops below the maximal depth of a contract, so that the total length of the paths of a hostile
// file isn't quadratic.
func positions(x ast.Expr, path string, into map[string]problem.Position) {
	if strings.Count(path, ".") > 48 {
		return
	}
	note := func(path string, pos problem.Position) {
		if _, ok := into[path]; !ok && pos.IsValid() {
			into[path] = pos
		}
	}
	switch x := x.(type) {
	case *ast.ListLit:
		for i, e := range x.Elts {
			below := join(path, strconv.Itoa(i))
			note(below, derive.Position(e.Pos()))
			positions(e, below, into)
		}
	default:
		for _, lit := range structs(x) {
			for _, e := range lit.Elts {
				if f, name, ok := regular(e); ok {
					below := join(path, name)
					note(below, derive.Position(f.Label.Pos()))
					positions(f.Value, below, into)
				}
			}
		}
	}
}

// writtenTags returns the tags of a tool's syntax that are written as texts; others reports whether it may
// have more.
func writtenTags(x ast.Expr) (tags []string, others bool) {
	b, isBinary := x.(*ast.BinaryExpr)
	if isBinary {
		left, l := writtenTags(b.X)
		right, r := writtenTags(b.Y)
		return append(left, right...), l || r
	}
	lit, ok := x.(*ast.StructLit)
	if !ok {
		id, isIdent := x.(*ast.Ident)
		return nil, !isIdent || id.Name != definitions[toolsField]
	}
	for _, e := range lit.Elts {
		f, name, ok := regular(e)
		if !ok {
			_, embeds := e.(*ast.EmbedDecl)
			others = others || embeds
			continue
		}
		if name != "tags" {
			continue
		}
		list, ok := f.Value.(*ast.ListLit)
		if !ok {
			others = true
			continue
		}
		for _, item := range list.Elts {
			if text := constant(item); text != "" {
				tags = append(tags, text)
			} else {
				others = true
			}
		}
	}
	return tags, others
}

// attributes refuses attributes that would import something from outside the catalog, and records the tags.
func (s *source) attributes(f *ast.File) {
	ast.Walk(f, func(n ast.Node) bool {
		a, ok := n.(*ast.Attribute)
		if !ok {
			return true
		}
		key, body := a.Split()
		pos := derive.Position(a.Pos())
		switch key {
		case "embed", "extern":
			s.problems.Errorf(problem.CUEEmbed, pos, "",
				"@%s is not allowed in a catalog, because everything that a build depends on must be in its CUE files; write the value here", key)
		case "tag":
			s.tags.note(body, pos, &s.problems)
		}
		return true
	}, nil)
}

// tooled reports whether CUE excludes the file from its package because of its name.
func (s *source) tooled() bool {
	return strings.HasSuffix(s.name, "_tool.cue") || strings.HasSuffix(s.name, "_test.cue")
}

func positionOr(p problem.Position, file string) problem.Position {
	if !p.IsValid() {
		return problem.Position{File: file}
	}
	return p
}

// text returns the message of a CUE error and of its causes in one line, without path and position, which a
// problem holds separately.
func text(err errors.Error) string {
	t := strings.Join(strings.Fields(err.Error()), " ")
	for _, prefix := range []string{err.Position().String(), strings.Join(err.Path(), ".")} {
		t = strings.TrimPrefix(t, prefix+": ")
	}
	return t
}

// declares reports whether the file declares a tool, server or branch of that name.
func (s *source) declares(field, name string) bool {
	return slices.ContainsFunc(s.declared[field], func(d declaration) bool { return d.name == name })
}

// empty reports whether the file has no declarations.
func (s *source) empty() bool { return s.decls == 0 }
