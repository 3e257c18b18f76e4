package effects

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/catalogd/catalogd"
	"github.com/catalogd/catalogd/test/internal/harness"
)

// TestEffects: a tool that writes works out of the box, and its caller is answered with what it answers.
func TestEffects(t *testing.T) {
	t.Parallel()
	s := newReceiver(t)
	_, c := serveEffects(t, catalogd.Config{Dir: orderCatalog(t, s, "")})
	got := c.call("order", `{"what":"tea"}`, "")
	if got.IsError || string(got.Out["order"]) != "1" || got.Meta.Call.Intent == "" {
		t.Fatalf("answered %+v", got)
	}
	if want := `"` + got.Meta.Call.Intent + `"`; s.seen[0].key != want || s.seen[0].body["what"] != "tea" || s.seen[0].body["n"] != 1.0 {
		t.Errorf("the service saw %+v, want the key %s", s.seen, want)
	}
	shown := c.call("intent_get", fmt.Sprintf(`{"id":%q}`, got.Meta.Call.Intent), "")
	if string(shown.Out["state"]) != `"succeeded"` || !strings.Contains(string(shown.Out["result"]), `"order"`) {
		t.Errorf("intent_get answers %s", shown.Out)
	}
	if listed := c.call("intent_list", `{"tool":"order"}`, ""); !strings.Contains(string(listed.Out["intents"]), got.Meta.Call.Intent) {
		t.Errorf("intent_list answers %s", listed.Out)
	}
	if other := c.call("intent_get", `{"id":"00000000000000000000000000000000"}`, ""); other.Meta.Error.Code != "invalid_arguments" {
		t.Errorf("an id that there is not: %+v", other)
	}
}

// TestEffectOutcomes: what the service does, and what its caller and the record say of it.
func TestEffectOutcomes(t *testing.T) {
	t.Parallel()
	const late = "it does not answer in time, after the effect"
	for _, test := range []struct {
		name   string
		answer func(w http.ResponseWriter, r *http.Request, body map[string]any)
		state  string
		code   string
	}{
		{"it says no", func(w http.ResponseWriter, _ *http.Request, _ map[string]any) {
			http.Error(w, "sold out", http.StatusConflict)
		}, "failed", ""},
		{"it fails", func(w http.ResponseWriter, _ *http.Request, _ map[string]any) {
			http.Error(w, "oh", http.StatusInternalServerError)
		}, "failed", ""},
		{"a gateway answers", func(w http.ResponseWriter, _ *http.Request, _ map[string]any) {
			http.Error(w, "", http.StatusBadGateway)
		}, "unknown", "outcome_unknown"},
		{late, func(_ http.ResponseWriter, r *http.Request, _ map[string]any) { <-r.Context().Done() }, "unknown", "outcome_unknown"},
		{"the connection breaks", func(http.ResponseWriter, *http.Request, map[string]any) { panic(http.ErrAbortHandler) }, "unknown", "outcome_unknown"},
		{"its answer is not as declared", func(w http.ResponseWriter, _ *http.Request, _ map[string]any) { fmt.Fprint(w, `{"order":"x"}`) }, "succeeded", "result_invalid"},
		{"its answer is no JSON", func(w http.ResponseWriter, _ *http.Request, _ map[string]any) { fmt.Fprint(w, `{`) }, "succeeded", "result_invalid"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := newReceiver(t)
			s.answers(test.answer)
			more := ""
			if test.name == late { // far more than its request takes to be sent
				more = `timeout: "5s"`
			}
			_, c := serveEffects(t, catalogd.Config{Dir: orderCatalog(t, s, more)})
			got := c.call("order", `{"what":"tea"}`, "")
			if !got.IsError || got.Meta.Error.Code != test.code {
				t.Errorf("answered %+v, want the code %q", got, test.code)
			}
			shown := c.call("intent_get", fmt.Sprintf(`{"id":%q}`, got.Meta.Call.Intent), "")
			if string(shown.Out["state"]) != `"`+test.state+`"` || s.count() != 1 {
				t.Errorf("its intent is %s after %d requests, want %s after 1", shown.Out["state"], s.count(), test.state)
			}
		})
	}
}

