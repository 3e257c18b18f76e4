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
	script := func(name, first string) string {
		t.Helper()
		path := write(name, 0o755)
		if err := os.WriteFile(path, []byte(first), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	plain := filepath.Join(root, "bin", "plain")
	spaced := script("bin/spaced", "#! /bin/sh -e\nexit\n")
	relative := script("bin/relative", "#!sh\n")
	script("bin/nobody", "#!/no/such/python3 -u\nprint()\n")
	script("bin/crlf", "#!/bin/sh\r\nexit\r\n")
	script("bin/interpreted", "#!"+plain+"\n")
	script("bin/unended", "#!/no/such/python3")
	for link, to := range map[string]string{"link": tool, "loop": filepath.Join(root, "bin", "loop"), "dangling": "/nowhere/at/all"} {
		if err := os.Symlink(to, filepath.Join(root, "bin", link)); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(root)
	t.Setenv("PATH", strings.Join([]string{".", "", "bin", filepath.Join(root, "first"), plain, filepath.Join(root, "bin"), filepath.Join(root, "missing")}, ":"))

	const wrong, absent, broken = "", egress.NotHere, egress.NotRunnable
	for _, tt := range []struct{ declared, root, path, err, kind string }{
		{"tool", root, tool, "", ""},
		{"link", root, tool, "", ""},
		{"shadowed", root, second, "", ""},
		{"./bin/tool", root, tool, "", ""},
		{"bin/../bin/link", root, tool, "", ""},
		{tool, "", tool, "", ""},
		{"spaced", root, spaced, "", ""},
		{"relative", root, relative, "", ""}, // the kernel looks where the command works
		{"", root, "", "empty", wrong},
		{"here", root, "", "not on PATH", absent}, // only in the working directory, which PATH names as . and as an empty entry
		{"missing", root, "", "not on PATH", absent},
		{"tool -l", root, "", "not a command line", wrong},
		{"./bin/tool", "", "", "relative", wrong},
		{"./bin/none", root, "", "does not exist; install it", absent},
		{"./bin/tool/none", root, "", "does not exist; install it", absent},
		{"dangling", root, "", "is a symbolic link to /nowhere/at/all, and what it leads to does not exist", broken},
		{"loop", root, "", "too many links", broken},
		{"plain", root, "", "not executable", broken},
		{"./bin", root, "", "is a directory", broken},
		{"..", root, "", "is a directory", wrong},
		{"rooted", root, "", "setuid", broken},
		{"grouped", root, "", "setgid", broken},
		{"/dev/null", root, "", "not a regular file", broken},
		{"nobody", root, "", `names the interpreter "/no/such/python3", which does not exist`, broken},
		{"unended", root, "", `names the interpreter "/no/such/python3", which does not exist`, broken},
		{"crlf", root, "", `names the interpreter "/bin/sh\r", with a carriage return`, broken},
		{"interpreted", root, "", "plain\", which is not executable", broken},
		{"a\x00b", root, "", "NUL", wrong},
	} {
		path, err := egress.Resolve(tt.declared, tt.root)
		switch {
		case tt.err == "" && (err != nil || path != tt.path):
			t.Errorf("%q: got %q, %v; want %q", tt.declared, path, err, tt.path)
		case tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)):
			t.Errorf("%q: got %q, %v; want an error with %q", tt.declared, path, err, tt.err)
		}
		why, unusable := egress.Unusable(err)
		if unusable != (tt.kind != "") || tt.kind != "" && why != tt.kind+err.Error() {
			t.Errorf("%q: got %q, %v; want it to begin with %q", tt.declared, why, unusable, tt.kind)
		}
	}
}
