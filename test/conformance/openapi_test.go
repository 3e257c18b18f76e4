package conformance

import (
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/catalogd/catalogd"
	"github.com/catalogd/catalogd/test/internal/harness"
)

// TestOpenAPI lints what a daemon serves at /openapi.json.
func TestOpenAPI(t *testing.T) {
	t.Parallel()
	d := harness.Serve(t, catalogd.Config{Dir: harness.Starter(t)})
	res, err := http.Get(d.URL + "/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("/openapi.json: %d %s %v", res.StatusCode, raw, err)
	}
	lint := func(text string) string {
		file := filepath.Join(t.TempDir(), "openapi.json")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		script := filepath.Join(harness.Root(t), "testdata/openapi/lint.mjs")
		out, err := exec.CommandContext(t.Context(), "node", script, file).CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return string(out)
	}
	if out := lint(string(raw)); out != "" {
		t.Errorf("as served, got\n%s\nwant nothing", out)
	}
	out := lint(strings.NewReplacer(
		`"description":"It does: ok."`, `"x":""`, `"operationId":"readyz"`, `"operationId":"healthz"`,
		`"#/components/schemas/IntentPage"`, `"#/components/schemas/Nothing"`,
	).Replace(string(raw)))
	for _, rule := range []string{"struct", "operation-operationId-unique", "no-unresolved-refs"} {
		if !strings.Contains(out, " "+rule+" ") {
			t.Errorf("with mistakes, got\n%s\nwant %s", out, rule)
		}
	}
}
