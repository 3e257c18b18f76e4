package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestReasons holds docs/reasons.md to the codes of the source, in their order: each has a paragraph and a remedy, and the page has
// no other.
func TestReasons(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("docs/reasons.md")
	if err != nil {
		t.Fatal(err)
	}
	_, sections, _ := strings.Cut(string(page), "\n## ")
	chapters := strings.Split(sections, "\n## ")
	if len(chapters) != 3 {
		t.Fatalf("%d chapters, want those of decisions, calls and attempts", len(chapters))
	}
	for i, list := range []struct{ title, file, kind string }{
		{"Decisions", "decision/decision.go", "ReasonCode"},
		{"Calls", "registry/error.go", "ErrorCode"},
		{"Attempts", "decision/attempt.go", "AttemptCode"},
	} {
		parts := strings.Split(chapters[i], "\n### ")
		if title, _, _ := strings.Cut(parts[0], "\n"); title != list.title {
			t.Errorf("chapter %q, want %q", title, list.title)
		}
		var told []string
		for _, part := range parts[1:] {
			heading, text, _ := strings.Cut(part, "\n")
			told = append(told, strings.Trim(heading, "`"))
			paragraphs := strings.Split(strings.TrimSpace(text), "\n\n")
			if len(paragraphs) != 2 || len(paragraphs[0]) < 20 || !strings.HasPrefix(paragraphs[1], "**Remedy:** ") {
				t.Errorf("%s: %s needs one paragraph and one that begins with **Remedy:**", list.title, heading)
			}
		}
		if codes := constants(t, list.file, list.kind); len(codes) == 0 || !slices.Equal(told, codes) {
			t.Errorf("the page has %q, and %s %q", told, list.file, codes)
		}
	}
}

// constants are the values of the constants of a type of strings in a file, in their order.
func constants(t *testing.T, file, kind string) (values []string) {
	t.Helper()
	source, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, decl := range source.Decls {
		group, ok := decl.(*ast.GenDecl)
		if !ok || group.Tok != token.CONST {
			continue
		}
		for _, spec := range group.Specs {
			constant := spec.(*ast.ValueSpec)
			if named, ok := constant.Type.(*ast.Ident); !ok || named.Name != kind {
				continue
			}
			value, err := strconv.Unquote(constant.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			values = append(values, value)
		}
	}
	return values
}
