package upstream

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/catalogd/catalogd/internal/lockfile"
	"github.com/catalogd/catalogd/test/internal/harness"
)

// TestNotificationsReachTheirCaller: what an upstream says during a call reaches the client of that call, all of it, in order and
// before the result, and nobody else: 8 clients whose calls are in flight together, with the same progress token, on one
// connection. Log messages of a child name no call, so they are passed on only where a call runs alone. What a server says of
// other calls on a call's stream (the thief) is heard by nobody.
func TestNotificationsReachTheirCaller(t *testing.T) {
	t.Parallel()
	program, journals := harness.Program(t, "./testdata/badserver"), t.TempDir()
	at := badWeb(t, program, journals)["http"]
	host, port, _ := strings.Cut(at, ":")
	var tools strings.Builder
	for _, server := range []string{"child", "web", "thief"} {
		fmt.Fprintf(&tools, "tools: %s_says: {description: \"Speaks.\", effect: \"read\", strictness: \"open\", timeout: \"60s\", binding: mcp: {server: %q, tool: \"says\"}}\n", server, server)
	}
	r := upstreams(t, fmt.Sprintf(`servers: child: {transport: stdio: {command: %q, args: ["stdio", "none", %q]}, initializeTimeout: "60s"}
servers: web: {transport: http: url: "http://%s/none", initializeTimeout: "60s", maxConnections: 8}
servers: thief: {transport: http: url: "http://%s/steals", initializeTimeout: "60s", maxConnections: 8}
`, program, filepath.Join(journals, "child"), at, at)+tools.String(), fmt.Sprintf(`  children: {command: [%s, stdio], rest: true}
  web: {scheme: http, host: %s, port: %s, addresses: [127.0.0.0/8], max_connections: 8}
`, program, host, port), &lockfile.File{})
	const said = 20
	says := func(server, note string, together int) (progress, messages []string, ok bool) {
		body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"%s_says","arguments":{"note":%q,"n":%d,"together":%d},"_meta":{"progressToken":7,"io.modelcontextprotocol/logLevel":"debug","io.modelcontextprotocol/protocolVersion":%q,"io.modelcontextprotocol/clientCapabilities":{}}}}`,
			server, note, said, together, harness.Modern)
		a := readAnswer(t, r.Post(t, "/branches/loud/mcp", body, "Mcp-Protocol-Version", harness.Modern, "Mcp-Method", "tools/call", "Mcp-Name", server+"_says"))
		if a.code != "" || a.text != note {
			t.Errorf("%s was answered %.500s", note, a.raw)
			return nil, nil, false
		}
		for _, heard := range a.heard {
			if strings.Contains(heard, `"notifications/progress"`) {
				progress = append(progress, heard)
			} else {
				messages = append(messages, heard)
			}
		}
		return progress, messages, true
	}
	whole := func(note string) (progress, messages []string) {
		quoted, err := json.Marshal(note)
		if err != nil {
			t.Fatal(err)
		}
		for i := range said {
			progress = append(progress, fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":%d,"message":%s}}`, i, quoted))
			messages = append(messages, fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"%s %d"}}`, note, i))
		}
		return progress, messages
	}
	for server, rounds := range map[string]int{"child": 10, "web": 10, "thief": 2} {
		for range 3 { // alone
			progress, messages, ok := says(server, "alone", 1)
			wantProgress, wantMessages := whole("alone")
			if ok && (!slices.Equal(progress, wantProgress) || !slices.Equal(messages, wantMessages)) {
				t.Errorf("%s alone heard %s and %s", server, progress, messages)
			}
		}
		var callers sync.WaitGroup
		for c := range 8 {
			callers.Go(func() {
				for n := range rounds {
					note := fmt.Sprintf("call %d of %d", n, c)
					progress, messages, ok := says(server, note, 8)
					if !ok {
						t.Error("the others would wait for this caller's calls")
						return
					}
					wantProgress, wantMessages := whole(note)
					if !slices.Equal(progress, wantProgress) {
						t.Errorf("%s of %s heard %s", note, server, progress)
					}
					if server == "child" {
						for _, m := range messages {
							if !slices.Contains(wantMessages, m) {
								t.Errorf("%s of %s heard another's: %s", note, server, m)
							}
						}
					} else if !slices.Equal(messages, wantMessages) {
						t.Errorf("%s of %s heard %s", note, server, messages)
					}
				}
			})
		}
		callers.Wait()
	}
}
