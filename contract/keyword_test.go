package contract_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/contract"
)

// around is a contract of one optional argument x whose schema is given, among $defs.
func around(t testing.TB, x, defs string) *contract.Contract {
	t.Helper()
	schema := `{"type":"object","properties":{"x":` + x + `},"additionalProperties":false,"$defs":{` + defs + `}}`
	c, err := contract.New(contract.Spec{Schema: json.RawMessage(schema), Strictness: contract.Closed, Fields: []contract.Field{{Name: "x"}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

const shapesUnion = `{"anyOf":[
	{"type":"object","properties":{"kind":{"const":"circle"},"r":{"type":"number"},"unit":{"type":"string","default":"m"}},"required":["kind","r"],"additionalProperties":false},
	{"type":"object","properties":{"kind":{"const":"square"},"side":{"type":"integer"},"unit":{"type":"string","default":"cm"}},"required":["kind","side"],"additionalProperties":false}]}`

const guarded = `{"type":"object","properties":{"mode":{"enum":["fast","slow"],"default":"fast"},"retries":true,"wait":true},"additionalProperties":false,
	"allOf":[{"if":{"properties":{"mode":{"const":"slow"}},"required":["mode"]},"then":{"properties":{"retries":{"type":"integer","default":3}}},"else":{"properties":{"retries":false}}},
		{"if":{"properties":{"retries":{"const":3}},"required":["retries"]},"then":{"properties":{"wait":{"type":"integer","default":9}},"required":["wait"]}}]}`

func TestKeywords(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, x, in, want string }{
		{"the alternative that is meant", shapesUnion, `{"kind":"square","side":2.0}`, `{"kind":"square","side":2,"unit":"cm"}`},
		{"only what is wrong with it", shapesUnion, `{"kind":"circle","r":"x"}`, `/x/r: got the string "x", expected a number`},
		{"what it lacks", shapesUnion, `{"kind":"square"}`, `/x/side: got nothing, expected an integer (required)`},
		{"no alternative", shapesUnion, `{"kind":"oval"}`, `/x/kind: got the string "oval", expected one of "circle", "square"`},
		{"told apart by what they require", `{"oneOf":[{"type":"object","properties":{"a":{"type":"integer"},"d":{"default":1}},"required":["a"]},{"type":"object","properties":{"b":{"type":"integer"},"d":{"default":2}},"required":["b"]}]}`,
			`{"b":1}`, `{"b":1,"d":2}`},
		{"undecided alternatives fill in nothing", `{"anyOf":[{"type":"object","properties":{"d":{"default":1}}},{"type":"object","properties":{"d":{"default":2}}}]}`, `{}`, `{}`},
		{"alternatives that agree", `{"anyOf":[{"type":"object","properties":{"d":{"default":1}}},{"type":"object","properties":{"d":{"default":1}},"maxProperties":9}]}`, `{}`, `{"d":1}`},
		{"one of two, and both", `{"oneOf":[{"type":"integer"},{"type":"number","minimum":5}]}`, `7`, `/x: got the number 7, expected exactly one of 2 alternatives to fit, and 2 do: an integer; a number, at least 5`},
		{"a default that a condition asks", guarded, `{}`, `{"mode":"fast"}`},
		{"a default of what then holds, and what follows", guarded, `{"mode":"slow"}`, `{"mode":"slow","retries":3,"wait":9}`},
		{"else", guarded, `{"retries":1}`, `/x/retries: got the number 1, expected it to be left out: it is an argument only where mode is "slow"`},
		{"then", guarded, `{"mode":"slow","retries":"x"}`, `/x/retries: got the string "x", expected an integer`},
		{"a condition for the validator", `{"type":"array","if":{"minItems":2},"then":{"items":{"type":"object","properties":{"d":{"default":0}}}},"else":{"items":{"type":"string"}}}`,
			`[{},{}]`, `[{"d":0},{"d":0}]`},
		{"its else", `{"type":"array","if":{"minItems":2},"then":true,"else":{"items":{"type":"string"}}}`, `[1]`, `/x/0: got the number 1, expected a string`},
		{"defaults in arrays", `{"type":"array","items":{"type":"object","properties":{"on":{"type":"boolean","default":true}}}}`, `[{},{"on":false}]`, `[{"on":true},{"on":false}]`},
		{"defaults in prefixes", `{"type":"array","prefixItems":[{"type":"object","properties":{"on":{"default":[1]}}}],"items":false}`, `[{}]`, `[{"on":[1]}]`},
		{"defaults in maps", `{"type":"object","patternProperties":{"^a":{"type":"object","properties":{"n":{"type":"integer","default":1}}}}}`, `{"ab":{},"b":{}}`, `{"ab":{"n":1},"b":{}}`},
		{"defaults behind references", `{"type":"array","items":{"$ref":"#/$defs/D"}}`, `[{}]`, `[{"n":1}]`},
		{"date-time", `{"type":"string","format":"date-time"}`, `"2026-13-01T00:00:00Z"`, `/x: got the string "2026-13-01T00:00:00Z", expected a string, a date and time such as 2006-01-02T15:04:05Z`},
		{"uuid", `{"type":"string","format":"uuid"}`, `"x"`, `/x: got the string "x", expected a string, a UUID such as 123e4567-e89b-12d3-a456-426614174000`},
		{"a uuid", `{"type":"string","format":"uuid"}`, `"123e4567-e89b-12d3-a456-426614174000"`, `"123e4567-e89b-12d3-a456-426614174000"`},
		{"base64", `{"type":"string","contentEncoding":"base64"}`, `"aGk="`, `"aGk="`},
		{"not base64", `{"type":"string","contentEncoding":"base64"}`, `"aGk"`, `/x: got the string "aGk", expected a string, in base64`},
		{"base64 in lines", `{"type":"string","contentEncoding":"base64"}`, `"aG\nk="`, `/x: got the string "aG\nk=", expected a string, in base64`},
		{"multipleOf", `{"type":"number","multipleOf":0.5}`, `1.25`, `/x: got the number 1.25, expected a number, a multiple of 0.5`},
		{"not", `{"type":"string","not":{"const":"a"}}`, `"a"`, `/x: got the string "a", expected a string, but not "a"`},
		{"not required", `{"type":"object","not":{"required":["a","b"]}}`, `{"a":1,"b":2}`, `/x: got an object of 2 keys, expected an object, not with a, b together`},
		{"minProperties", `{"type":"object","minProperties":1}`, `{}`, `/x: got an object of 0 keys, expected an object, at least 1 key`},
		{"propertyNames", `{"type":"object","propertyNames":{"pattern":"^[a-z]+$"}}`, `{"A":1}`, `/x/A: got a key of this name, expected each key matching ^[a-z]+$; did you mean "a"?`},
		{"annotations change nothing", `{"type":"string","examples":["a"],"deprecated":true,"title":"X","$comment":"c"}`, `"b"`, `"b"`},
		{"false among what is there", `{"type":"array","uniqueItems":false}`, `1`, `/x: got the number 1, expected an array`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c := around(t, tc.x, `"D":{"type":"object","properties":{"n":{"type":"integer","default":1}}}`)
			for range 2 { // a default that was filled in before is not shared
				args, found := check(c, json.RawMessage(`{"x":`+tc.in+`}`))
				got := strings.TrimSuffix(strings.TrimPrefix(string(args.JSON()), `{"x":`), "}")
				if found != nil {
					got = strings.Trim(fmt.Sprint(found), "[]")
				}
				if got != tc.want {
					t.Errorf("got  %s\nwant %s", got, tc.want)
				}
			}
		})
	}
}

// A format that nobody checks would be advertised and not held to; a definition that leads back to itself would be read
// for ever.
func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for x, want := range map[string]string{
		`{"type":"string","format":"color"}`:                 `format "color" is not one that is checked`,
		`{"not":{"format":"color"}}`:                         `format "color" is not one that is checked`,
		`{"type":"string","contentEncoding":"base32"}`:       `contentEncoding "base32" is not one that is checked`,
		`{"$ref":"#/$defs/A"}`:                               `leads back to itself`,
		`{"type":"array","items":{"contains":{"format":1}}}`: `format 1 is not one that is checked`,
	} {
		schema := `{"type":"object","properties":{"x":` + x + `},"additionalProperties":false,"$defs":{"A":{"anyOf":[{"type":"integer"},{"$ref":"#/$defs/A"}]}}}`
		if !strings.Contains(x, "$ref") {
			schema = strings.Replace(schema, `{"$ref":"#/$defs/A"}`, `true`, 1)
		}
		_, err := contract.New(contract.Spec{Schema: json.RawMessage(schema), Strictness: contract.Closed, Fields: []contract.Field{{Name: "x"}}}, nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", x, err, want)
		}
	}
}
