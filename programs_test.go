package catalogd_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

var (
	// programsDir is where programs are built; TestMain makes and removes it.
	programsDir string
	// programs are the programs by the package, each a func() (string, error) that builds it once.
	programs sync.Map
)

// catalogdProgram is the program.
func catalogdProgram(t *testing.T) string {
	t.Helper()
	return goProgram(t, "./cmd/catalogd")
}

// goProgram is a program of ours or of a library, which the first test that needs it builds.
func goProgram(t *testing.T, pkg string) string {
	t.Helper()
	build, _ := programs.LoadOrStore(pkg, sync.OnceValues(func() (string, error) {
		program := filepath.Join(programsDir, filepath.Base(pkg))
		if out, err := exec.Command("go", "build", "-o", program, pkg).CombinedOutput(); err != nil {
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
