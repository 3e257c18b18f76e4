package contract_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/catalogd/catalogd/contract"
)

// TestNarrowedIsWithin: for random narrowings of generated schemas and of those of real servers, every call that a narrowed
// contract accepts is one that the whole contract accepts with the same final value, which has the fixed values; every call that
// the advertised schema accepts is accepted, but where a loss says otherwise; and nobody sets what is fixed. The verdicts
// about schemas are those of google/jsonschema-go, which knows nothing of narrowings.
func TestNarrowedIsWithin(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 1))
	bases := realSchemas(t)
	narrowed, accepted, refused, sent := 0, 0, 0, 0
	for i := range 600 {
		base := generated(r)
		if i%3 == 0 {
			base = bases[r.IntN(len(bases))]
		}
		var doc map[string]any
		if json.Unmarshal(base.Schema, &doc) != nil {
			t.Fatalf("%s is no object", base.Schema)
		}
		n, fixed := randomNarrowing(r, doc)
		fragment, err := json.Marshal(n)
		if err != nil {
			t.Fatal(err)
		}
		spec, err := base.Narrow(contract.Narrowing{Schema: fragment})
		if err != nil {
			continue // such as a value that the base refuses
		}
		c, err := contract.New(spec, nil)
		if err != nil {
			t.Fatalf("seed %d: %s narrowed by %s: %v\n%s", seed, base.Schema, fragment, err, spec.Schema)
		}
		whole, err := contract.New(base, nil)
		if err != nil {
			t.Fatal(err)
		}
		narrowed++
		baseSays, ownSays := oracle(base.Schema), oracle(spec.Schema)
		var own map[string]any
		if json.Unmarshal(spec.Schema, &own) != nil {
			t.Fatalf("%s is no object", spec.Schema)
		}
		for range 12 {
			from := own
			if r.IntN(3) == 0 {
				from = doc
			}
			call := randomObject(r, from)
			raw, err := json.Marshal(call)
			if err != nil {
				t.Fatal(err)
			}
			context := fmt.Sprintf("seed %d: base %s\nnarrowed by %s\nto %s\ncall %s", seed, base.Schema, fragment, spec.Schema, raw)
			sets := slices.ContainsFunc(fixed, func(path []string) bool { _, ok := valueAt(call, path); return ok })
			args, found, err := c.Check(t.Context(), raw)
			switch {
			case err != nil:
				t.Fatalf("%s\ngot %v", context, err)
			case sets:
				if sent++; found == nil {
					t.Fatalf("%s\ngot %s, want the fixed argument refused", context, args.JSON())
				}
				continue
			case slices.ContainsFunc(found, func(v contract.Violation) bool { return v.Expected == "it to be left out: there is no such argument" }):
				sent++ // in an item of a list, or in other case
				continue
			case found != nil:
				refused++
				if len(spec.Losses) == 0 && ownSays != nil && ownSays.Validate(call) == nil {
					t.Fatalf("%s\ngot %v, but the advertised schema accepts it", context, found)
				}
				continue
			}
			accepted++
			again, wrong, err := whole.Check(t.Context(), args.JSON())
			if err != nil || wrong != nil || again.Digest() != args.Digest() {
				t.Fatalf("%s\ngot %s, which the base makes %s (%v, %v)", context, args.JSON(), again.JSON(), wrong, err)
			}
			var final map[string]any
			if json.Unmarshal(args.JSON(), &final) != nil {
				t.Fatalf("%s\ngot %s", context, args.JSON())
			}
			if baseSays != nil {
				if err := baseSays.Validate(final); err != nil {
					t.Fatalf("%s\ngot %s, which the base refuses: %v", context, args.JSON(), err)
				}
			}
			for _, path := range fixed {
				parent, ok := valueAt(final, path[:len(path)-1])
				if _, object := parent.(map[string]any); !ok || !object {
					continue // it is not there
				}
				got, _ := valueAt(final, path)
				if want := constAt(n, path); !has(got, want) {
					t.Fatalf("%s\ngot %s, want %v at %v", context, args.JSON(), want, path)
				}
			}
		}
	}
	if narrowed < 100 || accepted < 200 || refused < 50 || sent < 50 {
		t.Errorf("seed %d: %d narrowings, %d accepted, %d refused, %d with a fixed argument: too few show nothing", seed, narrowed, accepted, refused, sent)
	}
}

func oracle(schema []byte) *jsonschema.Resolved {
	var s jsonschema.Schema
	if json.Unmarshal(schema, &s) != nil {
		return nil
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		return nil
	}
	return resolved
}

