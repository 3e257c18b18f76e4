package conformance

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/catalogd/catalogd"
	"github.com/catalogd/catalogd/registry"
	"github.com/catalogd/catalogd/test/internal/harness"
)

// conformanceServers are the servers of the suite's server scenarios, with the revisions that each speaks by
// itself.
var conformanceServers = []struct {
	name   string
	start  func(*testing.T) (url string)
	speaks []string
}{
	{"everything", referenceServer, []string{sessionEra}},
	// With the default options of StreamableHTTPOptions, the server keeps sessions.
	{"go-sdk", goSDKServer("-stateless=false"), []string{sessionEra}},
	{"go-sdk-stateless", goSDKServer("-stateless=true"), []string{sessionEra, harness.Modern}},
	{"mcp-go", func(t *testing.T) string { return mcpGoServer(t).URL }, []string{sessionEra, harness.Modern}},
	{"typescript-1", typeScriptServer("1"), []string{sessionEra}},
	{"typescript-2", typeScriptServer("2"), []string{sessionEra, harness.Modern}},
	{declaredTools, nil, nil},
}

// declaredTools is the catalog whose tools have bindings of catalogd's own: no server stands behind it.
const declaredTools = "declared"

// TestConformance runs the official MCP conformance suite against servers directly and through catalogd, in
// both eras. What passes directly passes through catalogd, but for what the list of expected failures gives a
// reason for. A revision that only catalogd speaks is asked of it alone.
func TestConformance(t *testing.T) {
	t.Parallel()
	s, expected := newSuite(t), readExpected(t)
	outcomes := make([]measured, 2*len(conformanceServers))
	t.Run("servers", func(t *testing.T) {
		for i, server := range conformanceServers {
			t.Run(server.name, func(t *testing.T) {
				t.Parallel()
				urls := map[string]string{}
				if server.name == declaredTools {
					urls["through"] = declaredCatalog(t).URL + "/branches/default/mcp"
				} else {
					// Each has a server of its own: what one changes there is no news to the other.
					through := conformanceCatalog(t, server.start(t))
					urls["direct"], urls["through"] = server.start(t)+"/mcp", through.URL+"/branches/default/mcp"
				}
				for j, revision := range []string{sessionEra, harness.Modern} {
					o := measured{fixture: server.name, revision: revision}
					if slices.Contains(server.speaks, revision) {
						o.direct = s.server(t, urls["direct"], revision)
					}
					o.through = s.server(t, urls["through"], revision)
					o.forget(expected)
					for range 2 {
						o.again(t, s, urls, expected)
					}
					o.assert(t, expected)
					outcomes[2*i+j] = o
				}
			})
		}
	})
	var complete []measured
	for _, o := range outcomes {
		if o.through != nil { // a -run may have left some out
			complete = append(complete, o)
		}
	}
	assertPasses(t, complete)
}

// contact is the input of the tool with the suite's schema.
type contact struct {
	Name          string                        `json:"name,omitempty"`
	Address       struct{ Street, City string } `json:"address,omitzero"`
	ContactMethod string                        `json:"contactMethod,omitempty"`
	Phone         string                        `json:"phone,omitempty"`
	Email         string                        `json:"email,omitempty"`
}

// declaredCatalog serves the catalog of declared tools, with the service that some of them ask and the function that
// one of them is.
func declaredCatalog(t *testing.T) *harness.Daemon {
	t.Helper()
	dir := filepath.Join(harness.Root(t), "testdata/declared")
	service := httptest.NewServer(http.FileServer(http.Dir(filepath.Join(dir, "content"))))
	t.Cleanup(service.Close)
	port := service.URL[strings.LastIndexByte(service.URL, ':')+1:]
	catalog := harness.Assemble(t, dir, "port: 3000", "port: "+port)
	harness.Edit(t, catalog, "catalog/tools.cue", ":3000", ":"+port)
	schema, err := registry.Func("json_schema_2020_12_tool", func(_ context.Context, in contact) (string, error) { return "done, " + in.Name, nil },
		registry.Read, registry.TypeSchema[contact](schema2020))
	if err != nil {
		t.Fatal(err)
	}
	return harness.Serve(t, catalogd.Config{Dir: catalog, Functions: []*registry.Function{schema}})
}

// conformanceCatalog serves a catalog whose only server is the fixture, with everything of it locked, trusted
// and passed on. replace are the pairs of old and new in its declaration.
func conformanceCatalog(t *testing.T, fixture string, replace ...string) *harness.Daemon {
	t.Helper()
	return harness.Serve(t, catalogd.Config{Dir: conformanceDir(t, fixture, replace...)})
}

// conformanceDir is the catalog that conformanceCatalog serves.
func conformanceDir(t *testing.T, fixture string, replace ...string) string {
	t.Helper()
	port := fixture[strings.LastIndexByte(fixture, ':')+1:]
	dir := harness.Assemble(t, "testdata/conformance", "port: 3000", "port: "+port)
	servers := filepath.Join(dir, "catalog/conformance.cue")
	harness.WriteFile(t, servers, strings.NewReplacer(append(replace, ":3000/", ":"+port+"/")...).Replace(harness.ReadFile(t, servers)))
	// The shipped policy is tested elsewhere; on a busy machine its tests may run out of time, and refuse a
	// change.
	tests, err := filepath.Glob(filepath.Join(dir, "policy/*_test.rego"))
	if err != nil || len(tests) == 0 {
		t.Fatalf("%d tests of the policy: %v", len(tests), err)
	}
	for _, test := range tests {
		if err := os.Remove(test); err != nil {
			t.Fatal(err)
		}
	}
	program := harness.Catalogd(t)
	for _, args := range [][]string{{"lock"}, {"lock", "--effect", "read", "*"}} {
		lock := exec.Command(program, args...)
		lock.Dir = dir
		if out, err := lock.CombinedOutput(); err != nil {
			t.Fatalf("catalogd %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	return dir
}

// referenceServer is the npm server-everything.
func referenceServer(t *testing.T) string {
	t.Helper()
	return "http://127.0.0.1:" + harness.EverythingOverHTTP(t)
}

// goSDKServer is the Go SDK's own test server for the suite.
func goSDKServer(mode string) func(*testing.T) string {
	return func(t *testing.T) string {
		t.Helper()
		program := harness.Program(t, "github.com/modelcontextprotocol/go-sdk/conformance/everything-server")
		return "http://127.0.0.1:" + harness.Listening(t, "the server of go-sdk", func(port string) *exec.Cmd {
			return exec.Command(program, "-http", "127.0.0.1:"+port, mode)
		})
	}
}

// typeScriptServer is the suite's test server on a major version of the TypeScript SDK, with schemas by zod.
func typeScriptServer(major string) func(*testing.T) string {
	return func(t *testing.T) string {
		t.Helper()
		script := filepath.Join(harness.Root(t), "testdata/conformance/typescript-"+major+".mjs")
		return "http://127.0.0.1:" + harness.Listening(t, "the TypeScript server", func(port string) *exec.Cmd {
			return exec.Command("node", script, port)
		})
	}
}
