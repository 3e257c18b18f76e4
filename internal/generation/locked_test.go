package generation_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/internal/lockfile"
	"github.com/catalogd/catalogd/internal/servetest"
	"github.com/catalogd/catalogd/registry"
)

// locked is a catalog of one tool as a server defines it, of the given effect, that answers this result.
func locked(t *testing.T, definition string, effect registry.Effect, result registry.Result) servetest.Catalog {
	t.Helper()
	all := func(string) bool { return true }
	offer := lockfile.ReadOffer(lockfile.Identity{Name: "up", Version: "1", Protocol: servetest.ModernVersion}, []json.RawMessage{json.RawMessage(definition)})
	s, _ := lockfile.Merge(lockfile.Server{Name: "up"}, offer, all, all, time.Unix(0, 0))
	for _, tool := range s.Tools {
		s.SetEffect(tool.Name, effect)
	}
	f := &lockfile.File{}
	f.Put(s)
	j := lockfile.Join(&registry.Build{Servers: []registry.Server{{Name: "up", Discover: &registry.Discover{}, CallTimeout: time.Minute}}}, f)
	if len(j.Tools) != 1 {
		t.Fatalf("%v", j.Degraded)
	}
	return servetest.Catalog{ID: "g1", Branches: map[string][]string{"default": nil}, Tools: []servetest.Fixture{{Tool: j.Tools[0], Run: servetest.Invoker(
		func(context.Context, contract.Args) (*registry.Result, error) { r := result; return &r, nil })}}}
}

