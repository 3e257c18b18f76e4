package docs

import (
	"debug/buildinfo"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/test/internal/harness"
)

// TestInstall makes the archive of this platform and does what docs/install.md shows with it: the container's command runs
// without its container, beside the same MCP server.
func TestInstall(t *testing.T) {
	dist, prefix := t.TempDir(), t.TempDir()
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	t.Setenv("PATH", filepath.Join(prefix, "bin")+string(os.PathListSeparator)+os.Getenv("PATH"))
	output(t, "make", "--no-print-directory", "dist", "PLATFORMS=host", "VERSION=v1.2.3", "DIST="+dist)
	name := "catalogd_1.2.3_" + runtime.GOOS + "_" + runtime.GOARCH
	addr := "127.0.0.1:" + harness.FreePort(t)
	here := strings.NewReplacer("catalogd_1.2.3_linux_amd64", name, "127.0.0.1:8420", addr, "3001", harness.EverythingOverHTTP(t))
	r := reader{t: t, dir: dist}
	elsewhere := 0
	for _, b := range harness.Blocks(t, "docs/install.md") {
		text := here.Replace(b.Text)
		first, _, _ := strings.Cut(text, "\n")
		switch {
		case b.Kind == "console":
			r.console("docs/install.md", text)
		case b.Kind == "cue":
			harness.WriteFile(t, filepath.Join(dist, strings.TrimPrefix(first, "// ")), text)
		case strings.HasPrefix(first, "cd "+name):
			cmd := exec.Command("bash", "-e", "-c", text)
			cmd.Dir, cmd.Env = dist, append(os.Environ(), "PREFIX="+prefix)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%s%v\n%s", text, err, out)
			}
		case strings.Contains(text, "docker compose"):
			r.daemon(addr, containerCommand(t, "my-catalog", addr, "tokens")...)
		case strings.HasPrefix(first, "catalogd build "):
			output(t, "bash", "-e", "-c", "cd "+dist+" && "+strings.ReplaceAll(first, "deploy/kubernetes/", ""))
		default: // what needs Docker or root
			elsewhere++
		}
	}
	if elsewhere != 2 {
		t.Errorf("%d blocks did not run, want 2: docker build and the unit's", elsewhere)
	}
	if t.Failed() {
		return
	}
	program := filepath.Join(prefix, "bin", "catalogd")
	checkBillOfMaterials(t, program, filepath.Join(dist, name))
	output(t, "bash", "-n", filepath.Join(prefix, "share/bash-completion/completions/catalogd"))

	pages, err := filepath.Glob(filepath.Join(prefix, "share/man/man1/*.1"))
	if err != nil || len(pages) < 20 {
		t.Fatalf("%d man pages (%v)", len(pages), err)
	}
	for reader, args := range map[string][]string{"mandoc": {"-T", "lint", "-W", "warning"}, "man": {"--warnings", "-E", "ascii", "-l"}} {
		if _, err := exec.LookPath(reader); err != nil {
			t.Logf("%s is not installed, so the pages are not read by it", reader)
			continue
		}
		if reader == "man" {
			page := filepath.Join(prefix, "share/man/man1/catalogd-call.1")
			if text := output(t, reader, append(args, page)...); !strings.Contains(text, "--dry-run") || !strings.Contains(text, "v1.2.3") {
				t.Errorf("man shows:\n%s", text)
			}
		} else if complaints := output(t, reader, append(args, pages...)...); complaints != "" {
			t.Errorf("%s says:\n%s", reader, complaints)
		}
	}
}

// checkBillOfMaterials compares sbom.cdx.json with what Go recorded in the program: the same modules, each with a licence
// whose text is in the archive.
func checkBillOfMaterials(t *testing.T, program, dir string) {
	t.Helper()
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	var bom struct {
		Metadata   struct{ Component struct{ Version string } }
		Components []struct {
			Name, Version string
			Licenses      []struct{ License struct{ ID string } }
		}
	}
	if err := json.Unmarshal([]byte(harness.ReadFile(t, filepath.Join(dir, "sbom.cdx.json"))), &bom); err != nil {
		t.Fatal(err)
	}
	texts := harness.ReadFile(t, filepath.Join(dir, "THIRD_PARTY_LICENSES"))
	listed := map[string]bool{}
	for _, c := range bom.Components {
		listed[c.Name+"@"+c.Version] = true
		if len(c.Licenses) == 0 || c.Licenses[0].License.ID == "" || !strings.Contains(texts, "\n"+c.Name+" "+c.Version+" (") {
			t.Errorf("%s %s: licences %v, or their text is not there", c.Name, c.Version, c.Licenses)
		}
	}
	want := map[string]bool{"std@" + strings.TrimPrefix(info.GoVersion, "go"): true}
	for _, dep := range info.Deps {
		want[dep.Path+"@"+dep.Version] = true
	}
	if len(listed) != len(want) || bom.Metadata.Component.Version != "v1.2.3" {
		t.Errorf("%d components of version %s, want %d", len(listed), bom.Metadata.Component.Version, len(want))
	}
	for m := range want {
		if !listed[m] {
			t.Errorf("%s is not listed", m)
		}
	}
}

// output runs a command in the root of the repository.
func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
	return string(out)
}
