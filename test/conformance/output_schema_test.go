package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/catalogd/catalogd"
	"github.com/catalogd/catalogd/internal/lockfile"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
	"github.com/catalogd/catalogd/test/internal/harness"
)

// declaredOutputs is a catalog of one declaration with both effects, whose result has every reference that CUE makes.
const declaredOutputs = `package catalog

#Node: {
	name!: string
	kind!: "leaf" | "branch"
	below?: [...#Node]
}

#Tool: {
	description: "Plant a tree."
	result: {tree!: #Node, at!: =~"^[0-9]+$", pair?: [int, string]}
	binding: jq: program: "."
}

tools: read: #Tool & {effect: "read"}
tools: write: #Tool & {effect: "write"}

branches: default: {}
`

// serversOutputs are output schemas of servers, in each way in which they refer to their parts.
var serversOutputs = []string{
	`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}`,
	`{"type":"object","properties":{"n":{"$ref":"#/$defs/N"}},"required":["n"],"$defs":{"N":{"type":"integer"}}}`,
	`{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"next":{"$ref":"#"},"n":{"type":"integer"}},"required":["n"]}`,
	`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"n":{"$ref":"#/definitions/N"},"t":{"type":"array","items":[{"type":"integer"}],"additionalItems":false}},"required":["n"],"definitions":{"N":{"type":"integer"}}}`,
	`{"$id":"https://example.com/n","type":"object","properties":{"n":{"type":"integer"},"next":{"$ref":"https://example.com/n"}},"required":["n"]}`,
	`{"type":"object","properties":{"n":{"type":"integer"},"m":{"$ref":"#/properties/n"}},"required":["n"]}`,
}

// serversValues are what these take and refuse.
var serversValues = []string{`{"n":1}`, `{"n":"x"}`, `{}`, `{"n":1,"next":{"n":2}}`, `{"n":1,"next":{"n":"x"}}`, `{"n":1,"t":[1]}`, `{"n":1,"t":[1,2]}`, `{"n":1,"m":"x"}`}

// question is an output schema, and values that a validator is to decide about.
type question struct {
	Schema json.RawMessage   `json:"schema"`
	Values []json.RawMessage `json:"values"`
}

// The validators of clients take of a write tool what they take of the same tool that only reads, and a handle; of another
// handle they take none.
func TestClientsValidateResultsAndHandles(t *testing.T) {
	t.Parallel()
	handle := registry.Handle{ID: "00112233445566778899aabbccddeeff", State: "awaiting_approval", Tool: "write", Message: "Do not call again."}.Result().Structured
	strange := []string{`{"intent":{}}`, `{"intent":{"id":"a","state":"b","tool":"c","message":1}}`, `{"intent":{"id":"a","state":"b","tool":"c","message":"d","more":1}}`}
	var alone, either []question
	ask := func(read, write json.RawMessage, values ...string) {
		q := question{Schema: read}
		for _, v := range values {
			q.Values = append(q.Values, json.RawMessage(v))
		}
		alone = append(alone, q)
		either = append(either, question{Schema: write, Values: append(q.Values[:len(q.Values):len(q.Values)], handle)})
	}
	declared := listedOutputs(t)
	ask(declared["read"], declared["write"], append([]string{
		`{"tree":{"name":"a","kind":"leaf"},"at":"1"}`, `{"tree":{"name":"a","kind":"branch","below":[{"name":"b","kind":"leaf"}]},"at":"1"}`,
		`{"tree":{"name":"a","kind":"branch","below":[{"name":"b"}]},"at":"1"}`, `{"tree":{"name":"a","kind":"leaf"},"at":"x"}`, `{}`,
	}, strange...)...)
	for _, schema := range serversOutputs {
		ask(serversOutput(t, schema, registry.Read), serversOutput(t, schema, registry.Write), append(serversValues, strange...)...)
	}
	aloneSaid, eitherSaid := typeScriptVerdicts(t, alone), typeScriptVerdicts(t, either)
	aloneSaid["Go SDK"], eitherSaid["Go SDK"] = goVerdicts(t, alone), goVerdicts(t, either)
	for name := range maps.Keys(eitherSaid) {
		taken := 0
		for i, q := range either {
			said := eitherSaid[name][i]
			for j, was := range aloneSaid[name][i] {
				if said[j] != was {
					t.Errorf("%s: %s is valid: %v, and of the tool that only reads %v, by %s", name, q.Values[j], said[j], was, q.Schema)
				}
				if was {
					taken++
				}
			}
			if !said[len(said)-1] {
				t.Errorf("%s refuses the handle, by %s", name, q.Schema)
			}
		}
		if taken < 20 {
			t.Errorf("%s takes %d results, so that little was compared", name, taken)
		}
	}
	if len(eitherSaid) != 4 {
		t.Errorf("%d validators were asked", len(eitherSaid))
	}
}

