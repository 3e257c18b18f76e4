package derive_test

import (
	stdbase64 "encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/literal"

	"github.com/catalogd/catalogd/contract"
)

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

// The schema of every leaf case accepts what CUE accepts, and nothing else where it is lossless.
func TestLeafValues(t *testing.T) {
	t.Parallel()
	accepts := 0
	for _, tc := range leafCases {
		v := tool(t, "", tc.args)
		spec, _, problems := deriveTool(v, contract.Closed)
		if problems.HasErrors() {
			t.Fatal(problems)
		}
		lossy := len(spec.Losses) > 0
		spec.Losses, spec.Remainder = nil, nil
		c, err := contract.New(spec, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, value := range leafValues {
			if mistaken(tc.name, value) {
				continue
			}
			want := takes(v, value)
			_, found := check(c, json.RawMessage(`{"x":`+value+`}`))
			switch got := len(found) == 0; {
			case got == want:
			case want:
				t.Errorf("%s: CUE accepts %s, and the schema %s refuses it: %v", tc.name, value, spec.Schema, found)
			case !lossy:
				t.Errorf("%s: CUE refuses %s, and the schema %s accepts it without a loss", tc.name, value, spec.Schema)
			}
			if want {
				accepts++
			}
		}
	}
	if accepts < 500 {
		t.Errorf("only %d values are accepted by CUE", accepts)
	}
}

// mistaken are the cases in which CUE v0.17.1 accepts what its own rules refuse: it rounds quotients to 34 digits, so that
// math.MultipleOf takes numbers of more for multiples, and it forgets that the structs in a list with a validator are
// closed.
func mistaken(name, value string) bool {
	return strings.Contains(name, "multiple") && len(value) > 34 || name == "list.UniqueItems, items with defaults" && value == `[{"b":1}]`
}

// takes asks CUE whether x takes a JSON value: base64 where it wants bytes and no string.
func takes(args cue.Value, value string) bool {
	x := args.LookupPath(cue.MakePath(cue.Str("x").Optional()))
	var text string
	if kind := x.IncompleteKind(); kind&cue.BytesKind != 0 && kind&cue.StringKind == 0 && json.Unmarshal([]byte(value), &text) == nil && value[0] == '"' {
		raw, err := stdbase64.StdEncoding.Strict().DecodeString(text)
		if err != nil || strings.Contains(text, "\n") {
			return false
		}
		value = literal.Bytes.Quote(string(raw))
	}
	//lint:ignore SA1019 the values are of one context, which knows the definitions they refer to
	call := args.Context().CompileString(fmt.Sprintf("x: %s", value))
	return args.Unify(call).Validate(cue.Concrete(true), cue.Final()) == nil
}
