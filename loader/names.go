package loader

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/errors"
	"cuelang.org/go/cue/token"

	"github.com/catalogd/catalogd/internal/derive"
	"github.com/catalogd/catalogd/problem"
)

// A name that refers to nothing is explained by what its author most likely meant: a type that other languages
// call so, a package that is not imported, or a name that differs in a few letters.

// typeNames are CUE's types and what else is written as a bare name.
var typeNames = strings.Fields("string int number bool bytes float uint null true false len close and or error")

// foreignTypes are the names of types and values in other languages, in lower case, with what CUE writes.
var foreignTypes = map[string]string{
	"str": "string", "text": "string", "char": "string", "varchar": "string",
	"integer": "int", "long": "int", "short": "int",
	"num": "number", "double": "number", "decimal": "number", "numeric": "number",
	"boolean": "bool",
	"object":  "{...}", "dict": "{...}", "map": "{...}", "mapping": "{...}", "record": "{...}", "hash": "{...}",
	"array": "[...string] (with the type of the items)", "list": "[...string] (with the type of the items)",
	"sequence": "[...string] (with the type of the items)", "tuple": "[string, int] (with the types of the items)",
	"set": "[...string] & list.UniqueItems()", "enum": `"one" | "two"`, "literal": `"one" | "two"`,
	"any": "_", "unknown": "_", "mixed": "_",
	"none": "null", "nil": "null", "undefined": "null", "yes": "true", "on": "true", "no": "false", "off": "false",
	"date": `time.Format("2006-01-02")`, "datetime": "time.Time", "timestamp": "time.Time", "duration": "time.Duration",
	"url": "net.AbsURL", "uri": "net.URL", "regex": `=~"^...$"`, "pattern": `=~"^...$"`,
}

// undeclared explains a reference to nothing, which CUE reports at pos.
func (s *sources) undeclared(name string, pos token.Pos) string {
	said := fmt.Sprintf("nothing is called %q", name)
	i := slices.IndexFunc(s.all, func(f *source) bool { return pos.IsValid() && f.place == pos.Filename() })
	if i < 0 {
		return said + "; declare it, or fix the name"
	}
	src := s.all[i]
	f, err := parse(src.place, src.data, s.module.version)
	if err != nil {
		return said + "; declare it, or fix the name"
	}
	selected, scope := around(f, pos.Offset())
	for _, dir := range above(path.Dir(src.name)) {
		for _, other := range s.byDir[dir] {
			if other.pkg == src.pkg {
				scope = append(scope, other.labels...)
			}
		}
	}
	var imports []string
	for _, im := range src.imports {
		imports = append(imports, im.local)
	}
	if selected != "" {
		if near := qualifier(name, selected, imports); near != "" {
			return fmt.Sprintf("%s; did you mean %s.%s?", said, near, selected)
		}
		if path := standardPath(name); path != "" {
			return fmt.Sprintf("%s is not imported: %s%s", name, importLine(f, path), orNear(path, selected))
		}
		if near := qualifier(name, selected, standardQualifiers()); near != "" {
			path := standardPath(near)
			return fmt.Sprintf("%s; did you mean %s.%s? %s", said, near, nearest(selected, standardNames[path]), importLine(f, path))
		}
	} else if cue, ok := foreignTypes[strings.ToLower(name)]; ok {
		said = fmt.Sprintf("%s; CUE writes %s", said, cue)
		if local, _, ok := strings.Cut(cue, "."); ok && standardPath(local) != "" && !slices.Contains(imports, local) {
			said += ", and needs its package: " + importLine(f, standardPath(local))
		}
		return said
	}
	if near := alike(name, append(scope, typeNames...)); near != "" {
		return fmt.Sprintf("%s; did you mean %s?", said, near)
	}
	if path, declared := standardWith(name); path != "" {
		said = fmt.Sprintf("%s; did you mean %s.%s?", said, path, declared)
		if !slices.Contains(imports, path) {
			said += " " + importLine(f, path)
		}
		return said
	}
	if selected == "" && !strings.ContainsAny(name, "#_$") {
		return fmt.Sprintf("%s; a text is written %q, in quotes; else declare it, or fix the name", said, name)
	}
	return said + "; declare it, or fix the name"
}

// qualifier returns the package, of those called known, that is most likely meant by name.selected.
func qualifier(name, selected string, known []string) string {
	best, distance := "", 3
	for _, k := range known {
		if names := standardNames[standardPath(k)]; names != nil && nearest(selected, names) == "" {
			continue
		}
		if d := levenshtein.ComputeDistance(strings.ToLower(name), k); d < min(distance, len(name)) {
			best, distance = k, d
		}
	}
	return best
}

// alike returns the known name that differs from name in # or _ and case alone, or else the nearest one.
func alike(name string, known []string) string {
	bare := func(s string) string { return strings.TrimLeft(s, "#_") }
	for _, k := range known {
		if bare(name) != "" && strings.EqualFold(bare(k), bare(name)) {
			return k
		}
	}
	return nearest(name, known)
}

