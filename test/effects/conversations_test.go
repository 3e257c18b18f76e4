package effects

import (
	"context"
	"encoding/json"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/catalogd/catalogd"
	"github.com/catalogd/catalogd/registry"
	"github.com/catalogd/catalogd/test/internal/harness"
)

// TestForkEffects checks what the branches above a conversation branch say of its effects: their release decisions
// count, its calls take places of the declared branch, and what it has waiting is refused once it has ended.
func TestForkEffects(t *testing.T) {
	t.Parallel()
	s := newReceiver(t)
	dir := orderCatalog(t, s, "")
	call := filepath.Join(dir, "policy/call.rego")
	harness.WriteFile(t, call, harness.ReadFile(t, call)+`
require_approval := {"groups": [], "reason": "it is wine", "self": true} if input.arguments.what == "wine"
`)
	release := filepath.Join(dir, "policy/release.rego")
	harness.WriteFile(t, release, harness.ReadFile(t, release)+`
deny contains "the declared branch sells no coffee" if {
	input.branch.session == ""
	input.arguments.what == "coffee"
}
`)
	held, free := make(chan struct{}), make(chan struct{})
	hold, err := registry.Func("hold", func(ctx context.Context, _ struct{}) (string, error) {
		held <- struct{}{}
		select {
		case <-free:
			return "let go", nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}, registry.Read)
	if err != nil {
		t.Fatal(err)
	}
	harness.WriteFile(t, filepath.Join(dir, "catalog/hold.cue"),
		"package catalog\n\ntools: hold: {description: \"Waits.\", effect: \"read\", timeout: \"2m\", binding: func: \"hold\"}\n")
	r, root := serveEffects(t, catalogd.Config{
		Dir: dir, Functions: []*registry.Function{hold}, Serving: catalogd.ServingLimits{Calls: 1, Queue: -1},
	})
	fork := func(from string) (name string, c caller) {
		t.Helper()
		var made struct{ Name string }
		if err := json.Unmarshal([]byte(r.Post(t, "/branches", `{"from":"`+from+`"}`)), &made); err != nil || made.Name == "" {
			t.Fatalf("no fork of %s: %v", from, err)
		}
		return made.Name, caller{t: t, url: r.URL + "/branches/" + made.Name + "/mcp"}
	}
	one, above := fork("default")
	_, below := fork(one)

	// The declared branch denies what the forks themselves would release.
	for _, c := range []caller{above, below} {
		got := c.call("order", `{"what":"coffee"}`, "")
		if got.Meta.Error.Code != "denied" || !strings.Contains(got.text(), "sells no coffee") || s.count() != 0 {
			t.Errorf("%s: answered %+v after %d orders", c.url, got, s.count())
		}
	}
	if got := below.call("order", `{"what":"tea"}`, ""); got.IsError || s.count() != 1 {
		t.Errorf("what all release: answered %+v after %d orders", got, s.count())
	}

	// One call at once is the limit of the declared branch, and so of it and all its forks together.
	answered := make(chan effectReply)
	go func() { answered <- below.call("hold", `{}`, "") }()
	<-held
	_, another := fork("default")
	for _, c := range []caller{root, above, another} {
		resp, err := http.DefaultClient.Do(c.request(t.Context(), "hold", `{}`, ""))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusTooManyRequests {
			t.Errorf("%s: a second call at once is answered %s", c.url, resp.Status)
		}
	}
	close(free)
	if got := <-answered; got.text() != "let go" {
		t.Errorf("the first call is answered %+v", got)
	}

	// What waits in a fork that has ended is refused, and says why.
	_, kept := fork("default")
	for _, test := range []struct {
		through caller
		ends    bool
	}{{below, true}, {kept, false}} {
		wine := test.through.call("order", `{"what":"wine"}`, "").handle()
		if wine.State != "awaiting_approval" {
			t.Fatalf("got %+v, want an intent that waits for its approval", wine)
		}
		if test.ends { // with the branch that it was forked from
			req, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, r.URL+"/branches/"+one, nil)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.StatusCode != http.StatusNoContent {
				t.Fatalf("the end of the branch is answered %s", resp.Status)
			}
		}
		if _, err := r.Catalog.Intents().Approve(t.Context(), wine.ID, ""); err != nil {
			t.Fatal(err)
		}
		var in catalogd.Intent
		harness.Await(t, "the end of the intent", func() bool {
			var err error
			if in, err = r.Catalog.Intents().Get(t.Context(), wine.ID); err != nil {
				t.Fatal(err)
			}
			return in.State.Ended()
		})
		refused := in.State == "refused" && in.Code == "denied" && strings.Contains(in.Message, "has ended") &&
			strings.Contains(in.Message, "othing was run")
		if refused != test.ends {
			t.Errorf("the intent is %s (%s: %s)", in.State, in.Code, in.Message)
		}
	}
	if s.count() != 2 {
		t.Errorf("the service saw %d orders, want the tea and the wine of the fork that goes on", s.count())
	}
}
