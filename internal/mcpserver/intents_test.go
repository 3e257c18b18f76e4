package mcpserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/internal/daemon"
	"github.com/catalogd/catalogd/internal/generation"
	"github.com/catalogd/catalogd/internal/httpapi"
	"github.com/catalogd/catalogd/internal/intent"
	"github.com/catalogd/catalogd/internal/servetest"
	"github.com/catalogd/catalogd/internal/token"
	"github.com/catalogd/catalogd/registry"
)

// ledger is a daemon with tokens whose store of intents a test writes itself: nothing is executed.
type ledger struct {
	*servetest.Server
	holders *servetest.Holders
	effects *daemon.Effects
	store   *intent.Store
}

// noted is a catalog with a tool with a side effect, in two branches.
func noted() servetest.Catalog {
	return servetest.Catalog{
		ID: "g1", Branches: map[string][]string{"default": nil, "research": nil},
		Tools: []servetest.Fixture{servetest.Tool("note", `{"type":"object","properties":{"text":{"type":"string"}},"additionalProperties":false}`, servetest.Text("noted"), func(t *registry.Tool) {
			t.Effect, t.Args.Fields = registry.Write, []contract.Field{{Name: "text", Types: []string{"string"}}}
		})},
	}
}

func startLedger(t testing.TB, change ...func(*servetest.Backend)) *ledger {
	t.Helper()
	l := &ledger{holders: servetest.Issue(t, slog.New(slog.DiscardHandler),
		token.Token{Name: "ann", Branches: []string{"default"}},
		token.Token{Name: "bob", Branches: []string{"default"}, Groups: []string{"ops"}},
		token.Token{Name: "joe", Branches: []string{"research"}, Groups: []string{"ops"}},
		token.Token{Name: "eve", Branches: []string{"*"}},
		token.Token{Name: "root", Branches: []string{"*"}, Admin: true},
	)}
	l.Server = servetest.Start(t, noted(), append([]func(*servetest.Backend){func(b *servetest.Backend) {
		b.Tokens = l.holders.Store
		l.effects = daemon.NewEffects(daemon.EffectsConfig{
			Store:  intent.Config{Dir: filepath.Join(t.TempDir(), "intents"), Durability: intent.Process},
			Pin:    func() (*generation.Generation, func()) { return l.Served.Load(), func() {} },
			Tokens: b.Tokens, Log: b.Log,
		})
		b.Effects = l.effects
	}}, change...)...)
	t.Cleanup(func() {
		if err := l.effects.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	var err error
	if l.store, err = l.effects.Store(t.Context()); err != nil {
		t.Fatal(err)
	}
	return l
}

// as is the header of the bearer of a token.
func (l *ledger) as(name string) []string {
	return l.holders.Header[name]
}

// note writes down an intent of ann's in the branch default, in a state that it comes into on this way.
func (l *ledger) note(t testing.TB, approval *intent.Approval, outcome *intent.Outcome, way ...intent.State) string {
	t.Helper()
	hash, err := l.holders.Store.Find(l.holders.Secret["ann"]).Hash.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	in, made, err := l.store.Stage(t.Context(), intent.Intent{
		Branch: "default", Tool: "note", Principal: "ann", Credential: string(hash), Arguments: json.RawMessage(`{"text":"hello"}`), Digest: "sha256:0",
		Fingerprint: "p", Policy: "y", Generation: "g1", State: way[0], Approval: approval,
	})
	if err != nil || !made {
		t.Fatal(made, err)
	}
	owner := l.store.Owner()
	for i, to := range way[1:] {
		c := intent.Change{Steps: []intent.Step{{State: to}}, Owner: &owner}
		if i == len(way)-2 {
			c.Outcome = outcome
		}
		if err := l.store.Change(t.Context(), in.ID, way[i], c); err != nil {
			t.Fatal(err)
		}
	}
	return in.ID
}

func decoded[T any](t testing.TB, r servetest.Response) (v T) {
	t.Helper()
	if err := json.Unmarshal([]byte(r.Body), &v); err != nil {
		t.Fatalf("%v in %d %s", err, r.Status, r.Body)
	}
	return v
}

// Who sees an intent, and who may do what with it, is the same in the list, in the record and in the actions; to anybody
// else it is not there.
func TestIntentsAreSeenByWhomTheyConcern(t *testing.T) {
	t.Parallel()
	l := startLedger(t)
	for _, test := range []struct {
		who string
		may []intent.Action // nil: does not see it
	}{
		{"ann", []intent.Action{intent.ToCancel}},
		{"bob", []intent.Action{intent.ToApprove, intent.ToRefuse}},
		{"joe", []intent.Action{intent.ToApprove, intent.ToRefuse}},
		{"root", []intent.Action{intent.ToRefuse, intent.ToCancel}},
		{"eve", nil},
	} {
		for _, action := range []intent.Action{intent.ToApprove, intent.ToRefuse, intent.ToCancel, intent.ToRetry, intent.ToResolve} {
			id := l.note(t, &intent.Approval{Groups: []string{"ops"}, Reason: "look"}, nil, intent.AwaitingApproval)
			page := decoded[httpapi.IntentPage](t, l.Do(t, "GET", "/intents?limit=1", "", l.as(test.who)...))
			one := l.Do(t, "GET", "/intents/"+id, "", l.as(test.who)...)
			body := `{"why":"so"}`
			if action == intent.ToResolve {
				body = `{"as":"failed"}`
			}
			acted := l.Do(t, "POST", "/intents/"+id+"/"+string(action), body, l.as(test.who)...)
			if test.may == nil {
				none := l.Do(t, "POST", "/intents/"+strings.Repeat("0", 32)+"/"+string(action), body, l.as(test.who)...)
				if len(page.Intents) != 0 || one.Status != 404 || acted.Status != 404 || strings.ReplaceAll(acted.Body, id, "") != strings.ReplaceAll(none.Body, strings.Repeat("0", 32), "") {
					t.Errorf("%s, %s: %+v; %d %s; %d %s; one that there is not: %s", test.who, action, page, one.Status, one.Body, acted.Status, acted.Body, none.Body)
				}
				continue
			}
			if len(page.Intents) != 1 || page.Intents[0].ID != id || !slices.Equal(page.Intents[0].May, test.may) {
				t.Errorf("%s: %+v", test.who, page)
			}
			if shown := decoded[httpapi.ShownIntent](t, one); one.Status != 200 || !slices.Equal(shown.May, test.may) || string(shown.Arguments) != `{"text":"hello"}` {
				t.Errorf("%s: %s", test.who, one.Body)
			}
			want := 403
			if slices.Contains(test.may, action) {
				want = 200
			} else if action == intent.ToRetry && test.who == "root" || action == intent.ToResolve && test.who == "root" {
				want = 409 // it is an admin's to do, but not now
			}
			if acted.Status != want {
				t.Errorf("%s, %s: %d %s, want %d", test.who, action, acted.Status, acted.Body, want)
			}
		}
	}
}

// Nothing that is shown has the caller's credential, or what only the effector needs.
func TestIntentsTellNoCredential(t *testing.T) {
	t.Parallel()
	l := startLedger(t)
	id := l.note(t, nil, nil, intent.Staged)
	in, err := l.store.Get(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/intents", "/intents/" + id} {
		r := l.Do(t, "GET", path, "", l.as("root")...)
		if r.Status != 200 || strings.Contains(r.Body, in.Credential) || strings.Contains(strings.ToLower(r.Body), "credential") || strings.Contains(r.Body, `"print"`) {
			t.Errorf("%s: %d %s", path, r.Status, r.Body)
		}
	}
	if r := l.Do(t, "GET", "/intents", "", l.as("root")...); strings.Contains(r.Body, "hello") || strings.Contains(r.Body, `"history"`) {
		t.Errorf("the list shows arguments or history: %s", r.Body)
	}
}

// A result is shown as the result decision lets it out to its reader now; without a branch or a tool that the reader sees, it
// is not.
func TestIntentResultIsAskedAgain(t *testing.T) {
	t.Parallel()
	l := startLedger(t)
	result := &intent.Outcome{Result: &registry.Result{Content: []json.RawMessage{registry.Text("noted: quokka")}}}
	id := l.note(t, &intent.Approval{Groups: []string{"ops"}, By: "bob", At: time.Now()}, result, intent.AwaitingApproval, intent.Released, intent.Attempted, intent.Succeeded)
	shown := func(who string) httpapi.ShownIntent {
		t.Helper()
		r := l.Do(t, "GET", "/intents/"+id, "", l.as(who)...)
		s := decoded[httpapi.ShownIntent](t, r)
		if s.State != intent.Succeeded || (s.Result == nil) == (s.Withheld == "") || s.Result == nil && strings.Contains(r.Body, "quokka") {
			t.Errorf("%s: %s", who, r.Body)
		}
		return s
	}
	for _, who := range []string{"ann", "bob", "root"} {
		if s := shown(who); s.Result == nil {
			t.Errorf("%s: withheld: %s", who, s.Withheld)
		}
	}
	if s := shown("joe"); s.Withheld != `branch "default" is not open to you` {
		t.Errorf("joe: %+v", s)
	}
	hiding := noted()
	hiding.Withhold = "not on Sundays"
	l.Swap(t, hiding)
	if s := shown("ann"); !strings.Contains(s.Withheld, "not on Sundays") {
		t.Errorf("withheld: %q", s.Withheld)
	}
	gone := noted()
	gone.Tools = servetest.Weather().Tools
	l.Swap(t, gone)
	if s := shown("ann"); !strings.Contains(s.Withheld, "no longer shows you the tool") {
		t.Errorf("withheld: %q", s.Withheld)
	}
	gone.Branches = map[string][]string{"research": nil}
	l.Swap(t, gone)
	if s := shown("ann"); s.Withheld != `branch "default" is not served any more` {
		t.Errorf("withheld: %q", s.Withheld)
	}
}

// What a request may not be.
func TestIntentRequestsAreStrict(t *testing.T) {
	t.Parallel()
	l := startLedger(t)
	id := l.note(t, nil, nil, intent.Staged, intent.Released, intent.Attempted, intent.Unknown)
	long := strings.Repeat("x", 1001)
	for _, test := range []struct {
		method, path, body string
		status             int
		says               string
		header             []string
	}{
		{"GET", "/intents?state=nothing", "", 400, "there is no state", nil},
		{"GET", "/intents?stat=staged", "", 400, "unknown parameter", nil},
		{"GET", "/intents?tool=a&tool=b", "", 400, "more than once", nil},
		{"GET", "/intents?tool=", "", 400, "is empty", nil},
		{"GET", "/intents?limit=0", "", 400, "from 1 to 500", nil},
		{"GET", "/intents?limit=501", "", 400, "from 1 to 500", nil},
		{"GET", "/intents?before=-1", "", 400, "before must be", nil},
		{"GET", "/intents?a=%zz", "", 400, "can't be read", nil},
		{"GET", "/intents/" + id + "?wait=26", "", 400, "from 0 to 25", nil},
		{"GET", "/intents/" + id + "?wait=1&wait=1", "", 400, "more than once", nil},
		{"GET", "/intents/" + id + "?full=1", "", 400, "unknown parameter", nil},
		{"GET", "/intents/" + strings.ToUpper(id), "", 404, "no intent", nil},
		{"GET", "/intents/" + id[:31], "", 404, "no intent", nil},
		{"GET", "/intents/" + long, "", 404, "no intent", nil},
		{"GET", "/intents/", "", 404, "not found", nil},
		{"GET", "/intents/" + id + "/", "", 404, "not found", nil},
		{"GET", "/intents/" + id + "/execute", "", 404, "not found", nil},
		{"GET", "/intents/" + id + "/resolve/x", "", 404, "not found", nil},
		{"GET", "/intents/x%2fresolve", "", 404, "not found", nil},
		{"DELETE", "/intents", "", 405, "allowed: GET", nil},
		{"POST", "/intents/" + id, "", 405, "allowed: GET", nil},
		{"GET", "/intents/" + id + "/resolve", "", 405, "allowed: POST", nil},
		{"GET", "/-/intents/pause", "", 405, "allowed: POST", nil},
		{"POST", "/intents/" + id + "/resolve", "", 422, "as must be", nil},
		{"POST", "/intents/" + id + "/resolve", `{"as":"unknown"}`, 422, "as must be", nil},
		{"POST", "/intents/" + id + "/resolve", `{"as":"failed","AS":"failed"}`, 422, `unknown member \"AS\"; there is only why and as`, nil},
		{"POST", "/intents/" + id + "/resolve", `{"as":"failed","as":"succeeded"}`, 422, "more than once", nil},
		{"POST", "/intents/" + id + "/resolve", `{"as":["failed"]}`, 422, "must be a JSON object", nil},
		{"POST", "/intents/" + id + "/resolve", `{"as":"failed"`, 422, "must be a JSON object", nil},
		{"POST", "/intents/" + id + "/resolve", `{"as":"failed"}{}`, 422, "something follows", nil},
		{"POST", "/intents/" + id + "/resolve", `["failed"]`, 422, "must be a JSON object", nil},
		{"POST", "/intents/" + id + "/resolve", `{"as":"failed","why":"a\nb"}`, 422, "one line", nil},
		{"POST", "/intents/" + id + "/resolve", `{"as":"failed","why":"` + long + `"}`, 422, "at most 1000", nil},
		{"POST", "/intents/" + id + "/resolve", "{\"as\":\"failed\",\"why\":\"\xff\"}", 422, "no UTF-8", nil},
		{"POST", "/intents/" + id + "/resolve", `{"as":"failed","why":"` + strings.Repeat("x", 20<<10) + `"}`, 413, "16 KiB", nil},
		{"POST", "/intents/" + id + "/resolve?as=failed", "{}", 400, "unknown parameter", nil},
		{"POST", "/intents/" + id + "/retry", `{"as":"failed"}`, 422, "unknown member", nil},
		{"POST", "/intents/" + id + "/retry", `{}`, 415, "application/json", []string{"Content-Type", "text/plain"}},
		{"POST", "/intents/" + id + "/cancel", `{}`, 409, "it has ended", nil},
		{"POST", "/intents/" + id + "/approve", `{}`, 409, "only what is awaiting_approval", nil},
		{"POST", "/intents/" + id + "/resolve", `{"as":"succeeded","why":"it is there"}`, 200, `"state":"succeeded"`, nil},
		{"POST", "/intents/" + id + "/resolve", `{"as":"failed"}`, 409, "only what is unknown", nil},
		{"GET", "/intents", "", 401, "the token is not good", []string{"Authorization", ""}},
	} {
		r := l.Do(t, test.method, test.path, test.body, append(slices.Clone(l.as("root")), test.header...)...)
		if r.Status != test.status || !strings.Contains(r.Body, test.says) {
			t.Errorf("%s %s %.60s = %d %.200s; want %d %s", test.method, test.path, test.body, r.Status, r.Body, test.status, test.says)
		}
	}
}

// A list has what its filter says, in pages.
func TestIntentListIsFilteredAndPaged(t *testing.T) {
	t.Parallel()
	l := startLedger(t)
	var want []string
	for range 5 {
		l.note(t, nil, nil, intent.Staged, intent.Cancelled)
		want = append(want, l.note(t, nil, nil, intent.Staged))
	}
	slices.Reverse(want)
	var got []string
	query := url.Values{"state": {"staged", "awaiting_approval"}, "branch": {"default"}, "tool": {"note"}, "principal": {"ann"}, "limit": {"2"}}
	for {
		page := decoded[httpapi.IntentPage](t, l.Do(t, "GET", "/intents?"+query.Encode(), "", l.as("root")...))
		for _, in := range page.Intents {
			if in.State != intent.Staged || in.Since.IsZero() || in.Branch != "default" || in.Principal != "ann" {
				t.Errorf("%+v", in)
			}
			got = append(got, in.ID)
		}
		if page.Before == 0 {
			break
		}
		query.Set("before", fmt.Sprint(page.Before))
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for _, none := range []string{"state=failed", "branch=research", "tool=other", "principal=bob"} {
		if r := l.Do(t, "GET", "/intents?"+none, "", l.as("root")...); r.Status != 200 || strings.TrimSpace(r.Body) != `{"intents":[]}` {
			t.Errorf("%s: %d %s", none, r.Status, r.Body)
		}
	}
}

// A reader waits for the end, no longer; the end of the daemon ends the wait.
func TestIntentIsWaitedFor(t *testing.T) {
	t.Parallel()
	l := startLedger(t)
	id := l.note(t, nil, nil, intent.Staged)
	begun := time.Now()
	if r := l.Do(t, "GET", "/intents/"+id+"?wait=1", "", l.as("ann")...); r.Status != 200 || !strings.Contains(r.Body, `"state":"staged"`) || time.Since(begun) < time.Second {
		t.Errorf("after %v: %d %s", time.Since(begun), r.Status, r.Body)
	}
	go func() {
		time.Sleep(50 * time.Millisecond)
		l.Do(t, "POST", "/intents/"+id+"/cancel", "", l.as("ann")...)
	}()
	begun = time.Now()
	if r := l.Do(t, "GET", "/intents/"+id+"?wait=25", "", l.as("ann")...); !strings.Contains(r.Body, `"state":"cancelled"`) || time.Since(begun) > 20*time.Second {
		t.Errorf("after %v: %d %s", time.Since(begun), r.Status, r.Body)
	}
	revoked := l.note(t, nil, nil, intent.Staged)
	if err := token.Remove(l.holders.Path, "ann"); err != nil {
		t.Fatal(err)
	}
	go func() {
		time.Sleep(50 * time.Millisecond)
		l.holders.Store.Reload()
	}()
	if r := l.Do(t, "GET", "/intents/"+revoked+"?wait=5", "", l.as("ann")...); r.Status != 401 || strings.Contains(r.Body, "staged") {
		t.Errorf("revoked while it waited: %d %s", r.Status, r.Body)
	}
	waits := revoked
	go func() {
		time.Sleep(50 * time.Millisecond)
		l.Close()
	}()
	begun = time.Now()
	if r := l.Do(t, "GET", "/intents/"+waits+"?wait=25", "", l.as("root")...); r.Status != 200 || time.Since(begun) > 20*time.Second {
		t.Errorf("after %v: %d %s", time.Since(begun), r.Status, r.Body)
	}
}

// Only an admin pauses, and what is kept and what is not is reported.
func TestIntentsPauseAndAbsence(t *testing.T) {
	t.Parallel()
	l := startLedger(t)
	if r := l.Do(t, "POST", "/-/intents/pause", "", l.as("bob")...); r.Status != 403 {
		t.Errorf("%d %s", r.Status, r.Body)
	}
	for _, paused := range []bool{true, false} {
		path := map[bool]string{true: "pause", false: "resume"}[paused]
		r := l.Do(t, "POST", "/-/intents/"+path, "", l.as("root")...)
		if s := l.effects.Status(); r.Status != 200 || s.Paused != paused || !strings.Contains(r.Body, fmt.Sprintf(`"paused":%v`, paused)) {
			t.Errorf("%s: %d %s, %+v", path, r.Status, r.Body, s)
		}
	}
	if err := l.effects.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, who := range []string{"ann", "root"} {
		for _, request := range [][2]string{{"GET", "/intents"}, {"GET", "/intents/" + strings.Repeat("0", 32)}, {"POST", "/intents/" + strings.Repeat("0", 32) + "/cancel"}} {
			r := l.Do(t, request[0], request[1], "", l.as(who)...)
			if r.Status != http.StatusServiceUnavailable || who != "root" && strings.Contains(r.Body, "/") {
				t.Errorf("%s %s %v: %d %s", who, request[0], request[1], r.Status, r.Body)
			}
		}
	}
	for what, effects := range map[string]*daemon.Effects{"none": nil, "no directory": daemon.NewEffects(daemon.EffectsConfig{})} {
		d := servetest.Start(t, noted(), func(b *servetest.Backend) { b.Effects = effects })
		for _, request := range [][2]string{{"GET", "/intents"}, {"GET", "/intents/x"}, {"POST", "/intents/x/cancel"}, {"POST", "/-/intents/pause"}} {
			if r := d.Do(t, request[0], request[1], ""); r.Status != 404 || !strings.Contains(r.Body, "no intents are kept") {
				t.Errorf("%s: %v: %d %s", what, request, r.Status, r.Body)
			}
		}
	}
}

// /metrics counts intents by state.
func TestIntentMetrics(t *testing.T) {
	t.Parallel()
	var effects *daemon.Effects
	l := startLedger(t, func(b *servetest.Backend) {
		effects = b.Effects
		b.Status = func() daemon.Status { return daemon.Status{Healthy: true, Intents: effects.Status()} }
	})
	l.note(t, nil, nil, intent.Staged)
	id := l.note(t, nil, nil, intent.Staged)
	l.Do(t, "POST", "/intents/"+id+"/cancel", "", l.as("ann")...)
	body := l.Do(t, "GET", "/metrics", "", l.as("root")...).Body
	for _, line := range []string{
		`catalogd_intents{state="staged"} 1`, `catalogd_intents{state="cancelled"} 1`, `catalogd_intents{state="unknown"} 0`,
		`catalogd_intent_transitions_total{state="cancelled"} 1`, `catalogd_intents_running 0`, `catalogd_intents_writable 1`,
	} {
		if !strings.Contains(body, line+"\n") {
			t.Errorf("no %s", line)
		}
	}
}
