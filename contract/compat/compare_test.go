package compat_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/contract/compat"
)

func object(properties string, more ...string) string {
	return `{"type":"object","properties":{` + properties + `}` + strings.Join(append([]string{""}, more...), ",") + `}`
}

const closed = `"additionalProperties":false`

var comparisons = []struct {
	name, old, new string
	verdict        compat.Verdict
	want           []string // lines of Differences
}{
	{"annotations are none", object(`"a":{"type":"string","description":"x"}`), object(`"a":{"title":"A","type":"string"}`, `"description":"y"`), compat.Identical, nil},
	{"order is none", object(`"a":{"type":"string"}`, `"required":["a","b"]`), object(`"a":{"type":"string"}`, `"required":["b","a"]`), compat.Identical, nil},
	{"a default counts by itself", object(`"a":{"type":"integer","default":1}`), object(`"a":{"type":"integer","default":2}`), compat.Identical, []string{"/a: default: 1 before, 2 now (identical)"}},
	{"a bound", object(`"n":{"type":"integer","maximum":100}`, closed), object(`"n":{"type":"integer","maximum":50}`, closed), compat.Narrowed, []string{"/n: maximum: 100 before, 50 now (narrowed)"}},
	{"a bound of few integers", object(`"n":{"type":"integer","minimum":1,"maximum":50}`, closed), object(`"n":{"type":"integer","minimum":1,"maximum":20}`, closed), compat.Narrowed, []string{"/n: maximum: 50 before, 20 now (narrowed)"}},
	{"both bounds of few integers", object(`"n":{"type":"integer","minimum":5,"maximum":20}`, closed), object(`"n":{"type":"integer","minimum":1,"maximum":50}`, closed), compat.Widened, []string{"/n: maximum: 20 before, 50 now (widened)", "/n: minimum: 5 before, 1 now (widened)"}},
	{"bounds of integers", object(`"n":{"type":"integer","minimum":0.5}`), object(`"n":{"type":"integer","exclusiveMinimum":0}`), compat.Identical, nil},
	{"an optional argument more", object(`"a":{"type":"string"}`, closed), object(`"a":{"type":"string"},"b":{"type":"string"}`, closed), compat.Widened, []string{"/b: property: refused before, taken now (widened)"}},
	{"an optional argument more, open", object(`"a":{"type":"string"}`), object(`"a":{"type":"string"},"b":{"type":"string"}`), compat.Narrowed, []string{"/b: type: anything before, string now (narrowed)"}},
	{"required now", object(`"a":{"type":"string"}`, closed), object(`"a":{"type":"string"}`, closed, `"required":["a"]`), compat.Narrowed, []string{"/a: required: required now (narrowed)"}},
	{"required with a default is not required", object(`"a":{"type":"string"}`, closed), object(`"a":{"type":"string","default":"x"}`, closed, `"required":["a"]`), compat.Identical, []string{`/a: default: none before, "x" now (identical)`}},
	{"another argument", object(`"a":{"type":"string"}`, closed, `"required":["a"]`), object(`"b":{"type":"string"}`, closed, `"required":["b"]`), compat.Incompatible, nil},
	{"an enum's member more and one less", object(`"a":{"enum":["x","y"]}`), object(`"a":{"enum":["x","z"]}`), compat.Incompatible, []string{`/a: enum: no longer takes "y"; takes "z" too (incompatible)`}},
	{"integer to number", object(`"a":{"type":"integer"}`), object(`"a":{"type":"number"}`), compat.Widened, nil},
	{"a type", object(`"a":{"type":"string"}`), object(`"a":{"type":"integer"}`), compat.Incompatible, nil},
	{"nullable, written two ways", object(`"a":{"anyOf":[{"type":"string"},{"type":"null"}]}`), object(`"a":{"type":["null","string"]}`), compat.Identical, nil},
	{"nullable now", object(`"a":{"type":"string"}`), object(`"a":{"anyOf":[{"type":"null"},{"type":"string"}]}`), compat.Widened, nil},
	{"a pattern now", object(`"a":{"type":"string"}`), object(`"a":{"type":"string","pattern":"^[a-z]+$"}`), compat.Narrowed, nil},
	{"two patterns", object(`"a":{"type":"string","pattern":"^[a-z]+$"}`), object(`"a":{"type":"string","pattern":"^[a-z]*[a-z]$"}`), compat.Undecided, nil},
	{"recursion", `{"type":"object","properties":{"t":{"$ref":"#/$defs/T"}},"$defs":{"T":{"type":"object","properties":{"n":{"$ref":"#/$defs/T"},"v":{"type":"integer"}}}}}`,
		`{"type":"object","properties":{"t":{"$ref":"#/$defs/U"}},"$defs":{"U":{"type":"object","properties":{"n":{"$ref":"#/$defs/U"},"v":{"type":"number"}}}}}`, compat.Widened, []string{"/t/n/v: type: integer before, number now (widened)", "/t/v: type: integer before, number now (widened)"}},
	{"oneOf with a discriminator", `{"type":"object","oneOf":[{"properties":{"k":{"const":"a"}},"required":["k"]},{"properties":{"k":{"const":"b"}},"required":["k"]}]}`,
		`{"type":"object","oneOf":[{"properties":{"k":{"const":"b"}},"required":["k"]},{"properties":{"k":{"const":"a"}},"required":["k"]},{"properties":{"k":{"const":"c"}},"required":["k"]}]}`, compat.Widened, nil},
	{"items in place", object(`"a":{"type":"array","prefixItems":[{"type":"string"}],"items":false}`), object(`"a":{"type":"array","items":{"type":"string"},"maxItems":1}`), compat.Identical, nil},
	{"another dialect", `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object"}`, `{"$schema":"http://json-schema.org/draft-04/schema#","type":"object"}`, compat.Undecided, nil},
	{"unevaluated", `{"type":"object","unevaluatedProperties":false}`, `{"type":"object"}`, compat.Widened, nil},
	{"broken", `{"type":"object"`, `{"type":"object"}`, compat.Undecided, nil},
}