// TestEffectHandles: an effect that is not there in time is answered with a handle, which says how to go on.
func TestEffectHandles(t *testing.T) {
	t.Parallel()
	s := newReceiver(t)
	finish := make(chan struct{})
	s.answers(func(w http.ResponseWriter, _ *http.Request, _ map[string]any) {
		<-finish
		fmt.Fprint(w, `{"order": 7}`)
	})
	_, c := serveEffects(t, catalogd.Config{Dir: orderCatalog(t, s, ""), Intents: catalogd.Intents{Wait: 50 * time.Millisecond}})
	got := c.call("order", `{"what":"tea"}`, "")
	h := got.handle()
	if got.IsError || h.ID == "" || h.ID != got.Meta.Call.Intent || h.Tool != "order" || !strings.Contains(h.Message, "intent_get") {
		t.Fatalf("answered %+v", got)
	}
	if again := c.call("order", `{"what":"tea"}`, "").handle(); again.ID != h.ID {
		t.Errorf("the same call again is %+v, want intent %s", again, h.ID)
	}
	close(finish)
	shown := c.call("intent_get", fmt.Sprintf(`{"id":%q,"wait":25}`, h.ID), "")
	if string(shown.Out["state"]) != `"succeeded"` || !strings.Contains(string(shown.Out["result"]), "7") || s.count() != 1 {
		t.Errorf("intent_get answers %s after %d requests", shown.Out, s.count())
	}
}

// TestEffectKeys: a key names one intent, that of the declaration or that of the call.
func TestEffectKeys(t *testing.T) {
	t.Parallel()
	s := newReceiver(t)
	_, c := serveEffects(t, catalogd.Config{Dir: orderCatalog(t, s, "")})
	first := c.call("order", `{"what":"tea"}`, `,"catalogd/idempotencyKey":"k1"`)
	again := c.call("order", `{"what":"tea"}`, `,"catalogd/idempotencyKey":"k1"`)
	if string(first.Out["order"]) != "1" || string(again.Out["order"]) != "1" || first.Meta.Call.Intent != again.Meta.Call.Intent || s.count() != 1 || s.seen[0].key != `"k1"` {
		t.Errorf("answered %+v and %+v after %v", first, again, s.seen)
	}
	if other := c.call("order", `{"what":"coffee"}`, `,"catalogd/idempotencyKey":"k1"`); other.Meta.Error.Code != "idempotency_conflict" {
		t.Errorf("other arguments: %+v", other)
	}
	declared := newReceiver(t)
	_, c = serveEffects(t, catalogd.Config{Dir: orderCatalog(t, declared, `idempotencyKey: "order-{what}"`)})
	for range 3 {
		if got := c.call("order", `{"what":"tea"}`, ""); string(got.Out["order"]) != "1" {
			t.Errorf("answered %+v", got)
		}
	}
	if declared.count() != 1 || declared.seen[0].key != `"order-tea"` {
		t.Errorf("the service saw %+v", declared.seen)
	}
}

