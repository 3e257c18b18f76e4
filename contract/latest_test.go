package contract_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"pgregory.net/rapid"

	"github.com/catalogd/catalogd/contract"
)

// What a schema says in its own draft, in the words of draft 2020-12.
func TestLatest(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, in, want string }{
		{"draft 04 bounds", `{"type":"object","properties":{"n":{"minimum":1,"exclusiveMinimum":true,"maximum":9,"exclusiveMaximum":false}}}`,
			`{"type":"object","properties":{"n":{"exclusiveMinimum":1,"maximum":9}}}`},
		{"draft 07 tuple", `{"items":[{"type":"string"},true],"additionalItems":{"type":"integer"}}`,
			`{"prefixItems":[{"type":"string"},true],"items":{"type":"integer"}}`},
		{"a tuple in what says that it is 2020-12", `{"$schema":"https://json-schema.org/draft/2020-12/schema","items":[{"type":"string"}]}`,
			`{"prefixItems":[{"type":"string"}]}`},
		{"dependencies", `{"dependencies":{"a":["b"],"c":{"required":["d"]}}}`, `{"dependentRequired":{"a":["b"]},"dependentSchemas":{"c":{"required":["d"]}}}`},
		{"definitions", `{"properties":{"a":{"$ref":"#/definitions/A"}},"definitions":{"A":{"type":"string"},"B":{}}}`,
			`{"properties":{"a":{"$ref":"#/$defs/A"}},"$defs":{"A":{"type":"string"}}}`},
		{"nothing counts beside $ref in draft 07", `{"properties":{"a":{"description":"An a.","$ref":"#/definitions/A","minLength":3}},"definitions":{"A":{}}}`,
			`{"properties":{"a":{"$ref":"#/$defs/A","description":"An a."}},"$defs":{"A":{}}}`},
		{"but in 2020-12", `{"properties":{"a":{"minLength":3,"$ref":"#/$defs/A"}},"$defs":{"A":{}}}`,
			`{"properties":{"a":{"minLength":3,"$ref":"#/$defs/A"}},"$defs":{"A":{}}}`},
		{"a reference to a property", `{"properties":{"s":{"type":"string"},"t":{"$ref":"#/properties/s"}}}`,
			`{"properties":{"s":{"type":"string"},"t":{"$ref":"#/$defs/s"}},"$defs":{"s":{"type":"string"}}}`},
		{"a reference to the whole", `{"type":"object","properties":{"kid":{"$ref":"#"}}}`,
			`{"type":"object","properties":{"kid":{"$ref":"#/$defs/root"}},"$defs":{"root":{"type":"object","properties":{"kid":{"$ref":"#/$defs/root"}}}}}`},
		{"escapes in a pointer", `{"properties":{"a":{"$ref":"#/$defs/a~1b%25c%20~0"}},"$defs":{"a/b%c ~":{"type":"null"}}}`,
			`{"properties":{"a":{"$ref":"#/$defs/a_b_c__"}},"$defs":{"a_b_c__":{"type":"null"}}}`},
		{"a name that a URI would escape", `{"properties":{"a":{"$ref":"#/definitions/Map<string, 5%>"}},"definitions":{"Map<string, 5%>":{"type":"null"}}}`,
			`{"properties":{"a":{"$ref":"#/$defs/Map_string__5__"}},"$defs":{"Map_string__5__":{"type":"null"}}}`},
		{"two places of one name", `{"properties":{"a":{"$ref":"#/definitions/A"},"b":{"$ref":"#/$defs/A"}},"definitions":{"A":{"type":"string"}},"$defs":{"A":{"type":"null"}}}`,
			`{"properties":{"a":{"$ref":"#/$defs/A"},"b":{"$ref":"#/$defs/A_2"}},"$defs":{"A":{"type":"string"},"A_2":{"type":"null"}}}`},
		{"an anchor", `{"properties":{"a":{"$ref":"#here"}},"$defs":{"A":{"$anchor":"here","type":"string"}}}`,
			`{"properties":{"a":{"$ref":"#/$defs/A"}},"$defs":{"A":{"type":"string"}}}`},
		{"an identifier", `{"$id":"https://example.com/tools/t","properties":{"a":{"$ref":"item"},"b":{"$ref":"/tools/item#/$defs/x"}},"$defs":{"A":{"$id":"item","type":"string","$defs":{"x":{"type":"null"}}}}}`,
			`{"properties":{"a":{"$ref":"#/$defs/A"},"b":{"$ref":"#/$defs/x"}},"$defs":{"A":{"type":"string"},"x":{"type":"null"}}}`},
		{"a dynamic reference", `{"$dynamicAnchor":"node","properties":{"kids":{"items":{"$dynamicRef":"#node"}}}}`,
			`{"properties":{"kids":{"items":{"$ref":"#/$defs/root"}}},"$defs":{"root":{"properties":{"kids":{"items":{"$ref":"#/$defs/root"}}}}}}`},
		{"a recursive reference", `{"$recursiveAnchor":true,"properties":{"kid":{"$recursiveRef":"#"}}}`,
			`{"properties":{"kid":{"$ref":"#/$defs/root"}},"$defs":{"root":{"properties":{"kid":{"$ref":"#/$defs/root"}}}}}`},
		{"a whole that is a reference", `{"$schema":"http://json-schema.org/draft-07/schema#","$ref":"#/definitions/A","definitions":{"A":{"type":"object","properties":{"x":{}}}}}`,
			`{"type":"object","properties":{"x":{}}}`},
		{"keywords that the draft doesn't have", `{"$schema":"http://json-schema.org/draft-04/schema#","const":1,"contains":false,"propertyNames":false,"if":true,"then":false,"prefixItems":[false],"dependentRequired":{"a":["b"]},"unevaluatedProperties":false,"x-own":1}`,
			`{"x-own":1}`},
		{"required of draft 03", `{"properties":{"a":{"type":"string","required":true}}}`, `{"properties":{"a":{"type":"string"}}}`},
		{"the meta-schema", `{"properties":{"schema":{"$ref":"http://json-schema.org/draft-07/schema#"}}}`, `{"properties":{"schema":{"allOf":[{"type":["object","boolean"]}]}}}`},
		{"digits and order", `{"maximum":1.50,"minimum":10000000000000000000001,"b":1,"a":2}`, `{"maximum":1.50,"minimum":10000000000000000000001,"b":1,"a":2}`},
		{"no schema", `{"properties":{"a":5}}`, `error: a schema must be an object, true or false, not the number 5, at /properties/a`},
		{"a remote reference", `{"$ref":"http://127.0.0.1:1/x"}`, `error: $ref "http://127.0.0.1:1/x" leads out of the schema, and nothing is fetched`},
		{"a file", `{"$ref":"file:///etc/passwd"}`, `error: $ref "file:///etc/passwd" leads out of the schema, and nothing is fetched`},
		{"nowhere", `{"$ref":"#/$defs/A"}`, `error: $ref "#/$defs/A" leads nowhere`},
		{"no anchor", `{"$ref":"#A"}`, `error: $ref "#A": there is no such anchor`},
		{"no schema there", `{"$ref":"#/title","title":"x"}`, `error: a $ref leads to /title, which is not a schema`},
		{"a key twice", `{"type":"object","type":"object"}`, `error: /type: got the key twice in one object, expected each key once`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			doc, err := contract.Latest(json.RawMessage(tc.in))
			got := string(doc)
			if err != nil {
				got = "error: " + err.Error()
			}
			if got != tc.want {
				t.Errorf("%s:\ngot  %s\nwant %s", tc.in, got, tc.want)
			}
		})
	}
}

