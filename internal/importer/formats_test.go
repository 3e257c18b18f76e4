package importer_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/catalogd/catalogd/internal/clients"
	"github.com/catalogd/catalogd/internal/importer"
)

// formats has a file of each client in the form that its documentation (clients.Client.Docs) describes, with
// the trait by which it is recognized; empty means that the client is named, since the form is another's too.
var formats = []struct{ file, client, trait string }{
	{"claude-code.mcp.json", "claude-code", "type"},
	{"claude-code.user.json", "claude-code", "projects"},
	{"claude-code.plugin.mcp.json", "claude-code", "servers at the top"},
	{"claude_desktop_config.json", "claude-desktop", "globalShortcut or preferences"},
	{"cline_mcp_settings.json", "cline", "autoApprove or alwaysAllow"},
	{"continue.config.json", "continue", "experimental.modelContextProtocolServers"},
	{"continue.config.yaml", "continue", "mcpServers, a list"},
	{"cursor.mcp.json", "cursor", "envFile"},
	{"gemini.settings.json", "gemini-cli", "httpUrl"},
	{"gemini.windows.settings.json", "gemini-cli", "trust, includeTools or excludeTools"},
	{"jetbrains.mcp.json", "jetbrains", ""},
	{"librechat.yaml", "librechat", "mcpServers in YAML"},
	{"opencode.json", "opencode", "mcp"},
	{"vscode.mcp.json", "vscode", "servers"},
	{"windsurf.mcp_config.json", "windsurf", "serverUrl or disabledTools"},
	{"zed.settings.json", "zed", "context_servers"},
}

// TestFormats compares what each file becomes with its golden file, which CATALOGD_UPDATE=1 writes, and holds
// that what is written is what cue fmt leaves alone, and that no secret of the file is in it or in a note.
func TestFormats(t *testing.T) {
	without := map[string]bool{}
	for _, c := range clients.All() {
		without[c.Name] = true
	}
	planted := 0
	for _, f := range formats {
		t.Run(f.file, func(t *testing.T) {
			data, err := os.ReadFile(filepath.Join("testdata", f.file))
			if err != nil {
				t.Fatal(err)
			}
			planted += strings.Count(string(data), "PLANTED")
			delete(without, f.client)
			cfg := importer.Config{File: f.file}
			if f.trait == "" {
				cfg.Client = f.client
			}
			got, err := importer.Read(data, cfg)
			if err != nil {
				t.Fatal(err)
			}
			if got.Client != f.client || got.Trait != f.trait {
				t.Errorf("got client %q by %q, want %q by %q", got.Client, got.Trait, f.client, f.trait)
			}
			checkWritten(t, got, "PLANTED")
			var b strings.Builder
			for _, n := range got.Refused {
				fmt.Fprintf(&b, "refused: %s\n", n)
			}
			for _, n := range got.Notes {
				fmt.Fprintf(&b, "%s\n", n)
			}
			b.WriteString("\n" + string(got.CUE))
			golden := filepath.Join("testdata", "golden", f.file+".txt")
			if os.Getenv("CATALOGD_UPDATE") != "" {
				if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), b.String()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", golden, diff)
			}
		})
	}
	if planted < 12 {
		t.Errorf("got %d planted secrets in the files, want at least 12", planted)
	}
	if len(without) > 0 {
		t.Errorf("these clients have no file here: %v", without)
	}
	files, err := filepath.Glob("testdata/*.*")
	if err != nil || len(files) != len(formats) {
		t.Errorf("got %d files in testdata, %v; want a row for each, and there are %d", len(files), err, len(formats))
	}
}
