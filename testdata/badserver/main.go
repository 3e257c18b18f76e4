// Command badserver is an MCP server of 2025-06-18 that misbehaves on request, for the tests of what that costs the
// clients of catalogd (test/upstream):
//
//	badserver stdio FAULT FILE  speaks on its standard streams, with the one fault
//	badserver http DIR          speaks streamable HTTP, with the fault that a request's path names; says where on its first
//	                            line of output, and ends with its standard input
//
// Its tool "bad" has the fault; so does all else of a server whose fault comes before any call. The tool "good" answers with
// its arguments, and "says" says something while it runs (says.go). What the server gets is written down in FILE, or in DIR by the fault, a line each.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	switch args := os.Args[1:]; {
	case len(args) == 3 && args[0] == "stdio":
		(&child{fault: args[1], journal: args[2], choir: newChoir()}).serve()
	case len(args) == 2 && args[0] == "http":
		serveHTTP(args[1])
	case len(args) == 1 && args[0] == "sleep":
		forever()
	default:
		fmt.Fprintln(os.Stderr, "usage: badserver stdio FAULT FILE | http DIR")
		os.Exit(2)
	}
}

// request is what the server looks at of a message.
type request struct {
	ID     json.RawMessage
	Method string
	Params struct {
		Name      string
		Arguments json.RawMessage
		RequestID json.RawMessage
		Cursor    string
		Meta      struct {
			Token json.RawMessage `json:"progressToken"`
		} `json:"_meta"`
	}
}

// bad reports whether a request is a call of the tool that has the fault.
func (r request) bad() bool { return r.Method == "tools/call" && r.Params.Name == "bad" }

// note appends what came to a journal. It is one write, so lines of several calls don't mix.
func note(journal, format string, args ...any) {
	f, err := os.OpenFile(journal, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	must(err)
	_, err = fmt.Fprintf(f, format+"\n", args...)
	must(err)
	must(f.Close())
}

// came writes a request down.
func came(journal string, r request) {
	note(journal, "%s %s%s", r.Method, r.Params.Name, r.Params.RequestID)
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "badserver:", err)
		os.Exit(70)
	}
}

const handshake = `{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"bad","version":"1"}}`

// greeting is the result of initialize.
func greeting(fault string) string {
	switch fault {
	case "unknown-version":
		return strings.Replace(handshake, "2025-06-18", "1999-12-31", 1)
	case "older-version":
		return strings.Replace(handshake, "2025-06-18", "2024-11-05", 1)
	case "no-tools":
		return strings.Replace(handshake, `"tools":{"listChanged":true}`, `"prompts":{}`, 1)
	case "wrong-greeting":
		return `{"protocolVersion":7,"capabilities":[],"serverInfo":"bad"}`
	case "long-greeting":
		return handshake[:len(handshake)-1] + `,"instructions":"` + strings.Repeat("Call bad. ", 4<<10) + `"}`
	}
	return handshake
}

const definitions = `{"name":"bad","description":"Has the fault.","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}},` +
	`{"name":"good","description":"Answers.","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`

// listing is the result of tools/list.
func listing(fault, cursor string) string {
	switch fault {
	case "twice-named":
		return `{"tools":[` + definitions + `,{"name":"bad","description":"Another.","inputSchema":{"type":"object"}}]}`
	case "same-cursor":
		return `{"tools":[` + definitions + `],"nextCursor":"again"}`
	case "new-cursors":
		return `{"tools":[],"nextCursor":"` + cursor + `x"}`
	case "list-of-nothing":
		return `{"tools":"none"}`
	case "many-tools":
		return `{"tools":[` + strings.TrimSuffix(strings.Repeat(definitions+",", 50_000), ",") + `]}`
	case "one-bad-schema":
		return `{"tools":[` + strings.Replace(definitions, `"inputSchema":{"type":"object"}`, `"inputSchema":true`, 1) + `,7,{"name":[]}]}`
	}
	return `{"tools":[` + definitions + `]}`
}

func response(id json.RawMessage, result string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result)
}

func refusal(id json.RawMessage, code int, message string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%s}}`, id, code, quote(message))
}

func text(s string) string { return `{"content":[{"type":"text","text":` + quote(s) + `}]}` }

func quote(s string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	must(enc.Encode(s))
	return strings.TrimSpace(b.String())
}

func progress(token json.RawMessage, n int) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d}}`, token, n)
}

const listChanged = `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`

// questions are what no server may ask without being let.
func questions() []string {
	var all []string
	for id, method := range []string{"sampling/createMessage", "elicitation/create", "roots/list", "tools/call"} {
		all = append(all, fmt.Sprintf(`{"jsonrpc":"2.0","id":"q%d","method":%q,"params":{"message":"Your password?","messages":[],"maxTokens":1}}`, id, method))
	}
	return all
}

// wrongResults are results that are none, by fault.
var wrongResults = map[string]string{
	"result-list":          `[]`,
	"result-null":          `null`,
	"result-empty":         `{}`,
	"content-text":         `{"content":"text"}`,
	"content-of-texts":     `{"content":["text"]}`,
	"is-error-text":        `{"content":[],"isError":"no"}`,
	"asks-for-input":       `{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create","params":{"message":"Your password?","requestedSchema":{"type":"object","properties":{}}}}}}`,
	"not-utf8":             "{\"content\":[{\"type\":\"text\",\"text\":\"caf\xe9\"}]}",
	"text-of-a-wrong-kind": `{"content":[{"type":7,"text":{}}]}`,
}

// manyBlocks is a result of ten thousand blocks.
func manyBlocks() string {
	return `{"content":[` + strings.TrimSuffix(strings.Repeat(`{"type":"text","text":"x"},`, 50_001), ",") + `]}`
}

// huge writes n MiB of one answer's text.
func huge(write func([]byte) error, id json.RawMessage, n int) error {
	chunk := bytes.Repeat([]byte("x"), 1<<20)
	if err := write([]byte(`{"jsonrpc":"2.0","id":` + string(id) + `,"result":{"content":[{"type":"text","text":"`)); err != nil {
		return err
	}
	for range n {
		if err := write(chunk); err != nil {
			return err
		}
	}
	return write([]byte(`"}]}}`))
}

// journalOf is where the server behind a path writes down what it gets.
func journalOf(dir, fault string) string {
	return filepath.Join(dir, strings.ReplaceAll(fault, "/", "-"))
}
