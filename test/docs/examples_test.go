package docs

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/catalogd/catalogd/test/internal/harness"
)

// TestAgentExamples does what the READMEs of the agents show, with a daemon on a free port in place of `make run`, and
// has every other way to reach the tools print what the first transcript shows.
func TestAgentExamples(t *testing.T) {
	usePrograms(t)
	cache, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOCACHE", strings.TrimSpace(string(cache)))
	t.Setenv("XDG_CACHE_HOME", t.TempDir()) // for what the agents keep
	t.Setenv("GOFLAGS", "-trimpath")        // as the programs of other tests are built
	t.Setenv("CGO_ENABLED", "0")
	harness.Root(t) // the npm packages are installed
	port := harness.Listening(t, "catalogd serve", func(port string) *exec.Cmd {
		return exec.Command("catalogd", "serve", ".", "--addr", "127.0.0.1:"+port)
	})
	server := "-server http://127.0.0.1:" + port
	for _, example := range []struct {
		page, command, flags string
		ways                 []string
	}{
		{"examples/agent-go/README.md", "go run ./examples/agent-go", " " + server, []string{" -tools mcp", " -tools library"}},
		{"examples/agent-ts/README.md", "npm --prefix examples/agent-ts -s start", " -- -" + server, []string{" --tools mcp"}},
	} {
		ran := 0
		for _, b := range harness.Blocks(t, example.page) {
			if b.Kind == "sh" && b.Text == "make run\n" {
				continue
			}
			if b.Kind != "console" || !strings.HasPrefix(b.Text, "$ "+example.command) {
				t.Errorf("%s:%d: no test runs this", example.page, b.Line)
				continue
			}
			command, want, _ := strings.Cut(strings.TrimPrefix(b.Text, "$ "+example.command), "\n")
			ways := []string{""}
			if ran++; ran == 1 {
				ways = append(ways, example.ways...)
			}
			for _, way := range ways {
				// One -- is enough for npm.
				line := example.command + example.flags + way + strings.Replace(command, " -- ", " ", 1)
				out, _ := exec.Command("bash", "-c", line).CombinedOutput() // stopped, an agent fails
				if diff := cmp.Diff(want, string(out)); diff != "" {
					t.Errorf("%s:%d: %s (-README +got):\n%s", example.page, b.Line, line, diff)
				}
			}
		}
		if ran != 2 {
			t.Errorf("%s: %d transcripts ran, want 2", example.page, ran)
		}
	}
}
