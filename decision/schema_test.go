package decision_test

import (
	"encoding/json"
	"math/big"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/decision/trust"
)

// Every field that a policy may read is described, where the Go type is: `catalogd policy schema` is what policies are
// written by. docs/policy.md names it, too.
func TestEveryFieldIsDescribed(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/policy.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, point := range decision.Points() {
		var schema map[string]any
		if err := json.Unmarshal(decision.Schema(point), &schema); err != nil {
			t.Fatal(err)
		}
		if schema["description"] == "" {
			t.Errorf("%s is not described", point)
		}
		eachProperty(schema, "", func(path string, property map[string]any) {
			if strings.Contains(path, ".pos.") { // problem.Position, which the field that has it describes
				return
			}
			if text, _ := property["description"].(string); text == "" {
				t.Errorf("%s: %s has no comment in its Go type", point, path)
			}
			name := path[strings.LastIndex(path, ".")+1:]
			if !strings.Contains(string(page), name) {
				t.Errorf("docs/policy.md doesn't name %s of %s", path, point)
			}
		})
	}
}

func eachProperty(schema map[string]any, path string, visit func(string, map[string]any)) {
	properties, _ := schema["properties"].(map[string]any)
	for name, p := range properties {
		property := p.(map[string]any)
		below := strings.TrimPrefix(path+"."+name, ".")
		visit(below, property)
		eachProperty(property, below, visit)
	}
}

// mirror is a policy that says no at every point, and what it was asked.
func mirror(t testing.TB) *decision.Engine {
	fsys := minimal()
	for _, point := range decision.Points() {
		with(fsys, "policy/"+string(point)+".rego", "package catalogd."+string(point)+
			"\n\ndefault allow := false\n\ndeny contains json.marshal(input)\n")
	}
	return load(t, fsys)
}

