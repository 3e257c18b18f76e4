package derive_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/cuecontext"
	"cuelang.org/go/cue/load"
	"github.com/google/go-cmp/cmp"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/problem"
)

// schema reads args as a definition in the way that schema.cue does.
const schema = `package catalog

#Tool: {
	name!: string
	args: _
	#Args: args
}
tools: [N=string]: #Tool & {name: N}
`

// catalog loads files from memory as the loader does and returns the value of the whole.
func catalog(t testing.TB, files map[string]string) cue.Value {
	t.Helper()
	v := build(t, files)
	if err := v.Err(); err != nil {
		t.Fatal(err)
	}
	return v
}

func build(t testing.TB, files map[string]string) cue.Value {
	t.Helper()
	tree := fstest.MapFS{
		"cue.mod/module.cue": {Data: []byte("module: \"test.example/catalog@v0\"\nlanguage: version: \"v0.17.0\"\n")},
		"schema.cue":         {Data: []byte(schema)},
	}
	for name, text := range files {
		tree[name] = &fstest.MapFile{Data: []byte(text)}
	}
	instances := load.Instances([]string{"."}, &load.Config{FS: fs.FS(tree), Dir: "/"})
	if err := instances[0].Err; err != nil {
		t.Fatal(err)
	}
	return cuecontext.New().BuildInstance(instances[0])
}

// tool loads one tool whose args begin on line 13, column 1 of tools.cue, behind the definitions on lines up to 10.
func tool(t testing.TB, definitions, args string) cue.Value {
	t.Helper()
	text := "package catalog\n\n" + imports(definitions+args) + "\n" + definitions + "\ntools: x: args: {\n" + args + "\n}\n"
	return catalog(t, map[string]string{"tools.cue": text})
}

// imports is one line.
func imports(text string) string {
	var out []string
	for _, name := range []string{"strings", "list", "struct", "time", "net", "math", "uuid"} {
		if strings.Contains(text, name+".") {
			out = append(out, fmt.Sprintf("%q", name))
		}
	}
	if len(out) == 0 {
		return ""
	}
	return "import (" + strings.Join(out, ", ") + ")"
}

func args(t testing.TB, definitions, text string, strictness contract.Strictness) (contract.Spec, map[string]problem.Position, problem.List) {
	t.Helper()
	return deriveTool(tool(t, definitions, text), strictness)
}

func TestSchema(t *testing.T) {
	t.Parallel()
	schemas(t, false)
}

// isRow tells the cases that are rows of the list of bad inputs, which TestBadInput runs.
func isRow(name string) bool { return regexp.MustCompile(`^A\d+/`).MatchString(name) }

