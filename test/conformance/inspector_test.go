package conformance

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/catalogd/catalogd/test/internal/harness"
)

// inspector is MCP Inspector's command; its command mode makes one request and prints the answer.
const inspector = "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js"

// TestInspector has MCP Inspector list and call declared tools in both eras.
func TestInspector(t *testing.T) {
	t.Parallel()
	node := newSuite(t).node
	url := declaredCatalog(t).URL + "/branches/default/mcp"
	run := func(t *testing.T, args ...string) (said []byte, code int) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 2*harness.Timeout)
		defer cancel()
		args = append([]string{filepath.Join(harness.Root(t), inspector), "--cli", url, "--transport", "http", "--format", "json"}, args...)
		cmd := exec.CommandContext(ctx, node, args...)
		cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
		var stderr strings.Builder
		cmd.Stderr = &stderr
		said, err := cmd.Output()
		if cmd.ProcessState == nil || len(said) == 0 {
			t.Fatalf("%v: %v\n%s", args, err, stderr.String())
		}
		return said, cmd.ProcessState.ExitCode()
	}
	for era, flags := range map[string][]string{sessionEra: {"--protocol-era", "legacy"}, harness.Modern: {"--protocol-era", "modern"}} {
		t.Run(era, func(t *testing.T) {
			t.Parallel()
			var list struct {
				Result struct{ Tools []struct{ Name string } }
			}
			said, code := run(t, append(flags, "--method", "tools/list")...)
			if err := json.Unmarshal(said, &list); err != nil || code != 0 {
				t.Fatalf("%d %v: %s", code, err, said)
			}
			var names []string
			for _, tool := range list.Result.Tools {
				names = append(names, tool.Name)
			}
			const want = "json_schema_2020_12_tool test_audio_content test_embedded_resource test_error_handling test_headers test_image_content " +
				"test_multiple_content_types test_simple_text"
			if diff := cmp.Diff(want, sorted(names)); diff != "" {
				t.Error(diff)
			}
			var call struct {
				Result struct{ Content []struct{ Type string } }
			}
			said, code = run(t, append(flags, "--method", "tools/call", "--tool-name", "test_multiple_content_types")...)
			if err := json.Unmarshal(said, &call); err != nil || code != 0 {
				t.Fatalf("%d %v: %s", code, err, said)
			}
			var types []string
			for _, block := range call.Result.Content {
				types = append(types, block.Type)
			}
			if diff := cmp.Diff([]string{"text", "image", "resource"}, types); diff != "" {
				t.Error(diff)
			}
			// It ends with 5 where the tool answers with isError.
			said, code = run(t, append(flags, "--method", "tools/call", "--tool-name", "test_error_handling")...)
			if code != 5 || !strings.Contains(string(said), "This tool intentionally returns an error for testing") {
				t.Errorf("%d: %s", code, said)
			}
		})
	}
}

// The versions of clients that docs/mcp.md names are those that are tested.
func TestDocsClients(t *testing.T) {
	t.Parallel()
	var npm struct{ DevDependencies map[string]string }
	if err := json.Unmarshal([]byte(harness.ReadFile(t, "package.json")), &npm); err != nil {
		t.Fatal(err)
	}
	mod := harness.ReadFile(t, "go.mod")
	rows := regexp.MustCompile("(?m)^\\| `([a-z@./0-9-]+)`[^|]* \\| (v?[0-9]+[.][0-9.]+) \\|").FindAllStringSubmatch(harness.ReadFile(t, "docs/mcp.md"), -1)
	if len(rows) != 5 {
		t.Errorf("docs/mcp.md has %d clients", len(rows))
	}
	for _, row := range rows {
		if npm.DevDependencies[row[1]] != row[2] && !strings.Contains(mod, row[1]+" "+row[2]+"\n") {
			t.Errorf("docs/mcp.md says %s of %s", row[2], row[1])
		}
	}
}
