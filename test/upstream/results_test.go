package upstream

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/catalogd/catalogd"
	"github.com/catalogd/catalogd/test/internal/harness"
)

// revisions are those of MCP, the newest first.
var revisions = []string{harness.Modern, "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}

// TestDocsResults holds the table of docs/mcp.md about results: each row for a server and a client of each revision that it
// names. All else of a result is as it came.
func TestDocsResults(t *testing.T) {
	t.Parallel()
	rows := resultRows(t)
	if len(rows) < 18 {
		t.Fatalf("%d rows", len(rows))
	}
	servers := map[string]*upstreamServer{}
	var catalog, entries strings.Builder
	for i, version := range revisions {
		s := newUpstreamServer(t, version == harness.Modern)
		s.version = version
		servers[version] = s
		entries.WriteString(s.entry(fmt.Sprint("s", i)))
		fmt.Fprintf(&catalog, "servers: s%d: {transport: http: url: \"%s/mcp\", initializeTimeout: \"60s\"}\n", i, s.URL)
		for tool, more := range map[string]string{"plain": "", "result": "result: {a?: int, cut?: string}", "post": "post: \"{b: .a}\"", "redact": ""} {
			fmt.Fprintf(&catalog, "tools: %s_%d: {description: \"A tool.\", effect: \"read\", timeout: \"60s\", binding: mcp: {server: \"s%d\", tool: \"read\"}, %s}\n", tool, i, i, more)
		}
	}
	dir := harness.Assemble(t, "testdata/conformance")
	if err := os.Remove(filepath.Join(dir, "catalog/conformance.cue")); err != nil {
		t.Fatal(err)
	}
	harness.WriteFile(t, filepath.Join(dir, "catalog/servers.cue"), "package catalog\n\nbranches: default: {}\n\n"+catalog.String())
	harness.WriteFile(t, filepath.Join(dir, "policy/trust/data.yaml"), "entries:\n"+entries.String())
	harness.WriteFile(t, filepath.Join(dir, "policy/access/data.yaml"), "branches:\n  default: {tools: [\"*\"]}\n")
	harness.WriteFile(t, filepath.Join(dir, "policy/redact.rego"), "package catalogd.result\n\nredact contains \"/key\" if startswith(input.tool.name, \"redact_\")\n")
	r := harness.Serve(t, catalogd.Config{Dir: dir})
	for _, w := range r.Status().Warnings {
		t.Error(w)
	}
	sessions := map[string][]string{}
	for _, version := range revisions[1:] {
		sessions[version], _ = sessionOf(t, r, version)
	}
	for _, row := range rows {
		for i, from := range revisions {
			if !names(row.server, from) {
				continue
			}
			s := servers[from]
			s.mu.Lock()
			s.result = row.sent
			s.mu.Unlock()
			for _, to := range revisions {
				if !names(row.client, to) {
					continue
				}
				body, header := modernCall(fmt.Sprintf("%s_%d", row.tool, i), "")
				if to != harness.Modern {
					body = fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"%s_%d","arguments":{}}}`, row.tool, i)
					header = sessions[to]
				}
				if got := withoutOurs(t, r.Post(t, "/mcp", body, header...)); got != row.gets {
					t.Errorf("%s, from %s to %s\nsent %s\ngot  %s\nwant %s", row.what, from, to, row.sent, got, row.gets)
				}
			}
		}
	}
}

// resultRow is one row of the table.
type resultRow struct{ what, server, client, tool, sent, gets string }

func resultRows(t *testing.T) (rows []resultRow) {
	t.Helper()
	cell := regexp.MustCompile("^`(.*)`$")
	for line := range strings.Lines(harness.ReadFile(t, "docs/mcp.md")) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		if len(cells) != 6 || !strings.Contains(line, "`{") {
			continue
		}
		for i, c := range cells {
			if c = strings.TrimSpace(c); i > 0 && cell.MatchString(c) {
				c = cell.FindStringSubmatch(c)[1]
			}
			cells[i] = c
		}
		row := resultRow{cells[0], cells[1], cells[2], strings.Trim(strings.TrimPrefix(cells[3], "with "), "`"), cells[4], cells[5]}
		if row.gets == "the same" {
			row.gets = row.sent
		}
		if !json.Valid([]byte(row.sent)) || !json.Valid([]byte(row.gets)) || !slices.Contains([]string{"plain", "result", "post", "redact"}, row.tool) {
			t.Fatalf("the row can't be read: %+v", row)
		}
		rows = append(rows, row)
	}
	return rows
}

// names reports whether a cell names a revision.
func names(cell, revision string) bool {
	return cell == revision || cell == "any" || cell == "older" && revision != harness.Modern
}

var ours = regexp.MustCompile(`,?"(catalogd/call|io.modelcontextprotocol/serverInfo)":\{[^{}]*\}`)

// withoutOurs is the result of an answer without what catalogd says of each call, which must be there.
func withoutOurs(t *testing.T, answer string) string {
	t.Helper()
	result, ok := strings.CutPrefix(strings.TrimSpace(answer), `{"jsonrpc":"2.0","id":1,"result":`)
	if !ok || !strings.Contains(result, `"catalogd/call":{"id":"`) {
		t.Fatalf("the answer is %s", answer)
	}
	result = ours.ReplaceAllString(strings.TrimSuffix(result, "}"), "")
	return strings.NewReplacer(`,"_meta":{}`, "", `"_meta":{},`, "").Replace(result)
}
