package derive_test

import (
	"testing"

	"github.com/catalogd/catalogd/contract"
)

const cornerDefinitions = `#D: {field: int & >3, s?: {q?: string}}, _x: {a?: int, b!: string}, #Base: {a?: int, b?: int}, #Node: {v?: int, next?: #Node}, ` +
	`_a: "pre", _m: {k1: 1, k2: 2}, #E: ("a" | "b") & _, #U: null | {a?: int}, #L: [...#Node], #Opt: {o?: #Opt2}, #Opt2: {p?: #Opt, z!: int}`

// corners are values that a walk gets wrong easily. Each is refused or means what it means to CUE.
var corners = []string{
	"#D.field", `#D["field"]`, "#D.s", "close({a?: int})", "close({a?: int, ...})", "and([int, >5])", `or(["a","b"])`,
	`or([for k, v in _m {k}])`, "{[string]: {...}}", "{[string]: int, a?: >5}", "_x", "{a?: int} & {a?: >5, b?: string}",
	"#Base & {a: 5}", "#Base & {a!: _}", "[int] & [>5]", "[...int] & [_, ...]", "{a: 1} | null", "null | #Node",
	"*null | #Node", "(int | string) & >5", "number & (int | >5.5)", "!=5", "!=1 & !=2", `!~"a" & !~"b"`,
	"int & (>5 | <0)", "*1 | 2 | int & >10", "string | *5", "{a: *1 | int} | *null", `len("abc")`, `>len("abc")`,
	`"\(_a)-b"`, "int & >=1Ki", "0x10", "1_000", "1e3", "-5", ">=-0", `{"a-b"?: int}`, "{#inner: int, a?: #inner}",
	"{_h: 5, a?: _h}", "list.MaxItems(3)", "struct.MaxFields(1)", "[..._] & list.MinItems(2)",
	"strings.MinRunes(2) | int", "{...} & #Base", "{a?: int} | {a?: int}", "[] | [...int]", "{}", "[]", "[...]",
	"[string, string] | null", `"a" | ["a"]`, "int & !=5 & <10", "float64", "rune", "uint128", `#E`, "{a: string}",
	`{a: "const"}`, "[{a: *1 | int}]", "[{a: *1 | int}, *2 | int]", "[...{a: *1 | int}]", "#U", "#U & {b?: int}", "#L",
	"#L & list.MaxItems(1)", "#Opt", "#Opt & {o?: {z: 5}}", "null | #L", "string | #Opt", "(null | #Node) & _",
	"(null | #Node) & {v?: >5, ...}", "[string]: #Node", "{[=~\"^a\"]: int, [=~\"b$\"]: >5}", "{[=~\"^a\"]: int, ...}",
	"5 | 5.5", "*5 | >10", "<5 & >5", ">5 & <6 & int", ">=5 & <=5", "int & >5 & <7", "bool & !=true",
	"!=\"a\" & string | null", "_ & {a?: int}", "{a?: _|_}", "{a?: 1, a?: int}", "int & number", "number & !=1.0",
	">=1.0 & int", "null & _", "*\"a\" | string & !=\"a\"", "*\"\" | string", "strings.MaxRunes(3) & strings.MaxRunes(2)",
	"[...string] & [\"a\", ...]", "{a!: int, b?: a}", "#Base | null", "{#Base, #D}", "*[1, 2] | [...int]",
	"*[1] | [...string]", "[...int] & list.MinItems(1) & list.MaxItems(2)", "int | *null", "string & =~_a",
	"string & =~\"\\(_a)x\"", "_ | *5", "{a: 5, ...}", "{a: _}", "{a!: _}", "strings.MinRunes(_m.k2)", "list.UniqueItems",
	"[...int] & list.UniqueItems", "{[!~\"^a\"]: int}", "{[_]: int}", "{[string]: int} & {[string]: >5}", "[...[...int]]",
	"[...null | {a?: int}]", "int & strings.MinRunes(2)", "matchIf(string, =~\"a\", _)", "string & matchN(1, [=~\"a\"])",
	"*_|_ | 5", "!=[]", "!={}", "!=null & string", "error(\"x\")", "1 | *2 | 3", "*1 | *2 | 3", "(*1 | 2) & (1 | *2)",
	"(1 | 2) & (2 | 3)", "{a?: int} & {}", "\"a\\nb\"", "\"\\u2028\"", "'abc'", "1/2", "_m", "_m.k1", "[_m.k1]",
	"_m & {...}", "{_m}",
}