func schemas(t *testing.T, rows bool) {
	for name, tc := range map[string]struct{ definitions, args, properties string }{
		"required string":          {"", `city!: string & strings.MinRunes(1) & strings.MaxRunes(9)`, `"city":{"type":"string","minLength":1,"maxLength":9}`},
		"doc":                      {"", "// The city <b>.\n// Any.\ncity?: string // not this", `"city":{"type":"string","description":"The city <b>.\nAny."}`},
		"enum and default":         {"", `u: *"c" | "f"`, `"u":{"type":"string","enum":["c","f"],"default":"c"}`},
		"A33/default first":        {"", `limit: int | *10`, `"limit":{"type":"integer","default":10}`},
		"NoOp of one operand":      {"", `limit: *10 | int & >=1 & <=100`, `"limit":{"type":"integer","minimum":1,"maximum":100,"default":10}`},
		"A35/integer":              {"", `x!: int & >=1 & <=10`, `"x":{"type":"integer","minimum":1,"maximum":10}`},
		"exclusive bounds":         {"", `x!: number & >1.5 & <10`, `"x":{"type":"number","exclusiveMinimum":1.5,"exclusiveMaximum":10}`},
		"sized":                    {"", `x!: int64, y!: uint8`, `"x":{"type":"integer","minimum":-9223372036854775808,"maximum":9223372036854775807},"y":{"type":"integer","minimum":0,"maximum":255}`},
		"A31/open object":          {"", `x?: {...}`, `"x":{"type":"object"}`},
		"closed object":            {"", `x?: {a!: int, b?: {c: *1 | int}}`, `"x":{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"object","properties":{"c":{"type":"integer","default":1}},"additionalProperties":false}},"required":["a"],"additionalProperties":false}`},
		"a struct of defaults":     {"", `x: {a: *1 | int}`, `"x":{"type":"object","properties":{"a":{"type":"integer","default":1}},"additionalProperties":false,"default":{"a":1}}`},
		"map":                      {"", `x?: [string]: int`, `"x":{"type":"object","additionalProperties":{"type":"integer"}}`},
		"patterns":                 {"", `x?: {[=~"^x-"]: int, a?: string}`, `"x":{"type":"object","properties":{"a":{"type":"string"}},"patternProperties":{"^x-":{"type":"integer"}},"additionalProperties":false}`},
		"two patterns":             {"", `x?: {[string]: number, [=~"^x"]: int}`, `"x":{"type":"object","patternProperties":{"":{"type":"number"},"^x":{"type":"integer"}},"additionalProperties":false}`},
		"A30/struct bounds":        {"", `x?: {...} & struct.MinFields(2) & struct.MaxFields(3)`, `"x":{"type":"object","minProperties":2,"maxProperties":3}`},
		"list":                     {"", `x?: [...string] & list.MinItems(1) & list.MaxItems(3) & list.UniqueItems()`, `"x":{"type":"array","items":{"type":"string"},"minItems":1,"maxItems":3,"uniqueItems":true}`},
		"list default":             {"", `x: *[] | [...string]`, `"x":{"type":"array","items":{"type":"string"},"default":[]}`},
		"list default, bounded":    {"", `x: *[] | [...string] & list.MaxItems(3)`, `"x":{"type":"array","items":{"type":"string"},"maxItems":3,"default":[]}`},
		"list default, joined":     {"", `x: (*["a"] | [...string]) & list.MaxItems(3)`, `"x":{"type":"array","items":{"type":"string"},"maxItems":3,"default":["a"]}`},
		"unique, without brackets": {"", `x?: [...int] & list.UniqueItems`, `"x":{"type":"array","items":{"type":"integer"},"uniqueItems":true}`},
		"A30/bound alone":          {"", `x?: struct.MaxFields(1)`, `"x":{"type":"object","maxProperties":1}`},
		"tuple":                    {"", `x?: [int, string]`, `"x":{"type":"array","prefixItems":[{"type":"integer"},{"type":"string"}],"items":false,"minItems":2,"maxItems":2}`},
		"open tuple":               {"", `x?: [int, ...{a?: string}]`, `"x":{"type":"array","prefixItems":[{"type":"integer"}],"items":{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false},"minItems":1}`},
		"constant":                 {"", `x: "a", y: 5, z?: true`, `"x":{"type":"string","const":"a","default":"a"},"y":{"type":"integer","const":5,"default":5},"z":{"type":"boolean","const":true}`},
		"null":                     {"", `x?: null, y?: string | null, z: *null | "a"`, `"x":{"type":"null"},"y":{"type":["null","string"]},"z":{"type":["string","null"],"enum":["a",null],"default":null}`},
		"kinds":                    {"", `x?: int | string, y?: "auto" | int & >0`, `"x":{"type":["integer","string"]},"y":{"anyOf":[{"type":"string","const":"auto"},{"type":"integer","exclusiveMinimum":0}]}`},
		"struct or null":           {"", `x?: null | {a!: int}`, `"x":{"anyOf":[{"type":"null"},{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"],"additionalProperties":false}]}`},
		"list or string":           {"", `x?: string | [...string] & list.MaxItems(2)`, `"x":{"anyOf":[{"type":"string"},{"type":"array","items":{"type":"string"},"maxItems":2}]}`},
		"any":                      {"", `x?: _`, `"x":{}`},
		"not":                      {"", `x?: string & !="a" & !~"^b"`, `"x":{"type":"string","not":{"const":"a"},"allOf":[{"not":{"pattern":"^b"}}]}`},
		"regex":                    {"", `x?: =~"^a.\\s[\\s,]$" & =~"b"`, `"x":{"type":"string","pattern":"^a[^\\n][\\t\\n\\f\\r ][\\t\\n\\f\\r ,]$","allOf":[{"pattern":"b"}]}`},
		"references": {`#Port: int & >0 & <65536, #Range: {lo!: #Port, hi?: #Port}, _u: "a" | "b"`, `r!: #Range, u?: _u, p: *80 | #Port`,
			`"r":{"type":"object","properties":{"lo":{"type":"integer","exclusiveMinimum":0,"exclusiveMaximum":65536},"hi":{"type":"integer","exclusiveMinimum":0,"exclusiveMaximum":65536}},"required":["lo"],"additionalProperties":false},"u":{"type":"string","enum":["a","b"]},"p":{"type":"integer","exclusiveMinimum":0,"exclusiveMaximum":65536,"default":80}`},
		"embedding":              {`#Base: {a!: int}`, `x?: {#Base, b?: string}`, `"x":{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"string"}},"required":["a"],"additionalProperties":false}`},
		"hidden and definitions": {"", `_h: 3, #d: >=_h, x?: int & #d`, `"x":{"type":"integer","minimum":3}`},
		"multipleOf of nothing":  {"", `x?: number & >=0 & !=1.5`, `"x":{"type":"number","minimum":0,"not":{"const":1.5}}`},
		"numbers keep digits":    {"", `x: *9007199254740993 | int`, `"x":{"type":"integer","default":9007199254740993}`},
	} {
		if isRow(name) != rows {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDeclared(t, tc.definitions, tc.args, contract.Closed)
			if len(d.problems) > 0 || len(d.spec.Losses) > 0 {
				t.Fatalf("%v %v", d.problems, d.spec.Losses)
			}
			var got struct {
				Properties json.RawMessage `json:"properties"`
			}
			if err := json.Unmarshal(d.spec.Schema, &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff("{"+tc.properties+"}", string(got.Properties)); diff != "" {
				t.Error(diff)
			}
			if d.agrees(t, drawnCalls(d, tc.definitions+tc.args, 100)...) < 2 {
				t.Error("CUE accepts too few calls for a comparison")
			}
		})
	}
}