// What is referred to from everywhere is written out once, and what would be too large is refused at once.
func TestLatestIsBounded(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString(`{"properties":{`)
	for i := range 200 { // each level is referred to by a property of its own, and holds all that are below
		fmt.Fprintf(&b, `"r%d":{"$ref":"#/properties/deep%s"},`, i, strings.Repeat("/not", i%50))
	}
	b.WriteString(`"deep":` + strings.Repeat(`{"not":`, 50) + `{"anyOf":[` + strings.Repeat(`{},`, 400) + `{}]}` + strings.Repeat(`}`, 50) + `}}`)
	if _, err := contract.Latest(json.RawMessage(b.String())); err == nil || !strings.Contains(err.Error(), "more than 10000 schemas") {
		t.Errorf("got %v, want a limit", err)
	}
}

// TestSuite holds Latest to the official test suite of JSON Schema, as far as a module that we depend on
// brings it along.
func TestSuite(t *testing.T) {
	t.Parallel()
	download := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", "github.com/google/jsonschema-go")
	out, err := download.Output()
	var module struct{ Dir string }
	if err := json.Unmarshal(out, &module); err != nil || module.Dir == "" {
		t.Fatalf("the module with the suite: %s %v", out, err)
	}
	if err != nil {
		t.Fatal(err)
	}
	elsewhere, dynamic, groups, tests := 0, 0, 0, 0
	for draft, uri := range map[string]string{"draft7": "http://json-schema.org/draft-07/schema#", "draft2020-12": "https://json-schema.org/draft/2020-12/schema"} {
		files, err := filepath.Glob(filepath.Join(module.Dir, "jsonschema/testdata", draft, "*.json"))
		if err != nil || len(files) < 30 {
			t.Fatalf("%s: %d files, %v", draft, len(files), err)
		}
		for _, file := range files {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var list []suiteGroup
			if err := json.Unmarshal(raw, &list); err != nil {
				t.Fatal(file, err)
			}
			for _, g := range list {
				schema := declared(g.Schema, uri)
				if bytes.Contains(schema, []byte(`"$ref": "http`)) && bytes.Contains(schema, []byte("/schema")) {
					continue // a meta-schema, which Latest takes for any schema
				}
				doc, err := contract.Latest(schema)
				switch {
				case err != nil && strings.Contains(err.Error(), "nothing is fetched"):
					elsewhere++
					continue
				case err != nil && strings.Contains(err.Error(), "may lead to several schemas"):
					dynamic++
					continue
				case err != nil:
					t.Errorf("%s: %s: %v", filepath.Base(file), g.Description, err)
					continue
				}
				groups++
				latest, err := compiled(doc, jsonschema.Draft2020)
				if err != nil {
					t.Errorf("%s: %s: %v\n%s", filepath.Base(file), g.Description, err, doc)
					continue
				}
				for _, tc := range g.Tests {
					tests++
					if got := latest.Validate(value(t, tc.Data)) == nil; got != tc.Valid {
						t.Errorf("%s: %s: %s: got %t, want %t\n%s\n%s", filepath.Base(file), g.Description, tc.Description, got, tc.Valid, schema, doc)
					}
				}
			}
		}
	}
	t.Logf("%d schemas, %d values; left out: %d schemas that refer elsewhere, %d with dynamic references to several schemas", groups, tests, elsewhere, dynamic)
	if tests < 1800 || elsewhere > 40 || dynamic > 3 {
		t.Errorf("got %d values, %d and %d left out", tests, elsewhere, dynamic)
	}
}

