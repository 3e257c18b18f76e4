package decision_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/problem"
)

// What a schema that a policy holds refers to is a part of it; all else refuses the policy when it is loaded.
func TestSchemaArguments(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "schema.json")
	if err := os.WriteFile(file, []byte(`{"type": "string"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	bomb := &strings.Builder{}
	for i := range 30 {
		fmt.Fprintf(bomb, `"d%d": {"anyOf": [{"$ref": "#/definitions/d%d"}, {"$ref": "#/definitions/d%d"}]}, `, i, i+1, i+1)
	}
	const written = "must be an object that is written out"
	for _, test := range []struct{ schema, want string }{
		{`{"type": "object", "required": ["a"]}`, ""},
		{`s.schema`, ""},
		{`data.schema`, ""},
		{`{"properties": {"a": {"$ref": "#/definitions/a~1b"}}, "definitions": {"a/b": {"type": "string"}}}`, ""},
		{`{"properties": {"id": {"type": "string"}, "$ref": {"type": "string"}}}`, ""},
		{`{"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"}`, ""},
		{`{"$ref": "file://` + file + `"}`, "may refer to its own parts only"},
		{`{"properties": {"a": {"anyOf": [{"$ref": "` + file + `"}]}}}`, "may refer to its own parts only"},
		{`{"$ref": "http://example.com/schema"}`, "may refer to its own parts only"},
		{`{"$id": "file://` + filepath.Dir(file) + `/", "$ref": "schema.json"}`, "may refer to its own parts only"},
		{`{"id": "http://example.com/", "$ref": "#/definitions/a", "definitions": {"a": {}}}`, "may refer to its own parts only"},
		{`{"$schema": "file://` + file + `"}`, "not of json-schema.org"},
		{`data.outside`, "may refer to its own parts only"},
		{`{"$ref": "#/definitions/none"}`, "has no #/definitions/none"},
		{`{"$ref": "#"}`, "may refer to its own parts only"},
		{`{"$ref": "#/definitions/a", "definitions": {"a": {"allOf": [{"$ref": "#/definitions/a"}]}}}`, "refers to itself"},
		{`{"$ref": "#/definitions/a", "definitions": {"a": {"$ref": "#/definitions/b"}, "b": {"items": {"$ref": "#/definitions/a"}}}}`, "refers to itself"},
		{`{"$ref": "#/definitions/d0", "definitions": {` + bomb.String() + `"d30": {}}}`, "more than 10000 values"},
		{`input.arguments.schema`, written},
		{`object.get(data, "schema", {})`, written},
		{`{"$ref": input.arguments.file}`, written},
		{`json.unmarshal(input.arguments.text)`, written},
		{`"{\"$ref\": \"file:///etc/passwd\"}"`, written},
	} {
		fsys := with(minimal(), "policy/lib/s.rego", "package catalogd.lib.s\n\nschema := {\"type\": \"object\", \"required\": [\"a\"]}\n")
		fsys = with(fsys, "policy/call.rego", "package catalogd.call\n\nimport data.catalogd.lib.s\n\ndefault allow := false\n\nallow if {\n\ts.schema\n\tjson.match_schema(input.arguments, "+test.schema+")[0]\n}\n")
		fsys = with(fsys, "policy/data.json", `{"schema": {"required": ["a"]}, "outside": {"$ref": "file:///etc/passwd"}}`)
		engine, problems := decision.Load(t.Context(), fsys, patient)
		if test.want != "" {
			if engine != nil || len(problems) != 1 || problems[0].Code != problem.RegoBuiltin || !strings.Contains(problems[0].Message, test.want) {
				t.Errorf("%s: %v, want %s", test.schema, problems, test.want)
			}
			continue
		}
		if engine == nil {
			t.Errorf("%s: %v", test.schema, problems)
			continue
		}
		d := engine.Call(t.Context(), decision.CallInput{Arguments: json.RawMessage(`{"a": "x"}`)})
		if !d.Allow {
			t.Errorf("%s: %v", test.schema, d)
		}
	}
}

// An evaluation that gets such a schema nevertheless fails, and reads no file; so does one of more than can
// be compared.
func TestSchemaBuiltins(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "schema.json")
	if err := os.WriteFile(file, []byte(`{"type": "string"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	many := make([]*ast.Term, 60_000)
	for i := range many {
		many[i] = ast.InternedTerm("x")
	}
	call := func(name string, args ...*ast.Term) error {
		return topdown.GetBuiltin(name)(topdown.BuiltinContext{Context: t.Context()}, args, func(*ast.Term) error { return nil })
	}
	outside := ast.MustParseTerm(`{"$ref": "file://` + file + `"}`)
	for name, err := range map[string]error{
		"match":  call("json.match_schema", ast.MustParseTerm(`{}`), outside),
		"verify": call("json.verify_schema", outside),
		"text":   call("json.match_schema", ast.MustParseTerm(`{}`), ast.StringTerm(outside.String())),
		"large":  call("json.match_schema", ast.ArrayTerm(many...), ast.MustParseTerm(`{"items": {"type": "number"}}`)),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if err := call("json.match_schema", ast.MustParseTerm(`{"a": 1}`), ast.MustParseTerm(`{"required": ["a"]}`)); err != nil {
		t.Error(err)
	}
}