func recursion(t *testing.T) {
	t.Parallel()
	spec, _, problems := args(t, `#Node: {v: *1 | int, kids?: [...#Node], next?: null | #Node}, #A: {b?: #B}, #B: {a?: #A}`, "root!: #Node, again?: #Node, m?: #A", contract.Closed)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	want := `{"type":"object","properties":{"root":{"$ref":"#/$defs/Node"},"again":{"$ref":"#/$defs/Node"},"m":{"$ref":"#/$defs/A"}},"required":["root"],"additionalProperties":false,` +
		`"$defs":{"Node":{"type":"object","properties":{"v":{"type":"integer","default":1},"kids":{"type":"array","items":{"$ref":"#/$defs/Node"}},"next":{"anyOf":[{"type":"null"},{"$ref":"#/$defs/Node"}]}},"additionalProperties":false},` +
		`"A":{"type":"object","properties":{"b":{"type":"object","properties":{"a":{"$ref":"#/$defs/A"}},"additionalProperties":false}},"additionalProperties":false}}}`
	if diff := cmp.Diff(want, string(spec.Schema)); diff != "" {
		t.Error(diff)
	}
	c, err := contract.New(spec, nil)
	if err != nil {
		t.Fatal(err)
	}
	got, found := check(c, json.RawMessage(`{"root":{"kids":[{},{"next":{"v":2.0}}]}}`))
	if len(found) > 0 || string(got.JSON()) != `{"root":{"kids":[{"v":1},{"next":{"v":2},"v":1}],"v":1}}` {
		t.Errorf("%s %v", got.JSON(), found)
	}
	if diff := cmp.Diff([]string{"object"}, spec.Fields[0].Types); diff != "" {
		t.Error(diff)
	}
}

