package attempt_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/internal/intent/attempt"
)

// A package outside internal/intent can't make an attempt. What is left to others is the zero Attempt, which permits
// nothing, and attempttest, which no production code imports.
func TestForgery(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the go tool")
	}
	t.Parallel()
	module, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	for want, body := range map[string]string{
		"use of internal package":          "import (\n\t\"github.com/catalogd/catalogd/internal/intent/attempt\"\n\t\"github.com/catalogd/catalogd/internal/intent/internal/grant\"\n)\n\nvar Forged = attempt.New(grant.New(), attempt.Of{})\n",
		"cannot use struct{}{}":            "import \"github.com/catalogd/catalogd/internal/intent/attempt\"\n\nvar Forged = attempt.New(struct{}{}, attempt.Of{})\n",
		"cannot refer to unexported field": "import \"github.com/catalogd/catalogd/internal/intent/attempt\"\n\nvar Forged = attempt.Attempt{it: nil}\n",
	} {
		dir := t.TempDir()
		source, overlay := filepath.Join(dir, "forge.go"), filepath.Join(dir, "overlay.json")
		replace, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(module, "forge", "forge.go"): source}})
		if err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{source: "package forge\n\n" + body, overlay: string(replace)} {
			if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		build := exec.CommandContext(t.Context(), "go", "build", "-overlay", overlay, "./forge")
		build.Dir, build.Env = module, append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-trimpath") // as the Makefile builds
		out, err := build.CombinedOutput()
		if err == nil || !strings.Contains(string(out), want) {
			t.Errorf("want %q, got %v\n%s", want, err, out)
		}
	}
}

// TestZeroAttempt: a key's zero value makes the zero Attempt, which nobody can use.
func TestZeroAttempt(t *testing.T) {
	if err := (attempt.Attempt{}).Take("tool", "digest"); err == nil {
		t.Error("the zero attempt is permission to run")
	}
	if a := zeroKey(attempt.New); a.Take("", "") == nil {
		t.Error("the zero key makes an attempt")
	}
}

// zeroKey calls make with the zero value of a type that this package can't name.
func zeroKey[K any](make func(K, attempt.Of) attempt.Attempt) attempt.Attempt {
	var key K
	return make(key, attempt.Of{})
}
