package contract_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/contract"
)

// Wherever a schema declares a secret, Secret finds it; what only looks like it is none.
func TestSecretOf(t *testing.T) {
	t.Parallel()
	const secret = `{"type":"string","writeOnly":true}`
	for name, tc := range map[string]struct{ schema, want string }{
		"at the top":               {`"properties":{"a":{},"b":` + secret + `}`, "b"},
		"in a struct":              {`"properties":{"a":{"type":"object","properties":{"b":` + secret + `}}}`, "a.b"},
		"in a list":                {`"properties":{"a":{"type":"array","items":{"properties":{"b":` + secret + `}}}}`, "a.b"},
		"a place of a list":        {`"properties":{"a":{"type":"array","prefixItems":[{},` + secret + `]}}`, "a"},
		"under any name":           {`"properties":{"a":{"type":"object","additionalProperties":` + secret + `}}`, "a"},
		"under a pattern":          {`"properties":{"a":{"type":"object","patternProperties":{"^x":` + secret + `}}}`, "a"},
		"an alternative":           {`"properties":{"a":{"oneOf":[{"type":"integer"},` + secret + `]}}`, "a"},
		"a condition's other side": {`"if":{},"else":{"properties":{"a":` + secret + `}}`, "a"},
		"by a reference":           {`"properties":{"a":{"$ref":"#/$defs/A"}},"$defs":{"A":{"properties":{"b":` + secret + `}}}`, "a.b"},
		"recursive":                {`"properties":{"a":{"$ref":"#/$defs/A"}},"$defs":{"A":{"properties":{"next":{"$ref":"#/$defs/A"},"b":` + secret + `}}}`, "a.b"},
		"false":                    {`"properties":{"a":{"writeOnly":false}}`, "-"},
		"a property of that name":  {`"properties":{"writeOnly":{"const":true},"properties":{"default":{"writeOnly":true}}}`, "-"},
		"everything":               {`"writeOnly":true`, ""},
	} {
		for _, upstream := range []bool{false, true} {
			path, ok := contract.Spec{Schema: json.RawMessage(`{"type":"object",` + tc.schema + `}`), Upstream: upstream}.Secret()
			got := strings.Join(path, ".")
			if !ok {
				got = "-"
			}
			if got != tc.want {
				t.Errorf("%s (upstream: %v): got %q, want %q", name, upstream, got, tc.want)
			}
		}
	}
	for name, spec := range map[string]contract.Spec{
		"a reference of a server's to any place": {Upstream: true, Schema: json.RawMessage(`{"type":"object","properties":{"a":{"$ref":"#/components/A"}},"components":{"A":` + secret + `}}`)},
		"a server's name in escapes":             {Upstream: true, Schema: json.RawMessage(`{"type":"object","properties":{"a":{"write\u004fnly":true}}}`)},
		"a field that CUE makes of a secret":     {Schema: json.RawMessage(`{"type":"object"}`), Fields: []contract.Field{{Name: "a", Computed: true, Secret: true}}},
		"closed by a branch":                     {Schema: json.RawMessage(`{"type":"object"}`), WhenClosed: &contract.ClosedForm{Schema: json.RawMessage(`{"type":"object","properties":{"a":` + secret + `}}`)}},
	} {
		if path, ok := spec.Secret(); !ok || strings.Join(path, ".") != "a" {
			t.Errorf("%s: got %q %v", name, path, ok)
		}
	}
	if _, ok := (contract.Spec{Schema: json.RawMessage(`{"type":"object"}`), WhenClosed: &contract.ClosedForm{}}).Secret(); ok {
		t.Error("arguments that can't be closed have no secret by that")
	}
	if _, ok := (contract.Spec{Upstream: true, Schema: json.RawMessage(`{"type":"object","definitions":{"unused":` + secret + `}}`)}).Secret(); ok {
		t.Error("what no argument refers to is no secret of the arguments")
	}
}
