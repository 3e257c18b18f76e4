package doctor

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func has(t *testing.T, what string, found []Finding, severity, text string) {
	t.Helper()
	for _, f := range found {
		if f.Severity == severity && strings.Contains(f.Message, text) {
			if (f.Fix == "") != (severity == OK) {
				t.Errorf("%s: got %+v, want a fix unless it is ok", what, f)
			}
			return
		}
	}
	t.Errorf("%s: got %+v, want %s %q", what, found, severity, text)
}

func TestState(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	make := func(name string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil { // whatever the umask is
			t.Fatal(err)
		}
		return path
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ name, dir, severity, text string }{
		{"good", make("good", 0o700), OK, "closed to other users"},
		{"missing", filepath.Join(dir, "no", "such"), OK, "does not exist yet"},
		{"open to others", make("open", 0o750), Error, "other users may enter"},
		{"a file", file, Error, "not a directory"},
		{"below a file", filepath.Join(file, "x"), Error, "not a directory"},
	} {
		has(t, test.name, State(test.dir), test.severity, test.text)
	}
	if os.Geteuid() != 0 { // root writes everywhere
		has(t, "not writable", State(make("shut", 0o500)), Error, "can't write it")
		has(t, "parent not writable", State(filepath.Join(dir, "shut", "x")), Error, "can't be created")
	}
	has(t, "no space", []Finding{spaceFinding(dir, 10<<20, false)}, Error, "10 MiB are free")
	has(t, "little space", []Finding{spaceFinding(dir, 100<<20, false)}, Warning, "100 MiB are free")
	has(t, "no inodes", []Finding{spaceFinding(dir, math.MaxInt64, true)}, Error, "no inode left")
	if found := Watched("/proc"); len(found) != 1 || found[0].Severity != Warning { // which is no local disk
		t.Errorf("/proc: got %+v", found)
	}
}

func TestClock(t *testing.T) {
	t.Parallel()
	now := time.Now()
	has(t, "alone", Clock(now, now, nil), OK, "no server")
	has(t, "same", Clock(now, now, map[string]time.Duration{"a": time.Second}), OK, "agrees")
	has(t, "ahead", Clock(now, now, map[string]time.Duration{"https://a": time.Hour}), Warning, "1h0m0s ahead of that of https://a")
	has(t, "behind", Clock(now, now, map[string]time.Duration{"https://a": -time.Hour}), Warning, "1h0m0s behind that of https://a")
	has(t, "long ago", Clock(time.Unix(0, 0), time.Unix(0, 0), nil), Error, "before this program was made")
}

func TestCommandsAndSandbox(t *testing.T) {
	t.Parallel()
	const looked = "write its absolute path; PATH is that of the daemon"
	for program, want := range map[string][2]string{
		"uvx": {"install uv ", looked}, "docker": {"install Docker", looked}, "mine": {"install it, ", looked},
		"/usr/bin/npx": {"install Node.js", ", or correct the path"}, "./mine": {"install it", ", or correct the path"},
	} {
		if got := Install(program); !strings.HasPrefix(got, want[0]) || !strings.Contains(got, want[1]) {
			t.Errorf("%s: got %s", program, got)
		}
	}
	has(t, "nothing", []Finding{Sandbox(nil)}, map[bool]string{true: Error, false: Warning}[linux], "")
	if linux {
		has(t, "all", []Finding{Sandbox([]string{"rlimit_data", "landlock", "seccomp"})}, OK, "landlock")
		has(t, "no landlock", []Finding{Sandbox([]string{"rlimit_data", "seccomp"})}, Warning, "Landlock")
		has(t, "no seccomp", []Finding{Sandbox([]string{"rlimit_data", "landlock"})}, Error, "seccomp does not confine")
		has(t, "no limit", []Finding{Sandbox([]string{"landlock", "seccomp"})}, Error, "memory")
	}
}

// TestLines: what a catalog names can't affect a terminal or look like another finding.
func TestLines(t *testing.T) {
	t.Parallel()
	got := Finding{"server", Error, "a\x1b[31m", "b\nok  c", "d"}.Lines()
	if len(got) != 2 || strings.ContainsAny(strings.Join(got, ""), "\n\x1b") {
		t.Errorf("got %q", got)
	}
}
