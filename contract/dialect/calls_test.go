package dialect_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/dlclark/regexp2"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/contract/dialect"
	"github.com/catalogd/catalogd/registry"
)

var generated = flag.Int("generated", 250, "how many tools TestCallsOfGeneratedTools makes")

// shares counts how tools fare in a dialect.
type shares struct{ tools, exact, lossy, fellBack, refused, calls, held int }

func (s shares) String() string {
	return fmt.Sprintf("%d tools: %d exact, %d lossy, %d fallen back, %d refused; %d calls generated, %d accepted",
		s.tools, s.exact, s.lossy, s.fellBack, s.refused, s.calls, s.held)
}

// TestCallsOfRealTools and TestCallsOfGeneratedTools hold every dialect to its promise: what a model may
// write by the schema that it is shown is accepted by the contract, or a declared loss says otherwise; a tool
// that is offered can be called; and what the contract accepts and the schema does not is a loss that
// narrows.
func TestCallsOfRealTools(t *testing.T) {
	t.Parallel()
	c := shapes(t)
	declared, err := c.Branch("default").Tools()
	if err != nil {
		t.Fatal(err)
	}
	var tools []callee
	for _, tool := range declared {
		tools = append(tools, declaredCallee(t, tool))
	}
	untyped := 0
	for _, tool := range append(real(t), listed(t, "../../testdata/tool-lists/*.json", 14)...) {
		if decodeAny(t, tool.Input)["type"] != "object" {
			untyped++ // no tool of MCP: it is not locked
			continue
		}
		// Names that providers don't take are mapped when a tool is locked.
		tools = append(tools, schemaCallee(t, strings.ReplaceAll(tool.Name, ".", "_"), tool.Input))
	}
	if untyped != 9 {
		t.Errorf("%d input schemas are not of type object, want the 9 of server-gitlab", untyped)
	}
	held(t, tools, 20)
}

func TestCallsOfGeneratedTools(t *testing.T) {
	t.Parallel()
	var tools []callee
	for i := range *generated {
		r := rand.New(rand.NewPCG(uint64(i), 7))
		schema := (&schemer{Rand: r}).tool()
		raw, err := json.Marshal(schema)
		if err != nil {
			t.Fatal(err)
		}
		tools = append(tools, schemaCallee(t, fmt.Sprintf("generated_%d", i), raw))
	}
	held(t, tools, 40)
}

// callee is a tool and what checks its calls.
type callee struct {
	tool     dialect.Tool
	accepts  *contract.Contract
	schema   anyMap
	validate *jsonschema.Schema
	// asserts: format and content are checked.
	asserts bool
}

func declaredCallee(t *testing.T, tool registry.Tool) callee {
	spec := tool.Args.Clone()
	spec.Remainder, spec.Losses = nil, nil // what CUE decides beyond the schema is declared as such
	spec.Fields = slices.DeleteFunc(spec.Fields, func(f contract.Field) bool { return f.Computed })
	return newCallee(t, tool.Name, spec)
}

func schemaCallee(t *testing.T, name string, schema json.RawMessage) callee {
	spec := contract.Spec{Schema: schema, Strictness: contract.Open, Upstream: true, NoFill: true}
	m := decodeAny(t, schema)
	if m["additionalProperties"] == false {
		spec.Strictness = contract.Closed
	}
	required, _ := m["required"].([]any)
	properties, _ := m["properties"].(anyMap)
	for name := range properties {
		spec.Fields = append(spec.Fields, contract.Field{Name: name, Required: slices.Contains(required, any(name))})
	}
	return newCallee(t, name, spec)
}

func newCallee(t *testing.T, name string, spec contract.Spec) callee {
	t.Helper()
	accepts, err := contract.New(spec, nil)
	if err != nil {
		t.Fatalf("%s: %s: %v", name, spec.Schema, err)
	}
	latest, err := contract.Latest(spec.Schema)
	if err != nil {
		t.Fatalf("%s: %s: %v", name, spec.Schema, err)
	}
	c := callee{tool: dialect.Tool{Name: name, Description: "d", Input: spec.Schema}, accepts: accepts, schema: decodeAny(t, latest)}
	c.asserts = !spec.Upstream
	c.validate = c.compile(t, c.schema)
	return c
}

