package derive_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/cuecontext"
	cuejson "cuelang.org/go/encoding/json"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/internal/derive"
)

// definitions are what generated args may refer to.
const definitions = `#Port: int & >=1 & <=9, #Pair: {a!: string, b?: int, c: *2 | int}, #Open: {a?: int, ...}, #Node: {v: *1 | int, next?: #Node, kids?: [...#Node], alt?: null | #Node}, _color: "red" | "blue"`

// scalarText is one constraint on a scalar.
func scalarText(t *rapid.T) string {
	return rapid.SampledFrom([]string{
		"string", "int", "number", "bool", "null",
		`string & strings.MinRunes(2)`, `strings.MaxRunes(3)`, `strings.MinRunes(1) & strings.MaxRunes(2)`,
		`=~"^a"`, `string & =~"b$"`, `=~"^[a-c]+$" & !="aa"`, `!~"x"`, `=~"^a.b\\s"`, `!="red"`,
		"int & >=1 & <=10", "int & >-3 & <3", ">1.5 & <=4", "number & >=0", "int & !=3", "uint8", "int64", "uint",
		`"red" | "blue"`, `1 | 2 | 3`, `"red" | 1 | null`, `true | "x"`, `1 | 2.5`, `"a"`, `5`, `true`, `2.5`,
		"int | string", "string | null", `"auto" | int & >0`, "bool | int | null", `>=3 | "x"`, `<0 | >5`,
		"_color", "#Port", `#Port & !=4`, "_color | int", "_",
	}).Draw(t, "scalar")
}

// defaulted is a scalar with a default that its constraint takes.
func defaulted(t *rapid.T) string {
	return rapid.SampledFrom([]string{
		`*"red" | "blue"`, `*10 | int & >=1 & <=100`, `int | *3`, `*"a" | =~"^a"`, `*null | string`, `*1.5 | number`,
		`*true | bool`, `*"auto" | int`, `*5 | #Port`, `*"blue" | _color`, `(*2 | int) & >1`, `*[] | [...int]`, `*["a"] | [...string]`,
		`*[] | [...string] & list.MaxItems(2)`,
	}).Draw(t, "defaulted")
}

func valueText(t *rapid.T, depth int) string {
	kinds := []string{"scalar", "scalar", "scalar", "struct", "list", "open", "map", "tuple", "reference", "choice", "embedding", "sized struct"}
	if depth == 0 {
		kinds = kinds[:3]
	}
	switch rapid.SampledFrom(kinds).Draw(t, "kind") {
	case "struct":
		return structText(t, depth-1, "")
	case "open":
		return structText(t, depth-1, "...")
	case "list":
		l := "[..." + valueText(t, depth-1) + "]"
		return l + rapid.SampledFrom([]string{"", "", " & list.MaxItems(2)", " & list.MinItems(1)", " & list.UniqueItems()"}).Draw(t, "size")
	case "map":
		return "{[string]: " + scalarText(t) + "}"
	case "tuple":
		return "[" + scalarText(t) + ", " + scalarText(t) + rapid.SampledFrom([]string{"]", ", ...]", ", ...int]"}).Draw(t, "end")
	case "reference":
		return rapid.SampledFrom([]string{"#Pair", "#Open", "#Node", "#Port"}).Draw(t, "reference")
	case "choice":
		return rapid.SampledFrom([]string{"null", "string", "int", `"x" | 2`}).Draw(t, "first") + " | " + structText(t, depth-1, "")
	case "embedding":
		return rapid.SampledFrom([]string{"{#Pair, d?: int}", "{#Pair, ...}", "{#Open, d!: string}", `{[=~"^x"]: int, a?: string}`, "{a?: int} & {b?: string}"}).Draw(t, "embedding")
	case "sized struct":
		// Without a field nothing satisfies it, and CUE forgets that such a struct is closed.
		return strings.Replace(structText(t, depth-1, ""), "{}", "{a?: int}", 1) + " & " + rapid.SampledFrom([]string{"struct.MinFields(1)", "struct.MaxFields(1)"}).Draw(t, "size")
	}
	return scalarText(t)
}

func fieldTexts(t *rapid.T, depth int) []string {
	var out []string
	for _, name := range []string{"a", "b", "c", "d"}[:rapid.IntRange(0, 4).Draw(t, "fields")] {
		if rapid.IntRange(0, 3).Draw(t, "with default") == 0 {
			out = append(out, name+": "+defaulted(t))
			continue
		}
		mark := rapid.SampledFrom([]string{"!", "?", "?", ""}).Draw(t, "mark")
		out = append(out, name+mark+": "+valueText(t, depth))
	}
	return out
}

