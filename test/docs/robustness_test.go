package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

// listedRows are the rows of the project's lists of bad inputs (A, B, C, D, E, F) and threats (T) that docs/robustness.md answers.
const listedRows = `A1 A2 A3 A4 A5 A6 A7 A8 A10 A11 A12 A13 A14 A15 A16 A19 A20 A21 A22 A23 A24 A25 A26 A27 A28 A29 A30 A31 A32 A33
A34 A35 A37 A38 A39 A40 A41 A42 A43 A45 A47 A48 A49 A50
B1 B2 B3 B4 B5 B6 B7 B8 B10 B11 B12 B14 B15 B16 B17 B18 B19 B21 B23 B24
C1 C2 C3 C5 C6 C7 C9 C10 C11 C12 C14 C16 C17 C18 C19 C20
D1 D2 D3 D4 D6 D7 D8 D10 D11 D13 D14 D15 D16 D17 D18 D19 D21 D22
E1 E2 E4 E5 E6 E7 E8 E10 E11 E12 E13 E14 E15 E17 E18 E19 E20 E22
F1 F2 F4 F6 F7 F9 F10 F11 F13 F14
T1 T2 T3 T4 T5 T6 T7 T8 T9 T10 T11 T12 T13 T14 T15 T16 T17 T18 T19 T20 T22 T23 T24 T25`

// unreached are the rows about what this version doesn't have.
var unreached = []string{"A49"}

// TestRobustnessPage holds docs/robustness.md to the lists, and to the tests that exist: each row is there once, in order,
// and each test that it names is found by its number.
func TestRobustnessPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("docs/robustness.md")
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	packages := map[string]testNames{}
	named := regexp.MustCompile("`(\\.[a-z/]*) (Test[A-Za-z]+)/([A-Z][0-9]+)`")
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		id := strings.TrimSpace(cells[0])
		if !regexp.MustCompile(`^[A-Z][0-9]+$`).MatchString(id) {
			continue
		}
		rows = append(rows, id)
		if len(cells) != 3 || len(cells[1]) < 10 {
			t.Errorf("%s says nothing: %s", id, line)
			continue
		}
		tests := named.FindAllStringSubmatch(cells[2], -1)
		if len(tests) == 0 && !slices.Contains(unreached, id) {
			t.Errorf("%s names no test", id)
		}
		for _, m := range tests {
			dir, function := m[1], m[2]
			if m[3] != id {
				t.Errorf("%s names a test of %s", id, m[3])
			}
			if _, ok := packages[dir]; !ok {
				packages[dir] = namesIn(t, dir)
			}
			if !packages[dir].functions[function] {
				t.Errorf("%s: %s has no %s", id, dir, function)
			}
			if !packages[dir].rows[id] {
				t.Errorf("%s: no test in %s has the number", id, dir)
			}
		}
	}
	if want := strings.Fields(listedRows); !slices.Equal(rows, want) {
		t.Errorf("the page has\n%v\nwant\n%v", rows, want)
	}
}

// testNames is what a package's tests are called: functions, and rows, which begin a string or name a case.
type testNames struct{ functions, rows map[string]bool }

func namesIn(t *testing.T, dir string) testNames {
	t.Helper()
	found := testNames{map[string]bool{}, map[string]bool{}}
	begins := regexp.MustCompile(`^([A-Z][0-9]+)(/|$)`)
	note := func(text string) {
		if m := begins.FindStringSubmatch(text); m != nil {
			found.rows[m[1]] = true
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				found.functions[n.Name.Name] = true
			case *ast.BasicLit:
				if text, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING {
					note(text)
				}
			}
			return true
		})
	}
	// The cases of these packages are files: by the beginning of their comments, and by their names.
	for _, cases := range []struct{ dir, pattern string }{{"./loader", "testdata/load/*.txtar"}, {"./decision", "testdata/policy/*.txtar"}} {
		if cases.dir != dir {
			continue
		}
		names, err := filepath.Glob(cases.pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			archive, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			row, _, _ := strings.Cut(string(archive.Comment), ":")
			note(row)
			row, _, _ = strings.Cut(strings.TrimSuffix(filepath.Base(name), ".txtar"), "-")
			note(row)
		}
	}
	return found
}
