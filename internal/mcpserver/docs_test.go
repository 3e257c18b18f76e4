package mcpserver_test

import (
	"fmt"
	"io"
	"net"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/internal/mcpserver"
	"github.com/catalogd/catalogd/internal/servetest"
)

// The table of docs/mcp.md is what the front does, over HTTP and on stdio, and its numbers are the defaults.
func TestDocsMCP(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/mcp.md")
	if err != nil {
		t.Fatal(err)
	}
	d := servetest.Start(t, servetest.Weather())
	session := d.Session(t, "/mcp")
	modern, legacy := servetest.Attach(t, d, "default"), servetest.Attach(t, d, "default")
	legacy.Send(t, initializeLine)
	legacy.Next(t)
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
		answer := func(p *servetest.Pipe, line string) string {
			p.Send(t, line)
			for {
				if got := p.Next(t); strings.Contains(got, `"id":1`) && !strings.Contains(got, `"method":`) {
					return got
				}
			}
		}
		for _, got := range []struct{ how, said, body string }{
			{"2026-07-28 over HTTP", row[2], d.Modern(t, "/mcp", method, p).Body},
			{"2026-07-28 on stdio", row[2], answer(modern, servetest.ModernBody(method, p))},
			{"older over HTTP", row[3], d.Do(t, "POST", "/mcp", servetest.LegacyBody(method, p), session...).Body},
			{"older on stdio", row[3], answer(legacy, servetest.LegacyBody(method, p))},
		} {
			if served := strings.Contains(got.body, `"result"`); served != (got.said == "yes") {
				t.Errorf("%s, %s: the page says %s; %s", method, got.how, got.said, got.body)
			}
		}
	}
	for _, said := range mcpserver.Defaults() {
		if !strings.Contains(string(page), said) {
			t.Errorf("the page does not say %q", said)
		}
	}
}

