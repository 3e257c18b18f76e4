package docs

import (
	"strings"
	"testing"

	"github.com/catalogd/catalogd/test/internal/harness"
)

// TestDocsAgents does what docs/agents.md shows, with the starter catalog.
func TestDocsAgents(t *testing.T) {
	usePrograms(t)
	r := reader{t: t, dir: harness.Starter(t)}
	ran := 0
	for _, b := range harness.Blocks(t, "docs/agents.md") {
		at := "docs/agents.md:" + strings.SplitN(b.Text, "\n", 2)[0]
		if b.Kind != "console" {
			t.Errorf("%s: no test runs blocks of kind %q", at, b.Kind)
			continue
		}
		ran++
		r.console(at, b.Text)
	}
	if ran < 6 {
		t.Errorf("%d transcripts ran, want 6 at least", ran)
	}
}