type suiteGroup struct {
	Description string
	Schema      json.RawMessage
	Tests       []struct {
		Description string
		Data        json.RawMessage
		Valid       bool
	}
}

// declared is a schema with a $schema, if it can have one and has none.
func declared(schema json.RawMessage, uri string) json.RawMessage {
	schema = bytes.TrimSpace(schema)
	if schema[0] != '{' || bytes.Contains(schema, []byte(`"$schema"`)) {
		return schema
	}
	rest := bytes.TrimSpace(schema[1:])
	if rest[0] != '}' {
		rest = append([]byte(","), rest...)
	}
	return fmt.Appendf(nil, `{"$schema":%q%s`, uri, rest)
}

func value(t interface{ Fatal(...any) }, raw json.RawMessage) any {
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// compiled is a schema for the validator in a draft, where it doesn't say its own; formats are no part of it.
func compiled(schema json.RawMessage, d *jsonschema.Draft) (*jsonschema.Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(d)
	if err := c.AddResource("test:schema", doc); err != nil {
		return nil, err
	}
	return c.Compile("test:schema")
}

// TestLatestMeansTheSame draws schemas of every draft, and values, and asks the validator about both in their
// own draft and as Latest says it, and a contract about them as a call's arguments.
func TestLatestMeansTheSame(t *testing.T) {
	t.Parallel()
	drafts := []struct {
		uri   string
		draft *jsonschema.Draft
		year  int
	}{
		{"http://json-schema.org/draft-04/schema#", jsonschema.Draft4, 4}, {"http://json-schema.org/draft-06/schema#", jsonschema.Draft6, 6},
		{"http://json-schema.org/draft-07/schema#", jsonschema.Draft7, 7}, {"https://json-schema.org/draft/2019-09/schema", jsonschema.Draft2019, 2019},
		{"https://json-schema.org/draft/2020-12/schema", jsonschema.Draft2020, 2020},
	}
	accepted, refused := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.SampledFrom(drafts).Draw(t, "draft")
		g := oldSchemas{t: t, year: d.year}
		home := "definitions"
		if d.year >= 2019 && rapid.Bool().Draw(t, "$defs") {
			home = "$defs"
		}
		raw, err := json.Marshal(map[string]any{
			"$schema": d.uri, "type": "object", "properties": map[string]any{"a": g.schema(3), "b": g.schema(1)},
			home: map[string]any{"A": g.schema(2), "B": g.schema(1), "a/b%": g.schema(1)},
		})
		if err != nil {
			t.Fatal(err)
		}
		raw = bytes.ReplaceAll(raw, []byte("#/HOME/"), []byte("#/"+home+"/"))
		own, err := compiled(raw, d.draft)
		if err != nil {
			t.Fatalf("%s: %v", raw, err)
		}
		doc, err := contract.Latest(raw)
		if err != nil {
			t.Fatalf("%s: %v", raw, err)
		}
		latest, err := compiled(doc, jsonschema.Draft2020)
		if err != nil {
			t.Fatalf("%s as %s: %v", raw, doc, err)
		}
		c, err := contract.New(contract.Spec{
			Schema: raw, Upstream: true, NoFill: true, Strictness: contract.Open, Fields: []contract.Field{{Name: "a"}, {Name: "b"}},
		}, nil)
		if err != nil && strings.Contains(err.Error(), "leads back to itself") {
			t.Skip(err) // nobody knows what it means
		}
		if err != nil {
			t.Fatalf("%s: %v", raw, err)
		}
		for range 8 {
			text, err := json.Marshal(map[string]any{"a": drawJSON(t, 3), "b": drawJSON(t, 1)})
			if err != nil {
				t.Fatal(err)
			}
			in := value(t, text)
			want, got := own.Validate(in) == nil, latest.Validate(in) == nil
			if got != want {
				t.Fatalf("%s: got %t, want %t\n%s\nas %s", text, got, want, raw, doc)
			}
			args, found, err := c.Check(t.Context(), text)
			if err != nil || (found == nil) != want {
				t.Fatalf("%s: the contract says %v %v, want %t\n%s", text, found, err, want, raw)
			}
			if want && string(args.JSON()) != string(text) {
				t.Fatalf("%s: the contract makes %s of it", text, args.JSON())
			}
			if want {
				accepted++
			} else {
				refused++
			}
		}
	})
	t.Logf("%d values accepted, %d refused", accepted, refused)
	if accepted < 50 || refused < 50 {
		t.Errorf("got %d accepted and %d refused values, want some of both", accepted, refused)
	}
}

