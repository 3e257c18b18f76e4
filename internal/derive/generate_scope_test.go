package derive_test

import (
	"fmt"
	"strings"
)

// scoped is a struct whose fields depend on one another, or one of several structs.
func (g grammar) scoped(depth int) shape {
	return g.one(
		func() shape { return g.guarded(depth).shape() },
		func() shape { return g.crossed().shape() },
		func() shape { return g.computed().shape() },
		func() shape { return g.union(depth) },
	)
}

// guarded is a struct with fields, or bounds, that hold under a condition.
func (g grammar) guarded(depth int) *object {
	o := &object{}
	mode := scalar(`"fast" | "slow"`, []string{`"fast"`, `"slow"`}, []string{`"other"`})
	flag := scalar("bool", []string{"true", "false"}, nil)
	n := scalar("int", []string{"2", "3", "4", "3.0"}, []string{"3.5"})
	conditions := []string{`mode == "fast"`, `mode != "fast"`}
	switch g.upTo(3) {
	case 0:
		o.add("mode?", "", mode, 0.7)
		conditions = append(conditions, "mode != _|_", "mode == _|_")
	case 1:
		mode.cue = `*"slow" | "fast"`
		o.add("mode", "", mode, 0.7)
	default:
		o.add("mode!", "", mode, 1)
	}
	if g.upTo(2) == 0 {
		flag.cue = g.pick("bool", "*false | bool", "bool | *true")
		o.add(g.pick("flag!", "flag"), "", flag, 0.8)
		conditions = append(conditions, "flag", "!flag", "flag == false", `flag && mode == "fast"`, `!flag || mode == "slow"`)
	}
	if g.upTo(2) == 0 {
		o.add("n!", "", n, 1)
		conditions = append(conditions, "n > 3", "n == 3", "n != 3", "n >= 3", `n < 3 && mode == "slow"`)
	}
	if g.upTo(2) == 0 {
		o.add("opt?", "", n, 0.6)
		conditions = append(conditions, "opt != _|_", "opt == _|_", "opt != _|_ && mode == \"fast\"")
	}
	for i := range 1 + g.upTo(1) {
		g.guard(o, g.pick(conditions...), fmt.Sprint("g", i), depth)
	}
	o.open = g.upTo(5) == 0
	return o
}

func (g grammar) guard(o *object, condition, name string, depth int) {
	v := g.value(depth)
	field := name + g.pick("!", "!", "?", "")
	body := field + ": " + v.cue
	switch g.upTo(6) {
	case 0: // the field is declared, and the guard asks for it
		o.add(name+"?", "", v, 0.5)
		o.lines = append(o.lines, fmt.Sprintf("if %s {%s!: _}", condition, name))
		return
	case 1: // the guard narrows
		v = scalar("int", []string{"1", "5", "9"}, []string{"5.5", "6"})
		o.add(name+g.pick("!", "?"), "", v, 0.8)
		o.lines = append(o.lines, fmt.Sprintf("if %s {%s%s: %s}", condition, name, g.pick("?", "!"), g.pick(">5", "<=5", "int & !=5")))
		return
	case 2:
		v = g.defaulted()
		field, body = name, name+": "+v.cue
	case 3:
		body += ", if true {" + name + "x?: int}"
		o.hold(name+"x", g.kind(), 0.3)
	case 4:
		body += fmt.Sprintf("}, if !(%s) {%s?: 7", condition, name)
	}
	o.lines = append(o.lines, "if "+condition+" {"+body+"}")
	o.hold(field, v, 0.5)
}

