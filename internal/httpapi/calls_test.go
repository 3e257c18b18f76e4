package httpapi_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/internal/servetest"
	"github.com/catalogd/catalogd/invoke"
	"github.com/catalogd/catalogd/registry"
)

var callID = regexp.MustCompile(`"catalogd/call":\{[^}]*"id":"([0-9a-f]{32})"|"call":"([0-9a-f]{32})"`)

// idIn is the id of the call that an answer has.
func idIn(t *testing.T, body string) string {
	t.Helper()
	m := callID.FindStringSubmatch(body)
	if m == nil {
		t.Fatalf("no id of a call in %s", body)
	}
	return m[1] + m[2]
}

func (h *house) call(id, who string) (e invoke.Event, status int) {
	h.t.Helper()
	status, _, body := h.do("GET", "/calls/"+id, "", h.as(who)...)
	if status == 200 {
		if err := json.Unmarshal([]byte(body), &e); err != nil {
			h.t.Fatalf("%v in %s", err, body)
		}
	}
	return e, status
}

// TestCallEvents makes calls in every way and asks for each by the id in its answer. The log has the same id.
func TestCallEvents(t *testing.T) {
	t.Parallel()
	h := open(t)
	session := h.SessionAs(t, "/mcp", h.as("ann"))
	modern := func(params string) string {
		return h.Modern(t, "/mcp", "tools/call", params, h.as("ann")...).Body
	}
	legacy := func(params string) string {
		return h.Do(t, "POST", "/mcp", servetest.LegacyBody("tools/call", params), session...).Body
	}
	envelope := func(body string) string {
		return h.Do(t, "POST", "/branches/default/calls", body, h.as("ann")...).Body
	}
	const invalid = "invalid_arguments"
	for _, test := range []struct {
		name, answer, tool string
		status             registry.Status
		says               string
		code               registry.ErrorCode
	}{
		{"2026-07-28", modern(`"name":"hello"`), "hello", registry.Succeeded, "hello", ""},
		{"a session", legacy(`"name":"hello"`), "hello", registry.Succeeded, "hello", ""},
		{"an envelope", envelope(`{"function":"hello"}`), "hello", registry.Succeeded, "hello", ""},
		{"invalid arguments", modern(`"name":"hello","arguments":{"a":1}`), "hello", registry.Rejected, "", invalid},
		{"an unknown tool", modern(`"name":"helo"`), "helo", registry.Rejected, "", registry.UnknownTool},
		{"an unknown tool in a session", legacy(`"name":"helo"`), "helo", registry.Rejected, "", registry.UnknownTool},
		{"no effects in this generation", envelope(`{"function":"note"}`), "note", registry.Rejected, "", registry.EffectorRequired},
	} {
		id := idIn(t, test.answer)
		e, status := h.call(id, "ann")
		if status != 200 || e.ID != id || e.Tool != test.tool || e.Status != test.status || e.Branch != "default" ||
			e.Generation != "g1" || e.Principal != "ann" || e.Duration <= 0 || e.Started.IsZero() {
			t.Errorf("%s: got %d %+v", test.name, status, e)
		}
		if (e.Error == nil) != (test.code == "") || e.Error != nil && (e.Error.Code != test.code || e.Error.Message == "") {
			t.Errorf("%s: got error %+v, want %s", test.name, e.Error, test.code)
		}
		if test.says != "" && (e.Result == nil || !strings.Contains(string(e.Result.Content[0]), test.says) ||
			e.Decision != "allowed" || !strings.HasPrefix(e.Digest, "sha256:")) {
			t.Errorf("%s: got %+v, want the result, the decision and the digest", test.name, e)
		}
		if !strings.Contains(h.Log.String(), "id="+id) {
			t.Errorf("%s: the log has no line of call %s", test.name, id)
		}
		if e, status := h.call(id, "root"); status != 200 || e.ID != id {
			t.Errorf("%s: an admin got %d", test.name, status)
		}
		missing := h.want(404, "GET", "/calls/"+strings.Repeat("0", 32), "", h.as("bob")...)
		if got := h.want(404, "GET", "/calls/"+id, "", h.as("bob")...); strings.ReplaceAll(got, id, strings.Repeat("0", 32)) != missing {
			t.Errorf("%s: to another it is %s, and one that is not there is %s", test.name, got, missing)
		}
	}
}

// TestCallEventWhileItRuns checks the event of a call that has not ended.
func TestCallEventWhileItRuns(t *testing.T) {
	t.Parallel()
	h := open(t)
	var id string
	h.busy(func() {
		for _, e := range h.events.Running() {
			id = e.ID
		}
		if e, status := h.call(id, "ann"); status != 200 || e.Status != registry.Running || e.Duration != 0 || e.Result != nil {
			t.Errorf("while it runs: got %d %+v", status, e)
		}
	})
	if e, status := h.call(id, "ann"); status != 200 || e.Status != registry.Succeeded || e.Duration <= 0 {
		t.Errorf("after its end: got %d %+v", status, e)
	}
}

// TestEnvelopeNamesItsCalls checks the header with the ids of the calls, for forms that have no place for them. A call that
// was not begun has one too.
func TestEnvelopeNamesItsCalls(t *testing.T) {
	t.Parallel()
	h := open(t)
	const one = `{"id":"%d","type":"function","function":{"name":"%s","arguments":"{}"}}`
	body := "[" + fmt.Sprintf(one, 1, "hello") + "," + fmt.Sprintf(one, 2, "helo") + "," + fmt.Sprintf(one, 3, "hello") + "]"
	status, header, text := h.do("POST", "/branches/default/calls?strategy=sequential&onError=stop", body, h.as("ann")...)
	ids := strings.Split(header.Get("Catalogd-Calls"), ", ")
	if status != 200 || len(ids) != 3 {
		t.Fatalf("got %d %v %s", status, header, text)
	}
	for i, want := range []registry.Status{registry.Succeeded, registry.Rejected, registry.Rejected} {
		e, status := h.call(ids[i], "ann")
		if status != 200 || e.Status != want || !strings.Contains(h.Log.String(), "id="+ids[i]) {
			t.Errorf("call %d: got %d %+v, want %s and a line of the log", i+1, status, e, want)
		}
		if i == 2 && (e.Error == nil || e.Error.Code != registry.Cancelled || e.Tool != "hello") {
			t.Errorf("the call that was not begun: got %+v", e)
		}
	}
	many := "[" + strings.Join(slices.Repeat([]string{`{"function":"hello"}`}, 65), ",") + "]"
	r := h.Do(t, "POST", "/branches/default/calls?strategy=sequential", many, h.as("ann")...)
	if r.Status != 200 || r.Header.Get("Catalogd-Calls") != "" {
		t.Errorf("65 calls: got %d and the header %v, want none", r.Status, r.Header["Catalogd-Calls"])
	}
}
