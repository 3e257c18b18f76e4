package mcpserver_test

import (
	"context"
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/catalogd/catalogd/internal/daemon"
	"github.com/catalogd/catalogd/internal/httpapi"
	"github.com/catalogd/catalogd/internal/servetest"
	"github.com/catalogd/catalogd/problem"
)

var callID = regexp.MustCompile(`[0-9a-f]{32}`)

func TestEndpoints(t *testing.T) {
	t.Parallel()
	d := servetest.Start(t, servetest.Weather(), func(b *servetest.Backend) {
		b.Reload = func(context.Context) daemon.Outcome {
			return daemon.Outcome{Result: "refused", Problems: problem.List{{Code: problem.CUESyntax, Severity: problem.Error, Message: "expected }"}}}
		}
	})
	for _, test := range []struct {
		method, path string
		status       int
		body         string
	}{
		{"GET", "/healthz", 200, "ok\n"},
		{"HEAD", "/healthz", 200, ""},
		{"GET", "/readyz", 200, "ready\n"},
		{"GET", "/status", 200, `"healthy":true`},
		{"GET", "/metrics", 200, `catalogd_generation_info{generation="g1"} 1`},
		{"GET", "/metrics", 200, `catalogd_branch_tools{branch="research"} 2`},
		{"GET", "/branches", 200, `{"name":"research","description":"Branch research.","labels":{"team":"research"},"tools":2,"path":"/branches/research/mcp"}`},
		{"POST", "/-/reload", 422, `"result":"refused"`},
		{"GET", "/-/reload", 405, "allowed: POST"},
		{"POST", "/status", 405, "allowed: GET"},
		{"GET", "/nothing", 404, `{"error":"not found: /nothing; GET / says what is where"}`},
		{"POST", "/branches/nosuch/mcp", 404, `{"error":"there is no branch \"nosuch\"; there are default, research"}`},
	} {
		r := d.Do(t, test.method, test.path, "")
		if r.Status != test.status || !strings.Contains(r.Body, test.body) {
			t.Errorf("%s %s = %d %s; want %d %s", test.method, test.path, r.Status, r.Body, test.status, test.body)
		}
	}
}

func TestReadyz(t *testing.T) {
	t.Parallel()
	d := servetest.Start(t, servetest.Weather())
	d.Status.Store(&daemon.Status{Failed: &daemon.FailedStatus{Reason: "problems"}, Generation: daemon.GenerationStatus{ID: "g1"}})
	if r := d.Do(t, "GET", "/readyz", ""); r.Status != 200 || !strings.HasPrefix(r.Body, "degraded: ") {
		t.Errorf("%+v", r)
	}
	if r := d.Do(t, "GET", "/metrics", ""); !strings.Contains(r.Body, "catalogd_config_healthy 0") {
		t.Errorf("metrics say healthy:\n%s", r.Body)
	}
}

func TestReloadStatus(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		outcome daemon.Outcome
		want    int
	}{
		{daemon.Outcome{Result: "adopted"}, 200},
		{daemon.Outcome{Result: "unchanged"}, 200},
		{daemon.Outcome{Result: "refused", Problems: problem.List{{Code: problem.AdoptionDenied}}}, 409},
		{daemon.Outcome{Result: "refused"}, 422},
	} {
		d := servetest.Start(t, servetest.Weather(), func(b *servetest.Backend) { b.Reload = func(context.Context) daemon.Outcome { return test.outcome } })
		if r := d.Do(t, "POST", "/-/reload", ""); r.Status != test.want {
			t.Errorf("%+v: %d", test.outcome, r.Status)
		}
	}
}

func TestMetricsCountCalls(t *testing.T) {
	t.Parallel()
	d := servetest.Start(t, servetest.Weather())
	d.Modern(t, "/mcp", "tools/call", `"name":"weather","arguments":{"city":"Bern"}`)
	d.Modern(t, "/mcp", "tools/call", `"name":"complains"`)
	d.Modern(t, "/mcp", "tools/call", `"name":"no-such-tool"`)
	d.Metrics.Reloaded(daemon.Outcome{Result: "refused"})
	body := d.Do(t, "GET", "/metrics", "").Body
	for _, line := range []string{
		`catalogd_calls_total{branch="default",code="ok",tool="weather"} 1`,
		`catalogd_calls_total{branch="default",code="tool_error",tool="complains"} 1`,
		`catalogd_calls_total{branch="default",code="unknown_tool",tool=""} 1`,
		`catalogd_call_duration_seconds_count{branch="default",tool="weather"} 1`,
		`catalogd_reloads_total{result="refused"} 1`,
		`catalogd_reloads_total{result="adopted"} 0`,
	} {
		if !strings.Contains(body, line) {
			t.Errorf("no %s", line)
		}
	}
	if strings.Contains(body, "no-such-tool") {
		t.Error("a client's word became a label")
	}
}

