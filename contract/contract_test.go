package contract_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/catalogd/catalogd/contract"
)

// weather has a bit of everything that a contract can say.
const weather = `{
	"type": "object",
	"properties": {
		"city": {"description": "The city.", "type": "string", "minLength": 1},
		"units": {"type": "string", "enum": ["celsius", "fahrenheit"], "default": "celsius"},
		"limit": {"type": "integer", "minimum": 1, "maximum": 100},
		"ratio": {"type": "number"},
		"code": {"type": "string", "pattern": "^[a-z]+$"},
		"opts": {
			"type": "object",
			"properties": {
				"deep": {"type": "integer", "default": 7},
				"tags": {"type": "array", "items": {"type": "string"}, "maxItems": 2, "uniqueItems": true}
			},
			"additionalProperties": false
		},
		"rows": {"type": "array", "items": {"$ref": "#/$defs/Row"}},
		"pick": {"anyOf": [{"type": "null"}, {"type": "object", "properties": {"n": {"type": "integer"}, "m": {"type": "integer", "default": 3}}, "required": ["n"], "additionalProperties": false}]},
		"map": {"type": "object", "additionalProperties": {"type": "integer"}}
	},
	"required": ["city"],
	"additionalProperties": false,
	"$defs": {"Row": {"type": "object", "properties": {"v": {"type": "integer", "default": 1}, "next": {"$ref": "#/$defs/Row"}}, "additionalProperties": false}}
}`

func fields(t testing.TB, schema string) (out []contract.Field) {
	t.Helper()
	var s struct {
		Properties map[string]struct {
			Default json.RawMessage `json:"default"`
		} `json:"properties"`
		Required []string `json:"required"`
	}
	if err := json.Unmarshal([]byte(schema), &s); err != nil {
		t.Fatal(err)
	}
	for name, p := range s.Properties {
		f := contract.Field{Name: name, Default: p.Default}
		for _, r := range s.Required {
			f.Required = f.Required || r == name
		}
		out = append(out, f)
	}
	return out
}