func spec(schema string) contract.Spec { return contract.Spec{Schema: json.RawMessage(schema)} }

func TestCompare(t *testing.T) {
	t.Parallel()
	mirrored := map[compat.Verdict]compat.Verdict{compat.Widened: compat.Narrowed, compat.Narrowed: compat.Widened}
	for _, c := range comparisons {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := compat.Compare(spec(c.old), spec(c.new))
			if got.Verdict != c.verdict {
				t.Errorf("got %s, want %s; %v", got.Verdict, c.verdict, got.Differences)
			}
			var lines []string
			for _, d := range got.Differences {
				lines = append(lines, d.String())
			}
			if c.want != nil && strings.Join(lines, "\n") != strings.Join(c.want, "\n") {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(c.want, "\n"))
			}
			want := c.verdict
			if m, ok := mirrored[want]; ok {
				want = m
			}
			if back := compat.Compare(spec(c.new), spec(c.old)); back.Verdict != want {
				t.Errorf("the other way round: got %s, want %s; %v", back.Verdict, want, back.Differences)
			}
			witness(t, c.old, c.new, got)
			if c.name != "broken" {
				if breaking := c.verdict != compat.Identical && c.verdict != compat.Widened; got.Breaking() != breaking {
					t.Errorf("Breaking() = %t", got.Breaking())
				}
			}
			for _, s := range []string{c.old, c.new} {
				if self := compat.Compare(spec(s), spec(s)); self.Verdict != compat.Identical && c.name != "broken" {
					t.Errorf("%s with itself: %s %v", s, self.Verdict, self.Differences)
				}
			}
			if testing.Verbose() {
				for _, d := range got.Differences {
					t.Logf("%s refused=%s added=%s", d, d.Refused, d.Added)
				}
			}
		})
	}
}

// witness asks the validator itself about the witnesses of a comparison.
func witness(t interface{ Errorf(string, ...any) }, old, new string, c compat.Comparison) {
	for _, d := range c.Differences {
		for _, w := range []struct {
			value   json.RawMessage
			in, out string
		}{{d.Refused, old, new}, {d.Added, new, old}} {
			if w.value != nil && (!takes(w.in, w.value) || takes(w.out, w.value)) {
				t.Errorf("%s: %s is no witness between\n%s\n%s", d, w.value, old, new)
			}
		}
	}
}

