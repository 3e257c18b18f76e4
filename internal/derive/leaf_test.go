package derive_test

import (
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/catalogd/catalogd/contract"
)

// base64 is what bytes must look like.
const base64 = `"type":"string","contentEncoding":"base64","pattern":"^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?$"`

const dateTime = `"type":"string","format":"date-time","pattern":"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{1,2}:[0-9]{2}:[0-5][0-9](?:[.,][0-9]+)?(?:Z|[+-][0-9]{2}:[0-9]{2})$"`

// leafCases are the constructs at the leaves of args: what the schema says of the one argument x, and what it can't say.
var leafCases = []struct {
	name, args, schema string
	losses             []string // position, kind, path and words
}{
	{"lower and upper bound", `x!: number & >=-1.25 & <1e3`, `"type":"number","minimum":-1.25,"exclusiveMaximum":1e3`, nil},
	{"the tighter of several bounds", `x!: int & >5 & >=7 & <=10.5 & <100`, `"type":"integer","minimum":7,"exclusiveMinimum":5,"maximum":10.5,"exclusiveMaximum":100`, nil},
	{"bounds of a choice", `x!: <0 | >=10`, `"anyOf":[{"type":"number","exclusiveMaximum":0},{"type":"number","minimum":10}]`, nil},
	{"a bound with all its digits", `x!: number & >=0.1234567890123456789012345678901234567890`, `"type":"number","minimum":0.1234567890123456789012345678901234567890`, nil},
	{"int8", `x!: int8`, `"type":"integer","minimum":-128,"maximum":127`, nil},
	{"int16", `x!: int16`, `"type":"integer","minimum":-32768,"maximum":32767`, nil},
	{"int32", `x!: int32`, `"type":"integer","minimum":-2147483648,"maximum":2147483647`, nil},
	{"int64", `x!: int64`, `"type":"integer","minimum":-9223372036854775808,"maximum":9223372036854775807`, nil},
	{"int128", `x!: int128`, `"type":"integer","minimum":-170141183460469231731687303715884105728,"maximum":170141183460469231731687303715884105727`, nil},
	{"uint", `x!: uint`, `"type":"integer","minimum":0`, nil},
	{"uint8", `x!: uint8`, `"type":"integer","minimum":0,"maximum":255`, nil},
	{"uint16", `x!: uint16`, `"type":"integer","minimum":0,"maximum":65535`, nil},
	{"uint32", `x!: uint32`, `"type":"integer","minimum":0,"maximum":4294967295`, nil},
	{"uint64", `x!: uint64`, `"type":"integer","minimum":0,"maximum":18446744073709551615`, nil},
	{"uint128", `x!: uint128`, `"type":"integer","minimum":0,"maximum":340282366920938463463374607431768211455`, nil},
	{"rune", `x!: rune`, `"type":"integer","minimum":0,"maximum":1114111`, nil},
	{"float32", `x!: float32`, ``, []string{`6:5 bound x: float32`}},
	{"float64", `x!: float64`, ``, []string{`6:5 bound x: float64`}},
	{"number", `x!: number`, `"type":"number"`, nil},
	{"float", `x!: float`, `"type":"number","not":{"type":"integer"}`, nil},
	{"float, bounded", `x!: float & >0.5`, `"type":"number","exclusiveMinimum":0.5,"not":{"type":"integer"}`, nil},
	{"float or int", `x!: float | int`, `"anyOf":[{"type":"integer"},{"type":"number","not":{"type":"integer"}}]`, nil},
	{"not a number", `x!: number & !=1.0 & !=2`, `"type":"number","not":{"const":2}`, []string{`6:14 bound x: !=1.0`}},
	{"not null", `x!: !=null`, ``, []string{`6:5 bound x: !=null`}},
	{"a multiple", `x!: int & math.MultipleOf(3)`, `"type":"integer"`, []string{`6:11 validator x: math.MultipleOf(3)`}},
	{"a multiple of a fraction", `x!: math.MultipleOf(-0.5)`, `"type":"number"`, []string{`6:5 validator x: math.MultipleOf(-0.5)`}},
	{"two multiples", `x!: int & math.MultipleOf(3) & math.MultipleOf(4)`, `"type":"integer"`, []string{`6:11 validator x: math.MultipleOf(3)`, `6:32 validator x: math.MultipleOf(4)`}},
	{"a bound of texts", `x!: string & >"a"`, `"type":"string"`, []string{`6:14 bound x: >"a"`}},
	{"two bounds of texts", `x!: >="a" & <"n"`, `"type":"string"`, []string{`6:5 bound x: >="a"`, `6:13 bound x: <"n"`}},
	{"MinRunes and MaxRunes", `x!: strings.MinRunes(2) & strings.MaxRunes(5)`, `"type":"string","minLength":2,"maxLength":5`, nil},
	{"MinRunes twice", `x!: strings.MinRunes(2) & strings.MinRunes(3)`, `"type":"string","minLength":2,"allOf":[{"type":"string","minLength":3}]`, nil},
	{"HasPrefix", `x!: strings.HasPrefix("a.b")`, `"type":"string","pattern":"^a\\.b"`, nil},
	{"HasSuffix", `x!: strings.HasSuffix(".go")`, `"type":"string","pattern":"\\.go$"`, nil},
	{"Contains", `x!: strings.Contains("[x]")`, `"type":"string","pattern":"\\[x\\]"`, nil},
	{"ContainsAny", `x!: strings.ContainsAny("abc")`, `"type":"string"`, []string{`6:5 validator x: strings.ContainsAny("abc")`}},
	{"patterns", `x!: =~"^a" & =~"b$" & !~"c" & !~"d"`, `"type":"string","pattern":"^a","not":{"pattern":"c"},"allOf":[{"pattern":"b$"},{"not":{"pattern":"d"}}]`, nil},
	{"A38/case", `x!: =~"(?i)a"`, `"type":"string"`, []string{`6:5 pattern x: =~"(?i)a": (?i) is not common to both`}},
	{"A38/class", `x!: =~"\\pL"`, `"type":"string"`, []string{`6:5 pattern x: =~"\\pL": \p is not common to both`}},
	{"A38/end", `x!: =~"a\\z"`, `"type":"string"`, []string{`6:5 pattern x: =~"a\\z": \z is not common to both`}},
	{"A38/newline", `x!: =~"(?s)."`, `"type":"string"`, []string{`6:5 pattern x: =~"(?s).": (?s) is not common to both`}},
	{"A38/excluded", `x!: string & !~"(?i)a"`, `"type":"string"`, []string{`6:14 pattern x: !~"(?i)a": (?i) is not common to both`}},
	{"A38/beside another", `x!: =~"^a" & =~"(?i)b$"`, `"type":"string","pattern":"^a"`, []string{`6:14 pattern x: =~"(?i)b$": (?i) is not common to both`}},
	{"A38/of names", `x?: {[=~"(?i)a"]: int}`, `"type":"object","additionalProperties":{}`, []string{`6:6 name x: [=~"(?i)a"] as a pattern of names`}},
	{"posix class", `x!: =~"[[:alpha:]]"`, `"type":"string"`, []string{`6:5 pattern x: =~"[[:alpha:]]": a [ in a class must be written \[, and [:name:] is not common to both`}},
	{"names of a choice", `x?: {["a" | "b.c"]: int}`, `"type":"object","patternProperties":{"^(?:a|b\\.c)$":{"type":"integer"}},"additionalProperties":false`, nil},
	{"names that are excluded", `x?: {[!~"^a"]: int}`, `"type":"object","additionalProperties":{}`, []string{`6:6 name x: [!~"^a"] as a pattern of names`}},
	{"names with a length", `x?: {[strings.MinRunes(2)]: int, a?: string}`, `"type":"object","properties":{"a":{"type":"string"}},"patternProperties":{"":{}},"additionalProperties":false`, []string{`6:6 name x: [strings.MinRunes(2)] as a pattern of names`}},
	{"a pattern of names twice", `x?: {[=~"^a"]: int, [=~"^a"]: >5}`, `"type":"object","patternProperties":{"^a":{"allOf":[{"type":"integer"},{"type":"number","exclusiveMinimum":5}]}},"additionalProperties":false`, nil},
	{"matchN", `x!: matchN(1, [string, =~"a"])`, ``, []string{`6:5 validator x: matchN(1, [string, =~"a"])`}},
	{"matchN of a type", `x!: int & matchN(1, [>5, <3])`, `"type":"integer"`, []string{`6:11 validator x: matchN(1, [>5, <3])`}},
	{"A30/bytes", `x!: bytes`, base64, nil},
	{"bytes, constants", `x!: 'a' | 'abc'`, `"anyOf":[{"type":"string","const":"YQ==","contentEncoding":"base64"},{"type":"string","const":"YWJj","contentEncoding":"base64"}]`, nil},
	{"bytes, excluded", `x!: bytes & !='a'`, base64, []string{`6:13 bound x: !='a'`}},
	{"bytes, bounded", `x!: bytes & >'a'`, base64, []string{`6:13 bound x: >'a'`}},
	{"bytes or null", `x!: bytes | null`, `"anyOf":[{"type":"null"},{` + base64 + `}]`, nil},
	{"bytes or string", `x!: bytes | string`, `"anyOf":[{"type":"string"},{` + base64 + `}]`, nil},
	{"time.Time", `x!: time.Time`, dateTime, nil},
	{"time.Format, RFC 3339", `x!: time.Format(time.RFC3339)`, dateTime, nil},
	{"time.Format, a date", `x!: time.Format(time.RFC3339Date)`, `"type":"string","format":"date"`, nil},
	{"time.Format, a date and a time", `x!: time.Format(time.RFC3339Date) & time.Time`, `"type":"string","format":"date","allOf":[{` + dateTime + `}]`, nil},
	{"time.Format", `x!: time.Format("15:04")`, `"type":"string"`, []string{`6:5 validator x: time.Format("15:04")`}},
	{"time.Duration", `x!: time.Duration`, `"type":"string","pattern":"^[+-]?(?:0|(?:(?:[0-9]+(?:\\.[0-9]*)?|\\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h))+)$"`, []string{`6:5 format x: time.Duration() takes no more than 2562047h47m16.854775807s`}},
	{"uuid", `x!: uuid.Valid`, `"type":"string","pattern":"^(?:(?:[Uu][Rr][Nn]:[Uu][Uu][Ii][Dd]:)?[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}|\\{[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}\\}|[0-9A-Fa-f]{32})$"`, nil},
	{"A30/net.IPv4", `x!: net.IPv4`, `"type":["array","string"],"pattern":"^[0-9A-Fa-f:.]+(?:%[^\\n]+)?$"`, []string{`6:5 format x: net.IPv4() takes addresses as Go reads them`}},
	{"A30/net.IPv4, a string", `x!: string & net.IPv4`, `"type":"string","pattern":"^[0-9A-Fa-f:.]+(?:%[^\\n]+)?$"`, []string{`6:5 expression x: string & net.IPv4`, `6:14 format x: net.IPv4() takes addresses as Go reads them`}},
	{"net.IPv4, not null", `x!: net.IPv4 & !=null`, `"type":["array","string"],"pattern":"^[0-9A-Fa-f:.]+(?:%[^\\n]+)?$"`, []string{`6:5 format x: net.IPv4() takes addresses as Go reads them`, `6:16 bound x: !=null`}},
	{"net.IPv6", `x!: string & net.IPv6`, `"type":"string","pattern":"^[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*(?:%[^\\n]+)?$"`, []string{`6:5 expression x: string & net.IPv6`, `6:14 format x: net.IPv6() takes addresses as Go reads them`}},
	{"net.IP", `x!: string & net.IP()`, `"type":"string","pattern":"^[0-9A-Fa-f:.]+(?:%[^\\n]+)?$"`, []string{`6:5 expression x: string & net.IP()`, `6:14 format x: net.IP() takes addresses as Go reads them`}},
	{"net.IP, any", `x!: net.IP()`, `"type":["array","string"],"pattern":"^[0-9A-Fa-f:.]+(?:%[^\\n]+)?$"`, []string{`6:5 format x: net.IP() takes addresses as Go reads them`}},
	{"net.IPCIDR", `x!: net.IPCIDR`, `"type":"string","pattern":"^[0-9A-Fa-f:.]+/[0-9]{1,3}$"`, []string{`6:5 format x: net.IPCIDR() takes addresses as Go reads them`}},
	{"net.FQDN", `x!: net.FQDN`, ``, []string{`6:5 validator x: net.FQDN`}},
	{"net.URL", `x!: net.URL`, ``, []string{`6:5 validator x: net.URL`}},
	{"net.AbsURL", `x!: net.AbsURL()`, ``, []string{`6:5 validator x: net.AbsURL()`}},
	{"net.LoopbackIP", `x!: net.LoopbackIP`, ``, []string{`6:5 validator x: net.LoopbackIP`}},
	{"list of bounded size", `x?: [...int] & list.MinItems(1) & list.MaxItems(3)`, `"type":"array","items":{"type":"integer"},"minItems":1,"maxItems":3`, nil},
	{"list, bounds alone", `x?: list.MinItems(2)`, `"type":"array","minItems":2`, nil},
	{"list.UniqueItems", `x?: [...int] & list.UniqueItems()`, `"type":"array","items":{"type":"integer"},"uniqueItems":true`, nil},
	{"list.UniqueItems, items with defaults", `x?: [...{a: *1 | int}] & list.UniqueItems()`, `"type":"array","items":{"type":"object","properties":{"a":{"type":"integer","default":1}}}`, []string{`6:26 validator x: list.UniqueItems() counts what CUE fills in`}},
	{"list.Contains", `x?: [...int] & list.Contains(3) & list.Contains(4)`, `"type":"array","items":{"type":"integer"},"contains":{"const":3},"allOf":[{"contains":{"const":4}}]`, nil},
	{"list.Contains of a float", `x?: [...number] & list.Contains(1.0)`, `"type":"array","items":{"type":"number"}`, []string{`6:19 validator x: list.Contains(1.0)`}},
	{"list.Contains of a list", `x?: [...[...int]] & list.Contains([1])`, `"type":"array","items":{"type":"array","items":{"type":"integer"}}`, []string{`6:21 validator x: list.Contains([1])`}},
	{"list.IsSortedStrings", `x?: [...string] & list.IsSortedStrings`, `"type":"array","items":{"type":"string"}`, []string{`6:19 validator x: list.IsSortedStrings`}},
	{"list.MatchN", `x?: [...int] & list.MatchN(>1, >5)`, `"type":"array","items":{"type":"integer"}`, []string{`6:16 validator x: list.MatchN(>1, >5)`}},
	{"lists that are not", `x?: !=[]`, ``, []string{`6:5 bound x: !=[]`}},
	{"a computed list", `x?: list.Repeat([int], 2)`, ``, []string{`6:5 validator x: list.Repeat([int], 2)`}},
	{"a choice of lists", `x?: [...int] | [...string]`, `"anyOf":[{"type":"array","items":{"type":"integer"}},{"type":"array","items":{"type":"string"}}]`, []string{`6:5 choice x: which alternative is meant, where a value may fit several: [...int] | [...string]`}},
	{"a choice of lists, bounded", `x?: ([...int] | [...string]) & list.MaxItems(2)`, ``, []string{`6:6 choice x: which alternative is meant, where a value may fit several: [...int] | [...string]`, `6:32 validator x: list.MaxItems(2)`}},
	{"a choice of lists of structs", `x?: [...{a?: int}] | [...{a?: int, b?: int}]`, `"anyOf":[{"type":"array","items":{"type":"object","properties":{"a":{"type":"integer"}},"additionalProperties":false}},{"type":"array","items":{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"additionalProperties":false}}]`, []string{`6:5 choice x: which alternative is meant, where a value may fit several: [...{a?: int}] | [...{a?: int, b?: int}]`}},
	{"open list", `x?: [...]`, `"type":"array"`, nil},
	{"open tuple", `x?: [int, ...]`, `"type":"array","prefixItems":[{"type":"integer"}],"minItems":1`, nil},
	{"struct.MinFields", `x?: {a?: int, b?: int} & struct.MinFields(1)`, `"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"additionalProperties":false,"minProperties":1`, nil},
	{"struct.MinFields, hidden fields", `x?: {a?: int, b?: int, _h: 1, #d: 2} & struct.MinFields(1)`, `"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"additionalProperties":false,"minProperties":1`, nil},
	{"struct.MinFields, with defaults", `x?: {a?: int, c?: int, b: *1 | int} & struct.MinFields(2)`, `"type":"object","properties":{"a":{"type":"integer"},"c":{"type":"integer"},"b":{"type":"integer","default":1}},"additionalProperties":false`, []string{`6:39 validator x: struct.MinFields(2) counts what CUE fills in`}},
	{"struct.MinFields, met by defaults", `x?: {a?: int, b: *1 | int} & struct.MinFields(1)`, `"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer","default":1}},"additionalProperties":false`, []string{`6:30 validator x: struct.MinFields(1) counts what CUE fills in`}},
	{"struct.MaxFields", `x?: {a?: int, b?: int} & struct.MaxFields(1)`, `"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"additionalProperties":false,"maxProperties":1`, nil},
	{"struct.MaxFields, with defaults", `x?: {a?: int, b: *1 | int} & struct.MaxFields(1)`, `"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer","default":1}},"additionalProperties":false,"maxProperties":1`, []string{`6:30 validator x: struct.MaxFields(1) counts what CUE fills in`}},
	{"struct.MaxFields, wide enough", `x?: {a?: int, b: *1 | int} & struct.MaxFields(2)`, `"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer","default":1}},"additionalProperties":false,"maxProperties":2`, []string{`6:30 validator x: struct.MaxFields(2) counts what CUE fills in`}},
	{"default of a pattern", `x: *"a" | =~"(?i)^a"`, `"type":"string","default":"a"`, []string{`6:11 pattern x: =~"(?i)^a": (?i) is not common to both`}},
	{"default of a number", `x: *1.5 | number`, `"type":"number","default":1.5`, nil},
	{"default of bytes", `x: *'abc' | bytes`, `"anyOf":[{"type":"string","const":"YWJj","contentEncoding":"base64"},{` + base64 + `}],"default":"YWJj"`, nil},
	{"default of a duration", `x: *"1h" | time.Duration`, `"type":"string","pattern":"^[+-]?(?:0|(?:(?:[0-9]+(?:\\.[0-9]*)?|\\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h))+)$","default":"1h"`, []string{`6:12 format x: time.Duration() takes no more than 2562047h47m16.854775807s`}},
}

