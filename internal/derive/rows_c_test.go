package derive_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/contract"
)

// crow is one shape on which schema, check and what runs once disagreed: definitions, args, and a line for each call with
// what becomes of it (an object: accepted, and what runs) or "refused". refused is what a problem at load says instead.
type crow struct {
	name, definitions, args, calls string
	strictness                     contract.Strictness
	refused                        string // position and words of the problem
	exact                          bool   // nothing is lost
}

// rows are the shapes by kind.
var rows = []crow{
	{name: "C1/a literal that only embeds a guard", definitions: `#G: {k: *"a" | "b", if k == "b" {n!: int}}`, args: `{#G}`, calls: `
		{} => {"k":"a"}
		{"k":"b"} => refused
		{"k":"b","n":1} => {"k":"b","n":1}
		{"k":"a","n":1} => refused`},
	{name: "C1/in a list", definitions: `#G: {k: *"a" | "b", if k == "b" {n!: int}}`, args: `l?: [...{#G}]`, calls: `
		{"l":[{}]} => {"l":[{"k":"a"}]}
		{"l":[{"k":"b"}]} => refused
		{"l":[{"k":"b","n":1}]} => {"l":[{"k":"b","n":1}]}`},
	{name: "C2/a choice that is embedded", definitions: `#D: {mode!: "x", x!: int} | {mode!: "y", y!: string}`, args: `{#D}`, calls: `
		{} => refused
		{"mode":"x","x":1} => {"mode":"x","x":1}
		{"mode":"y","y":"s"} => {"mode":"y","y":"s"}
		{"mode":"y","x":1} => refused`},
	{name: "C2/beside a field", definitions: `#D: {mode!: "x", x!: int} | {mode!: "y", y!: string}`, args: "#D\nz?: int", calls: `
		{} => refused
		{"mode":"x","x":1,"z":1} => {"mode":"x","x":1,"z":1}
		{"mode":"x","y":"s"} => refused
		{"mode":"x","x":1,"q":1} => refused`},
	{name: "C3/a hidden check", definitions: `#R: {lo!: int, hi!: int, _ok: true & (lo <= hi)}`, args: `v!: {#R}`, calls: `
		{"v":{"lo":5,"hi":1}} => refused
		{"v":{"lo":1,"hi":5}} => {"v":{"lo":1,"hi":5}}`},
	{name: "C4/an open struct that is embedded", definitions: `#O: {a?: int, ...}`, args: `o!: {#O}`, calls: `
		{"o":{"a":1,"zz":2}} => {"o":{"a":1,"zz":2}}
		{"o":{"a":"x"}} => refused`},
	{
		name:        "C5/recursion through a guarded field",
		definitions: `#F: {op!: "and" | "or" | "eq", if op == "and" || op == "or" {filters!: [...#F]}, if op == "eq" {field!: string, value!: _}}`,
		args:        `filter!: #F`, calls: `
		{"filter":{"op":"and","filters":[{"op":"zzz"},5]}} => refused
		{"filter":{"op":"and","filters":[{"op":"eq","field":"a","value":[1]},{"op":"or","filters":[]}]}} => {"filter":{"op":"and","filters":[{"op":"eq","field":"a","value":[1]},{"op":"or","filters":[]}]}}
		{"filter":{"op":"and","filters":[{"op":"eq","field":"a"}]}} => refused
		{"filter":{"op":"or"}} => refused
		{"filter":{"op":"eq","field":"a","value":1,"filters":[]}} => refused`,
	},
	{name: "C5/through an optional field", definitions: `#X: {v!: int, kid?: #X}`, args: `x!: #X`, calls: `
		{"x":{"v":1,"kid":{"v":2,"kid":{"v":3}}}} => {"x":{"v":1,"kid":{"v":2,"kid":{"v":3}}}}
		{"x":{"v":1,"kid":{}}} => refused`},
	{name: "C5/through null and a list", definitions: `#X: {v!: int, kids: *null | [...#X]}`, args: `x!: #X`, calls: `
		{"x":{"v":1}} => {"x":{"v":1,"kids":null}}
		{"x":{"v":1,"kids":[{"v":2}]}} => {"x":{"v":1,"kids":[{"v":2,"kids":null}]}}
		{"x":{"v":1,"kids":[{}]}} => refused`},
	{name: "C5/through a map and a union", definitions: `#X: {m?: [string]: #X, u?: null | int | #X}`, args: `x!: #X`, calls: `
		{"x":{"m":{"a":{"u":5}},"u":null}} => {"x":{"m":{"a":{"u":5}},"u":null}}
		{"x":{"m":{"a":{"u":"s"}}}} => refused
		{"x":{"u":{"u":{"zz":1}}}} => refused`},
	{name: "C6/a default that is another list", args: `l: *[{a: 1}] | [...{a!: int, b: *2 | int}]`, calls: `
		{} => {"l":[{"a":1}]}
		{"l":[{"a":1}]} => {"l":[{"a":1}]}
		{"l":[{"a":3}]} => {"l":[{"a":3,"b":2}]}`},
	{name: "C7/a computed field of an open tool", args: "a!: int\nb: a + 1", strictness: contract.Open, calls: `
		{"a":1} => {"a":1,"b":2}
		{"a":1,"b":5} => refused
		{"a":1,"z":5} => {"a":1,"b":2,"z":5}`},
	{name: "C8/a default beyond every call", args: `x: *1.5e200000 | number`, refused: "6:5 1.5e200000 is a number that no call can send"},
	{name: "C8/a default that counts as 0", args: `y: *1e-200000 | number`, refused: "6:5 1e-200000 is a number that no call can send"},
	{name: "C8/a bound beyond every call", args: `x?: <1e1000000000`, refused: "6:6 1e1000000000 is a number that no call can send"},
	{name: "C9/a comprehension over a default", args: "env: *\"dev\" | \"prod\"\nhosts: [for h in [\"a\"] {\"\\(h).\\(env)\"}]", calls: `
		{} => {"env":"dev","hosts":["a.dev"]}
		{"env":"prod"} => {"env":"prod","hosts":["a.prod"]}`},
	{name: "C9/indexed", args: "env: *\"dev\" | \"prod\"\nhost: [for h in [\"a\", \"b\"] {\"\\(h).\\(env)\"}][0]", calls: `
		{} => {"env":"dev","host":"a.dev"}
		{"env":"prod"} => {"env":"prod","host":"a.prod"}`},
	{name: "C9/joined", args: "env: *\"dev\" | \"prod\"\nhost: strings.Join([\"a\", env], \".\")", calls: `
		{} => {"env":"dev","host":"a.dev"}
		{"env":"prod"} => {"env":"prod","host":"a.prod"}`},
	{name: "C9/through let", args: "env: *\"dev\" | \"prod\"\nlet L = \"x.\\(env)\"\nhost: L", calls: `
		{} => {"env":"dev","host":"x.dev"}
		{"env":"prod"} => {"env":"prod","host":"x.prod"}`},
	{name: "C9/in a choice", args: "n: *2 | int\nm!: or([for i in [1, 2] {i + n}])", calls: `
		{"m":3} => {"n":2,"m":3}
		{"n":9,"m":3} => refused
		{"n":9,"m":10} => {"n":9,"m":10}`},
	{name: "C10/a guard in a comprehension", args: "c!: \"x\" | \"y\"\nfor f in [\"a\"] {if c == \"x\" {(f)!: int}}", calls: `
		{"c":"x"} => refused
		{"c":"x","a":1} => {"c":"x","a":1}
		{"c":"y"} => {"c":"y"}
		{"c":"y","a":1} => refused`},
	{name: "C11/a choice by let", args: "let l = {a!: int} | {b!: int}\np!: l", calls: `
		{"p":{}} => refused
		{"p":{"a":1}} => {"p":{"a":1}}
		{"p":{"b":1}} => {"p":{"b":1}}`},
	{name: "C12/any value that is embedded", args: `x?: {_, c?: int}`, calls: `
		{"x":{"c":"s"}} => refused
		{"x":{"c":1}} => {"x":{"c":1}}
		{"x":5} => {"x":5}`},
	{name: "C13/a definition joined with a pattern", definitions: `#D: {a?: int}`, args: `x!: #D & {[string]: int}`, calls: `
		{"x":{"b":1}} => refused
		{"x":{"a":1}} => {"x":{"a":1}}`},
	{name: "C14/a default beside an exclusion", args: `x: *"dd" | !=3`, calls: `
		{} => {"x":"dd"}
		{"x":"a"} => refused
		{"x":3} => refused
		{"x":4} => {"x":4}`},
	{name: "C15/a guard over a default", args: "k?: bool\nx: *9 | int\nif k != _|_ {if x != _|_ {y!: string}}", calls: `
		{"k":true,"y":"s"} => {"k":true,"x":9,"y":"s"}
		{"k":true} => refused
		{"y":"s"} => refused
		{} => {"x":9}`},
	{name: "C16/a default under a guard", args: "k!: bool\nx: *9 | int\nif k {x: 1}", calls: `
		{"k":true} => {"k":true,"x":1}
		{"k":false} => {"k":false,"x":9}
		{"k":true,"x":2} => refused`},
	{name: "C16/a reference to a default", args: "a: *3 | int\nb!: a", calls: `
		{"b":4} => {"a":3,"b":4}
		{"a":4,"b":3} => refused`},
	{name: "C17/a hidden table", args: "debug: *false | bool\n_env: {level: [if debug {\"debug\"}, \"info\"][0]}\nlevel: _env.level", calls: `
		{} => {"debug":false,"level":"info"}
		{"debug":true} => {"debug":true,"level":"debug"}`},

	// What was refused at load, though a real author would not expect that.
	{name: "a default outside of the bounds", args: `limit: *0 | (int & >=10)`, calls: `
		{} => {"limit":0}
		{"limit":10} => {"limit":10}
		{"limit":5} => refused`},
	{name: "a default that misses the pattern", args: `name: *"" | =~"^[a-z]+$"`, calls: `
		{} => {"name":""}
		{"name":"a"} => {"name":"a"}
		{"name":"A"} => refused`},
	{name: "a recursive expression", definitions: `#E: int | {l!: #E, r!: #E}`, args: `e!: #E`, calls: `
		{"e":1} => {"e":1}
		{"e":{"l":1,"r":{"l":2,"r":3}}} => {"e":{"l":1,"r":{"l":2,"r":3}}}
		{"e":{"l":1}} => refused
		{"e":{"l":1,"r":"s"}} => refused`},
	{name: "a guard with a pattern", args: "k!: string\nif k =~ \"^u\" {n!: int}", calls: `
		{"k":"up"} => refused
		{"k":"up","n":1} => {"k":"up","n":1}
		{"k":"a","n":1} => refused`},
	{name: "a guard that computes", args: "k!: int\nif k*2 > 6 {n!: int}", calls: `
		{"k":4} => refused
		{"k":4,"n":1} => {"k":4,"n":1}
		{"k":3} => {"k":3}`},
	{name: "a recursive definition, tightened", definitions: `#N: {v!: int, n?: #N}`, args: `n?: #N & {v: >3}`, calls: `
		{"n":{"v":4,"n":{"v":1}}} => {"n":{"v":4,"n":{"v":1}}}
		{"n":{"v":3}} => refused`},
	{name: "a list by let", args: "let l = [...int] & list.MinItems(1)\nx!: l", calls: `
		{"x":[1]} => {"x":[1]}
		{"x":[]} => refused`},
	{name: "a default that is a struct", args: `x: *{a: 1} | {a: int}`, calls: `
		{} => {"x":{"a":1}}
		{"x":{"a":2}} => {"x":{"a":2}}
		{"x":{"a":"s"}} => refused`},
	{name: "a definition under a guard", definitions: `#Card: {number!: string}`, args: "k!: \"a\" | \"b\"\nif k == \"a\" {#Card}", calls: `
		{"k":"a"} => refused
		{"k":"a","number":"4"} => {"k":"a","number":"4"}
		{"k":"b","number":"4"} => refused`},
	{name: "a hidden check under two guards", args: "a!: bool\nb!: bool\nn!: int\nif a {if b {_check: true & (n > 3)}}", calls: `
		{"a":true,"b":true,"n":3} => refused
		{"a":true,"b":true,"n":4} => {"a":true,"b":true,"n":4}
		{"a":true,"b":false,"n":3} => {"a":true,"b":false,"n":3}`},
	{name: "mutual exclusion", args: "a?: int\nb?: int\nif a != _|_ {b?: _|_}", calls: `
		{"a":1,"b":1} => refused
		{"a":1} => {"a":1}
		{"b":1} => {"b":1}`},
	{name: "an argument that none may give", args: "name?: _|_\nn?: int", calls: `
		{"name":1} => refused
		{"n":1} => {"n":1}`},
	{name: "what a list must contain", args: `l!: [...string] & list.Contains("x")`, refused: "6:19 CUE applies list.Contains before a call has filled the list"},
	{name: "what a list must contain, optional", args: `l?: [...string] & list.Contains("x")`, calls: `
		{"l":["x"]} => {"l":["x"]}
		{"l":["a"]} => refused
		{} => {}`},
	{name: "what a list must contain, by itself", args: `l!: list.Contains("x")`, calls: `
		{"l":["x",1]} => {"l":["x",1]}
		{"l":[1]} => refused
		{} => refused`},
	{name: "what a list must contain, under a guard", args: "k!: bool\nif k {l!: [...string] & list.Contains(\"x\")}", calls: `
		{"k":true,"l":["x"]} => {"k":true,"l":["x"]}
		{"k":true,"l":["a"]} => refused
		{"k":true} => refused
		{"k":false} => {"k":false}`},
	{name: "what a list must contain, under a guard that a default opens", args: "k: *true | bool\nif k {l!: [...string] & list.Contains(\"x\")}",
		refused: "7:25 CUE applies list.Contains before a call has filled the list"},
	{name: "what a list must contain, as the problem says", args: "l!: [...string]\n_check: true & list.Contains(l, \"x\")", calls: `
		{"l":["x"]} => {"l":["x"]}
		{"l":["a"]} => refused`},
	{name: "how many items match", args: `l!: [...int] & list.MatchN(2, >5)`, refused: "6:16 CUE applies list.MatchN before a call has filled the list"},
	{name: "a guard that narrows a field with a default", args: "k!: bool\nx: *9 | int\nif k {x: >5}", calls: `
		{"k":true} => {"k":true,"x":9}
		{"k":true,"x":4} => refused
		{"k":false,"x":4} => {"k":false,"x":4}`},
	{name: "a lookup in a table", definitions: `_tbl: {a: int, b: string}`, args: `x!: _tbl["a"]`, calls: `
		{"x":1} => {"x":1}
		{"x":"s"} => refused`},
	{name: "a selection from a struct with a guard", args: "k!: bool\n_base: {sub: {v!: int}, if k {w: 1}}\np?: _base.sub", calls: `
		{"k":true,"p":{"v":1}} => {"k":true,"p":{"v":1}}
		{"k":true,"p":{}} => refused`},
	{name: "a choice as the whole", definitions: `#D: {a!: int} | {b!: int}`, args: "#D", calls: `
		{"a":1} => {"a":1}
		{"b":1} => {"b":1}
		{} => refused`},
	{name: "a guard over an optional bool", args: "dry?: bool\nif dry {why!: string}", calls: `
		{"dry":true,"why":"x"} => {"dry":true,"why":"x"}
		{"dry":true} => refused
		{"dry":false} => {"dry":false}`},
	{name: "a comprehension over an argument", args: "l!: [...string]\nm: [for x in l {\"\\(x)!\"}]", calls: `
		{"l":["a"]} => {"l":["a"],"m":["a!"]}`},
	{name: "a message as the default", args: `b!: *error("gone") | int`, calls: `
		{"b":1} => {"b":1}
		{"b":"x"} => refused
		{} => refused`},
	{name: "a float constant", args: `x: 1.0`, calls: `
		{} => {"x":1.0}
		{"x":1} => {"x":1}
		{"x":1.0} => {"x":1.0}
		{"x":2} => refused`},
	{name: "a default that is a whole float", args: "x: *1.0 | number\ny: *-0.0 | >=0\nz: *1e3 | int\nn: null | *2.50 | number", exact: true, calls: `
		{} => {"x":1.0,"y":0.0,"z":1000,"n":2.50}
		{"x":1,"y":1.0,"z":2.0,"n":null} => {"x":1,"y":1,"z":2,"n":null}
		{"x":1.5,"z":1e3} => {"x":1.5,"y":0,"z":1000,"n":2.5}
		{"y":-1} => refused
		{"z":1.5} => refused`},
	{name: "... in lists and structs", args: "l: *[1.0, 2] | [...number]\nm: [*1.0 | number, ...(*3.0 | int)]\ns: {r: *1.0 | number}\nt?: {r: *1.0 | int}", exact: true, calls: `
		{} => {"l":[1.0,2],"m":[1.0],"s":{"r":1.0}}
		{"l":[1],"m":[2,4.0],"s":{},"t":{}} => {"l":[1],"m":[2,4],"s":{"r":1.0},"t":{"r":1.0}}
		{"m":[2,4.5]} => refused
		{"t":{"r":1.5}} => refused`},
	{name: "... that hides another alternative from CUE's check", args: "x: *{r: 1.0} | {r: int}", calls: `
		{} => {"x":{"r":1.0}}
		{"x":{"r":1}} => {"x":{"r":1}}
		{"x":{"r":2}} => {"x":{"r":2}}
		{"x":{"r":2.5}} => refused`},
	{name: "an open definition joined with a struct", definitions: `#D: {a?: int, ...}`, args: `#D & {z?: int}`, calls: `
		{"a":1,"z":2} => {"a":1,"z":2}
		{"a":"x"} => refused`},
	{name: "... where no other alternative takes the number", args: "x: *1.0 | float\ny: *1.0 | 0.5 | null\nz: *1e3 | string", calls: `
		{} => {"x":1.0,"y":1.0,"z":1000}
		{"y":1,"z":1000} => {"x":1.0,"y":1,"z":1000}
		{"x":1.5,"y":0.5,"z":"a"} => {"x":1.5,"y":0.5,"z":"a"}
		{"x":2} => refused
		{"y":2} => refused
		{"z":1} => refused`},
}

