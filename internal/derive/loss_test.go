package derive_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/catalogd/catalogd/contract"
)

// losing are constructs that JSON Schema says with conditions, or in part: the schema that is left, and the losses with
// their positions.
var losing = map[string]struct {
	definitions, args, schema string
	losses                    []string
}{
	"A32/guard":                      {"", "kind!: \"a\" | \"b\"\nif kind == \"a\" {extra!: string}", `{"type":"object","properties":{"kind":{"type":"string","enum":["a","b"]},"extra":{"type":"string"}},"required":["kind"],"additionalProperties":false,"if":{"properties":{"kind":{"const":"a"}},"required":["kind"]},"then":{"required":["extra"]},"else":{"properties":{"extra":false}}}`, nil},
	"A32/nested guard":               {"", `o?: {k!: int, if k > 1 {e!: int}}`, `{"type":"object","properties":{"o":{"type":"object","properties":{"k":{"type":"integer"},"e":{"type":"integer"}},"required":["k"],"additionalProperties":false,"if":{"properties":{"k":{"exclusiveMinimum":1}},"required":["k"]},"then":{"required":["e"]},"else":{"properties":{"e":false}}}},"additionalProperties":false}`, nil},
	"A32/guard in a definition":      {`#D: {k!: int, if k > 1 {e!: int}}`, `o?: #D`, `{"type":"object","properties":{"o":{"type":"object","properties":{"k":{"type":"integer"},"e":{"type":"integer"}},"required":["k"],"additionalProperties":false,"if":{"properties":{"k":{"exclusiveMinimum":1}},"required":["k"]},"then":{"required":["e"]},"else":{"properties":{"e":false}}}},"additionalProperties":false}`, nil},
	"A32/guard, embedded":            {`#D: {k!: int, if k > 1 {e!: int}}`, `o?: {#D, z?: int}`, `{"type":"object","properties":{"o":{"type":"object","properties":{"k":{"type":"integer"},"z":{"type":"integer"},"e":{"type":"integer"}},"required":["k"],"additionalProperties":false,"if":{"properties":{"k":{"exclusiveMinimum":1}},"required":["k"]},"then":{"required":["e"]},"else":{"properties":{"e":false}}}},"additionalProperties":false}`, nil},
	"A32/guard in a list":            {"", `o?: [...{k!: int, if k > 1 {e!: int}}]`, `{"type":"object","properties":{"o":{"type":"array","items":{"type":"object","properties":{"k":{"type":"integer"},"e":{"type":"integer"}},"required":["k"],"additionalProperties":false,"if":{"properties":{"k":{"exclusiveMinimum":1}},"required":["k"]},"then":{"required":["e"]},"else":{"properties":{"e":false}}}}},"additionalProperties":false}`, nil},
	"A34/cross-field":                {"", "start!: int\nend!: int & >start", `{"type":"object","properties":{"start":{"type":"integer"},"end":{"type":"integer"}},"required":["start","end"],"additionalProperties":false}`, []string{"7:13 cross_field end: end > start"}},
	"A34/cross-field, before":        {"", "end!: int & >start\nstart!: int", `{"type":"object","properties":{"end":{"type":"integer"},"start":{"type":"integer"}},"required":["end","start"],"additionalProperties":false}`, []string{"6:13 cross_field end: end > start"}},
	"A34/cross-field, default":       {"", "r: {hi: *9 | int}\nx!: int & <=r.hi", `{"type":"object","properties":{"r":{"type":"object","properties":{"hi":{"type":"integer","default":9}},"additionalProperties":false,"default":{"hi":9}},"x":{"type":"integer"}},"required":["x"],"additionalProperties":false}`, []string{"7:11 cross_field x: x <= r.hi"}},
	"in a definition":                {`#R: {lo: *5 | int, hi!: int & >=lo}`, `r!: #R`, `{"type":"object","properties":{"r":{"type":"object","properties":{"lo":{"type":"integer","default":5},"hi":{"type":"integer"}},"required":["hi"],"additionalProperties":false}},"required":["r"],"additionalProperties":false}`, []string{"4:31 cross_field r.hi: hi >= lo"}},
	"computed":                       {"", "a!: int\nb: a + 1", `{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"],"additionalProperties":false}`, nil},
	"same value":                     {"", "a!: int\nb: a", `{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"],"additionalProperties":false}`, nil},
	"interpolation":                  {"", "a!: string\nb: \"x-\\(a)\"", `{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}`, nil},
	"let":                            {"", "a!: int\nlet L = a\nb!: >L", `{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"number"}},"required":["a","b"],"additionalProperties":false}`, []string{"8:5 cross_field b: b > L"}},
	"hidden":                         {"", "a!: int\n_h: a\nb!: >_h", `{"type":"object","properties":{"a":{"type":"integer"},"b":{}},"required":["a","b"],"additionalProperties":false}`, []string{"8:5 cross_field b: b > _h"}},
	"inner definition":               {"", "a!: int\n#D: >a\nb!: #D", `{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"number"}},"required":["a","b"],"additionalProperties":false}`, []string{"7:5 cross_field b: b > a"}},
	"label alias":                    {"", "X=a!: int\nb!: >X", `{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"number"}},"required":["a","b"],"additionalProperties":false}`, []string{"7:5 cross_field b: b > X"}},
	"builtin on argument":            {"", "n!: int\ns!: strings.MinRunes(n)", `{"type":"object","properties":{"n":{"type":"integer"},"s":{"type":"string"}},"required":["n","s"],"additionalProperties":false}`, []string{"7:5 cross_field s: strings.MinRunes(n)"}},
	"default on argument":            {"", "a!: int\nb: *{x: a} | {x?: int}", `{"type":"object","properties":{"a":{"type":"integer"},"b":{"anyOf":[{"type":"object","additionalProperties":false},{"type":"object","properties":{"x":{"type":"integer"}},"additionalProperties":false}]}},"required":["a"],"additionalProperties":false}`, []string{"7:1 expression b: what b is where a call leaves it out", "7:9 expression b.x: x = a is filled in"}},
	"bound key":                      {"", `x?: {[K=string]: {name: K}}`, `{"type":"object","properties":{"x":{"type":"object","additionalProperties":{"type":"object","additionalProperties":false}}},"additionalProperties":false}`, []string{"6:7 name x: K, the key's own name", "6:25 expression x[string].name: name = K is filled in"}},
	"error":                          {"", `x!: int | error("must be int")`, `{"type":"object","properties":{"x":{"type":"integer"}},"required":["x"],"additionalProperties":false}`, []string{"6:11 message x: error(\"must be int\")"}},
	"dynamic name":                   {`_n: "a"`, `x?: {(_n)!: int}`, `{"type":"object","properties":{"x":{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"],"additionalProperties":false}},"additionalProperties":false}`, nil},
	"A32/default decides":            {"", "kind: *\"a\" | \"b\"\nif kind == \"a\" {extra!: string}", `{"type":"object","properties":{"kind":{"type":"string","enum":["a","b"],"default":"a"},"extra":{"type":"string"}},"additionalProperties":false,"if":{"properties":{"kind":{"const":"a"}}},"then":{"required":["extra"]},"else":{"properties":{"extra":false}}}`, nil},
	"A32/bool, bound and more":       {"", "dry: *false | bool\nn!: int\nif dry && n > 3 {extra!: string}", `{"type":"object","properties":{"dry":{"type":"boolean","default":false},"n":{"type":"integer"},"extra":{"type":"string"}},"required":["n"],"additionalProperties":false,"if":{"allOf":[{"properties":{"dry":{"const":true}},"required":["dry"]},{"properties":{"n":{"exclusiveMinimum":3}},"required":["n"]}]},"then":{"required":["extra"]},"else":{"properties":{"extra":false}}}`, nil},
	"A32/two guards of one field":    {"", "kind!: string\nif kind == \"a\" {x!: int}\nif kind == \"b\" {x!: string, y?: int}", `{"type":"object","properties":{"kind":{"type":"string"},"x":{},"y":{"type":"integer"}},"required":["kind"],"additionalProperties":false,"allOf":[{"if":{"properties":{"kind":{"const":"a"}},"required":["kind"]},"then":{"properties":{"x":{"type":"integer"},"y":false},"required":["x"]}},{"if":{"properties":{"kind":{"const":"b"}},"required":["kind"]},"then":{"properties":{"x":{"type":"string"}},"required":["x"]}},{"if":{"not":{"properties":{"kind":{"const":"a"}},"required":["kind"]},"allOf":[{"not":{"properties":{"kind":{"const":"b"}},"required":["kind"]}}]},"then":{"properties":{"x":false,"y":false}}}]}`, nil},
	"A32/not":                        {"", "kind!: string\nx?: string\nif kind != \"a\" {x!: =~\"^b\"}", `{"type":"object","properties":{"kind":{"type":"string"},"x":{"type":"string"}},"required":["kind"],"additionalProperties":false,"if":{"properties":{"kind":{"not":{"const":"a"}}},"required":["kind"]},"then":{"properties":{"x":{"type":"string","pattern":"^b"}},"required":["x"]}}`, nil},
	"A32/presence":                   {"", "a?: int\nif a != _|_ {b!: int}", `{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"additionalProperties":false,"if":{"required":["a"]},"then":{"required":["b"]},"else":{"properties":{"b":false}}}`, nil},
	"A32/optional condition":         {"", "dry?: bool\nif dry {extra!: string}", `{"type":"object","properties":{"dry":{"type":"boolean"},"extra":{"type":"string"}},"required":["dry"],"additionalProperties":false,"if":{"properties":{"dry":{"const":true}},"required":["dry"]},"then":{"required":["extra"]},"else":{"properties":{"extra":false}}}`, nil},
	"A32/default under a guard":      {"", "kind!: \"a\" | \"b\"\nif kind == \"a\" {lim: *5 | int}", `{"type":"object","properties":{"kind":{"type":"string","enum":["a","b"]},"lim":{"type":"integer"}},"required":["kind"],"additionalProperties":false,"if":{"properties":{"kind":{"const":"a"}},"required":["kind"]},"else":{"properties":{"lim":false}}}`, []string{"7:17 guard lim: the defaults of lim, which only hold under a guard"}},
	"A32/two arguments":              {"", "a!: int, b!: int\nif a > b {c!: int}", `{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"},"c":{}},"required":["a","b"],"additionalProperties":false}`, []string{"7:1 guard : if a > b"}},
	"A34/with exact parts":           {"", "start!: int\nend!: int & >start & <=100", `{"type":"object","properties":{"start":{"type":"integer"},"end":{"type":"integer","maximum":100}},"required":["start","end"],"additionalProperties":false}`, []string{"7:13 cross_field end: end > start"}},
	"computed may fail":              {"", "a!: _\nb: \"x-\\(a)\"", `{"type":"object","properties":{"a":{}},"required":["a"],"additionalProperties":false}`, []string{"7:4 expression b: b = \"x-\\(a)\" may have no value"}},
	"computed, nested":               {"", "o!: {a!: int, b: a + 1}", `{"type":"object","properties":{"o":{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"],"additionalProperties":false}},"required":["o"],"additionalProperties":false}`, []string{"6:18 expression o.b: b = a + 1 is filled in"}},
	"hidden condition":               {"", "a!: int, b!: int\n_ok: true & (a < b)", `{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"required":["a","b"],"additionalProperties":false}`, []string{"7:6 cross_field _ok: _ok: true & (a < b)"}},
	"constant comprehension":         {"", "for k in [\"p\", \"q\"] {(k)!: int}\nm?: [for x in [1, 2] {x + 1}]", `{"type":"object","properties":{"p":{"type":"integer"},"q":{"type":"integer"},"m":{"type":"array","prefixItems":[{"type":"integer","const":2},{"type":"integer","const":3}],"items":false,"minItems":2,"maxItems":2}},"required":["p","q"],"additionalProperties":false}`, nil},
	"union":                          {"", `x!: {kind!: "a", n?: int} | {kind!: "b", m!: int}`, `{"type":"object","properties":{"x":{"anyOf":[{"type":"object","properties":{"kind":{"type":"string","const":"a"},"n":{"type":"integer"}},"required":["kind"],"additionalProperties":false},{"type":"object","properties":{"kind":{"type":"string","const":"b"},"m":{"type":"integer"}},"required":["kind","m"],"additionalProperties":false}]}},"required":["x"],"additionalProperties":false}`, nil},
	"structs":                        {"", `x!: {a!: int} | {b!: int}`, `{"type":"object","properties":{"x":{"anyOf":[{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"],"additionalProperties":false},{"type":"object","properties":{"b":{"type":"integer"}},"required":["b"],"additionalProperties":false}]}},"required":["x"],"additionalProperties":false}`, nil},
	"structs and more":               {"", `x!: null | {a!: int} | {b!: int}`, `{"type":"object","properties":{"x":{"anyOf":[{"type":"null"},{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"],"additionalProperties":false},{"type":"object","properties":{"b":{"type":"integer"}},"required":["b"],"additionalProperties":false}]}},"required":["x"],"additionalProperties":false}`, nil},
	"structs that may both be meant": {"", `x!: {kind: "a", n?: int} | {kind: "b", n?: int}`, `{"type":"object","properties":{"x":{"anyOf":[{"type":"object","properties":{"kind":{"type":"string","const":"a"},"n":{"type":"integer"}},"additionalProperties":false},{"type":"object","properties":{"kind":{"type":"string","const":"b"},"n":{"type":"integer"}},"additionalProperties":false}]}},"required":["x"],"additionalProperties":false}`, []string{"6:5 choice x: which of several structs or lists is meant, where more than one may be"}},
	"structs, joined":                {"", `x!: ({a!: int} | {b!: int}) & {a?: >5, b?: int}`, `{"type":"object","properties":{"x":{"type":"object"}},"required":["x"],"additionalProperties":false}`, []string{"6:5 choice x: a choice between structs joined with something else"}},
	"lists or null":                  {"", `x?: null | [...int] | [...string]`, `{"type":"object","properties":{"x":{"anyOf":[{"type":"null"},{"type":"array","items":{"type":"integer"}},{"type":"array","items":{"type":"string"}}]}},"additionalProperties":false}`, nil},
	"lists of structs or null":       {"", `x?: null | [...{a?: int}] | [...{b?: int}]`, `{"type":"object","properties":{"x":{"anyOf":[{"type":"null"},{"type":"array","items":{"type":"object","properties":{"a":{"type":"integer"}},"additionalProperties":false}},{"type":"array","items":{"type":"object","properties":{"b":{"type":"integer"}},"additionalProperties":false}}]}},"additionalProperties":false}`, []string{"6:5 choice x: which of several structs or lists is meant, where more than one may be"}},
	"guard over kinds":               {"", "m!: string\ng?: string | {a?: string}\nif m == \"f\" {g!: _}", `{"type":"object","properties":{"m":{"type":"string"},"g":{"anyOf":[{"type":"string"},{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}]}},"required":["m"],"additionalProperties":false,"if":{"properties":{"m":{"const":"f"}},"required":["m"]},"then":{"required":["g"]}}`, nil},
	"kinds, joined":                  {"", `x!: (null | {a!: int}) & (null | {a!: >5})`, `{"type":"object","properties":{"x":{"type":["null","object"]}},"required":["x"],"additionalProperties":false}`, []string{"6:5 choice x: a choice between kinds joined with something else"}},
}

// dumped is what a table of losses is compared with.
func dumped(losses []contract.Loss) (out []string) {
	for _, l := range losses {
		out = append(out, fmt.Sprintf("%d:%d %s %s: %s", l.Line, l.Col, l.Kind, l.Path, l.What))
	}
	return out
}

func TestLosses(t *testing.T) {
	t.Parallel()
	losses(t, false)
}

func losses(t *testing.T, rows bool) {
	for name, tc := range losing {
		if isRow(name) != rows {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec, _, problems := args(t, tc.definitions, tc.args, contract.Closed)
			if problems.HasErrors() {
				t.Fatal(problems)
			}
			if diff := cmp.Diff(tc.schema, string(spec.Schema)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tc.losses, dumped(spec.Losses)); diff != "" {
				t.Error(diff)
			}
			computed := slices.ContainsFunc(spec.Fields, func(f contract.Field) bool { return f.Computed })
			if needed := len(tc.losses) > 0 || computed; needed != (spec.Remainder != nil) || needed && spec.Remainder.Path != "tools.x.args" {
				t.Errorf("remainder %v", spec.Remainder)
			}
			if _, err := contract.New(spec, nil); err != nil {
				t.Error(err)
			}
		})
	}
}