func TestFields(t *testing.T) {
	t.Parallel()
	spec, positions, problems := args(t, "", `a!: string
	b?: int | string
	c: *1 | int
	d: string
	e: null | *"x"
	f?: _
	g?: number | int
	opts: deep: *1 | int`, contract.Open)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	want := []contract.Field{
		{Name: "a", Types: []string{"string"}, Required: true},
		{Name: "b", Types: []string{"integer", "string"}},
		{Name: "c", Types: []string{"integer"}, Default: json.RawMessage("1")},
		{Name: "d", Types: []string{"string"}, Required: true},
		{Name: "e", Types: []string{"null", "string"}, Default: json.RawMessage(`"x"`)},
		{Name: "f", Types: []string{"array", "boolean", "null", "number", "object", "string"}},
		{Name: "g", Types: []string{"number"}},
		{Name: "opts", Types: []string{"object"}, Default: json.RawMessage(`{"deep":1}`)},
	}
	if diff := cmp.Diff(want, spec.Fields); diff != "" {
		t.Error(diff)
	}
	if strings.Contains(string(spec.Schema), `"additionalProperties":false}]}`) || !strings.HasSuffix(string(spec.Schema), `"required":["a","d"]}`) {
		t.Errorf("open: %s", spec.Schema)
	}
	for path, want := range map[string]string{"a": "tools.cue:6:1", "c": "tools.cue:8:2", "opts": "tools.cue:13:2", "opts.deep": "tools.cue:13:8"} {
		if got := positions[path].String(); got != want {
			t.Errorf("%s at %s, want %s", path, got, want)
		}
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	refusals(t, false)
}

func refusals(t *testing.T, rows bool) {
	for name, tc := range map[string]struct {
		definitions, args string
		want              []string // position, code and path
	}{
		"contradiction":                        {"", `x?: <5 & >5`, []string{"6:5 cue_conflict tools.x.args.x"}},
		"A37/lookahead":                        {"", `x!: =~"^(?!rm)"`, []string{"6:7 bad_regex tools.x.args.x"}},
		"A37/broken regex":                     {"", `x!: string & =~"("`, []string{"6:16 bad_regex tools.x.args.x"}},
		"conflict":                             {"", `x?: "a" & 5`, []string{"6:5 cue_conflict tools.x.args.x"}},
		"dropped default":                      {"", `x: (*5 | int) & >=10`, []string{"6:5 bad_default tools.x.args.x"}},
		"A40/__proto__":                        {"", `"__proto__"?: int`, []string{"6:1 bad_name tools.x.args.__proto__"}},
		"A40/$ref":                             {"", `"$ref"?: int`, []string{"6:1 bad_name tools.x.args.$ref"}},
		"A40/empty name":                       {"", `""?: int`, []string{"6:1 bad_name tools.x.args.\"\""}},
		"A40/long name":                        {"", strings.Repeat("a", 65) + `?: int`, []string{"6:1 bad_name tools.x.args." + strings.Repeat("a", 65)}},
		"A40/invisible name":                   {"", `"a\u202eb"?: int`, []string{`6:1 bad_name tools.x.args."a\u202eb"`}},
		"several at once":                      {"", "a?: <5 & >5\nb!: int & >c\nc?: =~\"(\"\nd: (*9 | int) & <5", []string{"6:5 cue_conflict tools.x.args.a", "8:7 bad_regex tools.x.args.c", "9:5 bad_default tools.x.args.d"}},
		"a list that CUE checks before a call": {"", "l!: [...string] & list.Contains(\"x\")\nm!: [...int] & list.MatchN(2, >5)", []string{"6:19 unsupported_constraint tools.x.args.l", "7:16 unsupported_constraint tools.x.args.m"}},
		"A42/enum":                             {"", "a?: " + enum(1001), []string{"6:1 unsupported_constraint tools.x.args.a"}},
		"A42/description":                      {"", "// " + strings.Repeat("long ", 4000) + "\na?: int", []string{"7:1 unsupported_constraint tools.x.args.a"}},
	} {
		if isRow(name) != rows {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			problems := newDeclared(t, tc.definitions, tc.args, contract.Closed).problems
			var got []string
			for _, p := range problems.Sorted() {
				if p.File != "tools.cue" {
					t.Errorf("in the file %q", p.File)
				}
				got = append(got, fmt.Sprintf("%d:%d %s %s", p.Line, p.Col, p.Code, p.Path))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n%v", diff, problems)
			}
		})
	}
}

func enum(n int) string {
	values := make([]string, n)
	for i := range values {
		values[i] = fmt.Sprintf("%q", fmt.Sprint("v", i))
	}
	return strings.Join(values, " | ")
}

