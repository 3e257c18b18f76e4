package shapes_test

import (
	"encoding/json"
	"slices"
	"strings"
)

// A value is a CUE expression, with what is worth sending where it stands.
type value struct {
	src string
	// defs are the declarations at the file's level that src refers to.
	defs []string
	// samples are decoded JSON: those that fit first, then those on and beyond a boundary, then other kinds.
	samples []any
	// uses names the productions that src is made of.
	uses []string
	// computes are the names of fields, at any depth, whose value is made from other arguments.
	computes []string
	// loose: a struct of guards, `_` and optional fields alone. CUE v0.17.1 takes `"s"` for `{a?: int, if
	// false {n!: int}}`, though not for `{a?: int}`, which by the specification is the same; so such a struct
	// is sent structs alone.
	loose bool
	// object: every alternative is a struct, so that it can be a tool's args.
	object bool
}

// more stands for `...` of the outermost struct. strictness decides about that one, and not the author's
// `...`.
const more = "…"

// inner is v as it is written anywhere but at the top.
func (v value) inner() value {
	v.src = strings.ReplaceAll(v.src, more, "...")
	v.defs = slices.Clone(v.defs)
	for i := range v.defs {
		v.defs[i] = strings.ReplaceAll(v.defs[i], more, "...")
	}
	return v
}

func (v value) use(name string, others ...value) value {
	v.uses = append([]string{name}, v.uses...)
	for _, o := range others {
		v.uses = append(v.uses, o.uses...)
		v.defs = append(slices.Clone(v.defs), o.defs...)
		v.computes = append(slices.Clone(v.computes), o.computes...)
	}
	return v
}

// jsonInt is a whole number that is written as a float is.
const wholeFloat = json.Number("2.0")

func leaf(src string, samples ...any) value {
	return value{src: src, samples: samples, uses: []string{src}}
}

// leaves are the values of depth 1 that are no structs.
func leaves() []value {
	return []value{
		leaf(`int`, 1, wholeFloat, 1.5, "x", nil),
		leaf(`string`, "x", "", 1),
		leaf(`bool`, true, false, "true"),
		leaf(`null`, nil, 0),
		leaf(`5`, 5, json.Number("5.0"), 6, "5"),
		leaf(`"b"`, "b", "a", 1),
		leaf(`int & >=1 & <=3`, 1, 3, 0, 4, 2.5),
		leaf(`>2`, 3, 2.5, 2, "x"),
		leaf(`!=3`, 4, 3, "x", nil, []any{1}),
		leaf(`!="x"`, "y", "x", 1, nil, map[string]any{"p": 1}),
		leaf(`>"b"`, "c", "b", 1),
		leaf(`=~"^x"`, "xa", "ax", 1),
		leaf(`!~"^x"`, "ax", "xa", 1),
		leaf(`strings.MinRunes(2)`, "éé", "é", 1),
		leaf(`strings.MaxRunes(1)`, "é", "éé", ""),
		leaf(`*1 | int`, 1, 2, wholeFloat, "x"),
		leaf(`*1 | >=10`, 1, 10, 5, "x"),
		leaf(`*1.0 | number`, 1, wholeFloat, 2.5, "x"), leaf(`*1.0 | int`, 1, wholeFloat, 2.5, "x"), leaf(`*1e3 | >=10`, 10, 1000, 5, "x"),
		leaf(`"a" | "b"`, "a", "b", "c", 1),
		leaf(`*"a" | "b"`, "a", "b", "c"),
		leaf(`*"a" | string`, "a", "q", 1),
		leaf(`*"dd" | !=3`, "dd", "a", 3, 4, nil),
		leaf(`number`, 1.5, 1, "x"),
		leaf(`float`, 1.5, "x"),
		leaf(`_`, 1, nil, "x", map[string]any{"p": 1}, []any{}),
		leaf(`int | string`, 1, "x", true, 1.5),
		leaf(`null | int`, nil, 1, "x"),
		leaf(`uint8`, 255, 256, -1, "x"),
		leaf(`true`, true, false),
		leaf(`1 | 2 | "z"`, 1, 2, "z", 3, wholeFloat),
		leaf(`*null | string`, nil, "x", 1),
		leaf(`int & !=2`, 1, 2, wholeFloat, 3),
		leaf(`(int | string) & !="x"`, 1, "y", "x"),
		leaf(`*1 | *2 | int`, 1, 2, 3),
		leaf(`1 + 2`, 3, 4),
		leaf(`len("ab")`, 2, 3),
		leaf(`or(["a", "b"])`, "a", "b", "c"),
		leaf(`[1, 2][1]`, 2, 1),
		leaf(`"x\(1)y"`, "x1y", "x"),
		leaf(`<=1e400`, 1, "x"),
		leaf(`*1e-30 | number`, json.Number("1e-30"), 1, "x"),
		leaf(`int & >=9007199254740992`, json.Number("9007199254740994"), 1),
		leaf(`math.MultipleOf(2)`, 2, 4, 3, 2.5, "x"),
		leaf(`number & >0.5 & <1.5`, 1, 0.75, 0.5, 1.5),
		leaf(`strings.ToUpper("b")`, "B", "b"),
		leaf(`error("no") | int`, 1, "x"),
		leaf(`*_|_ | int`, 1, "x"),
		leaf(`=~"^x" & =~"y$"`, "xy", "x", "y"),
		leaf(`=~"^x" | =~"y$"`, "x", "y", "z"),
		leaf(`=~"(?i)^x"`, "X", "ax"),
		leaf(`=~"^.$"`, "é", "ab", "\n"),
		leaf(`<"b" & >="a"`, "a", "b", 1),
		leaf(`int & (>5 | <2)`, 1, 6, 3),
		leaf(`>1 & <4 | "x"`, 2, "x", 4, "y"),
		leaf(`number & !=1 & !=2`, 3, 1, wholeFloat, "x"),
		leaf(`bool | *null`, true, nil, 1),
		leaf(`1 < 2`, true, false),
		leaf(`[for x in [1, 2] {x}][0]`, 1, 2),
		leaf(`{a: 1, b: 2}.b`, 2, 1),
		leaf(`7 & int | *"auto"`, 7, "auto", 8),
		leaf(`strings.MinRunes(1) & strings.MaxRunes(2)`, "é", "", "abc"),
		leaf(`*"x" | =~"^[a-z]+$" | null`, "x", "abc", nil, "A"),
		leaf(`*"" | =~"^x"`, "", "xa", "a"),
		leaf(`*0 | (int & >=10)`, 0, 10, 5),
	}
}