// changesWhileWaiting: what was called is what is executed, or nothing is: files, trust and policy that change while an intent
// waits for its approval.
func changesWhileWaiting(t *testing.T) {
	t.Parallel()
	const asks = "\nrequire_approval := {\"groups\": [], \"reason\": \"it costs\", \"self\": true} if input.tool.name == \"order\"\n"
	for _, test := range []struct {
		name   string
		change func(t *testing.T, dir string)
		state  string
		code   string
	}{
		{"nothing", func(*testing.T, string) {}, "succeeded", ""},
		{"another tool", func(t *testing.T, dir string) {
			harness.WriteFile(t, filepath.Join(dir, "catalog/x.cue"), "package catalog\n\ntools: x: {description: \"x\", effect: \"read\", binding: jq: program: \"1\"}\n")
		}, "succeeded", ""},
		{"its description", func(t *testing.T, dir string) {
			name := filepath.Join(dir, "catalog/order.cue")
			harness.WriteFile(t, name, strings.Replace(harness.ReadFile(t, name), "Orders something.", "Orders anything.", 1))
		}, "refused", "tool_changed"},
		{"it is gone", func(t *testing.T, dir string) {
			if err := os.Remove(filepath.Join(dir, "catalog/order.cue")); err != nil {
				t.Fatal(err)
			}
		}, "refused", "tool_changed"},
		{"its trust entry", func(t *testing.T, dir string) {
			name := filepath.Join(dir, "policy/trust/data.yaml")
			harness.WriteFile(t, name, strings.Replace(harness.ReadFile(t, name), "addresses: [127.0.0.0/8]", "addresses: [127.0.0.0/16]", 1))
		}, "refused", "tool_changed"},
		{"the policy denies its call", func(t *testing.T, dir string) {
			name := filepath.Join(dir, "policy/call.rego")
			harness.WriteFile(t, name, harness.ReadFile(t, name)+"\ndeny contains \"not now\" if input.arguments.what == \"tea\"\n")
		}, "refused", "denied"},
		{"the policy does not release it", func(t *testing.T, dir string) {
			name := filepath.Join(dir, "policy/release.rego")
			harness.WriteFile(t, name, harness.ReadFile(t, name)+"\ndeny contains \"not now\" if input.tool.name == \"order\"\n")
		}, "refused", "denied"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := newReceiver(t)
			dir := orderCatalog(t, s, "")
			call := filepath.Join(dir, "policy/call.rego")
			harness.WriteFile(t, call, harness.ReadFile(t, call)+asks)
			r, c := serveEffects(t, catalogd.Config{Dir: dir})
			got := c.call("order", `{"what":"tea"}`, "")
			h := got.handle()
			if h.State != "awaiting_approval" || !strings.Contains(h.Message, "it costs") || s.count() != 0 {
				t.Fatalf("answered %+v", got)
			}
			test.change(t, dir)
			r.Settled(t)
			if _, err := r.Catalog.Intents().Approve(t.Context(), h.ID, ""); err != nil {
				t.Fatal(err)
			}
			var in catalogd.Intent
			harness.Await(t, "its end", func() bool {
				var err error
				if in, err = r.Catalog.Intents().Get(t.Context(), h.ID); err != nil {
					t.Fatal(err)
				}
				return in.State.Ended()
			})
			want := 0
			if test.state == "succeeded" {
				want = 1
			}
			if string(in.State) != test.state || string(in.Code) != test.code || s.count() != want {
				t.Errorf("it is %s (%s: %s) after %d requests, want %s (%s)", in.State, in.Code, in.Message, s.count(), test.state, test.code)
			}
		})
	}
}

// callerDisconnects: a caller that goes before the effect takes it back, and after it only its wait.
func callerDisconnects(t *testing.T) {
	t.Parallel()
	s := newReceiver(t)
	begun, finish := make(chan struct{}), make(chan struct{})
	s.answers(func(w http.ResponseWriter, _ *http.Request, _ map[string]any) {
		close(begun)
		<-finish
		fmt.Fprint(w, `{"order": 1}`)
	})
	r, c := serveEffects(t, catalogd.Config{Dir: orderCatalog(t, s, "")})
	ctx, leave := context.WithCancel(t.Context())
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		if resp, err := http.DefaultClient.Do(c.request(ctx, "order", `{"what":"tea"}`, "")); err == nil {
			resp.Body.Close()
		}
	}()
	<-begun
	leave()
	<-gone
	close(finish)
	harness.Await(t, "the outcome of a call whose caller has gone", func() bool {
		all, _, err := r.Catalog.Intents().List(t.Context(), catalogd.IntentFilter{Limit: 10})
		if err != nil {
			t.Fatal(err)
		}
		return len(all) == 1 && all[0].State == "succeeded"
	})
}

