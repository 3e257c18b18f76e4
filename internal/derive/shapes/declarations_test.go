package shapes_test

import (
	"regexp"
	"slices"
	"strings"
)

// A field is a name that a call may bring, with what is worth sending for it.
type field struct {
	name    string
	samples []any
}

// A decl is one declaration in a struct.
type decl struct {
	src   string
	gives []field
	// needs are names that must be declared beside it.
	needs []string
	uses  string
	defs  []string
	// computes are those of the fields whose value is made from other arguments.
	computes []string
}

func d(src string, fields ...field) decl { return decl{src: src, gives: fields, uses: src} }

func (d decl) need(names ...string) decl {
	d.needs = names
	return d
}

// from is d, whose fields are computed from the arguments of these names.
func (d decl) from(names ...string) decl {
	d.needs = names
	for _, f := range d.gives {
		d.computes = append(d.computes, f.name)
	}
	return d
}

// computing is d, in which the fields of these names are computed.
func (d decl) computing(names ...string) decl {
	d.computes = append(d.computes, names...)
	return d
}

func (d decl) with(defs ...string) decl {
	d.defs = defs
	return d
}

func f(name string, samples ...any) field { return field{name, samples} }

type object = map[string]any

var (
	fa = f("a", 1, 5, 2, "x")
	fb = f("b", 2, 1, 0, "x")
	fk = f("k", "b", "a", "c")
	fq = f("q", true, false)
	fn = f("n", 1, "s")
	fp = f("p", 1, "s")
	fr = f("r", 1, "s")
	fo = f("o", object{"p": 1}, object{"r": 1}, object{}, object{"p": "s"}, object{"p": 1, "r": 1},
		object{"p": 1, "zz": 1})
	fl = f("l", []any{1, 2}, []any{}, []any{"s"})
	fx = f("xa", 1, "s")
)

