package buildcache_test

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/internal/buildcache"
)

func TestDefaultDirectory(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	own := filepath.Join(home, ".local", "state", "catalogd")
	if runtime.GOOS == "darwin" {
		own = filepath.Join(home, "Library", "Application Support", "catalogd")
	}
	for _, test := range []struct{ xdg, want string }{
		{"", own},
		{"relative", own},
		{filepath.Join(home, "x"), filepath.Join(home, "x", "catalogd")},
	} {
		t.Setenv("XDG_STATE_HOME", test.xdg)
		if got, err := buildcache.DefaultDirectory(); err != nil || got != test.want {
			t.Errorf("XDG_STATE_HOME=%q: got %s, %v, want %s", test.xdg, got, err, test.want)
		}
	}
	t.Setenv("XDG_STATE_HOME", "")
	t.Setenv("HOME", "")
	if got, err := buildcache.DefaultDirectory(); err == nil {
		t.Errorf("without a home: got %s, want an error", got)
	}
}

// open opens and closes the state directory at path.
func open(path string) error {
	c, err := buildcache.OpenCache(path, "/srv/catalog", slog.New(slog.DiscardHandler))
	if err == nil {
		c.Close()
	}
	return err
}

// TestThreat runs the tests of threat T24 (docs/robustness.md) that are about the state directory.
func TestThreat(t *testing.T) {
	t.Run("T24/others may enter", refusesOpenModes)
	t.Run("T24/another owner", refusesOtherOwner)
}

// refusesOpenModes: a state directory is 0700, or it is refused with its path and mode.
func refusesOpenModes(t *testing.T) {
	for _, test := range []struct {
		mode os.FileMode
		safe bool
	}{
		{0o700, true}, {0o777, false}, {0o770, false}, {0o702, false}, {0o720, false}, {0o755, false}, {0o701, false},
	} {
		path := filepath.Join(t.TempDir(), "state")
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, test.mode); err != nil { // whatever the umask is
			t.Fatal(err)
		}
		err := open(path)
		if test.safe {
			if err != nil {
				t.Errorf("%04o: got %v, want no error", test.mode, err)
			}
			continue
		}
		want := fmt.Sprintf("%s (mode %04o)", path, test.mode)
		if !errors.Is(err, buildcache.ErrUnsafe) || !strings.Contains(err.Error(), want) {
			t.Errorf("%04o: got %v, want ErrUnsafe with %q", test.mode, err, want)
		}
	}
}

func refusesOtherOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a directory away")
	}
	path := filepath.Join(t.TempDir(), "state")
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(path, 12345, 12345); err != nil {
		t.Fatal(err)
	}
	if err := open(path); !errors.Is(err, buildcache.ErrUnsafe) || !strings.Contains(err.Error(), "12345") {
		t.Errorf("a directory of user 12345: got %v, want ErrUnsafe with the user", err)
	}
}

func TestDirectoryIsMade(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b", "state")
	if err := open(path); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{path, filepath.Dir(path)} {
		info, err := os.Stat(dir)
		if err != nil || info.Mode().Perm() != 0o700 {
			t.Fatalf("%s: got %v, %v, want mode 0700", dir, info, err)
		}
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{file, filepath.Join(file, "below")} {
		if err := open(path); err == nil || errors.Is(err, buildcache.ErrUnsafe) {
			t.Errorf("%s: got %v, want an error that is not ErrUnsafe", path, err)
		}
	}
}
