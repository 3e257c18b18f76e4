package gotype_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"math/big"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/internal/gotype"
)

type base struct {
	ID string `json:"id" jsonschema:"Which one."`
}

type loop struct {
	Next *loop `json:"next,omitempty"`
}

type units string

// TestInput is the table of Go types with what becomes of them. The schemas are those of one field x.
func TestInput(t *testing.T) {
	t.Parallel()
	type shared struct {
		base
		N int8 `json:"n"`
	}
	for _, c := range []struct {
		name, want string
		of         any
	}{
		{"string", `{"type":"string"}`, struct {
			X string `json:"x"`
		}{}},
		{"int", `{"type":"integer","minimum":-9223372036854775808,"maximum":9223372036854775807}`, struct {
			X int `json:"x"`
		}{}},
		{"uint64", `{"type":"integer","minimum":0,"maximum":18446744073709551615}`, struct {
			X uint64 `json:"x"`
		}{}},
		{"uint8", `{"type":"integer","minimum":0,"maximum":255}`, struct {
			X uint8 `json:"x"`
		}{}},
		{"float64", `{"type":"number"}`, struct {
			X float64 `json:"x"`
		}{}},
		{"pointer", `{"type":["null","boolean"]}`, struct {
			X *bool `json:"x"`
		}{}},
		{"slice", `{"type":"array","items":{"type":"string"}}`, struct {
			X []string `json:"x"`
		}{}},
		{"array", `{"type":"array","items":{"type":"boolean"},"minItems":2,"maxItems":2}`, struct {
			X [2]bool `json:"x"`
		}{}},
		{"map", `{"type":"object","additionalProperties":{"type":"string"}}`, struct {
			X map[string]string `json:"x"`
		}{}},
		{"bytes", `{"type":"string","contentEncoding":"base64"}`, struct {
			X []byte `json:"x"`
		}{}},
		{"time", `{"type":"string","format":"date-time"}`, struct {
			X time.Time `json:"x"`
		}{}},
		{"raw", `{}`, struct {
			X json.RawMessage `json:"x"`
		}{}},
		{"any", `{}`, struct {
			X any `json:"x"`
		}{}},
		{"json.Number", `{"type":"number"}`, struct {
			X json.Number `json:"x"`
		}{}},
		{"text", `{"type":"string"}`, struct {
			X netip.Addr `json:"x"`
		}{}},
		{"struct", `{"type":"object","properties":{"y":{"type":"string"}},"required":["y"],"additionalProperties":false}`, struct {
			X struct {
				Y string `json:"y"`
			} `json:"x"`
		}{}},
		{"embedded", `{"type":"object","properties":{"id":{"type":"string","description":"Which one."},` +
			`"n":{"type":"integer","minimum":-128,"maximum":127}},"required":["id","n"],"additionalProperties":false}`, struct {
			X shared `json:"x"`
		}{}},
		{"described", `{"type":"string","description":"A city, such as Rome."}`, struct {
			X string `json:"x" jsonschema:"A city, such as Rome."`
		}{}},
		{"enum", `{"type":"string","enum":["celsius","fahrenheit"]}`, struct {
			X units `json:"x" enum:"celsius,fahrenheit"`
		}{}},
		{"enum of a pointer", `{"type":["null","integer"],"enum":[1,2,null],"minimum":-9223372036854775808,"maximum":9223372036854775807}`, struct {
			X *int `json:"x" enum:"1,2"`
		}{}},
		{"enum of elements", `{"type":"array","items":{"type":"string","enum":["a","b"]}}`, struct {
			X []string `json:"x" enum:"a, b"`
		}{}},
		{"bounds", `{"type":"integer","minimum":1,"maximum":100}`, struct {
			X int `json:"x" minimum:"1" maximum:"100"`
		}{}},
		{"secret", `{"type":"string","writeOnly":true}`, struct {
			X string `json:"x" secret:"true"`
		}{}},
		// Optional ones: nothing is required.
		{"default", `{"type":"string","default":"celsius"}?`, struct {
			X string `json:"x" default:"celsius"`
		}{}},
		{"default of a list", `{"type":"array","default":["a"],"items":{"type":"string"}}?`, struct {
			X []string `json:"x" default:"[\"a\"]"`
		}{}},
		{"omitempty", `{"type":"boolean"}?`, struct {
			X bool `json:"x,omitempty"`
		}{}},
		{"omitzero", `{"type":"boolean"}?`, struct {
			X bool `json:"x,omitzero"`
		}{}},
	} {
		spec, err := gotype.Input(reflect.TypeOf(c.of), nil)
		if err != nil {
			t.Errorf("%s: got the error %v", c.name, err)
			continue
		}
		schema, optional := strings.CutSuffix(c.want, "?")
		want := `{"type":"object","properties":{"x":` + schema + `},"required":["x"],"additionalProperties":false}`
		if optional {
			want = strings.Replace(want, `"required":["x"],`, "", 1)
		}
		if got := string(spec.Schema); !same(t, got, want) {
			t.Errorf("%s: got\n%s, want\n%s", c.name, got, want)
		}
	}
}

