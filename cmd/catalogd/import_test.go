package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestImportShapes imports the file of each of five clients into a catalog. Nothing is trusted by that; with the proposed
// entries copied, every server is, and all that is left to say is that nothing is locked.
func TestImportShapes(t *testing.T) {
	program, err := exec.LookPath("catalogd")
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	for _, name := range []string{"npx", "docker", "uvx", "node", "python3"} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\nexit 1\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"claude-code.mcp.json", "claude_desktop_config.json", "cursor.mcp.json", "gemini.settings.json", "vscode.mcp.json"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join("../../internal/importer/testdata", name)
			dir, state := filepath.Join(t.TempDir(), "c"), t.TempDir()
			catalogd := func(args ...string) string {
				t.Helper()
				var out, said bytes.Buffer
				cmd := exec.Command(program, args...)
				cmd.Stdout, cmd.Stderr = &out, &said
				cmd.Env = append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"), "XDG_STATE_HOME="+state)
				if err := cmd.Run(); err != nil {
					t.Fatalf("catalogd %s: %v\n%s%s", strings.Join(args, " "), err, &out, &said)
				}
				if strings.Contains(out.String()+said.String(), "PLANTED") {
					t.Errorf("catalogd %s says a secret:\n%s%s", strings.Join(args, " "), &out, &said)
				}
				return out.String()
			}
			catalogd("init", dir)
			written := strings.TrimSpace(catalogd("import", "mcp-config", file, "--dir", dir))
			text, err := os.ReadFile(written)
			if err != nil {
				t.Fatal(err)
			}
			servers := strings.Count(string(text), "\nservers: ")
			found := catalogd("check", dir)
			if n := strings.Count(found, ": untrusted_server: "); n != servers || servers < 2 {
				t.Errorf("%d of %d servers are said to be untrusted:\n%s", n, servers, found)
			}
			uncommentTrust(t, dir, string(text))
			found = catalogd("check", dir)
			if n := strings.Count(found, ": not_locked: "); n != servers || strings.Count(found, "\n") != n {
				t.Errorf("with the proposed trust, %d servers of %d are not locked, and more is said:\n%s", n, servers, found)
			}
			if trust := catalogd("trust", "-C", dir); strings.Contains(trust, "denied") {
				t.Errorf("denied:\n%s", trust)
			}
			if strings.Contains(string(text), "unpinned: true") {
				// The policy asks for it: the proposal says no more than it must.
				data, err := os.ReadFile(filepath.Join(dir, "policy/trust/data.yaml"))
				if err != nil {
					t.Fatal(err)
				}
				without := strings.ReplaceAll(string(data), "    unpinned: true\n", "")
				if err := os.WriteFile(filepath.Join(dir, "policy/trust/data.yaml"), []byte(without), 0o644); err != nil {
					t.Fatal(err)
				}
				if found := catalogd("check", dir); strings.Count(found, "say unpinned: true") != strings.Count(string(text), "unpinned: true") {
					t.Errorf("unpinned: true is proposed where the policy does not ask for it:\n%s", found)
				}
			}
		})
	}
}

// uncommentTrust does what the comment of an imported file says.
func uncommentTrust(t *testing.T, dir, imported string) {
	t.Helper()
	_, proposed, ok := strings.Cut(imported, "behind them.\n//\n")
	if !ok {
		t.Fatalf("no trust data is proposed in\n%s", imported)
	}
	var entries strings.Builder
	entries.WriteString("entries:\n")
	for line := range strings.Lines(proposed) {
		entries.WriteString(strings.TrimPrefix(line, "// "))
	}
	have, err := os.ReadFile(filepath.Join(dir, "policy/trust/data.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Replace(string(have), "entries:\n", entries.String(), 1)
	if all == string(have) {
		t.Fatal("data.yaml has no entries")
	}
	if err := os.WriteFile(filepath.Join(dir, "policy/trust/data.yaml"), []byte(all), 0o644); err != nil {
		t.Fatal(err)
	}
}
