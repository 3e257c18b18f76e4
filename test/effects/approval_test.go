package effects

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/catalogd/catalogd"
	"github.com/catalogd/catalogd/test/internal/harness"
)

// TestApprovedByAnotherWhileAsked: who is asked by elicitation, and answers after somebody else has approved the call, is answered
// with what came of it, and not that nothing was run.
func TestApprovedByAnotherWhileAsked(t *testing.T) {
	t.Parallel()
	s := newReceiver(t)
	dir := orderCatalog(t, s, "")
	requireApproval(t, dir, selfApproval)
	r, c := serveEffects(t, catalogd.Config{Dir: dir})
	send := elicitApproval(c)
	for i, content := range []string{`{"action":"accept","content":{"approve":true}}`, `{"action":"decline"}`} {
		what := fmt.Sprint("tea", i)
		_, kept := send(what, "")
		listed := c.call("intent_list", `{"state":"awaiting_approval"}`, "")
		var waiting []struct{ ID string }
		if err := json.Unmarshal(listed.Out["intents"], &waiting); err != nil || len(waiting) != 1 {
			t.Fatalf("%v: %s", err, listed.text())
		}
		resp, err := http.Post(r.URL+"/intents/"+waiting[0].ID+"/approve", "application/json", nil)
		if err != nil {
			t.Fatal(err)
		}
		out, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != 200 {
			t.Fatalf("%d %s", resp.StatusCode, out)
		}
		for s.count() != i+1 {
			time.Sleep(time.Millisecond)
		}
		raw, _ := send(what, fmt.Sprintf(`,"inputResponses":{"question-1":%s},"requestState":%q`, content, kept))
		if strings.Contains(raw, "othing was run") || !strings.Contains(raw, `"order":`) || s.count() != i+1 {
			t.Errorf("%s: answered %s", content, raw)
		}
	}
}

// TestRepeatedCallWaitsForSameApproval: the same call again, while the first waits for an approval, is that one.
func TestRepeatedCallWaitsForSameApproval(t *testing.T) {
	t.Parallel()
	s := newReceiver(t)
	dir := orderCatalog(t, s, "")
	requireApproval(t, dir, `{"groups": ["leads"], "reason": "it costs", "expires": "1h"}`)
	_, c := serveEffects(t, catalogd.Config{Dir: dir})
	first, again := c.call("order", `{"what":"tea"}`, "").handle(), c.call("order", `{"what":"tea"}`, "").handle()
	if first.State != "awaiting_approval" || again.ID != first.ID {
		t.Errorf("%+v, and again %+v", first, again)
	}
}

// TestStoreLostBeforeRetry: where a further attempt can't be written down, nobody learns that nothing was run: there was one
// before.
func TestStoreLostBeforeRetry(t *testing.T) {
	t.Parallel()
	s := newReceiver(t)
	dir := orderCatalog(t, s, "idempotent: true")
	intents := filepath.Join(t.TempDir(), "intents")
	cfg := catalogd.Config{Dir: dir}
	cfg.Intents.Dir = intents
	r, c := serveEffects(t, cfg)
	turns := func(how string) {
		resp, err := http.Post(r.URL+"/-/intents/"+how, "", nil)
		if err != nil {
			t.Error(err)
			return
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Errorf("%s: got %s, want 200", how, resp.Status)
		}
	}
	s.answers(func(w http.ResponseWriter, _ *http.Request, _ map[string]any) {
		turns("pause") // so that the second attempt waits until the store is lost
		w.WriteHeader(http.StatusBadGateway)
	})
	answered := make(chan effectReply, 1)
	go func() {
		defer close(answered)
		answered <- c.call("order", `{"what":"tea"}`, "")
	}()
	harness.Await(t, "the end of the first attempt", func() bool {
		all, _, err := r.Catalog.Intents().List(t.Context(), catalogd.IntentFilter{Limit: 10})
		if err != nil {
			t.Fatal(err)
		}
		return len(all) == 1 && all[0].State == "released"
	})
	if err := os.Remove(filepath.Join(intents, "intents.db")); err != nil {
		t.Fatal(err)
	}
	turns("resume")
	got := <-answered
	if !got.IsError || got.Meta.Error.Code != "outcome_unknown" || strings.Contains(got.text(), "othing was run") {
		t.Errorf("%s: %s", got.Meta.Error.Code, got.text())
	}
}

// requireApproval makes the policy ask for approvals of the tool order.
func requireApproval(t testing.TB, dir, rule string) {
	t.Helper()
	call := filepath.Join(dir, "policy/call.rego")
	harness.WriteFile(t, call, harness.ReadFile(t, call)+"\nrequire_approval := "+rule+" if input.tool.name == \"order\"\n")
}

const selfApproval = `{"groups": [], "reason": "it costs", "self": true, "expires": "1h"}`

