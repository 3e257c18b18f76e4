package contract_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/contract"
)

const (
	// payment has two alternatives that a constant tells apart, and a third without.
	payment = `{"anyOf":[
		{"type":"object","properties":{"kind":{"const":"card"},"number":{"type":"string"},"limit":{"type":"integer"}},"required":["kind","number"],"additionalProperties":false},
		{"type":"object","properties":{"kind":{"const":"cash"},"amount":{"type":"integer","minimum":1}},"required":["kind","amount"],"additionalProperties":false},
		{"type":"object","properties":{"token":{"type":"string"}},"required":["token"],"additionalProperties":false}]}`
	guard = `{"type":"object","properties":{"kind":{"enum":["card","cash"]},"number":{"type":"string"}},"required":["kind"],"additionalProperties":false,
		"if":{"properties":{"kind":{"const":"card"}},"required":["kind"]},"then":{"required":["number"]},"else":{"properties":{"number":false}}}`
)

// messages are calls that are refused, by what is wrong with them.
var messages = []struct{ name, x, in, want string }{
	{"the nearest alternative, and what it lacks", payment, `{"limit":1}`,
		`/x: got an object of 1 key, expected one of 3 alternatives; nearest is alternative {kind: "card", number, ...}: kind is missing (exactly "card"); number is missing (a string)`},
	{"the nearest by a key", payment, `{"tokn":"x"}`,
		`/x: got an object of 1 key, expected one of 3 alternatives; nearest is alternative {token}: token is missing (a string); tokn is none of its keys, did you mean "token"`},
	{"a key of another alternative", payment, `{"kind":"cash","number":"4"}`,
		`/x: got an object of 2 keys, expected one of 3 alternatives; nearest is alternative {kind: "cash", amount}: amount is missing (an integer, at least 1); number is none of its keys`},
	{"alternatives that only required tells apart", `{"type":"object","properties":{"id":{"type":"integer"},"name":{"type":"string"}},"anyOf":[{"required":["id"]},{"required":["name"]}]}`, `{}`,
		`/x: got an object of 0 keys, expected one of 2 alternatives; nearest is alternative {id}: id is missing (an integer)`},
	{"alternatives for lists", `{"anyOf":[{"type":"array","items":{"type":"string"},"minItems":1},{"type":"array","items":{"type":"integer"},"minItems":1}]}`, `["a",1,"b"]`,
		`/x: got an array of 3 items, expected one of 2 alternatives; nearest is alternative an array, at least 1 item: 1: got the number 1, expected a string`},
	{"two of a oneOf fit", `{"oneOf":[{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]},{"type":"object","properties":{"b":{"type":"integer"}},"required":["b"]}]}`, `{"a":1,"b":2}`,
		`/x: got an object of 2 keys, expected exactly one of 2 alternatives to fit, and 2 do: {a}; {b}`},
	{"contains", `{"type":"array","contains":{"type":"string","minLength":2}}`, `[1]`,
		`/x: got an array of 1 item, expected an array, at least 1 item that is a string, at least 2 characters long`},
	{"minContains", `{"type":"array","contains":{"const":1},"minContains":2,"maxContains":3}`, `[1]`,
		`/x: got an array of 1 item, expected an array, at least 2 items that are exactly 1, at most 3`},
	{"dependentRequired", `{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"string"}},"dependentRequired":{"a":["b"]}}`, `{"a":1}`,
		`/x/b: got nothing, expected a string (required where a is given)`},
	{"dependentSchemas", `{"type":"object","properties":{"a":{"type":"integer"}},"dependentSchemas":{"a":{"required":["b"]}}}`, `{"a":1}`,
		`/x/b: got nothing, expected it to be there (required where a is given)`},
	{"a misspelt key that an open object takes", `{"type":"object","properties":{"message":{"type":"string"},"to":{"type":"string"}},"required":["message","to"]}`, `{"mesage":"x","from":"y"}`,
		"/x/message: got nothing, expected a string (required); \"mesage\" was sent, did you mean \"message\"?\n/x/to: got nothing, expected a string (required)"},
	{"deeper down, and among additional ones", `{"type":"array","items":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"],"additionalProperties":{"type":"string"}}}`, `[{"nmae":"x"}]`,
		`/x/0/name: got nothing, expected a string (required); "nmae" was sent, did you mean "name"?`},
	{"a declared key was not meant for another", `{"type":"object","properties":{"id":{"type":"string"},"ids":{"type":"string"}},"required":["id"]}`, `{"ids":"x"}`,
		`/x/id: got nothing, expected a string (required)`},
	{"a misspelt key that tells alternatives apart", strings.ReplaceAll(shapesUnion, `,"additionalProperties":false`, ``), `{"knid":"circle","r":1}`,
		`/x/kind: got nothing, expected one of "circle", "square" (required); "knid" was sent, did you mean "kind"?`},
	{"the nearest alternative, which is open", strings.ReplaceAll(payment, `,"additionalProperties":false`, ``), `{"tokn":"x"}`,
		`/x: got an object of 1 key, expected one of 3 alternatives; nearest is alternative {token}: token is missing (a string), "tokn" was sent`},
	{"unevaluatedProperties", `{"type":"object","properties":{"city":{"type":"string"}},"allOf":[{"properties":{"unit":{"type":"string"}}}],"unevaluatedProperties":false}`, `{"ctiy":"x"}`,
		`/x/ctiy: got an unexpected key with the string "x", expected only city, unit; did you mean "city"?`},
	{"unevaluatedItems", `{"type":"array","prefixItems":[{"type":"string"}],"unevaluatedItems":false}`, `["a",2]`,
		`/x/1: got the number 2, expected no further item`},
	{"not", `{"type":"object","properties":{"a":true,"b":true},"not":{"required":["a","b"]}}`, `{"a":1,"b":2}`,
		`/x: got an object of 2 keys, expected an object, not with a, b together`},
	{"minProperties", `{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"string"}},"minProperties":1}`, `{}`,
		`/x: got an object of 0 keys, expected an object, at least 1 key of a, b`},
	{"propertyNames by an enum", `{"type":"object","propertyNames":{"enum":["north","south"]}}`, `{"nroth":1}`,
		`/x/nroth: got a key of this name, expected each key one of "north", "south"; did you mean "north"?`},
	{"propertyNames by a pattern", `{"type":"object","propertyNames":{"pattern":"^[a-z-]+$"}}`, `{"Some_Key":1}`,
		`/x/Some_Key: got a key of this name, expected each key matching ^[a-z-]+$; did you mean "some-key"?`},
	{"a key that misses a pattern", `{"type":"object","properties":{"etag":{"type":"string"}},"patternProperties":{"^x-":{"type":"string"}},"additionalProperties":false}`, `{"trace":"1"}`,
		`/x/trace: got an unexpected key with the string "1", expected only etag and keys matching ^x-; did you mean "x-trace"?`},
	{"the same items", `{"type":"array","uniqueItems":true}`, `["a","b","a"]`,
		`/x: got an array of 3 items, of which 0 and 2 are the same, expected an array, no item twice`},
	{"what a guard forbids", guard, `{"kind":"cash","number":"4"}`,
		`/x/number: got the string "4", expected it to be left out: it is an argument only where kind is "card"`},
	{"what a guard requires", guard, `{"kind":"card"}`,
		`/x/number: got nothing, expected a string (required where kind is "card")`},
	{"a guard of presence and not", `{"type":"object","properties":{"a":true,"b":{"type":"integer"},"m":{"enum":["x","y"]}},
		"if":{"required":["a"],"properties":{"m":{"not":{"const":"x"}}}},"then":{"properties":{"b":false}}}`, `{"a":1,"m":"y","b":2}`,
		`/x/b: got the number 2, expected it to be left out: it is an argument only unless m is not "x" and a is given`},
	{"a UUID by its pattern", `{"type":"string","pattern":` + quoted(contract.PatternUUID) + `}`, `"12"`,
		`/x: got the string "12", expected a string, a UUID such as 123e4567-e89b-12d3-a456-426614174000`},
	{"a duration by its pattern", `{"type":"string","pattern":` + quoted(contract.PatternDuration) + `}`, `"1 hour"`,
		`/x: got the string "1 hour", expected a string, a duration such as 1h30m or 500ms`},
	{"a date and time", `{"type":"string","format":"date-time","pattern":` + quoted(contract.PatternDateTime) + `}`, `"today"`,
		`/x: got the string "today", expected a string, a date and time such as 2006-01-02T15:04:05Z`},
	{"an ISO duration", `{"type":"string","format":"duration"}`, `"1h"`,
		`/x: got the string "1h", expected a string, a duration such as P1DT2H`},
}

