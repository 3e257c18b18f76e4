package calls

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/catalogd/catalogd"
	"github.com/catalogd/catalogd/test/internal/harness"
)

// BenchmarkHTTP is what a client on the same machine waits for, over one connection that stays open: a jq call of the
// starter catalog with the shipped policy's decision, its program run in the daemon or in a child, and the list of 1,000
// tools.
func BenchmarkHTTP(b *testing.B) {
	starter := harness.Serve(b, catalogd.Config{Dir: harness.Starter(b)})
	children := harness.Serve(b, catalogd.Config{Dir: harness.Starter(b), Worker: []string{compileWorker}})
	thousand := harness.Starter(b)
	harness.ManyTools(b, thousand, 1_000, `jq: program: ".city"`)
	many := harness.Serve(b, catalogd.Config{Dir: thousand})
	for _, bench := range []struct{ name, url, method, tool, params, want string }{
		{"call", starter.URL, "tools/call", "slugify", `"name":"slugify","arguments":{"title":"Hello, World!"},`, "hello-world"},
		{"call-in-child", children.URL, "tools/call", "slugify", `"name":"slugify","arguments":{"title":"Hello, World!"},`, "hello-world"},
		{"list", many.URL, "tools/list", "", "", "tool_009_99"},
	} {
		b.Run(bench.name, func(b *testing.B) {
			body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s"_meta":{"io.modelcontextprotocol/protocolVersion":%q,"io.modelcontextprotocol/clientCapabilities":{}}}}`,
				bench.method, bench.params, harness.Modern)
			var answer bytes.Buffer
			b.ReportAllocs()
			for b.Loop() {
				req, err := http.NewRequest(http.MethodPost, bench.url+"/mcp", strings.NewReader(body))
				if err != nil {
					b.Fatal(err)
				}
				for name, value := range map[string]string{
					"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
					"Mcp-Protocol-Version": harness.Modern, "Mcp-Method": bench.method, "Mcp-Name": bench.tool,
				} {
					if value != "" {
						req.Header.Set(name, value)
					}
				}
				resp, err := http.DefaultClient.Do(req)
				if err != nil {
					b.Fatal(err)
				}
				answer.Reset()
				_, err = io.Copy(&answer, resp.Body)
				resp.Body.Close()
				if err != nil || !strings.Contains(answer.String(), bench.want) {
					b.Fatalf("%v, %s: %.300s", err, resp.Status, answer.String())
				}
			}
		})
	}
}