// approvedByElicitation: a caller that may approve its own call is asked to, where its client can ask a person. A
// state that was tampered with, or that is used twice or for other arguments, executes nothing.
func approvedByElicitation(t *testing.T) {
	t.Parallel()
	s := newReceiver(t)
	dir := orderCatalog(t, s, "")
	requireApproval(t, dir, selfApproval)
	_, c := serveEffects(t, catalogd.Config{Dir: dir})
	send := elicitApproval(c)
	answer := func(state, content string) string {
		return fmt.Sprintf(`,"inputResponses":{"question-1":%s},"requestState":%q`, content, state)
	}
	const yes, no = `{"action":"accept","content":{"approve":true}}`, `{"action":"decline"}`

	asked, state := send("tea", "")
	if state == "" || !strings.Contains(asked, `"elicitation/create"`) || !strings.Contains(asked, "it costs") || s.count() != 0 {
		t.Fatalf("answered %s", asked)
	}
	for name, more := range map[string]string{
		"changed":         answer("A"+state[1:], yes),
		"cut":             answer(state[:len(state)-4], yes),
		"of other words":  answer(state+state, yes),
		"without a state": `,"inputResponses":{"question-1":` + yes + `}`,
	} {
		if raw, _ := send("tea", more); strings.Contains(raw, `"order":`) || s.count() != 0 {
			t.Errorf("a state %s: %s", name, raw)
		}
	}
	if raw, _ := send("coffee", answer(state, yes)); s.count() != 0 {
		t.Errorf("the state for other arguments: %s", raw)
	}
	_, state = send("milk", "")
	done, _ := send("milk", answer(state, yes))
	if !strings.Contains(done, `"order":1`) && !strings.Contains(done, `"order": 1`) || s.count() != 1 {
		t.Errorf("approved: %s", done)
	}
	if raw, _ := send("milk", answer(state, yes)); s.count() != 1 {
		t.Errorf("the state was used twice: %s", raw)
	}
	_, state = send("cake", "")
	if refused, _ := send("cake", answer(state, no)); !strings.Contains(refused, "approval_refused") || s.count() != 1 {
		t.Errorf("declined: %s", refused)
	}
}

// elicitApproval sends calls of order as a client that can ask a person; state is what it was given to keep.
func elicitApproval(c caller) func(what, more string) (raw, state string) {
	t := c.t
	return func(what, more string) (raw, state string) {
		t.Helper()
		body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"order","arguments":{"what":%q}%s,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}}}}}}`, what, more)
		req := c.request(t.Context(), "order", "{}", "")
		req.Body, req.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		out, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		var a struct {
			Result struct {
				RequestState string `json:"requestState"`
			}
		}
		if err := json.Unmarshal(out, &a); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return string(out), a.Result.RequestState
	}
}

// TestEffectRevoked: a token that is revoked while its intent waits executes nothing.
func TestEffectRevoked(t *testing.T) {
	t.Parallel()
	s := newReceiver(t)
	dir := orderCatalog(t, s, "")
	requireApproval(t, dir, `{"groups": ["leads"], "reason": "", "self": true, "expires": "1h"}`)
	tokens := filepath.Join(t.TempDir(), "tokens.jsonl")
	ann, lee := tokenFor(t, tokens, "ann", "staff"), tokenFor(t, tokens, "lee", "leads")
	r, c := serveEffects(t, catalogd.Config{Dir: dir, Tokens: tokens})
	c.token = ann
	first, second := c.call("order", `{"what":"tea"}`, "").handle(), c.call("order", `{"what":"milk"}`, "").handle()
	if first.State != "awaiting_approval" || second.State != "awaiting_approval" {
		t.Fatalf("answered %+v, %+v", first, second)
	}
	approve := func(id, token string) int {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.URL+"/intents/"+id+"/approve", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Authorization", "Bearer "+token)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	if status := approve(first.ID, lee); status != http.StatusOK {
		t.Fatalf("lee approves: %d", status)
	}
	harness.Await(t, "the effect", func() bool { return s.count() == 1 })
	revokeToken(t, tokens, "ann")
	r.Catalog.Reload(t.Context())
	if status := approve(second.ID, lee); status != http.StatusOK {
		t.Fatalf("lee approves: %d", status)
	}
	harness.Await(t, "its end", func() bool {
		in, err := r.Catalog.Intents().Get(t.Context(), second.ID)
		if err != nil {
			t.Fatal(err)
		}
		if in.State.Ended() && (in.State != "refused" || !strings.Contains(in.Message, "not good")) {
			t.Fatalf("it is %s: %s", in.State, in.Message)
		}
		return in.State.Ended()
	})
	if s.count() != 1 {
		t.Errorf("the service was asked %d times", s.count())
	}
}