func quoted(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// Each kind of constraint says what is wrong, the same way each time.
func TestMessages(t *testing.T) {
	t.Parallel()
	for _, tc := range messages {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c := around(t, tc.x, "")
			for range 5 {
				_, found := check(c, json.RawMessage(`{"x":`+tc.in+`}`))
				var lines []string
				for _, v := range found {
					lines = append(lines, v.String())
				}
				if got := strings.Join(lines, "\n"); got != tc.want {
					t.Fatalf("got\n%s\nwant\n%s", got, tc.want)
				}
			}
		})
	}
}

// However many alternatives there are and however long their names, a message is bounded, and of a secret it has nothing.
func TestMessagesAreBoundedAndDiscreet(t *testing.T) {
	t.Parallel()
	var each []string
	for i := range 300 {
		name := strings.Repeat(fmt.Sprintf("n%d", i), 100)
		each = append(each, fmt.Sprintf(`{"type":"object","properties":{%q:{"type":"string"},"b%d":{"enum":[%q]}},"required":[%q,"b%d"]}`, name, i, name, name, i))
	}
	_, found := check(around(t, `{"anyOf":[`+strings.Join(each, ",")+`]}`, ""), json.RawMessage(`{"x":{"z":1}}`))
	if len(found) != 1 || len(found[0].String()) > 1000 || !strings.Contains(found[0].Expected, "one of 300 alternatives; nearest is ") {
		t.Errorf("got %d bytes: %v", len(fmt.Sprint(found)), found)
	}
	const secret = "hunter2-hunter2"
	for _, x := range []string{
		`{"type":"object","properties":{"za":{"type":"string","writeOnly":true}},"required":["za"]}`,
		`{"anyOf":[{"type":"object","properties":{"a":{"type":"integer","writeOnly":true}},"required":["a","b"]},{"type":"object","properties":{"c":{"type":"integer"}},"required":["c","d"]}]}`,
		`{"oneOf":[{"type":"object","properties":{"a":{"type":"string","writeOnly":true}}},{"type":"object","properties":{"a":{"type":"string"}}}]}`,
		`{"type":"object","properties":{"k":{"enum":["x","y"]},"a":{"type":"string","writeOnly":true}},"if":{"properties":{"k":{"const":"x"}},"required":["k"]},"then":true,"else":{"properties":{"a":false}}}`,
		`{"type":"object","properties":{"z":{"type":"integer","writeOnly":true}},"unevaluatedProperties":false}`,
		`{"type":"object","properties":{"z":{"type":"integer","writeOnly":true}},"propertyNames":{"enum":["z"]}}`,
		`{"type":"object","properties":{"l":{"type":"array","items":{"type":"string","writeOnly":true},"contains":{"const":"q"},"uniqueItems":true}},"required":["l"],"patternProperties":{"^s-":{"type":"integer","writeOnly":true}},"additionalProperties":false}`,
	} {
		for _, in := range []string{`{"a":%q}`, `{"zz":%q}`, `{"k":"y","a":%q}`, `{"a":%q,"c":"x"}`, `{"s-a":%q}`, `{"l":[%[1]q,%[1]q]}`} {
			c := around(t, x, "")
			if _, found := check(c, json.RawMessage(fmt.Sprintf(`{"x":`+in+`}`, secret))); strings.Contains(fmt.Sprint(found), "hunter") {
				t.Errorf("%s: %s: %v", x, in, found)
			}
		}
	}
}
