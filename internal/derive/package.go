package derive

import (
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/ast/astutil"
	"cuelang.org/go/cue/build"
)

// Package is the syntax of one CUE package and of the packages that it imports, in which the names of its
// constraints are resolved. It is not safe for concurrent use.
type Package struct {
	root   cue.Value
	files  map[string]*scope // by file name
	proven *Proven
	// secrets: some file of the package, or of one that it imports, marks a field as a secret.
	secrets bool
}

// scope holds the declarations at the top level of one package.
type scope struct {
	fields map[string][]*ast.Field
	// others are the top-level declarations that are not fields.
	others []ast.Decl
	// open: some file has other declarations than fields at its top level, so a name may mean more than its
	// fields show.
	open    bool
	imports map[string]*scope // by import path
}

// NewPackage reads the syntax that root was built from: the value of a package, as returned by
// cue.Context.BuildInstance. proven may be shared by packages; if it is nil, the package gets its own.
func NewPackage(root cue.Value, proven *Proven) *Package {
	if proven == nil {
		proven = &Proven{}
	}
	p := &Package{root: root, files: map[string]*scope{}, proven: proven}
	if inst := root.BuildInstance(); inst != nil {
		p.read(inst, map[*build.Instance]*scope{})
	}
	return p
}

func (p *Package) read(inst *build.Instance, seen map[*build.Instance]*scope) *scope {
	if s := seen[inst]; s != nil {
		return s
	}
	s := &scope{fields: map[string][]*ast.Field{}, imports: map[string]*scope{}}
	seen[inst] = s
	for _, f := range inst.Files {
		p.files[f.Filename] = s
		p.secrets = p.secrets || marked(f)
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.Field:
				if name, ok := labelKey(d); ok {
					s.fields[name] = append(s.fields[name], d)
				}
			case *ast.Comprehension:
				s.open, s.others = s.open || !regularOnly(d), append(s.others, d)
			case *ast.EmbedDecl, *ast.Ellipsis:
				s.open, s.others = true, append(s.others, d)
			}
		}
	}
	for _, dep := range inst.Imports {
		s.imports[dep.ImportPath] = p.read(dep, seen)
	}
	return s
}

// regularOnly reports whether a comprehension declares only regular fields, including those with computed
// names: tools and servers, and never the definitions and hidden fields to which constraints refer.
func regularOnly(c *ast.Comprehension) bool {
	lit, ok := c.Value.(*ast.StructLit)
	if !ok || c.Fallback != nil {
		return false
	}
	for _, e := range lit.Elts {
		switch e := e.(type) {
		case *ast.Field:
			if key, ok := labelKey(e); ok && hiddenKey(key) {
				return false
			}
		case *ast.Comprehension:
			if !regularOnly(e) {
				return false
			}
		case *ast.CommentGroup, *ast.LetClause:
		default:
			return false
		}
	}
	return true
}

// target is the declaration to which a name refers. At most one of its fields is set; none if the walk does
// not follow it.
type target struct {
	basic   string     // a predeclared type: string
	builtin string     // a name in a standard CUE package: strings.MinRunes
	field   *ast.Field // the only declaration of its name
	// fillable: field is an argument that a call may send.
	fillable bool
}

// refer resolves a name: an identifier, or a selection from a package or a struct.
func (w *walker) refer(x ast.Expr) target {
	switch x := x.(type) {
	case *ast.ParenExpr:
		return w.refer(x.X)
	case *ast.Ident:
		return w.identifier(x)
	case *ast.SelectorExpr:
		name, _, err := ast.LabelName(x.Sel)
		if err != nil {
			return target{}
		}
		if spec := importOf(x.X); spec != nil {
			return w.imported(x, spec, name)
		}
		above := w.refer(x.X)
		if above.field == nil {
			return target{}
		}
		lit := structLit(above.field.Value)
		if lit == nil || !plainStruct(lit) {
			return target{}
		}
		key := identKey(name)
		return target{field: only(fieldsOf(lit)[key]), fillable: above.fillable && !hiddenKey(key)}
	}
	return target{}
}

// importOf returns the import that an expression names, or nil.
func importOf(x ast.Expr) *ast.ImportSpec {
	if id, ok := x.(*ast.Ident); ok {
		spec, _ := id.Node.(*ast.ImportSpec)
		return spec
	}
	return nil
}

