package mcpserver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/internal/mcpserver"
	"github.com/catalogd/catalogd/internal/servetest"
	"github.com/catalogd/catalogd/internal/strictjson/badjson"
	"github.com/catalogd/catalogd/registry"
)

// TestBadInput is the table of what clients get wrong (facts, bad inputs, section E). Nothing runs after a refusal.
func TestBadInput(t *testing.T) {
	t.Parallel()
	var ran atomic.Int32
	d := servetest.Start(t, servetest.Catalog{ID: "g1", Branches: map[string][]string{"default": nil}, Tools: []servetest.Fixture{
		servetest.Tool("canary", `{"type":"object","properties":{}}`, servetest.Invoker(func(context.Context, contract.Args) (*registry.Result, error) {
			ran.Add(1)
			return servetest.Text("ran")(context.Background(), contract.Args{})
		}), func(t *registry.Tool) { t.Args.Strictness = contract.Open }),
	}})
	session := d.Session(t, "/mcp")
	call := func(inner string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{` + inner + `}}`
	}
	deep := func(n int) string {
		return call(`"name":"canary","arguments":{"a":` + strings.Repeat("[", n) + strings.Repeat("]", n) + `}`)
	}
	for _, test := range []struct {
		id, name, body string
		status, code   int
	}{
		{"E1", "not JSON", `{`, 400, -32700},
		{"E1", "empty", ``, 400, -32700},
		{"E1", "truncated", call(`"name":"canary"`)[:40], 400, -32700},
		{"E1", "null", `null`, 400, -32600},
		{"E1", "a string", `"tools/call"`, 400, -32600},
		{"E1", "batch", `[` + call(`"name":"canary"`) + `]`, 400, -32600},
		{"E1", "two objects", call(`"name":"canary"`) + call(`"name":"canary"`), 400, -32700},
		{"E1", "invalid UTF-8", call(`"name":"canary","arguments":{"a":"` + "\xff" + `"}`), 400, -32700},
		{"E1", "a byte order mark", "\ufeff" + call(`"name":"canary"`), 400, -32700},
		{"E2", "jsonrpc 1.0", `{"jsonrpc":"1.0","id":1,"method":"tools/call","params":{"name":"canary"}}`, 400, -32600},
		{"E2", "no jsonrpc", `{"id":1,"method":"tools/call","params":{"name":"canary"}}`, 400, -32600},
		{"E2", "no method", `{"jsonrpc":"2.0","id":1,"params":{"name":"canary"}}`, 400, -32600},
		{"E2", "method a number", `{"jsonrpc":"2.0","id":1,"method":1}`, 400, -32600},
		{"E2", "method and result", `{"jsonrpc":"2.0","id":1,"method":"tools/call","result":{},"params":{"name":"canary"}}`, 400, -32600},
		{"E2", "id null", `{"jsonrpc":"2.0","id":null,"method":"tools/call","params":{"name":"canary"}}`, 400, -32600},
		{"E2", "id an object", `{"jsonrpc":"2.0","id":{},"method":"tools/call","params":{"name":"canary"}}`, 400, -32600},
		{"E2", "id a float", `{"jsonrpc":"2.0","id":1.5,"method":"tools/call","params":{"name":"canary"}}`, 400, -32600},
		{"E2", "id with an exponent", `{"jsonrpc":"2.0","id":1e3,"method":"tools/call","params":{"name":"canary"}}`, 400, -32600},
		{"E2", "id huge", `{"jsonrpc":"2.0","id":9007199254740993,"method":"tools/call","params":{"name":"canary"}}`, 400, -32600},
		{"E2", "id long", `{"jsonrpc":"2.0","id":"` + strings.Repeat("x", 300) + `","method":"tools/call","params":{"name":"canary"}}`, 400, -32600},
		{"E2", "params a list", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":["canary"]}`, 400, -32600},
		{"E2", "params null", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":null}`, 400, -32600},
		{"E2", "_meta a string", call(`"name":"canary","_meta":"x"`), 400, -32600},
		{"E3", "name twice", call(`"name":"nosuch","name":"canary"`), 400, -32600},
		{"E3", "name in another case", call(`"name":"nosuch","NAME":"canary"`), 400, -32600},
		{"E3", "method in another case", `{"jsonrpc":"2.0","id":1,"method":"ping","METHOD":"tools/call","params":{"name":"canary"}}`, 400, -32600},
		{"E3", "params in another case only", `{"jsonrpc":"2.0","id":1,"method":"tools/call","PARAMS":{"name":"canary"}}`, 400, -32600},
		{"E3", "params with a long s", `{"jsonrpc":"2.0","id":1,"method":"tools/call","param\u017f":{"name":"canary"}}`, 400, -32600},
		{"E3", "name twice, once escaped", call(`"name":"nosuch","n\u0061me":"canary"`), 400, -32600},
		{"E3", "name with a NUL", call(`"name":"nosuch","name\u0000":"canary"`), 400, -32600},
		{"E3", "name with a NUL before", call(`"name":"nosuch","\u0000name":"canary"`), 400, -32600},
		{"E3", "name with a control character", call(`"name":"nosuch","name\u0001":"canary"`), 400, -32600},
		{"E3", "name with a zero width space", call(`"name":"nosuch","na\u200bme":"canary"`), 400, -32600},
		{"E3", "name with a byte order mark", call(`"name":"nosuch","\ufeffname":"canary"`), 400, -32600},
		{"E3", "name with a Hangul filler", call(`"name":"nosuch","name\u3164":"canary"`), 400, -32600},
		{"E3", "name with a variation selector", call(`"name":"nosuch","name\ufe0f":"canary"`), 400, -32600},
		{"E3", "name with a space", call(`"name":"nosuch","name ":"canary"`), 400, -32600},
		{"E3", "name in full width", call(`"name":"nosuch","\uff4eame":"canary"`), 400, -32600},
		{"E3", "a NUL in a key of params that is nobody's", call(`"name":"canary","x\u0000":1`), 400, -32600},
		{"E3", "an escape sequence in a key of the message", `{"jsonrpc":"2.0","id":1,"method":"tools/call","\u001b[2J":1,"params":{"name":"canary"}}`, 400, -32600},
		{"E3", "a C1 control in a key of _meta", call(`"name":"canary","_meta":{"a\u009b":1}`), 400, -32600},
		{"E3", "progressToken in another case", call(`"name":"canary","_meta":{"progresstoken":1}`), 400, -32600},
		{"E3", "the version in _meta with a NUL", call(`"name":"canary","_meta":{"io.modelcontextprotocol/protocolVersion\u0000":"2026-07-28"}`), 400, -32600},
		{"E3", "the dialect in _meta in another case", call(`"name":"canary","_meta":{"catalogd/Dialect":"openai-strict"}`), 400, -32600},
		{"E3", "an argument twice", call(`"name":"canary","arguments":{"a":1,"a":2}`), 400, -32600},
		{"E3", "an argument twice, deep", call(`"name":"canary","arguments":{"a":[{"b":{"c":1,"c":1}}]}`), 400, -32600},
		{"E4", "unknown tool", call(`"name":"nosuch"`), 200, -32602},
		{"E4", "empty name", call(`"name":""`), 200, -32602},
		{"E6", "no params", `{"jsonrpc":"2.0","id":1,"method":"tools/call"}`, 400, -32602},
		{"E6", "no params, no id", `{"jsonrpc":"2.0","method":"tools/call"}`, 400, -32602},
		{"E6", "no name", call(`"arguments":{}`), 400, -32602},
		{"E6", "name a number", call(`"name":1`), 400, -32602},
		{"E6", "arguments null", call(`"name":"canary","arguments":null`), 400, -32602},
		{"E6", "arguments a list", call(`"name":"canary","arguments":[1]`), 400, -32602},
		{"E6", "arguments a string", call(`"name":"canary","arguments":"{}"`), 400, -32602},
		{"E9", "too deep", deep(300), 400, -32600},
		{"E9", "too deep beside the arguments", call(`"name":"canary","_meta":{"a":` + strings.Repeat("[", 300) + strings.Repeat("]", 300) + `}`), 400, -32600},
		{"E10", "an unpaired surrogate in the name", call(`"name":"canary\ud800"`), 400, -32600},
		{"E10", "an unpaired surrogate in _meta", call(`"name":"canary","_meta":{"a":"\udc00"}`), 400, -32600},
		{"E10", "an unpaired surrogate in a key of params", call(`"name":"canary","\ud800":1`), 400, -32600},
		{"E10", "an unpaired surrogate in the arguments and beside them", call(`"name":"canary","arguments":{"a":"\ud800"},"x":"\ud800"`), 400, -32600},
		{"E10", "an unpaired surrogate in another method's arguments", `{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"p","arguments":{"a":"\ud800"}}}`, 400, -32600},
	} {
		t.Run(test.id+"/"+test.name, func(t *testing.T) {
			r := d.Do(t, "POST", "/mcp", test.body, session...)
			_, failure := r.Result(t)
			if r.Status != test.status || failure["code"] != float64(test.code) {
				t.Errorf("%d %s; want %d %d", r.Status, r.Body, test.status, test.code)
			}
		})
	}
	// What a model can repair is a result that names the place.
	for _, test := range []struct{ id, name, body, pointer, expected string }{
		{"E9", "too deep for arguments", deep(140), "", "at most 128 levels of nesting"},
		{"E10", "an unpaired surrogate, low", call(`"name":"canary","arguments":{"a":"\udc00"}`), "/a", "both halves of a surrogate pair"},
		{"E10", "an unpaired surrogate, high", call(`"name":"canary","arguments":{"a":"\ud800x"}`), "/a", "both halves of a surrogate pair"},
		{"E10", "an unpaired surrogate, at the end", call(`"name":"canary","arguments":{"a":[{"b":"\ud800"}]}`), "/a/0/b", "both halves of a surrogate pair"},
		{"E10", "two high surrogates", call(`"name":"canary","arguments":{"a":"\ud800\ud800"}`), "/a", "both halves of a surrogate pair"},
		{"E10", "an unpaired surrogate in a key", call(`"name":"canary","arguments":{"a":{"\ud800":1}}`), "/a", "both halves of a surrogate pair"},
	} {
		t.Run(test.id+"/"+test.name, func(t *testing.T) {
			result, failure := d.Do(t, "POST", "/mcp", test.body, session...).Result(t)
			meta, _ := result["_meta"].(map[string]any)
			told, _ := meta["catalogd/error"].(map[string]any)
			violations, _ := told["violations"].([]any)
			if failure != nil || result["isError"] != true || told["code"] != "invalid_arguments" || len(violations) != 1 {
				t.Fatalf("%v %v", result, failure)
			}
			if v := violations[0].(map[string]any); v["pointer"] != test.pointer || v["expected"] != test.expected {
				t.Errorf("got %v, want %q at %q", v, test.expected, test.pointer)
			}
		})
	}
	if n := ran.Load(); n != 0 {
		t.Errorf("the tool ran %d times", n)
	}
	for i, good := range []string{
		`"name":"canary"`, `"name":"canary","arguments":{}`, `"name":"canary","arguments":{"a":{"name":1,"NAME":2,"Params":3}}`,
		`"name":"canary","arguments":{"a":"\ud83d\ude00 \\u \" \\"}`, `"n\u0061me":"canary"`, `"name":"canary","vendor/x-ключ":1,"_meta":{"example.com/é":"\u0000"}`, `"name":"canary","arguments":{"name\u0000":1,"na\u200bme":2}`, `"name" : "canary" , "arguments" : { "a" : [ 1 , -0 , 1e5 , true , null , [ ] , { } ] } `,
	} {
		result, failure := d.Do(t, "POST", "/mcp", call(good), session...).Result(t)
		if failure != nil || result["isError"] != nil || ran.Load() != int32(i+1) {
			t.Errorf("%s: %v %v", good, result, failure)
		}
	}
	badHTTP(t)
	badOverload(t)
	for _, row := range []struct {
		name string
		test func(*testing.T)
	}{
		{"E7/digits", numbersAreKept},
		{"E7/values", values},
		{"E5/all violations", violations},
		{"E8/endless body", endlessBody},
		{"E11/cancel", cancel},
		{"E11/cancel on stdio", stdioCancel},
		{"E12/disconnect", disconnectCancels},
		{"E14/before everything", guardComesFirst},
		{"E15/sessions", sessions},
		{"E19/end of stdin", stdioPiped},
		{"E19/end of stdin, bounded", stdinEndsBounded},
		{"E19/lines", stdioErrors}, // E20 too
		{"E19/long lines", stdioLines},
		{"E19/stdout closed", stdoutCloses},
		{"E19/stdout not read", stdoutNotRead},
	} {
		t.Run(row.name, row.test)
	}
}

