package effects

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/catalogd/catalogd"
	"github.com/catalogd/catalogd/test/internal/harness"
)

// asker is an upstream server of 2026-07-28 whose tool asks its caller twice before it has its effect.
type asker struct{ asked, effects atomic.Int32 }

func (a *asker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var req struct {
		ID     json.RawMessage
		Method string
		Params struct{ RequestState string }
	}
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		http.Error(w, "no JSON", http.StatusBadRequest)
		return
	}
	const lists = `"resultType":"complete","ttlMs":0,"cacheScope":"private",`
	result := `{` + lists + `"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}}}`
	switch {
	case req.Method == "tools/list":
		result = `{` + lists + `"tools":[{"name":"order","inputSchema":{"type":"object"}}]}`
	case req.Method == "tools/call" && req.Params.RequestState == "twice":
		result = fmt.Sprintf(`{"resultType":"complete","content":[{"type":"text","text":"ordered %d"}]}`, a.effects.Add(1))
	case req.Method == "tools/call":
		a.asked.Add(1)
		state := map[string]string{"": "once", "once": "twice"}[req.Params.RequestState]
		result = `{"resultType":"input_required","requestState":"` + state + `","inputRequests":{"sure":{"method":"elicitation/create","params":{"message":"Sure?","requestedSchema":{"type":"object","properties":{}}}}}}`
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, req.ID, result)
}

// replicas are two daemons of a directory with one key for requestState, and one store of intents where shared is set.
func replicas(t *testing.T, dir string, shared bool) (one, other *harness.Daemon, first, second caller) {
	t.Helper()
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte(strings.Repeat("k", 32)), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := catalogd.Config{Dir: dir, RequestStateKey: key}
	if shared {
		cfg.Intents.Dir = filepath.Join(t.TempDir(), "intents")
	}
	one, first = serveEffects(t, cfg)
	other, second = serveEffects(t, cfg)
	return one, other, first, second
}

// TestAskingWriteAtTwoReplicas: a tool with a side effect asks its caller, and each next round comes to the
// other daemon. With one store of intents it goes on there; with two, the answer says where to go on. Nothing
// is sent twice.
func TestAskingWriteAtTwoReplicas(t *testing.T) {
	t.Parallel()
	for name, shared := range map[string]bool{"one store": true, "two stores": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			upstream := &asker{}
			server := httptest.NewServer(upstream)
			t.Cleanup(server.Close)
			dir := harness.Starter(t)
			harness.WriteFile(t, filepath.Join(dir, "catalog/shop.cue"), fmt.Sprintf(`package catalog

servers: shop: transport: http: url: "%s/mcp"
tools: order: {
	description: "Orders something."
	args: what!: string
	effect: "write"
	tags: ["everyday"]
	timeout: "2m"
	binding: mcp: server: "shop"
}
`, server.URL))
			host, port, _ := strings.Cut(strings.TrimPrefix(server.URL, "http://"), ":")
			trust := filepath.Join(dir, "policy/trust/data.yaml")
			harness.WriteFile(t, trust, harness.ReadFile(t, trust)+fmt.Sprintf("  shop:\n    scheme: http\n    host: %s\n    port: %s\n    path: /mcp\n    addresses: [127.0.0.0/8]\n", host, port))
			harness.Edit(t, dir, "policy/access/data.yaml", "  default:\n", "  default:\n    relay: {elicitation: [order]}\n")
			_, _, first, second := replicas(t, dir, shared)
			one, other := elicitApproval(first), elicitApproval(second)
			answers := func(state string) string {
				return fmt.Sprintf(`,"inputResponses":{"sure":{"action":"accept","content":{}}},"requestState":%q`, state)
			}
			raw, begun := one("tea", "")
			if begun == "" {
				t.Fatalf("the tool does not ask: %s", raw)
			}
			raw, again := other("tea", answers(begun))
			if !shared {
				if !strings.Contains(raw, `"code":"intents_unavailable"`) || !strings.Contains(raw, "Send this very request again") || upstream.asked.Load() != 1 {
					t.Fatalf("the daemon without the intent answers %s", raw)
				}
				if raw, again = one("tea", answers(begun)); again == "" {
					t.Fatalf("the request again, at the daemon that has the intent: %s", raw)
				}
				if raw, _ = one("tea", answers(again)); !strings.Contains(raw, "ordered 1") {
					t.Errorf("the last round: %s", raw)
				}
				return
			}
			if again == "" {
				t.Fatalf("the second round at the other daemon: %s", raw)
			}
			if raw, more := one("tea", answers(begun)); more != "" || strings.Contains(raw, "ordered") || upstream.asked.Load() != 2 {
				t.Errorf("the second round once more, at the first daemon: %s", raw)
			}
			if raw, _ = one("tea", answers(again)); !strings.Contains(raw, "ordered 1") {
				t.Errorf("the last round, at the first daemon: %s", raw)
			}
			if raw, _ = other("tea", answers(again)); !strings.Contains(raw, "ordered 1") || upstream.effects.Load() != 1 {
				t.Errorf("the last round once more, at the other daemon: %s", raw)
			}
		})
	}
}

// TestApprovalAtTwoReplicas: a call waits for an approval, which is given at the other daemon. With one store
// of intents it is executed, once, and each daemon knows of it; with two, the other knows nothing of it.
func TestApprovalAtTwoReplicas(t *testing.T) {
	t.Parallel()
	for name, shared := range map[string]bool{"one store": true, "two stores": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newReceiver(t)
			dir := orderCatalog(t, s, "")
			requireApproval(t, dir, selfApproval)
			one, other, first, second := replicas(t, dir, shared)
			approve := func(d *harness.Daemon, id string) (int, string) {
				t.Helper()
				res, err := http.Post(d.URL+"/intents/"+id+"/approve", "application/json", nil)
				if err != nil {
					t.Fatal(err)
				}
				defer res.Body.Close()
				body, err := io.ReadAll(res.Body)
				if err != nil {
					t.Fatal(err)
				}
				return res.StatusCode, string(body)
			}
			h := first.call("order", `{"what":"tea"}`, "").handle()
			if h.State != "awaiting_approval" {
				t.Fatalf("answered %+v, want a handle", h)
			}
			if again := second.call("order", `{"what":"tea"}`, "").handle(); shared && again.ID != h.ID {
				t.Errorf("the same call at the other daemon is another: %+v", again)
			}
			status, body := approve(other, h.ID)
			if !shared {
				if status != http.StatusNotFound || s.count() != 0 {
					t.Errorf("the other daemon approves: %d %s", status, body)
				}
				status, body = approve(one, h.ID)
			}
			if status != http.StatusOK {
				t.Fatalf("approve: %d %s", status, body)
			}
			got := first.call("intent_get", fmt.Sprintf(`{"id":%q,"wait":25}`, h.ID), "")
			if string(got.Out["state"]) != `"succeeded"` || s.count() != 1 {
				t.Errorf("after the approval: %s, and the service was reached %d times", got.Out, s.count())
			}
			if !shared {
				return
			}
			if got := second.call("intent_get", fmt.Sprintf(`{"id":%q}`, h.ID), ""); string(got.Out["state"]) != `"succeeded"` {
				t.Errorf("at the other daemon: %s", got.Out)
			}
		})
	}
}
