package derive_test

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"pgregory.net/rapid"
)

// A shape is a generated constraint: the CUE that says it, and JSON texts at its borders. The texts are drawn from the
// shape and not from the schema that is derived of it, so that what the schema has lost is tried too.
type shape struct {
	cue string
	// text draws a value. With wrong 0 it is one that CUE accepts, as far as the shape by itself knows.
	text func(s *sampler) string
}

// sampler draws values. wrong is how often a place gets something else than what belongs there.
type sampler struct {
	*rand.Rand
	wrong float64
	depth int
}

func (s *sampler) pick(texts []string) string { return texts[s.IntN(len(texts))] }

func (s *sampler) chance(p float64) bool { return s.Float64() < p }

// odd is what any place may get: other types, and what readers of JSON take in different ways.
var odd = []string{
	"null", "true", "false", "0", "-0", "1", "2", "-1", "0.0", "1.0", "2.5", "1e1", "10", "300", "9007199254740993", "99999999999999999999", "1e-3",
	`""`, `"a"`, `"b"`, `"red"`, `"x"`, `"1"`, `"true"`, `"é"`, "{}", `{"a":1}`, `{"zz":{}}`, "[]", "[1]", `["a"]`, "[[]]", "[null]",
}

// scalar is a shape whose good values are known; the others are near to them.
func scalar(cue string, good, near []string) shape {
	return shape{cue, func(s *sampler) string {
		switch {
		case len(good) > 0 && !s.chance(s.wrong):
			return s.pick(good)
		case len(near) > 0 && s.chance(0.7):
			return s.pick(near)
		}
		return s.pick(odd)
	}}
}

// grammar draws shapes.
type grammar struct{ *rapid.T }

func (g grammar) pick(options ...string) string { return rapid.SampledFrom(options).Draw(g.T, "pick") }

func (g grammar) one(options ...func() shape) shape {
	return options[rapid.IntRange(0, len(options)-1).Draw(g.T, "one")]()
}

func (g grammar) upTo(n int) int { return rapid.IntRange(0, n).Draw(g.T, "n") }

func (g grammar) known(table []known) shape {
	k := rapid.SampledFrom(table).Draw(g.T, "known")
	return scalar(k.cue, texts(k.good), texts(k.near))
}

func texts(list string) []string {
	if list == "" {
		return nil
	}
	return strings.Split(list, "; ")
}

// known is a constraint with good values and near ones, each list parted by "; ".
type known struct{ cue, good, near string }

var types = []known{
	{"string", `"a"; ""; "é"; "b"; "red"`, `1; null`},
	{"int", "0; 1; -2; 5; 2.0; 1e1; 99999999999999999999", "1.5; 0.1e0"},
	{"number", "0; 1.5; -2; 3.0; 1e-2", `"1"`},
	{"bool", "true; false", "0; null"},
	{"null", "null", "0; false"},
	{"_", "null; 1; {\"q\":[1]}; []", "0"},
	{"uint8", "0; 255; 7.0", "-1; 256; 0.5; 255.5"},
	{"int8", "-128; 127", "-129; 128; 1.5"},
	{"uint16", "0; 65535", "-1; 65536"},
	{"int16", "-32768; 32767", "-32769; 32768"},
	{"uint32", "0; 4294967295", "-1; 4294967296"},
	{"int32", "-2147483648; 2147483647; 2147483647.0", "-2147483649; 2147483648"},
	{"int64", "-9223372036854775808; 9223372036854775807", "-9223372036854775809; 9223372036854775808; 0.5"},
	{"uint64", "0; 18446744073709551615", "-1; 18446744073709551616"},
	{"uint", "0; 5; 99999999999999999999", "-1; 0.5"},
	{"int128", "170141183460469231731687303715884105727", "170141183460469231731687303715884105728"},
	{"uint128", "340282366920938463463374607431768211455", "340282366920938463463374607431768211456; -1"},
	{"rune", "0; 1114111", "-1; 1114112"},
	{"float32", "1.5; 2.5", "1e39; -1e39; 3.40282346638528859811704183484516925440e+38"},
	{"float64", "1.5; -0.5", "1e308"},
}

