package shapes_test

import (
	"fmt"
	"slices"
	"strings"
)

// A wrapper puts a value into a larger one. level tells the names that it declares from those of the wrappers
// inside.
type wrapper struct {
	name string
	// structs: only for values whose alternatives are all structs.
	structs bool
	wrap    func(v value, level int) value
	// recursive: the value's definition refers to itself.
	recursive bool
}

// wrappers are what is put around values.
func wrappers() []wrapper {
	def := func(v value, level int) (name string, defs []string) {
		name = fmt.Sprintf("#D%d", level)
		return name, append(slices.Clone(v.defs), name+": "+v.src)
	}
	// same makes a value of the same samples: %s is v's source, #D its definition.
	same := func(name string, structs bool, format string, further ...field) wrapper {
		return wrapper{name: name, structs: structs, wrap: func(v value, level int) value {
			out := value{object: v.object, defs: v.defs, samples: v.samples, computes: v.computes}
			out.loose = v.loose || loose(format)
			src := format
			if strings.Contains(src, "#D") {
				var d string
				d, out.defs = def(v, level)
				src = strings.ReplaceAll(src, "#D", d)
			}
			src = strings.ReplaceAll(src, "_h", fmt.Sprintf("_h%d", level))
			out.src = strings.ReplaceAll(src, "%s", v.src)
			for _, f := range further {
				for _, o := range v.samples {
					if _, ok := o.(object); ok {
						for _, s := range f.samples {
							out.samples = append(out.samples, with(o, f.name, s))
						}
						if len(out.samples) > 4*maxCalls {
							break
						}
					}
				}
			}
			out.uses = append([]string{name}, v.uses...)
			if strings.HasPrefix(name, "{") {
				out.uses = append(out.uses, "an embedding")
			}
			return out
		}}
	}
	// in makes a struct with the value in one field, or in several; %s is the value, #D its definition, @ the
	// level.
	in := func(name, format string, samples func(in []any, level int) []any) wrapper {
		return wrapper{name: name, wrap: func(v value, level int) value {
			inner := v.inner()
			out := value{object: true, defs: inner.defs, computes: v.computes}
			src := strings.ReplaceAll(format, "@", fmt.Sprint(level))
			if strings.Contains(src, "#D") {
				var d string
				d, out.defs = def(inner, level)
				src = strings.ReplaceAll(src, "#D", d)
			}
			out.src = strings.ReplaceAll(src, "%s", inner.src)
			out.samples, out.loose = samples(nested(v), level), loose(format)
			out.uses = append([]string{name}, v.uses...)
			return out
		}}
	}
	v := func(in []any, level int) []any {
		return objects([]field{{fmt.Sprintf("v%d", level), in}})
	}
	w := func(in []any, level int) []any {
		return objects([]field{{fmt.Sprintf("w%d", level), in}})
	}
	and := func(more ...field) func([]any, int) []any {
		return func(in []any, level int) []any {
			return objects(append([]field{{fmt.Sprintf("v%d", level), in}}, more...))
		}
	}
	keys := func(names ...string) func([]any, int) []any {
		return func(in []any, level int) []any {
			var fs []field
			for _, n := range names {
				fs = append(fs, field{n, in})
			}
			return objects(fs)
		}
	}
	// list makes a list of the value.
	list := func(name, format string) wrapper {
		w := in(name, format, func(in []any, _ int) []any {
			all := []any{[]any{in[0]}, []any{}, []any{in[0], in[len(in)/2]}, []any{in[0], in[0]}}
			for _, s := range in {
				all = append(all, []any{s})
			}
			return append(all, in[0], object{})
		})
		wrap := w.wrap
		w.wrap = func(v value, level int) value { out := wrap(v, level); out.object = false; return out }
		return w
	}
	// choice makes a disjunction of the value and something else.
	choice := func(name string, objects bool, format string, further ...any) wrapper {
		w := in(name, format, func(in []any, _ int) []any { return append(slices.Clone(in), further...) })
		wrap := w.wrap
		w.wrap = func(v value, level int) value {
			out := wrap(v, level)
			out.object, out.loose = objects && v.object, v.loose
			if v.loose {
				out.samples = slices.DeleteFunc(out.samples, func(s any) bool {
					_, is := s.(object)
					return !is
				})
			}
			return out
		}
		return w
	}
	// recursive makes a definition that refers to itself in the field kid; as puts a sample into what is
	// there.
	recursive := func(declared string, as func(self any) any) wrapper {
		return wrapper{name: declared, structs: true, recursive: true, wrap: func(v value, level int) value {
			r := fmt.Sprintf("#R%d", level)
			inner := v.inner()
			d, defs := def(inner, level)
			out := value{src: r, computes: v.computes, loose: v.loose}
			out.uses = append([]string{declared}, v.uses...)
			// A struct that is open at the top by its author, and recursive, is tried below the top alone.
			out.object = !strings.Contains(v.src+strings.Join(v.defs, ""), more)
			out.defs = append(defs, r+": {"+d+", "+strings.ReplaceAll(declared, "#R", r)+"}")
			for _, s := range some(v.samples, maxNested) {
				if _, ok := s.(object); !ok {
					continue
				}
				first := v.samples[0]
				out.samples = append(out.samples, s, with(first, "kid", as(s)),
					with(with(first, "on", true), "kid", as(s)))
				if !v.loose {
					out.samples = append(out.samples, with(first, "kid", as(with(s, "kid", nil))))
				}
			}
			if !v.loose {
				out.samples = append(out.samples, with(v.samples[0], "kid", nil), with(v.samples[0], "kid", 1))
				out.samples = append(out.samples, with(v.samples[0], "kid", object{"z": 1}))
			}
			out.samples = append(out.samples, with(v.samples[0], "on", false))
			return out
		}}
	}
	itself := func(s any) any { return s }
	inList := func(s any) any { return []any{s} }
	inMap := func(s any) any { return object{"p": s} }
	z := f("z", 1, "s")
	on := f("on", true, false)
	return []wrapper{
		// The same struct, otherwise written.
		same(`definition`, false, `#D`), same(`{#D}`, false, `{#D}`),
		same(`{#D, z?: int}`, true, `{#D, z?: int}`, z), same(`{z!: int, #D}`, true, `{z!: int, #D}`, z),
		same(`{literal, z?: int}`, true, `{%s, z?: int}`, z), same(`{{literal}}`, false, `{{%s}}`),
		same(`{_, literal}`, false, `{_, %s}`), same(`#D & {z?: int}`, true, `#D & {z?: int}`, z),
		same(`#D & {...}`, true, `#D & {...}`), same(`#D & {[string]: _}`, true, `#D & {[string]: _}`),
		same(`{#D, ...}`, true, `{#D, `+more+`}`, z),
		same(`{literal, [string]: _}`, true, `{%s, [string]: _}`, z),
		same(`{#D, [=~"^x"]: int}`, true, `{#D, [=~"^x"]: int}`, f("xa", 1, "s")),
		same(`close(#D)`, true, `close(#D)`), same(`{#D, _h: {x: 1}}`, true, `{#D, _h: {x: 1}}`),
		same(`{if on {#D}}`, true, `{on!: bool, if on {#D}}`, on),
		same(`{if on {literal}}`, true, `{on!: bool, if on {%s}}`, on),
		same(`{on: *false|bool, if on {#D}}`, true, `{on: *false | bool, if on {#D}}`, on),
		same(`{for in [1] {#D}}`, true, `{for _ in [1] {#D}}`),
		same(`{let l = literal, l}`, true, `{let l = %s, l}`),
		same(`{_h: literal, _h}`, true, `{_h: %s, _h}`), same(`(#D)`, false, `(#D)`),
		same(`#D & {[string]: int}`, true, `#D & {[string]: int}`),
		same(`#D & {a: >3}`, true, `#D & {a?: >3}`),
		same(`#D & {p: *1 | int}`, true, `#D & {p?: *1 | int}`), same(`{#D} & {#D}`, true, `{#D} & {#D}`),
		same(`{#D, a: 1}`, true, `{#D, a: 1}`),
		same(`{#D, if true {z!: int}}`, true, `{#D, if true {z!: int}}`, z),
		same(`{#D} | {#D, z!: int}`, true, `{#D} | {#D, z!: int}`, z),
		same(`{literal, literal}`, true, `{%s, %s}`), same(`{#D, literal}`, true, `{#D, %s}`),
		same(`{if on {#D}, if !on {literal}}`, true, `{on!: bool, if on {#D}, if !on {%s}}`, on),
		same(`#D & literal`, false, `#D & %s`), same(`#D & #D`, false, `#D & #D`),
		same(`[#D][0]`, false, `[#D][0]`), same(`#D & _`, false, `#D & _`),
		// Fields.
		in(`v!: #D`, `{v@!: #D}`, v), in(`v?: #D`, `{v@?: #D}`, v), in(`v: #D`, `{v@: #D}`, v),
		in(`v!: literal`, `{v@!: %s}`, v), in(`v?: literal`, `{v@?: %s}`, v),
		in(`v: literal`, `{v@: %s}`, v),
		in(`v!: {#D}`, `{v@!: {#D}}`, v),
		in(`v?: {#D}, w?: int`, `{v@?: {#D}, w?: int}`, and(f("w", 1, "s"))),
		in(`v?: #D, w?: #D`, `{v@?: #D, w@?: #D}`, v), in(`v: #D, more`, `{v@: #D, `+more+`}`, v),
		in(`if on {v!: #D}`, `{on!: bool, if on {v@!: #D}}`, and(on)),
		in(`if on {v?: literal}`, `{on: *false | bool, if on {v@?: %s}}`, and(on)),
		in(`if on {v: literal}`, `{on?: "x" | "y", if on == "x" {v@: %s}}`, and(f("on", "x", "y"))),
		in(`if on {v: literal} v: _`, `{on!: bool, v@?: _, if on {v@: %s}}`, and(on)),
		in(`for f in ["p", "r"] {(f)?: literal}`, `{for f in ["p", "r"] {(f)?: %s}}`, keys("p", "r")),
		in(`for f in ["p"] {"\(f)": #D}`, `{for f in ["p"] {"\(f)": #D}}`, keys("p")),
		in(`let l = literal, v!: l`, `{let l@ = %s, v@!: l@}`, v),
		in(`let l = #D, v: l`, `{let l@ = #D, v@: l@}`, v),
		in(`_h: literal, v!: _h`, `{_h@: %s, v@!: _h@}`, v),
		in(`_h: literal, v: _h`, `{_h@: %s, v@: _h@}`, v),
		in(`[string]: #D`, `{[string]: #D}`, keys("p", "xa")),
		in(`[string]: literal`, `{[string]: %s}`, keys("p", "xa")),
		in(`[=~"^x"]: literal, v?: int`, `{[=~"^x"]: %s, r?: int}`, keys("xa", "r")),
		in(`[string]: #D, v?: _`, `{[string]: #D, v@?: _}`, v),
		in(`w!: literal, v: w`, `{w@!: %s, v@: w@}`, w),
		in(`v: literal, w: v`, `{v@: %s, w@: v@}`, v),
		in(`v!: literal, v?: _`, `{v@!: %s, v@?: _}`, v),
		in(`{v?: _} & {v!: literal}`, `{v@?: _} & {v@!: %s}`, v),
		in(`{v!: _} | {w!: literal}`, `{v@!: int} | {w@!: %s}`, keys("w1", "v1")),
		in(`#d: literal, v: #d`, `{#d: %s, v@?: #d}`, v),
		in(`_h: #D & v`, `{v@?: _, _h@: #D & v@}`, v),
		in(`#W: w: literal, v!: #W.w`, `{#W@: {w: %s}, v@!: #W@.w}`, v),
		in(`if v != _|_`, `{v@?: %s, if v@ != _|_ {w!: int}}`, and(f("w", 1, "s"))),
		in(`len`, `{v@!: %s, n?: len(v@)}`, and(fn)),
		// Lists.
		list(`[...#D]`, `[...#D]`), list(`[...literal]`, `[...%s]`), list(`[#D]`, `[#D]`),
		list(`[literal, ...]`, `[%s, ...]`), list(`[...{#D}]`, `[...{#D}]`),
		list(`[int, ...literal]`, `[_, ...%s]`),
		list(`[...#D] & list.MinItems(1)`, `[...#D] & list.MinItems(1)`),
		list(`[...literal] & list.UniqueItems()`, `[...%s] & list.UniqueItems()`),
		list(`[...literal] & list.MatchN(1, literal)`, `[...%s] & list.MatchN(1, %s)`),
		list(`*[literal] | [...literal]`, `*[%s] | [...%s]`), list(`[#D, #D]`, `[#D, #D]`),
		list(`[...#D | int]`, `[...#D | int]`), list(`[...[...#D]]`, `[...[...#D]]`),
		list(`[if true {#D}]`, `[if true {#D}]`),
		list(`[for x in [1] {literal}]`, `[for x in [1] {%s}]`), list(`*[] | [...literal]`, `*[] | [...%s]`),
		// Choices.
		choice(`literal | null`, false, `%s | null`, nil), choice(`*null | #D`, false, `*null | #D`, nil),
		choice(`#D | {z!: int}`, true, `#D | {z!: int}`, object{"z": 1}, object{"z": "s"}),
		choice(`*literal | {z!: int}`, true, `*%s | {z!: int}`, object{"z": 1}),
		choice(`"s" | literal`, false, `"s" | %s`, "s", "t"), choice(`*"s" | #D`, false, `*"s" | #D`, "t"),
		choice(`int | [...literal]`, false, `int | [...%s]`, 1, []any{}),
		choice(`#D | #D & _`, true, `#D | (#D & _)`),
		choice(`matchN(1, [literal, string])`, false, `matchN(1, [%s, string])`, "t", 1),
		choice(`matchN(0, [literal])`, false, `matchN(0, [%s])`, 7),
		choice(`or([literal, 7])`, false, `or([%s, 7])`, 7),
		choice(`literal & (int | {...} | string)`, true, `%s & (int | {...} | string)`),
		choice(`close({v: literal}).v`, true, `close({v: %s}).v`),
		choice(`{a: 1} | literal`, false, `{a: 1, q9?: int} | %s`, object{"a": 1}, object{"a": 1, "q9": 1}),
		choice(`literal & !=null`, false, `%s & !=null`, nil),
		// Recursion.
		recursive(`kid?: #R`, itself), recursive(`kid?: [...#R]`, inList),
		recursive(`kid?: [string]: #R`, inMap),
		recursive(`kid: null | #R`, itself), recursive(`kid: *null | #R`, itself),
		recursive(`kid?: null | [...#R]`, inList),
		recursive(`on!: bool, if on {kid!: #R}`, itself),
		recursive(`on: *false | bool, if on {kid!: [...#R]}`, inList),
		recursive(`kid?: int | #R`, itself), recursive(`kid!: {z!: int} | #R`, itself),
		recursive(`kid: [...#R] | *[]`, inList),
		recursive(`kid?: {v?: #R}`, func(s any) any { return object{"v": s} }),
	}
}
