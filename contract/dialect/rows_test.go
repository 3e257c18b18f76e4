package dialect_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/contract/dialect"
)

// row is one test under the number that the list of bad inputs gives to what it holds against (docs/robustness.md).
type row struct {
	name string
	test func(*testing.T)
}

func TestBadInput(t *testing.T) {
	for _, r := range []row{
		{"A39/recursion", recursion},
		{"A40/odd names", oddNames},
		{"A41/optional in strict", optionalInStrict},
		{"A42/limits of strict", strictLimits},
	} {
		t.Run(r.name, r.test)
	}
}

func tool(properties, more string) dialect.Tool {
	return dialect.Tool{Name: "t", Description: "d", Input: json.RawMessage(`{"type":"object","properties":{` + properties + `},"additionalProperties":false` + more + `}`)}
}

// Recursion is said by $ref where there is $ref, and refused with that reason by Gemini, whether direct or by way of
// another definition.
func recursion(t *testing.T) {
	t.Parallel()
	for name, defs := range map[string]string{
		"direct":   `"R":{"type":"object","properties":{"next":{"$ref":"#/$defs/R"}},"additionalProperties":false}`,
		"in turns": `"R":{"type":"object","properties":{"next":{"$ref":"#/$defs/S"}},"additionalProperties":false},"S":{"type":"object","properties":{"next":{"$ref":"#/$defs/R"}},"additionalProperties":false}`,
		"in lists": `"R":{"type":"object","properties":{"all":{"type":"array","items":{"$ref":"#/$defs/R"}}},"additionalProperties":false}`,
	} {
		r := tool(`"r":{"$ref":"#/$defs/R"}`, `,"required":["r"],"$defs":{`+defs+`}`)
		for _, d := range dialect.All() {
			offer := d.Offer(r)
			if d == dialect.Gemini {
				if len(offer.Refused) != 1 || offer.Refused[0].Code != dialect.Recursion || !strings.Contains(offer.Refused[0].What, "refers to itself") {
					t.Errorf("%s: gemini: %v", name, offer.Refused)
				}
				continue
			}
			if offer.Refused != nil || len(offer.Losses) > 0 || rules[d](offer.Tool) != nil {
				t.Errorf("%s: %s: %v %v %v", name, d, offer.Refused, offer.Losses, rules[d](offer.Tool))
			}
		}
	}
}