func (g grammar) kind() shape { return g.known(types) }

// bounded is a number between bounds, with what is just inside and just outside of them.
func (g grammar) bounded() shape {
	borders := []string{"-3", "0", "1", "5", "10", "1.5", "-0.5", "9007199254740993", "1e2"}
	var terms []string
	if kind := g.pick("int", "number", "", "uint8"); kind != "" {
		terms = append(terms, kind)
	}
	for range 1 + g.upTo(1) {
		terms = append(terms, g.pick(">=", ">", "<=", "<")+" "+g.pick(borders...))
	}
	if g.upTo(3) == 3 {
		terms = append(terms, "!="+g.pick(borders...))
	}
	tried := append(borders, "-4", "-2", "2", "4", "4.5", "6", "9", "9.5", "11", "-3.0", "5.0", "10.5", "0.5", "-1", "1.4", "1.6", "9007199254740992", "9007199254740994", "255", "256", "99", "101", "100.0")
	return scalar(strings.Join(terms, " & "), tried, tried)
}

func (g grammar) worded() shape {
	var terms []string
	add := func(likely int, options ...string) {
		if g.upTo(3) < likely {
			terms = append(terms, g.pick(options...))
		}
	}
	add(2, "string")
	add(2, "strings.MinRunes(1)", "strings.MinRunes(2)", "strings.MinRunes(0)")
	add(2, "strings.MaxRunes(2)", "strings.MaxRunes(3)", "strings.MaxRunes(0)")
	add(2, `=~"^a"`, `=~"b$"`, `=~"^[a-c]+$"`, `=~"^a.b"`, `=~"\\s"`, `=~"^\\d{1,2}$"`, `=~"\\bx\\b"`, `=~"a|^$"`, `=~"[^a]"`, `=~"\\."`, `=~"\\x41"`, `=~"^\\w+$"`, `=~"\\S"`, `=~"é"`, `=~"^(ab?)*$"`, `=~"(?i)AB"`, `=~"\\pL"`, `=~"[[:alpha:]]"`, `=~"\\A1"`)
	add(1, `!~"x"`, `!~"^$"`, `!~"[ab]"`)
	add(1, `!="a"`, `!=""`, `!="ab" & !="b"`)
	if len(terms) == 0 {
		terms = []string{"string"}
	}
	texts := []string{`""`, `"a"`, `"b"`, `"ab"`, `"abc"`, `"x"`, `"a x"`, `"é"`, `"éa"`, `"👍"`, `"👍👍"`, `"aéb"`, `"a\nb"`, `"a\rb"`, `"12"`, `"1"`, `"123"`, `"b\n"`, `" "`, `"\u00a0"`, `"\u2028"`, `"A"`, `"AB"`, `"a.b"`, `"٣"`, `"ſ"`, `"abab"`}
	return scalar(strings.Join(terms, " & "), texts, texts)
}

var constants = []known{
	{`"red" | "blue"`, `"red"; "blue"`, `"Red"; ""; null`},
	{"1 | 2 | 3", "1; 2.0; 3", "0; 4; 1.5"},
	{`"red" | 1 | null`, `"red"; 1; null`, `"1"; 2`},
	{`true | "x"`, `true; "x"`, "false"},
	{"1 | 2.5", "1; 2.5; 1.0", "2; 3"},
	{`"a"`, `"a"`, `"b"`}, {"5", "5; 5.0", "6; 5.5"}, {"true", "true", "false"}, {"2.5", "2.5; 2.50", "2"},
	{"int | string", `1; "1"; 2.0`, "1.5; null"},
	{"string | null", `"a"; null`, "0"},
	{`"auto" | int & >0`, `"auto"; 1; 7`, `0; "aut"; 1.5`},
	{"bool | int | null", "true; 0; null", `0.5; "a"`},
	{`>=3 | "x"`, `3; 4.5; "x"`, "2; 2.9"},
	{"<0 | >5", "-1; 6; 5.1", "0; 5; 3"},
	{`=~"^a" | =~"b$"`, `"a"; "b"; "cb"`, `"c"; ""`},
	{"9007199254740993 | 1", "9007199254740993; 1", "9007199254740992; 9007199254740994"},
	{"int & !=0 & !=1", "2; -1", "0; 1; 1.0"},
	{"null | >0 & <10", "null; 9.5", "10; 0"},
}

