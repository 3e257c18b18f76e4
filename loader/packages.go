package loader

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"cuelang.org/go/cue/ast"

	"github.com/catalogd/catalogd/problem"
)

// pkgID names a CUE package: a directory (relative to the root, "." for the root itself) and a package name.
type pkgID struct{ dir, name string }

// sources is every CUE file of a snapshot, parsed and summarised.
type sources struct {
	module  module
	byDir   map[string][]*source // sorted by name
	all     []*source
	refused map[string]bool // directories with a file that could not be read
}

// files returns the files of a package: those of its directory, and those of the directories above it with
// the same package name, which CUE inherits. ok is false if the directory itself has none.
func (s *sources) files(id pkgID) (own, inherited []*source, ok bool) {
	for _, f := range s.byDir[id.dir] {
		if s.belongs(f, id.name) {
			own = append(own, f)
		}
	}
	if len(own) == 0 {
		return nil, nil, false
	}
	for dir := id.dir; dir != "."; {
		dir = path.Dir(dir)
		for _, f := range s.byDir[dir] {
			if s.belongs(f, id.name) {
				inherited = append(inherited, f)
			}
		}
	}
	return own, inherited, true
}

// place returns the file at which problems of a whole package are reported.
func (s *sources) place(id pkgID) string {
	own, _, _ := s.files(id)
	return own[0].place
}

func (s *sources) belongs(f *source, name string) bool {
	return f.pkg == name && !f.excluded && !f.tooled()
}

// units returns the catalog's packages, sorted by directory: every directory with a file of the catalog's
// package. A directory with only the schema declares nothing and is left out.
func (s *sources) units() []pkgID {
	var out []pkgID
	for _, dir := range slices.Sorted(maps.Keys(s.byDir)) {
		for _, f := range s.byDir[dir] {
			if s.belongs(f, rootName) && f.name != schemaPath {
				out = append(out, pkgID{dir, rootName})
				break
			}
		}
	}
	return out
}

// libraries returns the packages that are imported and are not the catalog's own, sorted.
func (s *sources) libraries() []pkgID {
	seen := map[pkgID]bool{}
	for _, f := range s.all {
		for _, i := range f.imports {
			if standard(i.path) {
				continue
			}
			if id, err := s.resolve(i.path); err == nil && id.name != rootName {
				seen[id] = true
			}
		}
	}
	return slices.SortedFunc(maps.Keys(seen), func(a, b pkgID) int { return cmp.Or(cmp.Compare(a.dir, b.dir), cmp.Compare(a.name, b.name)) })
}

// unread reports whether some files could not be read, so that missing declarations may be in one of them.
func (s *sources) unread() bool {
	return len(s.refused) > 0 || slices.ContainsFunc(s.all, func(f *source) bool { return f.broken })
}

// resolve returns the package of the module that an import path names.
func (s *sources) resolve(importPath string) (pkgID, error) {
	if first, _, _ := strings.Cut(importPath, "/"); first == "tool" {
		return pkgID{}, fmt.Errorf("%q is not allowed in a catalog, because tool/* reaches out of it", importPath)
	}
	p := ast.ParseImportPath(importPath)
	sub, ok := strings.CutPrefix(p.Path, s.module.path)
	if s.module.path == "" || !ok || sub != "" && !strings.HasPrefix(sub, "/") || p.Version != "" && p.Version != s.module.major {
		return pkgID{}, fmt.Errorf("%q is in another module, and a catalog only imports from its own and from CUE's standard packages; copy what you need into this module", importPath)
	}
	dir := strings.TrimPrefix(sub, "/")
	if dir == "" {
		dir = "."
	}
	id := pkgID{dir, p.Qualifier}
	if _, _, ok := s.files(id); ok {
		return id, nil
	}
	var names []string
	for _, f := range s.byDir[dir] {
		if f.pkg != "" && !slices.Contains(names, f.pkg) {
			names = append(names, f.pkg)
		}
	}
	if len(names) == 0 {
		return pkgID{}, fmt.Errorf("there is no package in %s", dir)
	}
	return pkgID{}, fmt.Errorf("%s has no package %q but %s; write %q", dir, p.Qualifier, strings.Join(names, ", "), p.Unqualified().String()+":"+names[0])
}

// standard reports whether an import path names one of CUE's standard packages, which are part of the binary.
func standard(importPath string) bool {
	first, _, _ := strings.Cut(importPath, "/")
	return !strings.Contains(first, ".") && first != "tool"
}

// closure returns every file that the value of a package depends on, those of its imports included.
func (s *sources) closure(id pkgID) []*source {
	seen := map[pkgID]bool{}
	var files []*source
	var visit func(pkgID)
	visit = func(id pkgID) {
		if seen[id] {
			return
		}
		seen[id] = true
		own, inherited, _ := s.files(id)
		for _, f := range slices.Concat(own, inherited) {
			files = append(files, f)
			for _, i := range f.imports {
				if standard(i.path) {
					continue
				}
				if dep, err := s.resolve(i.path); err == nil {
					visit(dep)
				}
			}
		}
	}
	visit(id)
	return files
}