// At the top, strictness alone decides about further keys, whatever args are made of.
func TestTop(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		definitions, args string
		strictness        contract.Strictness
		want              string
		losses            []string
	}{
		"none":                {``, `{}`, contract.Closed, `{"type":"object","additionalProperties":false}`, nil},
		"none, open":          {``, `{}`, contract.Open, `{"type":"object"}`, nil},
		"exact":               {``, `{a!: int}`, contract.Exact, `{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"],"additionalProperties":false}`, nil},
		"a definition":        {`#D: {a!: int}`, `#D`, contract.Closed, `{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"],"additionalProperties":false}`, nil},
		"a definition, open":  {`#D: {a!: int}`, `#D`, contract.Open, `{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}`, nil},
		"embedded":            {`#D: {a!: int}`, `{#D, b?: int}`, contract.Closed, `{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"required":["a"],"additionalProperties":false}`, nil},
		"written open":        {``, `{a?: int, ...}`, contract.Closed, `{"type":"object","properties":{"a":{"type":"integer"}},"additionalProperties":false}`, nil},
		"any name":            {``, `{[string]: int}`, contract.Closed, `{"type":"object","patternProperties":{"":{"type":"integer"}},"additionalProperties":false}`, nil},
		"any name, open":      {``, `{[string]: int}`, contract.Open, `{"type":"object","additionalProperties":{"type":"integer"}}`, nil},
		"names of a pattern":  {``, `{[=~"^x"]: int}`, contract.Closed, `{"type":"object","patternProperties":{"^x":{"type":"integer"}},"additionalProperties":false}`, nil},
		"bounded":             {``, `struct.MinFields(1) & {a?: int, b?: int}`, contract.Closed, `{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"additionalProperties":false,"minProperties":1}`, nil},
		"recursive":           {`#D: {kids?: [...#D]}`, `#D`, contract.Open, `{"type":"object","properties":{"kids":{"type":"array","items":{"$ref":"#/$defs/D"}}},"$defs":{"D":{"type":"object","properties":{"kids":{"type":"array","items":{"$ref":"#/$defs/D"}}}}}}`, []string{"4:17 name : #D is open at the top and closed below"}},
		"shared, odd name":    {`big: "a/b c%": {n!: =~"^[a-z]{1,40}$", o!: =~"^[a-z]{1,40}$", p!: =~"^[a-z]{1,40}$", q!: =~"^[a-z]{1,40}$"}`, `{x?: big."a/b c%", y?: big."a/b c%"}`, contract.Closed, `{"type":"object","properties":{"x":{"$ref":"#/$defs/a_b_c"},"y":{"$ref":"#/$defs/a_b_c"}},"additionalProperties":false,"$defs":{"a_b_c":{"type":"object","properties":{"n":{"type":"string","pattern":"^[a-z]{1,40}$"},"o":{"type":"string","pattern":"^[a-z]{1,40}$"},"p":{"type":"string","pattern":"^[a-z]{1,40}$"},"q":{"type":"string","pattern":"^[a-z]{1,40}$"}},"required":["n","o","p","q"],"additionalProperties":false}}}`, nil},
		"shared, inner first": {`#P: {lat!: number & >=-90 & <=90, long!: number & >=-180 & <=180, label?: =~"^[a-z]{0,40}$", at?: =~"^[a-z]{0,40}$"}, #W: {p!: #P, q?: #P}`, `{a!: #W, b?: [...#W], c?: #P, small?: #S, small2?: #S}, #S: {x!: int}`, contract.Closed, `{"type":"object","properties":{"a":{"$ref":"#/$defs/W"},"b":{"type":"array","items":{"$ref":"#/$defs/W"}},"c":{"$ref":"#/$defs/P"},"small":{"type":"object","properties":{"x":{"type":"integer"}},"required":["x"],"additionalProperties":false},"small2":{"type":"object","properties":{"x":{"type":"integer"}},"required":["x"],"additionalProperties":false}},"required":["a"],"additionalProperties":false,"$defs":{"W":{"type":"object","properties":{"p":{"$ref":"#/$defs/P"},"q":{"$ref":"#/$defs/P"}},"required":["p"],"additionalProperties":false},"P":{"type":"object","properties":{"lat":{"type":"number","minimum":-90,"maximum":90},"long":{"type":"number","minimum":-180,"maximum":180},"label":{"type":"string","pattern":"^[a-z]{0,40}$"},"at":{"type":"string","pattern":"^[a-z]{0,40}$"}},"required":["lat","long"],"additionalProperties":false}}}`, nil},
		"another tool's":      {`tools: y: args: {lo: int & >1}`, `{lo!: tools.y.args.lo}`, contract.Closed, `{"type":"object","properties":{"lo":{}},"required":["lo"],"additionalProperties":false}`, []string{"4:23 cross_field lo: tools.y.args.lo"}},
		"a value of the file": {`let Max = 9, _unit: "m" | "s"`, `{a?: int & <=Max, u: *"m" | _unit}`, contract.Closed, `{"type":"object","properties":{"a":{"type":"integer"},"u":{"type":"string","enum":["m","s"],"default":"m"}},"additionalProperties":false}`, []string{"4:28 bound a: <=Max"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := declaredIn(t, map[string]string{
				"tools.cue":  "package catalog\n" + imports(tc.args) + "\n" + tc.definitions + "\ntools: x: args: " + tc.args + "\n",
				"b/tool.cue": "package catalog\n",
			}, tc.args, tc.strictness)
			if d.problems.HasErrors() || len(d.problems) > 0 != strings.Contains(tc.args, "...}") {
				t.Fatal(d.problems)
			}
			if diff := cmp.Diff(tc.want, string(d.spec.Schema)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tc.losses, dumped(d.spec.Losses)); diff != "" {
				t.Error(diff)
			}
			calls := drawnCalls(d, tc.definitions+tc.args, 100)
			if len(d.problems) > 0 { // the warning is that ... does not open the top
				calls = []string{`{}`, `{"a":1}`, `{"a":"x"}`}
				if _, found := check(d.whole, []byte(`{"zz":1}`)); found == nil {
					t.Error("a further key passes")
				}
			}
			if d.agrees(t, calls...) == 0 {
				t.Error("CUE accepts too few calls for a comparison")
			}
		})
	}
}