func (g grammar) constant() shape { return g.known(constants) }

var formats = []known{
	{"time.Time", `"2026-11-30T04:30:00Z"; "2026-11-30T04:30:00.123456789+02:00"; "2024-02-29T23:59:59Z"`, `"2026-11-30"; "2023-02-29T00:00:00Z"; "2026-11-30T24:00:00Z"; "2026-11-30t04:30:00z"; "2016-12-31T23:59:60Z"; "2026-11-30 04:30:00Z"; ""`},
	{"time.Duration", `"1h"; "1.5s"; "-2m"; "0"; "1h2m3s"`, `"1d"; "PT1H"; "1"; ""; "h"; "1 h"`},
	{"time.Time & !=\"2026-11-30T04:30:00Z\"", `"2026-11-30T04:30:01Z"`, `"2026-11-30T04:30:00Z"`},
	{`time.Format("2006-01-02")`, `"2026-11-30"; "2024-02-29"`, `"2023-02-29"; "2026-1-1"; "26-01-01"`},
	{"net.IP", `"127.0.0.1"; "::1"`, `"127.0.0"; "256.0.0.1"; "::1%eth0"; "01.2.3.4"; ""`},
	{"net.IPv4", `"127.0.0.1"; "10.0.0.255"`, `"::1"; "1.2.3"; "1.2.3.256"; "01.2.3.4"`},
	{"net.IPv6", `"::1"; "fe80::1"; "2001:db8::ff00:42:8329"`, `"127.0.0.1"; ":::1"; "fe80::1%eth0"; "::ffff:1.2.3.4"`},
	{"net.IPCIDR", `"10.0.0.0/8"; "::/0"`, `"10.0.0.0"; "10.0.0.0/33"`},
	{"net.FQDN", `"example.com"; "a.b.c"; "localhost"`, `"-a.com"; "a..b"; ""; "a_b.com"; "example.com."`},
	{"net.AbsURL", `"https://example.com/a?b"; "mailto:a@b"`, `"/a"; "a b"; ""; "http://%"`},
	{"net.URL", `"https://example.com"; "/a"; ""`, `"http://[::1"; "%zz"`},
	{"uuid.Valid", `"123e4567-e89b-12d3-a456-426614174000"; "123E4567-E89B-12D3-A456-426614174000"`, `"123e4567e89b12d3a456426614174000"; "123e4567-e89b-12d3-a456-42661417400"; ""; "{123e4567-e89b-12d3-a456-426614174000}"; "urn:uuid:123e4567-e89b-12d3-a456-426614174000"`},
}

func (g grammar) format() shape { return g.known(formats) }

// octets are constraints on bytes, which calls give in base64. No string is beside them, which would take every text.
var octets = []known{
	{"bytes", `"YQ=="; ""; "AAEC"; "/+8="`, `"YQ"; "YR=="; "a"; "Y Q="; "_-8="; 1; "YQ==\n"`},
	{"bytes & !='ab'", `"YQ=="`, `"YWI="`},
	{"'a' | 'b'", `"YQ=="; "Yg=="`, `"Yw=="; ""; "a"`},
	{"*'a' | bytes", `"YQ=="; ""`, `"a"`},
	{"bytes | int", `"YQ=="; 1`, `"1"; 0.5`},
	{"null | bytes", `null; "YQ=="`, `0; "!"`},
	{"bytes & =~\"^a\"", `"YQ=="`, `"Yg=="; "a"`},
	{"bytes & >'a'", `"Yg=="`, `"YQ=="; ""`},
	{"[...bytes]", `[]; ["YQ==",""]`, `["a"]; [1]`},
	{"{k!: bytes}", `{"k":"YQ=="}`, `{"k":"a"}; {}`},
}