// listedOutputs are the output schemas of the declared tools, as clients see them.
func listedOutputs(t *testing.T) map[string]json.RawMessage {
	t.Helper()
	dir := t.TempDir()
	harness.EmptyStarter(t, dir)
	harness.WriteFile(t, filepath.Join(dir, "policy/trust/data.yaml"), "entries: {}\n")
	harness.WriteFile(t, filepath.Join(dir, "catalog/tools.cue"), declaredOutputs)
	c, err := catalogd.New(t.Context(), catalogd.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	offers, err := c.Branch("default").Offer(registry.All())
	if err != nil || len(offers.Tools) != 5 { // with the built-in ones
		t.Fatalf("%+v %v", offers, err)
	}
	out := map[string]json.RawMessage{}
	for _, raw := range offers.Tools {
		var tool struct {
			Name         string
			OutputSchema json.RawMessage
		}
		if err := json.Unmarshal(raw, &tool); err != nil {
			t.Fatal(err)
		}
		out[tool.Name] = tool.OutputSchema
	}
	return out
}

// serversOutput is the output schema that clients learn of a discovered tool.
func serversOutput(t *testing.T, schema string, effect registry.Effect) json.RawMessage {
	t.Helper()
	all := func(string) bool { return true }
	offer := lockfile.ReadOffer(lockfile.Identity{Name: "up"}, []json.RawMessage{json.RawMessage(`{"name":"t","inputSchema":{"type":"object"},"outputSchema":` + schema + `}`)})
	s, _ := lockfile.Merge(lockfile.Server{Name: "up"}, offer, all, all, time.Unix(0, 0))
	s.SetEffect("t", effect)
	f := &lockfile.File{}
	f.Put(s)
	j := lockfile.Join(&registry.Build{Servers: []registry.Server{{Name: "up", Discover: &registry.Discover{}, CallTimeout: time.Minute}}}, f)
	r, problems := registry.New(&registry.Build{Tools: j.Tools}, func(registry.Tool) (registry.Bound, problem.List) { return registry.Bound{Hidden: "not run"}, nil }, nil, nil)
	if len(problems) > 0 || len(j.Tools) != 1 {
		t.Fatalf("%s: %v %v", schema, j.Problems, problems)
	}
	e, _ := r.Lookup("t")
	return e.Output()
}

func typeScriptVerdicts(t *testing.T, questions []question) (verdicts map[string][][]bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), harness.Timeout)
	defer cancel()
	asked, err := json.Marshal(questions)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, "node", filepath.Join(harness.Root(t), "testdata/clients/output_schemas.mjs"))
	cmd.Stdin, cmd.Stderr = bytes.NewReader(asked), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out, &verdicts); err != nil {
		t.Fatal(err)
	}
	return verdicts
}

func goVerdicts(t *testing.T, questions []question) (verdicts [][]bool) {
	t.Helper()
	for _, q := range questions {
		var schema jsonschema.Schema
		if err := json.Unmarshal(q.Schema, &schema); err != nil {
			t.Fatal(err)
		}
		resolved, err := schema.Resolve(nil)
		if err != nil {
			t.Fatalf("%v in %s", err, q.Schema)
		}
		var verdict []bool
		for _, raw := range q.Values {
			var v any
			if err := json.Unmarshal(raw, &v); err != nil {
				t.Fatal(err)
			}
			verdict = append(verdict, resolved.Validate(v) == nil)
		}
		verdicts = append(verdicts, verdict)
	}
	return verdicts
}