// crossed is a struct with bounds that depend on other arguments.
func (g grammar) crossed() *object {
	o := &object{}
	small := []string{"0", "1", "2", "3", "2.0", "-1"}
	number := func(cue string) shape { return scalar(cue, small, []string{"1.5", `"1"`}) }
	word := func(cue string) shape { return scalar(cue, []string{`"a"`, `"b"`, `"ab"`}, []string{`""`}) }
	start := g.pick("start!", "start!", "start", "start?")
	kind := g.pick("int", "number", "int & >=0", "*1 | int")
	o.add(start, "", number(kind), 0.9)
	switch g.upTo(8) {
	case 0:
		o.add(g.pick("end!", "end?"), "", number("int & "+g.pick(">", ">=", "<", "<=", "!=")+"start"), 0.9)
	case 1:
		o.add("end", "", number("*3 | int & >start"), 0.6)
	case 2:
		o.add("inner!", "", shape{"{v!: int & >start}", func(s *sampler) string { return `{"v":` + number("").text(s) + "}" }}, 0.9)
	case 3:
		o.add("items!", "", shape{"[...int & <=start]", func(s *sampler) string {
			return listText(s, s.IntN(3), func(int) shape { return number("") })
		}}, 0.9)
	case 4:
		o.add("a!", "", word("string"), 1)
		o.add("b!", "", word("string & !=a"), 1)
	case 5:
		o.lines = append(o.lines, "let M = start + 1")
		o.add("end!", "", number("int & <M"), 1)
	case 6:
		o.lines = append(o.lines, "_half: start / 2")
		o.add("end?", "", number("number & >_half"), 0.8)
	case 7:
		o.add("a!", "", word("string"), 1)
		o.add("size?", "", number("int & <=len(a)"), 0.8)
	default:
		o.add("end!", "", number("int"), 1)
		o.lines = append(o.lines, fmt.Sprintf("if end %s start {why!: string}", g.pick("<", ">", "==")))
		o.hold("why", word(""), 0.5)
	}
	return o
}

// computed is a struct with fields that are made from others. No value has one: they are not asked for.
func (g grammar) computed() *object {
	o := &object{}
	number := func(cue string) shape {
		return scalar(cue, []string{"0", "1", "2", "40", "2.0"}, []string{"1.5", `"1"`})
	}
	word := func(cue string) shape { return scalar(cue, []string{`"a"`, `"é"`, `""`}, []string{"1"}) }
	switch g.upTo(5) {
	case 0:
		o.add("first!", "", word("string"), 1)
		o.add("last!", "", word("string"), 1)
		o.lines = append(o.lines, `full: "\(first) \(last)"`)
	case 1:
		o.add("w!", "", number("int"), 1)
		o.add("h", "", number("*2 | int"), 0.6)
		o.lines = append(o.lines, "area: "+g.pick("w * h", "w + h", "w - h", "[w, h]", "{x: w, y: h}"))
	case 2:
		o.add("a!", "", word("string"), 1)
		o.lines = append(o.lines, "copy: a")
	case 3:
		o.add("a!", "", word("string"), 1)
		o.lines = append(o.lines, `upper: strings.ToUpper(a)`, `long: len(a) > 1`)
	case 4:
		o.add("w!", "", number("int"), 1)
		o.lines = append(o.lines, "area: w * w", "limited: int & <100 & area")
	default:
		o.add("a", "", word(`*"x" | string`), 0.7)
		o.lines = append(o.lines, `_pre: "p-\(a)"`, `out: _pre`, `mode: *"m" | string`)
		o.hold("mode", word(""), 0.5)
	}
	return o
}