func (g grammar) octets() shape { return g.known(octets) }

// validators are constraints for which there is no keyword, or an unlike one.
var validators = []known{
	{"float", "1.5; -0.25", "1; 2.0; null"},
	{"float & >1.5", "1.75", "1.5; 2; 2.0"},
	{"float | string", `1.5; "a"`, "1"},
	{"1.0", "", "1; 1.0; 1.5"},
	{`>"b"`, `"c"; "ba"`, `"b"; "a"; ""`},
	{`string & >="a" & <"c"`, `"a"; "bz"`, `"c"; ""`},
	{"!=null", `1; "a"; []`, "null"},
	{"!=null & (int | null)", "1", "null"},
	{"bool & !=true", "false", "true"},
	{`strings.HasPrefix("a")`, `"a"; "ab"`, `"b"; ""`},
	{`strings.HasSuffix("b") & strings.MinRunes(2)`, `"ab"`, `"b"; "ba"`},
	{`strings.Contains("é")`, `"é"; "aéb"`, `"e"`},
	{"strings.ContainsAny(\"ab\")", `"a"; "xb"`, `"x"; ""`},
	{"math.MultipleOf(3)", "3; 0; -6; 9.0", "1; 4; 1.5"},
	{"int & math.MultipleOf(2) & <7", "2; 6", "8; 3"},
	{"number & math.MultipleOf(0.5)", "1; 1.5", "0.25"},
	{"[...string] & list.IsSortedStrings()", `[]; ["a","b"]`, `["b","a"]; [1]`},
	{"[...int] & list.IsSorted(list.Ascending)", "[]; [1,2]", "[2,1]"},
	{`list.Contains("a")`, `["a"]; ["b","a"]`, `[]; ["b"]`},
	{"list.MatchN(1, >5) & [...int]", "[1,6]; [6]", "[]; [6,7]"},
	{"matchN(1, [int, >5])", "1; 5.5", "6; null"},
	{`matchIf(string, =~"^a", _)`, `"a"; 1; null`, `"b"`},
	{"matchN(0, [int])", `"a"; 1.5`, "1"},
	{`{[!~"^a"]: int, [=~"^a"]: string}`, `{"b":1,"a":"x"}`, `{"b":"x"}; {"a":1}`},
	{`{["k1" | "k2"]: int}`, `{"k1":1}; {}`, `{"k3":1}; {"k1":"x"}`},
	{`*error("gone") | int`, "1", `"a"; null`},
	{"and([int, >2])", "3", "2; 3.5"}, {`or(["a", "b"])`, `"a"; "b"`, `"c"`},
}

func (g grammar) validator() shape { return g.known(validators) }