func structText(t *rapid.T, depth int, end string) string {
	fields := fieldTexts(t, depth)
	if end != "" {
		fields = append(fields, end)
	}
	return "{" + strings.Join(fields, ", ") + "}"
}

// documents makes calls that are near to what a schema accepts: mostly right, and wrong in a place or two.
type documents struct {
	*rapid.T
	defs map[string]any
}

func (d documents) value(schema any, depth int) string {
	s, _ := schema.(map[string]any)
	if ref, ok := s["$ref"].(string); ok {
		s, _ = d.defs[strings.TrimPrefix(ref, "#/$defs/")].(map[string]any)
	}
	if len(s) == 0 || depth < 0 || rapid.IntRange(0, 24).Draw(d.T, "off") == 0 {
		return jsonText(d.T, max(depth, 0))
	}
	if alternatives, ok := s["anyOf"].([]any); ok {
		return d.value(rapid.SampledFrom(alternatives).Draw(d.T, "alternative"), depth)
	}
	if c, ok := s["const"]; ok {
		return jsonOf(c)
	}
	if e, ok := s["enum"].([]any); ok {
		return jsonOf(rapid.SampledFrom(e).Draw(d.T, "enum"))
	}
	types, ok := s["type"].([]any)
	if !ok {
		types = []any{s["type"]}
	}
	switch rapid.SampledFrom(types).Draw(d.T, "type") {
	case "object":
		return d.object(s, depth)
	case "array":
		return d.array(s, depth)
	case "string":
		return rapid.SampledFrom([]string{`"red"`, `"a"`, `"aa"`, `"ab"`, `"b"`, `""`, `"abc"`, `"é"`, `"a b "`, `"ac\t"`, `"cab"`}).Draw(d.T, "string")
	case "integer":
		return rapid.SampledFrom([]string{"0", "1", "2", "3", "5", "7", "10", "-2", "300", "2.0", "1e1", "9007199254740993", "99999999999999999999"}).Draw(d.T, "integer")
	case "number":
		return rapid.SampledFrom([]string{"0", "1", "2", "5", "-2", "2.5", "1.5", "1.6", "3.99", "6"}).Draw(d.T, "number")
	case "boolean":
		return rapid.SampledFrom([]string{"true", "false"}).Draw(d.T, "boolean")
	}
	return "null"
}