func compile(t testing.TB, schema string, strictness contract.Strictness) *contract.Contract {
	t.Helper()
	c, err := contract.New(contract.Spec{Schema: json.RawMessage(schema), Strictness: strictness, Fields: fields(t, schema)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestCheckAccepts(t *testing.T) {
	t.Parallel()
	c := compile(t, weather, contract.Closed)
	for name, tc := range map[string]struct{ in, want string }{
		"a default":             {`{"city":"Paris"}`, `{"city":"Paris","units":"celsius"}`},
		"a default kept":        {`{"units":"fahrenheit", "city":"x"}`, `{"city":"x","units":"fahrenheit"}`},
		"a nested default":      {`{"city":"x","opts":{}}`, `{"city":"x","opts":{"deep":7},"units":"celsius"}`},
		"through $ref":          {`{"city":"x","rows":[{"next":{}}]}`, `{"city":"x","rows":[{"next":{"v":1},"v":1}],"units":"celsius"}`},
		"in an alternative":     {`{"city":"x","pick":{"n":1.0}}`, `{"city":"x","pick":{"m":3,"n":1},"units":"celsius"}`},
		"zero fraction":         {`{"city":"x","limit":5.0}`, `{"city":"x","limit":5,"units":"celsius"}`},
		"exponent":              {`{"city":"x","limit":1e2}`, `{"city":"x","limit":100,"units":"celsius"}`},
		"negative exponent":     {`{"city":"x","limit":500e-2}`, `{"city":"x","limit":5,"units":"celsius"}`},
		"minus zero":            {`{"city":"x","opts":{"deep":-0}}`, `{"city":"x","opts":{"deep":0},"units":"celsius"}`},
		"digits above 2^53":     {`{"city":"x","opts":{"deep":9007199254740993}}`, `{"city":"x","opts":{"deep":9007199254740993},"units":"celsius"}`},
		"a number's own digits": {`{"city":"x","ratio":1.50e1}`, `{"city":"x","ratio":1.50e1,"units":"celsius"}`},
		"a map":                 {`{"city":"x","map":{"a":2.0}}`, `{"city":"x","map":{"a":2},"units":"celsius"}`},
		"escapes":               {`{"city":"\u0041\ud83d\ude00\n\u0001\/\""}`, `{"city":"A😀\n\u0001/\"","units":"celsius"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args, found := check(c, json.RawMessage(tc.in))
			if len(found) > 0 {
				t.Fatal(found)
			}
			if got := string(args.JSON()); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestCheckRefuses(t *testing.T) {
	t.Parallel()
	c := compile(t, weather, contract.Closed)
	deep := strings.Repeat(`[`, 200) + strings.Repeat(`]`, 200)
	for name, tc := range map[string]struct {
		in   string
		want []string
	}{
		"nothing":     {``, []string{`/city: got nothing, expected a string, at least 1 character long (required)`}},
		"null":        {`null`, []string{`arguments: got null, expected an object of arguments by name`}},
		"an array":    {`[1]`, []string{`arguments: got an array of 1 item, expected an object of arguments by name`}},
		"a string":    {`"{}"`, []string{`arguments: got the string "{}", expected an object of arguments by name`}},
		"a duplicate": {`{"city":"a","opts":{"deep":1,"deep":2}}`, []string{`/opts/deep: got the key twice in one object, expected each key once`}},
		"escaped duplicate": {`{"city":"a","c\u0069ty":"b"}`,
			[]string{`/city: got the key twice in one object, expected each key once`}},
		"all at once, sorted": {`{"cty":"Paris","units":"kelvin","limit":0,"code":"A1","opts":{"deep":"x","tags":["a","a","b"]}}`, []string{
			`/city: got nothing, expected a string, at least 1 character long (required)`,
			`/code: got the string "A1", expected a string, matching ^[a-z]+$`,
			`/cty: got an unexpected key with the string "Paris", expected only city, code, limit, map, opts, pick, ratio, rows, units; did you mean "city"?`,
			`/limit: got the number 0, expected an integer, at least 1, at most 100`,
			`/opts/deep: got the string "x", expected an integer`,
			`/opts/tags: got an array of 3 items, expected an array, at most 2 items, no item twice`,
			`/units: got the string "kelvin", expected one of "celsius", "fahrenheit"`,
		}},
		"no coercion":        {`{"city":"x","limit":"5"}`, []string{`/limit: got the string "5", expected an integer, at least 1, at most 100`}},
		"a fraction":         {`{"city":"x","limit":5.5}`, []string{`/limit: got the number 5.5, expected an integer, at least 1, at most 100`}},
		"in an alternative":  {`{"city":"x","pick":{"n":"a","o":1}}`, []string{`/pick/n: got the string "a", expected an integer`, `/pick/o: got an unexpected key with the number 1, expected only m, n`}},
		"no alternative":     {`{"city":"x","pick":5}`, []string{`/pick: got the number 5, expected null or an object`}},
		"below a $ref":       {`{"city":"x","rows":[{},{"next":{"v":null}}]}`, []string{`/rows/1/next/v: got null, expected an integer`}},
		"1e400":              {`{"city":"x","ratio":1e400}`, []string{`/ratio: got the number 1e400, expected a number that a 64-bit float can hold`}},
		"1e1000000000":       {`{"city":"x","ratio":1e1000000000,"limit":-1E-99999999999999999999}`, []string{`/limit: got the number -1E-99999999999999999999, expected a number that a 64-bit float can hold`, `/ratio: got the number 1e1000000000, expected a number that a 64-bit float can hold`}},
		"a million digits":   {`{"city":"x","ratio":` + strings.Repeat("1", 1e6) + `}`, []string{`/ratio: got the number ` + strings.Repeat("1", 59) + `…, expected a number that a 64-bit float can hold`}},
		"a lone surrogate":   {`{"city":"\ud800"}`, []string{`/city: got broken JSON at byte 9, expected both halves of a surrogate pair`}},
		"invalid UTF-8":      {"{\"city\":\"\xff\"}", []string{`/city: got broken JSON at byte 9, expected text in UTF-8`}},
		"too deep":           {`{"city":` + deep + `}`, []string{`arguments: got broken JSON at byte 135, expected at most 128 levels of nesting`}},
		"trailing":           {`{"city":"x"} {}`, []string{`arguments: got broken JSON at byte 13, expected one JSON object and nothing after it`}},
		"leading zero":       {`{"city":"x","limit":05}`, []string{`/limit: got broken JSON at byte 21, expected a number without leading zeros`}},
		"a pointer's escape": {`{"city":"x","a/b~":1}`, []string{`/a~1b~0: got an unexpected key with the number 1, expected only city, code, limit, map, opts, pick, ratio, rows, units`}},
		"a long value": {`{"city":"x","units":"` + strings.Repeat("é", 500) + `"}`,
			[]string{`/units: got the string "` + strings.Repeat("é", 58) + `…, expected one of "celsius", "fahrenheit"`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, found := check(c, json.RawMessage(tc.in))
			var got []string
			for _, v := range found {
				got = append(got, v.String())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestStrictness(t *testing.T) {
	t.Parallel()
	const base = `{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]`
	open := compile(t, base+`}`, contract.Open)
	exact := compile(t, base+`,"additionalProperties":false}`, contract.Exact)
	args, found := check(open, json.RawMessage(`{"a":1,"b":2.50}`))
	if len(found) > 0 || string(args.JSON()) != `{"a":1,"b":2.50}` {
		t.Errorf("open: %s %v", args.JSON(), found)
	}
	if _, found := check(exact, json.RawMessage(`{"a":1,"b":2}`)); len(found) != 1 || found[0].Nearest != "" {
		t.Errorf("exact: %v", found)
	}
}

func newRefusesContradictions(t *testing.T) {
	t.Parallel()
	field := []contract.Field{{Name: "a"}}
	for name, tc := range map[string]struct {
		spec contract.Spec
		want string
	}{
		"no schema":          {contract.Spec{Strictness: contract.Closed}, "broken JSON"},
		"not an object":      {contract.Spec{Strictness: contract.Closed, Schema: json.RawMessage(`{"type":"array"}`)}, `must be "object"`},
		"no strictness":      {contract.Spec{Schema: json.RawMessage(`{"type":"object"}`)}, "strictness"},
		"closed but open":    {contract.Spec{Strictness: contract.Closed, Schema: json.RawMessage(`{"type":"object"}`)}, "additionalProperties"},
		"open but closed":    {contract.Spec{Strictness: contract.Open, Schema: json.RawMessage(`{"type":"object","additionalProperties":false}`)}, "additionalProperties"},
		"a field too many":   {contract.Spec{Strictness: contract.Open, Schema: json.RawMessage(`{"type":"object"}`), Fields: field}, "1 fields for 0"},
		"exact, optional":    {contract.Spec{Strictness: contract.Exact, Schema: json.RawMessage(`{"type":"object","properties":{"a":true},"additionalProperties":false}`), Fields: field}, "not required"},
		"a file":             {contract.Spec{Strictness: contract.Open, Schema: json.RawMessage(`{"type":"object","$ref":"file:///etc/passwd"}`)}, "no such definition"},
		"a file, by $schema": {contract.Spec{Strictness: contract.Open, Schema: json.RawMessage(`{"$schema":"file:///etc/passwd","type":"object"}`)}, "can't refer"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := contract.New(tc.spec, nil)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

// TestFalse: where false stands for a schema, nothing is accepted there, and nothing else changes.
func TestFalse(t *testing.T) {
	t.Parallel()
	const around = `{"type":"object","properties":{"a":%s},"additionalProperties":false}`
	for _, tc := range []struct{ schema, accepted, refused, want string }{
		{`false`, `{}`, `{"a":1}`, `[/a: got the number 1, expected it to be left out]`},
		{`{"anyOf":[{"type":"object","properties":{"kind":{"const":"circle"},"r":{"type":"number"}},"required":["kind","r"]},{"type":"object","properties":{"kind":{"const":"square"},"side":{"type":"number"}},"required":["kind","side"]}]}`,
			`{"a":{"kind":"square","side":1}}`, `{"a":{"kind":"triangle","r":1}}`, `[/a/kind: got the string "triangle", expected one of "circle", "square"]`},
		{`{"anyOf":[{"type":"object","properties":{"kind":{"const":"circle"}},"required":["kind"]},{"type":"object","properties":{"kind":{"const":"square"}},"required":["kind"]}]}`,
			`{"a":{"kind":"square"}}`, `{"a":{"r":1}}`, `[/a/kind: got nothing, expected one of "circle", "square" (required)]`},
		{`{"anyOf":[false,{"type":"integer"}]}`, `{"a":1}`, `{"a":[]}`, `[/a: got an array of 0 items, expected an integer]`},
		{`{"prefixItems":[false]}`, `{"a":[]}`, `{"a":[1]}`, `[/a/0: got the number 1, expected no item at this place]`},
		{`{"items":false}`, `{"a":[]}`, `{"a":[1]}`, `[/a/0: got the number 1, expected no further item]`},
		{`{"patternProperties":{"^x":false}}`, `{"a":{"y":1}}`, `{"a":{"x":1}}`, `[/a/x: got the number 1, expected it to be left out: no key may match ^x]`},
	} {
		c, err := contract.New(contract.Spec{
			Schema: json.RawMessage(fmt.Sprintf(around, tc.schema)), Strictness: contract.Closed, Fields: []contract.Field{{Name: "a"}},
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, violations := check(c, json.RawMessage(tc.accepted)); violations != nil {
			t.Errorf("%s: %s: %v", tc.schema, tc.accepted, violations)
		}
		if _, violations := check(c, json.RawMessage(tc.refused)); fmt.Sprint(violations) != tc.want {
			t.Errorf("%s: %s: got %v, want %s", tc.schema, tc.refused, violations, tc.want)
		}
	}
}

func violationsAreBounded(t *testing.T) {
	t.Parallel()
	c := compile(t, weather, contract.Closed)
	var b bytes.Buffer
	b.WriteString(`{"city":"x","rows":[0`)
	for range 100_000 {
		b.WriteString(`,0`)
	}
	b.WriteString(`]}`)
	_, found := check(c, b.Bytes())
	if len(found) != 100 {
		t.Errorf("%d violations", len(found))
	}
}

// A spec that is handed out is a copy: nothing that a caller does to it reaches the contract.
func TestSpecIsACopy(t *testing.T) {
	t.Parallel()
	c := compile(t, weather, contract.Closed)
	s := c.Spec()
	s.Schema[0], s.Fields[0].Name = 'x', "x"
	if again := c.Spec(); again.Schema[0] != '{' || again.Fields[0].Name == "x" {
		t.Error("the contract changed")
	}
}

func TestConcurrentChecks(t *testing.T) {
	t.Parallel()
	c := compile(t, weather, contract.Closed)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 200 {
				if _, found := check(c, json.RawMessage(`{"city":"x","opts":{},"rows":[{}]}`)); len(found) > 0 {
					t.Error(found)
				}
			}
		})
	}
	wg.Wait()
}

func FuzzCheck(f *testing.F) {
	for _, s := range []string{`{"city":"x"}`, `{"city":"x","rows":[{"next":{"v":5.0}}]}`, `{"city":"\ud83d\ude00","pick":{"n":1e2}}`, `{"limit":"5","a":{}}`, `[`, `{"city":1e400}`} {
		f.Add([]byte(s))
	}
	c := compile(f, weather, contract.Closed)
	f.Fuzz(func(t *testing.T, raw []byte) {
		args, found := check(c, raw)
		if len(found) > 0 {
			for _, v := range found {
				if v.Expected == "" || v.Got == "" || len(v.Got) > 400 {
					t.Errorf("a violation that does not help: %+v", v)
				}
			}
			return
		}
		if !json.Valid(args.JSON()) {
			t.Fatalf("accepted, and not JSON: %s", args.JSON())
		}
		again, found := check(c, args.JSON())
		if len(found) > 0 || !bytes.Equal(again.JSON(), args.JSON()) {
			t.Fatalf("%s checks to %s, %v", args.JSON(), again.JSON(), found)
		}
	})
}

// An integer keeps its value however it is written.
func FuzzInteger(f *testing.F) {
	for _, s := range []string{"5.0", "1e2", "-0", "-12.300e1", "0.001e3", "9007199254740993", "1.5e0"} {
		f.Add(s)
	}
	c := compile(f, `{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}`, contract.Closed)
	f.Fuzz(func(t *testing.T, s string) {
		args, found := check(c, json.RawMessage(`{"n":`+s+`}`))
		if len(found) > 0 {
			return
		}
		v, _ := args.Lookup("n")
		got := string(v.(json.Number))
		want, ok := new(big.Rat).SetString(strings.TrimSpace(s))
		have, ok2 := new(big.Int).SetString(got, 10)
		if !ok || !ok2 || !want.IsInt() || want.Num().Cmp(have) != 0 {
			t.Errorf("%q became %q", s, got)
		}
	})
}

func absurdNumbersCostNothing(t *testing.T) {
	t.Parallel()
	c := compile(t, weather, contract.Closed)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 1000 {
			check(c, json.RawMessage(`{"city":"x","limit":1e1000000000,"ratio":-1e-1000000000}`))
		}
	}()
	select {
	case <-done:
	case <-time.After(30 * time.Second): // one such number as digits would take longer than this
		t.Fatal("numbers are expanded")
	}
}

func BenchmarkCheck(b *testing.B) {
	c := compile(b, `{"type":"object","properties":{
		"city":{"type":"string","minLength":1},"units":{"type":"string","enum":["celsius","fahrenheit"],"default":"celsius"},
		"limit":{"type":"integer","minimum":1,"maximum":100},"verbose":{"type":"boolean"},"tag":{"type":"string","pattern":"^[a-z]+$"}},
		"required":["city"],"additionalProperties":false}`, contract.Closed)
	raw := json.RawMessage(`{"city":"Paris","units":"celsius","limit":10,"verbose":true,"tag":"abc"}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, found := check(c, raw); len(found) > 0 {
			b.Fatal(found)
		}
	}
}

// What New takes for plain must compile, or a broken schema would show at the first call.
func TestPlainSchemasCompile(t *testing.T) {
	t.Parallel()
	for _, broken := range []string{
		`"minLength":"1"`, `"minLength":-1`, `"minLength":1.5`, `"pattern":"("`, `"pattern":1`, `"type":"text"`, `"type":[]`, `"type":["string","string"]`,
		`"enum":1`, `"required":["a","a"]`, `"anyOf":[]`, `"anyOf":{}`, `"items":1`, `"properties":[]`, `"patternProperties":{"(":true}`,
		`"$ref":"#/$defs/no"`, `"$ref":"other.json"`, `"uniqueItems":1`, `"minimum":"1"`, `"description":1`, `"format":1`, `"multipleOf":0`, `"not":[]`,
	} {
		schema := `{"type":"object","properties":{"a":{` + broken + `}}}`
		_, err := contract.New(contract.Spec{Schema: json.RawMessage(schema), Strictness: contract.Open, Fields: []contract.Field{{Name: "a"}}}, nil)
		if err == nil {
			t.Errorf("%s: accepted", broken)
		}
	}
}

func BenchmarkNew(b *testing.B) {
	spec := compile(b, weather, contract.Closed).Spec()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := contract.New(spec, nil); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkNewAndFirstCheck(b *testing.B) {
	spec := compile(b, weather, contract.Closed).Spec()
	b.ReportAllocs()
	for b.Loop() {
		c, err := contract.New(spec, nil)
		if err != nil {
			b.Fatal(err)
		}
		check(c, json.RawMessage(`{"city":"x"}`))
	}
}

// check is Check of a contract that needs no CUE.
func check(c *contract.Contract, raw json.RawMessage) (contract.Args, []contract.Violation) {
	args, found, err := c.Check(context.Background(), raw)
	if err != nil {
		panic(err)
	}
	return args, found
}
