package derive

import (
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/ast/astutil"
	"cuelang.org/go/cue/build"
)

// Package is the syntax of one CUE package and of the packages that it imports: what the names in its constraints refer
// to. It is for one goroutine at a time.
type Package struct {
	root   cue.Value
	files  map[string]*scope // by the name of the file
	proven *Proven
	// secrets: some file of the package, or of one that it imports, marks a field as a secret.
	secrets bool
}

// scope holds the declarations at the top level of one package.
type scope struct {
	fields map[string][]*ast.Field
	// others are the declarations at the top level that are no fields.
	others []ast.Decl
	// open: some file has more than fields at its top level, so a name may mean more than its fields say.
	open    bool
	imports map[string]*scope // by import path
}

// NewPackage reads the syntax that root was built from: the value of a package, as cue.Context.BuildInstance returns it.
// proven may be shared by packages; nil is one of the package's own.
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

// regularOnly reports whether all that a comprehension declares are regular fields, computed names included: what tools
// and servers are made by, and never a definition or a hidden field, which are all that constraints refer to.
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

// target is what a name refers to. At most one of its fields is set; none where the walk does not follow it.
type target struct {
	basic   string     // a predeclared type: string
	builtin string     // a name in a package of CUE's: strings.MinRunes
	field   *ast.Field // a declaration, the only one of its name
	// fillable: field is an argument that a call may give.
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

// importOf is the import that an expression names, or nil.
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

// importedScope is the package of the catalog that a file imports; nil for one of CUE's.
func (w *walker) importedScope(x ast.Node, spec *ast.ImportSpec) *scope {
	info, err := astutil.ParseImportSpec(spec)
	from := w.pkg.files[x.Pos().Filename()]
	if err != nil || from == nil {
		return nil
	}
	return from.imports[info.ID]
}

// lookup finds what is declared under a name at the top level of a package. s may be nil.
func (s *scope) lookup(name string) target {
	if s == nil || s.open {
		return target{}
	}
	return target{field: only(s.fields[name])}
}

// predeclared are the types that CUE has names for.
var predeclared = map[string]bool{
	"_": true, "bool": true, "string": true, "bytes": true, "number": true, "int": true, "uint": true, "float": true,
	"int8": true, "int16": true, "int32": true, "int64": true, "int128": true,
	"uint8": true, "uint16": true, "uint32": true, "uint64": true, "uint128": true, "rune": true,
	"float32": true, "float64": true,
}

// identifier resolves a name by CUE's scopes: the structs around it, the package, the predeclared names. An alias, a let
// and the variable of a comprehension are not followed, nor is a name in a struct outside of the arguments, which other
// declarations may add to.
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

// fieldsOf are the fields of a literal by name, not those of comprehensions and embeddings in it.
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

// plainStruct reports whether all that a literal declares are fields with written names.
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

// labelKey is the name that a field declares; that of a hidden field or a definition, which no call can give, is told
// from a quoted one. It is false where the name is computed or a pattern.
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

// identKey is the key of the field that an identifier names.
func identKey(name string) string {
	if strings.HasPrefix(name, "_") || strings.HasPrefix(name, "#") {
		return "\x00" + name
	}
	return name
}

// hiddenKey reports whether a key is that of a hidden field or a definition.
func hiddenKey(key string) bool { return strings.HasPrefix(key, "\x00") }

// structLit is the struct literal that an expression is, or nil.
func structLit(n ast.Node) *ast.StructLit {
	switch x := n.(type) {
	case *ast.StructLit:
		return x
	case *ast.ParenExpr:
		return structLit(x.X)
	}
	return nil
}
