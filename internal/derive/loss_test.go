package derive_test

import (
	"fmt"
	"strings"
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
	"A34/cross-field":                {"", "start!: int\nend!: int & >start", `{"type":"object","properties":{"start":{"type":"integer"},"end":{"type":"integer","description":"Also: >start"}},"required":["start","end"],"additionalProperties":false}`, []string{`7:13 cross_field end: >start`}},
	"A34/cross-field, before":        {"", "end!: int & >start\nstart!: int", `{"type":"object","properties":{"end":{"type":"integer","description":"Also: >start"},"start":{"type":"integer"}},"required":["end","start"],"additionalProperties":false}`, []string{`6:13 cross_field end: >start`}},
	"A34/cross-field, default":       {"", "r: {hi: *9 | int}\nx!: int & <=r.hi", `{"type":"object","properties":{"r":{"type":"object","properties":{"hi":{"type":"integer","default":9}},"additionalProperties":false,"default":{"hi":9}},"x":{"type":"integer","description":"Also: <=r.hi"}},"required":["x"],"additionalProperties":false}`, []string{`7:11 cross_field x: <=r.hi`}},
	"in a definition":                {`#R: {lo: *5 | int, hi!: int & >=lo}`, `r!: #R`, `{"type":"object","properties":{"r":{"type":"object","properties":{"lo":{"type":"integer","default":5},"hi":{"type":"integer","description":"Also: >=lo"}},"required":["hi"],"additionalProperties":false}},"required":["r"],"additionalProperties":false}`, []string{`4:31 cross_field r.hi: >=lo`}},
	"computed":                       {"", "a!: int\nb: a + 1", `{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"],"additionalProperties":false}`, nil},
	"same value":                     {"", "a!: int\nb: a", `{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"],"additionalProperties":false}`, nil},
	"interpolation":                  {"", "a!: string\nb: \"x-\\(a)\"", `{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}`, nil},
	"let":                            {"", "a!: int\nlet L = a\nb!: >L", `{"type":"object","properties":{"a":{"type":"integer"},"b":{}},"required":["a","b"],"additionalProperties":false}`, []string{`8:5 cross_field b: >L`}},
	"hidden":                         {"", "a!: int\n_h: a\nb!: >_h", `{"type":"object","properties":{"a":{"type":"integer"},"b":{}},"required":["a","b"],"additionalProperties":false}`, []string{`7:5 cross_field _h: _h: a`, `8:5 cross_field b: >_h`}},
	"inner definition":               {"", "a!: int\n#D: >a\nb!: #D", `{"type":"object","properties":{"a":{"type":"integer"},"b":{}},"required":["a","b"],"additionalProperties":false}`, []string{`7:5 cross_field #D: #D: >a`, `8:5 cross_field b: #D`}},
	"label alias":                    {"", "X=a!: int\nb!: >X", `{"type":"object","properties":{"a":{"type":"integer"},"b":{}},"required":["a","b"],"additionalProperties":false}`, []string{`7:5 cross_field b: >X`}},
	"builtin on argument":            {"", "n!: int\ns!: strings.MinRunes(n)", `{"type":"object","properties":{"n":{"type":"integer"},"s":{"type":"string","description":"Also: strings.MinRunes(n)"}},"required":["n","s"],"additionalProperties":false}`, []string{`7:5 validator s: strings.MinRunes(n)`}},
	"default on argument":            {"", "a!: int\nb: *{x: a} | {x?: int}", `{"type":"object","properties":{"a":{"type":"integer"},"b":{"anyOf":[{"type":"object","additionalProperties":false},{"type":"object","properties":{"x":{"type":"integer"}},"additionalProperties":false}]}},"required":["a"],"additionalProperties":false}`, []string{`7:4 choice b: the default of *{x: a} | {x?: int}`}},
	"bound key":                      {"", `x?: {[K=string]: {name: K}}`, `{"type":"object","properties":{"x":{"type":"object","additionalProperties":{}}},"additionalProperties":false}`, []string{`6:6 name x: [K=string] as a pattern of names`, `6:25 cross_field x[K=string].name: K`}},
	"error":                          {"", `x!: int | error("must be int")`, `{"type":"object","properties":{"x":{"type":"integer"}},"required":["x"],"additionalProperties":false}`, []string{`6:11 message x: error("must be int")`}},
	"dynamic name":                   {`_n: "a"`, `x?: {(_n)!: int}`, `{"type":"object","properties":{"x":{"type":"object"}},"additionalProperties":false}`, []string{`6:6 name x: (_n)`}},
	"A32/default decides":            {"", "kind: *\"a\" | \"b\"\nif kind == \"a\" {extra!: string}", `{"type":"object","properties":{"kind":{"type":"string","enum":["a","b"],"default":"a"},"extra":{"type":"string"}},"additionalProperties":false,"if":{"properties":{"kind":{"const":"a"}}},"then":{"required":["extra"]},"else":{"properties":{"extra":false}}}`, nil},
	"A32/bool, bound and more":       {"", "dry: *false | bool\nn!: int\nif dry && n > 3 {extra!: string}", `{"type":"object","properties":{"dry":{"type":"boolean","default":false},"n":{"type":"integer"},"extra":{"type":"string"}},"required":["n"],"additionalProperties":false,"if":{"properties":{"dry":{"const":true},"n":{"exclusiveMinimum":3}},"required":["dry","n"]},"then":{"required":["extra"]},"else":{"properties":{"extra":false}}}`, nil},
	"A32/two guards of one field":    {"", "kind!: string\nif kind == \"a\" {x!: int}\nif kind == \"b\" {x!: string, y?: int}", `{"type":"object","properties":{"kind":{"type":"string"},"x":{},"y":{"type":"integer"}},"required":["kind"],"additionalProperties":false,"allOf":[{"if":{"properties":{"kind":{"const":"a"}},"required":["kind"]},"then":{"properties":{"x":{"type":"integer"}},"required":["x"]}},{"if":{"properties":{"kind":{"const":"b"}},"required":["kind"]},"then":{"properties":{"x":{"type":"string"}},"required":["x"]},"else":{"properties":{"y":false}}},{"if":{"anyOf":[{"properties":{"kind":{"const":"a"}},"required":["kind"]},{"properties":{"kind":{"const":"b"}},"required":["kind"]}]},"else":{"properties":{"x":false}}}]}`, nil},
	"A32/not":                        {"", "kind!: string\nx?: string\nif kind != \"a\" {x!: =~\"^b\"}", `{"type":"object","properties":{"kind":{"type":"string"},"x":{"type":"string"}},"required":["kind"],"additionalProperties":false,"if":{"not":{"properties":{"kind":{"const":"a"}},"required":["kind"]}},"then":{"properties":{"x":{"type":"string","pattern":"^b"}},"required":["x"]}}`, nil},
	"A32/presence":                   {"", "a?: int\nif a != _|_ {b!: int}", `{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"additionalProperties":false,"if":{"required":["a"]},"then":{"required":["b"]},"else":{"properties":{"b":false}}}`, nil},
	"A32/optional condition":         {"", "dry?: bool\nif dry {extra!: string}", `{"type":"object","description":"Also: if dry then extra (required)","properties":{"dry":{"type":"boolean"},"extra":{}},"additionalProperties":false}`, []string{`7:1 guard : if dry`}},
	"A32/default under a guard":      {"", "kind!: \"a\" | \"b\"\nif kind == \"a\" {lim: *5 | int}", `{"type":"object","description":"Also: if kind == \"a\" then lim","properties":{"kind":{"type":"string","enum":["a","b"]},"lim":{}},"required":["kind"],"additionalProperties":false}`, []string{`7:1 guard : if kind == "a"`}},
	"A32/two arguments":              {"", "a!: int, b!: int\nif a > b {c!: int}", `{"type":"object","description":"Also: if a > b then c (required)","properties":{"a":{"type":"integer"},"b":{"type":"integer"},"c":{}},"required":["a","b"],"additionalProperties":false}`, []string{`7:1 guard : if a > b`}},
	"A34/with exact parts":           {"", "start!: int\nend!: int & >start & <=100", `{"type":"object","properties":{"start":{"type":"integer"},"end":{"type":"integer","description":"Also: >start","maximum":100}},"required":["start","end"],"additionalProperties":false}`, []string{`7:13 cross_field end: >start`}},
	"computed may fail":              {"", "a!: _\nb: \"x-\\(a)\"", `{"type":"object","properties":{"a":{}},"required":["a"],"additionalProperties":false}`, []string{`7:4 expression b: b = "x-\(a)" may have no value`}},
	"computed, nested":               {"", "o!: {a!: int, b: a + 1}", `{"type":"object","properties":{"o":{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"],"additionalProperties":false}},"required":["o"],"additionalProperties":false}`, nil},
	"hidden condition":               {"", "a!: int, b!: int\n_ok: true & (a < b)", `{"type":"object","description":"Also: a < b","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"required":["a","b"],"additionalProperties":false}`, []string{`7:6 cross_field _ok: _ok: true & (a < b)`}},
	"constant comprehension":         {"", "for k in [\"p\"] {(k)!: int}\nm?: [for x in [1, 2] {x + 1}]", `{"type":"object","properties":{"m":{"type":"array"}}}`, []string{`6:1 guard : for … in ["p"]`, `7:6 expression m: for … in [1, 2] {…}`}},
	"union":                          {"", `x!: {kind!: "a", n?: int} | {kind!: "b", m!: int}`, `{"type":"object","properties":{"x":{"anyOf":[{"type":"object","properties":{"kind":{"type":"string","const":"a"},"n":{"type":"integer"}},"required":["kind"],"additionalProperties":false},{"type":"object","properties":{"kind":{"type":"string","const":"b"},"m":{"type":"integer"}},"required":["kind","m"],"additionalProperties":false}]}},"required":["x"],"additionalProperties":false}`, nil},
	"structs":                        {"", `x!: {a!: int} | {b!: int}`, `{"type":"object","properties":{"x":{"anyOf":[{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"],"additionalProperties":false},{"type":"object","properties":{"b":{"type":"integer"}},"required":["b"],"additionalProperties":false}]}},"required":["x"],"additionalProperties":false}`, []string{`6:5 choice x: which alternative is meant, where a value may fit several: {a!: int} | {b!: int}`}},
	"structs and more":               {"", `x!: null | {a!: int} | {b!: int}`, `{"type":"object","properties":{"x":{"anyOf":[{"type":"null"},{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"],"additionalProperties":false},{"type":"object","properties":{"b":{"type":"integer"}},"required":["b"],"additionalProperties":false}]}},"required":["x"],"additionalProperties":false}`, []string{`6:5 choice x: which alternative is meant, where a value may fit several: null | {a!: int} | {b!: int}`}},
	"structs that may both be meant": {"", `x!: {kind: "a", n?: int} | {kind: "b", n?: int}`, `{"type":"object","properties":{"x":{"anyOf":[{"type":"object","properties":{"kind":{"type":"string","const":"a","default":"a"},"n":{"type":"integer"}},"additionalProperties":false},{"type":"object","properties":{"kind":{"type":"string","const":"b","default":"b"},"n":{"type":"integer"}},"additionalProperties":false}]}},"required":["x"],"additionalProperties":false}`, []string{`6:5 choice x: which alternative is meant, where a value may fit several: {kind: "a", n?: int} | {kind: "b", n?: int}`}},
	"structs, joined":                {"", `x!: ({a!: int} | {a!: string}) & {a!: _}`, `{"type":"object","properties":{"x":{}},"required":["x"],"additionalProperties":false}`, []string{`6:5 expression x: ({a!: int} | {a!: string}) & {a!: _}`, `6:6 choice x: which alternative is meant, where a value may fit several: {a!: int} | {a!: string}`}},
	"lists or null":                  {"", `x?: null | [...int] | [...string]`, `{"type":"object","properties":{"x":{"anyOf":[{"type":"null"},{"type":"array","items":{"type":"integer"}},{"type":"array","items":{"type":"string"}}]}},"additionalProperties":false}`, []string{`6:5 choice x: which alternative is meant, where a value may fit several: null | [...int] | [...string]`}},
	"lists of structs or null":       {"", `x?: null | [...{a?: int}] | [...{b?: int}]`, `{"type":"object","properties":{"x":{"anyOf":[{"type":"null"},{"type":"array","items":{"type":"object","properties":{"a":{"type":"integer"}},"additionalProperties":false}},{"type":"array","items":{"type":"object","properties":{"b":{"type":"integer"}},"additionalProperties":false}}]}},"additionalProperties":false}`, []string{`6:5 choice x: which alternative is meant, where a value may fit several: null | [...{a?: int}] | [...{b?: int}]`}},
	"guard over kinds":               {"", "m!: string\ng?: string | {a?: string}\nif m == \"f\" {g!: _}", `{"type":"object","description":"Also: if m == \"f\" then g (required)","properties":{"m":{"type":"string"},"g":{}},"required":["m"],"additionalProperties":false}`, []string{`8:1 guard : if m == "f"`}},
	"embedding, open":                {`#Base: {a!: int}`, `x?: {#Base, ...}`, `{"type":"object","properties":{"x":{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}},"additionalProperties":false}`, []string{`6:13 name x: ... beside an embedding`}},
	"A42/depth": {"", "a?: " + strings.Repeat("{a?: ", 35) + "int" + strings.Repeat("}", 35),
		strings.Repeat(`{"type":"object","properties":{"a":`, 33) + `{}` + strings.Repeat(`},"additionalProperties":false}`, 33),
		[]string{"6:165 expression " + strings.Repeat("a.", 32) + "a: {a?: {a?: {a?: int}}}"}},
	"for":                 {"", "l!: [...\"a\" | \"b\"]\nfor x in l {(x): int}", `{"type":"object","properties":{"l":{"type":"array","items":{"type":"string","enum":["a","b"]}}}}`, []string{`7:1 guard : for … in l`}},
	"list comprehension":  {"", "l!: [...int]\nm: [for x in l {x + 1}]", `{"type":"object","properties":{"l":{"type":"array","items":{"type":"integer"}}},"required":["l"],"additionalProperties":false}`, []string{`7:4 expression m: m = [for x in l {x + 1}] may have no value`}},
	"float constant":      {"", `x?: 0.5 | 1.0`, `{"type":"object","properties":{"x":{"type":"number","enum":[0.5,1.0]}},"additionalProperties":false}`, []string{`6:11 number x: 1.0`}},
	"float default":       {"", "x: *1.0 | number\ny: *[1.0] | [...int]", `{"type":"object","properties":{"x":{"type":"number","default":1.0},"y":{"type":"array","items":{"type":"integer"},"default":[1.0]}},"additionalProperties":false}`, nil},
	"other float default": {"", "x: *1.0 | 0.5 | null", `{"type":"object","properties":{"x":{"type":["number","null"],"enum":[1.0,0.5,null],"default":1.0}},"additionalProperties":false}`, []string{`6:5 number x: 1.0`}},
	"open structs":        {"", `x!: {a!: int, ...} | {b!: int, ...}`, `{"type":"object","properties":{"x":{"anyOf":[{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]},{"type":"object","properties":{"b":{"type":"integer"}},"required":["b"]}]}},"required":["x"],"additionalProperties":false}`, []string{`6:5 choice x: which alternative is meant, where a value may fit several: {a!: int, ...} | {b!: int, ...}`}},
	"bad default":         {"", `x: *500 | int & >=1 & <=100`, `{"type":"object","properties":{"x":{"anyOf":[{"type":"integer","const":500},{"type":"integer","minimum":1,"maximum":100}],"default":500}},"additionalProperties":false}`, nil},
	"bad string default":  {"", `x: *"" | strings.MinRunes(1)`, `{"type":"object","properties":{"x":{"anyOf":[{"type":"string","const":""},{"type":"string","minLength":1}],"default":""}},"additionalProperties":false}`, nil},
	"default struct":      {"", `x: *{a: 1} | {a?: int}`, `{"type":"object","properties":{"x":{"anyOf":[{"type":"object","properties":{"a":{"type":"integer","const":1,"default":1}},"additionalProperties":false},{"type":"object","properties":{"a":{"type":"integer"}},"additionalProperties":false}]}},"additionalProperties":false}`, []string{`6:4 choice x: the default of *{a: 1} | {a?: int}`}},
	"closed with more":    {`#B: {a?: int}`, `x?: #B & {c?: int}`, `{"type":"object","properties":{"x":{"type":"object","properties":{"a":{"type":"integer"},"c":{"type":"integer"}},"additionalProperties":false}},"additionalProperties":false}`, []string{`6:5 expression x: #B & {c?: int}`}},
	"closed with ...":     {`#B: {a?: int}`, `x?: #B & {...}`, `{"type":"object","properties":{"x":{"type":"object","properties":{"a":{"type":"integer"}}}},"additionalProperties":false}`, []string{`6:5 expression x: #B & {...}`}},
	"kinds, joined":       {"", `x!: (null | {a!: int}) & (null | {a!: >5})`, `{"type":"object","properties":{"x":{}},"required":["x"],"additionalProperties":false}`, []string{`6:5 expression x: (null | {a!: int}) & (null | {a!: >5})`}},
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
			d := newDeclared(t, tc.definitions, tc.args, contract.Closed)
			if d.problems.HasErrors() {
				t.Fatal(d.problems)
			}
			if diff := cmp.Diff(tc.schema, string(d.spec.Schema)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tc.losses, dumped(d.spec.Losses)); diff != "" {
				t.Error(diff)
			}
			if r := d.spec.Remainder; len(tc.losses) > 0 && r == nil || r != nil && r.Path != "tools.x.args" {
				t.Errorf("got the remainder %v with %d losses", r, len(tc.losses))
			}
			if d.agrees(t, drawnCalls(d, tc.definitions+tc.args, 200)...) < 2 {
				t.Errorf("CUE accepts too few calls for a comparison")
			}
		})
	}
}