// realSchemas are the arguments of tools of real servers, closed and open ones.
func realSchemas(t *testing.T) (all []contract.Spec) {
	t.Helper()
	files, err := filepath.Glob("../testdata/tool-lists/*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var list struct {
			Tools []struct {
				InputSchema json.RawMessage `json:"inputSchema"`
			} `json:"tools"`
		}
		if json.Unmarshal(data, &list) != nil {
			continue
		}
		for _, tool := range list.Tools {
			if s, ok := upstreamSpec(tool.InputSchema); ok {
				all = append(all, s)
			}
		}
	}
	if len(all) < 50 {
		t.Fatalf("got %d real schemas, want at least 50", len(all))
	}
	return all
}

// upstreamSpec makes the contract of a server's schema as internal/lockfile does.
func upstreamSpec(schema json.RawMessage) (contract.Spec, bool) {
	var doc struct {
		Type                 any            `json:"type"`
		Properties           map[string]any `json:"properties"`
		Required             []string       `json:"required"`
		AdditionalProperties any            `json:"additionalProperties"`
	}
	if json.Unmarshal(schema, &doc) != nil || doc.Type != "object" || len(doc.Properties) == 0 {
		return contract.Spec{}, false
	}
	s := contract.Spec{Schema: schema, Upstream: true, NoFill: true, Strictness: contract.Open}
	if doc.AdditionalProperties == false {
		s.Strictness = contract.Closed
	}
	for name := range doc.Properties {
		s.Fields = append(s.Fields, contract.Field{Name: name, Required: slices.Contains(doc.Required, name)})
	}
	_, err := contract.New(s, nil)
	return s, err == nil
}

// generated makes a contract with scalars, an object, a list of objects, and rules over its members.
func generated(r *rand.Rand) contract.Spec {
	names := []string{"a", "b", "c", "d"}
	props, required := map[string]any{}, []any{}
	for _, name := range names {
		props[name] = randomSchema(r, 2)
		if r.IntN(3) == 0 {
			delete(props[name].(map[string]any), "default")
			required = append(required, name)
		}
	}
	doc := map[string]any{"type": "object", "properties": props, "required": required}
	closed := r.IntN(3) > 0
	if closed {
		doc["additionalProperties"] = false
	}
	rules := r.IntN(6)
	if rules < 4 { // rules over what is filled in make calls fail that the schema accepts, without a narrowing too
		for _, name := range names {
			delete(props[name].(map[string]any), "default")
		}
	}
	switch rules {
	case 0:
		doc["anyOf"] = []any{map[string]any{"required": []any{"a"}}, map[string]any{"required": []any{"b"}}}
	case 1:
		doc["dependentRequired"] = map[string]any{"a": []any{"b"}, "c": []any{"a", "d"}}
	case 2:
		doc["minProperties"], doc["maxProperties"] = 1, 3
	case 3:
		doc["if"] = map[string]any{"properties": map[string]any{"a": map[string]any{"type": "string"}}}
		doc["then"] = map[string]any{"required": []any{"c"}}
	}
	schema, err := json.Marshal(doc)
	if err != nil {
		panic(err)
	}
	s := contract.Spec{Schema: schema, Strictness: contract.Open, NoFill: r.IntN(2) == 0}
	if closed {
		s.Strictness = contract.Closed
	}
	for _, name := range names {
		f := contract.Field{Name: name, Required: slices.Contains(required, any(name))}
		if d, ok := props[name].(map[string]any)["default"]; ok && !s.NoFill {
			if f.Default, err = json.Marshal(d); err != nil {
				panic(err)
			}
		}
		s.Fields = append(s.Fields, f)
	}
	return s
}

func randomSchema(r *rand.Rand, depth int) map[string]any {
	kinds := 3
	if depth > 0 {
		kinds = 5
	}
	switch r.IntN(kinds) {
	case 0:
		s := map[string]any{"type": "integer", "minimum": 1, "maximum": 9}
		if r.IntN(2) == 0 {
			s["default"] = 1 + r.IntN(9)
		}
		return s
	case 1:
		return map[string]any{"type": "string", "maxLength": 2 + r.IntN(3)}
	case 2:
		return map[string]any{"enum": []any{"x", "y", 7, nil}}
	case 3:
		s := map[string]any{"type": "object", "properties": map[string]any{"e": randomSchema(r, depth-1), "f": randomSchema(r, depth-1)}, "additionalProperties": r.IntN(2) == 0}
		if r.IntN(3) == 0 {
			s["required"] = []any{"e"}
		}
		return s
	}
	return map[string]any{"type": "array", "maxItems": 3, "items": randomSchema(r, depth-1)}
}

