package paramheader_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/catalogd/catalogd/internal/paramheader"
)

func TestRead(t *testing.T) {
	for _, c := range []struct{ schema, want, says string }{
		{`{"type":"object"}`, "", ""},
		{`true`, "", ""},
		{`{"properties":{"a":{"type":"string","x-mcp-header":"A"},"b":true,"c":{"type":["integer","null"],"x-mcp-header":"c-!#$%&'*+.^_|~"}}}`, "/a=A /c=c-!#$%&'*+.^_|~", ""},
		{`{"properties":{"o":{"type":"object","properties":{"a":{"properties":{"x-mcp-header":{"type":"boolean","x-mcp-header":"Deep"}}}}}}}`, "/o/a/x-mcp-header=Deep", ""},
		// What stands in values is no annotation.
		{`{"default":{"x-mcp-header":""},"properties":{"a":{"const":{"x-mcp-header":1},"enum":[{"x-mcp-header":""}],"examples":[{"x-mcp-header":2}]}}}`, "", ""},
		{`{"properties":{"a":{"type":"string","x-mcp-header":""}}}`, "", "x-mcp-header at /a: it must be a text that is not empty"},
		{`{"properties":{"a":{"type":"string","x-mcp-header":null}}}`, "", "must be a text"},
		{`{"properties":{"a":{"type":"string","x-mcp-header":1}}}`, "", "must be a text"},
		{`{"properties":{"a":{"type":"string","x-mcp-header":"My Region"}}}`, "", "not a header name"},
		{`{"properties":{"a":{"type":"string","x-mcp-header":"Region:Primary"}}}`, "", "not a header name"},
		{`{"properties":{"a":{"type":"string","x-mcp-header":"R\u00e9gion"}}}`, "", "not a header name"},
		{`{"properties":{"a":{"type":"string","x-mcp-header":"Region\r\nX: y"}}}`, "", "not a header name"},
		{`{"properties":{"a":{"type":"number","x-mcp-header":"A"}}}`, "", "its type is number"},
		{`{"properties":{"a":{"type":"object","x-mcp-header":"A"}}}`, "", "its type is object"},
		{`{"properties":{"a":{"type":"array","x-mcp-header":"A"}}}`, "", "its type is array"},
		{`{"properties":{"a":{"type":"null","x-mcp-header":"A"}}}`, "", "must have the type string, integer or boolean"},
		{`{"properties":{"a":{"type":["string","number"],"x-mcp-header":"A"}}}`, "", "its type is number"},
		{`{"properties":{"a":{"x-mcp-header":"A"}}}`, "", "must have the type"},
		{`{"properties":{"a":{"$ref":"#/$defs/A","x-mcp-header":"A"}},"$defs":{"A":{"type":"string"}}}`, "", "must have the type"},
		{`{"properties":{"a":{"type":"string","x-mcp-header":"Same"},"b":{"type":"object","properties":{"c":{"type":"string","x-mcp-header":"sAME"}}}}}`, "", `"sAME" is the name of /a too`},
		{`{"type":"string","x-mcp-header":"A"}`, "", "at the root"},
		{`{"properties":{"a":{"type":"array","items":{"type":"string","x-mcp-header":"A"}}}}`, "", "properties alone"},
		{`{"properties":{"a":{"type":"array","items":[{"type":"string","x-mcp-header":"A"}]}}}`, "", "properties alone"},
		{`{"anyOf":[{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}]}`, "", "properties alone"},
		{`{"if":{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}}`, "", "properties alone"},
		{`{"$defs":{"D":{"type":"string","x-mcp-header":"A"}}}`, "", "properties alone"},
		{`{"patternProperties":{"^a":{"type":"string","x-mcp-header":"A"}}}`, "", "properties alone"},
		{`{"additionalProperties":{"type":"string","x-mcp-header":"A"}}`, "", "properties alone"},
	} {
		params, err := paramheader.Read(json.RawMessage(c.schema))
		if c.says != "" {
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: got the error %v, want %q", c.schema, err, c.says)
			}
			continue
		}
		var got []string
		for _, p := range params {
			got = append(got, "/"+strings.Join(p.Path, "/")+"="+p.Name)
		}
		if err != nil || strings.Join(got, " ") != c.want {
			t.Errorf("%s: got %s, %v, want %s", c.schema, got, err, c.want)
		}
	}
}

