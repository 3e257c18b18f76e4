package docs

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/test/internal/harness"
)

// TestDocsAgents does what docs/agents.md shows, with the starter catalog, here and
// through a daemon on a free port.
func TestDocsAgents(t *testing.T) {
	usePrograms(t)
	r := reader{t: t, dir: harness.Starter(t)}
	port := harness.Listening(t, "catalogd serve", func(port string) *exec.Cmd {
		return exec.Command("catalogd", "serve", r.dir, "--addr", "127.0.0.1:"+port)
	})
	ran := 0
	for _, b := range harness.Blocks(t, "docs/agents.md") {
		at := "docs/agents.md:" + strings.SplitN(b.Text, "\n", 2)[0]
		if b.Kind != "console" {
			t.Errorf("%s: no test runs blocks of kind %q", at, b.Kind)
			continue
		}
		ran++
		r.console(at, strings.ReplaceAll(b.Text, defaultAddr, "127.0.0.1:"+port))
	}
	if ran < 8 {
		t.Errorf("%d transcripts ran, want 8 at least", ran)
	}
}