// randomNarrowing narrows one or two arguments of a schema; fixed are the paths of what it fixes outside lists.
func randomNarrowing(r *rand.Rand, doc map[string]any) (n map[string]any, fixed [][]string) {
	var visit func(doc map[string]any, path []string, inList bool) map[string]any
	visit = func(doc map[string]any, path []string, inList bool) map[string]any {
		out := map[string]any{}
		props, _ := doc["properties"].(map[string]any)
		names := []string{}
		for name := range props {
			names = append(names, name)
		}
		slices.Sort(names)
		r.Shuffle(len(names), reflect.Swapper(names))
		for _, name := range names[:min(len(names), 1+r.IntN(2))] {
			s, ok := props[name].(map[string]any)
			if !ok {
				continue
			}
			items, _ := s["items"].(map[string]any)
			below := append(slices.Clone(path), name)
			switch r.IntN(6) {
			case 0, 1:
				out[name] = map[string]any{"const": randomValue(r, s, 2)}
				if !inList {
					fixed = append(fixed, below)
				}
			case 2:
				out[name] = map[string]any{"maximum": 1 + r.IntN(12), "default": 1 + r.IntN(3)}
				if s["type"] == "string" {
					out[name] = map[string]any{"maxLength": 1 + r.IntN(4)}
				}
			case 3:
				out[name] = map[string]any{"enum": []any{randomValue(r, s, 2), randomValue(r, s, 2)}}
			default:
				switch {
				case s["properties"] != nil:
					sub := visit(s, below, inList)
					if r.IntN(2) == 0 {
						sub["default"] = map[string]any{}
					}
					out[name] = sub
				case items != nil && items["properties"] != nil:
					out[name] = map[string]any{"items": visit(items, below, true)}
				default:
					out[name] = map[string]any{"description": "Narrowed."}
				}
			}
		}
		return map[string]any{"properties": out}
	}
	return visit(doc, nil, false), fixed
}

func randomObject(r *rand.Rand, doc map[string]any) map[string]any {
	v, _ := randomValue(r, doc, 4).(map[string]any)
	if v == nil {
		v = map[string]any{}
	}
	if r.IntN(8) == 0 {
		v["z"] = 1.0
	}
	return v
}

// randomValue is a value that mostly fits a schema.
func randomValue(r *rand.Rand, s map[string]any, depth int) any {
	if list, ok := s["enum"].([]any); ok && len(list) > 0 {
		return decoded(list[r.IntN(len(list))])
	}
	props, isObject := s["properties"].(map[string]any)
	switch t := s["type"]; {
	case isObject || t == "object":
		out := map[string]any{}
		required, _ := s["required"].([]any)
		for name, p := range props {
			if sub, ok := p.(map[string]any); ok && depth > 0 && (slices.Contains(required, any(name)) || r.IntN(2) == 0) {
				out[name] = randomValue(r, sub, depth-1)
			}
		}
		return out
	case t == "array":
		items, _ := s["items"].(map[string]any)
		out := []any{}
		for range r.IntN(3) {
			out = append(out, randomValue(r, items, depth-1))
		}
		return out
	case t == "integer" || t == "number":
		return float64(1 + r.IntN(10))
	case t == "boolean":
		return r.IntN(2) == 0
	case t == "null":
		return nil
	}
	return "xyzzy"[:r.IntN(5)]
}

// decoded is a value as encoding/json decodes it.
func decoded(v any) any {
	if n, ok := v.(int); ok {
		return float64(n)
	}
	return v
}

func valueAt(v any, path []string) (any, bool) {
	for _, step := range path {
		object, _ := v.(map[string]any)
		member, ok := object[step]
		if !ok {
			return nil, false
		}
		v = member
	}
	return v, true
}

// has reports whether a value is the wanted one, in which objects may have more members: the base fills in its defaults.
func has(got, want any) bool {
	if list, ok := want.([]any); ok {
		items, same := got.([]any)
		same = same && len(items) == len(list)
		for i := range list {
			same = same && has(items[i], list[i])
		}
		return same
	}
	wanted, ok := want.(map[string]any)
	if !ok {
		return reflect.DeepEqual(got, want)
	}
	object, ok := got.(map[string]any)
	for name, member := range wanted {
		ok = ok && has(object[name], member)
	}
	return ok
}

func constAt(n map[string]any, path []string) any {
	for _, step := range path {
		n = n["properties"].(map[string]any)[step].(map[string]any)
	}
	return n["const"]
}