// compile makes a validator, for which format and content are annotations where they are for the contract.
func (c callee) compile(t *testing.T, schema any) *jsonschema.Schema {
	t.Helper()
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	compiler.UseRegexpEngine(func(pattern string) (jsonschema.Regexp, error) {
		re, err := regexp2.Compile(pattern, regexp2.ECMAScript|regexp2.Unicode)
		return (*ecma)(re), err
	})
	if c.asserts {
		compiler.AssertFormat()
		compiler.AssertContent()
	}
	if err := compiler.AddResource("test:tool", schema); err != nil {
		t.Fatalf("%v: %v", schema, err)
	}
	s, err := compiler.Compile("test:tool")
	if err != nil {
		t.Fatalf("%v: %v", schema, err)
	}
	return s
}

// ecma matches as JSON Schema says that patterns do.
type ecma regexp2.Regexp

func (e *ecma) MatchString(s string) bool {
	ok, err := (*regexp2.Regexp)(e).MatchString(s)
	return err == nil && ok
}

func (e *ecma) String() string { return (*regexp2.Regexp)(e).String() }

func decodeAny(t *testing.T, raw []byte) anyMap {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var m anyMap
	if err := d.Decode(&m); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return m
}

// held holds the tools to the promise in each dialect, with a number of calls for each.
func held(t *testing.T, tools []callee, calls int) {
	var callable []callee
	for _, tool := range tools {
		if tool.acceptedCall(300) != nil {
			callable = append(callable, tool)
		} else if !strings.HasPrefix(tool.tool.Name, "generated_") {
			t.Errorf("%s: no call is accepted at all", tool.tool.Name)
		}
	}
	t.Logf("%d of %d tools accept a generated call", len(callable), len(tools))
	for _, d := range dialect.All() {
		t.Run(string(d), func(t *testing.T) {
			var s shares
			for _, tool := range callable {
				tool.heldIn(t, d, calls, &s)
			}
			t.Log(s)
		})
	}
}

// acceptedCall is a call that the contract accepts, written by its own schema.
func (c callee) acceptedCall(tries int) any {
	g := generator{Rand: rand.New(rand.NewPCG(1, 2)), root: c.schema}
	for i := range tries {
		g.minimal = i%2 == 0
		v := g.value([]any{c.schema}, 0)
		if c.validate.Validate(v) != nil {
			continue
		}
		if _, found := c.check(v); found == nil {
			return v
		}
	}
	return nil
}

func (c callee) check(v any) (mapped json.RawMessage, found []contract.Violation) {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	_, found, err = c.accepts.Check(context.Background(), raw)
	if err != nil {
		panic(err)
	}
	return raw, found
}

