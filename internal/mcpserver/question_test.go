package mcpserver_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/internal/servetest"
)

const (
	// askedParams has what a parser of numbers, or one that sorts, would change.
	askedParams = `{"message":"Which?","z":9007199254740993,"a":{"é":"<&>"},"requestedSchema":{"type":"object","properties":{}}}`
	answered    = `{"action":"accept","content":{"b":9007199254740993,"a":"<&>"}}`
	capable     = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"elicitation":{}},"clientInfo":{"name":"test","version":"1"}}}`
)

// asking is an upstream of 2025-06-18 whose tool asks its client in each call, with the given method, and answers with
// what came back.
func asking(t *testing.T, method string) http.HandlerFunc {
	replies := make(chan string, 1)
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the client has gone
		}
		var req struct {
			ID     json.RawMessage
			Method string
			Params struct{ Capabilities map[string]json.RawMessage }
		}
		if err := json.Unmarshal(body, &req); err != nil {
			t.Errorf("the upstream got %s", body)
			return
		}
		switch {
		case req.Method == "initialize":
			for _, kind := range []string{"elicitation", "sampling", "roots"} {
				if string(req.Params.Capabilities[kind]) != "{}" {
					t.Errorf("the upstream is told of %s: %s", kind, body)
				}
			}
			scriptedServer(w, again(r, body))
		case req.Method == "tools/call":
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":\"q 1\",\"method\":%q,\"params\":%s}\n\n", method, askedParams)
			w.(http.Flusher).Flush()
			select {
			case reply := <-replies:
				text, err := json.Marshal(reply)
				if err != nil {
					t.Error(err)
				}
				fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"content\":[{\"type\":\"text\",\"text\":%s}]}}\n\n", req.ID, text)
			case <-r.Context().Done():
			}
		case req.Method == "" && req.ID != nil:
			replies <- string(body)
			w.WriteHeader(http.StatusAccepted)
		default:
			scriptedServer(w, again(r, body))
		}
	}
}

func again(r *http.Request, body []byte) *http.Request {
	r.Body = io.NopCloser(strings.NewReader(string(body)))
	return r
}

// TestBadInputRelay has row D18: what an upstream asks during a call reaches the client of that call where the call
// decision lets it through and the client has declared it, over each transport; else the upstream learns so, and the
// client sees nothing of it.
func TestBadInputRelay(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, method string
		relay        []string
		initialize   string
		reaches      bool
	}{
		{"D18/allowed", "elicitation/create", []string{"elicitation"}, capable, true},
		{"D18/not allowed", "elicitation/create", nil, capable, false},
		{"D18/another kind is allowed", "elicitation/create", []string{"logging", "roots", "sampling"}, capable, false},
		{"D18/not declared by this client", "sampling/createMessage", []string{"elicitation", "sampling"}, capable, false},
		{"D18/a client that declares nothing", "elicitation/create", []string{"elicitation"}, initializeLine, false},
		{"D18/an unknown request", "tools/call", []string{"elicitation", "logging", "roots", "sampling"}, capable, false},
	} {
		t.Run(row.name+"/http", func(t *testing.T) {
			t.Parallel()
			d := servetest.Start(t, upstreamOf(t, asking(t, row.method), row.relay))
			begun := d.Do(t, "POST", "/mcp", row.initialize)
			header := []string{"Mcp-Session-Id", begun.Header.Get("Mcp-Session-Id"), "Mcp-Protocol-Version", "2025-06-18"}
			other := d.Session(t, "/mcp")
			lines := streamed(t, d, callBody(false, "c", "n", ""), header)
			relayed(t, row.method, row.reaches, lines, func(answer string) {
				// Another session can't answer for this one.
				if r := d.Do(t, "POST", "/mcp", strings.Replace(answer, "accept", "forged", 1), other...); r.Status >= 500 {
					t.Errorf("a forged answer: %+v", r)
				}
				if r := d.Do(t, "POST", "/mcp", answer, header...); r.Status != 202 {
					t.Errorf("the client's answer was answered %+v", r)
				}
			})
		})
		t.Run(row.name+"/stdio", func(t *testing.T) {
			t.Parallel()
			d := servetest.Start(t, upstreamOf(t, asking(t, row.method), row.relay))
			p := servetest.Attach(t, d, "default")
			p.Send(t, row.initialize)
			p.Next(t)
			p.Send(t, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, callBody(false, "c", "n", ""))
			relayed(t, row.method, row.reaches, func() string { return p.Next(t) }, func(answer string) { p.Send(t, answer) })
		})
	}
}

// relayed plays the client of one call: it answers what it is asked, and looks at what the upstream says that it got.
func relayed(t *testing.T, method string, reaches bool, next func() string, send func(answer string)) {
	t.Helper()
	line := next()
	if reaches {
		var q struct{ ID json.RawMessage }
		if err := json.Unmarshal([]byte(line), &q); err != nil {
			t.Fatalf("the client got %s: %v", line, err)
		}
		if want := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`, q.ID, method, askedParams); line != want {
			t.Fatalf("the client was asked\n%s\nnot\n%s", line, want)
		}
		send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, q.ID, answered))
		line = next()
	}
	var r struct {
		ID     string
		Result struct{ Content []struct{ Text string } }
	}
	if err := json.Unmarshal([]byte(line), &r); err != nil || r.ID != "c" || len(r.Result.Content) != 1 {
		t.Fatalf("the call was answered %s", line)
	}
	var got struct {
		ID     string
		Result json.RawMessage
		Error  struct{ Code int }
	}
	if err := json.Unmarshal([]byte(r.Result.Content[0].Text), &got); err != nil || got.ID != "q 1" {
		t.Fatalf("the upstream got %s", r.Result.Content[0].Text)
	}
	result := string(got.Result)
	if reaches && result != answered || !reaches && got.Error.Code != -32601 {
		t.Errorf("the upstream got %s", r.Result.Content[0].Text)
	}
}

// streamed posts a call and returns the messages of its answer one by one, as they come.
func streamed(t *testing.T, d *servetest.Server, body string, header []string) func() string {
	t.Helper()
	return streamedIn(t.Context(), t, d, body, header)
}

func streamedIn(ctx context.Context, t *testing.T, d *servetest.Server, body string, header []string) func() string {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, d.URL+"/mcp", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	lines := bufio.NewScanner(resp.Body)
	return func() string {
		for lines.Scan() {
			if text := strings.TrimPrefix(lines.Text(), "data: "); strings.HasPrefix(text, "{") {
				return text
			}
		}
		t.Fatalf("the stream ended: %v", lines.Err())
		return ""
	}
}