// listedTools is the one tool in the list of a branch, by its fields, for each era.
func listedTools(t *testing.T, d *servetest.Server) map[string]map[string]json.RawMessage {
	t.Helper()
	out := map[string]map[string]json.RawMessage{}
	for era, body := range map[string]string{
		servetest.ModernVersion: d.Modern(t, "/mcp", "tools/list", "").Body,
		servetest.LegacyVersion: d.Do(t, "POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, d.Session(t, "/mcp")...).Body,
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
// operator's word alone, and a hint that contradicts it is left out.
func TestAnnotationsAreServedAsLocked(t *testing.T) {
	t.Parallel()
	const (
		icons = `[{"src":"data:image/png;base64,AA==","mimeType":"image/png","sizes":["48x48"],"theme":"dark"}]`
		meta  = `{"example.com/a":{"n":1.50},"ui":{"resourceUri":"ui://x"}}`
		own   = `"idempotentHint":true,"openWorldHint":false,"own":[1e2]`
		hints = `"destructiveHint":true,` + own
	)
	for effect, served := range map[registry.Effect]string{
		registry.Read:  `{"title":"Old",` + own + `,"readOnlyHint":true}`,
		registry.Write: `{"title":"Old",` + hints + `,"readOnlyHint":false}`,
	} {
		for _, said := range []string{"", `,"readOnlyHint":true`, `,"readOnlyHint":false`} {
			definition := `{"name":"t","title":"T","inputSchema":{"type":"object"},"icons":` + icons + `,"_meta":` + meta + `,"annotations":{"title":"Old",` + hints + said + `}}`
			for era, got := range listedTools(t, servetest.Start(t, locked(t, definition, effect, registry.Result{}))) {
				for field, want := range map[string]string{
					"icons": icons, "_meta": meta, "title": `"T"`, "annotations": served,
				} {
					if string(got[field]) != want {
						t.Errorf("effect %s, server says %q, %s: %s: got %s, want %s", effect, said, era, field, got[field], want)
					}
				}
			}
		}
	}
}

// A locked write tool that has an output schema promises what the server promises, or a handle: what the references in it
// mean stays. Older clients see nothing of results that are no objects, and get the handle as any structured content.
func TestLockedWriteToolPromisesResultOrHandle(t *testing.T) {
	t.Parallel()
	for schema, want := range map[string]map[string]string{
		`{"type":"object","properties":{"n":{"$ref":"#/definitions/N"}},"definitions":{"N":{"type":"integer"}}}`: {
			servetest.ModernVersion: `{"type":"object","anyOf":[{"type":"object","properties":{"n":{"$ref":"#/definitions/N"}}},` + registry.HandleSchema + `],"definitions":{"N":{"type":"integer"}}}`,
			servetest.LegacyVersion: `{"type":"object","anyOf":[{"type":"object","properties":{"n":{"$ref":"#/definitions/N"}}},` + registry.HandleSchema + `],"definitions":{"N":{"type":"integer"}}}`,
		},
		`{"type":"array","items":{"$ref":"#/$defs/I"},"$defs":{"I":{"anyOf":[{"type":"integer"},{"$ref":"#"}]}}}`: {
			servetest.ModernVersion: `{"anyOf":[{"type":"array","items":{"$ref":"#/$defs/I"}},` + registry.HandleSchema + `],"$defs":{"I":{"anyOf":[{"type":"integer"},{"$ref":"#/anyOf/0"}]}}}`,
			servetest.LegacyVersion: ``,
		},
	} {
		definition := `{"name":"t","inputSchema":{"type":"object"},"outputSchema":` + schema + `}`
		for era, got := range listedTools(t, servetest.Start(t, locked(t, definition, registry.Write, registry.Result{}))) {
			if string(got["outputSchema"]) != want[era] {
				t.Errorf("%s in %s: got %s, want %s", schema, era, got["outputSchema"], want[era])
			}
		}
		for era, got := range listedTools(t, servetest.Start(t, locked(t, definition, registry.Read, registry.Result{}))) {
			if said := string(got["outputSchema"]); strings.Contains(said, "intent") {
				t.Errorf("a read tool in %s: got %s", era, said)
			}
		}
	}
}

// What a declared write tool says of itself, in the list of each era and in the form of each provider: no hint of what it
// destroys, and that it is idempotent only where that is declared.
func TestDeclaredWriteToolIsListed(t *testing.T) {
	t.Parallel()
	const result = `{"type":"object","properties":{"id":{"type":"string"}},"required":["id"],"additionalProperties":false}`
	for _, tc := range []struct {
		effect     registry.Effect
		idempotent bool
		want       string
	}{
		{registry.Read, false, `{"title":"T","readOnlyHint":true}`},
		{registry.Write, false, `{"title":"T","readOnlyHint":false}`},
		{registry.Write, true, `{"title":"T","readOnlyHint":false,"idempotentHint":true}`},
	} {
		output := `{"type":"object","anyOf":[` + result + `,` + registry.HandleSchema + `]}`
		if tc.effect == registry.Read {
			output = result
		}
		c := locked(t, `{"name":"t","inputSchema":{"type":"object","additionalProperties":false}}`, tc.effect, registry.Result{})
		declared := &c.Tools[0].Tool
		declared.Title, declared.Idempotent, declared.Annotations = "T", tc.idempotent, nil
		declared.Result = &contract.Spec{
			Schema: json.RawMessage(result), Strictness: contract.Closed, Fields: []contract.Field{{Name: "id", Types: []string{"string"}, Required: true}},
		}
		d := servetest.Start(t, c)
		for era, got := range listedTools(t, d) {
			if string(got["annotations"]) != tc.want || string(got["outputSchema"]) != output {
				t.Errorf("%s, %v, %s: got %s and %s, want %s and %s", tc.effect, tc.idempotent, era, got["annotations"], got["outputSchema"], tc.want, output)
			}
		}
		if got := d.Do(t, "GET", "/branches/default/tools", "").Body; !strings.Contains(got, `"outputSchema":`+output+`,"annotations":`+tc.want+`}`) {
			t.Errorf("%s, %v: in the HTTP API: %s", tc.effect, tc.idempotent, got)
		}
		if got := d.Do(t, "GET", "/branches/default/tools?dialect=openai", "").Body; strings.Contains(got, "intent") || !strings.Contains(got, `"parameters"`) {
			t.Errorf("%s, %v: for a provider, which takes no schema of results: %s", tc.effect, tc.idempotent, got)
		}
	}
}

// Results that are no objects came with 2026-07-28: its clients learn of their schema, older ones are not,
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
		d := servetest.Start(t, locked(t, definition, registry.Read, registry.Result{Structured: json.RawMessage(tc.structured), Content: []json.RawMessage{registry.Text("said")}}))
		for era, got := range listedTools(t, d) {
			want := ""
			if era == servetest.ModernVersion {
				want = schema
			}
			if string(got["outputSchema"]) != want {
				t.Errorf("%s: got the output schema %s, want %s", era, got["outputSchema"], want)
			}
		}
		if got := d.Modern(t, "/mcp", "tools/call", `"name":"t","arguments":{}`).Body; !strings.Contains(got, tc.want) {
			t.Errorf("%s: got %s, want %s", tc.structured, got, tc.want)
		}
	}
	// An object among alternatives is one.
	either := fmt.Sprintf(`{"name":"t","inputSchema":{"type":"object"},"outputSchema":{"anyOf":[%s,{"type":"object","required":["a"]}]}}`, schema)
	d := servetest.Start(t, locked(t, either, registry.Read, registry.Result{Structured: json.RawMessage(`{"a":1}`)}))
	if got := d.Modern(t, "/mcp", "tools/call", `"name":"t","arguments":{}`).Body; !strings.Contains(got, `"structuredContent":{"a":1}`) {
		t.Errorf("got %s", got)
	}
}
