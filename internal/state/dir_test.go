package state_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/internal/state"
)

func TestDefault(t *testing.T) {
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
		if got, err := state.Default(); err != nil || got != test.want {
			t.Errorf("XDG_STATE_HOME=%q: %s, %v; want %s", test.xdg, got, err, test.want)
		}
	}
	t.Setenv("XDG_STATE_HOME", "")
	t.Setenv("HOME", "")
	if got, err := state.Default(); err == nil {
		t.Errorf("without a home: %s", got)
	}
}

// TestThreat has the threat that the state directory holds against.
func TestThreat(t *testing.T) {
	t.Run("T24/others may enter", modes)
	t.Run("T24/another owner", owner)
}

// modes: a state directory is 0700, or it is refused by its path and mode.
func modes(t *testing.T) {
	for _, test := range []struct {
		mode os.FileMode
		safe bool
	}{{0o700, true}, {0o777, false}, {0o770, false}, {0o702, false}, {0o720, false}, {0o755, false}, {0o701, false}} {
		path := filepath.Join(t.TempDir(), "state")
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, test.mode); err != nil { // whatever the umask is
			t.Fatal(err)
		}
		d, err := state.Open(path)
		if test.safe {
			if err != nil {
				t.Errorf("%04o: %v", test.mode, err)
			} else if err := d.Close(); err != nil {
				t.Error(err)
			}
			continue
		}
		if want := fmt.Sprintf("%s (mode %04o)", path, test.mode); !errors.Is(err, state.ErrUnsafe) || !strings.Contains(err.Error(), want) {
			t.Errorf("%04o: %v", test.mode, err)
		}
	}
}

func owner(t *testing.T) {
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
	if _, err := state.Open(path); !errors.Is(err, state.ErrUnsafe) || !strings.Contains(err.Error(), "12345") {
		t.Errorf("got %v", err)
	}
}

func TestOpenMakes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b", "state")
	d, err := state.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for _, dir := range []string{path, filepath.Dir(path)} {
		info, err := os.Stat(dir)
		if err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, %v", dir, info.Mode(), err)
		}
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{file, filepath.Join(file, "below")} {
		if _, err := state.Open(path); err == nil || errors.Is(err, state.ErrUnsafe) {
			t.Errorf("%s: %v", path, err)
		}
	}
}