// Args may be declared in several files, and refer to definitions of others. What all of them ask for is for CUE to say.
func TestSeveralFiles(t *testing.T) {
	t.Parallel()
	d := declaredIn(t, map[string]string{
		"a.cue": "package catalog\n\ntools: x: args: a!: #Port\n",
		"b.cue": "package catalog\n\ntools: x: args: {\n\tb?: null | #Node\n\ta: <100\n}\n",
		"c.cue": "package catalog\n\n#Port: int & >0\n#Node: {next?: null | #Node}\n",
	}, "a, b", contract.Closed)
	if len(d.problems) > 0 {
		t.Fatal(d.problems)
	}
	const want = `{"type":"object","properties":{"a":{"type":"integer","exclusiveMinimum":0,"exclusiveMaximum":100},"b":{"anyOf":[{"type":"null"},{"$ref":"#/$defs/Node"}]}},"additionalProperties":false,` +
		`"$defs":{"Node":{"type":"object","properties":{"next":{"anyOf":[{"type":"null"},{"$ref":"#/$defs/Node"}]}},"additionalProperties":false}}}`
	if diff := cmp.Diff(want, string(d.spec.Schema)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"3:17 expression : the arguments are declared in several places"}, dumped(d.spec.Losses)); diff != "" {
		t.Error(diff)
	}
	if got := d.positions["a"].String(); got != "a.cue:3:17" {
		t.Errorf("a at %s", got)
	}
	if n := d.agrees(t, `{}`, `{"a":5}`, `{"a":100}`, `{"a":0}`, `{"a":5,"b":{"next":{"next":null}}}`, `{"a":5,"b":{"z":1}}`, `{"a":5,"z":1}`); n != 2 {
		t.Errorf("CUE accepts %d calls, want 2", n)
	}
}

// The schema.cue that catalogs are written against reads args in the way that these tests take for granted.
func TestShippedSchema(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../schema.cue")
	if err != nil {
		t.Fatal(err)
	}
	d := declaredIn(t, map[string]string{"schema.cue": string(text), "x.cue": `package catalog

#N: {d?: int}
tools: x: {
	description: "x"
	effect:      "read"
	binding: jq: program: "."
	args: {o?: {a?: int, l?: [...{b?: int}], u?: null | {c?: int}}, n?: #N}
}
`}, "o, n", contract.Closed)
	if len(d.problems) > 0 {
		t.Fatal(d.problems)
	}
	for _, call := range []string{`{"o":{"a":1}}`, `{"o":{"l":[{"b":1}]}}`, `{"o":{"u":{"c":1}}}`, `{"n":{"d":1}}`, `{"o":{"z":1}}`, `{"o":{"l":[{"z":1}]}}`, `{"o":{"u":{"z":1}}}`, `{"n":{"z":1}}`} {
		if accepted := d.agrees(t, call); (accepted == 1) == strings.Contains(call, "z") {
			t.Errorf("%s: got accepted %d", call, accepted)
		}
	}
}

func exactRefusesOptionalArguments(t *testing.T) {
	t.Parallel()
	_, _, problems := args(t, "", "a!: int\nb?: int\nc: *1 | int\no!: {d?: int}", contract.Exact)
	var got []string
	for _, p := range problems {
		got = append(got, fmt.Sprintf("%d %s %s", p.Line, p.Code, p.Path))
	}
	want := []string{"7 exact_optional tools.x.args.b", "8 exact_optional tools.x.args.c"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestOptionalDefaultIsAWarning(t *testing.T) {
	t.Parallel()
	spec, _, problems := args(t, "", `a?: *1 | int`, contract.Closed)
	if problems.HasErrors() || len(problems) != 1 || problems[0].Col != 5 {
		t.Errorf("%v", problems)
	}
	if spec.Fields[0].Default != nil {
		t.Error("a default that CUE never fills in")
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
