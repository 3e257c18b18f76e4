package derive_test

import (
	"encoding/json"
	"fmt"
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
	{"lower and upper bound", `x!: number & >=-1.25 & <1e3`, `"type":"number","minimum":-1.25,"exclusiveMaximum":1E+3`, nil},
	{"the tighter of several bounds", `x!: int & >5 & >=7 & <=10.5 & <100`, `"type":"integer","minimum":7,"maximum":10.5`, nil},
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
	{"float32", `x!: float32`, `"type":"number","minimum":-340282346638528859811704183484516925440,"maximum":340282346638528859811704183484516925440`, nil},
	{"float64", `x!: float64`, `"type":"number","minimum":-1.797693134862315708145274237317043567981E+308,"maximum":1.797693134862315708145274237317043567981E+308`, nil},
	{"number", `x!: number`, `"type":"number"`, nil},
	{"float", `x!: float`, `"type":"number","not":{"type":"integer"}`, nil},
	{"float, bounded", `x!: float & >0.5`, `"type":"number","exclusiveMinimum":0.5,"not":{"type":"integer"}`, nil},
	{"float or int", `x!: float | int`, `"anyOf":[{"type":"integer"},{"type":"number","not":{"type":"integer"}}]`, nil},
	{"not a number", `x!: number & !=1.0 & !=2`, `"type":"number","not":{"const":1.0},"allOf":[{"not":{"const":2}}]`, nil},
	{"not null", `x!: !=null`, `"type":["boolean","string","number","array","object"]`, nil},
	{"a multiple", `x!: int & math.MultipleOf(3)`, `"type":"integer","multipleOf":3`, nil},
	{"a multiple of a fraction", `x!: math.MultipleOf(-0.5)`, `"type":"number","multipleOf":0.5`, nil},
	{"two multiples", `x!: int & math.MultipleOf(3) & math.MultipleOf(4)`, `"type":"integer","multipleOf":3,"allOf":[{"multipleOf":4}]`, nil},
	{"a bound of texts", `x!: string & >"a"`, `"type":"string"`, []string{`6:14 bound x: >"a"`}},
	{"two bounds of texts", `x!: >="a" & <"n"`, `"type":"string"`, []string{`6:5 bound x: >="a"`, `6:13 bound x: <"n"`}},
	{"MinRunes and MaxRunes", `x!: strings.MinRunes(2) & strings.MaxRunes(5)`, `"type":"string","minLength":2,"maxLength":5`, nil},
	{"MinRunes twice", `x!: strings.MinRunes(2) & strings.MinRunes(3)`, `"type":"string","minLength":3`, nil},
	{"HasPrefix", `x!: strings.HasPrefix("a.b")`, `"type":"string","pattern":"^a\\.b"`, nil},
	{"HasSuffix", `x!: strings.HasSuffix(".go")`, `"type":"string","pattern":"\\.go$"`, nil},
	{"Contains", `x!: strings.Contains("[x]")`, `"type":"string","pattern":"\\[x\\]"`, nil},
	{"ContainsAny", `x!: strings.ContainsAny("abc")`, `"type":"string"`, []string{`6:5 validator x: strings.ContainsAny("abc")`}},
	{"patterns", `x!: =~"^a" & =~"b$" & !~"c" & !~"d"`, `"type":"string","pattern":"^a","not":{"pattern":"c"},"allOf":[{"pattern":"b$"},{"not":{"pattern":"d"}}]`, nil},
	{"A38/case", `x!: =~"(?i)a"`, `"type":"string"`, []string{`6:7 pattern x: "(?i)a": (?i) is not common to both`}},
	{"A38/class", `x!: =~"\\pL"`, `"type":"string"`, []string{`6:7 pattern x: "\\pL": \p is not common to both`}},
	{"A38/end", `x!: =~"a\\z"`, `"type":"string"`, []string{`6:7 pattern x: "a\\z": \z is not common to both`}},
	{"A38/newline", `x!: =~"(?s)."`, `"type":"string"`, []string{`6:7 pattern x: "(?s).": (?s) is not common to both`}},
	{"A38/excluded", `x!: string & !~"(?i)a"`, `"type":"string"`, []string{`6:16 pattern x: "(?i)a": (?i) is not common to both`}},
	{"A38/beside another", `x!: =~"^a" & =~"(?i)b$"`, `"type":"string","pattern":"^a"`, []string{`6:16 pattern x: "(?i)b$": (?i) is not common to both`}},
	{"A38/of names", `x?: {[=~"(?i)a"]: int}`, `"type":"object","additionalProperties":{}`, []string{`6:9 pattern x[=~"(?i)a"]: "(?i)a": (?i) is not common to both`}},
	{"posix class", `x!: =~"[[:alpha:]]"`, `"type":"string"`, []string{`6:7 pattern x: "[[:alpha:]]": a [ in a class must be written \[, and [:name:] is not common to both`}},
	{"names of a choice", `x?: {["a" | "b.c"]: int}`, `"type":"object","patternProperties":{"^(?:a|b\\.c)$":{"type":"integer"}},"additionalProperties":false`, nil},
	{"names that are excluded", `x?: {[!~"^a"]: int}`, `"type":"object","additionalProperties":{}`, []string{`6:6 name x[!~"^a"]: [!~"^a"] as a pattern of names`}},
	{"names with a length", `x?: {[strings.MinRunes(2)]: int, a?: string}`, `"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":{}`, []string{`6:6 name x[strings.MinRunes(2)]: [strings.MinRunes(2)] as a pattern of names`}},
	{"a pattern of names twice", `x?: {[=~"^a"]: int, [=~"^a"]: >5}`, `"type":"object","patternProperties":{"^a":{"type":"integer","exclusiveMinimum":5}},"additionalProperties":false`, nil},
	{"matchN", `x!: matchN(1, [string, =~"a"])`, ``, []string{`6:5 validator x: matchN(1, [string, =~"a"])`}},
	{"matchN of a type", `x!: int & matchN(1, [>5, <3])`, `"type":"integer"`, []string{`6:11 validator x: matchN(1, [>5, <3])`}},
	{"A30/bytes", `x!: bytes`, base64, nil},
	{"bytes, constants", `x!: 'a' | 'abc'`, `"type":"string","enum":["YQ==","YWJj"]`, nil},
	{"bytes, excluded", `x!: bytes & !='a'`, base64 + `,"not":{"const":"YQ=="}`, nil},
	{"bytes, bounded", `x!: bytes & >'a'`, base64, []string{`6:13 bound x: >'a'`}},
	{"bytes or null", `x!: bytes | null`, `"anyOf":[{"type":"null"},{` + base64 + `}]`, nil},
	{"bytes or string", `x!: bytes | string`, `"anyOf":[{"type":"string"},{` + base64 + `}]`, nil},
	{"time.Time", `x!: time.Time`, dateTime, nil},
	{"time.Format, RFC 3339", `x!: time.Format(time.RFC3339)`, dateTime, nil},
	{"time.Format, a date", `x!: time.Format(time.RFC3339Date)`, `"type":"string","format":"date"`, nil},
	{"time.Format, a date and a time", `x!: time.Format(time.RFC3339Date) & time.Time`, `"type":"string","format":"date","pattern":"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{1,2}:[0-9]{2}:[0-5][0-9](?:[.,][0-9]+)?(?:Z|[+-][0-9]{2}:[0-9]{2})$","allOf":[{"format":"date-time"}]`, nil},
	{"time.Format", `x!: time.Format("15:04")`, `"type":"string"`, []string{`6:5 validator x: time.Format("15:04")`}},
	{"time.Duration", `x!: time.Duration`, `"type":"string","pattern":"^[+-]?(?:0|(?:(?:[0-9]+(?:\\.[0-9]*)?|\\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h))+)$"`, []string{`6:5 format x: time.Duration() takes no more than 2562047h47m16.854775807s`}},
	{"uuid", `x!: uuid.Valid`, `"type":"string","pattern":"^(?:(?:[Uu][Rr][Nn]:[Uu][Uu][Ii][Dd]:)?[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}|\\{[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}\\}|[0-9A-Fa-f]{32})$"`, nil},
	{"A30/net.IPv4", `x!: net.IPv4`, `"anyOf":[{"type":"string","format":"ipv4"},{"type":"array","items":{"type":"integer","minimum":0,"maximum":255},"minItems":4,"maxItems":4}]`, nil},
	{"A30/net.IPv4, a string", `x!: string & net.IPv4`, `"type":"string","format":"ipv4"`, nil},
	{"net.IPv4, not null", `x!: net.IPv4 & !=null`, `"not":{"type":"null"},"anyOf":[{"type":"string","format":"ipv4"},{"type":"array","items":{"type":"integer","minimum":0,"maximum":255},"minItems":4,"maxItems":4}]`, nil},
	{"net.IPv6", `x!: string & net.IPv6`, `"type":"string","pattern":"^[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*(?:%[^\\n]+)?$"`, []string{`6:14 format x: net.IPv6() takes addresses as Go reads them, with a zone or without`}},
	{"net.IP", `x!: string & net.IP()`, `"type":"string","pattern":"^[0-9A-Fa-f:.]+(?:%[^\\n]+)?$"`, []string{`6:14 format x: net.IP() takes addresses as Go reads them, with a zone or without`}},
	{"net.IP, any", `x!: net.IP()`, `"anyOf":[{"type":"string","pattern":"^[0-9A-Fa-f:.]+(?:%[^\\n]+)?$"},{"type":"array","items":{"type":"integer","minimum":0,"maximum":255},"minItems":4,"maxItems":4},{"type":"array","items":{"type":"integer","minimum":0,"maximum":255},"minItems":16,"maxItems":16}]`, []string{`6:5 format x: net.IP() takes addresses as Go reads them, with a zone or without`}},
	{"net.IPCIDR", `x!: net.IPCIDR`, `"type":"string","pattern":"^[0-9A-Fa-f:.]+/[0-9]{1,3}$"`, []string{`6:5 format x: net.IPCIDR() takes prefixes as Go reads them`}},
	{"net.FQDN", `x!: net.FQDN`, `"type":"string"`, []string{`6:5 validator x: net.FQDN()`}},
	{"net.URL", `x!: net.URL`, `"type":"string"`, []string{`6:5 validator x: net.URL()`}},
	{"net.AbsURL", `x!: net.AbsURL()`, `"type":"string"`, []string{`6:5 validator x: net.AbsURL()`}},
	{"net.LoopbackIP", `x!: net.LoopbackIP`, ``, []string{`6:5 validator x: net.LoopbackIP()`}},
	{"list of bounded size", `x?: [...int] & list.MinItems(1) & list.MaxItems(3)`, `"type":"array","items":{"type":"integer"},"minItems":1,"maxItems":3`, nil},
	{"list, bounds alone", `x?: list.MinItems(2)`, `"type":"array","minItems":2`, nil},
	{"list.UniqueItems", `x?: [...int] & list.UniqueItems()`, `"type":"array","items":{"type":"integer"},"uniqueItems":true`, nil},
	{"list.UniqueItems, items with defaults", `x?: [...{a: *1 | int}] & list.UniqueItems()`, `"type":"array","items":{"type":"object","properties":{"a":{"type":"integer","default":1}},"additionalProperties":false},"uniqueItems":true`, []string{`6:26 validator x: list.UniqueItems() compares items with their defaults filled in`}},
	{"list.Contains", `x?: [...int] & list.Contains(3) & list.Contains(4)`, `"type":"array","items":{"type":"integer"},"contains":{"const":3},"allOf":[{"contains":{"const":4}}]`, nil},
	{"list.Contains of a float", `x?: [...number] & list.Contains(1.0)`, `"type":"array","items":{"type":"number"}`, []string{`6:19 validator x: list.Contains(1.0)`}},
	{"list.Contains of a list", `x?: [...[...int]] & list.Contains([1])`, `"type":"array","items":{"type":"array","items":{"type":"integer"}}`, []string{`6:21 validator x: list.Contains([1])`}},
	{"list.IsSortedStrings", `x?: [...string] & list.IsSortedStrings`, `"type":"array","items":{"type":"string"}`, []string{`6:19 validator x: list.IsSortedStrings()`}},
	{"list.MatchN", `x?: [...int] & list.MatchN(>1, >5)`, `"type":"array","items":{"type":"integer"}`, []string{`6:16 validator x: list.MatchN(>1, >5)`}},
	{"lists that are not", `x?: !=[]`, `"type":"array"`, []string{`6:5 bound x: !=[]`}},
	{"a computed list", `x?: list.Repeat([int], 2)`, `"type":"array","prefixItems":[{"type":"integer"},{"type":"integer"}],"items":false,"minItems":2,"maxItems":2`, nil},
	{"a choice of lists", `x?: [...int] | [...string]`, `"type":"array","anyOf":[{"type":"array","items":{"type":"integer"}},{"type":"array","items":{"type":"string"}}]`, nil},
	{"a choice of lists, bounded", `x?: ([...int] | [...string]) & list.MaxItems(2)`, `"type":"array","maxItems":2,"anyOf":[{"type":"array","items":{"type":"integer"}},{"type":"array","items":{"type":"string"}}]`, nil},
	{"a choice of lists of structs", `x?: [...{a?: int}] | [...{a?: int, b?: int}]`, `"type":"array","anyOf":[{"type":"array","items":{"type":"object","properties":{"a":{"type":"integer"}},"additionalProperties":false}},{"type":"array","items":{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"additionalProperties":false}}]`, []string{`6:5 choice x: the choice between lists`}},
	{"open list", `x?: [...]`, `"type":"array","items":{}`, nil},
	{"open tuple", `x?: [int, ...]`, `"type":"array","prefixItems":[{"type":"integer"}],"items":{},"minItems":1`, nil},
	{"struct.MinFields", `x?: {a?: int, b?: int} & struct.MinFields(1)`, `"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"additionalProperties":false,"minProperties":1`, nil},
	{"struct.MinFields, hidden fields", `x?: {a?: int, b?: int, _h: 1, #d: 2} & struct.MinFields(1)`, `"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"additionalProperties":false,"minProperties":1`, nil},
	{"struct.MinFields, with defaults", `x?: {a?: int, c?: int, b: *1 | int} & struct.MinFields(2)`, `"type":"object","properties":{"a":{"type":"integer"},"c":{"type":"integer"},"b":{"type":"integer","default":1}},"additionalProperties":false,"minProperties":1`, []string{`6:39 validator x: struct.MinFields(2) counts the fields that defaults fill in`}},
	{"struct.MinFields, met by defaults", `x?: {a?: int, b: *1 | int} & struct.MinFields(1)`, `"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer","default":1}},"additionalProperties":false`, nil},
	{"struct.MaxFields", `x?: {a?: int, b?: int} & struct.MaxFields(1)`, `"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"additionalProperties":false,"maxProperties":1`, nil},
	{"struct.MaxFields, with defaults", `x?: {a?: int, b: *1 | int} & struct.MaxFields(1)`, `"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer","default":1}},"additionalProperties":false,"maxProperties":1`, []string{`6:30 validator x: struct.MaxFields(1) counts the fields that defaults fill in`}},
	{"struct.MaxFields, wide enough", `x?: {a?: int, b: *1 | int} & struct.MaxFields(2)`, `"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer","default":1}},"additionalProperties":false,"maxProperties":2`, nil},
	{"default of a pattern", `x: *"a" | =~"(?i)^a"`, `"type":"string","default":"a"`, []string{`6:13 pattern x: "(?i)^a": (?i) is not common to both`}},
	{"default of a number", `x: *1.5 | number`, `"type":"number","default":1.5`, nil},
	{"default of bytes", `x: *'abc' | bytes`, base64 + `,"default":"YWJj"`, nil},
	{"default of a duration", `x: *"1h" | time.Duration`, `"type":"string","pattern":"^[+-]?(?:0|(?:(?:[0-9]+(?:\\.[0-9]*)?|\\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h))+)$","default":"1h"`, []string{`6:12 format x: time.Duration() takes no more than 2562047h47m16.854775807s`}},
}

func TestLeaves(t *testing.T) {
	t.Parallel()
	leaves(t, false)
}

func leaves(t *testing.T, rows bool) {
	for _, tc := range leafCases {
		if isRow(tc.name) != rows {
			continue
		}
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			spec, _, problems := args(t, "", tc.args, contract.Closed)
			if problems.HasErrors() {
				t.Fatalf("%v", problems)
			}
			var got struct {
				Properties struct {
					X json.RawMessage `json:"x"`
				} `json:"properties"`
			}
			if err := json.Unmarshal(spec.Schema, &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff("{"+tc.schema+"}", string(got.Properties.X)); diff != "" {
				t.Error(diff)
			}
			var losses []string
			for _, l := range spec.Losses {
				if l.File != "tools.cue" {
					t.Errorf("in the file %q", l.File)
				}
				losses = append(losses, fmt.Sprintf("%d:%d %s %s: %s", l.Line, l.Col, l.Kind, l.Path, l.What))
			}
			if diff := cmp.Diff(tc.losses, losses); diff != "" {
				t.Error(diff)
			}
			spec.Losses, spec.Remainder = nil, nil
			if _, err := contract.New(spec, nil); err != nil {
				t.Error(err)
			}
		})
	}
}