// schemaOf compiles the published schema of a point.
func schemaOf(t testing.TB, point decision.Point) *jsonschema.Schema {
	parsed, err := jsonschema.UnmarshalJSON(strings.NewReader(string(decision.Schema(point))))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("input.json", parsed); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("input.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// What a policy is asked with is what its schema says, at every point.
func TestInputsFitTheirSchemas(t *testing.T) {
	t.Parallel()
	engine := mirror(t)
	for _, point := range decision.Points() {
		d := ask(t.Context(), engine, point)
		if len(d.Reasons) != 1 {
			t.Fatalf("%v", d)
		}
		asked, err := jsonschema.UnmarshalJSON(strings.NewReader(d.Reasons[0]))
		if err != nil {
			t.Fatal(err)
		}
		if err := schemaOf(t, point).Validate(asked); err != nil {
			t.Errorf("%s: %v\n%s", point, err, d.Reasons[0])
		}
	}
}

// FuzzInput asks with any texts and arguments: what the policy sees fits the published schema and is exactly what it was
// asked with, or the answer is no without it. Nothing ends the engine.
func FuzzInput(f *testing.F) {
	f.Add("default", "team", "research", "get_x", "everyday", "/v1/x", `{"big": 9007199254740993, "s": "\u0000\ud7ff"}`)
	f.Add("", "", "", "", "", "", ``)
	f.Add("\xff\xfe", "a\x00b", "\u202e", "*", "input", "\\..\\", `{"a":1e400}`)
	f.Add("x", "y", "z", "t", "u", "//", `[1,2`)
	f.Add("x", "y", "z", "t", "u", "//", `{"a":1,"a":2}`)
	engine := mirror(f)
	schemas := map[decision.Point]*jsonschema.Schema{}
	for _, point := range decision.Points() {
		schemas[point] = schemaOf(f, point)
	}
	f.Fuzz(func(t *testing.T, branch, label, value, tool, tag, path, arguments string) {
		b := decision.Branch{Name: branch, Labels: map[string]string{label: value}}
		about := decision.Tool{Name: tool, Effect: "read", Tags: []string{tag}, Binding: "mcp", Server: value, Trust: label}
		who := decision.Principal{Name: value, Groups: []string{tag, branch}}
		call := decision.CallInput{Branch: b, Tool: about, Principal: who, Arguments: json.RawMessage(arguments), Time: time.Unix(int64(len(path)), 0).UTC()}
		list := decision.ListInput{Branch: b, Tool: about, Principal: who}
		connect := decision.ConnectInput{
			Subject: decision.Subject{Kind: "tool", Name: tool, Effect: "write"},
			Target: trust.Target{Kind: trust.HTTP, Headers: []string{tag}, URL: &trust.URL{
				Scheme: "https", Host: value, Port: len(path), Path: path, Segments: strings.Split(path, "/"),
				TLS: &trust.TLS{MinVersion: "1.2", ServerName: value, Verified: true},
			}},
			Observed: trust.Observed{SHA256: label, InTree: len(tag)%2 == 0, Addresses: []string{value}},
		}
		release := decision.ReleaseInput{Branch: b, Tool: about, Principal: who, Arguments: json.RawMessage(arguments), Time: call.Time, Intent: decision.Intent{
			ID: path, Staged: call.Time, Age: len(path), Attempt: 1 + len(tag), Keyed: len(tag)%2 == 0,
			Approval: &decision.IntentApproval{
				Asked: decision.AskedApproval{Groups: []string{tag}, Reason: label, Self: len(path)%2 == 0}, By: decision.Approver{Name: value, Groups: []string{tag, branch}}, At: call.Time,
			},
		}}
		_, connected := engine.Connect(t.Context(), connect)
		sees(t, schemas[decision.Connect], connected, connect)
		sees(t, schemas[decision.List], engine.List(t.Context(), list), list)
		if d := engine.Call(t.Context(), call); d.Code != decision.PolicyError {
			sees(t, schemas[decision.Call], d, call)
			sees(t, schemas[decision.Release], engine.Release(t.Context(), release), release)
		} else if d.Allow || arguments == "" || engine.Release(t.Context(), release).Code != decision.PolicyError {
			t.Errorf("%q: %v", arguments, d)
		}
	})
}

// sees checks that the mirror's answer d shows the input in.
func sees[T any](t *testing.T, schema *jsonschema.Schema, d decision.Decision, in T) {
	t.Helper()
	if d.Allow || len(d.Reasons) != 1 || d.Code != decision.Denied {
		t.Fatalf("%+v", d)
	}
	asked, err := jsonschema.UnmarshalJSON(strings.NewReader(d.Reasons[0]))
	if err != nil {
		t.Fatalf("%v: %s", err, d.Reasons[0])
	}
	if err := schema.Validate(asked); err != nil {
		t.Errorf("%v: %s", err, d.Reasons[0])
	}
	var want any
	said, err := json.Marshal(in)
	if err != nil {
		return // arguments that are no JSON
	}
	decoder := json.NewDecoder(strings.NewReader(string(said)))
	decoder.UseNumber()
	if err := decoder.Decode(&want); err != nil {
		t.Fatal(err)
	}
	if !contains(asked, want) {
		t.Errorf("asked with %s, the policy saw %s", said, d.Reasons[0])
	}
}

// contains reports whether seen has all of want; fields that are empty may be left out of what Go writes.
func contains(seen, want any) bool {
	switch want := want.(type) {
	case nil: // a list that Go never made
		seen, ok := seen.([]any)
		return ok && len(seen) == 0
	case map[string]any:
		seen, ok := seen.(map[string]any)
		for key, v := range want {
			ok = ok && contains(seen[key], v)
		}
		return ok
	case []any:
		seen, ok := seen.([]any)
		ok = ok && len(seen) == len(want)
		for i := 0; ok && i < len(want); i++ {
			ok = contains(seen[i], want[i])
		}
		return ok
	case json.Number:
		return same(seen, want)
	}
	return reflect.DeepEqual(seen, want)
}

// same compares numbers by their value: 1.0 is 1.
func same(seen any, want json.Number) bool {
	number, ok := seen.(json.Number)
	if !ok {
		return false
	}
	a, ok1 := new(big.Rat).SetString(number.String())
	b, ok2 := new(big.Rat).SetString(want.String())
	return ok1 && ok2 && a.Cmp(b) == 0
}