func (w *walker) imported(x *ast.SelectorExpr, spec *ast.ImportSpec, name string) target {
	info, err := astutil.ParseImportSpec(spec)
	if err != nil {
		return target{}
	}
	if first, _, _ := strings.Cut(info.ID, "/"); !strings.Contains(first, ".") {
		return target{builtin: info.ID[strings.LastIndexByte(info.ID, '/')+1:] + "." + name}
	}
	return w.importedScope(x, spec).lookup(identKey(name))
}

// importedScope returns the package of the catalog that a file imports; nil for a standard CUE package.
func (w *walker) importedScope(x ast.Node, spec *ast.ImportSpec) *scope {
	info, err := astutil.ParseImportSpec(spec)
	from := w.pkg.files[x.Pos().Filename()]
	if err != nil || from == nil {
		return nil
	}
	return from.imports[info.ID]
}

// lookup returns the top-level declaration of a name in a package. s may be nil.
func (s *scope) lookup(name string) target {
	if s == nil || s.open {
		return target{}
	}
	return target{field: only(s.fields[name])}
}

// predeclared are the names of CUE's predeclared types.
var predeclared = map[string]bool{
	"_": true, "bool": true, "string": true, "bytes": true, "number": true, "int": true, "uint": true, "float": true,
	"int8": true, "int16": true, "int32": true, "int64": true, "int128": true,
	"uint8": true, "uint16": true, "uint32": true, "uint64": true, "uint128": true, "rune": true,
	"float32": true, "float64": true,
}

// identifier resolves a name by CUE's scopes: the enclosing structs, the package, the predeclared names. It
// follows neither aliases, lets and the variables of comprehensions, nor names in a struct outside the
// arguments, which other declarations may extend.
func (w *walker) identifier(x *ast.Ident) target {
	top := w.pkg.files[x.Pos().Filename()]
	key := identKey(x.Name)
	if x.Node == nil {
		if top != nil && len(top.fields[key]) > 0 {
			return top.lookup(key)
		}
		if predeclared[x.Name] {
			return target{basic: x.Name}
		}
		return target{}
	}
	switch s := x.Scope.(type) {
	case *ast.File:
		switch x.Node.(type) {
		case *ast.LetClause, *ast.Alias, *ast.Field, *ast.ImportSpec:
			return target{}
		}
		return top.lookup(key)
	case *ast.StructLit:
		switch x.Node.(type) {
		case *ast.LetClause, *ast.Alias, *ast.Field:
			return target{}
		}
		if w.walked[s] {
			f := only(fieldsOf(s)[key])
			return target{field: f, fillable: f != nil && !hiddenKey(key)}
		}
	}
	return target{}
}

func only(fields []*ast.Field) *ast.Field {
	if len(fields) != 1 {
		return nil
	}
	return fields[0]
}

// fieldsOf returns the fields of a literal by name, without those of comprehensions and embeddings in it.
func fieldsOf(lit *ast.StructLit) map[string][]*ast.Field {
	fields := make(map[string][]*ast.Field, len(lit.Elts))
	for _, e := range lit.Elts {
		if f, ok := e.(*ast.Field); ok {
			if key, ok := labelKey(f); ok {
				fields[key] = append(fields[key], f)
			}
		}
	}
	return fields
}

// plainStruct reports whether a literal declares only fields with literal names.
func plainStruct(lit *ast.StructLit) bool {
	for _, e := range lit.Elts {
		switch e := e.(type) {
		case *ast.Field:
			if _, _, err := ast.LabelName(e.Label); err != nil {
				return false
			}
		case *ast.CommentGroup, *ast.Attribute:
		default:
			return false
		}
	}
	return true
}

// labelKey returns the name that a field declares; the key of a hidden field or a definition, which no call
// can send, differs from that of a quoted name. It returns false if the name is computed or a pattern.
func labelKey(f *ast.Field) (string, bool) {
	name, isIdent, err := ast.LabelName(f.Label)
	if err != nil {
		return "", false
	}
	if isIdent {
		name = identKey(name)
	}
	return name, true
}

// identKey returns the key of the field that an identifier names.
func identKey(name string) string {
	if strings.HasPrefix(name, "_") || strings.HasPrefix(name, "#") {
		return "\x00" + name
	}
	return name
}

// hiddenKey reports whether a key is that of a hidden field or a definition.
func hiddenKey(key string) bool { return strings.HasPrefix(key, "\x00") }

// structLit returns the expression as a struct literal, or nil.
func structLit(n ast.Node) *ast.StructLit {
	switch x := n.(type) {
	case *ast.StructLit:
		return x
	case *ast.ParenExpr:
		return structLit(x.X)
	}
	return nil
}
