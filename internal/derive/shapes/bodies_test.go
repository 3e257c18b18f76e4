package shapes_test

// bodies are the structs and choices of structs that wrappers are put around: one of each production, and
// those pairs whose parts need each other.
func bodies() []value {
	all := declarations()
	at := func(src string) decl {
		for _, one := range all {
			if one.src == src {
				return one
			}
		}
		panic("no declaration " + src)
	}
	of := func(srcs ...string) value {
		var ds []decl
		for _, src := range srcs {
			ds = append(ds, at(src))
		}
		v, ok := structOf(ds...)
		if !ok {
			panic("no struct of " + ds[0].src)
		}
		return v
	}
	choice := func(src string, fields ...field) value {
		uses := []string{src, "a choice of structs"}
		return value{src: src, samples: objects(fields), uses: uses, object: true}
	}
	fm := f("m", "x", "y", "z")
	return []value{
		of(), of(`a!: int`), of(`a?: int`), of(`a: *1 | int`), of(`a: 5`), of(`a: int`),
		of(`a?: int`, more), of(`a: *1 | int`, `b?: >1`),
		of(`k: *"a" | "b"`, `if k == "b" {n!: int}`), of(`k!: "a" | "b"`, `if k == "b" {n!: int}`),
		of(`k?: "a" | "b"`, `if k == "b" {n!: int}`),
		of(`k!: "a" | "b"`, `if k == "b" {a: >3}`, `a!: int`), of(`q: *false | bool`, `if q {n!: int}`),
		of(`q!: bool`, `a: *1 | int`, `if q {a: 1}`),
		of(`a?: int`, `if a != _|_ {n!: int}`), of(`a!: int`, `b!: int`, `_h: true & (a < b)`),
		of(`a!: int`, `b!: int & >=a`), of(`a!: int`, `b: a + 1`),
		of(`a: *1 | int`, `b: a`), of(`a: *1 | int`, `b: *a | int`), of(`a!: int`, `if a > 1 {n!: int}`),
		of(`k!: "a" | "b"`, `for f in ["p"] {if k == "b" {(f)!: int}}`),
		of(`for f in ["p", "r"] {(f)?: int}`), of(`let L = {p!: int} | {r!: int}, o!: L`),
		of(`a!: int`, `let L = a, b: L`), of(`_h: {p!: int}, _h`),
		of(`[string]: int`), of(`[=~"^x"]: int`), of(`[=~"^x"]: int`, `a?: int`), of(`[string]: *1 | int`),
		of(`_`, `a?: int`), of(`{a?: int}`), of(`{a?: int}`, `b!: int`),
		of(`matchN(1, [{a!: int}, {b!: int}])`, more), of(`struct.MinFields(1)`, `a?: int`),
		of(`a: *1 | int`, `l: [for x in [1, 2] {x + a}]`),
		of(`k: *"a" | "b"`, `_t: {a: 1, b: 2}, n: _t[k]`), of(`o?: {p: *1 | int, r?: int}`),
		of(`o: {p: *1 | int, ...}`), of(`l: *[1] | [...int]`),
		of(`q: *false | bool`, `_h: {if q {x: 1}}, n: _h.x`), of(`#i: int, n!: #i`),
		of(`k!: "a" | "b"`, `if k == "b" {_c: true & (a > 1)}`, `a!: int`),
		choice(`{m!: "x", a!: int} | {m!: "y", b!: string}`, fm, fa, f("b", "s", 1)),
		choice(`*{m: "x", a: *1 | int} | {m!: "y", b!: string}`, fm, fa, f("b", "s", 1)),
		choice(`{m: "x", a?: int} | {m: "y", b?: string}`, fm, fa, f("b", "s", 1)),
		choice(`{a!: int} | {b!: int}`, fa, fb), choice(`{a?: int} | {b?: int}`, fa, fb),
		choice(`*{a: 1} | {a: int}`, fa), choice(`{a: 1} | {a: 2, b!: int}`, fa, fb),
		choice(`*{a: *1 | int} | {b: *2 | int}`, fa, fb), choice(`{a!: int} & {b?: int, ...}`, fa, fb),
		choice(`{a!: int} | {a!: int, b?: int}`, fa, fb),
		choice(`{a!: 1, n!: int} | {a!: 2, n?: string} | {a!: 5}`, fa, fn), choice(`close({a?: int})`, fa),
		choice(`{p!: int} & ({k!: "a"} | {k!: "b", n!: int})`, fp, fk, fn),
	}
}
