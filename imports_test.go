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
	".":                              {"internal/tracing", "contract/dialect", "contract", "decision", "internal/buildcache", "internal/conversation", "internal/decisionlog", "internal/importer", "internal/intent", "internal/lockfile", "internal/diff", "internal/egress", "internal/envelope", "internal/gitfs", "internal/passthrough", "internal/propose", "internal/generation", "internal/daemon", "internal/mcpserver", "internal/httpapi", "internal/token", "internal/upstream", "internal/worker", "invoke", "loader", "problem", "registry", "internal/strictjson"},
	"cmd/catalogd":                   {"*"},
	"contract":                       {"contract/internal/jsontype", "contract/internal/quote", "internal/strictjson"},
	"contract/compat":                {"contract", "contract/internal/jsontype", "contract/internal/quote", "internal/strictjson"},
	"contract/internal/jsontype":     {},
	"contract/internal/quote":        {},
	"decision":                       {"decision/internal/grant", "decision/internal/shape", "decision/internal/source", "decision/lint", "decision/trust", "problem", "internal/cache"},
	"decision/internal/grant":        {},
	"decision/internal/shape":        {},
	"decision/internal/source":       {"internal/secret", "problem"},
	"decision/lint":                  {"decision/internal/shape", "decision/internal/source", "problem"},
	"decision/trust":                 {"decision/internal/grant"},
	"decision/trusttest":             {"decision/internal/grant", "decision/trust"},
	"examples/agent-go":              {"contract/dialect", "registry"},
	"examples/embed":                 {"decision", "registry"},
	"examples/repository/server":     {},
	"internal/binding":               {"contract", "decision/trust", "internal/httpstatus", "internal/intent/attempt", "internal/jq", "internal/placeholder", "internal/egress", "internal/strictjson", "problem", "registry", "internal/secret"},
	"internal/buildcache":            {"internal/wire", "loader", "problem", "registry"},
	"internal/cache":                 {},
	"internal/fair":                  {},
	"internal/filelock":              {},
	"internal/doctor":                {"internal/buildcache", "internal/intent", "problem"},
	"internal/tracing":               {"internal/egress"},
	"internal/commandline":           {},
	"internal/conversation":          {"internal/filelock", "internal/strictjson", "registry"},
	"internal/decisionlog":           {"decision", "internal/egress", "internal/filelock", "problem", "internal/strictjson", "internal/cache"},
	"internal/derive":                {"contract", "internal/paramheader", "problem", "internal/strictjson"},
	"internal/derive/shapes":         {},
	"internal/passthrough":           {"internal/strictjson"},
	"internal/intent":                {"internal/filelock", "internal/intent/attempt", "internal/intent/internal/grant", "registry"},
	"internal/intent/attempt":        {"internal/intent/internal/grant"},
	"internal/intent/attempttest":    {"internal/intent/attempt", "internal/intent/internal/grant"},
	"internal/httpstatus":            {"registry"},
	"internal/intent/internal/grant": {},
	"internal/jq":                    {},
	"internal/lockfile":              {"contract", "contract/compat", "internal/paramheader", "problem", "registry", "internal/strictjson"},
	"internal/clients":               {"internal/propose", "internal/strictjson"},
	"internal/importer":              {"internal/clients", "decision/trust", "internal/propose", "internal/egress", "problem", "registry", "internal/strictjson", "internal/secret"},
	"internal/paramheader":           {},
	"internal/secret":                {},
	"internal/secret/masktest":       {},
	"internal/placeholder":           {"contract"},
	"internal/progress":              {},
	"internal/wire":                  {},
	"internal/propose":               {"decision/trust", "internal/egress"},
	"internal/envelope":              {"contract/dialect", "internal/strictjson", "registry"},
	"internal/egress":                {"decision/trust", "internal/commandline", "internal/secret", "problem", "internal/cache"},
	"contract/dialect":               {"contract", "internal/strictjson"},
	"internal/diff":                  {"contract", "contract/compat", "decision", "decision/lint", "internal/generation", "internal/progress", "problem", "registry"},
	"internal/gitfs":                 {},
	"internal/generation":            {"contract", "contract/dialect", "decision", "decision/trust", "internal/binding", "internal/buildcache", "internal/conversation", "internal/egress", "internal/intent", "internal/jq", "internal/lockfile", "internal/passthrough", "internal/progress", "internal/propose", "internal/secret", "internal/upstream", "invoke", "loader", "problem", "registry", "internal/strictjson", "internal/cache"},
	"internal/daemon":                {"decision", "internal/buildcache", "internal/generation", "internal/intent", "internal/lockfile", "internal/progress", "internal/token", "internal/upstream", "invoke", "loader", "problem"},
	"internal/mcpserver":             {"internal/tracing", "contract", "contract/dialect", "decision", "internal/fair", "internal/generation", "internal/passthrough", "internal/strictjson", "internal/token", "internal/upstream", "invoke", "problem", "registry", "internal/cache"},
	"internal/httpapi":               {"internal/tracing", "contract", "contract/dialect", "decision", "internal/conversation", "internal/daemon", "internal/envelope", "internal/generation", "internal/intent", "internal/mcpserver", "internal/token", "internal/upstream", "invoke", "problem", "registry", "internal/strictjson"},
	"internal/strictjson":            {},
	"internal/strictjson/badjson":    {"internal/strictjson"},
	"internal/token":                 {"decision", "internal/filelock", "internal/strictjson"},
	"internal/upstream":              {"internal/tracing", "decision/trust", "internal/httpstatus", "internal/intent/attempt", "internal/secret", "internal/paramheader", "internal/egress", "problem", "registry", "internal/strictjson"},
	"internal/worker":                {"contract", "internal/wire", "internal/egress", "internal/fair", "internal/jq", "internal/progress", "loader", "problem", "registry"},
	"invoke":                         {"internal/tracing", "contract", "contract/dialect", "decision", "internal/fair", "internal/intent", "internal/intent/attempt", "internal/secret", "problem", "registry", "internal/strictjson", "internal/cache"},
	"loader":                         {"contract", "internal/commandline", "internal/derive", "internal/secret", "problem", "registry"},
	"problem":                        {},
	"internal/gotype":                {"contract", "internal/strictjson"},
	"registry":                       {"contract", "contract/compat", "internal/cache", "internal/gotype", "internal/intent/attempt", "internal/placeholder", "problem", "internal/strictjson"},
	"internal/servetest":             {"*"},
	"test/internal/harness":          {"loader"},
}

