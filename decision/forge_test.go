package decision_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/decision/trust"
)

// A package outside decision/ can't make a Trust. The compiler refuses what names the key, stands in for it, or fills a
// Trust; what it lets through is a key inferred as a type parameter, whose zero value opens nothing (TestZeroKey). What
// is left to others is the zero Trust, which covers nothing, and trusttest, which no production code imports.
func TestForgery(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the go tool")
	}
	t.Parallel()
	attempts := map[string]string{
		"use of internal package": `import (
	"github.com/catalogd/catalogd/decision/internal/grant"
	"github.com/catalogd/catalogd/decision/trust"
)
var Forged = trust.New(grant.Issue(), trust.Target{}, trust.Terms{})
`,
		"cannot use struct{}{}": `import "github.com/catalogd/catalogd/decision/trust"
var Forged = trust.New(struct{}{}, trust.Target{}, trust.Terms{})
`,
		"cannot use struct{issued bool}": `import "github.com/catalogd/catalogd/decision/trust"
var Forged = trust.New(struct{issued bool}{true}, trust.Target{}, trust.Terms{})
`,
		"cannot refer to unexported field": `import "github.com/catalogd/catalogd/decision/trust"
var Forged = trust.Trust{target: "x"}
`,
	}
	module, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	for want, body := range attempts {
		dir := t.TempDir()
		source, overlay := filepath.Join(dir, "forge.go"), filepath.Join(dir, "overlay.json")
		write(t, source, "package forge\n\n"+body)
		replace, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(module, "forge", "forge.go"): source}})
		if err != nil {
			t.Fatal(err)
		}
		write(t, overlay, string(replace))
		build := exec.CommandContext(t.Context(), "go", "build", "-overlay", overlay, "./forge")
		build.Dir, build.Env = module, append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-trimpath") // as the Makefile builds
		out, err := build.CombinedOutput()
		if err == nil || !strings.Contains(string(out), want) {
			t.Errorf("want %q, got %v\n%s", want, err, out)
		}
	}
}

// A key that nobody issued opens nothing, however it was come by.
func TestZeroKey(t *testing.T) {
	t.Parallel()
	target := connectInput().Target
	forged := forge(trust.New, target, trust.Terms{Entry: "forged"})
	if forged.Covers(target) == nil || forged.Name() != "" {
		t.Errorf("%+v covers the target", forged)
	}
}

func forge[Key any](make func(Key, trust.Target, trust.Terms) trust.Trust, target trust.Target, terms trust.Terms) trust.Trust {
	var zero Key
	return make(zero, target, terms)
}

func write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