func jsonOf(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func (d documents) object(s map[string]any, depth int) string {
	var fields []string
	properties, _ := s["properties"].(map[string]any)
	required, _ := s["required"].([]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		least := 0
		if slices.Contains(required, any(name)) {
			least = 19 // seldom left out
		}
		if rapid.IntRange(0, least+2).Draw(d.T, "has "+name) > 0 {
			fields = append(fields, fmt.Sprintf("%q: %s", name, d.value(properties[name], depth-1)))
		}
	}
	extra := 15
	if s["additionalProperties"] != false || s["patternProperties"] != nil {
		extra = 1
	}
	if rapid.IntRange(0, extra).Draw(d.T, "extra") == 0 {
		fields = append(fields, fmt.Sprintf("%q: %s", rapid.SampledFrom([]string{"x1", "zz"}).Draw(d.T, "key"), d.value(s["additionalProperties"], depth-1)))
	}
	return "{" + strings.Join(fields, ", ") + "}"
}

func (d documents) array(s map[string]any, depth int) string {
	prefix, _ := s["prefixItems"].([]any)
	var items []string
	for i := range rapid.IntRange(0, 3).Draw(d.T, "more") + len(prefix) {
		if i < len(prefix) {
			items = append(items, d.value(prefix[i], depth-1))
		} else if s["items"] != false || rapid.IntRange(0, 9).Draw(d.T, "beyond") == 0 {
			items = append(items, d.value(s["items"], depth-1))
		}
	}
	return "[" + strings.Join(items, ", ") + "]"
}

func jsonText(t *rapid.T, depth int) string {
	kinds := []string{"scalar", "scalar", "object", "array"}
	if depth == 0 {
		kinds = kinds[:2]
	}
	switch rapid.SampledFrom(kinds).Draw(t, "json") {
	case "object":
		return fmt.Sprintf(`{"a": %s}`, jsonText(t, depth-1))
	case "array":
		items := make([]string, rapid.IntRange(0, 3).Draw(t, "items"))
		for i := range items {
			items[i] = jsonText(t, depth-1)
		}
		return "[" + strings.Join(items, ", ") + "]"
	}
	return rapid.SampledFrom([]string{
		`"red"`, `"blue"`, `"a"`, `"aa"`, `"ab"`, `"b"`, `"x"`, `""`, `"abc"`, `"é"`, `"a b "`, `"auto"`,
		"0", "1", "2", "3", "5", "10", "-2", "300", "2.5", "1.5", "-0.5", "9007199254740993", "99999999999999999999", "true", "false", "null",
	}).Draw(t, "value")
}

// whole writes the two numbers without fraction that documents holds as the integers that they are to JSON Schema.
var whole = strings.NewReplacer("2.0", "2", "1e1", "10")

// accepted asks CUE.
func accepted(args cue.Value, doc string) (string, error) {
	expr, err := cuejson.Extract("call.json", []byte(whole.Replace(doc)))
	if err != nil {
		return "", err
	}
	v := args.Unify(cuecontext.New().BuildExpr(expr))
	if err := v.Validate(cue.Concrete(true), cue.Final()); err != nil {
		return "", err
	}
	raw, err := v.MarshalJSON()
	return string(raw), err
}

// bounded is a list or struct with a bound. CUE v0.17.1 forgets that the structs inside are closed where a list of a
// definition has a bound ([...{a?: int}] & list.MaxItems(2) takes {zz: 1}), so it is asked again without the bounds.
var bounded = regexp.MustCompile(` & (list|struct)\.\w+\(\d*\)`)

// What the contract accepts is what CUE accepts, and what it fills in is what CUE fills in.
func TestAgreesWithCUE(t *testing.T) {
	t.Parallel()
	accepts, refuses, refused := 0, 0, 0
	rapid.Check(t, func(r *rapid.T) {
		text := strings.Join(fieldTexts(r, 2), "\n")
		value := toolValue(t, text)
		if !value.Exists() {
			r.Skip("no CUE")
		}
		spec, _, problems := derive.Args(value, contract.Closed, "tools.x.args")
		if problems.HasErrors() {
			refused++
			return
		}
		c, err := contract.New(spec, nil)
		if err != nil {
			r.Fatalf("%s\n%s\n%v", text, spec.Schema, err)
		}
		closed := toolValue(t, bounded.ReplaceAllString(text, ""))
		schema := decoded(t, string(spec.Schema)).(map[string]any)
		defs, _ := schema["$defs"].(map[string]any)
		for range 12 {
			doc := documents{r, defs}.object(schema, 4)
			want, err := acceptedClosed(value, spec, doc)
			if err == nil && bounded.MatchString(text) {
				_, err = acceptedClosed(closed, spec, doc)
			}
			got, found := check(c, json.RawMessage(doc))
			if (err == nil) != (len(found) == 0) {
				r.Fatalf("args {\n%s\n}\nschema %s\ncall %s\nCUE: %v\ncontract: %v", text, spec.Schema, doc, err, found)
			}
			if err != nil {
				refuses++
				continue
			}
			accepts++
			if diff := cmp.Diff(decoded(t, want), decoded(t, whole.Replace(string(got.JSON())))); diff != "" {
				r.Fatalf("args {\n%s\n}\ncall %s\nCUE fills in %s\ncontract     %s", text, doc, want, got.JSON())
			}
		}
	})
	t.Logf("%d calls accepted, %d refused; %d schemas refused", accepts, refuses, refused)
}

// acceptedClosed is accepted with the strictness that schema.cue leaves to the contract.
func acceptedClosed(value cue.Value, spec contract.Spec, doc string) (string, error) {
	var keys map[string]json.RawMessage
	if err := json.Unmarshal([]byte(doc), &keys); err != nil {
		return "", err
	}
	for k := range keys {
		if _, ok := spec.Field(k); !ok {
			return "", fmt.Errorf("%s: not declared", k)
		}
	}
	return accepted(value, doc)
}

func toolValue(t *testing.T, text string) cue.Value {
	source := "package catalog\n\n" + imports(definitions+text) + "\n" + definitions + "\ntools: x: args: {\n" + text + "\n}\n"
	return build(t, map[string]string{"tools.cue": source}).LookupPath(cue.ParsePath("tools.x.#Args"))
}

func decoded(t *testing.T, s string) any {
	d := json.NewDecoder(strings.NewReader(s))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}
