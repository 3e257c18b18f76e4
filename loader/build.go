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
	tags    []string
	ctx     *build.Context
	// open are the places, by file and offset, where something stands for anything from now on: at first only a name
	// that begins there (1), and where that was not it, whatever begins there (2).
	open map[string]map[int]int
	// opened: there are such; unread: a file of the package, or of an import, is left out because its syntax is wrong.
	opened, unread bool
	problems       problem.List

	// tool is the one whose value is wanted, with extra as one more file of the package; empty for the whole package.
	tool, extra string
}

// rounds bounds how often a package is built to find one broken reference behind another.
const rounds = 8

// value builds the package. ok is false if it has no value that could be looked into.
func (b *builder) value(id pkgID) (v cue.Value, ok bool) {
	b.open = map[string]map[int]int{}
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

// patch opens what is at pos. It reports whether that may help.
func (b *builder) patch(pos token.Pos) bool {
	if !pos.IsValid() {
		return false
	}
	name := pos.Filename()
	if b.open[name] == nil {
		b.open[name] = map[int]int{}
	}
	if b.open[name][pos.Offset()] == 2 {
		return false
	}
	b.open[name][pos.Offset()]++
	b.opened = true
	return true
}

// instance is the package with all that it imports, parsed anew.
func (b *builder) instance(id pkgID) (*build.Instance, errors.Error) {
	b.ctx = build.NewContext(build.Loader(b.load))
	inst := b.add(b.ctx.NewInstance(id.dir, nil), id, id.name == rootName)
	if b.extra != "" {
		f, err := parse(extraPlace, []byte(b.extra), b.sources.module.version)
		if err != nil {
			return inst, errors.Promote(err, "")
		}
		inst.AddSyntax(f)
	}
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
	inst := b.add(b.ctx.NewInstance(id.dir, nil), id, false)
	inst.ImportPath = importPath
	inst.Complete() // an error is in inst.Err, where CUE looks for it
	return inst
}

// add puts the files of a package into inst; where pruned is wanted, without inherited declarations that it can do
// without.
func (b *builder) add(inst *build.Instance, id pkgID, pruned bool) *build.Instance {
	m := b.sources.module
	inst.PkgName, inst.ModuleFile, inst.Module, inst.Root = id.name, m.file, m.path, "."
	own, inherited, _ := b.sources.files(id)
	pruned = pruned && standAlone(own, inherited)
	for i, s := range slices.Concat(own, inherited) {
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
		switch {
		case pruned && b.tool != "":
			prune(f, func(field, name string) bool { return field == toolsField && name == b.tool })
		case pruned && i >= len(own):
			prune(f, declaredBy(own))
		}
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
	for _, d := range f.Decls {
		if d, ok := d.(*ast.ImportDecl); ok {
			for _, spec := range d.Specs {
				if open[spec.Pos().Offset()] > 0 {
					gone[importOf(spec).local] = true
				}
			}
		}
	}
	withoutImports(f, func(local string) bool { return gone[local] })
	astutil.Apply(f, func(c astutil.Cursor) bool {
		level := open[c.Node().Pos().Offset()]
		switch n := c.Node().(type) {
		case *ast.ImportDecl, *ast.Package:
			return false
		case *ast.LetClause:
			if level > 0 {
				c.Delete()
				return false
			}
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && (gone[x.Name] || level > 0) {
				c.Replace(anything(n))
				return false
			}
		case ast.Expr:
			if isLabel(c) {
				return level == 0
			}
			if _, name := n.(*ast.Ident); level > 0 && name || level > 1 {
				c.Replace(anything(n))
				return false
			}
		}
		return true
	}, nil)
}

// isLabel reports whether the cursor is at the label of a field.
func isLabel(c astutil.Cursor) bool {
	f, ok := c.Parent().Node().(*ast.Field)
	return ok && f.Label == c.Node()
}

// withoutImports takes the imports out of f that are used by one of the names.
func withoutImports(f *ast.File, out func(local string) bool) {
	f.Decls = slices.DeleteFunc(f.Decls, func(d ast.Decl) bool {
		i, ok := d.(*ast.ImportDecl)
		if !ok {
			return false
		}
		i.Specs = slices.DeleteFunc(i.Specs, func(spec *ast.ImportSpec) bool { return out(importOf(spec).local) })
		return len(i.Specs) == 0
	})
}

// anything is _ at the place of n.
func anything(n ast.Node) ast.Expr {
	return &ast.Ident{NamePos: n.Pos(), Name: "_"}
}
