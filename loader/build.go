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

// builder builds one package into a CUE value. It bypasses CUE's own loader, which would search for modules
// and host files: everything comes from the snapshot, and each file is parsed once.
//
// An unresolved reference or import makes CUE abandon the whole package. So the builder reports it, replaces
// it by _ (any value) and builds again, which reveals further errors.
type builder struct {
	sources *sources
	tags    []string
	ctx     *build.Context
	// open holds the positions, by file and offset, that are replaced by _: at first only an identifier that
	// begins there (1), and if that did not help, any node that begins there (2).
	open map[string]map[int]int
	// opened: open is not empty; unread: a file of the package, or of an import, is left out because of a
	// syntax error.
	opened, unread bool
	undeclared     []string // the names of references to nothing
	problems       problem.List

	// tool is the tool whose value is wanted, with extra as an additional file of the package; both are empty
	// for the whole package.
	tool, extra string
}

// rounds bounds how often a package is rebuilt to find one broken reference behind another.
const rounds = 8

// value builds the package. ok is false if the result has no fields that could be inspected.
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
			if name, ok := referenceTo(e); ok {
				b.undeclared = append(b.undeclared, name)
				p.Message = b.sources.undeclared(name, e.Position())
			}
			b.problems = append(b.problems, p)
			again = b.patch(e.Position()) || again
		}
		if !again {
			return v, false
		}
	}
	return v, false
}

// patch marks the node at pos to be replaced by _. It reports whether another build may help.
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

// instance returns the package with all its imports, newly parsed.
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

// load is CUE's callback for each import.
func (b *builder) load(pos token.Pos, importPath string) *build.Instance {
	if standard(importPath) {
		return nil
	}
	id, err := b.sources.resolve(importPath)
	if err != nil {
		return nil // its uses are removed already
	}
	inst := b.add(b.ctx.NewInstance(id.dir, nil), id, false)
	inst.ImportPath = importPath
	inst.Complete() // an error is in inst.Err, where CUE looks for it
	return inst
}

// add adds the files of a package to inst; with pruned, without the inherited declarations that the package
// does not need.
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
			continue // the file had no syntax error when it was read, so this can't happen
		}
		inject(f, b.tags, &b.problems)
		f.Decls = slices.DeleteFunc(f.Decls, isExtern)
		b.repair(f, s)
		if id.name == rootName && s.name != schemaPath {
			bare(f)
		}
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

// isExtern reports whether a declaration enables @embed or a similar attribute in its file, which is refused
// when the file is read.
func isExtern(d ast.Decl) bool {
	a, ok := d.(*ast.Attribute)
	return ok && a.Name() == "extern"
}

// repair removes from f what could only fail.
func (b *builder) repair(f *ast.File, s *source) {
	removed := map[string]bool{}
	for _, i := range s.imports {
		if standard(i.path) {
			continue
		}
		id, err := b.sources.resolve(i.path)
		if err != nil || b.sources.cycle(id) != nil {
			removed[i.local] = true
		}
	}
	open := b.open[s.place]
	if len(removed) == 0 && len(open) == 0 && len(s.undefined) == 0 {
		return
	}
	b.opened = true
	for _, d := range f.Decls {
		if d, ok := d.(*ast.ImportDecl); ok {
			for _, spec := range d.Specs {
				if open[spec.Pos().Offset()] > 0 {
					removed[importOf(spec).local] = true
				}
			}
		}
	}
	withoutImports(f, func(local string) bool { return removed[local] })
	hollow := map[string]bool{} // imports that lose a use
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
		case *ast.CallExpr:
			if x := calledPackage(n); x != "" && s.undefined[n.Pos().Offset()] {
				hollow[x] = true
				c.Replace(anything(n))
				return false
			}
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && (removed[x.Name] || level > 0 || s.undefined[x.Pos().Offset()]) {
				hollow[x.Name] = true
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
	used := idents(f)
	withoutImports(f, func(local string) bool { return hollow[local] && !used[local] })
}

// calledPackage returns p of a call p.f(...), or "".
func calledPackage(call *ast.CallExpr) string {
	if sel, ok := call.Fun.(*ast.SelectorExpr); ok {
		if x, ok := sel.X.(*ast.Ident); ok {
			return x.Name
		}
	}
	return ""
}

// isLabel reports whether the cursor is at the label of a field.
func isLabel(c astutil.Cursor) bool {
	f, ok := c.Parent().Node().(*ast.Field)
	return ok && f.Label == c.Node()
}

// withoutImports removes the imports of f whose local name out reports true for.
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

// anything returns _ at the position of n.
func anything(n ast.Node) ast.Expr {
	return &ast.Ident{NamePos: n.Pos(), Name: "_"}
}