// A tool that is listed shows what the catalog says, and a call answers with the tool's own bytes.
func TestListAndCall(t *testing.T) {
	t.Parallel()
	d := servetest.Start(t, servetest.Weather())
	for _, list := range []servetest.Response{
		d.Modern(t, "/mcp", "tools/list", ""),
		d.Do(t, "POST", "/mcp", servetest.LegacyBody("tools/list", ""), d.Session(t, "/mcp")...),
	} {
		result, _ := list.Result(t)
		names := []string{}
		for _, tool := range result["tools"].([]any) {
			tool := tool.(map[string]any)
			names = append(names, tool["name"].(string))
			switch tool["name"] {
			case "weather":
				want := map[string]any{"title": "Weather", "readOnlyHint": true}
				if diff := cmp.Diff(want, tool["annotations"]); diff != "" {
					t.Error(diff)
				}
			case "writes":
				if tool["annotations"].(map[string]any)["readOnlyHint"] != false {
					t.Error("a write tool is said to be read-only")
				}
			case "old":
				if tool["description"] != "Deprecated: use weather\nThe tool old." {
					t.Errorf("old: %q", tool["description"])
				}
			}
		}
		want := []string{"broken", "complains", "denied", "old", "panics", "weather", "writes"}
		if diff := cmp.Diff(want, names); diff != "" {
			t.Error(diff)
		}
	}
	r := d.Modern(t, "/mcp", "tools/call", `"name":"weather","arguments":{"city":"Z\u00fcrich"}`)
	for _, bytes := range []string{`{"type":"text","text":"sunny","x-kept":9007199254740993}`, `"example.com/a":1`, `"generation":"g1"`, `"resultType":"complete"`} {
		if !strings.Contains(r.Body, bytes) {
			t.Errorf("no %s in %s", bytes, r.Body)
		}
	}
	if strings.Contains(r.Body, "forged") {
		t.Errorf("an upstream spoke for catalogd: %s", r.Body)
	}
}

func TestCallErrors(t *testing.T) {
	t.Parallel()
	d := servetest.Start(t, servetest.Weather())
	for _, test := range []struct {
		params, code string
		text         []string
	}{
		{`"name":"weather","arguments":{"town":"Bern","units":"kelvin"}`, "invalid_arguments", []string{"/city", "/town", "/units"}},
		{`"name":"denied"`, "denied", []string{"not on Sundays"}},
		{`"name":"writes"`, "effector_required", []string{"writes"}},
		{`"name":"broken"`, "binding_failed", nil},
	} {
		result, _ := d.Modern(t, "/mcp", "tools/call", test.params).Result(t)
		if result["isError"] != true {
			t.Errorf("%s: %v", test.params, result)
			continue
		}
		meta := result["_meta"].(map[string]any)
		failure := meta["catalogd/error"].(map[string]any)
		if failure["code"] != test.code {
			t.Errorf("%s: %v", test.params, failure)
		}
		if id, _ := meta["catalogd/call"].(map[string]any)["id"].(string); len(id) != 32 || !strings.Contains(d.Log.String(), id) {
			t.Errorf("%s: call id %q is not in the log", test.params, id)
		}
		said := result["content"].([]any)[0].(map[string]any)["text"].(string)
		for _, want := range test.text {
			if !strings.Contains(said, want) {
				t.Errorf("%s: %q does not say %q", test.params, said, want)
			}
		}
		if strings.Contains(said, "/home/secret") {
			t.Errorf("%q tells the operator's error", said)
		}
		if test.code == "invalid_arguments" && len(failure["violations"].([]any)) != 3 {
			t.Errorf("violations: %v", failure)
		}
	}
}