var withDefault = []known{
	{`*"red" | "blue"`, `"red"; "blue"`, `"x"`},
	{"*10 | int & >=1 & <=100", "1; 10; 100", "0; 101; 1.5"},
	{"int | *3", "3; 0", "1.5"},
	{`*"a" | =~"^a"`, `"a"; "ab"`, `"b"`},
	{"*null | string", `null; "a"`, "1"},
	{"*1.5 | number", "1.5; 2", `"a"`},
	{"*1.0 | number", "1.0; 1; 2.5", `"a"`},
	{"*-0.0 | >=0", "0; 0.0; 2.5", "-1"},
	{"*1e3 | int", "1000; 1e3; 7", "0.5"},
	{"*[1.0, 2] | [...number]", "[1.0,2]; [0.5]; []", `["a"]`},
	{"*true | bool", "true; false", "null"},
	{`*"auto" | int`, `"auto"; 4`, `"x"`},
	{"*5 | #Port", "5; 9", "10; 0"},
	{`*"blue" | _color`, `"red"; "blue"`, `"green"`},
	{"(*2 | int) & >1", "2; 3", "1"},
	{"*[] | [...int]", "[]; [1]", `["a"]`},
	{`*["a"] | [...string]`, `["a"]; []`, "[1]"},
	{"*[] | [...string] & list.MaxItems(2)", `[]; ["a","b"]`, `["a","b","c"]; [1]`},
	{"*9007199254740993 | int", "1; 9007199254740993", "0.5"},
	{"1", "1", "2"}, {`"const"`, `"const"`, `"x"`},
	{"{deep: *1 | int}", `{}; {"deep":2}`, `{"deep":"x"}; {"zz":1}`},
	{"[...{k: *1 | int}]", `[]; [{}]; [{"k":3},{}]`, `[{"k":"x"}]; [{"zz":1}]`},
	{"[{a: *1 | int}, *2 | int]", `[{},2]; [{"a":3},5]`, `[{}]; []; [{},2,3]`},
	{"{deep: {deeper: *\"x\" | string, other?: int}}", `{}; {"deep":{}}; {"deep":{"other":1}}`, `{"deep":{"other":"x"}}`},
	{"_dflt", `3; 4`, `"a"`},
	{"*null | {a?: int}", `null; {"a":1}`, `{"b":1}`},
}

func (g grammar) defaulted() shape { return g.known(withDefault) }

// definitions are what generated args may refer to.
const definitions = `#Port: int & >=1 & <=9, #Pair: {a!: string, b?: int, c: *2 | int}, #Open: {a?: int, ...}, #Node: {v: *1 | int, next?: #Node, kids?: [...#Node], alt?: null | #Node}, ` +
	`_color: "red" | "blue", _dflt: *3 | int, #Even: {odd?: #Odd, e?: 1}, #Odd: {even?: #Even, o!: 1}, #Tree: string | [...#Tree], #Cat: {kind!: "cat", lives!: int & <=9}, #Dog: {kind!: "dog", name?: string}`

var references = []known{
	{"#Port", "1; 9; 5.0", "0; 10; 1.5"},
	{"#Port & !=4", "3; 5", "4"},
	{"_color", `"red"; "blue"`, `"green"`},
	{"_color | int", `"red"; 1`, `"green"`},
	{"#Pair", `{"a":"x"}; {"a":"x","b":1,"c":3}`, `{}; {"a":1}; {"a":"x","d":1}`},
	{"#Open", `{}; {"a":1}; {"zz":[]}`, `{"a":"x"}`},
	{"#Node", `{}; {"v":2,"next":{"kids":[{}]}}; {"alt":null}; {"alt":{"v":3}}`, `{"v":"x"}; {"next":{"zz":1}}; {"kids":[{"kids":[1]}]}; {"alt":{"zz":1}}`},
	{"null | #Node", `null; {}; {"next":{}}`, `1; {"next":null}`},
	{"[...#Node]", `[]; [{},{"kids":[]}]`, `[{"v":""}]; [null]`},
	{"#Even", `{}; {"odd":{"o":1}}; {"odd":{"o":1,"even":{"e":1}}}`, `{"odd":{}}; {"odd":{"o":1,"even":{"odd":{}}}}`},
	{"#Tree", `"a"; []; ["a",["b",[]]]`, `1; [1]; [["a",{}]]`},
	{"{#Pair, d?: int}", `{"a":"x"}; {"a":"x","d":1}`, `{"d":1}; {"a":"x","e":1}`},
	{"{#Pair, ...}", `{"a":"x","e":1}`, `{"e":1}`},
	{"{#Open, d!: string}", `{"d":"x","q":1}; {"d":"x"}`, `{}; {"a":"x","d":"x"}`},
	{"{a?: int} & {b?: string}", `{}; {"a":1,"b":"x"}`, `{"c":1}; {"b":1}`},
	{"#Pair & {b!: >3}", `{"a":"x","b":4}`, `{"a":"x"}; {"a":"x","b":3}; {"a":"x","b":4,"z":1}`},
	{"close({a?: int})", `{}; {"a":1}`, `{"b":1}`},
	{"{_h: 5, a?: int & <_h}", `{}; {"a":4}`, `{"a":5}; {"_h":5}`},
	{"{let M = 5, a?: int & <M}", `{}; {"a":4}`, `{"a":5}; {"M":5}`},
	{"{#in: int & >2, a?: #in}", `{}; {"a":3}`, `{"a":2}`},
}

