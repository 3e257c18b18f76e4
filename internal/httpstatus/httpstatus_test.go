package httpstatus_test

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/internal/httpstatus"
	"github.com/catalogd/catalogd/registry"
)

// The table of docs/bindings.md says of each status what the code says.
func TestDocumented(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/bindings.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[int]registry.Outcome{}
	for _, row := range regexp.MustCompile("(?m)^\\| ([0-9][0-9, to]*) \\| `([a-z]+)` \\|").FindAllStringSubmatch(string(text), -1) {
		for part := range strings.SplitSeq(row[1], ", ") {
			first, last, isRange := strings.Cut(part, " to ")
			if !isRange {
				last = first
			}
			from, err := strconv.Atoi(first)
			if err != nil {
				t.Fatalf("row %q: %v", row[0], err)
			}
			to, err := strconv.Atoi(last)
			if err != nil {
				t.Fatalf("row %q: %v", row[0], err)
			}
			for status := from; status <= to; status++ {
				if _, twice := documented[status]; twice {
					t.Errorf("%d is documented twice", status)
				}
				documented[status] = registry.Outcome(row[2])
			}
		}
	}
	for status := range 1000 {
		want, ok := documented[status]
		if !ok {
			want = registry.OutcomeUnclear
		}
		if got := httpstatus.Of(status); got != want {
			t.Errorf("%d: the code says %s, the documentation %s", status, got, want)
		}
	}
	if len(documented) < 40 {
		t.Errorf("%d statuses are documented", len(documented))
	}
}
