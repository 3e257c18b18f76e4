package upstream_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/catalogd/catalogd/registry"
)

// modern serves 2026-07-28 over HTTP: answer gives the result of a method other than server/discover.
func modern(t *testing.T, answer func(method string, params json.RawMessage) string) registry.Server {
	t.Helper()
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the client has gone
		}
		var req struct {
			ID     json.RawMessage
			Method string
			Params json.RawMessage
		}
		if err := json.Unmarshal(body, &req); err != nil {
			t.Errorf("the server got %s", body)
		}
		said := `"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}}}`
		if req.Method != "server/discover" {
			said = answer(req.Method, req.Params)
		}
		w.Header().Set("Content-Type", "application/json")
		if strings.HasPrefix(said, `"error"`) {
			w.WriteHeader(http.StatusBadRequest)
		}
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,%s}`, req.ID, said)
	}))
	t.Cleanup(ts.Close)
	return registry.Server{
		Name: "fake", HTTP: &registry.HTTPAddress{URL: ts.URL}, MaxConnections: 4,
		ConnectTimeout: time.Minute, CallTimeout: time.Minute, Source: registry.Source{Digest: ts.URL},
	}
}

// A server that asks tells no secret that it was given, neither in what it asks nor in what the client is to keep for it.
func TestRoundsTellNoSecrets(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("hunter2"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := modern(t, func(string, json.RawMessage) string {
		return `"result":{"resultType":"input_required","requestState":"key=hun\u0074er2","inputRequests":{"q hunter2":{"method":"elicitation/create","params":{"message":"is it hunter2?"}}}}`
	})
	s.HTTP.Headers = map[string]registry.Value{"X-Key": {Secret: "file:" + file}}
	_, set := open(t, s, loopback)
	to := registry.Listener{Able: registry.Abilities{"elicitation": json.RawMessage("{}")}, Relay: []string{"elicitation"}, Rounds: true}
	r, err := set.Call(t.Context(), "fake", "asks", nil, to)
	if err != nil || r.Input == nil {
		t.Fatalf("%+v, %v", r, err)
	}
	if in := r.Input; strings.Contains(string(in.Requests)+string(in.State), "hunter2") || !strings.Contains(string(in.Requests), "is it ***?") || string(in.State) != `"key=***"` {
		t.Errorf("%s %s", in.Requests, in.State)
	}
}

// A server of 2026-07-28 that refuses one request keeps its connection: the status 400 is for wrong arguments there. One
// that wants a capability of the client says which, where the client may mend that.
func TestRefusalsKeepTheConnection(t *testing.T) {
	t.Parallel()
	refusal := ""
	s := modern(t, func(string, json.RawMessage) string { return refusal })
	pool, set := open(t, s, loopback)
	able := registry.Listener{Relay: []string{"sampling"}, Rounds: true}
	for _, row := range []struct {
		refusal string
		to      registry.Listener
		code    registry.ErrorCode
	}{
		{`"error":{"code":-32602,"message":"no such thing"}`, able, registry.BindingFailed},
		{`"error":{"code":-32601,"message":"no such method"}`, able, registry.BindingFailed},
		{`"error":{"code":-32021,"message":"sampling","data":{"requiredCapabilities":{"sampling":{}}}}`, able, registry.CapabilityMissing},
		{`"error":{"code":-32021,"message":"sampling","data":{"requiredCapabilities":{"sampling":{}}}}`, registry.Listener{Rounds: true}, registry.BindingFailed},
		{`"error":{"code":-32021,"message":"roots","data":{"requiredCapabilities":{"sampling":{},"roots":{}}}}`, able, registry.BindingFailed},
		{`"error":{"code":-32021,"message":"sampling"}`, able, registry.BindingFailed},
	} {
		refusal = row.refusal
		_, err := set.Call(t.Context(), "fake", "asks", nil, row.to)
		fails(t, err, row.code)
		if st := pool.Status()[0]; st.State != "ready" || st.LastError != "" {
			t.Errorf("%s: %+v", row.refusal, st)
		}
	}
}

// What a server offers in pages is offered whole and in order, each cursor sent back as it came.
func TestPages(t *testing.T) {
	t.Parallel()
	const cursor = `<p&ge> é "2" 9007199254740993`
	var cursors []string
	s := modern(t, func(method string, raw json.RawMessage) string {
		var p struct{ Cursor string }
		if err := json.Unmarshal(raw, &p); err != nil || method != "tools/list" {
			t.Errorf("%s %s", method, raw)
		}
		cursors = append(cursors, p.Cursor)
		next := ""
		if n := len(cursors); n < 3 {
			encoded, err := json.Marshal(cursor + strings.Repeat("!", n))
			if err != nil {
				t.Error(err)
			}
			next = `,"nextCursor":` + string(encoded)
		}
		return fmt.Sprintf(`"result":{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[{"name":"a%[1]d","n":9007199254740993,"inputSchema":{"type":"object"}},{"name":"b%[1]d","inputSchema":{"type":"object"}}]%[2]s}`, len(cursors), next)
	})
	_, set := open(t, s, loopback)
	offer, err := set.Offered(context.Background(), "fake")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, raw := range offer.Tools {
		var tool struct{ Name string }
		if err := json.Unmarshal(raw, &tool); err != nil {
			t.Fatal(err)
		}
		names = append(names, tool.Name)
	}
	if got := strings.Join(names, " "); got != "a1 b1 a2 b2 a3 b3" || !strings.Contains(string(offer.Tools[0]), `"n":9007199254740993`) {
		t.Errorf("%s: %s", got, offer.Tools[0])
	}
	if len(cursors) != 3 || cursors[0] != "" || cursors[1] != cursor+"!" || cursors[2] != cursor+"!!" {
		t.Errorf("%q", cursors)
	}
}

// A server that wants to be called again and asks nothing may do so as long as the call's time lasts.
func TestCalledAgainWithoutQuestions(t *testing.T) {
	t.Parallel()
	rounds := 0
	s := modern(t, func(_ string, params json.RawMessage) string {
		if rounds++; rounds <= 15 {
			return fmt.Sprintf(`"result":{"resultType":"input_required","requestState":"round %d"}`, rounds)
		}
		if !strings.Contains(string(params), `"requestState":"round 15"`) {
			t.Errorf("the last round came with %s", params)
		}
		return `"result":{"resultType":"complete","content":[{"type":"text","text":"done"}]}`
	})
	_, set := open(t, s, loopback)
	r, err := set.Call(t.Context(), "fake", "polls", nil, registry.Listener{
		Ask: func(context.Context, registry.Question) registry.Reply { return registry.Reply{} },
	})
	if err != nil || len(r.Content) != 1 || rounds != 16 {
		t.Errorf("got %+v, %v after %d rounds", r, err, rounds)
	}
}