func (g grammar) reference() shape { return g.known(references) }

// leaf is any shape without parts that are drawn.
func (g grammar) leaf() shape {
	return g.one(g.kind, g.bounded, g.worded, g.constant, g.reference)
}

func (g grammar) value(depth int) shape {
	if depth == 0 {
		return g.leaf()
	}
	return g.one(g.leaf, g.leaf, func() shape { return g.list(depth) }, func() shape { return g.nested(depth) }, func() shape { return g.choice(depth) })
}

// list is a list of any length, with bounds or none, or a tuple.
func (g grammar) list(depth int) shape {
	item := g.value(depth - 1)
	if g.upTo(3) == 0 {
		return g.tuple(item, depth)
	}
	least, most := 0, 3
	cue := "[..." + item.cue + "]"
	if g.upTo(2) == 0 {
		least = g.upTo(2)
		cue += fmt.Sprintf(" & list.MinItems(%d)", least)
	}
	if g.upTo(2) == 0 {
		most = least + g.upTo(2)
		cue += fmt.Sprintf(" & list.MaxItems(%d)", most)
	}
	if g.upTo(4) == 0 {
		cue += " & list.UniqueItems()"
	}
	return shape{cue, func(s *sampler) string {
		if s.chance(s.wrong / 2) {
			return s.pick(odd)
		}
		n := least
		if most > least {
			n += s.IntN(most - least + 1)
		}
		if s.chance(s.wrong) {
			n = s.IntN(6)
		}
		return listText(s, n, func(int) shape { return item })
	}}
}

func listText(s *sampler, n int, item func(int) shape) string {
	texts := make([]string, n)
	for i := range texts {
		if texts[i] = item(i).text(s); i > 0 && s.chance(s.wrong) {
			texts[i] = texts[i-1]
		}
	}
	return "[" + strings.Join(texts, ",") + "]"
}

func (g grammar) tuple(rest shape, depth int) shape {
	items := []shape{g.value(depth - 1), g.value(depth - 1)}
	end := g.pick("]", ", ...]", ", ..."+rest.cue+"]")
	return shape{"[" + items[0].cue + ", " + items[1].cue + end, func(s *sampler) string {
		if s.chance(s.wrong / 2) {
			return s.pick(odd)
		}
		n := len(items)
		if end != "]" {
			n += s.IntN(2)
		}
		if s.chance(s.wrong) {
			n = s.IntN(4)
		}
		return listText(s, n, func(i int) shape {
			if i < len(items) {
				return items[i]
			}
			return rest
		})
	}}
}

// choice is a value of one kind or another.
func (g grammar) choice(depth int) shape {
	first := g.known([]known{{"null", "null", "0"}, {"string", `"a"; "é"`, "1"}, {"int", "1; 0", "0.5"}, {`"x" | 2`, `"x"; 2`, `"y"`}})
	second := g.one(func() shape { return g.nested(depth) }, func() shape { return g.list(depth) })
	return shape{first.cue + " | " + second.cue, func(s *sampler) string {
		if s.chance(0.3) {
			return first.text(s)
		}
		return second.text(s)
	}}
}

