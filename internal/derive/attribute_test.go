package derive_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/catalogd/catalogd/contract"
)

func TestAttributes(t *testing.T) {
	t.Parallel()
	const definitions = `#Token: string @secret(), #D: {a?: int @title("A"), kids?: [...#D]}`
	for name, tc := range map[string]struct{ args, properties string }{
		"all": {"// A city.\nx!: string @title(\"The <city>\") @examples(\"Rome\", \"\\u00e9\") @deprecated() @secret()",
			`"x":{"type":"string","title":"The <city>","description":"A city.","examples":["Rome","\u00e9"],"deprecated":true,"writeOnly":true}`},
		"deep": {`x?: {y?: [...{z?: int @examples(1, 2.0)}], p!: string @secret()}`,
			`"x":{"type":"object","properties":{"y":{"type":"array","items":{"type":"object","properties":{"z":{"type":"integer","examples":[1,2.0]}},"additionalProperties":false}},"p":{"type":"string","writeOnly":true}},"required":["p"],"additionalProperties":false}`},
		"a struct":           {`x?: {y?: int} @title("X") @examples({"y": 5}, {})`, `"x":{"type":"object","title":"X","properties":{"y":{"type":"integer"}},"additionalProperties":false,"examples":[{"y":5},{}]}`},
		"a default":          {`x: *1 | int @title("X")`, `"x":{"type":"integer","title":"X","default":1}`},
		"names of a pattern": {`x?: {[string]: string @secret()}`, `"x":{"type":"object","additionalProperties":{"type":"string","writeOnly":true}}`},
		"a secret by name":   {`x!: #Token`, `"x":{"type":"string","writeOnly":true}`},
		"bytes":              {`x!: bytes @examples("YWJj")`, `"x":{` + base64 + `,"examples":["YWJj"]}`},
		"recursive": {`x?: #D @title("X") @examples({"kids": [{"a": 1}]})`,
			`"x":{"$ref":"#/$defs/D","title":"X","examples":[{"kids":[{"a":1}]}]}`},
		"headers":             {`x?: string @header("Region"), y: {z: *true | bool @header("Z"), n?: int | null @header("N")}`, `"x":{"type":"string","x-mcp-header":"Region"},"y":{"type":"object","properties":{"z":{"type":"boolean","default":true,"x-mcp-header":"Z"},"n":{"type":["integer","null"],"x-mcp-header":"N"}},"additionalProperties":false,"default":{"z":true}}`},
		"a header in a guard": {"k!: string\nif k == \"a\" {x?: string @header(\"X\")}", `"k":{"type":"string"},"x":{"type":"string","x-mcp-header":"X"}`},
		"of other tools":      {`x!: string @go(X) @protobuf(1,string) @json(x,omitempty)`, `"x":{"type":"string"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec, _, problems := args(t, definitions, tc.args, contract.Closed)
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			var got struct {
				Properties json.RawMessage `json:"properties"`
			}
			if err := json.Unmarshal(spec.Schema, &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff("{"+tc.properties+"}", string(got.Properties)); diff != "" {
				t.Error(diff)
			}
			if _, err := contract.New(spec, nil); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestSecretField(t *testing.T) {
	t.Parallel()
	spec, _, problems := args(t, "", "a!: string @secret()\nb!: string", contract.Closed)
	if len(problems) > 0 || !spec.Fields[0].Secret || spec.Fields[1].Secret {
		t.Errorf("%v %v", problems, spec.Fields)
	}
}

// A secret is one under every guard, whether the schema can say the guard or not.
func TestSecretUnderGuard(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"exact": "k!: \"a\" | \"b\"\nif k == \"a\" {s!: string @secret()}",
		"two":   "k!: \"a\" | \"b\"\nif k == \"a\" {s!: string}\nif k == \"b\" {s!: int @secret()}",
		"lossy": "k!: int\nif k*2 > 5 {s!: string @secret()}",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec, _, problems := args(t, "", text, contract.Closed)
			if f, ok := spec.Field("s"); problems.HasErrors() || !ok || !f.Secret {
				t.Errorf("%v %v\n%s", problems, spec.Fields, spec.Schema)
			}
		})
	}
}

// An attribute may stand in another file than the rest of its field.
func TestAttributesOfSeveralFiles(t *testing.T) {
	t.Parallel()
	v := catalog(t, map[string]string{
		"a.cue": "package catalog\n\ntools: x: args: a!: string\n",
		"b.cue": "package catalog\n\ntools: x: args: a: !=\"\" @secret() @title(\"A\")\n",
	})
	spec, _, problems := deriveTool(v, contract.Closed)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	const want = `{"type":"object","properties":{"a":{"type":"string","title":"A","not":{"const":""},"writeOnly":true}},"additionalProperties":false}`
	if diff := cmp.Diff(want, string(spec.Schema)); diff != "" {
		t.Error(diff)
	}
	if f, _ := spec.Field("a"); !f.Secret || spec.Remainder == nil {
		t.Errorf("got %v %v, want a secret and a contract that CUE decides", f, spec.Remainder)
	}
}

func TestBadAttributes(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ args, want string }{
		"title without a text":         {`x!: string @title()`, `6:12 error: @title takes one text: @title("...")`},
		"title of a word":              {`x!: string @title(City)`, `6:12 error: @title takes one text: @title("...")`},
		"examples that are no JSON":    {`x!: string @examples(Rome)`, `6:12 error: @examples takes values in JSON: @examples("a", 5, {"b": [true]})`},
		"no examples":                  {`x!: string @examples()`, `6:12 error: @examples takes values in JSON: @examples("a", 5, {"b": [true]})`},
		"an example of another type":   {`x!: int @examples(1, "one")`, `6:9 error: the example "one" is invalid: it is the string "one", and what is taken is an integer`},
		"an example beyond a bound":    {`x?: {y?: int & >5 @examples(5)}`, `6:19 error: the example 5 is invalid: it is the number 5, and what is taken is an integer, greater than 5`},
		"an example that CUE refuses":  {`x!: string & >"m" @examples("a")`, `6:19 error: the example "a" is invalid: invalid value "a" (out of bound >"m")`},
		"an example that is no base64": {`x!: bytes @examples("abc")`, `6:11 error: the example "abc" is invalid: `},
		"an example of bytes":          {`x!: bytes & >'m' @examples("YWJj")`, `6:18 error: the example "YWJj" is invalid: invalid value 'abc' (out of bound >'m')`},
		"an example with unknown key":  {`x?: {y?: int} @examples({"z": 1})`, `6:15 error: the example {"z":1} is invalid: `},
		"deprecated with a reason":     {`x!: string @deprecated("use y")`, `6:12 error: @deprecated takes nothing: @deprecated()`},
		"secret with a text":           {`x!: string @secret(true)`, `6:12 error: @secret takes nothing: @secret()`},
		"secret inside the braces":     {"x?: {\n@secret()\na?: int}", `7:1 error: @secret is inside the braces, where it has no effect: write it after the closing brace`},
		"header without a name":        {`x!: string @header()`, `6:12 error: @header takes the name of a header behind Mcp-Param-: @header("Region")`},
		"header of no name":            {`x!: string @header("a b")`, `6:12 error: @header can't be kept: "a b" is not a header name (RFC 9110, 5.1)`},
		"header of a list":             {`x!: [...string] @header("X")`, `6:17 error: @header can't be kept: its type is array, and only a string, an integer or a boolean can be mirrored`},
		"header of a fraction":         {`x!: number @header("X")`, `6:12 error: @header can't be kept: its type is number, and only a string, an integer or a boolean can be mirrored`},
		"header in a list":             {`x!: [...{y?: string @header("X")}]`, `6:21 error: @header can't be kept: only a property that properties alone lead to can have it`},
		"two headers of one name":      {"x!: string @header(\"X\")\ny!: int @header(\"x\")", `7:9 error: @header can't be kept: "x" is the name of /x too`},
		"header of a secret":           {`x!: string @header("X") @secret()`, `6:12 error: @header would repeat a secret where proxies log it; take @header or @secret away`},
		"titel":                        {`x!: string @titel("X")`, `6:12 warning: there is no attribute @titel; is @title meant?`},
		"Secret":                       {`x!: string @Secret()`, `6:12 warning: there is no attribute @Secret; is @secret meant?`},
		"example":                      {`x!: string @example("X")`, `6:12 warning: there is no attribute @example; is @examples meant?`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, problems := args(t, "", tc.args, contract.Closed)
			if len(problems) != 1 {
				t.Fatalf("%v", problems)
			}
			p := problems[0]
			got := fmt.Sprintf("%d:%d %s: %s", p.Line, p.Col, p.Severity, p.Message)
			if len(got) > len(tc.want) && tc.want[len(tc.want)-1] == ' ' {
				got = got[:len(tc.want)]
			}
			if got != tc.want || p.Code != "bad_attribute" {
				t.Errorf("%s %s\nwant %s", p.Code, got, tc.want)
			}
		})
	}
}