// unusableStore: a store that can't be used refuses calls of tools that write, and no others.
func unusableStore(t *testing.T) {
	t.Parallel()
	s := newReceiver(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	harness.WriteFile(t, file, "no directory")
	open := t.TempDir()
	if err := os.Chmod(open, 0o777); err != nil {
		t.Fatal(err)
	}
	for name, at := range map[string]string{"a file": file, "below a file": filepath.Join(file, "x"), "others may enter it": open} {
		t.Run(name, func(t *testing.T) {
			r, c := serveEffects(t, catalogd.Config{Dir: orderCatalog(t, s, ""), Intents: catalogd.Intents{Dir: at}})
			if got := c.call("order", `{"what":"tea"}`, ""); got.Meta.Error.Code != "intents_unavailable" || !strings.Contains(got.text(), "othing was run") {
				t.Errorf("answered %+v", got)
			}
			if got := c.call("current_time", `{}`, ""); got.IsError {
				t.Errorf("a read tool answers %+v", got)
			}
			if status := r.Catalog.Status(); status.Healthy || status.Intents == nil || status.Intents.Failed == "" {
				t.Errorf("the status is %+v", status.Intents)
			}
		})
	}
	if s.count() != 0 {
		t.Errorf("the service was asked %d times", s.count())
	}
}

// storedResultIsDecided: each reading of a stored result asks the result decision again, and the log of decisions has each state.
func storedResultIsDecided(t *testing.T) {
	t.Parallel()
	s := newReceiver(t)
	// Long enough to be in no digest or time by chance.
	s.answers(func(w http.ResponseWriter, _ *http.Request, _ map[string]any) {
		fmt.Fprint(w, `{"order": 471147114711}`)
	})
	dir := orderCatalog(t, s, "")
	log := filepath.Join(t.TempDir(), "decisions.jsonl")
	r, c := serveEffects(t, catalogd.Config{Dir: dir, DecisionLog: catalogd.DecisionLog{File: log}})
	id := c.call("order", `{"what":"tea"}`, "").Meta.Call.Intent
	if shown := c.call("intent_get", fmt.Sprintf(`{"id":%q}`, id), ""); !strings.Contains(string(shown.Out["result"]), "471147114711") {
		t.Errorf("intent_get answers %s", shown.Out)
	}
	result := filepath.Join(dir, "policy/result.rego")
	harness.WriteFile(t, result, harness.ReadFile(t, result)+"\ndeny contains \"secret\" if input.tool.name == \"order\"\n")
	r.Settled(t)
	shown := c.call("intent_get", fmt.Sprintf(`{"id":%q}`, id), "")
	if raw, err := json.Marshal(shown); err != nil || strings.Contains(string(raw), "471147114711") || string(shown.Out["state"]) != `"succeeded"` || string(shown.Out["code"]) != `"result_denied"` {
		t.Errorf("intent_get answers %s", raw)
	}
	r.End()
	written := harness.ReadFile(t, log)
	for _, state := range []string{"staged", "released", "attempted", "succeeded"} {
		if !strings.Contains(written, fmt.Sprintf(`"state":%q`, state)) {
			t.Errorf("the log of decisions has no %s of the intent:\n%s", state, written)
		}
	}
	if strings.Contains(written, "471147114711") || strings.Contains(written, `"tea"`) {
		t.Errorf("the log has the arguments or the result")
	}
}

// TestThreatEffects finds the tests of effects by the rows of the list of threats (docs/robustness.md).
func TestThreatEffects(t *testing.T) {
	t.Parallel()
	t.Run("T14/a state that approves", approvedByElicitation)
	t.Run("T22/each state is logged", storedResultIsDecided)
}

// TestBadInput groups tests of effects by the rows of docs/robustness.md.
func TestBadInput(t *testing.T) {
	t.Run("E12/the caller disconnects", callerDisconnects)
	t.Run("F9/a store that can't be used", unusableStore)
	t.Run("F13/changes while an intent waits for approval", changesWhileWaiting)
}
