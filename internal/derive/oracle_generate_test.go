package derive_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"cuelang.org/go/cue"
	"cuelang.org/go/encoding/jsonschema"
	santhosh "github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/catalogd/catalogd/contract"
)

// A difference is why the schema that CUE's own jsonschema.Generate makes of a constraint accepts other calls than the
// contract does, always in one direction.
type difference struct {
	why   string
	wider bool // the generated schema accepts more; else less
	of    []string
}

var differences = []difference{
	{"the bounds of large integers are rounded to floats", true, []string{"int64", "uint64", "uint128"}},
	{"the bounds of large integers are rounded to floats", false, []string{"int128"}},
	{"a default is all that is left of a disjunction, as a description without bounds", true, []string{
		"*10 | int & >=1 & <=100", `*"a" | =~"^a"`, `*"blue" | _color`, "*[] | [...int]", `*["a"] | [...string]`, "*[] | [...string] & list.MaxItems(2)",
	}},
	{"a struct is open unless a definition closes it, though it stands in one", true, []string{
		"{deep: *1 | int}", "[...{k: *1 | int}]", `{deep: {deeper: *"x" | string, other?: int}}`, "*null | {a?: int}", "{a?: int} & {b?: string}",
		"{_h: 5, a?: int & <_h}", "{let M = 5, a?: int & <M}", "{a!: int, b?: string}", `{[=~"^x"]: int, a?: string}`, "null | {a!: int}",
	}},
	{"an open struct, and a bound of it that is dropped", true, []string{"{a?: int} & struct.MinFields(1)"}},
	{"an embedded definition stays closed to what stands beside it", false, []string{"{#Pair, d?: int}", "{#Pair, ...}"}},
	{"a definition inside the arguments is not found, and nothing is generated", false, []string{"{#in: int & >2, a?: #in}"}},
}

// CUE's own generator is another opinion of what a constraint means. It is made to describe and not to decide, so it may
// differ; but each difference has a reason here, and a reason that explains nothing any more fails the test, too.
func TestGenerateDiffers(t *testing.T) {
	t.Parallel()
	reasons, tried := map[string]difference{}, 0
	for _, d := range differences {
		for _, of := range d.of {
			reasons[of] = d
		}
	}
	for _, table := range [][]known{types, constants, withDefault, references, structs} {
		for _, k := range table {
			tried++
			expected, differs := reasons[k.cue]
			delete(reasons, k.cue)
			t.Run(k.cue, func(t *testing.T) {
				wider, narrower := generateDiffers(t, k)
				if expected.wider {
					wider, narrower = narrower, wider
				}
				switch {
				case len(wider) > 0:
					t.Errorf("%s has no reason for %s", k.cue, wider)
				case differs && len(narrower) == 0:
					t.Errorf("%s does not differ any more: %s", k.cue, expected.why)
				case !differs && len(narrower) > 0:
					t.Errorf("%s has no reason for %s", k.cue, narrower)
				}
			})
		}
	}
	if tried < 30 {
		t.Errorf("only %d structs", tried)
	}
	if len(reasons) > 0 {
		t.Errorf("reasons for what is not tried: %v", slices.Sorted(maps.Keys(reasons)))
	}
}

// structs are the forms of structs and lists that no other table has.
var structs = []known{
	{"{a!: int, b?: string}", `{"a":1}; {"a":1,"b":"x"}`, `{}; {"a":1,"z":1}; {"a":"x"}`},
	{"{a?: int, ...}", `{}; {"a":1,"z":1}`, `{"a":"x"}`},
	{"{[string]: int}", `{}; {"q":1}`, `{"q":"x"}`},
	{`{[=~"^x"]: int, a?: string}`, `{"x1":1,"a":"b"}`, `{"x1":"b"}; {"y":1}`},
	{"{a?: int} & struct.MinFields(1)", `{"a":1}`, `{}`},
	{"[...int] & list.MinItems(1) & list.MaxItems(2)", `[1]; [1,2]`, `[]; [1,2,3]`},
	{"[...int] & list.UniqueItems()", `[1,2]`, `[1,1]`},
	{"[int, string]", `[1,"a"]`, `[1]; [1,"a",2]; ["a",1]`},
	{"[int, ...string]", `[1]; [1,"a"]`, `[]; [1,2]`},
	{"null | {a!: int}", `null; {"a":1}`, `{}; {"a":1,"b":1}`},
	{`strings.MinRunes(2) & strings.MaxRunes(3)`, `"ab"; "👍👍"`, `"a"; "abcd"`},
	{`=~"^a.b$"`, `"axb"; "a\rb"`, `"ab"; "a\nb"`},
	{`string & !~"x"`, `"a"`, `"x"`},
	{"int & >1 & <=5 & !=3", "2; 5; 4.0", "1; 3; 6"},
}

// generateDiffers are the calls, of the table's values and odd ones, that the generated schema alone accepts, and those
// that the contract alone accepts.
func generateDiffers(t *testing.T, k known) (wider, narrower []string) {
	value := toolValue(t, "x!: "+k.cue)
	spec, _, problems := deriveTool(value, contract.Closed)
	if problems.HasErrors() {
		t.Fatal(problems)
	}
	spec.Losses, spec.Remainder = nil, nil
	ours, err := contract.New(spec, nil)
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := generate(value)
	if err != nil {
		return nil, []string{err.Error()}
	}
	for _, list := range []string{k.good, k.near, strings.Join(odd, "; ")} {
		for _, x := range texts(list) {
			doc := fmt.Sprintf(`{"x":%s}`, x)
			_, found := check(ours, []byte(doc))
			switch err := theirs.Validate(normal(doc)); {
			case err == nil && len(found) > 0:
				wider = append(wider, doc)
			case err != nil && len(found) == 0:
				narrower = append(narrower, doc)
			}
		}
	}
	return wider, narrower
}

func generate(v cue.Value) (*santhosh.Schema, error) {
	expr, err := jsonschema.Generate(v, &jsonschema.GenerateConfig{})
	if err != nil {
		return nil, err
	}
	//lint:ignore SA1019 the values are of one context, which knows the definitions they refer to
	raw, err := v.Context().BuildExpr(expr).MarshalJSON()
	if err != nil {
		return nil, err
	}
	c := santhosh.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("generated", normal(string(raw))); err != nil {
		return nil, err
	}
	return c.Compile("generated")
}
