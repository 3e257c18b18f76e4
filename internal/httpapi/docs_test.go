package httpapi_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/catalogd/catalogd/internal/httpapi"
)

var update = flag.Bool("update", false, "write the tables of docs/http-api.md and docs/metrics.md, and members.json")

// TestOperationsPage holds the table of docs/http-api.md to the table of routes.
func TestOperationsPage(t *testing.T) {
	t.Parallel()
	var rows strings.Builder
	for _, row := range httpapi.Described() {
		fmt.Fprintf(&rows, "| `%s %s` | %s | %s |\n", row[0], row[1], row[2], row[3])
	}
	checkTable(t, "../../docs/http-api.md", "| operation | does | who |\n|---|---|---|\n", rows.String())
}

// checkTable compares the rows below a table's head with the wanted ones, which -update writes.
func checkTable(t *testing.T, page, head, rows string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, after, ok := strings.Cut(string(text), head)
	if !ok {
		t.Fatalf("%s has no table with the head\n%s", page, head)
	}
	got, rest, _ := strings.Cut(after, "\n\n")
	if diff := cmp.Diff(rows, got+"\n"); diff != "" && !*update {
		t.Errorf("%s differs from the code; run go test ./internal/httpapi -update (-want +got):\n%s", page, diff)
	} else if diff != "" {
		if got == "" || strings.HasPrefix(after, "\n") {
			rest = strings.TrimPrefix(after, "\n")
		}
		if err := os.WriteFile(page, []byte(before+head+rows+"\n"+rest), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