// Each row of docs/mcp.md about how a request is read is what the front does, for each thing that the row names.
func TestDocsRequests(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/mcp.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "## How a request is read\n")
	section, _, _ = strings.Cut(section, "\n## ")
	rows := regexp.MustCompile(`(?m)^\| ([^|]+) \| ([^|]+) \|$`).FindAllStringSubmatch(section, -1)[1:]

	d := servetest.Start(t, servetest.Weather())
	session := d.Session(t, "/mcp")
	ping := servetest.LegacyBody("ping", "")
	call := func(params string) string { return servetest.LegacyBody("tools/call", `"name":"old"`+params) }
	nested := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	posted := func(bodies ...string) (answers []string) {
		for _, body := range bodies {
			r := d.Do(t, "POST", "/mcp", body, session...)
			answers = append(answers, fmt.Sprint(r.Status, " ", r.Body))
		}
		return answers
	}
	// sent is one request with these lines, byte for byte.
	sent := func(lines ...string) string {
		conn, err := net.Dial("tcp", strings.TrimPrefix(d.URL, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprintf(conn, "%s\r\nConnection: close\r\n\r\n", strings.Join(lines, "\r\n"))
		answer, err := io.ReadAll(conn)
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimPrefix(string(answer), "HTTP/1.1 ")
	}
	twice := func(header ...string) string {
		all := []string{"POST /mcp HTTP/1.1", "Host: " + strings.TrimPrefix(d.URL, "http://"), fmt.Sprint("Content-Length: ", len(ping)), "Content-Type: application/json"}
		for i := 0; i < len(session); i += 2 {
			all = append(all, session[i]+": "+session[i+1])
		}
		all = append(all, header...)
		return sent(append(all[:len(all)-1], all[len(all)-1]+"\r\nConnection: close\r\n\r\n"+ping)...)
	}
	cases := []struct {
		row     string // how it begins
		answers []string
		want    []string
	}{
		{"no JSON", posted("{", "{\"a\":\"\xff\"}"), []string{"400 ", "-32700"}},
		{"a list of messages", posted(
			"["+ping+"]", strings.Replace(ping, `"id":1`, `"id":null`, 1), strings.Replace(ping, `"id":1`, `"id":1.5`, 1),
			strings.Replace(ping, `"id":1`, `"id":9007199254740992`, 1), strings.Replace(ping, "{}", "[]", 1),
		), []string{"400 ", "-32600"}},
		{"a duplicate key", posted(
			call(`,"arguments":{"a":{"b":1,"b":2}}`), call(`,"_meta":{"a":`+nested(300)+`}`), strings.Replace(ping, `"id":1`, `"id":"`+strings.Repeat("x", 300)+`"`, 1),
		), []string{"400 ", "-32600"}},
		{"in the message", posted(
			strings.Replace(ping, `"id"`, `"id":1,"ID"`, 1), call(`,"NAME":"x"`), call(`,"\uff4eame":"x"`), call(`,"name ":"x"`), call(`,"na\u200bme":"x"`), call(`,"x\u0007":1`),
			call(`,"_meta":{"ProgressToken":1}`),
		), []string{"400 ", "-32600"}},
		{"an unpaired surrogate (", posted(strings.Replace(ping, `"params":{}`, `"params":{"a":"\ud800"}`, 1)), []string{"400 ", "-32600"}},
		{"an unpaired surrogate, more", posted(
			call(`,"arguments":{"a":"\ud800"}`), call(`,"arguments":{"a":`+nested(130)+`}`), call(`,"arguments":{"a":1e400}`),
		), []string{"200 ", `"isError":true`, "invalid_arguments"}},
		{"`Mcp-*`, ", []string{
			twice("Mcp-Session-ID: a"), twice("mcp-protocol-version: " + servetest.LegacyVersion), twice("Authorization: a", "Authorization: b"), twice("Content-Type: application/json"),
			twice("Content-Encoding: identity", "Content-Encoding: gzip"), twice("Last-Event-ID: 1", "Last-Event-ID: 2"), twice("Mcp-Param-X: 1", "MCP-PARAM-X: 1"),
		}, []string{"400 ", "-32020"}},
		{"`Host`", []string{twice("Host: localhost")}, []string{"400 "}},
		{"`Origin`", []string{twice("Origin: "+d.URL, "Origin: "+d.URL)}, []string{"403 "}},
		{"a GET without a session", []string{sent("GET /mcp HTTP/1.1", "Host: "+strings.TrimPrefix(d.URL, "http://"), "Accept: text/event-stream")}, []string{"405 ", "Allow: POST\r\n"}},
		{"a POST or DELETE without a session", []string{
			fmt.Sprint(d.Do(t, "POST", "/mcp", ping).Status), fmt.Sprint(d.Do(t, "DELETE", "/mcp", "").Status),
		}, []string{"400"}},
		{"a session that is not", []string{
			fmt.Sprint(d.Do(t, "POST", "/branches/research/mcp", ping, session...).Status), fmt.Sprint(d.Do(t, "POST", "/mcp", ping, "Mcp-Session-Id", "x").Status),
		}, []string{"404"}},
		{"`Mcp-Protocol-Version` of an unknown", []string{
			fmt.Sprint(d.Do(t, "POST", "/mcp", ping, append(slices.Clone(session), "Mcp-Protocol-Version", "2025-01-01")...).Status),
		}, []string{"400"}},
		{"a response to nothing", posted(`{"jsonrpc":"2.0","id":1,"result":{}}`, `{"jsonrpc":"2.0","id":"a","error":{"code":1,"message":"m"}}`), []string{"202 "}},
	}
	if len(rows) != len(cases) {
		t.Errorf("the page has %d rows, and %d are tried", len(rows), len(cases))
	}
	for _, c := range cases {
		n := slices.IndexFunc(rows, func(row []string) bool { return strings.HasPrefix(row[1], c.row) })
		if n < 0 {
			t.Errorf("the page has no row %q", c.row)
			continue
		}
		if said := strings.TrimSpace(c.want[0]); said != "200" && !strings.HasPrefix(rows[n][2], said) {
			t.Errorf("%s: the page says %s", c.row, rows[n][2])
		}
		for i, answer := range c.answers {
			for _, part := range c.want {
				if !strings.Contains(answer, part) {
					t.Errorf("%s, the %d. case: got %s, want %s", c.row, i+1, answer, part)
				}
			}
		}
	}
}