// takes asks a contract where the schema makes one, and else the validator: a schema without defaults is the same to both.
func takes(schema string, value []byte) bool {
	var parts struct {
		Type       string                     `json:"type"`
		Properties map[string]json.RawMessage `json:"properties"`
		Required   []string                   `json:"required"`
		Additional json.RawMessage            `json:"additionalProperties"`
	}
	if err := json.Unmarshal([]byte(schema), &parts); err == nil && parts.Type == "object" {
		s := contract.Spec{Schema: json.RawMessage(schema), Strictness: contract.Open}
		if string(parts.Additional) == "false" {
			s.Strictness = contract.Closed
		}
		for name := range parts.Properties {
			f := contract.Field{Name: name}
			for _, r := range parts.Required {
				f.Required = f.Required || r == name
			}
			s.Fields = append(s.Fields, f)
		}
		if c, err := contract.New(s, nil); err == nil {
			_, found, err := c.Check(context.Background(), value)
			return err == nil && found == nil
		}
	}
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(schema))
	if err != nil {
		return false
	}
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	compiler.AssertContent()
	if err := compiler.AddResource("x:y", doc); err != nil {
		return false
	}
	s, err := compiler.Compile("x:y")
	if err != nil {
		return false
	}
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(string(value)))
	return err == nil && s.Validate(v) == nil
}

func TestCompareResults(t *testing.T) {
	t.Parallel()
	wide, narrow := spec(object(`"n":{"type":"number"}`)), spec(object(`"n":{"type":"integer"}`))
	for _, c := range []struct {
		name     string
		old, new contract.Spec
		verdict  compat.Verdict
		breaking bool
	}{
		{"more results", narrow, wide, compat.Widened, true},
		{"fewer results", wide, narrow, compat.Narrowed, false},
		{"promised now", contract.Spec{}, wide, compat.Narrowed, false},
		{"no longer promised", wide, contract.Spec{}, compat.Widened, true},
		{"never promised", contract.Spec{}, contract.Spec{}, compat.Identical, false},
	} {
		if got := compat.CompareResults(c.old, c.new); got.Verdict != c.verdict || got.Breaking() != c.breaking || !got.Results {
			t.Errorf("%s: %v, breaking %t", c.name, got, got.Breaking())
		}
	}
}

func TestCompareRemainders(t *testing.T) {
	t.Parallel()
	schema := object(`"n":{"type":"integer"}`)
	with := func(digest string) contract.Spec {
		s := spec(schema)
		s.Remainder = &contract.Remainder{Package: "catalog", Path: "tools.x.args", Digest: digest}
		return s
	}
	for _, c := range []struct {
		name     string
		old, new contract.Spec
		verdict  compat.Verdict
	}{
		{"the same", with("a"), with("a"), compat.Identical},
		{"one that came", spec(schema), with("a"), compat.Narrowed},
		{"one that went", with("a"), spec(schema), compat.Widened},
		{"another", with("a"), with("b"), compat.Undecided},
	} {
		got := compat.Compare(c.old, c.new)
		if got.Verdict != c.verdict {
			t.Errorf("%s: %s", c.name, got.Verdict)
		}
	}
	wider := with("a")
	wider.Schema = json.RawMessage(object(`"n":{"type":"number"}`))
	for _, d := range compat.Compare(with("a"), wider).Differences {
		if d.Added != nil {
			t.Errorf("%s is told to be accepted, which CUE was not asked about", d.Added)
		}
	}
}

func TestCompareCoerce(t *testing.T) {
	t.Parallel()
	on := func(s contract.Spec) contract.Spec { s.Coerce = true; return s }
	whole, number := spec(object(`"n":{"type":"integer"}`)), spec(object(`"n":{"type":"number"}`))
	for _, c := range []struct {
		name     string
		old, new contract.Spec
		verdict  compat.Verdict
	}{
		{"on in both", on(whole), on(whole), compat.Identical},
		{"on now", whole, on(whole), compat.Widened},
		{"off now", on(whole), whole, compat.Narrowed},
		{"another schema too", on(whole), on(number), compat.Undecided},
	} {
		if got := compat.Compare(c.old, c.new); got.Verdict != c.verdict {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