// An odd name is refused by the provider that would refuse it, and never breaks the JSON.
func oddNames(t *testing.T) {
	t.Parallel()
	refusedBy := map[string][]dialect.Dialect{
		"__proto__":              nil,
		"constructor":            nil,
		"$ref":                   {dialect.Anthropic, dialect.Gemini},
		"weird key!":             {dialect.Anthropic, dialect.Gemini},
		"a.b":                    {dialect.Gemini},
		"a-b":                    {dialect.Gemini},
		"1a":                     {dialect.Gemini},
		"":                       {dialect.Anthropic, dialect.Gemini},
		"naïve":                  {dialect.Anthropic, dialect.Gemini},
		"\"},\u2028\x01<":        {dialect.Anthropic, dialect.Gemini},
		strings.Repeat("a", 64):  nil,
		strings.Repeat("a", 65):  {dialect.Anthropic, dialect.Gemini},
		strings.Repeat("a", 300): {dialect.Anthropic, dialect.Gemini},
	}
	for name, by := range refusedBy {
		key, err := json.Marshal(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range dialect.All() {
			offer := d.Offer(tool(string(key)+`:{"type":"string"}`, `,"required":[`+string(key)+`]`))
			refused := len(offer.Refused) == 1 && offer.Refused[0].Code == dialect.BadParameterName
			if refused != slices.Contains(by, d) || len(offer.Refused) > 1 {
				t.Errorf("%q: %s: %v", name, d, offer.Refused)
			}
			if offer.Refused == nil {
				if !json.Valid(offer.Tool) || rules[d](offer.Tool) != nil {
					t.Errorf("%q: %s: %s %v", name, d, offer.Tool, rules[d](offer.Tool))
				}
			} else if len(offer.Refused[0].Path) > 120 {
				t.Errorf("%q is repeated whole", name)
			}
		}
	}
}

// An optional argument is nullable in strict mode, with null among its values, and required; one that takes null itself
// can't be left out, which is said.
func optionalInStrict(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{"type":"string"}`:              `{"type":["string","null"],"description":"Null leaves it out."}`,
		`{"type":"string","enum":["a"]}`: `{"type":["string","null"],"enum":["a",null],"description":"Null leaves it out."}`,
		`{"const":5}`:                    `{"type":["integer","null"],"enum":[5,null],"description":"Null leaves it out."}`,
		`{"type":"integer","default":5}`: `{"type":["integer","null"],"description":"Default: 5.\nNull leaves it out."}`,
		`{"anyOf":[{"type":"string"}]}`:  `{"type":["string","null"],"description":"Null leaves it out."}`,
		`{"anyOf":[{"type":"string"},{"type":"integer","minimum":1}]}`: `{"anyOf":[{"type":"string"},{"type":"integer","minimum":1},{"type":"null"}],"description":"Null leaves it out."}`,
		`{"type":["string","null"]}`:                                   `{"type":["string","null"]}`,
		`{"$ref":"#/$defs/R"}`:                                         `{"anyOf":[{"$ref":"#/$defs/R"},{"type":"null"}],"description":"Null leaves it out."}`,
	} {
		offer := dialect.OpenAIStrict.Offer(tool(`"x":`+in, `,"$defs":{"R":{"type":"string"}}`))
		var got struct {
			Function struct {
				Parameters struct {
					Properties map[string]json.RawMessage
					Required   []string
				}
			}
		}
		if err := json.Unmarshal(offer.Tool, &got); err != nil {
			t.Fatalf("%s: %v: %v", in, err, offer.Refused)
		}
		p := got.Function.Parameters
		if string(p.Properties["x"]) != want || len(p.Required) != len(p.Properties) {
			t.Errorf("%s: got %s, required %v", in, p.Properties["x"], p.Required)
		}
		if lossy := strings.Contains(in, `"null"`); lossy != (len(offer.Losses) == 1 && offer.Losses[0].Narrows) {
			t.Errorf("%s: losses %v", in, offer.Losses)
		}
	}
	for _, required := range []string{`,"required":["m"]`, ``} {
		o := dialect.OpenAIStrict.Offer(tool(`"m":{"type":"object"}`, required))
		if len(o.Fallback) != 1 || o.Fallback[0].Code != dialect.Unrepresentable || o.Fallback[0].Path != "m" || o.Refused != nil {
			t.Errorf("a map%s: %v %v", required, o.Fallback, o.Refused)
		}
		if !strings.Contains(string(o.Tool), `"strict":false`) || rules[dialect.OpenAIStrict](o.Tool) != nil {
			t.Errorf("a map%s: %s", required, o.Tool)
		}
	}
}

// What strict mode limits is reported by code, value and limit, and the tool is offered without strict; one less is
// strict.
func strictLimits(t *testing.T) {
	t.Parallel()
	nested := func(levels int) string {
		s := `{"type":"string"}`
		for range levels - 1 { // the arguments are one level
			s = `{"type":"object","properties":{"a":` + s + `},"required":["a"],"additionalProperties":false}`
		}
		return `"a":` + s
	}
	many := func(n int) string {
		var each []string
		for i := range n {
			each = append(each, fmt.Sprintf(`"p%d":{"type":"string"}`, i))
		}
		return strings.Join(each, ",")
	}
	enum := func(n, size int) string {
		var each []string
		for i := range n {
			each = append(each, fmt.Sprintf(`"%0*d"`, size, i))
		}
		return `"e":{"type":"string","enum":[` + strings.Join(each, ",") + `]}`
	}
	all := func(n int) (required string) {
		var each []string
		for i := range n {
			each = append(each, fmt.Sprintf(`"p%d"`, i))
		}
		return `,"required":[` + strings.Join(each, ",") + `]`
	}
	for _, test := range []struct {
		code     dialect.Code
		fits, no dialect.Tool
		says     string
	}{
		{dialect.TooDeep, tool(nested(10), `,"required":["a"]`), tool(nested(11), `,"required":["a"]`), "11 levels deep, more than 10"},
		{dialect.TooManyProperties, tool(many(5000), all(5000)), tool(many(5001), all(5001)), "5001 properties, more than 5000"},
		{dialect.TooManyEnumValues, tool(enum(1000, 4), `,"required":["e"]`), tool(enum(1001, 4), `,"required":["e"]`), "1001 enum values, more than 1000"},
		{dialect.TooLong, tool(enum(250, 100), `,"required":["e"]`), tool(enum(251, 100), `,"required":["e"]`), "25100 characters, more than 15000"},
		{dialect.TooLong, tool(enum(100, 1190), `,"required":["e"]`), tool(enum(100, 1200), `,"required":["e"]`), "more than 120000"},
	} {
		if o := dialect.OpenAIStrict.Offer(test.fits); o.Refused != nil || o.Fallback != nil {
			t.Errorf("%s: %v %v", test.code, o.Refused, o.Fallback)
		}
		o := dialect.OpenAIStrict.Offer(test.no)
		if len(o.Fallback) == 0 || o.Fallback[0].Code != test.code || !strings.Contains(o.Fallback[0].What, test.says) || o.Refused != nil {
			t.Errorf("%s: %v", test.code, o.Fallback)
		}
	}
}
