package egress_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/internal/egress"
)

func resolve(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	write := func(name string, mode os.FileMode) string {
		t.Helper()
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	tool := write("bin/tool", 0o755)
	write("bin/plain", 0o644)
	write("first/shadowed", 0o644)
	second := write("bin/shadowed", 0o755)
	write("bin/rooted", 0o755|os.ModeSetuid)
	write("bin/grouped", 0o755|os.ModeSetgid)
	write("here", 0o755)
	for link, to := range map[string]string{"link": tool, "loop": filepath.Join(root, "bin", "loop"), "dangling": "/nowhere/at/all"} {
		if err := os.Symlink(to, filepath.Join(root, "bin", link)); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(root)
	t.Setenv("PATH", strings.Join([]string{".", "", "bin", filepath.Join(root, "first"), filepath.Join(root, "bin"), filepath.Join(root, "missing")}, ":"))

	for _, tt := range []struct{ declared, root, path, err string }{
		{"tool", root, tool, ""},
		{"link", root, tool, ""},
		{"shadowed", root, second, ""},
		{"./bin/tool", root, tool, ""},
		{"bin/../bin/link", root, tool, ""},
		{tool, "", tool, ""},
		{"", root, "", "empty"},
		{"here", root, "", "not on PATH"}, // only in the working directory, which PATH names as . and as an empty entry
		{"missing", root, "", "not on PATH"},
		{"tool -l", root, "", "not a command line"},
		{"./bin/tool", "", "", "relative"},
		{"./bin/none", root, "", "does not exist; install it"},
		{"dangling", root, "", "not on PATH"},
		{"loop", root, "", "too many links"},
		{"plain", root, "", "not executable"},
		{"./bin", root, "", "is a directory"},
		{"..", root, "", "is a directory"},
		{"rooted", root, "", "setuid"},
		{"grouped", root, "", "setgid"},
		{"/dev/null", root, "", "not a regular file"},
		{"a\x00b", root, "", "NUL"},
	} {
		path, err := egress.Resolve(tt.declared, tt.root)
		switch {
		case tt.err == "" && (err != nil || path != tt.path):
			t.Errorf("%q: got %q, %v; want %q", tt.declared, path, err, tt.path)
		case tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)):
			t.Errorf("%q: got %q, %v; want an error with %q", tt.declared, path, err, tt.err)
		}
	}
}
