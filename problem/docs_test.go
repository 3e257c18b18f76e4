package problem_test

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/catalogd/catalogd/problem"
)

var update = flag.Bool("update", false, "write docs/problems.md")

// TestDocs holds the list closed: every constant of type Code is documented once, and nothing else is.
func TestDocs(t *testing.T) {
	f, err := parser.ParseFile(token.NewFileSet(), "codes.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	declared := map[problem.Code]bool{}
	ast.Inspect(f, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if typ, ok := spec.Type.(*ast.Ident); ok && typ.Name == "Code" {
			for _, v := range spec.Values {
				if code, err := strconv.Unquote(v.(*ast.BasicLit).Value); err == nil {
					declared[problem.Code(code)] = true
				}
			}
		}
		return true
	})
	if len(declared) < 50 {
		t.Fatalf("only %d codes were found in codes.go", len(declared))
	}
	documented := map[problem.Code]bool{}
	for _, d := range problem.Docs() {
		switch {
		case documented[d.Code]:
			t.Errorf("%s is documented twice", d.Code)
		case !declared[d.Code]:
			t.Errorf("%s is documented and is no code", d.Code)
		case d.Meaning == "" || d.Remedy == "":
			t.Errorf("%s has no meaning or no remedy", d.Code)
		}
		documented[d.Code] = true
	}
	for code := range declared {
		if !documented[code] {
			t.Errorf("%s is not documented: add it to docs.go", code)
		}
	}
}

func TestProblemsPage(t *testing.T) {
	const page = "../docs/problems.md"
	if *update {
		if err := os.WriteFile(page, []byte(problem.Markdown()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(problem.Markdown(), string(data)); diff != "" {
		t.Errorf("docs/problems.md is not what the table says; run go test ./problem -update (-want +got):\n%s", diff)
	}
}