func (c callee) heldIn(t *testing.T, d dialect.Dialect, calls int, s *shares) {
	t.Helper()
	s.tools++
	offer := d.Offer(c.tool)
	narrows := slices.ContainsFunc(offer.Losses, func(l dialect.Loss) bool { return l.Narrows })
	switch {
	case offer.Refused != nil:
		s.refused++
		for _, r := range offer.Refused {
			if r.What == "" || offer.Tool != nil {
				t.Errorf("%s: refused as %v, with %s", c.tool.Name, r, offer.Tool)
			}
		}
		return
	case offer.Fallback != nil:
		s.fellBack++
	case len(offer.Losses) > 0:
		s.lossy++
	default:
		s.exact++
	}
	if broken := rules[d](offer.Tool); broken != nil {
		t.Errorf("%s: %s: %v\n%s", c.tool.Name, c.tool.Input, broken, offer.Tool)
	}
	shown := shownSchema(t, d, offer)
	validate := c.compile(t, shown)
	g := generator{Rand: rand.New(rand.NewPCG(3, 4)), root: shown}
	accepted := 0
	for i := 0; i < calls || accepted == 0 && i < 200; i++ {
		g.minimal = i%3 == 0
		v := g.value([]any{shown}, 0)
		if validate.Validate(v) != nil {
			continue
		}
		s.calls++
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		mapped := d.Arguments(c.tool.Input, raw)
		_, found, err := c.accepts.Check(context.Background(), mapped)
		if err != nil {
			t.Fatal(err)
		}
		if found == nil {
			accepted++
			continue
		}
		if why := c.unsaid(offer.Losses, mapped, found); why != "" {
			t.Errorf("%s: the model may write %s, which is read as %s and refused: %v\nno loss says so: %s, of %v\nschema %s\nshown  %s",
				c.tool.Name, raw, mapped, found, why, offer.Losses, c.tool.Input, offer.Tool)
			return
		}
	}
	s.held += accepted
	if accepted == 0 && !c.callable(d, shown, validate) {
		t.Errorf("%s: no call that the schema allows is accepted\nschema %s\nshown  %s", c.tool.Name, c.tool.Input, offer.Tool)
	}
	if d == dialect.OpenAIStrict && offer.Fallback == nil {
		return // what is left out is said as null there
	}
	g = generator{Rand: rand.New(rand.NewPCG(5, 6)), root: c.schema}
	for i := range calls {
		g.minimal = i%3 == 0
		v := g.value([]any{c.schema}, 0)
		if _, found := c.check(v); found == nil && !narrows {
			if err := validate.Validate(v); err != nil {
				t.Errorf("%s: the contract accepts %v, the schema does not, and no loss narrows: %v\nschema %s\nshown  %s",
					c.tool.Name, v, err, c.tool.Input, offer.Tool)
				return
			}
		}
	}
}

// callable reports whether one of the calls that the contract accepts can be written by what is shown: with
// null, in strict mode, for what is left out.
func (c callee) callable(d dialect.Dialect, shown anyMap, validate *jsonschema.Schema) bool {
	g := generator{Rand: rand.New(rand.NewPCG(7, 8)), root: c.schema}
	for i := range 2000 {
		g.minimal = i%2 == 0
		v := g.value([]any{c.schema}, 0)
		if _, found := c.check(v); found != nil {
			continue
		}
		if d == dialect.OpenAIStrict {
			v = withNulls(v, shown, shown)
		}
		if validate.Validate(v) != nil {
			continue
		}
		raw, err := json.Marshal(v)
		if err != nil {
			panic(err)
		}
		if _, found, err := c.accepts.Check(context.Background(), d.Arguments(c.tool.Input, raw)); err == nil && found == nil {
			return true
		}
	}
	return false
}

// withNulls is v with null for each property that a strict schema has and v lacks.
func withNulls(v, schema any, root anyMap) any {
	s, _ := schema.(anyMap)
	if ref, ok := s["$ref"].(string); ok {
		return withNulls(v, resolve(root, ref), root)
	}
	if choices, ok := s["anyOf"].([]any); ok {
		for _, c := range choices {
			if out := withNulls(v, c, root); out != nil {
				return out
			}
		}
	}
	o, ok := v.(anyMap)
	properties, has := s["properties"].(anyMap)
	if !ok || !has {
		return v
	}
	out := anyMap{}
	for name, p := range properties {
		if member, ok := o[name]; ok {
			out[name] = withNulls(member, p, root)
		} else {
			out[name] = nil
		}
	}
	for name := range o {
		if properties[name] == nil {
			return nil // not meant by this one
		}
	}
	return out
}

// unsaid names what the contract refuses in a call and no loss covers: a loss covers what breaks its keyword,
// or a keyword below it, at its path.
func (c callee) unsaid(losses []dialect.Loss, mapped json.RawMessage, found []contract.Violation) string {
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(mapped))
	if err != nil {
		return err.Error()
	}
	var invalid *jsonschema.ValidationError
	if !errors.As(c.validate.Validate(v), &invalid) {
		return fmt.Sprint(found)
	}
	for _, cause := range chains(invalid, nil) {
		said := slices.ContainsFunc(losses, func(l dialect.Loss) bool {
			return !l.Narrows && slices.Contains(cause.keywords, l.Keyword) && covers(l.Path, cause)
		})
		if said {
			return ""
		}
	}
	return fmt.Sprint(invalid)
}