var cornerCalls = []string{
	"{}",
	`{"x": null}`, `{"x": true}`, `{"x": false}`, `{"x": 0}`, `{"x": 1}`, `{"x": 2}`, `{"x": 5}`, `{"x": 6}`, `{"x": 7}`,
	`{"x": 10}`, `{"x": 16}`, `{"x": 1000}`, `{"x": -5}`, `{"x": 5.5}`, `{"x": 6.5}`, `{"x": 1024}`, `{"x": "a"}`,
	`{"x": "b"}`, `{"x": "ab"}`, `{"x": "abc"}`, `{"x": ""}`, `{"x": "pre-b"}`, `{"x": "prex"}`, `{"x": "k1"}`,
	`{"x": "a\nb"}`, `{"x": {}}`, `{"x": {"a":1}}`, `{"x": {"a":5}}`, `{"x": {"a":6}}`, `{"x": {"a":"const"}}`,
	`{"x": {"a":"x"}}`, `{"x": {"b":"x"}}`, `{"x": {"b":5}}`, `{"x": {"ab":6}}`, `{"x": {"ab":2}}`,
	`{"x": {"a":1,"b":2}}`, `{"x": {"a":6,"b":6}}`, `{"x": {"zz":1}}`, `{"x": {"zz":{}}}`, `{"x": {"v":1}}`,
	`{"x": {"v":7}}`, `{"x": {"next":{}}}`, `{"x": {"next":{"next":{"v":1}}}}`, `{"x": {"next":{"zz":1}}}`,
	`{"x": {"q":"a"}}`, `{"x": {"a-b":1}}`, `{"x": {"o":{"z":5}}}`, `{"x": {"o":{"z":6}}}`,
	`{"x": {"o":{"z":5,"p":{"o":{"z":1}}}}}`, `{"x": {"k1":1,"k2":2}}`, `{"x": {"k1":{"v":1}}}`, `{"x": []}`,
	`{"x": [1]}`, `{"x": [6]}`, `{"x": [1,2]}`, `{"x": [1,1]}`, `{"x": ["a"]}`, `{"x": ["a","b"]}`, `{"x": [1,2,3]}`,
	`{"x": [{}]}`, `{"x": [{"a":2}]}`, `{"x": [{"a":2},3]}`, `{"x": [{"v":1}]}`, `{"x": [{"next":{"zz":1}}]}`,
	`{"x": [null]}`, `{"x": [[1]]}`, `{"x": [["a"]]}`, `{"x": [{"zz":1}]}`, `{"x": [{},{}]}`, `{"x": {"s":{}}}`,
	`{"x": {"field":4}}`,
}

func TestCorners(t *testing.T) {
	t.Parallel()
	for _, value := range corners {
		for _, mark := range []string{"!", "?", ""} {
			text := "x" + mark + ": " + value
			t.Run(text, func(t *testing.T) {
				t.Parallel()
				corner(t, text)
			})
		}
	}
}

func corner(t *testing.T, text string) {
	if d := newDeclared(t, cornerDefinitions, text, contract.Closed); !d.problems.HasErrors() {
		d.agrees(t, cornerCalls...)
	}
}

// found are what oracles have found and shrunk: args and calls.
var found = []struct {
	name, args string
	calls      []string
}{
	{"a guard opens a list's structs", "mode!: \"fast\" | \"slow\"\ng?: [...{a?: int} & {b?: string}]\nif mode == \"fast\" {g!: _}",
		[]string{`{"mode":"fast","g":[{"c":1}]}`, `{"mode":"slow","g":[{"c":1}]}`, `{"mode":"fast"}`}},
	{"a choice in a choice", "#U: null | {a?: int}\nx?: #U | {b?: int}", []string{`{"x":{}}`, `{"x":{"a":1}}`, `{"x":{"b":1}}`, `{"x":null}`}},
	{"a choice that a call has to fill, joined", "m!: string\ng?: int | {a?: int} & struct.MinFields(1)\nif m == \"f\" {g!: _}",
		[]string{`{"m":"f","g":{}}`, `{"m":"f","g":{"a":1}}`, `{"m":"g","g":{}}`, `{"m":"f"}`}},
	{"a bound decides a choice", "a: null | [...string] & list.MinItems(1)", []string{`{}`, `{"a":[]}`, `{"a":["x"]}`}},
}

func TestFound(t *testing.T) {
	t.Parallel()
	for _, f := range found {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			d := newDeclared(t, "", f.args, contract.Closed)
			if d.problems.HasErrors() {
				t.Fatal(d.problems)
			}
			d.agrees(t, f.calls...)
		})
	}
}
