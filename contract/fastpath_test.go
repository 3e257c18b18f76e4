package contract_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/contract"
)

// The short way to yes never accepts what the validator refuses: each contract answers like one that says the same in a
// way that only the validator understands ("allOf": [true]).
func TestShortWay(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(3, 4))
	values := []string{`null`, `true`, `false`, `0`, `-0`, `1`, `7`, `-3`, `5.0`, `1e1`, `2.5`, `9007199254740993`, `99999999999999999999`, `""`, `"a"`, `"b"`, `"a"`, `"b"`,
		`"\u00e9"`, `"\ud83d\ude00"`, `"1"`, `[]`, `["a"]`, `["a","b","c"]`, `[1,2]`, `[[1]]`, `{}`, `{"p":1}`, `{"p":"a","q":null}`}
	var schema func(depth int) string
	schema = func(depth int) string {
		pick := func(of ...string) string { return of[rng.IntN(len(of))] }
		parts := []string{}
		add := func(p string) { parts = append(parts, p) }
		if rng.IntN(4) > 0 {
			add(`"type":` + pick(`"string"`, `"integer"`, `"number"`, `"boolean"`, `"null"`, `"array"`, `"object"`))
		}
		for _, k := range []string{
			`"enum":` + pick(`["a","b"]`, `["a",null,true]`, `[1]`, `[1.0,"a"]`), `"const":` + pick(`"a"`, `true`, `1`, `[]`),
			`"minLength":` + pick("0", "1", "2"), `"maxLength":` + pick("0", "1", "2"), `"minItems":` + pick("1", "2"), `"maxItems":` + pick("0", "2"),
			`"minimum":` + pick("0", "2.5", "-3"), `"maximum":` + pick("7", "5.0", "9007199254740992"), `"pattern":"a"`, `"description":"d"`, `"default":` + pick(values...),
			`"exclusiveMinimum":0`, `"uniqueItems":true`, `"multipleOf":` + pick("1", "2", "0.5"), `"format":"date"`, `"writeOnly":true`,
			`"if":` + pick(`{"const":"a"}`, `{"type":"object","properties":{"p":{"const":1}},"required":["p"]}`, `{"not":{"enum":["a",null,1]}}`, `{"minLength":1}`),
			`"then":` + pick(`{"maxLength":1}`, `true`, `false`, `{"properties":{"q":{"default":3,"type":"integer"}}}`), `"else":` + pick(`{"type":"string"}`, `false`),
		} {
			if rng.IntN(6) == 0 {
				add(k)
			}
		}
		if depth > 0 && rng.IntN(3) == 0 {
			add(`"items":` + schema(depth-1))
		}
		if depth > 0 && rng.IntN(3) == 0 {
			add(fmt.Sprintf(`"properties":{"p":%s,"q":%s}`, schema(depth-1), schema(depth-1)))
		}
		if depth > 0 && rng.IntN(5) == 0 {
			add(fmt.Sprintf(`%q:[%s,%s]`, pick("anyOf", "oneOf", "allOf"), schema(depth-1), schema(depth-1)))
		}
		if rng.IntN(6) == 0 {
			add(`"required":["p"]`)
		}
		if rng.IntN(6) == 0 {
			add(`"additionalProperties":` + pick("true", "false", `{"type":"integer"}`))
		}
		return "{" + strings.Join(parts, ",") + "}"
	}
	accepted := 0
	for range 3000 {
		x := schema(2)
		specs := [2]*contract.Contract{}
		for i, more := range []string{"", `,"allOf":[true]`} {
			c, err := contract.New(contract.Spec{
				Schema:     json.RawMessage(`{"type":"object","properties":{"x":` + x + `},"required":["x"],"additionalProperties":false` + more + `}`),
				Strictness: contract.Closed, Fields: []contract.Field{{Name: "x", Required: true}},
			}, nil)
			if err != nil {
				t.Fatalf("%s: %v", x, err)
			}
			specs[i] = c
		}
		for range 12 {
			raw := json.RawMessage(`{"x":` + values[rng.IntN(len(values))] + `}`)
			short, shortFound := check(specs[0], raw)
			long, longFound := check(specs[1], raw)
			if !reflect.DeepEqual(shortFound, longFound) || string(short.JSON()) != string(long.JSON()) {
				t.Fatalf("%s: %s: %s %v; the validator: %s %v", x, raw, short.JSON(), shortFound, long.JSON(), longFound)
			}
			if shortFound == nil {
				accepted++
			}
		}
	}
	if accepted < 3000 {
		t.Errorf("only %d values were accepted at all", accepted)
	}
}
