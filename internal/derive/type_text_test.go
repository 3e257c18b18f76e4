package derive_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/problem"
)

// TestTypeAsText: a type written as a text, or as JSON Schema, is warned of, once and at its place; a text that
// is meant is not.
func TestTypeAsText(t *testing.T) {
	t.Parallel()
	jsonSchema := " is written as JSON Schema, which is not read as one: in CUE "
	for _, tt := range []struct {
		definitions, args string
		want              []string // position: the message, or its beginning
	}{
		{"", `x!: "string"`, []string{`6:5: "string" is a text, so nothing else is accepted here; write string without quotes for any value of the type, or "string" & string if the text is meant`}},
		{"", `x?: "Integer"`, []string{`6:5: "Integer" is a text, so nothing else is accepted here; write int without quotes`}},
		{"", `x: "bool?"`, []string{`6:4: "bool?" is a text, so nothing else is accepted here; write bool without quotes`}},
		{"", `x?: "[string]"`, []string{`6:5: "[string]" is a text, so nothing else is accepted here; write [...string] without quotes`}},
		{"", `x?: "int[]"`, []string{`6:5: "int[]" is a text, so nothing else is accepted here; write [...int] without quotes`}},
		{"", `x?: "List[str]"`, []string{`6:5: "List[str]" is a text, so nothing else is accepted here; write [...string] without quotes`}},
		{"", `x?: ["string"], y?: [..."number"]`, []string{`6:6: "string" is a text`, `6:25: "number" is a text`}},
		{"", `x?: {y?: "object"}, [=~"^a"]: "string"`, []string{`6:10: "object" is a text`, `6:31: "string" is a text`}},
		{`#D: y?: "string"`, `x?: #D`, []string{`4:9: "string" is a text`}},
		{"", `x!: "string" & string`, nil},
		{"", `x: *"string" | string`, nil},
		{"", `x!: "string" | "int"`, nil},
		{"", `x!: {type!: "string", a?: int} | {type!: "int", b?: int}`, nil},
		{"", `x!: "text", y?: "strings", z?: "list", n?: "null"`, nil},
		{"", `type!: string, properties?: {...}, required?: bool`, nil},
		{"", `x!: {type: "string", description: "d"}`, []string{`6:6: x` + jsonSchema + `it is x!: string, or x?: string where it may be left out, with the description as a comment above it`}},
		{"", `x!: {type: ["integer", "null"], minimum: 1}`, []string{`6:6: x` + jsonSchema + `it is x!: int | null, or x?: int | null`}},
		{"", `x!: {type: "array", items: {type: "string"}, maxItems: 3}`, []string{`6:6: x` + jsonSchema + `it is x!: [...string]`}},
		{"", `type: "object", properties: {x: {type: "string"}}, required: ["x"]`, []string{`6:1: args` + jsonSchema + `each property is a field, name!: string where it is required and name?: string where not`}},
		{"", `x!: {type: "string", unit: "m"}`, []string{`6:12: "string" is a text`}},
		{"", `x!: {type: "thing", description: "d"}`, nil},
	} {
		d := newDeclared(t, tt.definitions, tt.args, contract.Closed)
		var got []string
		fits := len(d.problems) == len(tt.want)
		for i, p := range d.problems.Sorted() {
			got = append(got, fmt.Sprintf("%d:%d: %s", p.Line, p.Col, p.Message))
			fits = fits && p.Code == problem.UnsupportedConstr && p.Severity == problem.Warning && strings.HasPrefix(got[i], tt.want[i])
		}
		if !fits {
			t.Errorf("%s\ngot  %q\nwant %q", tt.args, got, tt.want)
		}
	}
	if s := newDeclared(t, "", `x!: "string" & string`, contract.Closed).spec; len(s.Losses) > 0 || !strings.Contains(string(s.Schema), `"const":"string"`) {
		t.Errorf("what the message advises is not exact: %s %v", s.Schema, s.Losses)
	}
}