// A name that the branch may not see is answered like one that doesn't exist (T3).
func hiddenIsMissing(t *testing.T) {
	t.Parallel()
	c := servetest.Weather()
	with := servetest.Start(t, c)
	c.Tools = c.Tools[:len(c.Tools)-1]
	without := servetest.Start(t, c)
	for _, call := range []func(*servetest.Server) servetest.Response{
		func(d *servetest.Server) servetest.Response {
			return d.Modern(t, "/mcp", "tools/call", `"name":"private"`)
		},
		func(d *servetest.Server) servetest.Response {
			return d.Do(t, "POST", "/mcp", servetest.LegacyBody("tools/call", `"name":"private"`), d.Session(t, "/mcp")...)
		},
	} {
		hidden, missing := call(with), call(without)
		for _, r := range []*servetest.Response{&hidden, &missing} {
			r.Body = callID.ReplaceAllString(r.Body, "ID")
		}
		if hidden.Status != missing.Status || hidden.Body != missing.Body {
			t.Errorf("hidden %d %s\nmissing %d %s", hidden.Status, hidden.Body, missing.Status, missing.Body)
		}
		if _, failure := hidden.Result(t); failure["code"] != -32602.0 {
			t.Errorf("%v", failure)
		}
	}
	_, failure := with.Modern(t, "/mcp", "tools/call", `"name":"weathr"`).Result(t)
	if diff := cmp.Diff(map[string]any{
		"nearest": []any{"weather"}, "catalogd/error": map[string]any{"code": "unknown_tool"},
	}, failure["data"], cmpopts.IgnoreMapEntries(func(name string, _ any) bool { return name == "catalogd/call" })); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(failure["message"].(string), `did you mean "weather"?`) {
		t.Errorf("%v", failure)
	}
}

func TestPanicTellsNothing(t *testing.T) {
	t.Parallel()
	d := servetest.Start(t, servetest.Weather())
	r := d.Modern(t, "/mcp", "tools/call", `"name":"panics"`)
	result, _ := r.Result(t)
	if result["isError"] != true || !strings.Contains(r.Body, `"code":"internal"`) || strings.Contains(r.Body, "secret") {
		t.Errorf("%s", r.Body)
	}
	message := result["content"].([]any)[0].(map[string]any)["text"].(string)
	id := message[strings.LastIndex(message, " ")+1:]
	if log := d.Log.String(); !strings.Contains(log, id) || !strings.Contains(log, "secret in a panic") {
		t.Errorf("the log does not have the panic as %s", id)
	}
}

func TestCheckAddr(t *testing.T) {
	t.Parallel()
	for addr, ok := range map[string]bool{
		"127.0.0.1:8420": true, "localhost:8420": true, "[::1]:8420": true, "127.0.0.2:0": true,
		"0.0.0.0:8420": false, ":8420": false, "[::]:8420": false, "192.168.1.2:8420": false, "example.com:8420": false, "127.0.0.1": false,
		"localhost.evil:8420": false,
	} {
		err := httpapi.CheckAddr(addr)
		if (err == nil) != ok {
			t.Errorf("%s: %v", addr, err)
		}
	}
	if err := httpapi.CheckAddr("0.0.0.0:8420"); !strings.Contains(err.Error(), "without tokens everyone who connects is the operator") {
		t.Errorf("%v", err)
	}
}

// A branch that a generation no longer has ends: its address, its sessions and its streams.
func TestBranchEnds(t *testing.T) {
	t.Parallel()
	c := servetest.Weather()
	d := servetest.Start(t, c)
	session := d.Session(t, "/branches/research/mcp")
	stream := d.Stream(t, "/branches/research/mcp", session)
	gone := servetest.Weather()
	delete(gone.Branches, "research")
	d.Swap(t, gone, "research")
	if rest := stream.Rest(t); strings.Contains(rest, "list_changed") {
		t.Errorf("a removed branch said %q", rest)
	}
	if r := d.Do(t, "POST", "/branches/research/mcp", servetest.LegacyBody("tools/list", ""), session...); r.Status != 404 {
		t.Errorf("%+v", r)
	}
	d.Swap(t, c, "research")
	if r := d.Do(t, "POST", "/branches/research/mcp", servetest.LegacyBody("tools/list", ""), session...); r.Status != 404 || !strings.Contains(r.Body, "session") {
		t.Errorf("an old session lives in a new branch: %+v", r)
	}
}

func TestListIsEncodedOncePerView(t *testing.T) {
	t.Parallel()
	d := servetest.Start(t, servetest.Weather())
	first := d.Modern(t, "/mcp", "tools/list", "")
	d.Swap(t, servetest.Weather(), "default")
	if second := d.Modern(t, "/mcp", "tools/list", ""); first.Body != second.Body {
		t.Error("the same view lists differently")
	}
	var m map[string]json.RawMessage
	if err := json.Unmarshal([]byte(first.Body), &m); err != nil {
		t.Fatal(err)
	}
	if r := d.Modern(t, "/mcp", "tools/list", `"cursor":"x"`); r.Status != 400 || !strings.Contains(r.Body, "-32602") {
		t.Errorf("cursor: %+v", r)
	}
	if r := d.Do(t, http.MethodPost, "/mcp", servetest.LegacyBody("tools/list", `"cursor":"x"`), d.Session(t, "/mcp")...); r.Status != 200 || !strings.Contains(r.Body, "-32602") {
		t.Errorf("cursor: %+v", r)
	}
}
