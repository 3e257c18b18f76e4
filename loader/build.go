package loader

import (
	"slices"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/ast/astutil"
	"cuelang.org/go/cue/build"
	"cuelang.org/go/cue/cuecontext"
	"cuelang.org/go/cue/errors"
	"cuelang.org/go/cue/token"

	"github.com/catalogd/catalogd/problem"
)

// builder turns one package into a CUE value. It goes round the loader of CUE, which would look for modules and host
// files: everything comes from the snapshot, through one parse a file.
//
// A reference or an import that leads nowhere makes CUE give up on the whole package. So the builder reports it, puts _
// (anything) in its place and builds again, which brings out what else is wrong.
type builder struct {
	sources *sources
	schema  []byte
	tags    []string
	// open are the offsets, by file, of identifiers that stand for anything from now on.
	open map[string]map[int]bool
	// opened: there are such; unread: a file of the package, or of an import, is left out because its syntax is wrong.
	opened, unread bool
	problems       problem.List
}

// rounds bounds how often a package is built to find one broken reference behind another.
const rounds = 8

// value builds the package. ok is false if it has no value that could be looked into.
func (b *builder) value(id pkgID) (v cue.Value, ok bool) {
	b.open = map[string]map[int]bool{}
	for range rounds {
		inst, err := b.instance(id)
		if err == nil {
			v = cuecontext.New().BuildInstance(inst)
			if err = inst.Err; err == nil {
				return v, true
			}
		}
		again := false
		for _, e := range errors.Errors(err) {
			p := fromCUE(e, nil)
			b.problems = append(b.problems, p)
			again = b.patch(e.Position()) || again
		}
		if !again {
			return v, false
		}
	}
	return v, false
}

// patch opens the identifier at pos. It reports whether that is news.
func (b *builder) patch(pos token.Pos) bool {
	if !pos.IsValid() {
		return false
	}
	name := pos.Filename()
	if b.open[name] == nil {
		b.open[name] = map[int]bool{}
	}
	if b.open[name][pos.Offset()] {
		return false
	}
	b.open[name][pos.Offset()] = true
	b.opened = true
	return true
}

// instance is the package with all that it imports, parsed anew.
func (b *builder) instance(id pkgID) (*build.Instance, errors.Error) {
	ctx := build.NewContext(build.Loader(b.load))
	inst := b.add(ctx.NewInstance(id.dir, nil), id)
	if err := inst.Complete(); err != nil {
		return inst, errors.Promote(err, "")
	}
	return inst, nil
}

// load is called by CUE for each import.
func (b *builder) load(pos token.Pos, importPath string) *build.Instance {
	if standard(importPath) {
		return nil
	}
	id, err := b.sources.resolve(importPath)
	if err != nil {
		return nil // its uses are gone already
	}
	inst := b.add(build.NewContext(build.Loader(b.load)).NewInstance(id.dir, nil), id)
	inst.ImportPath = importPath
	if err := inst.Complete(); err != nil {
		return inst
	}
	return inst
}

// add puts the files of a package into inst.
func (b *builder) add(inst *build.Instance, id pkgID) *build.Instance {
	m := b.sources.module
	inst.PkgName, inst.ModuleFile, inst.Module, inst.Root = id.name, m.file, m.path, "."
	own, inherited, _ := b.sources.files(id)
	for _, s := range slices.Concat(own, inherited) {
		if s.broken {
			b.unread = true
			continue
		}
		f, err := parse(s.place, s.data, m.version)
		if err != nil {
			continue // not broken when it was read, so this can't be
		}
		inject(f, b.tags, &b.problems)
		f.Decls = slices.DeleteFunc(f.Decls, isExtern)
		b.mend(f, s)
		inst.AddSyntax(f)
	}
	return inst
}

// isExtern reports whether a declaration turns on @embed or the like in its file, which is refused when the file is read.
func isExtern(d ast.Decl) bool {
	a, ok := d.(*ast.Attribute)
	return ok && a.Name() == "extern"
}

// mend takes out of f what could only fail.
func (b *builder) mend(f *ast.File, s *source) {
	gone := map[string]bool{}
	for _, i := range s.imports {
		if standard(i.path) {
			continue
		}
		id, err := b.sources.resolve(i.path)
		if err != nil || b.sources.cycle(id) != nil {
			gone[i.local] = true
		}
	}
	open := b.open[s.place]
	if len(gone) == 0 && len(open) == 0 {
		return
	}
	b.opened = true
	opens := func(n ast.Node) bool { return open[n.Pos().Offset()] }
	for _, d := range f.Decls {
		if d, ok := d.(*ast.ImportDecl); ok {
			for _, spec := range d.Specs {
				if opens(spec) {
					gone[importOf(spec).local] = true
				}
			}
			d.Specs = slices.DeleteFunc(d.Specs, func(spec *ast.ImportSpec) bool { return gone[importOf(spec).local] })
		}
	}
	f.Decls = slices.DeleteFunc(f.Decls, func(d ast.Decl) bool {
		i, ok := d.(*ast.ImportDecl)
		return ok && len(i.Specs) == 0
	})
	astutil.Apply(f, func(c astutil.Cursor) bool {
		switch n := c.Node().(type) {
		case *ast.ImportDecl:
			return false
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && (gone[x.Name] || opens(x)) {
				c.Replace(anything(n))
				return false
			}
		case *ast.Ident:
			if _, label := c.Parent().Node().(*ast.Field); label && c.Parent().Node().(*ast.Field).Label == c.Node() {
				return false
			}
			if open[n.Pos().Offset()] {
				c.Replace(anything(n))
				return false
			}
		}
		return true
	}, nil)
}

// anything is _ at the place of n.
func anything(n ast.Node) ast.Expr {
	return &ast.Ident{NamePos: n.Pos(), Name: "_"}
}
