package doctor

import (
	"os"
	"path/filepath"
	"testing"
)

const linux = true

func TestLimits(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("self", "0::/unit/inner\n")
	write("unit/inner/memory.max", "max\n")
	write("unit/inner/pids.max", "100\n")
	group := func(limit string) []Finding {
		write("unit/memory.max", limit)
		return cgroup(filepath.Join(dir, "self"), dir, 1<<30)
	}
	has(t, "no limit", group("max\n"), OK, "unlimited")
	has(t, "enough", group("4294967296\n"), OK, "4096 MiB")
	has(t, "little", group("536870912\n"), Warning, "512 MiB")
	has(t, "too little", group("67108864\n"), Error, "64 MiB, and a daemon needs 256 MiB")
	has(t, "processes", group("max\n"), Warning, "the limit is 100")
	write("max_user_watches", "2\n")
	has(t, "enough watches", []Finding{watches(dir, 2)}, OK, "2 folders")
	has(t, "few watches", []Finding{watches(dir, 3)}, Warning, "3 folders are to be watched, and a user may watch 2")
	write("root/catalog/a/x.cue", "")
	write("root/.git/objects/x", "")
	write("root/node_modules/x/y", "")
	if n := folders(filepath.Join(dir, "root")); n != 3 {
		t.Errorf("got %d folders, want 3", n)
	}
}