// Each header is what the specification's examples say, and is read back by mcp-go's server to what was in the body.
func TestHeaders(t *testing.T) {
	schema := json.RawMessage(`{"type":"object","properties":{"s":{"type":"string","x-mcp-header":"Str"},"i":{"type":"integer","x-mcp-header":"int"},
		"b":{"type":"boolean","x-mcp-header":"Bool"},"o":{"type":"object","properties":{"s":{"type":["string","null"],"x-mcp-header":"Deep"}}}}}`)
	params, err := paramheader.Read(schema)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args string
		want map[string]string
	}{
		{`{"s":"us-west1"}`, map[string]string{"Mcp-Param-Str": "us-west1"}},
		{`{"s":"Hello, 世界"}`, map[string]string{"Mcp-Param-Str": "=?base64?SGVsbG8sIOS4lueVjA==?="}},
		{`{"s":" padded "}`, map[string]string{"Mcp-Param-Str": "=?base64?IHBhZGRlZCA=?="}},
		{`{"s":"line1\nline2"}`, map[string]string{"Mcp-Param-Str": "=?base64?bGluZTEKbGluZTI=?="}},
		{`{"s":"\tindented"}`, map[string]string{"Mcp-Param-Str": "=?base64?CWluZGVudGVk?="}},
		{`{"s":"=?base64?literal?="}`, map[string]string{"Mcp-Param-Str": "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="}},
		{`{"s":"us west 1"}`, map[string]string{"Mcp-Param-Str": "us west 1"}},
		{`{"s":""}`, map[string]string{"Mcp-Param-Str": ""}},
		{`{"s":null,"i":null}`, map[string]string{}},
		{`{}`, map[string]string{}},
		{`{"i":42,"b":true}`, map[string]string{"Mcp-Param-Int": "42", "Mcp-Param-Bool": "true"}},
		{`{"i":-7,"b":false}`, map[string]string{"Mcp-Param-Int": "-7", "Mcp-Param-Bool": "false"}},
		{`{"i":4.2e1}`, map[string]string{"Mcp-Param-Int": "42"}},
		{`{"i":42.0}`, map[string]string{"Mcp-Param-Int": "42"}},
		{`{"i":9007199254740991}`, map[string]string{"Mcp-Param-Int": "9007199254740991"}},
		{`{"i":9007199254740993}`, map[string]string{}},
		{`{"i":1e999999999}`, map[string]string{}},
		{`{"i":1e99999999}`, map[string]string{}},
		{`{"i":0.00000000000000000000000000000000000000000042e43}`, map[string]string{}},
		{`{"i":0.42e2}`, map[string]string{"Mcp-Param-Int": "42"}},
		{`{"i":1.5}`, map[string]string{}},
		{`{"o":{"s":"x"}}`, map[string]string{"Mcp-Param-Deep": "x"}},
		{`{"o":{"s":null}}`, map[string]string{}},
		{`{"o":"s"}`, map[string]string{}},
		{`{"s":["a"]}`, map[string]string{}},
	} {
		h := http.Header{}
		paramheader.Headers(h, params, json.RawMessage(c.args))
		got := map[string]string{}
		for name := range h {
			got[name] = h.Get(name)
		}
		if !maps.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", c.args, got, c.want)
		}
		if len(c.want) == 0 {
			continue
		}
		tool := &mcp.Tool{Name: "t", RawInputSchema: schema}
		look := func(name string) (string, bool) {
			v, ok := h[http.CanonicalHeaderKey(name)]
			return strings.Join(v, "|"), ok
		}
		if err := mcp.ValidateParamHeadersLookup(look, tool, json.RawMessage(`{"name":"t","arguments":`+c.args+`}`)); err != nil {
			t.Errorf("%s: mcp-go's server refuses %v: %v", c.args, slices.Sorted(maps.Keys(h)), err)
		}
	}
}