// TestRows holds, for each shape, what becomes of the calls; and the contract and CUE agree on them.
func TestRows(t *testing.T) {
	t.Parallel()
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			strictness := r.strictness
			if strictness == "" {
				strictness = contract.Closed
			}
			d := newDeclared(t, r.definitions, r.args, strictness)
			if r.refused != "" {
				if len(d.problems) != 1 {
					t.Fatalf("got %v, want one problem: %s", d.problems, r.refused)
				}
				p := d.problems[0]
				if got := fmt.Sprintf("%d:%d %s", p.Line, p.Col, p.Message); p.File != "tools.cue" || !strings.HasPrefix(got, r.refused) {
					t.Errorf("got %s %s, want %s", p.File, got, r.refused)
				}
				return
			}
			if d.problems.HasErrors() {
				t.Fatal(d.problems)
			}
			if r.exact && len(d.spec.Losses) > 0 {
				t.Errorf("lost %v, want no loss", d.spec.Losses)
			}
			for line := range strings.Lines(strings.TrimSpace(r.calls)) {
				call, want, _ := strings.Cut(strings.TrimSpace(line), " => ")
				d.agrees(t, call)
				args, found := check(d.whole, []byte(call))
				if refused := found != nil; refused != (want == "refused") || !refused && !same(string(args.JSON()), want) {
					t.Errorf("%s: got %s %v, want %s\nschema %s", call, args.JSON(), found, want, d.spec.Schema)
				}
			}
		})
	}
}

// TestClosedJoin: a ... in what is joined lets no further argument pass, as a ... that is written out; both
// are warned of.
func TestClosedJoin(t *testing.T) {
	t.Parallel()
	for _, args := range []string{"a?: int, ...", "#D", "#D & {z?: int}", "#D & {z?: int, ...}", "{z?: int} & #D"} {
		d := newDeclared(t, "#D: {a?: int, ...}", args, contract.Closed)
		if d.problems.HasErrors() || len(d.problems) == 0 || !strings.Contains(d.problems[0].Message, "lets no further argument pass") {
			t.Errorf("%s: got %v, want a warning", args, d.problems)
			continue
		}
		if _, found := check(d.whole, []byte(`{"a":1,"zz":1}`)); len(found) != 1 || found[0].Pointer != "/zz" {
			t.Errorf("%s: got %v, want zz to be refused", args, found)
		}
	}
}