// declarations are the alphabet that structs are made of. They share names, because it is what one
// declaration does to another that is tested.
func declarations() []decl {
	return []decl{
		// Fields.
		d(`a!: int`, fa), d(`a?: int`, fa), d(`a: *1 | int`, fa), d(`a: int`, fa), d(`a: 5`, fa),
		d(`a!: *1 | int`, fa), d(`a?: *1 | int`, fa),
		d(`a: >2`, fa), d(`a?: <4`, fa), d(`b!: int`, fb), d(`b?: >1`, fb), d(`b: *2 | int`, fb),
		d(`k!: "a" | "b"`, fk), d(`k?: "a" | "b"`, fk),
		d(`k: *"a" | "b"`, fk), d(`k!: string`, fk), d(`q!: bool`, fq), d(`q?: bool`, fq),
		d(`q: *false | bool`, fq), d(`n?: int`, fn), d(`n: *1 | int`, fn),
		d(`l!: [...int]`, fl), d(`l: *[1] | [...int]`, fl), d(`o!: {p!: int}`, fo),
		d(`o?: {p: *1 | int, r?: int}`, fo), d(`o: {p: *1 | int, ...}`, fo),
		d(`b?: _|_`, fb), d(`"x-y"?: int`, f("x-y", 1, "s")), d(`("n"): int`, fn),
		// References between fields.
		d(`b: a`, fb).from("a"), d(`b: *a | int`, fb).need("a"), d(`b!: a`, fb).need("a"),
		d(`b?: >a`, fb).need("a"), d(`b!: int & >=a`, fb).need("a"),
		d(`b: a + 1`, fb).from("a"), d(`b: "v\(a)"`, f("b", "v1", "v5", 1)).from("a"),
		d(`b?: a | "x"`, fb).need("a"), d(`n: o.p`, fn).from("o"),
		d(`n: len(l)`, fn).from("l"), d(`n: l[0]`, fn).from("l"), d(`n!: or([a, 7])`, fn).need("a"),
		d(`n: {"b": 1, "a": 2}[k]`, fn).from("k"),
		d(`l: [a, ...]`, fl).from("a"), d(`l!: [...<=a]`, fl).need("a"),
		d(`l: [for x in [1, 2] {x + a}]`, f("l", []any{2, 3}, []any{})).from("a"),
		d(`l: [for x in [1, 2] if x > a {x}]`, fl).from("a"),
		d(`l: [if q {1}, 2]`, f("l", []any{2}, []any{1, 2})).from("q"),
		d(`n: [if q {1}, 2][0]`, fn).from("q"),
		d(`b: a > 1`, f("b", true, false)).from("a"), d(`b: a*2 - 1`, fb).from("a"),
		d(`b: strings.ToUpper(k)`, f("b", "A", "B")).from("k"),
		d(`b: [a, 3]`, f("b", []any{1, 3}, []any{})).from("a"),
		d(`b: {c: a}`, f("b", object{"c": 1}, object{})).from("a"),
		d(`b: {c: *a | int}`, f("b", object{"c": 1}, object{"c": 7}, object{})).need("a"),
		d(`b?: {c: a}`, f("b", object{"c": 1}, object{})).need("a").computing("c"),
		d(`X=b: int, n: X`, fb, fn).computing("n"), d(`b?: =~"^\(k)"`, f("b", "bx", "ax")).need("k"),
		d(`n?: *a | string`, fn).need("a"), d(`b: *(a + 1) | int`, fb).need("a"),
		d(`n!: <a | "s"`, fn).need("a"),
		d(`b!: strings.MinRunes(a)`, f("b", "xxxxxx", "")).need("a"),
		d(`l!: list.MaxItems(a)`, fl).need("a"), d(`o!: [string]: <a`, fo).need("a"),
		d(`n: *len(l) | int`, fn).need("l"),
		// Guards.
		d(`if k == "b" {n!: int}`, fn).need("k"), d(`if k == "b" {n?: int}`, fn).need("k"),
		d(`if k == "b" {n: *1 | int}`, fn).need("k"),
		d(`if k == "b" {a: 1}`, fa).need("k"), d(`if k == "b" {a: >3}`, fa).need("k"),
		d(`if k == "b" {a!: _}`, fa).need("k"), d(`if k != "b" {n!: string}`, fn).need("k"),
		d(`if k =~ "^b" {n!: int}`, fn).need("k"), d(`if k == "a" || q {n!: int}`, fn).need("k", "q"),
		d(`if k == "a" && q {n!: int}`, fn).need("k", "q"),
		d(`if q {n!: int}`, fn).need("q"), d(`if !q {n!: int}`, fn).need("q"),
		d(`if q {a: 1}`, fa).need("q"), d(`if q {k: "b"}`, fk).need("q"),
		d(`if a > 1 {n!: int}`, fn).need("a"), d(`if a*2 > 6 {n!: int}`, fn).need("a"),
		d(`if a == 5 {n!: int}`, fn).need("a"),
		d(`if a != _|_ {n!: int}`, fn).need("a"), d(`if a == _|_ {n!: int}`, fn).need("a"),
		d(`if a != _|_ {b?: _|_}`, fb).need("a"),
		d(`if k == "b" {if q {n!: int}}`, fn).need("k", "q"),
		d(`if k == "b" if q {n!: int}`, fn).need("k", "q"),
		d(`if k == "b" {#D}`, fp).need("k").with(`#D: {p!: int}`),
		d(`if k == "b" {_c: true & (a > 1)}`).need("k", "a"),
		d(`if k == "b" {o!: {p!: int}}`, fo).need("k"), d(`if k == "b" {...}`).need("k"),
		d(`if k == "b" {[string]: int}`).need("k"), d(`if true {n!: int}`, fn),
		d(`if k == "b" {let m = 3, n: <=m}`, fn).need("k"),
		d(`if k != _|_ {if a != _|_ {n!: string}}`, fn).need("k", "a"),
		d(`if (k & "b") != _|_ {n!: int}`, fn).need("k"),
		d(`if k == "b" && a > 1 {n!: int}`, fn).need("k", "a"), d(`if k == "b" {k: "b"}`, fk).need("k"),
		d(`if k == "b" {a: *3 | int}`, fa).need("k"), d(`if k == "b" {b: a}`, fb).from("k", "a"),
		d(`if k == "b" {_|_}`).need("k"), d(`if a == 1 {b: 2}`, fb).need("a"),
		d(`if k > "a" {n!: int}`, fn).need("k"),
		d(`if len(l) > 1 {n!: int}`, fn).need("l"), d(`if o.p == 1 {n!: int}`, fn).need("o"),
		d(`if k == "b" {{n!: int}}`, fn).need("k"),
		d(`if k == "b" {{p!: int} | {r!: int}}`, fp, fr).need("k"),
		d(`if k == "b" {o: {p: 1}}`, fo).need("k"), d(`if a != 5 {n!: int}`, fn).need("a"),
		d(`if k == "a" {n!: int}, if k == "b" {n!: string}`, fn).need("k"),
		d(`if k == "b" {n?: _|_}`, fn).need("k"),
		// Comprehensions.
		d(`for f in ["p", "r"] {(f)?: int}`, fp, fr),
		d(`for f in ["p"] {if k == "b" {(f)!: int}}`, fp).need("k"),
		d(`for f in ["p"] {"\(f)": a}`, fp).from("a"),
		d(`for f in ["p"] if k == "b" {(f)!: int}`, fp).need("k"),
		d(`for x in l {"p\(x)": x}`, f("p1", 1, 2)).from("l"),
		d(`for f, v in {p: 1, r: 2} {(f): *v | int}`, fp, fr),
		d(`for x in [a] {p: x}`, fp).from("a"), d(`for x in [1] let y = x {p: y}`, fp),
		// let and hidden fields.
		d("let L = a, b: L", fb).from("a"), d("let L = [...int], l!: L", fl),
		d("let L = {p!: int} | {r!: int}, o!: L", fo), d("let L = >1, a?: L", fa),
		d("let L = {p!: int}, L", fp), d("_h: a, b: _h", fb).from("a"), d("_h: {p!: int}, o!: _h", fo),
		d("_h: {p!: int}, _h", fp), d(`_h: *1 | int, n: _h`, fn),
		d(`_h: true & (a < b)`).need("a", "b"), d(`_h: a & >1`).need("a"), d(`_h: len(l) & <2`).need("l"),
		d(`_h: k & "b"`).need("k"), d(`_t: {a: 1, b: 2}, n: _t[k]`, fn).from("k"),
		d(`_h: {if q {x: 1}}, n: _h.x`, fn).from("q"), d(`_h: int, n: _h`, fn), d(`_h: >1, n?: _h`, fn),
		d("let L = [...int] & list.MinItems(1), l!: L", fl),
		d("let L = {c: a}, o: L", f("o", object{"c": 1}, object{})).from("a").computing("c"),
		d(`_b: {s: {if k == "b" {p!: int}}}, o?: _b.s`, fo).need("k"),
		d(`_h: {p: a}, o: _h`, f("o", object{"p": 1}, object{})).from("a").computing("p"), d(`_h!: int`),
		d(`_h?: int`), d(`_h: [if k == "b" {1}, 2][0], n: _h`, fn).from("k"),
		d(`_ok: true, _ok: a < 5`).need("a"),
		d(`_h: {_c: true & (a > 1)}`).need("a"), d(`_h: [for x in l if x > 1 {x}] & []`).need("l"),
		d(`_h: or([for x in [1, 5] {x}]), a?: _h`, fa), d(`_h: a | "s", b?: _h`, fb).need("a"),
		// Patterns.
		d(`[string]: int`, fx), d(`[string]: _`, fx), d(`[=~"^x"]: int`, fx), d(`[!~"^x"]: int`, fx, fn),
		d(`["p" | "r"]: int`, fp, fr), d(`[N=string]: N | int`, fx),
		d(`[=~"^x"]: {p!: int}`, f("xa", object{"p": 1}, object{})), d(`[string]: *1 | int`, fx),
		// Embeddings.
		d(more), d(`_`), d(`{a?: int}`, fa), d(`{p!: int}`, fp), d(`{p!: int} | {r!: int}`, fp, fr),
		d(`*{p: 1} | {r!: int}`, fp, fr),
		d(`{k!: "a", p!: int} | {k!: "b", r!: int}`, fk, fp, fr), d(`#D`, fp).with(`#D: {p!: int}`),
		d(`#D & {p?: >0}`, fp).with(`#D: {p!: int}`),
		d(`#D`, fp).with(`#D: {p?: int, ` + more + `}`),
		d(`#D`, fk, fp).with(`#D: {k: *"a" | "b", if k == "b" {p!: int}}`),
		d(`#D.s`, fp).with(`#D: s: {p!: int}`),
		d(`#D | #E`, fp, fr).with(`#D: {p!: int}`, `#E: {r!: int}`),
		d(`matchN(1, [{a!: int}, {b!: int}])`, fa, fb), d(`struct.MinFields(1)`), d(`struct.MaxFields(1)`),
		d(`close({a?: int})`, fa), d(`#I: {p!: int}, o?: #I`, fo), d(`#i: int, n!: #i`, fn),
		d(`#i: a, b: #i`, fb).from("a"), d(`matchIf({k!: "b"}, {n!: int}, {n?: _|_})`, fk, fn),
		d(`null | {p!: int}`, fp), d(`{}`), d(`{a: *1 | int}`, fa), d(`{_c: true & (a > 1)}`).need("a"),
		d(`{if k == "b" {n!: int}}`, fn).need("k"), d(`[#D][0]`, fp).with(`#D: {p!: int}`),
		d(`#D & {p: *1 | int}`, fp).with(`#D: {p?: int}`),
		d(`#D`, fo).with(`#D: {o?: #E}`, `#E: {p!: int}`), d(`_g`, fp).with(`_g: {p!: int}`),
		d(`o?: _g`, fo).with(`_g: {p!: int}`), d(`o: _g & {p: 1}`, fo).with(`_g: {p?: int, r?: int}`),
		d(`o!: {p!: int} | {r!: int}`, fo), d(`o?: *{p: 1} | {r!: int}`, fo),
		d(`o!: {p!: int}, o: r?: int`, fo), d(`o?: {...} & {p!: int}`, fo), d(`o!: close({p!: int})`, fo),
		d(`o?: {#s: 1, p: #s}`, fo),
		d(`o!: {[string]: int}`, fo), d(`o?: {[=~"^p"]: int, r?: string}`, fo),
		d(`o: [=~"^p"]: *1 | int`, fo), d(`o!: matchN(1, [{p!: int}, {r!: int}])`, fo),
		d(`o!: struct.MaxFields(1)`, fo),
		d(`o!: {k: "x", ...} & {p?: int}`, fo), d(`@title("t")`), d(`a?: int @examples(1)`, fa),
	}
}