// onlyIn says which packages may import a library, or what of the standard library starts processes and dials.
var onlyIn = map[string][]string{
	"cuelang.org/go": {"internal/derive", "internal/importer", "loader"},
	// internal/importer prints with CUE's own printer, so that it writes what cue fmt does. It evaluates nothing.
	"cuelang.org/go/cue/cuecontext":         {"internal/derive", "loader"},
	"cuelang.org/go/cue/load":               {"internal/derive", "loader"},
	"github.com/open-policy-agent/opa":      {"decision", "decision/internal/shape", "decision/internal/source", "decision/lint"},
	"github.com/mark3labs/mcp-go/server":    {"internal/mcpserver"},
	"github.com/mark3labs/mcp-go/client":    {"internal/servetest", "test/internal/harness"},
	"github.com/fsnotify/fsnotify":          {"loader"},
	"github.com/go-git/go-git":              {"internal/gitfs"},
	"github.com/santhosh-tekuri/jsonschema": {"contract"},
	"github.com/dlclark/regexp2":            {"contract"},
	"github.com/pelletier/go-toml":          {"internal/secret"},
	"modernc.org/sqlite":                    {"internal/intent"},
	"os/exec":                               {"internal/egress", "test/internal/harness"},
	module + "/decision/trusttest":          {},
	module + "/internal/secret/masktest":    {},
	module + "/internal/intent/attempttest": {},
	module + "/internal/servetest":          {},
	module + "/internal/strictjson/badjson": {},
	"github.com/prometheus/client_golang":   {"internal/httpapi"},
	"github.com/go-json-experiment/json":    {"internal/gotype", "internal/strictjson"},
	"github.com/google/jsonschema-go":       {"internal/gotype", "internal/httpapi"},
	"github.com/yosida95/uritemplate":       {"internal/binding", "internal/passthrough"},
	"github.com/itchyny/gojq":               {"internal/jq"},
	"github.com/alecthomas/kong":            {"cmd/catalogd"},
	"go.opentelemetry.io/otel":              {"internal/tracing"},
}

// TestPackagesAreDescribed holds the list of packages in ARCHITECTURE.md to mayImport.
func TestPackagesAreDescribed(t *testing.T) {
	page, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(page), "\n## Packages\n")
	list, _, _ = strings.Cut(list, "\n## ")
	for pkg := range mayImport {
		if !strings.Contains(list, " "+pkg+" ") && !strings.Contains(list, pkg+",") {
			t.Errorf("ARCHITECTURE.md does not list the package %s", pkg)
		}
	}
}

// TestImports holds the production code to the import directions of ARCHITECTURE.md. bench and tools are modules of their own,
// which import nothing of ours.
func TestImports(t *testing.T) {
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (path == "bench" || path == "tools" || d.Name() == "testdata" || d.Name() == "node_modules" || (strings.HasPrefix(d.Name(), ".") && path != ".")) {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		pkg := filepath.ToSlash(filepath.Dir(path))
		allowed, known := mayImport[pkg]
		if !known {
			t.Errorf("%s: package %s is not in mayImport, and so may not exist", path, pkg)
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

// TestEgressIsTheOnlyWayOut checks that only internal/egress dials and starts processes, and that only the engine makes
// trust. Two things dial without being a way out of a catalog: the daemon listens, and a command asks its own daemon.
func TestEgressIsTheOnlyWayOut(t *testing.T) {
	forbidden := map[string][]string{
		"net.Dial":           {"internal/egress", "internal/servetest", "test/internal/harness"},
		"net.Dialer":         {"internal/egress"},
		"http.Transport{":    {"cmd/catalogd", "internal/egress"},
		"http.DefaultClient": {"cmd/catalogd", "examples/agent-go", "internal/servetest", "test/internal/harness"},
		"http.Client{":       {"cmd/catalogd", "examples/agent-go", "internal/egress", "test/internal/harness"},
		"http.Get(":          {},
		"http.Post(":         {},
		"http.PostForm(":     {},
		"http.Head(":         {},
		"tls.Dial":           {},
		"os.StartProcess":    {"internal/egress"},
		"syscall.Exec":       {},
		"trust.New(":         {"decision", "decision/trusttest"},
	}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (path == "bench" || path == "tools" || d.Name() == "testdata" || d.Name() == "node_modules" || (strings.HasPrefix(d.Name(), ".") && path != ".")) {
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