// TestScanBadJSON holds that a message is refused with any bad JSON in it, at any place.
func TestScanBadJSON(t *testing.T) {
	t.Parallel()
	scan := func(body []byte) error {
		if _, _, _, code, text := mcpserver.Scan(body); code != 0 {
			return fmt.Errorf("%d: %s", code, text)
		}
		return nil
	}
	call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x",`
	badjson.Refused(t, `%s`, call+`"arguments":{}}}`, nil, scan)
	badjson.Refused(t, call+`"_meta":{"a":%s}}}`, `{}`, nil, scan)
	badjson.Refused(t, call+`"arguments":{"a":%s}}}`, `{}`, badjson.Accepted{
		"both halves of a surrogate pair": "the contract refuses it, and names its place",
	}, scan)
}

// badHTTP is the part of section E that HTTP sees before any JSON.
func badHTTP(t *testing.T) {
	d := servetest.Start(t, servetest.Weather())
	body := servetest.ModernBody("tools/list", "")
	good := servetest.ModernHeader("tools/list", "")
	for _, test := range []struct {
		id, name, method, path, body string
		header                       []string
		status                       int
	}{
		{"E8", "5 MiB", "POST", "/mcp", strings.Repeat(" ", 5<<20) + body, good, 413},
		{"E17", "..", "POST", "/mcp/../branches/research/mcp", body, good, 404},
		{"E17", ".. in a branch", "POST", "/branches/default/../research/mcp", body, good, 404},
		{"E17", "an encoded slash", "POST", "/branches/default%2Fmcp", body, good, 404},
		{"E17", "encoded dots", "POST", "/branches/default/%2e%2e/research/mcp", body, good, 404},
		{"E17", "a double slash", "POST", "//mcp", body, good, 404},
		{"E17", "no branch", "POST", "/branches//mcp", body, good, 404},
		{"E17", "two slashes at the end", "POST", "/mcp//", body, good, 404},
		{"E17", "dots at the end", "POST", "/mcp/.", body, good, 404},
		{"E17", "a slash at the end", "POST", "/mcp/", body, good, 200},
		{"E17", "a slash at the end of a branch", "POST", "/branches/research/mcp/", body, good, 200},
		{"E17", "a slash at the end of no branch", "POST", "/branches//mcp/", body, good, 404},
		{"E17", "a slash at the end of another path", "GET", "/status/", "", nil, 404},
		{"E17", "another case", "POST", "/branches/Research/mcp", body, good, 404},
		{"E17", "PUT", "PUT", "/mcp", body, append(good, "Content-Type", "application/json"), 405},
		{"E18", "text/plain", "POST", "/mcp", body, append(good, "Content-Type", "text/plain"), 415},
		{"E18", "no type", "POST", "/mcp", body, append(good, "Content-Type", ""), 415},
		{"E18", "utf-16", "POST", "/mcp", body, append(good, "Content-Type", "application/json; charset=utf-16"), 415},
		{"E18", "gzip", "POST", "/mcp", body, append(good, "Content-Encoding", "gzip"), 415},
		{"E18", "accepts only XML", "POST", "/mcp", body, append(good, "Accept", "text/xml"), 406},
		{"E18", "utf-8", "POST", "/mcp", body, append(good, "Content-Type", "application/json; charset=UTF-8"), 200},
		{"E18", "accepts anything", "POST", "/mcp", body, append(good, "Accept", "*/*"), 200},
	} {
		t.Run(test.id+"/"+test.name, func(t *testing.T) {
			if r := d.Do(t, test.method, test.path, test.body, test.header...); r.Status != test.status {
				t.Errorf("%d %s; want %d", r.Status, r.Body, test.status)
			}
		})
	}
}