// nested is a struct of any form.
func (g grammar) nested(depth int) shape {
	switch g.upTo(7) {
	case 0:
		item := g.value(depth - 1)
		return mapping("{[string]: "+item.cue+"}", item, []string{"a", "x", "zz", "é", "a b", ""})
	case 1:
		item := g.value(depth - 1)
		return mapping(`{[=~"^x"]: `+item.cue+", a?: string}", item, []string{"x", "x1", "xy", "xx"})
	case 2:
		// Without a field nothing satisfies it, and CUE forgets that such a struct is closed.
		o := object{}
		o.add("a?", "", g.value(depth-1), 0.7)
		g.members(&o, depth-1, 2)
		n := 1 + g.upTo(1)
		o.after = fmt.Sprintf(" & struct.%s(%d)", g.pick("MinFields", "MaxFields"), n)
		return o.shape()
	case 3:
		o := object{open: true}
		g.members(&o, depth-1, 3)
		return o.shape()
	case 4:
		return g.scoped(depth - 1)
	}
	o := object{}
	g.members(&o, depth-1, 3)
	return o.shape()
}

func mapping(cue string, item shape, keys []string) shape {
	return shape{cue, func(s *sampler) string {
		if s.chance(s.wrong / 2) {
			return s.pick(odd)
		}
		seen := map[string]bool{}
		var texts []string
		for range s.IntN(3) {
			key := s.pick(keys)
			if s.chance(s.wrong) {
				key = s.pick([]string{"a", "b", "ax", "zz"})
			}
			if !seen[key] {
				texts = append(texts, fmt.Sprintf("%q:%s", key, item.text(s)))
			}
			seen[key] = true
		}
		return "{" + strings.Join(texts, ",") + "}"
	}}
}

// object is a struct as it is drawn, line by line.
type object struct {
	lines   []string
	members []member
	open    bool
	after   string
}

type member struct {
	name  string
	often float64 // how often a right value has it
	shape
}

// add declares a field; label has its mark, before and behind are what else stands on its line.
func (o *object) add(label, behind string, s shape, often float64) {
	o.lines = append(o.lines, label+": "+s.cue+behind)
	o.hold(label, s, often)
}

// hold gives values a field that is declared elsewhere.
func (o *object) hold(label string, s shape, often float64) {
	o.members = append(o.members, member{strings.TrimRight(label, "!?"), often, s})
}

func (o *object) shape() shape {
	lines := o.lines
	if o.open {
		lines = append(lines, "...")
	}
	members, open := o.members, o.open
	return shape{"{" + strings.Join(lines, ", ") + "}" + o.after, func(s *sampler) string {
		if s.depth > 0 && s.chance(s.wrong/2) {
			return s.pick(odd)
		}
		s.depth++
		defer func() { s.depth-- }()
		var texts []string
		seen := map[string]bool{}
		for _, m := range members {
			has := m.often
			if s.chance(s.wrong) {
				has = 0.5
			}
			if !seen[m.name] && s.chance(has) {
				texts = append(texts, fmt.Sprintf("%q:%s", m.name, m.text(s)))
				seen[m.name] = true
			}
		}
		if extra := s.pick([]string{"zz", "x1", "aa", "_h", "M"}); s.chance(s.wrong) || open && s.chance(0.5) {
			texts = append(texts, fmt.Sprintf("%q:%s", extra, s.pick(odd)))
		}
		return "{" + strings.Join(texts, ",") + "}"
	}}
}

// members draws up to n plain fields.
func (g grammar) members(o *object, depth, n int) {
	for _, name := range []string{"a", "b", "c", "d"}[len(o.members) : len(o.members)+g.upTo(n)] {
		g.member(o, name, func() shape { return g.value(depth) })
	}
}

func (g grammar) member(o *object, name string, value func() shape) {
	switch g.upTo(5) {
	case 0:
		o.add(name, "", g.defaulted(), 0.5)
	case 1, 2:
		o.add(name+"!", g.attribute(), value(), 1)
	case 3:
		o.add(name, "", value(), 1)
	default:
		o.add(name+"?", g.attribute(), value(), 0.6)
	}
}

// attribute is one that any field can have; @examples must be values that it takes (TestAttributes).
func (g grammar) attribute() string {
	if g.upTo(5) > 0 {
		return ""
	}
	return " " + g.pick(`@title("A title")`, `@go(Name,type=int)`, "@deprecated()", "@secret()", "@other(x)")
}
