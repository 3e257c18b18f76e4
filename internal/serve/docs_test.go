package serve_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/internal/serve"
)

// The table of docs/mcp.md is what the front does, over HTTP and on stdio, and its numbers are the defaults.
func TestDocsMCP(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/mcp.md")
	if err != nil {
		t.Fatal(err)
	}
	d := start(t, weather())
	session := d.session(t, "/mcp")
	modern, legacy := attach(t, d, "default"), attach(t, d, "default")
	legacy.send(t, initializeLine)
	legacy.next(t)
	params := map[string]string{
		"tools/call": `"name":"old"`, "logging/setLevel": `"level":"info"`, "subscriptions/listen": `"notifications":{"promptsListChanged":true}`,
		"initialize":     `"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}`,
		"resources/read": `"uri":"x:y"`, "resources/subscribe": `"uri":"x:y"`, "resources/unsubscribe": `"uri":"x:y"`, "prompts/get": `"name":"p"`, "tasks/get": `"taskId":"t"`,
	}
	rows := regexp.MustCompile("(?m)^\\| `([a-z]+(?:/[A-Za-z/]+)?)` \\| (yes|no|passed on) \\| (yes|no|passed on) \\|$").FindAllStringSubmatch(string(page), -1)
	// What is passed on is so of servers that say so, and there is none here; TestConformance holds that it is.
	if len(rows) < 16 {
		t.Fatalf("%d rows", len(rows))
	}
	for _, row := range rows {
		method, p := row[1], params[row[1]]
		answer := func(p *pipe, line string) string {
			p.send(t, line)
			for {
				if got := p.next(t); strings.Contains(got, `"id":1`) && !strings.Contains(got, `"method":`) {
					return got
				}
			}
		}
		for _, got := range []struct{ how, said, body string }{
			{"2026-07-28 over HTTP", row[2], d.modern(t, "/mcp", method, p).body},
			{"2026-07-28 on stdio", row[2], answer(modern, modernBody(method, p))},
			{"older over HTTP", row[3], d.do(t, "POST", "/mcp", legacyBody(method, p), session...).body},
			{"older on stdio", row[3], answer(legacy, legacyBody(method, p))},
		} {
			if served := strings.Contains(got.body, `"result"`); served != (got.said == "yes") {
				t.Errorf("%s, %s: the page says %s; %s", method, got.how, got.said, got.body)
			}
		}
	}
	for _, said := range serve.Defaults() {
		if !strings.Contains(string(page), said) {
			t.Errorf("the page does not say %q", said)
		}
	}
}
