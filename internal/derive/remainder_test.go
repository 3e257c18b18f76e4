package derive_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	cuebuild "cuelang.org/go/cue/build"
	"cuelang.org/go/cue/cuecontext"
	"cuelang.org/go/cue/parser"

	"github.com/catalogd/catalogd/internal/derive"
)

// remainder is that of a struct of arguments.
func remainder(t testing.TB, args string, open bool) *derive.Remainder {
	t.Helper()
	of := "_args"
	if open {
		of = "{_args, ...}"
	}
	inst := cuebuild.NewContext().NewInstance(".", nil)
	inst.PkgName = "catalog"
	f, err := parser.ParseFile("a.cue", "package catalog\n\n"+imports(args)+"\n_args: "+args+"\n#R: "+of+"\n", parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	inst.AddSyntax(f)
	if err := inst.Complete(); err != nil {
		t.Fatal(err)
	}
	v := cuecontext.New().BuildInstance(inst)
	if err := v.Err(); err != nil {
		t.Fatal(err)
	}
	r, err := derive.NewRemainder(v, "#R")
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestRemainder checks one struct of each kind that a schema can't say all of, with what is filled in and what is said.
func TestRemainder(t *testing.T) {
	t.Parallel()
	const secret = "hunter2"
	for _, test := range []struct{ name, args, call, want string }{
		{"bound", `{start!: int, end!: >start}`, `{"start":5,"end":7}`, ``},
		{"bound broken", `{start!: int, end!: >start}`, `{"start":5,"end":3}`, `/end: got the number 3, expected > start, which is 5`},
		{"bound in a longer constraint", `{start!: int, end!: int & >(start+1)}`, `{"start":5,"end":6}`, `/end: got the number 6, expected int & >(start + 1), where start is 5`},
		{"all at once", `{start!: int, end!: >start, m?: [string]: <start, l?: [...>start]}`, `{"start":5,"end":3,"m":{"a~/b":9},"l":[6,2]}`,
			"/end: got the number 3, expected > start, which is 5\n/l/1: got the number 2, expected > start, which is 5\n/m/a~0~1b: got the number 9, expected < start, which is 5"},
		{"bound on what is left out", `{start?: int, end!: >start}`, `{"end":3}`, `/start: got nothing, expected a value, which > start needs`},
		{"bound on a nested argument", `{r: {lo: *1 | int, hi: *9 | int}, x!: <=r.hi}`, `{"x":4,"r":{"hi":3,"lo":1}}`, `/x: got the number 4, expected <= r.hi, which is 3`},
		{"computed", `{first!: string, last: *"X" | string, full: "\(first) \(last)"}`, `{"first":"Ada","last":"L"}`, `{"first":"Ada","full":"Ada L","last":"L"}`},
		{"computed below", `{o!: {a!: int, twice: a*2}}`, `{"o":{"a":21}}`, `{"o":{"a":21,"twice":42}}`},
		{"computed of what is left out", `{first?: string, full: "Dr. \(first)"}`, `{}`, `/first: got nothing, expected a value, which "Dr. \(first)" needs`},
		{"default of another argument", `{start!: int, end: *(start + 1) | int}`, `{"start":41}`, `{"end":42,"start":41}`},
		{"digits", `{a!: number, b!: number, end: *(a + 1) | number, big!: int}`, `{"a":1,"b":1.50,"big":123456789012345678901234567890}`,
			`{"a":1,"b":1.50,"big":123456789012345678901234567890,"end":2}`},
		{"an integer for a float", `{f!: float, g!: >f}`, `{"f":5,"g":6.5}`, ``},
		{"bytes", `{a!: bytes, l?: [...bytes], o?: {[=~"^k"]: bytes, s?: string}, n!: int, m!: >n}`, `{"a":"YWJj","l":["YQ=="],"o":{"k":"YQ==","s":"YQ=="},"n":1,"m":2}`, ``},
		{"a bound of bytes", `{a!: bytes & >'b'}`, `{"a":"YWJj"}`, `/a: got the string "YWJj", expected bytes & >'b'`},
		{"a negative number", `{a!: int, b!: >a}`, `{"a":-5,"b":-4}`, ``},
		{"guard", `{n!: int, if n > 3 {why!: string}}`, `{"n":5}`, `/why: got nothing, expected string`},
		{"guard kept", `{n!: int, if n > 3 {why!: string}}`, `{"n":5,"why":"x"}`, ``},
		{"guard that does not hold", `{n!: int, if n > 3 {why!: string}}`, `{"n":1,"why":"x"}`,
			`/why: got the string "x", expected nothing: it is an argument only if n > 3`},
		{"closed below", `{n!: int, o?: {a?: int, if n > 3 {b?: int}}}`, `{"n":1,"o":{"b":1}}`,
			`/o/b: got the number 1, expected nothing: it is an argument only if n > 3`},
		{"open below", `{n!: int, o?: {a?: >n, ...}}`, `{"n":1,"o":{"b":1}}`, ``},
		{"secret", `{n!: string @secret(), m!: !=n}`, `{"n":"` + secret + `","m":"` + secret + `"}`, `/m: got the string "hunter2", expected != n, which is a secret`},
		{"computed from a secret", `{n!: string @secret(), up: strings.ToUpper(n), m!: string & !=up}`, `{"n":"` + secret + `","m":"HUNTER2"}`, `/m: got the string "HUNTER2", expected string & !=up, where up is filled in`},
		{"a key beside a secret", `{n!: int, o!: {p!: string @secret(), q?: >n}}`, `{"n":1,"o":{"p":"` + secret + `","pp":"` + secret + `"}}`,
			"/o/pp: got a string that is not shown, as it is or may be a secret, expected nothing: with the other arguments of this call there is no such argument"},
		{"secret that is wrong", `{n!: string, m!: !=n @secret()}`, `{"n":"x","m":"x"}`, `/m: got a string that is not shown, as it is or may be a secret, expected != n, which is "x"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			filled, found, err := remainder(t, test.args, false).Check(json.RawMessage(test.call))
			if err != nil {
				t.Fatal(err)
			}
			var lines []string
			for _, v := range found {
				lines = append(lines, v.String())
			}
			got := string(filled) + strings.Join(lines, "\n")
			if !sameLines(got, test.want) {
				t.Errorf("got\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}

func sameLines(a, b string) bool {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	seen := map[string]int{}
	for _, s := range x {
		seen[s]++
	}
	for _, s := range y {
		seen[s]--
	}
	for _, n := range seen {
		if n != 0 {
			return false
		}
	}
	return true
}

// TestRemainderOpen: further keys pass where the tool says so.
func TestRemainderOpen(t *testing.T) {
	t.Parallel()
	r := remainder(t, `{n!: int, m!: >n}`, true)
	for call, wrong := range map[string]bool{`{"n":1,"m":2,"x":{"y":[1]}}`: false, `{"n":1,"m":0,"x":1}`: true} {
		_, found, err := r.Check(json.RawMessage(call))
		if err != nil || (len(found) > 0) != wrong {
			t.Errorf("%s: %v %v", call, found, err)
		}
	}
}

// TestRemainderIsReused: what one call says is nothing to the next.
func TestRemainderIsReused(t *testing.T) {
	t.Parallel()
	r := remainder(t, `{start!: int, end: *(start+1) | int, m?: {[string]: >start}}`, false)
	for i := range 50 {
		filled, found, err := r.Check(json.RawMessage(fmt.Sprintf(`{"start":%d,"m":{"k%[1]d":%[1]d}}`, i)))
		if err != nil || filled != nil || len(found) != 1 || found[0].Pointer != fmt.Sprintf("/m/k%d", i) {
			t.Fatalf("%d: %s %v %v", i, filled, found, err)
		}
		filled, found, err = r.Check(json.RawMessage(fmt.Sprintf(`{"start":%d}`, i)))
		if want := fmt.Sprintf(`{"end":%d,"start":%d}`, i+1, i); err != nil || found != nil || string(filled) != want {
			t.Fatalf("%d: %s %v %v", i, filled, found, err)
		}
	}
}

func BenchmarkRemainderInProcess(b *testing.B) {
	r := remainder(b, `{start!: int, end!: >start, first!: string, last: *"x" | string, n: *1 | int & <100}`, false)
	args := json.RawMessage(`{"start":5,"end":7,"first":"Ada","last":"L","n":3}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, found, err := r.Check(args); err != nil || found != nil {
			b.Fatal(found, err)
		}
	}
}
