// Package harness is what the end-to-end tests share: it makes catalogs, serves them, connects MCP clients to them, starts
// upstream servers and builds programs. Everything that it starts ends with the test. Only tests import it.
package harness

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// Main runs the tests of a package below test/, and exits. They run in the repository's root, so that they name files as
// its readers do (docs/policy.md, testdata/http).
func Main(m *testing.M) {
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	if err := os.Chdir(filepath.Join("..", "..")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	dir, err := os.MkdirTemp("", "catalogd-programs")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	programsDir = dir
	return m.Run()
}