// union is one of several structs or lists.
func (g grammar) union(depth int) shape {
	var alternatives []shape
	switch g.upTo(7) {
	case 0, 1, 2: // told apart by a constant
		mark := g.pick("!", "!", "")
		for _, kind := range []string{`"a"`, `"b"`, `"c"`}[:2+g.upTo(1)] {
			o := object{}
			o.add("kind"+mark, "", scalar(kind, []string{kind}, []string{`"z"`}), 1)
			name := g.pick("x", "x", "y")
			o.add(name+g.pick("!", "?"), "", g.value(depth), 0.8)
			alternatives = append(alternatives, o.shape())
		}
	case 3:
		return g.known([]known{
			{"#Cat | #Dog", `{"kind":"cat","lives":9}; {"kind":"dog"}; {"kind":"dog","name":"x"}`, `{"kind":"cat"}; {"kind":"cat","lives":10}; {"kind":"dog","lives":1}; {}; {"kind":"fox"}`},
			{"null | #Cat | #Dog", `null; {"kind":"cat","lives":9}`, `{"kind":"cat"}; {"kind":"dog","zz":1}`},
			{"[...#Cat | #Dog]", `[]; [{"kind":"dog"},{"kind":"cat","lives":1}]`, `[{"kind":"cat"}]; [{"kind":"dog","lives":1}]`},
			{"{a!: int} | {a!: string}", `{"a":1}; {"a":"x"}`, `{}; {"a":null}; {"a":1,"b":1}`},
			{"{a!: int} | {a!: int, b!: int}", `{"a":1}; {"a":1,"b":1}`, `{"a":1,"c":1}`},
			{"[...int] | [...string]", `[1]; ["a"]; [1,2]`, `[]; [1,"a"]; [null]`},
			{"[int] | [int, int]", `[1]; [1,2]`, `[]; [1,2,3]`},
			{"string | [...string]", `"a"; []; ["a"]`, `1; [1]`},
			{"int | [...int] | {n!: int}", `1; [1]; {"n":1}`, `{}; ["a"]; {"n":1,"m":2}`},
			{`{t: "x", v!: int} | {t: "y", w?: int}`, `{"t":"x","v":1}; {"t":"y"}`, `{"v":1}; {"w":1}; {"t":"x"}; {}`},
			{`{kind!: "a", x!: int} | {kind!: "b", ...}`, `{"kind":"a","x":1}; {"kind":"b","q":1}`, `{"kind":"a"}; {"kind":"a","x":1,"q":1}`},
			{`{kind!: "a" | "b", x!: int} | {kind!: "c"}`, `{"kind":"a","x":1}; {"kind":"c"}`, `{"kind":"c","x":1}; {"kind":"b"}`},
			{`{kind!: 1, d: *5 | int} | {kind!: 2, d: *6 | int}`, `{"kind":1}; {"kind":2,"d":1}`, `{"d":1}; {"kind":3}`},
			{`({kind!: "a"} | {kind!: "b"}) & {x?: int, ...}`, `{"kind":"a"}`, `{"kind":"a","x":1}; {}`},
			{`*{kind: "a"} | {kind: "b", x?: int}`, `{"kind":"a"}; {"kind":"b"}`, `{}; {"x":1}; {"kind":"a","x":1}`},
		})
	case 4: // nothing tells them apart
		for _, name := range []string{"a", "b"} {
			o := object{}
			o.add(name+g.pick("!", "?"), "", g.value(depth), 0.9)
			alternatives = append(alternatives, o.shape())
		}
	default: // a constant in all, and a field that differs
		for _, kind := range []string{"1", "2"} {
			o := object{}
			o.add("kind!", "", scalar(kind, []string{kind}, []string{"0", `"` + kind + `"`}), 1)
			g.member(&o, "a", g.leaf)
			alternatives = append(alternatives, o.shape())
		}
	}
	var cue []string
	for _, a := range alternatives {
		cue = append(cue, a.cue)
	}
	return shape{strings.Join(cue, " | "), func(s *sampler) string { return alternatives[s.IntN(len(alternatives))].text(s) }}
}

// theme is a part of the grammar, so that each is tried as much as any other.
type theme struct {
	name string
	args func(g grammar) *object
}

func themes() []theme {
	of := func(values ...func(g grammar) shape) func(g grammar) *object {
		return func(g grammar) *object {
			o := &object{}
			for _, name := range []string{"a", "b", "c", "d"}[:1+g.upTo(3)] {
				g.member(o, name, func() shape { return values[g.upTo(len(values)-1)](g) })
			}
			return o
		}
	}
	return []theme{
		{"numbers", of(grammar.bounded, grammar.kind)},
		{"strings", of(grammar.worded)},
		{"constants", of(grammar.constant)},
		{"formats", of(grammar.format)},
		{"bytes", func(g grammar) *object {
			o := &object{}
			for _, name := range []string{"a", "b", "c"}[:1+g.upTo(2)] {
				o.add(name+g.pick("!", "?", ""), "", g.octets(), 0.8)
			}
			return o
		}},
		{"validators", of(grammar.validator)},
		{"defaults", of(grammar.defaulted, func(g grammar) shape {
			o := object{}
			g.members(&o, 1, 3)
			return o.shape()
		})},
		{"references", of(grammar.reference)},
		{"lists", of(func(g grammar) shape { return g.list(2) })},
		{"structs", of(func(g grammar) shape { return g.nested(2) })},
		{"choices", of(func(g grammar) shape { return g.choice(1) })},
		{"unions", of(func(g grammar) shape { return g.union(1) })},
		{"guards", func(g grammar) *object { return g.guarded(1) }},
		{"crossed", func(g grammar) *object { return g.crossed() }},
		{"computed", func(g grammar) *object { return g.computed() }},
		{"anything", of(func(g grammar) shape { return g.value(2) }, func(g grammar) shape { return g.scoped(1) })},
	}
}