// same compares JSON without the order of keys.
func same(t *testing.T, a, b string) bool {
	t.Helper()
	var x, y any
	decodeNumbers(t, a, &x)
	decodeNumbers(t, b, &y)
	return reflect.DeepEqual(x, y)
}

func decodeNumbers(t *testing.T, s string, v any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(s))
	d.UseNumber()
	if err := d.Decode(v); err != nil {
		t.Fatalf("%s: %v", s, err)
	}
}

type reads struct{ v int }

func (r *reads) UnmarshalJSON(b []byte) error { return json.Unmarshal(b, &r.v) }

// TestRefused: what has no exact schema is refused, with the path of the field.
func TestRefused(t *testing.T) {
	t.Parallel()
	type outer struct {
		Inner []struct {
			Out chan int `json:"out"`
		} `json:"inner"`
	}
	for _, c := range []struct {
		name, want string
		of         any
	}{
		{"no struct", "make it a struct", ""},
		{"channel", "field Inner[].Out: chan int is a chan", outer{}},
		{"function", "field F: func() is a func", struct{ F func() }{}},
		{"complex", "field C: complex128 is a complex128", struct{ C complex128 }{}},
		{"recursion", "field Next: gotype_test.loop contains itself", loop{}},
		{"custom UnmarshalJSON", "field R: gotype_test.reads has its own form in JSON (UnmarshalJSON)", struct{ R reads }{}},
		{"big.Int", "field N: big.Int has its own form", struct{ N *big.Int }{}},
		{"slog.Level", "field L: slog.Level has its own form", struct{ L slog.Level }{}},
		{"interface", "field E: error is an interface", struct{ E error }{}},
		{"map key", "field M: map[int]string has keys of type int", struct{ M map[int]string }{}},
		{"string option", `field N: its json tag has the option "string"`, struct {
			N int `json:"n,string"`
		}{}},
		{"embedded pointer", "field base: *gotype_test.base is embedded", struct{ *base }{}},
		{"embedded with a name", "field base: it is embedded and has a json tag", struct {
			base `json:"base"`
		}{}},
		{"embedded time", "has its own form in JSON (UnmarshalJSON)", struct {
			time.Time
			N int
		}{}},
		{"names that fold", `field B: its name in JSON, "a", is that of A too`, struct {
			A int `json:"A"`
			B int `json:"a"`
		}{}},
		{"bad name", `field A: its name in JSON is "a b"`, struct {
			A int `json:"a b"`
		}{}},
		{"default of another type", `field N: its default: "many" is not JSON`, struct {
			N int `json:"n" default:"many"`
		}{}},
		{"default out of the enum", `field U: its own schema refuses its default "kelvin"`, struct {
			U string `json:"u" enum:"celsius,fahrenheit" default:"kelvin"`
		}{}},
		{"default out of bounds", `field N: its own schema refuses its default 300`, struct {
			N int8 `json:"n" default:"300"`
		}{}},
		{"enum of bools", "field B: its enum: bool has no list of values", struct {
			B bool `json:"b" enum:"true"`
		}{}},
		{"enum of another type", `field N: its enum: "a" is not JSON`, struct {
			N int `json:"n" enum:"1,a"`
		}{}},
		{"bound of a string", "field S: its minimum: string is no number", struct {
			S string `json:"s" minimum:"1"`
		}{}},
		{"bound beyond the type", "field N: its maximum: 300 is beyond", struct {
			N uint8 `json:"n" maximum:"300"`
		}{}},
		{"secret", `field S: its secret is "yes"`, struct {
			S string `json:"s" secret:"yes"`
		}{}},
		{"pointer to raw", "field R: *json.RawMessage", struct{ R *json.RawMessage }{}},
	} {
		if _, err := gotype.Input(reflect.TypeOf(c.of), nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
	if _, _, err := gotype.Output(reflect.TypeFor[struct {
		N int `default:"1"`
	}](), nil); err == nil || !strings.Contains(err.Error(), "field N: it has a default") {
		t.Errorf("the default of a result: got %v", err)
	}
}

// TestStated: a type that reads its own JSON is taken with a stated schema.
func TestStated(t *testing.T) {
	t.Parallel()
	type in struct {
		R reads `json:"r"`
	}
	spec, err := gotype.Input(reflect.TypeFor[in](), gotype.Stated{reflect.TypeFor[reads](): json.RawMessage(`{"type":"integer","minimum":3}`)})
	if err != nil {
		t.Fatal(err)
	}
	c, err := contract.New(spec, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, found, _ := c.Check(context.Background(), json.RawMessage(`{"r":2}`)); found == nil {
		t.Error("got 2 accepted, want the stated minimum")
	}
	args, found, _ := c.Check(context.Background(), json.RawMessage(`{"r":4}`))
	var got in
	if err := gotype.Decode(args.JSON(), &got); found != nil || err != nil || got.R.v != 4 {
		t.Errorf("got %+v, %v, %v", got, found, err)
	}
}

// TestWhole: a schema that is stated for the input itself is advertised as it is, with every keyword.
func TestWhole(t *testing.T) {
	type input struct {
		Way   string `json:"way"`
		Phone string `json:"phone,omitempty"`
	}
	of := reflect.TypeFor[input]()
	const good = `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","$defs":{"n":{"$anchor":"number","type":"string"}},` +
		`"properties":{"way":{"enum":["phone","mail"],"default":"mail"},"phone":{"$ref":"#/$defs/n"}},` +
		`"if":{"properties":{"way":{"const":"phone"}},"required":["way"]},"then":{"required":["phone"]},"additionalProperties":false}`
	spec, err := gotype.Input(of, gotype.Stated{of: json.RawMessage(good)})
	if err != nil || string(spec.Schema) != good {
		t.Fatalf("got %s, %v, want %s", spec.Schema, err, good)
	}
	c, err := contract.New(spec, nil)
	if err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]bool{`{}`: true, `{"way":"phone"}`: false, `{"way":"phone","phone":"1"}`: true, `{"phone":1}`: false, `{"x":1}`: false} {
		if _, violations, err := c.Check(t.Context(), []byte(args)); err != nil || (len(violations) == 0) != want {
			t.Errorf("%s: got %v, %v, want it accepted: %v", args, violations, err, want)
		}
	}
	for schema, want := range map[string]string{
		`{"type":"object"}`: "additionalProperties false",
		`{"type":"string"}`: `its type must be "object"`,
		`[]`:                "it is no object",
		`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","additionalProperties":false}`:             "only https://json-schema.org/draft/2020-12/schema is read",
		`{"type":"object","properties":{"way":{"type":"string","default":7}},"additionalProperties":false}`:              "field way: its own schema refuses its default 7",
		`{"type":"object","properties":{"way":{"$ref":"#/$defs/none"}},"additionalProperties":false}`:                    "no such definition",
		`{"type":"object","properties":{"way":{"type":"string"},"way":{"type":"integer"}},"additionalProperties":false}`: `duplicate key "way"`,
		`{"type":"object","properties":{"way":{"$ref":"https://example.com/schema.json"}},"additionalProperties":false}`: "no such definition",
	} {
		if _, err := gotype.Input(of, gotype.Stated{of: json.RawMessage(schema)}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", schema, err, want)
		}
	}
}

// TestDecodeIsExact: no digit and no case is lost.
func TestDecodeIsExact(t *testing.T) {
	t.Parallel()
	type in struct {
		N int64          `json:"n"`
		A any            `json:"a"`
		M map[string]any `json:"m"`
	}
	var got in
	err := gotype.Decode(json.RawMessage(`{"n":9007199254740993,"a":9007199254740993,"m":{"deep":[9007199254740993]}}`), &got)
	want := in{9007199254740993, json.Number("9007199254740993"), map[string]any{"deep": []any{json.Number("9007199254740993")}}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %#v, %v, want %#v", got, err, want)
	}
	for _, refused := range []string{`{"N":1}`, `{"n":1,"n":2}`, `{"n":1.5}`, `{"other":1}`, `{"n":9223372036854775808}`} {
		if err := gotype.Decode(json.RawMessage(refused), new(in)); err == nil {
			t.Errorf("%s: got no error", refused)
		}
	}
}
