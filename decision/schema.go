package decision

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strings"

	"github.com/catalogd/catalogd/decision/internal/shape"
)

// The inputs' Go types, as they are written: what their comments say is what the schemas say.
var (
	//go:embed input.go
	inputSource string
	//go:embed trust/trust.go
	targetSource string
)

// Schema is the JSON Schema (draft 2020-12) of the point's input, with the descriptions of the Go types; nil
// for a point that this version doesn't ask.
func Schema(point Point) json.RawMessage {
	spec, ok := specOf(point)
	if !ok {
		return nil
	}
	docs := comments(inputSource, targetSource)
	schema := spec.input.Schema(docs.of)
	schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	schema["title"] = fmt.Sprintf("input of data.catalogd.%s", point)
	schema["description"] = docs[spec.input.Name]
	b, err := json.MarshalIndent(schema, "", "  ")
	if err != nil {
		panic(fmt.Sprintf("decision: a schema is plain data: %v", err))
	}
	return b
}

// descriptions are the comments on Go types (Tool) and their fields (Tool.Effect), a line each.
type descriptions map[string]string

// of returns the description of a field, or else of its type.
func (d descriptions) of(s *shape.Shape, f shape.Field) string {
	if text := d[s.Name+"."+f.GoName]; text != "" {
		return text
	}
	inner := f.Shape
	for inner.Elem != nil {
		inner = inner.Elem
	}
	return d[inner.Name]
}

// comments reads the comments of Go files. It panics on what is no Go: the files are this package's own.
func comments(sources ...string) descriptions {
	d := descriptions{}
	for _, source := range sources {
		file, err := parser.ParseFile(token.NewFileSet(), "", source, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			panic(fmt.Sprintf("decision: its own source is not valid Go: %v", err))
		}
		for _, decl := range file.Decls {
			general, ok := decl.(*ast.GenDecl)
			if !ok || general.Tok != token.TYPE {
				continue
			}
			for _, spec := range general.Specs {
				typ := spec.(*ast.TypeSpec)
				d.add(typ.Name.Name, general.Doc)
				if fields, ok := typ.Type.(*ast.StructType); ok {
					for _, f := range fields.Fields.List {
						d.add(typ.Name.Name+"."+f.Names[0].Name, f.Doc)
					}
				}
			}
		}
	}
	return d
}

func (d descriptions) add(name string, doc *ast.CommentGroup) {
	if text := strings.Join(strings.Fields(doc.Text()), " "); text != "" {
		d[name] = text
	}
}