// cause is one leaf of a validator's errors: the keywords that lead to it, and the places in the value and
// the schema.
type cause struct {
	keywords     []string
	at           []string
	schema, urls string
}

func chains(err *jsonschema.ValidationError, above []string) (out []cause) {
	keywords := append(slices.Clone(above), err.ErrorKind.KeywordPath()...)
	if _, ok := err.ErrorKind.(*kind.Not); ok {
		keywords = append(keywords, "not")
	}
	_, pointer, _ := strings.Cut(err.SchemaURL, "#")
	for _, step := range strings.Split(pointer, "/") {
		if step == "then" || step == "else" {
			step = "if" // a condition is one loss
		}
		keywords = append(keywords, step)
	}
	if len(err.Causes) == 0 {
		return []cause{{keywords, err.InstanceLocation, pointer, err.SchemaURL}}
	}
	for _, c := range err.Causes {
		out = append(out, chains(c, keywords)...)
	}
	return out
}

// covers reports whether the path of a loss leads to what was refused, or to something around it.
func covers(path string, c cause) bool {
	if name, ok := strings.CutPrefix(path, "$defs."); ok {
		name, _, _ = strings.Cut(strings.ReplaceAll(name, "[]", "."), ".")
		return strings.Contains(c.schema, "/$defs/"+name) || slices.Contains(c.keywords, name)
	}
	steps := []string{}
	for _, step := range strings.Split(strings.NewReplacer("[]", ".[]", "{}", ".{}").Replace(path), ".") {
		if step != "" {
			steps = append(steps, step)
		}
	}
	if len(steps) > len(c.at)+1 { // what is missing is reported at its parent
		return false
	}
	for i, step := range steps {
		if i < len(c.at) && step != c.at[i] && step != "[]" && step != "{}" {
			return false
		}
	}
	return true
}

// shownSchema is the schema of the arguments in a dialect, as JSON Schema.
func shownSchema(t *testing.T, d dialect.Dialect, o dialect.Offer) anyMap {
	m := decodeAny(t, o.Tool)
	if f, ok := m["function"].(anyMap); ok {
		m = f
	}
	switch d {
	case dialect.MCP:
		return m["inputSchema"].(anyMap)
	case dialect.Anthropic:
		return m["input_schema"].(anyMap)
	case dialect.Gemini:
		p, ok := m["parameters"].(anyMap)
		if !ok {
			return anyMap{"type": "object", "additionalProperties": false}
		}
		return fromGemini(p).(anyMap)
	}
	return m["parameters"].(anyMap)
}

// fromGemini reads a Schema of the Gemini API as JSON Schema.
func fromGemini(v any) any {
	s, ok := v.(anyMap)
	if !ok {
		return v
	}
	out := anyMap{}
	for key, v := range s {
		switch key {
		case "type":
			out["type"] = strings.ToLower(fmt.Sprint(v))
		case "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties":
			out[key] = json.Number(fmt.Sprint(v))
		case "items":
			out[key] = fromGemini(v)
		case "anyOf":
			var list []any
			for _, c := range v.([]any) {
				list = append(list, fromGemini(c))
			}
			out[key] = list
		case "properties":
			properties := anyMap{}
			for name, p := range v.(anyMap) {
				properties[name] = fromGemini(p)
			}
			out[key], out["additionalProperties"] = properties, false
		case "format":
			if v != "enum" {
				out[key] = v
			}
		case "nullable":
		default:
			out[key] = v
		}
	}
	if s["nullable"] == true {
		return anyMap{"anyOf": []any{out, anyMap{"type": "null"}}}
	}
	return out
}
