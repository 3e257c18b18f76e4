package harness

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

var (
	// programsDir is where programs are built; Main makes and removes it.
	programsDir string
	// programs holds a func() (string, error) for each package, which builds its program once.
	programs sync.Map
)

// Catalogd returns the path of the program catalogd.
func Catalogd(t *testing.T) string {
	t.Helper()
	return Program(t, "./cmd/catalogd")
}

// Program builds the program of a package, ours or a library's, unless a test has built it before, and returns its path.
func Program(t *testing.T, pkg string) string {
	t.Helper()
	build, _ := programs.LoadOrStore(pkg, sync.OnceValues(func() (string, error) {
		program := filepath.Join(programsDir, filepath.Base(pkg))
		args := []string{"build", "-trimpath", "-o", program, pkg}
		if !strings.HasPrefix(pkg, "./") { // a library's
			args = slices.Insert(args, 1, "-modfile=tools/go.mod")
		}
		cmd := exec.Command("go", args...)
		cmd.Env = os.Environ()
		if !strings.Contains(os.Getenv("GOFLAGS"), "-race") { // the race detector needs cgo
			// As `make build` does it, so that no package is compiled a second time.
			cmd.Env = append(cmd.Env, "CGO_ENABLED=0")
		}
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("go build %s: %w\n%s", pkg, err, out)
		}
		return program, nil
	}))
	program, err := build.(func() (string, error))()
	if err != nil {
		t.Fatal(err)
	}
	return program
}
