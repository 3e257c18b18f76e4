package serve_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/internal/lock"
	"github.com/catalogd/catalogd/registry"
)

// locked is a catalog of one tool as a server defines it, of the given effect, that answers this result.
func locked(t *testing.T, definition string, effect registry.Effect, result registry.Result) catalog {
	t.Helper()
	all := func(string) bool { return true }
	offer := lock.ReadOffer(lock.Identity{Name: "up", Version: "1", Protocol: modernVersion}, []json.RawMessage{json.RawMessage(definition)})
	s, _ := lock.Merge(lock.Server{Name: "up"}, offer, all, all, time.Unix(0, 0))
	for _, tool := range s.Tools {
		s.SetEffect(tool.Name, effect)
	}
	f := &lock.File{}
	f.Put(s)
	j := lock.Join(&registry.Build{Servers: []registry.Server{{Name: "up", Discover: &registry.Discover{}, CallTimeout: time.Minute}}}, f)
	if len(j.Tools) != 1 {
		t.Fatalf("%v", j.Degraded)
	}
	return catalog{id: "g1", branches: map[string][]string{"default": nil}, tools: []fixture{{j.Tools[0], invoker(
		func(context.Context, contract.Args) (*registry.Result, error) { r := result; return &r, nil })}}}
}

// listedTools is the one tool in the list of a branch, by its fields, for each era.
func listedTools(t *testing.T, d *daemon) map[string]map[string]json.RawMessage {
	t.Helper()
	out := map[string]map[string]json.RawMessage{}
	for era, body := range map[string]string{
		modernVersion: d.modern(t, "/mcp", "tools/list", "").body,
		legacyVersion: d.do(t, "POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, d.session(t, "/mcp")...).body,
	} {
		var m struct {
			Result struct{ Tools []map[string]json.RawMessage }
		}
		if err := json.Unmarshal([]byte(body), &m); err != nil || len(m.Result.Tools) != 1 {
			t.Fatalf("%s: %s %v", era, body, err)
		}
		out[era] = m.Result.Tools[0]
	}
	return out
}

// What a server says of its tool is served as it is locked, byte for byte. Whether it only reads is the
// operator's word alone.
func TestAnnotationsAreServedAsLocked(t *testing.T) {
	t.Parallel()
	const (
		icons = `[{"src":"data:image/png;base64,AA==","mimeType":"image/png","sizes":["48x48"],"theme":"dark"}]`
		meta  = `{"example.com/a":{"n":1.50},"ui":{"resourceUri":"ui://x"}}`
		hints = `"destructiveHint":true,"idempotentHint":true,"openWorldHint":false,"own":[1e2]`
	)
	for effect, readOnly := range map[registry.Effect]string{registry.Read: "true", registry.Write: "false"} {
		for _, said := range []string{"", `,"readOnlyHint":true`, `,"readOnlyHint":false`} {
			definition := `{"name":"t","title":"T","inputSchema":{"type":"object"},"icons":` + icons + `,"_meta":` + meta + `,"annotations":{"title":"Old",` + hints + said + `}}`
			for era, got := range listedTools(t, start(t, locked(t, definition, effect, registry.Result{}))) {
				for field, want := range map[string]string{
					"icons": icons, "_meta": meta, "title": `"T"`, "annotations": `{"title":"Old",` + hints + `,"readOnlyHint":` + readOnly + `}`,
				} {
					if string(got[field]) != want {
						t.Errorf("effect %s, server says %q, %s: %s: got %s, want %s", effect, said, era, field, got[field], want)
					}
				}
			}
		}
	}
}

// Results that are no objects came with 2026-07-28: its clients are told of their schema, older ones are not,
// and both are protected by it.
func TestResultsThatAreNoObjects(t *testing.T) {
	t.Parallel()
	const schema = `{"type":"array","items":{"type":"integer"}}`
	const definition = `{"name":"t","inputSchema":{"type":"object"},"outputSchema":` + schema + `}`
	for _, tc := range []struct{ structured, want string }{
		{`[1,2]`, `"structuredContent":[1,2]`},
		{`[1,"x"]`, `- /1: got something else, expected an integer`},
		{`{"a":1}`, `- arguments: got something else, expected an array`},
		{`"x"`, `expected an array`},
	} {
		d := start(t, locked(t, definition, registry.Read, registry.Result{Structured: json.RawMessage(tc.structured), Content: []json.RawMessage{registry.Text("said")}}))
		for era, got := range listedTools(t, d) {
			want := ""
			if era == modernVersion {
				want = schema
			}
			if string(got["outputSchema"]) != want {
				t.Errorf("%s: got the output schema %s, want %s", era, got["outputSchema"], want)
			}
		}
		if got := d.modern(t, "/mcp", "tools/call", `"name":"t","arguments":{}`).body; !strings.Contains(got, tc.want) {
			t.Errorf("%s: got %s, want %s", tc.structured, got, tc.want)
		}
	}
	// An object among alternatives is one.
	either := fmt.Sprintf(`{"name":"t","inputSchema":{"type":"object"},"outputSchema":{"anyOf":[%s,{"type":"object","required":["a"]}]}}`, schema)
	d := start(t, locked(t, either, registry.Read, registry.Result{Structured: json.RawMessage(`{"a":1}`)}))
	if got := d.modern(t, "/mcp", "tools/call", `"name":"t","arguments":{}`).body; !strings.Contains(got, `"structuredContent":{"a":1}`) {
		t.Errorf("got %s", got)
	}
}
