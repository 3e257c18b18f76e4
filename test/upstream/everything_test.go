package upstream

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/catalogd/catalogd"
	"github.com/catalogd/catalogd/test/internal/harness"
)

// everything serves testdata/everything.
func everything(t testing.TB) *harness.Daemon {
	t.Helper()
	port := harness.EverythingOverHTTP(t)
	dir := harness.Assemble(t, "testdata/everything", "port: 3001", "port: "+port, "dir: .", "dir: "+harness.Root(t))
	// The machine that runs the tests may be busy.
	servers := filepath.Join(dir, "catalog/servers.cue")
	harness.WriteFile(t, servers, harness.ReadFile(t, servers)+"servers: [string]: initializeTimeout: \"60s\"\n")
	r := harness.Serve(t, catalogd.Config{Dir: dir, Tags: []string{"root=" + harness.Root(t), "port=" + port}})
	for _, w := range r.Status().Warnings {
		t.Error(w)
	}
	return r
}

// directCall is the same call at the npm server itself, over its standard streams.
func directCall(t testing.TB, tool, args string) (content, structured json.RawMessage) {
	t.Helper()
	cmd := exec.Command("node", harness.EverythingServer, "stdio")
	cmd.Dir = harness.Root(t)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it is killed
	}()
	fmt.Fprintf(in, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`+"\n", harness.Legacy)
	fmt.Fprintf(in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n")
	fmt.Fprintf(in, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":%q,"arguments":%s}}`+"\n", tool, args)
	lines := bufio.NewReaderSize(out, 1<<20)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(line, []byte(`"id":2`)) {
			return harness.ResultOf(t, line)
		}
	}
}

// TestEverything calls the npm server-everything through the whole product, over both transports and in both eras:
// what comes back is what the server says, byte by byte.
func TestEverything(t *testing.T) {
	t.Parallel()
	r := everything(t)
	for _, c := range []struct{ branch, era, prefix string }{
		{"default", harness.Modern, "everything_"}, {"default", harness.Legacy, "everything_"},
		{"default", harness.Legacy, "web_"}, {"web", harness.Modern, "web_"},
	} {
		l := harness.Connect(t, r.URL, c.branch, c.era)
		t.Run(fmt.Sprintf("%v of %s", l, c.prefix), func(t *testing.T) {
			if got := l.Answer(t.Context(), c.prefix+"echo", map[string]any{"message": "a <b> \"é\" \u2028"}); got != "Echo: a <b> \"é\" \u2028" {
				t.Errorf("echo: %q", got)
			}
			if got := l.Answer(t.Context(), c.prefix+"get-sum", map[string]any{"a": 1, "b": 2.5}); got != "The sum of 1 and 2.5 is 3.5." {
				t.Errorf("sum: %q", got)
			}
			result, err := l.CallTool(t.Context(), mcp.CallToolRequest{Params: mcp.CallToolParams{
				Name: c.prefix + "get-structured-content", Arguments: map[string]any{"location": "Chicago"},
			}})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(map[string]any{"temperature": 36.0, "conditions": "Light rain / drizzle", "humidity": 82.0}, result.StructuredContent); diff != "" {
				t.Errorf("structured content: %s", diff)
			}
			for tool, want := range map[string]string{"echo": "/message", "get-sum": "/a", "get-structured-content": "/location"} {
				if got := l.Answer(t.Context(), c.prefix+tool, nil); !strings.HasPrefix(got, "failed: ") || !strings.Contains(got, want) {
					t.Errorf("%s without arguments: %s", tool, got)
				}
			}
			if got := l.Answer(t.Context(), c.prefix+"nothing", nil); got != harness.Absent {
				t.Errorf("no such tool: %s", got)
			}
		})
	}
	for _, call := range []struct{ tool, args string }{
		{"get-tiny-image", `{}`}, {"echo", `{"message":"\u00e9<>&"}`}, {"get-structured-content", `{"location":"New York"}`},
	} {
		content, structured := directCall(t, call.tool, call.args)
		for branch, prefix := range map[string]string{"default": "everything_", "web": "web_"} {
			gotContent, gotStructured := harness.RawCall(t, r.URL, branch, prefix+call.tool, call.args)
			if !bytes.Equal(gotContent, content) || !bytes.Equal(gotStructured, structured) {
				t.Errorf("%s%s:\n%.300s %s\nwant\n%.300s %s", prefix, call.tool, gotContent, gotStructured, content, structured)
			}
		}
	}
	for _, s := range r.Status().Servers {
		if !s.Trusted || s.State != "ready" || s.Error != "" {
			t.Errorf("%+v", s)
		}
	}
	for _, trust := range []string{`"trust":"everything"`, `"trust":"everything-http"`} {
		if !strings.Contains(r.Log.String(), trust) {
			t.Errorf("%s is not in the log", trust)
		}
	}
}
