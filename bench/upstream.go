package main

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// upstream is a trivial MCP server: tools that echo one argument, over streamable HTTP with sessions, in the older eras. Its
// list is encoded once.
type upstream struct {
	list  []byte
	names map[string]bool

	mu       sync.RWMutex
	sessions map[string]bool
}

// request is one message of a client.
type request struct {
	ID     json.RawMessage `json:"id,omitempty"`
	Method string          `json:"method"`
	Params struct {
		Name            string `json:"name"`
		ProtocolVersion string `json:"protocolVersion"`
		Arguments       struct {
			Q string `json:"q"`
		} `json:"arguments"`
	} `json:"params"`
}

const schema = `{"type":"object","properties":{` +
	`"q":{"type":"string","description":"Free text to look for"},` +
	`"limit":{"type":"integer","minimum":1,"maximum":1000,"description":"At most this many rows"},` +
	`"order":{"type":"string","enum":["asc","desc"],"description":"Sort order"},` +
	`"verbose":{"type":"boolean","description":"Include details"},` +
	`"tags":{"type":"array","items":{"type":"string"},"description":"Only rows with all of these tags"}},` +
	`"required":["q"]}`

// serveUpstream serves at "ADDRESS/TOOLS".
func serveUpstream(what string) error {
	addr, count, _ := strings.Cut(what, "/")
	tools, err := strconv.Atoi(count)
	if err != nil {
		return err
	}
	u := &upstream{names: map[string]bool{}, sessions: map[string]bool{}}
	var list bytes.Buffer
	for i := range tools {
		name := fmt.Sprintf("t%05d", i)
		u.names[name] = true
		if i > 0 {
			list.WriteByte(',')
		}
		fmt.Fprintf(&list, `{"name":%q,"description":"Generated tool %d: looks up rows by free text, with order and tags.","annotations":{"readOnlyHint":true},"inputSchema":%s}`, name, i+1, schema)
	}
	u.list = list.Bytes()
	http.Handle("/mcp", u)
	return http.ListenAndServe(addr, nil)
}

func (u *upstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id := r.Header.Get("Mcp-Session-Id")
	switch r.Method {
	case http.MethodPost:
	case http.MethodDelete:
		u.mu.Lock()
		delete(u.sessions, id)
		u.mu.Unlock()
		return
	default:
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, 8<<20))
	var m request
	if err != nil || json.Unmarshal(body, &m) != nil {
		http.Error(w, "bad JSON", http.StatusBadRequest)
		return
	}
	if m.Method == "initialize" {
		id = rand.Text()
		u.mu.Lock()
		u.sessions[id] = true
		u.mu.Unlock()
		w.Header().Set("Mcp-Session-Id", id)
	} else {
		u.mu.RLock()
		known := u.sessions[id]
		u.mu.RUnlock()
		if !known {
			http.Error(w, "no such session", http.StatusNotFound)
			return
		}
	}
	answer := u.answer(&m)
	if answer == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(answer) // the client has gone away
}

// answer is nil for a notification.
func (u *upstream) answer(m *request) []byte {
	if len(m.ID) == 0 {
		return nil
	}
	result := func(text string) []byte {
		return []byte(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":` + text + `}`)
	}
	fail := func(code int, text string) []byte {
		return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%q}}`, m.ID, code, text)
	}
	switch m.Method {
	case "initialize":
		return result(`{"protocolVersion":"` + protocol + `","capabilities":{"tools":{}},"serverInfo":{"name":"upstream","version":"1.0.0"}}`)
	case "ping":
		return result(`{}`)
	case "tools/list":
		return result(`{"tools":[` + string(u.list) + `]}`)
	case "tools/call":
		if !u.names[m.Params.Name] {
			return fail(-32602, "unknown tool "+m.Params.Name)
		}
		text, err := json.Marshal("echo " + m.Params.Arguments.Q)
		if err != nil {
			return fail(-32603, err.Error())
		}
		return result(`{"content":[{"type":"text","text":` + string(text) + `}]}`)
	}
	return fail(-32601, "method not found: "+m.Method)
}