// structOf is a struct of the declarations in that order; ok is false where one refers to a name that none
// declares.
func structOf(ds ...decl) (v value, ok bool) {
	var src []string
	var fields []field
	for _, one := range ds {
		for _, name := range one.needs {
			if !slices.ContainsFunc(ds, func(o decl) bool {
				return !strings.HasPrefix(o.src, "if ") && !strings.HasPrefix(o.src, "{") &&
					slices.ContainsFunc(o.gives, func(f field) bool { return f.name == name })
			}) {
				return value{}, false
			}
		}
		src = append(src, one.src)
		v.defs = append(v.defs, one.defs...)
		v.uses = append(v.uses, one.uses)
		if strings.Contains(one.src, "} | {") {
			v.uses = append(v.uses, "a choice of structs")
		}
		v.computes = append(v.computes, one.computes...)
		for _, g := range one.gives {
			if i := slices.IndexFunc(fields, func(f field) bool { return f.name == g.name }); i < 0 {
				fields = append(fields, g)
			} else {
				fields[i].samples = distinct(slices.Concat(fields[i].samples, g.samples))
			}
		}
	}
	v.src, v.object = "{"+strings.Join(src, ", ")+"}", true
	v.loose = loose(v.src)
	v.samples = objects(fields)
	slices.Sort(v.defs)
	v.defs = slices.Compact(v.defs)
	// Two declarations of one definition at the file's level would be unified.
	for i := 1; i < len(v.defs); i++ {
		if before, _, _ := strings.Cut(v.defs[i-1], ":"); strings.HasPrefix(v.defs[i], before+":") {
			return value{}, false
		}
	}
	// One name of a let or a hidden field means one thing.
	for _, once := range []string{"let L", "_h:", "#I:", "#i:"} {
		if strings.Count(v.src, once) > 1 {
			return value{}, false
		}
	}
	return v, true
}

var (
	comprehension = regexp.MustCompile(`\b(if|for) |[{ ]_[,}]`)
	alwaysThere   = regexp.MustCompile(`(^\{|, )"?\w+"?!?: `)
)

// loose reports whether the struct has a comprehension or `_`, and no field that makes it a struct whatever
// those are.
func loose(src string) bool { return comprehension.MatchString(src) && !alwaysThere.MatchString(src) }
