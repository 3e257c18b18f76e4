package harness

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// EverythingServer is the program of the npm package server-everything, below the repository's root.
const EverythingServer = "node_modules/@modelcontextprotocol/server-everything/dist/index.js"

// Root returns the repository's root, and fails the test where the npm packages are not installed in it.
func Root(t testing.TB) string {
	t.Helper()
	root, err := filepath.Abs(".") // Main has changed to it
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(root, EverythingServer)); err != nil {
		t.Fatalf("the npm server is not installed: run `make node` in %s", root)
	}
	return root
}

// EverythingOverHTTP starts EverythingServer over HTTP and returns its port.
func EverythingOverHTTP(t testing.TB) string {
	t.Helper()
	return Listening(t, "the npm server", func(port string) *exec.Cmd {
		cmd := exec.Command("node", EverythingServer, "streamableHttp")
		cmd.Dir, cmd.Env = Root(t), append(os.Environ(), "PORT="+port)
		return cmd
	})
}