// lists are the lists of depth 1.
func lists() []value {
	one := []any{[]any{1}, []any{1, 2}, []any{1, 1}, []any{}, []any{"x"}, []any{1, "x", 2}, "x"}
	list := func(src string) value { return value{src: src, samples: one, uses: []string{src}} }
	return []value{
		list(`[...]`), list(`[...int]`), list(`[int]`), list(`[int, ...]`), list(`[int, ...string]`),
		list(`[]`), list(`[1, 2]`),
		list(`[...int] & list.MinItems(1)`), list(`[...int] & list.MaxItems(1)`),
		list(`[...int] & list.UniqueItems()`),
		list(`[...int] & [_, ...]`), list(`[...] & list.Contains(1)`), list(`list.MatchN(1, >1)`),
		list(`list.MatchN(>0, int)`),
		list(`*[1] | [...int]`), list(`[...int] | *"x"`), list(`[...int] | [...string]`),
		list(`[int, *2 | int]`), list(`[*1 | int, ...]`),
		list(`[for x in [1, 2] {x}]`), list(`[for x in [1, 2] if x > 1 {x}]`), list(`[...(1 | *2)]`),
		list(`list.MaxItems(1)`),
		list(`[...(1 | *2)] & list.MaxItems(2)`), list(`[int] | [int, int]`), list(`[...int] & [int, int]`),
		list(`[(1 | "x"), ...]`),
		list(`[...int] & list.MinItems(1) & list.MaxItems(2)`), list(`*[] | [int]`),
		list(`[int, ...] & list.UniqueItems()`), list(`list.MinItems(1) | int`), list(`[...int] & !=[1]`),
		list(`[...[...int]]`), list(`[...int] & list.MatchN(1, >1)`),
		list(`list.Sort([2, 1], list.Ascending)`), list(`[1] + [2]`), list(`null | [...int]`),
		list(`[...>1]`), list(`[...int] & [1, ...]`), list(`[if true {1}]`), list(`list.Repeat([1], 2)`),
		list(`list.IsSortedStrings()`),
	}
}

// values are the leaves, the lists and the bodies: what wrappers are put around.
func values() []value { return slices.Concat(leaves(), lists(), bodies()) }
