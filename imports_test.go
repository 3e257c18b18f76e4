package catalogd_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/catalogd/catalogd"

// mayImport says which of our packages each of our packages may import. A package that is not in it may not exist.
var mayImport = map[string][]string{
	".":                       {"contract/dialect", "contract", "decision", "internal/buildfile", "internal/decisionlog", "internal/lock", "internal/review", "internal/revision", "internal/serve", "internal/state", "internal/token", "internal/upstream", "internal/worker", "invoke", "loader", "problem", "registry"},
	"cmd/catalogd":            {"*"},
	"contract":                {},
	"decision":                {"decision/internal/grant", "decision/trust", "problem"},
	"decision/internal/grant": {},
	"decision/trust":          {"decision/internal/grant"},
	"decision/trusttest":      {"decision/internal/grant", "decision/trust"},
	"internal/binding":        {"contract", "decision/trust", "internal/jq", "internal/reach", "problem", "registry"},
	"internal/buildfile":      {"internal/plain", "loader", "problem", "registry"},
	"internal/decisionlog":    {"decision"},
	"internal/derive":         {"contract", "problem"},
	"internal/derive/shapes":  {},
	"internal/forward":        {},
	"internal/jq":             {},
	"internal/lock":           {"contract", "internal/paramheader", "problem", "registry"},
	"internal/mcpconfig":      {"decision/trust", "internal/reach", "problem", "registry"},
	"internal/paramheader":    {},
	"internal/plain":          {},
	"internal/reach":          {"decision/trust", "problem"},
	"contract/dialect":        {"contract"},
	"internal/review":         {"contract", "decision", "internal/serve", "problem", "registry"},
	"internal/revision":       {},
	"internal/serve":          {"contract", "contract/dialect", "decision", "decision/trust", "internal/binding", "internal/forward", "internal/jq", "internal/lock", "internal/reach", "internal/state", "internal/token", "internal/upstream", "invoke", "loader", "problem", "registry"},
	"internal/state":          {"internal/buildfile", "loader", "problem", "registry"},
	"internal/token":          {},
	"internal/upstream":       {"decision/trust", "internal/paramheader", "internal/reach", "problem", "registry"},
	"internal/worker":         {"contract", "internal/plain", "internal/reach", "loader", "problem", "registry"},
	"invoke":                  {"contract", "contract/dialect", "decision", "registry"},
	"loader":                  {"contract", "internal/derive", "problem", "registry"},
	"problem":                 {},
	"registry":                {"contract", "problem"},
}

// onlyIn says which packages may import a library, or what of the standard library starts processes and dials.
var onlyIn = map[string][]string{
	"cuelang.org/go": {"internal/derive", "internal/mcpconfig", "loader"},
	// internal/mcpconfig prints with CUE's own printer, so that it writes what cue fmt does. It evaluates nothing.
	"cuelang.org/go/cue/cuecontext":         {"internal/derive", "loader"},
	"cuelang.org/go/cue/load":               {"internal/derive", "loader"},
	"github.com/open-policy-agent/opa":      {"decision"},
	"github.com/mark3labs/mcp-go/server":    {"internal/serve"},
	"github.com/mark3labs/mcp-go/client":    {},
	"github.com/fsnotify/fsnotify":          {"loader"},
	"github.com/go-git/go-git":              {"internal/revision"},
	"github.com/santhosh-tekuri/jsonschema": {"contract"},
	"github.com/dlclark/regexp2":            {"contract"},
	"os/exec":                               {"internal/reach"},
	module + "/decision/trusttest":          {},
	"github.com/prometheus/client_golang":   {"internal/serve"},
	"github.com/yosida95/uritemplate":       {"internal/binding", "internal/forward"},
	"github.com/itchyny/gojq":               {"internal/jq"},
	"github.com/alecthomas/kong":            {"cmd/catalogd"},
}

// TestImports holds the production code to the import directions of ARCHITECTURE.md. bench is a module of its own, which
// imports nothing of ours.
func TestImports(t *testing.T) {
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (path == "bench" || d.Name() == "testdata" || d.Name() == "node_modules" || (strings.HasPrefix(d.Name(), ".") && path != ".")) {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		pkg := filepath.ToSlash(filepath.Dir(path))
		allowed, known := mayImport[pkg]
		if !known {
			t.Errorf("%s: package %s is not in ARCHITECTURE.md's table of packages", path, pkg)
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, src, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range file.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			if ours, ok := strings.CutPrefix(imported, module+"/"); ok && !slices.Contains(allowed, ours) && !slices.Contains(allowed, "*") {
				t.Errorf("%s: %s must not import %s", path, pkg, ours)
			}
			for library, homes := range onlyIn {
				if (imported == library || strings.HasPrefix(imported, library+"/")) && !slices.Contains(homes, pkg) {
					t.Errorf("%s: only %v may import %s", path, homes, library)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestReachIsTheOnlyWayOut holds that no production code outside internal/reach dials, and that only the engine makes
// trust. (Its own listener, the command line's questions to its own daemon, and the collector of decision logs that the operator
// names on the command line, are no way out of a catalog.)
func TestReachIsTheOnlyWayOut(t *testing.T) {
	forbidden := map[string][]string{
		"net.Dial":           {"internal/reach"},
		"net.Dialer":         {"internal/reach"},
		"http.Transport{":    {"internal/reach"},
		"http.DefaultClient": {"cmd/catalogd"},
		"os.StartProcess":    {"internal/reach"},
		"syscall.Exec":       {},
		"trust.New(":         {"decision", "decision/trusttest"},
	}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (path == "bench" || d.Name() == "testdata" || d.Name() == "node_modules" || (strings.HasPrefix(d.Name(), ".") && path != ".")) {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		pkg := filepath.ToSlash(filepath.Dir(path))
		for call, homes := range forbidden {
			if strings.Contains(string(src), call) && !slices.Contains(homes, pkg) {
				t.Errorf("%s: only %v may use %s", path, homes, call)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
