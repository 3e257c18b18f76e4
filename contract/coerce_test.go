package contract_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/contract"
)

func lenient(t *testing.T, x string) *contract.Contract {
	t.Helper()
	c, err := contract.New(contract.Spec{
		Schema:     json.RawMessage(`{"type":"object","properties":{"x":` + x + `},"additionalProperties":false}`),
		Strictness: contract.Closed, Coerce: true, Fields: []contract.Field{{Name: "x"}},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestCoerce has what coercion does beyond the table of docs/arguments.md, and all that it does not do.
func TestCoerce(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ x, in, want string }{
		{`{"type":"integer"}`, `"5"`, `5`},
		{`{"type":"integer"}`, `"5.0"`, `5`},
		{`{"type":"integer"}`, `"-9007199254740993"`, `-9007199254740993`},
		{`{"type":"number"}`, `"2.50"`, `2.50`},
		{`{"type":"boolean"}`, `"true"`, `true`},
		{`{"type":"boolean"}`, `"false"`, `false`},
		{`{"type":"string"}`, `7`, `"7"`},
		{`{"type":"string"}`, `7.10`, `"7.10"`},
		{`{"type":"string","enum":["7"]}`, `7`, `"7"`},
		{`{"enum":[1,2]}`, `"2"`, `2`},
		{`{"type":"array","items":{"type":"string"}}`, `"a"`, `["a"]`},
		{`{"type":"array","items":{"type":"integer"}}`, `"5"`, `[5]`},
		{`{"type":"array","items":{"type":"integer"}}`, `["5",6]`, `[5,6]`},
		{`{"type":"array","items":{"type":"object"}}`, `{}`, `[{}]`},
		{`{"type":"object","properties":{"n":{"type":"array","items":{"type":"boolean"}}}}`, `{"n":"true"}`, `{"n":[true]}`},
		{`{"anyOf":[{"type":"integer"},{"type":"boolean"}]}`, `"true"`, `true`},
		{`{"anyOf":[{"type":"null"},{"type":"object","properties":{"n":{"type":"integer"}}}]}`, `{"n":"1"}`, `{"n":1}`},
		{`{"type":"object","properties":{"on":{"type":"boolean"}},"if":{"properties":{"on":{"const":true}},"required":["on"]},"then":{"properties":{"n":{"type":"integer"}}}}`, `{"n":"1","on":"true"}`, `{"n":1,"on":true}`},
		// What has a declared kind stays as it is.
		{`{"type":["string","integer"]}`, `"5"`, `"5"`},
		{`{"type":"string"}`, `"7"`, `"7"`},
		{`true`, `"5"`, `"5"`},
		{`{"type":"array","items":true}`, `["5"]`, `["5"]`},
		// Nothing else becomes anything.
		{`{"type":"integer"}`, `"5.5"`, `/x: got the string "5.5", expected an integer`},
		{`{"type":"integer"}`, `" 5"`, `/x: got the string " 5", expected an integer`},
		{`{"type":"integer"}`, `"0x5"`, `/x: got the string "0x5", expected an integer`},
		{`{"type":"integer"}`, `"05"`, `/x: got the string "05", expected an integer`},
		{`{"type":"number"}`, `"1e999"`, `/x: got the string "1e999", expected a number`},
		{`{"type":"integer"}`, `""`, `/x: got the string "", expected an integer`},
		{`{"type":"integer"}`, `true`, `/x: got true, expected an integer`},
		{`{"type":"integer"}`, `null`, `/x: got null, expected an integer`},
		{`{"type":"integer"}`, `[5]`, `/x: got an array of 1 item, expected an integer`},
		{`{"type":"boolean"}`, `"True"`, `/x: got the string "True", expected true or false`},
		{`{"type":"boolean"}`, `1`, `/x: got the number 1, expected true or false`},
		{`{"type":"boolean"}`, `"yes"`, `/x: got the string "yes", expected true or false`},
		{`{"type":"string"}`, `true`, `/x: got true, expected a string`},
		{`{"type":"null"}`, `""`, `/x: got the string "", expected null`},
		{`{"type":"array"}`, `null`, `/x: got null, expected an array`},
		{`{"type":"object"}`, `"{}"`, `/x: got the string "{}", expected an object`},
		// The rest of the contract holds for what a value became.
		{`{"type":"integer","maximum":4}`, `"5"`, `/x: got the number 5, expected an integer, at most 4`},
		{`{"type":"string","pattern":"^[a-z]+$"}`, `7`, `/x: got the string "7", expected a string, matching ^[a-z]+$`},
	} {
		args, found := check(lenient(t, tc.x), json.RawMessage(`{"x":`+tc.in+`}`))
		got := strings.TrimSuffix(strings.TrimPrefix(string(args.JSON()), `{"x":`), "}")
		if found != nil {
			got = strings.Trim(fmt.Sprint(found), "[]")
		}
		if got != tc.want {
			t.Errorf("%s %s: got %s, want %s", tc.x, tc.in, got, tc.want)
		}
		if _, again := check(lenient(t, tc.x), args.JSON()); found == nil && again != nil {
			t.Errorf("%s %s: what it became is not accepted: %v", tc.x, tc.in, again)
		}
	}
}

// TestSecrets: what comes for a secret stands in no violation and in nothing that is shown, wherever it is declared.
func TestSecrets(t *testing.T) {
	t.Parallel()
	const secret = "hunter2-hunter2"
	c, err := contract.New(contract.Spec{
		Schema: json.RawMessage(`{"type":"object","properties":{
			"pass":{"type":"string","maxLength":3,"writeOnly":true},"pin":{"type":"integer"},
			"deep":{"type":"object","properties":{"key":{"type":"integer","writeOnly":true}},"additionalProperties":false},
			"many":{"type":"array","items":{"type":"object","properties":{"key":{"enum":["a"],"writeOnly":true}}}},
			"map":{"type":"object","additionalProperties":{"$ref":"#/$defs/S"}},
			"pick":{"anyOf":[{"type":"integer"},{"type":"string","maxLength":2,"writeOnly":true}]},
			"box":{"type":"object","properties":{"n":{"type":"integer"}},"writeOnly":true},
			"open":{"type":"string","maxLength":3}
		},"additionalProperties":false,"$defs":{"S":{"type":"string","maxLength":1,"writeOnly":true}}}`),
		Strictness: contract.Closed,
		Fields:     []contract.Field{{Name: "pass", Secret: true}, {Name: "pin", Secret: true}, {Name: "deep"}, {Name: "many"}, {Name: "map"}, {Name: "pick"}, {Name: "box"}, {Name: "open"}},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, in := range []string{
		`{"pass":"%s"}`, `{"pin":"%s"}`, `{"deep":{"key":"%s"}}`, `{"deep":{"kye":"%s"}}`, `{"many":[{"key":"%s"}]}`, `{"map":{"k":"%s"}}`,
		`{"pick":"%s"}`, `{"box":{"n":"%s"}}`, `{"pas":"%s"}`, `{"many":"%s"}`, `"%s"`,
	} {
		_, found := check(c, json.RawMessage(fmt.Sprintf(in, secret)))
		if told := fmt.Sprint(found); found == nil || strings.Contains(told, "hunter") || !strings.Contains(told, "not shown") {
			t.Errorf("%s: %s", in, told)
		}
	}
	for _, in := range []string{`{"pin":1e999}`, `{"deep":{"key":1e999}}`, `{"map":{"k":1e999}}`} {
		if _, found := check(c, json.RawMessage(in)); found == nil || strings.Contains(fmt.Sprint(found), "999") {
			t.Errorf("%s: %v", in, found)
		}
	}
	if _, found := check(c, json.RawMessage(`{"open":"visible"}`)); !strings.Contains(fmt.Sprint(found), "visible") {
		t.Errorf("what is no secret is hidden: %v", found)
	}
	args, found := check(c, json.RawMessage(`{"pin":12345,"map":{"k":"s"},"deep":{"key":67890},"many":[{"key":"a","n":1}],"box":{"n":1},"open":"abc"}`))
	if found != nil {
		t.Fatal(found)
	}
	const shown = `{"box":"REDACTED","deep":{"key":"REDACTED"},"many":[{"key":"REDACTED","n":1}],"map":{"k":"REDACTED"},"open":"abc","pin":"REDACTED"}`
	if got := string(c.Redact(args).JSON()); got != shown {
		t.Errorf("shown as %s", got)
	}
	if got := c.Secrets(args); !slices.Equal(slices.Sorted(slices.Values(got)), []string{"12345", "67890"}) {
		t.Errorf("masked as %s", got)
	}
}

// What CUE says of a call passes through the same sieve, and a computed argument is the caller's to leave out.
func TestRestIsDiscreet(t *testing.T) {
	t.Parallel()
	rest := func(context.Context, json.RawMessage) (json.RawMessage, []contract.Violation, error) {
		return nil, []contract.Violation{
			{Pointer: "/pass", Got: `the string "hunter2"`, Expected: "another"},
			{Pointer: "/other", Got: `the string "x"`, Expected: `more than "hunter2"`},
		}, nil
	}
	for _, strictness := range []contract.Strictness{contract.Closed, contract.Open} {
		schema := `{"type":"object","properties":{"pass":{"type":"string","writeOnly":true},"other":{"type":"string"}}`
		if strictness == contract.Closed {
			schema += `,"additionalProperties":false`
		}
		c, err := contract.New(contract.Spec{
			Schema: json.RawMessage(schema + `}`), Strictness: strictness,
			Fields:    []contract.Field{{Name: "pass", Secret: true}, {Name: "other"}, {Name: "sum", Computed: true}},
			Remainder: &contract.Remainder{Package: "p"},
		}, rest)
		if err != nil {
			t.Fatal(err)
		}
		_, found := check(c, json.RawMessage(`{"pass":"hunter2","other":"x"}`))
		if told := fmt.Sprint(found); strings.Contains(told, "hunter2") || !strings.Contains(told, `the string "x"`) {
			t.Errorf("%s", told)
		}
		_, found = check(c, json.RawMessage(`{"other":1,"sum":3}`))
		if got := fmt.Sprint(found); got != `[/other: got the number 1, expected a string /sum: got a value for a computed argument, expected it to be left out: it is computed from the other arguments]` {
			t.Errorf("%s: %s", strictness, got)
		}
	}
}

func TestTighten(t *testing.T) {
	t.Parallel()
	const schema = `{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"],"$defs":{"b":true}}`
	open := compile(t, schema, contract.Open)
	for _, to := range []contract.Strictness{contract.Closed, contract.Exact} {
		spec, err := open.Spec().Tighten(to)
		if err != nil {
			t.Fatal(err)
		}
		c, err := contract.New(spec, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(c.Spec().Schema); got != `{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"],"additionalProperties":false,"$defs":{"b":true}}` || c.Spec().Strictness != to {
			t.Errorf("%s: %s", to, got)
		}
		if _, found := check(c, json.RawMessage(`{"a":1,"b":2}`)); len(found) != 1 {
			t.Errorf("%s: %v", to, found)
		}
		for _, weaker := range []contract.Strictness{contract.Open, contract.Closed} {
			if _, err := c.Spec().Tighten(weaker); err == nil {
				t.Errorf("%s became %s", to, weaker)
			}
		}
	}
	if _, found := check(open, json.RawMessage(`{"a":1,"b":2}`)); found != nil {
		t.Errorf("the contract itself changed: %v", found)
	}
	optional := compile(t, `{"type":"object","properties":{"a":{"type":"integer"}},"additionalProperties":false}`, contract.Closed)
	if _, err := optional.Spec().Tighten(contract.Exact); err == nil || !strings.Contains(err.Error(), `"a"`) {
		t.Errorf("exact with an optional argument: %v", err)
	}
}