// importLine says where an import is written in a file.
func importLine(f *ast.File, path string) string {
	line := fmt.Sprintf("write import %q ", path)
	for _, d := range f.Decls {
		if _, ok := d.(*ast.ImportDecl); ok {
			return line + fmt.Sprintf("beside the imports of line %d", derive.Position(d.Pos()).Line)
		}
	}
	return line + fmt.Sprintf("below `package %s`", f.PackageName())
}

// orNear names what a standard package has in place of a misspelt name, as a further part of a message.
func orNear(path, name string) string {
	if declares(path, name) {
		return ""
	}
	return fmt.Sprintf("; it has no %s%s", name, meant(path, name))
}

// constrain are the names of a standard package that constrain an argument.
var constrain = map[string]string{
	"strings": "MinRunes, MaxRunes", "list": "MinItems, MaxItems, UniqueItems, Contains", "struct": "MinFields, MaxFields",
	"time": "Time, Duration, Format", "net": "IP, IPv4, IPv6, FQDN, URL, AbsURL", "math": "MultipleOf", "regexp": "Valid",
}

func meant(path, name string) string {
	if near := nearest(name, standardNames[path]); near != "" {
		return fmt.Sprintf("; did you mean %s.%s?", ast.ParseImportPath(path).Qualifier, near)
	}
	if names := constrain[path]; names != "" {
		return fmt.Sprintf("; to constrain an argument, %s has %s", path, names)
	}
	return "; https://pkg.go.dev/cuelang.org/go/pkg/" + path + " lists what it has"
}

// around returns what is selected of the name at the offset, and the names of the structs around it.
func around(f *ast.File, offset int) (selected string, scope []string) {
	within := func(n ast.Node) bool {
		return n.Pos().IsValid() && n.Pos().Offset() <= offset && offset < n.End().Offset()
	}
	ast.Walk(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && x.Pos().Offset() == offset {
				selected, _, _ = ast.LabelName(n.Sel)
			}
		case *ast.StructLit:
			if within(n) {
				scope = append(scope, labels(n.Elts)...)
			}
		case *ast.Comprehension:
			if !within(n) {
				return true
			}
			for _, c := range n.Clauses {
				switch c := c.(type) {
				case *ast.ForClause:
					for _, id := range []*ast.Ident{c.Key, c.Value} {
						if id != nil && id.Name != "_" {
							scope = append(scope, id.Name)
						}
					}
				case *ast.LetClause:
					scope = append(scope, c.Ident.Name)
				}
			}
		}
		return true
	}, nil)
	return selected, scope
}

// labels returns the names by which declarations can be referred to.
func labels(decls []ast.Decl) (names []string) {
	for _, d := range decls {
		switch d := d.(type) {
		case *ast.Field:
			if name, ident, err := ast.LabelName(d.Label); err == nil && ident {
				names = append(names, name)
			}
			if a, ok := d.Label.(*ast.Alias); ok {
				names = append(names, a.Ident.Name)
			}
		case *ast.LetClause:
			names = append(names, d.Ident.Name)
		}
	}
	return names
}

// selectors reports names that a standard package doesn't have, which CUE accepts in many places as a value
// that is never complete, and functions of a type instead of its package.
func (s *source) selectors(f *ast.File) {
	paths := map[string]string{}
	for _, i := range s.imports {
		if standardNames[i.path] != nil {
			paths[i.local] = i.path
		}
	}
	var names []string
	ast.Walk(f, func(n ast.Node) bool {
		if field, ok := n.(*ast.Field); ok {
			name, _, _ := ast.LabelName(field.Label)
			names = append(names, name)
		}
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		x, ok := sel.X.(*ast.Ident)
		if !ok {
			return true
		}
		name, _, err := ast.LabelName(sel.Sel)
		if err != nil {
			return true
		}
		message := ""
		switch path := paths[x.Name]; {
		case path != "" && !declares(path, name):
			message = fmt.Sprintf("there is no %s.%s%s", x.Name, name, meant(path, name))
		case path == "" && x.Node == nil && x.Name == "string" && !slices.Contains(s.labels, x.Name):
			message = "string is a type, and has nothing inside; its functions are in the package strings"
			if near := nearest(name, standardNames["strings"]); near != "" {
				message = fmt.Sprintf("string is a type; did you mean strings.%s?", near)
				if paths["strings"] == "" {
					message += " " + importLine(f, "strings")
				}
			}
		}
		if message != "" {
			s.undefined[x.Pos().Offset()] = true
			s.problems.Errorf(problem.CUEReference, derive.Position(x.Pos()), printable(strings.Join(names, ".")), "%s", message)
		}
		return true
	}, func(n ast.Node) {
		if _, ok := n.(*ast.Field); ok {
			names = names[:len(names)-1]
		}
	})
}

// referenceTo returns the name of a reference to nothing that CUE reports.
func referenceTo(e errors.Error) (name string, ok bool) {
	quoted, ok := strings.CutPrefix(text(e), "reference ")
	if !ok {
		return "", false
	}
	name, ok = strings.CutSuffix(quoted, " not found")
	return strings.Trim(name, `"`), ok
}
