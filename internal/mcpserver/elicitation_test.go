package mcpserver_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/internal/servetest"
)

// paging is an upstream of an older revision that asks the person to open the page of its call's note, and says that this is
// complete: in the call of note "now" before its result, and for that of note "later" in the call of note "then".
func paging(t *testing.T) http.HandlerFunc {
	replies := make(chan string, 1)
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost { // it says nothing outside of calls
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
			Params struct{ Arguments struct{ Note string } }
		}
		if err := json.Unmarshal(body, &req); err != nil {
			t.Errorf("the upstream got %s", body)
			return
		}
		switch {
		case req.Method == "tools/call":
			w.Header().Set("Content-Type", "text/event-stream")
			say := func(format string, args ...any) {
				fmt.Fprintf(w, "data: "+format+"\n\n", args...)
				w.(http.Flusher).Flush()
			}
			complete := func(id string) {
				say(`{"jsonrpc":"2.0","method":"notifications/elicitation/complete","params":{"elicitationId":%q,"_meta":{"x/y":1}}}`, id)
			}
			note := req.Params.Arguments.Note
			if note == "then" {
				complete("page-never")
				complete("page-later")
				complete("page-later")
			} else {
				say(`{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"mode":"url","message":"log in","url":"https://login.example.com/","elicitationId":"page-%s"}}`, note)
				select {
				case <-replies:
				case <-r.Context().Done():
					return
				}
			}
			if note == "now" {
				complete("page-now")
			}
			say(`{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}`, req.ID)
		case req.Method == "" && req.ID != nil:
			replies <- string(body)
			w.WriteHeader(http.StatusAccepted)
		default:
			scriptedServer(w, again(r, body))
		}
	}
}

// That a page is complete reaches the client that was asked to open it, once: on the stream of the call where that still
// runs, else on the session's own, and no other client.
func TestElicitationComplete(t *testing.T) {
	t.Parallel()
	const (
		opens     = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{"form":{},"url":{}}},"clientInfo":{"name":"t","version":"1"}}}`
		completed = `{"jsonrpc":"2.0","method":"notifications/elicitation/complete","params":{"elicitationId":"page-%s"%s}}`
		accept    = `{"jsonrpc":"2.0","id":%s,"result":{"action":"accept"}}`
	)
	asked := func(t *testing.T, line string) (answer string) {
		t.Helper()
		var q struct{ ID json.RawMessage }
		if err := json.Unmarshal([]byte(line), &q); err != nil || !strings.Contains(line, `"mode":"url"`) {
			t.Fatalf("the client is asked %s: %v", line, err)
		}
		return fmt.Sprintf(accept, q.ID)
	}
	serves := func(t *testing.T) *servetest.Server {
		t.Helper()
		c := upstreamOf(t, paging(t), []string{"elicitation"})
		c.Hosts = []string{"login.example.com"}
		return servetest.Start(t, c)
	}
	t.Run("http", func(t *testing.T) {
		t.Parallel()
		d := serves(t)
		session := func() []string {
			begun := d.Do(t, "POST", "/mcp", opens)
			header := []string{"Mcp-Session-Id", begun.Header.Get("Mcp-Session-Id")}
			d.Do(t, "POST", "/mcp", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, header...)
			return header
		}
		header, other := session(), session()
		own, others := d.Stream(t, "/mcp", header), d.Stream(t, "/mcp", other)

		next := streamed(t, d, callBody(false, "c", "now", ""), header)
		d.Do(t, "POST", "/mcp", asked(t, next()), header...)
		if got, want := next(), fmt.Sprintf(completed, "now", `,"_meta":{"x/y":1}`); got != want {
			t.Errorf("during the call the client hears\n%s\nnot\n%s", got, want)
		}
		if got := next(); !strings.Contains(got, `"result"`) {
			t.Errorf("the call is answered %s", got)
		}

		next = streamed(t, d, callBody(false, "c", "later", ""), header)
		d.Do(t, "POST", "/mcp", asked(t, next()), header...)
		if got := next(); !strings.Contains(got, `"result"`) {
			t.Errorf("the call is answered %s", got)
		}
		next = streamed(t, d, callBody(false, "c", "then", ""), other)
		if got := next(); !strings.Contains(got, `"result"`) {
			t.Errorf("another client hears %s", got)
		}
		if got, want := own.Event(t), fmt.Sprintf(completed, "later", ""); got != want {
			t.Errorf("after the call the client hears\n%s\nnot\n%s", got, want)
		}
		d.Do(t, "DELETE", "/mcp", "", header...)
		d.Do(t, "DELETE", "/mcp", "", other...)
		if rest := own.Rest(t) + others.Rest(t); strings.Contains(rest, "elicitation") {
			t.Errorf("somebody hears too much: %s", rest)
		}
	})
	t.Run("stdio", func(t *testing.T) {
		t.Parallel()
		p := servetest.Attach(t, serves(t), "default")
		p.Send(t, opens)
		p.Next(t)
		p.Send(t, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, callBody(false, "c", "later", ""))
		p.Send(t, asked(t, p.Next(t)))
		if got := p.Next(t); !strings.Contains(got, `"result"`) {
			t.Errorf("the call is answered %s", got)
		}
		p.Send(t, callBody(false, "d", "then", ""))
		got := p.Next(t) + "\n" + p.Next(t)
		if want := fmt.Sprintf(completed, "later", ""); !strings.Contains(got, want) || strings.Count(got, "page-") != 1 {
			t.Errorf("after the call the client hears\n%s\nnot\n%s", got, want)
		}
	})
}