func TestLeaves(t *testing.T) {
	t.Parallel()
	leaves(t, false)
}

func leaves(t *testing.T, rows bool) {
	calls := make([]string, len(leafValues))
	for i, v := range leafValues {
		calls[i] = `{"x":` + v + `}`
	}
	var accepted atomic.Int64
	t.Cleanup(func() {
		if n := accepted.Load(); !rows && !t.Failed() && n < 500 {
			t.Errorf("only %d values are accepted by CUE", n)
		}
	})
	for _, tc := range leafCases {
		if isRow(tc.name) != rows {
			continue
		}
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			d := newDeclared(t, "", tc.args, contract.Closed)
			if d.problems.HasErrors() {
				t.Fatalf("%v", d.problems)
			}
			var got struct {
				Properties struct {
					X json.RawMessage `json:"x"`
				} `json:"properties"`
			}
			if err := json.Unmarshal(d.spec.Schema, &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff("{"+tc.schema+"}", string(got.Properties.X)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tc.losses, dumped(d.spec.Losses)); diff != "" {
				t.Error(diff)
			}
			accepted.Add(int64(d.agrees(t, append(calls, "{}")...)))
		})
	}
}

// leafValues lie at the borders of what the leaf cases accept, on both sides.
var leafValues = strings.Fields(`
	null true false 0 1 2 3 4 5 6 7 10 11 12 -1 -2 255 256 -128 -129 127 128 32767 32768 65535 65536 1114111 1114112
	2147483647 2147483648 4294967295 4294967296 9223372036854775807 9223372036854775808 -9223372036854775808
	18446744073709551615 18446744073709551616 170141183460469231731687303715884105727
	170141183460469231731687303715884105728 340282366920938463463374607431768211455
	340282366920938463463374607431768211456 0.5 0.6 1.5 10.5 -1.25 -1.26 999.5 1000
	0.123456789012345678901234567890123456789 0.1234567890123456789012345678901234567889 350000000000000000000000000000000000000
	[] [1] [1,1] [1,2] [1,2,3] [3,4] [6,1] ["a"] ["a","b"] ["b","a"] [[1]] [[1],[2]] [{}] [{"a":1}] [{"a":1},{}] [{"b":1}] [1,"a"] [null]
	[1,2,3,4] [1,2,3,256] [1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16] [127,0,0,1]
	{} {"a":1} {"b":1} {"b.c":1} {"a":1,"b":2} {"a":"s"} {"c":1} {"ab":7} {"ab":"s"} {"A":1} {"a":1,"c":2}
	"" "a" "b" "A" "ab" "ba" "acb" "adb" "aab" "abc" "n" "a.b" "a.bc" "axb" "x.go" ".go" "[x]" "x" "é" "日本" "abcdef" "a\n" "\n"
	"YQ==" "YR==" "YWI=" "YWJj" "YWJjYQ==" "YWJ" "YW\nJj" "===" "YWJ_"
	"2020-01-01T00:00:00Z" "2020-02-30T00:00:00Z" "2020-02-29T23:59:59.5+14:00" "2021-02-29T00:00:00Z" "2020-01-01T1:00:00Z"
	"2020-01-01T00:00:00,5Z" "2020-01-01T00:00:00+24:60" "2020-01-01T00:00:00+25:00" "2020-01-01T23:59:60Z" "2020-01-01t00:00:00z"
	"2020-01-01T24:00:00Z" "2020-01-01T00:00:00" "2020-01-01" "2020-13-01" "15:04" "25:04" "2020-01-01T00:00:00.Z" "0000-01-01T00:00:00Z"
	"0" "-0" "+1.h" ".5s" "1h1m1µs1μs" "1" "." "1d" "1h " "9999999999h" "-1.5ms"
	"123e4567-e89b-12d3-a456-426614174000" "123E4567E89B12D3A456426614174000" "{123e4567-e89b-12d3-a456-426614174000}"
	"URN:uuid:123e4567-e89b-12d3-a456-426614174000" "{123e4567-e89b-12d3-a456-426614174000" "123e4567-e89b-12d3-a456-42661417400g"
	"1.2.3.4" "01.2.3.4" "+1.2.3.4" "1.2.3" "::1" "::ffff:1.2.3.4" "fe80::1%eth0" "::1%" "1::2::3" "10.0.0.0/8" "::/129" "::/0" "127.0.0.1"
	"example.com" "example..com" "http://a/b" "/b" ":"
`)