// key identifies everything that a package's result depends on.
func (s *sources) key(id pkgID, schema []byte, tags []string) string {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q %x %q %q\n", id.dir, id.name, sha256.Sum256(schema), s.module, tags)
	for _, f := range s.closure(id) {
		fmt.Fprintf(h, "%q %q %x\n", f.name, f.place, f.sum)
	}
	for _, dir := range above(id.dir) {
		fmt.Fprintf(h, "%q %t\n", dir, s.refused[dir])
	}
	return hex.EncodeToString(h.Sum(nil))
}

// above returns a directory and its parents, up to the root.
func above(dir string) []string {
	out := []string{dir}
	for dir != "." {
		dir = path.Dir(dir)
		out = append(out, dir)
	}
	return out
}

// cycle returns the import cycle that leads from id back to it, or nil.
func (s *sources) cycle(id pkgID) []pkgID {
	var stack []pkgID
	done := map[pkgID]bool{}
	var visit func(pkgID) []pkgID
	visit = func(at pkgID) []pkgID {
		if i := slices.Index(stack, at); i >= 0 {
			return append(slices.Clone(stack[i:]), at)
		}
		if done[at] {
			return nil
		}
		done[at] = true
		stack = append(stack, at)
		defer func() { stack = stack[:len(stack)-1] }()
		own, inherited, _ := s.files(at)
		for _, f := range slices.Concat(own, inherited) {
			for _, i := range f.imports {
				if dep, err := s.resolve(i.path); err == nil {
					if c := visit(dep); c != nil {
						return c
					}
				}
			}
		}
		return nil
	}
	return visit(id)
}

// check reports the problems of the files before anything is evaluated.
func (s *sources) check(given []string) problem.List {
	var l problem.List
	imports := map[pkgID]bool{}
	for _, f := range s.all {
		for _, i := range f.imports {
			if standard(i.path) {
				continue
			}
			id, err := s.resolve(i.path)
			if err != nil {
				l.Errorf(problem.CUEImport, i.pos, "", "%v", err)
				continue
			}
			imports[id] = true
		}
	}
	for _, f := range s.all {
		l = append(l, f.problems...)
		switch {
		case f.broken || f.excluded || fixtures(f.name):
		case f.pkg == rootName && f.tooled():
			l.Errorf(problem.NotCatalogPackage, f.pkgPos, "",
				"CUE leaves files called *_tool.cue and *_test.cue out of their package, so nothing reads this one; rename it (tests of decisions belong below policy/)")
		case f.pkg == rootName:
			l = append(l, f.foreign...)
		case f.pkg == "" && !f.empty():
			l.Errorf(problem.NotCatalogPackage, f.pkgPos, "", "the file has no package clause, so nothing reads it; begin it with `package %s`", rootName)
		case f.pkg != "" && len(f.declared) > 0 && !s.imported(f, imports):
			l.Errorf(problem.NotCatalogPackage, f.pkgPos, "", "the file declares in package %s, which nothing reads; write `package %s`", f.pkg, rootName)
		case f.pkg != "" && !s.imported(f, imports):
			l.Warnf(problem.NotCatalogPackage, f.pkgPos, "", "nothing imports package %s; write `package %s`, import it, or remove the file", f.pkg, rootName)
		}
	}
	for _, t := range given {
		if !slices.ContainsFunc(s.all, func(f *source) bool { return f.tags.uses(t) }) {
			key, _, _ := strings.Cut(t, "=")
			l.Errorf(problem.CUETag, problem.Position{File: "."}, "", "no file asks for the tag %q; write @tag(%s) behind a field, or leave out -t %s", key, key, t)
		}
	}
	return l
}

// imported reports whether f belongs to a package that some file imports.
func (s *sources) imported(f *source, imports map[pkgID]bool) bool {
	for id := range imports {
		if id.name == f.pkg && slices.Contains(above(id.dir), path.Dir(f.name)) {
			return true
		}
	}
	return false
}

// byteAt returns the byte at a position of a file, or 0.
func (s *sources) byteAt(pos problem.Position) byte {
	i := slices.IndexFunc(s.all, func(f *source) bool { return f.place == pos.File })
	if i < 0 || pos.Line < 1 {
		return 0
	}
	data := s.all[i].data
	for range pos.Line - 1 {
		_, data, _ = bytes.Cut(data, []byte("\n"))
	}
	if pos.Col < 1 || pos.Col > len(data) {
		return 0
	}
	return data[pos.Col-1]
}
