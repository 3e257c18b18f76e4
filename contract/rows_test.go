package contract_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/contract"
)

// row is one test under the number that the lists of bad inputs and threats give to what it holds against
// (docs/robustness.md).
type row struct {
	name string
	test func(*testing.T)
}

// TestBadInput has the rows of what a call brings.
func TestBadInput(t *testing.T) {
	for _, r := range []row{
		{"E5/violations", violationsAreBounded},
		{"E7/absurd numbers", absurdNumbersCostNothing},
	} {
		t.Run(r.name, r.test)
	}
}

// TestThreat has the threats that schemas and checks hold against.
func TestThreat(t *testing.T) {
	for _, r := range []row{
		{"T15/contradictions and references", newRefusesContradictions},
		{"T15/hostile schemas", hostileSchemas},
		{"T15/large values", largeValues},
		{"T15/absurd numbers", absurdNumbersCostNothing},
	} {
		t.Run(r.name, r.test)
	}
}

// Schemas come from CUE alone, or from a build file whose digest is checked; New refuses what no catalog can say all the
// same, and reads nothing.
func hostileSchemas(t *testing.T) {
	t.Parallel()
	canary := filepath.Join(t.TempDir(), "canary.json")
	if err := os.WriteFile(canary, []byte(`{"type":"integer"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, a := range map[string]string{
		"a file":                 fmt.Sprintf(`{"$ref":"file://%s"}`, canary),
		"an address":             `{"$ref":"http://127.0.0.1:1/s.json"}`,
		"a relative reference":   `{"$ref":"other.json"}`,
		"an unknown dialect":     `{"$schema":"https://example.com/mine","type":"integer"}`,
		"an id of elsewhere":     `{"$id":"http://example.com/x","$ref":"y"}`,
		"look-ahead":             `{"type":"string","pattern":"^(?!rm)"}`,
		"a broken pattern":       `{"type":"string","pattern":"("}`,
		"a pattern of keys":      `{"type":"object","patternProperties":{"(?=a)":true}}`,
		"a wrong type":           `{"type":"text"}`,
		"a wrong limit":          `{"type":"string","maxLength":"many"}`,
		"a reference to nothing": `{"$ref":"#/$defs/none"}`,
		"no schema":              `5`,
	} {
		_, err := contract.New(contract.Spec{
			Strictness: contract.Closed, Fields: []contract.Field{{Name: "a"}},
			Schema: json.RawMessage(fmt.Sprintf(`{"type":"object","properties":{"a":%s},"additionalProperties":false}`, a)),
		}, nil)
		if err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// A megabyte is checked by what the schema says of it and costs no more than reading it.
func largeValues(t *testing.T) {
	t.Parallel()
	c, err := contract.New(contract.Spec{
		Strictness: contract.Closed, Fields: []contract.Field{{Name: "a"}, {Name: "b"}},
		Schema: json.RawMessage(`{"type":"object","properties":{"a":{"type":"string","pattern":"^(a+)+$"},"b":{"type":"array","items":{"type":"integer"},"uniqueItems":true}},"additionalProperties":false}`),
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, violations := check(c, json.RawMessage(`{"a":"`+strings.Repeat("a", 1<<20)+`!"}`)); len(violations) != 1 {
		t.Errorf("%.200v", violations)
	}
	var numbers strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&numbers, "%d,", i)
	}
	if _, violations := check(c, json.RawMessage(`{"b":[`+numbers.String()+`7]}`)); len(violations) != 1 {
		t.Errorf("%.200v", violations)
	}
}
