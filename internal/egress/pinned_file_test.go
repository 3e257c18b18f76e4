package egress_test

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/catalogd/catalogd/decision/trust"
	"github.com/catalogd/catalogd/decision/trusttest"
	"github.com/catalogd/catalogd/internal/egress"
)

// realDir is a temporary directory by its real path.
func realDir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func put(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
		t.Fatal(err)
	}
}

func sha(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// A pinned command runs while its file is the one that was pinned, whether that is a script or a program, and not when it
// has become another, even one of the same size and time.
func pinnedCommand(t *testing.T) {
	t.Parallel()
	dir := realDir(t)
	tool := filepath.Join(dir, "tool")
	const script = "#!/bin/sh\necho tool\n"
	put(t, tool, script)
	target := trust.Target{Kind: trust.Exec, Command: &trust.Command{Declared: "./tool", Path: tool}}
	tr := trusttest.New(target, trust.Terms{Entry: "tools", InTree: true, SHA256: sha([]byte(script))})
	digests := new(egress.Digests)
	start := func() (*egress.Output, error) {
		return egress.Run(t.Context(), tr, target, egress.Command{Root: dir, Digests: digests}, nil, 100)
	}
	if out, err := start(); err != nil || string(out.Stdout) != "tool\n" {
		t.Fatalf("%v, %v", out, err)
	}
	info, err := os.Stat(tool)
	if err != nil {
		t.Fatal(err)
	}
	evil := strings.Replace(script, "tool", "evil", 1)
	put(t, tool, evil)
	if err := os.Chtimes(tool, info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
	if out, err := start(); err == nil || !strings.Contains(err.Error(), `pinned by trust entry "tools"`) || !strings.Contains(err.Error(), sha([]byte(evil))) {
		t.Errorf("the changed file: %v, %v", out, err)
	}
	put(t, tool, script)
	if out, err := start(); err != nil || string(out.Stdout) != "tool\n" {
		t.Errorf("put back: %v, %v", out, err)
	}
	if err := os.Remove(tool); err != nil {
		t.Fatal(err)
	}
	if _, err := start(); err == nil {
		t.Error("a file that is gone ran")
	}
}

// While someone swaps the directory of the pinned program for one with another program in it, and the program for a link to
// that one, as fast as they can, only the pinned one ever runs. CATALOGD_SWAPS is how many starts are tried.
func pinnedSwaps(t *testing.T) {
	t.Parallel()
	starts := 100
	if text := os.Getenv("CATALOGD_SWAPS"); text != "" {
		var err error
		if starts, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	root := realDir(t)
	at := func(elem ...string) string { return filepath.Join(append([]string{root}, elem...)...) }
	for _, dir := range []string{"bin", "evil", "links"} {
		if err := os.Mkdir(at(dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	put(t, at("bin", "tool"), string(program))
	put(t, at("evil", "tool"), "#!/bin/sh\n: > "+at("canary")+"\n")
	if err := os.Symlink(at("evil", "tool"), at("links", "tool")); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(at("bin", "tool"), old, old); err != nil {
		t.Fatal(err)
	}

	done, swapped := make(chan struct{}), make(chan error)
	go func() {
		swapped <- func() error {
			for i := 0; ; i++ {
				other := []string{"evil", "links"}[i%2]
				for _, move := range [][2]string{{"bin", "good"}, {other, "bin"}, {"bin", other}, {"good", "bin"}} {
					if err := os.Rename(at(move[0]), at(move[1])); err != nil {
						return err
					}
				}
				select {
				case <-done:
					return nil
				case <-time.After(time.Duration(i%7) * 100 * time.Microsecond): // so that starts meet the pinned one, too
				}
			}
		}()
	}()
	target := trust.Target{Kind: trust.Exec, Command: &trust.Command{Declared: "tool", Path: at("bin", "tool"), Args: []string{"child", "args", "it ran"}}}
	tr := trusttest.New(target, trust.Terms{InTree: true, SHA256: sha(program)})
	digests := new(egress.Digests)
	start := func() (*egress.Output, error) {
		return egress.Run(t.Context(), tr, target, egress.Command{Root: root, Args: target.Command.Args, Digests: digests}, nil, 1000)
	}
	ran := 0
	for range starts {
		out, err := start()
		if err != nil {
			continue
		}
		if got := string(out.Stdout); got != "it ran" {
			t.Fatalf("what ran said %q and ended with %s", got, out.Exit)
		}
		ran++
	}
	close(done)
	if err := <-swapped; err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(at("canary")); err == nil {
		t.Error("a program that was not pinned ran")
	}
	if out, err := start(); err != nil || string(out.Stdout) != "it ran" {
		t.Errorf("the pinned program itself: %v, %v", out, err)
	}
	t.Logf("%d of %d starts met the pinned program", ran, starts)
}

// What was observed of a program is reported again from memory only while it is the same file.
func TestObservedDigest(t *testing.T) {
	t.Parallel()
	dir := realDir(t)
	tool := filepath.Join(dir, "tool")
	target := trust.Target{Kind: trust.Exec, Command: &trust.Command{Declared: tool, Path: tool}}
	observer := new(egress.Observer)
	for _, content := range []string{"one", "two", "one", "three"} {
		put(t, tool, content)
		for range 2 {
			if got := observer.Observe(target, "").SHA256; got != sha([]byte(content)) {
				t.Errorf("%s: %s", content, got)
			}
		}
	}
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(tool, old, old); err != nil {
		t.Fatal(err)
	}
	before := observer.Observe(target, "").SHA256
	put(t, tool, "seven")
	if err := os.Chtimes(tool, old, old); err != nil {
		t.Fatal(err)
	}
	if got := observer.Observe(target, "").SHA256; got == before {
		t.Error("a change that hides its time is not seen")
	}
	if err := os.Remove(tool); err != nil {
		t.Fatal(err)
	}
	if got := observer.Observe(target, "").SHA256; got != "" {
		t.Errorf("nothing is there, and it has the digest %s", got)
	}
}
