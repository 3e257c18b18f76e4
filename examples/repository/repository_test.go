package repository_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestReadme runs the commands of the README in a directory of its own, and then stock cue and opa there.
func TestReadme(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(readme), "```sh\n")
	script, _, found := strings.Cut(rest, "```")
	if !found {
		t.Fatal("README.md: got no sh block")
	}
	bin, dir := t.TempDir(), filepath.Join(t.TempDir(), "catalog")
	path := []string{bin}
	build := exec.Command("go", "build", "-o", bin, "./cmd/catalogd")
	// As the Makefile builds, so that no package is compiled a second time.
	env := append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-trimpath")
	build.Dir, build.Env = "../..", env
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", build.Args, err, out)
	}
	for _, tool := range []string{"cue", "opa"} {
		find := exec.Command("go", "tool", "-modfile=../../tools/go.mod", "-n", tool)
		find.Env = env
		out, err := find.Output()
		if err != nil {
			t.Fatalf("go tool -n %s: %v", tool, err)
		}
		path = append(path, filepath.Dir(strings.TrimSpace(string(out))))
	}
	t.Setenv("PATH", strings.Join(append(path, os.Getenv("PATH")), string(os.PathListSeparator)))
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	script = strings.ReplaceAll(script, "my-catalog", dir) +
		"cue vet -c=false ./...\ncue fmt --check ./...\nopa check --strict policy/\nopa test --timeout 2m policy/\n"
	run := exec.Command("bash", "-euxo", "pipefail", "-c", script)
	run.Dir = "../.."
	out, err := run.CombinedOutput()
	if err != nil {
		t.Fatalf("got %v, want every command to succeed\n%s", err, out)
	}
	if want := "\nBuy milk.\n"; !strings.Contains(string(out), want) {
		t.Errorf("got %s\nwant %q in it", out, want)
	}
}