// Headers are cut off by size; by time too, which is TestBadInput/E13.
func TestLongHeaders(t *testing.T) {
	t.Parallel()
	d := servetest.Start(t, servetest.Weather())
	if r := d.Do(t, "GET", "/healthz", "", "X-Long", strings.Repeat("x", 64<<10)); r.Status != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("64 KiB of headers: %d", r.Status)
	}
}

// A body without an end is cut off at the cap.
func endlessBody(t *testing.T) {
	t.Parallel()
	d := servetest.Start(t, servetest.Weather())
	r, err := http.NewRequest("POST", d.URL+"/mcp", endless{})
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		return // the server closed the connection while we were writing
	}
	defer got.Body.Close()
	if got.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("%d", got.StatusCode)
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

// Whatever the scan accepts, a lenient parser reads as the same call (T6).
func FuzzScan(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"a":["\ud83d\ude00",1e3]}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"n\u0061me":"x","NAME":"y"}}`, `{"jsonrpc":"2.0","method":"tools/call"}`, `{`, `[]`, `{"a":{"b":[{}]}} `, `"\\"`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		method, tool, arguments, code, text := mcpserver.Scan(body)
		if code != 0 {
			if text == "" {
				t.Errorf("refused with %d and no reason", code)
			}
			return
		}
		var lenient struct {
			Method string
			Params struct {
				Name      any
				Arguments json.RawMessage
			}
		}
		if err := json.Unmarshal(body, &lenient); err != nil {
			t.Fatalf("accepted %q: %v", body, err)
		}
		if method != lenient.Method {
			t.Errorf("%q is %q to us and %q to others", body, method, lenient.Method)
		}
		if method != "tools/call" {
			return
		}
		if tool != lenient.Params.Name || !bytes.Equal(arguments, lenient.Params.Arguments) {
			t.Errorf("%q calls %q %s for us, %q %s for others", body, tool, arguments, lenient.Params.Name, lenient.Params.Arguments)
		}
	})
}