// oldSchemas draws schemas of a draft.
type oldSchemas struct {
	t    *rapid.T
	year int
}

func (g oldSchemas) schema(depth int) any {
	if g.year >= 6 && rapid.IntRange(0, 9).Draw(g.t, "bool") == 0 {
		return rapid.Bool().Draw(g.t, "schema")
	}
	return g.object(depth)
}

func (g oldSchemas) object(depth int) map[string]any {
	t := g.t
	s := map[string]any{}
	schemas := func(least int) []any {
		list := make([]any, rapid.IntRange(least, 2).Draw(t, "schemas"))
		for i := range list {
			list[i] = g.schema(depth - 1)
		}
		return list
	}
	keywords := []string{"type", "enum", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxItems", "required", "const",
		"multipleOf", "uniqueItems", "minProperties"}
	if depth > 0 {
		keywords = append(keywords, "$ref", "$ref", "properties", "properties", "patternProperties", "additionalProperties", "items", "tuple", "additionalItems",
			"dependencies", "allOf", "anyOf", "oneOf", "not", "contains", "propertyNames", "if", "dependentRequired", "dependentSchemas",
			"unevaluatedProperties", "unevaluatedItems", "minContains", "prefixItems")
	}
	for range rapid.IntRange(1, 3).Draw(t, "keywords") {
		switch k := rapid.SampledFrom(keywords).Draw(t, "keyword"); k {
		case "type":
			s[k] = rapid.SampledFrom([]any{"string", "integer", "number", "object", "array", []any{"null", "boolean"}, []any{"array", "object"}}).Draw(t, k)
		case "enum":
			s[k] = []any{drawJSON(t, 1), "z"} // which must differ in the older drafts
		case "const":
			s[k] = drawJSON(t, 1)
		case "minimum", "maximum":
			s[k] = rapid.IntRange(-1, 3).Draw(t, k)
		case "exclusiveMinimum", "exclusiveMaximum":
			if g.year == 4 {
				s[strings.ToLower(strings.TrimPrefix(k, "exclusive"))] = rapid.IntRange(-1, 3).Draw(t, k)
				s[k] = rapid.Bool().Draw(t, k)
			} else {
				s[k] = rapid.IntRange(-1, 3).Draw(t, k)
			}
		case "minLength", "maxItems", "minProperties":
			s[k] = rapid.IntRange(0, 2).Draw(t, k)
		case "minContains":
			s[k], s["contains"] = rapid.IntRange(0, 2).Draw(t, k), g.schema(depth-1)
		case "multipleOf":
			s[k] = 2
		case "uniqueItems":
			s[k] = true
		case "required":
			s[k] = []any{rapid.SampledFrom(fewKeys).Draw(t, k)}
		case "$ref":
			s[k] = rapid.SampledFrom([]string{"#/HOME/A", "#/HOME/B", "#/HOME/a~1b%25", "#", "#/properties/a"}).Draw(t, k)
		case "properties", "dependentSchemas":
			s[k] = map[string]any{"a": g.schema(depth - 1), rapid.SampledFrom(fewKeys).Draw(t, k): g.schema(depth - 1)}
		case "patternProperties":
			s[k] = map[string]any{"^[ab]": g.schema(depth - 1)}
		case "dependentRequired":
			s[k] = map[string]any{"a": []any{"b"}}
		case "dependencies":
			if g.year < 2019 {
				s[k] = map[string]any{"a": []any{"b"}, "b": g.schema(depth - 1)}
			}
		case "tuple":
			if g.year < 2020 {
				s["items"] = schemas(1)
			}
		case "prefixItems":
			s[k] = schemas(1)
		case "additionalItems":
			s[k] = g.schema(depth - 1)
		case "allOf", "anyOf", "oneOf":
			s[k] = schemas(1)
		case "if":
			s[k], s["then"], s["else"] = g.schema(depth-1), g.schema(depth-1), g.schema(depth-1)
		default:
			s[k] = g.schema(depth - 1)
		}
	}
	if s["$ref"] != nil && g.year < 2019 {
		delete(s, "const") // which the validator minds beside a $ref, against these drafts
	}
	return s
}

var fewKeys = []string{"a", "b", "c"}

// drawJSON draws a value of few kinds, so that schemas often mean it.
func drawJSON(t *rapid.T, depth int) any {
	kinds := []string{"null", "bool", "number", "string"}
	if depth > 0 {
		kinds = append(kinds, "array", "object", "object")
	}
	switch rapid.SampledFrom(kinds).Draw(t, "kind") {
	case "bool":
		return rapid.Bool().Draw(t, "bool")
	case "number":
		return rapid.SampledFrom([]any{-1, 0, 1, 2, 3, 1.5}).Draw(t, "number")
	case "string":
		return rapid.SampledFrom([]any{"", "a", "bb"}).Draw(t, "string")
	case "array":
		list := make([]any, rapid.IntRange(0, 3).Draw(t, "items"))
		for i := range list {
			list[i] = drawJSON(t, depth-1)
		}
		return list
	case "object":
		o := map[string]any{}
		for range rapid.IntRange(0, 3).Draw(t, "members") {
			o[rapid.SampledFrom(fewKeys).Draw(t, "key")] = drawJSON(t, depth-1)
		}
		return o
	}
	return nil
}
