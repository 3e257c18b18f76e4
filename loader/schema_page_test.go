package loader_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/format"
	"cuelang.org/go/cue/parser"
	"cuelang.org/go/cue/token"
	"github.com/google/go-cmp/cmp"
)

const schemaHead = `# Schema

Every field of a catalog, made from [schema.cue](../schema.cue), which ` + "`catalogd init`" + ` writes beside the catalog and editors read
([editors.md](editors.md)). A field with ` + "`!`" + ` is required, one with ` + "`?`" + ` may be left out, and of a value with alternatives
the one after ` + "`*`" + ` is the default. What is not here is refused (` + "`unknown_field`" + `). The data files of the policy are at the end, made
from the JSON Schemas in [schemas/](../schemas); [policy.md](policy.md) explains them.
`

// TestSchemaPage holds docs/schema.md to schema.cue; -update writes it.
func TestSchemaPage(t *testing.T) {
	t.Parallel()
	const page = "../docs/schema.md"
	want := schemaPage(t)
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("docs/schema.md is not what schema.cue says; run go test ./loader -update (-want +got):\n%s", diff)
	}
}

func schemaPage(t *testing.T) string {
	t.Helper()
	file, err := parser.ParseFile("../schema.cue", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString(schemaHead)
	b.WriteString("\n## A file\n\n| field | value | |\n|---|---|---|\n")
	defined := 0
	for _, decl := range file.Decls {
		field, ok := decl.(*ast.Field)
		if !ok {
			continue
		}
		name := expression(t, field.Label)
		if !strings.HasPrefix(name, "#") {
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", name, code(expression(t, field.Value)), comment(field))
			continue
		}
		defined++
		fmt.Fprintf(&b, "\n## %s\n\n%s\n", strings.TrimPrefix(name, "#"), comment(field))
		if fields, ok := field.Value.(*ast.StructLit); ok {
			b.WriteString("\n| field | value | |\n|---|---|---|\n")
			rows(t, &b, "", fields)
		} else {
			fmt.Fprintf(&b, "\n    %s\n", expression(t, field.Value))
		}
	}
	if defined < 20 {
		t.Fatalf("%d definitions were found, want at least 20", defined)
	}
	for _, name := range []string{"access", "trust", "adopt"} {
		data, err := os.ReadFile("../schemas/" + name + ".json")
		if err != nil {
			t.Fatal(err)
		}
		var schema dataSchema
		if err := json.Unmarshal(data, &schema); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n| field | value | |\n|---|---|---|\n", schema.Title, cell(schema.Description))
		schema.rows(&b, "", "")
	}
	return b.String()
}

// dataSchema is what the JSON Schemas of the data files are made of.
type dataSchema struct {
	Title, Description   string
	Type                 any
	Enum                 []any
	Items                *dataSchema
	Properties           map[string]*dataSchema
	AdditionalProperties *entry
	If, Then, Else       *dataSchema
	Required             []string
}

// entry is a schema of every other member, or false.
type entry struct{ *dataSchema }

func (e *entry) UnmarshalJSON(data []byte) error {
	if string(data) == "false" {
		return nil
	}
	return json.Unmarshal(data, &e.dataSchema)
}

// rows writes a row for each member of an object, and for those of the objects in it. note says when there is one.
func (s *dataSchema) rows(b *strings.Builder, prefix, note string) {
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		of := s.Properties[name]
		fmt.Fprintf(b, "| `%s%s` | %s | %s%s |\n", prefix, name, code(of.value()), note, cell(of.Description))
		of.members(b, prefix+name+": ", "")
	}
}

func (s *dataSchema) members(b *strings.Builder, prefix, note string) {
	if s.Items != nil {
		s.Items.members(b, prefix+"- ", "")
	}
	if each := s.AdditionalProperties; each != nil && each.dataSchema != nil {
		each.members(b, prefix+"NAME: ", "")
	}
	s.rows(b, prefix, note)
	if s.If != nil {
		s.Then.members(b, prefix, "With `"+strings.Join(s.If.Required, "`, `")+"`: ")
		s.Else.members(b, prefix, "Else: ")
	}
}

// value says what a member holds.
func (s *dataSchema) value() string {
	switch {
	case s.Items != nil:
		return "[" + s.Items.value() + "]"
	case len(s.Enum) > 0:
		return strings.Trim(strings.ReplaceAll(fmt.Sprint(s.Enum), " ", " | "), "[]")
	case s.Type != nil:
		return strings.Trim(strings.ReplaceAll(fmt.Sprint(s.Type), " ", " | "), "[]")
	}
	return "any"
}

// rows writes a row for each field, and for those of a struct that stands in it.
func rows(t *testing.T, b *strings.Builder, prefix string, fields *ast.StructLit) {
	t.Helper()
	for _, decl := range fields.Elts {
		field, ok := decl.(*ast.Field)
		if !ok {
			continue
		}
		name := prefix + expression(t, field.Label)
		switch field.Constraint {
		case token.OPTION:
			name += "?"
		case token.NOT:
			name += "!"
		}
		value := field.Value
		if inner, ok := value.(*ast.StructLit); ok && len(inner.Elts) == 1 { // [string]: {...}
			if each, ok := inner.Elts[0].(*ast.Field); ok {
				if of, ok := each.Value.(*ast.StructLit); ok {
					fmt.Fprintf(b, "| `%s` | `[string]: {...}` | %s |\n", name, comment(field))
					rows(t, b, strings.TrimRight(name, "?!")+": NAME: ", of)
					continue
				}
			}
		}
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", name, code(expression(t, value)), comment(field))
	}
}

func expression(t *testing.T, n ast.Node) string {
	t.Helper()
	text, err := format.Node(n)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(strings.Fields(string(text)), " ")
}

// code writes a code span in a table.
func code(text string) string { return "`" + strings.ReplaceAll(text, "|", `\|`) + "`" }

// comment returns the comment above a field, in one line.
func comment(field *ast.Field) string {
	var words []string
	for _, group := range ast.Comments(field) {
		if group.Doc {
			words = append(words, strings.Fields(group.Text())...)
		}
	}
	return cell(strings.Join(words, " "))
}

// cell writes text in a table: what is no code span stands for itself.
func cell(text string) string {
	parts := strings.Split(strings.ReplaceAll(text, "|", `\|`), "`")
	for i := 0; i < len(parts); i += 2 {
		parts[i] = strings.ReplaceAll(parts[i], "*", `\*`)
	}
	return strings.Join(parts, "`")
}
