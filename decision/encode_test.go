package decision_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/util"
	"pgregory.net/rapid"

	"github.com/catalogd/catalogd/decision"
)

// inputsOf are an input of each point, to be filled.
var inputsOf = map[decision.Point]reflect.Type{
	decision.Connect: reflect.TypeFor[decision.ConnectInput](), decision.Discover: reflect.TypeFor[decision.DiscoverInput](),
	decision.List: reflect.TypeFor[decision.ListInput](), decision.Call: reflect.TypeFor[decision.CallInput](),
	decision.Result: reflect.TypeFor[decision.ResultInput](), decision.Release: reflect.TypeFor[decision.ReleaseInput](), decision.Adopt: reflect.TypeFor[decision.AdoptInput](),
}

// TestInputIsWhatIsEvaluated: the JSON of an input is that of the document which a policy of every point
// sees, whatever the input holds; a log has the same without what no log has.
func TestInputIsWhatIsEvaluated(t *testing.T) {
	t.Parallel()
	policy := fstest.MapFS{}
	for _, p := range decision.Points() {
		policy["policy/"+string(p)+".rego"] = &fstest.MapFile{Data: []byte("package catalogd." + string(p) + "\n\ndefault allow := false\n\ndeny contains json.marshal(input)\n")}
	}
	engine, problems := decision.Load(t.Context(), policy, decision.Config{Deadline: time.Minute})
	if engine == nil {
		t.Fatal(problems)
	}
	if len(inputsOf) != len(decision.Points()) {
		t.Fatalf("points %v", decision.Points())
	}
	for _, point := range decision.Points() {
		t.Run(string(point), func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				input := reflect.New(inputsOf[point]).Elem()
				fill(t, input)
				x, err := engine.Explain(context.Background(), point, input.Interface())
				if err != nil || len(x.Decision.Reasons) != 1 {
					t.Fatalf("%v: %v", err, x.Decision)
				}
				seen := document(t, []byte(x.Decision.Reasons[0]))
				text, err := decision.AppendInput(nil, point, input.Interface())
				if err != nil {
					t.Fatal(err)
				}
				if got := document(t, text); got.Compare(seen) != 0 {
					t.Fatalf("written   %s\nevaluated %s", text, seen)
				}
				e := decision.Event{Point: point, Input: input.Interface(), Unseen: rapid.Bool().Draw(t, "unseen")}
				logged, err := e.AppendInput(nil)
				if err != nil {
					t.Fatal(err)
				}
				if got, want := document(t, logged), without(t, seen, e.Erased()); got.Compare(want) != 0 {
					t.Fatalf("logged %s\nwant   %s", logged, want)
				}
			})
		})
	}
}

// document is JSON as the engine has it.
func document(t *rapid.T, text []byte) ast.Value {
	var data any
	if err := util.UnmarshalJSON(text, &data); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return ast.MustInterfaceToValue(data)
}

func without(t *rapid.T, v ast.Value, pointers []string) ast.Value {
	data, err := ast.JSON(v)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pointers {
		at := data.(map[string]any)
		steps := strings.Split(strings.TrimPrefix(p, "/input/"), "/")
		for _, step := range steps[:len(steps)-1] {
			at = at[step].(map[string]any)
		}
		delete(at, steps[len(steps)-1])
	}
	return ast.MustInterfaceToValue(data)
}

// fill draws a value of any type that inputs have.
func fill(t *rapid.T, v reflect.Value) {
	switch v.Type() {
	case reflect.TypeFor[json.RawMessage]():
		if rapid.Bool().Draw(t, "raw") {
			v.SetBytes(randomJSON(t))
		}
		return
	case reflect.TypeFor[time.Time]():
		at := time.Unix(rapid.Int64Range(0, 4e9).Draw(t, "seconds"), rapid.Int64Range(0, 999_999_999).Draw(t, "ns"))
		v.Set(reflect.ValueOf(at.In(time.FixedZone("", rapid.IntRange(-12, 12).Draw(t, "zone")*3600))))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(randomText(t))
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, "bool"))
	case reflect.Int:
		v.SetInt(int64(rapid.Int().Draw(t, "int")))
	case reflect.Slice:
		n := rapid.IntRange(-1, 3).Draw(t, "length")
		if n >= 0 { // else nil
			v.Set(reflect.MakeSlice(v.Type(), n, n))
		}
		for i := range n {
			fill(t, v.Index(i))
		}
	case reflect.Map:
		for range rapid.IntRange(-1, 3).Draw(t, "size") {
			if v.IsNil() {
				v.Set(reflect.MakeMap(v.Type()))
			}
			value := reflect.New(v.Type().Elem()).Elem()
			fill(t, value)
			v.SetMapIndex(reflect.ValueOf(rapid.String().Draw(t, "key")).Convert(v.Type().Key()), value)
		}
	case reflect.Pointer:
		if rapid.Bool().Draw(t, "there") {
			v.Set(reflect.New(v.Type().Elem()))
			fill(t, v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			fill(t, v.Field(i))
		}
	default:
		t.Fatalf("no value of %v", v.Type())
	}
}

func randomText(t *rapid.T) string {
	return rapid.OneOf(
		rapid.SampledFrom([]string{"", "<a href='x'>&amp;</a>", "\x00\x1f\x7f", "\u2028\u2029\ufeff", "\U000e0041", "a\xffb", `"\`, "\xed\xa0\x80"}),
		rapid.String(), rapid.StringMatching(`[a-z_]{1,12}`),
	).Draw(t, "text")
}

// randomJSON is an object with spaces, numbers that no float holds, keys twice and escapes.
func randomJSON(t *rapid.T) []byte {
	var b bytes.Buffer
	b.WriteString("{")
	for i := range rapid.IntRange(0, 4).Draw(t, "members") {
		if i > 0 {
			b.WriteString(" ,")
		}
		key, err := json.Marshal(rapid.SampledFrom([]string{"a", "b", "", "x y", "\u2028"}).Draw(t, "key"))
		if err != nil {
			t.Fatal(err)
		}
		value := rapid.SampledFrom([]string{
			"9007199254740993", "1.0", "-0", "1e2", "123456789012345678901234567890.5", "null", "true", `"\ud83d\ude00\u003c"`, `[1, [], {}]`, `{"n": {"m": "x"}}`, `"é"`,
		}).Draw(t, "value")
		fmt.Fprintf(&b, "%s: %s", key, value)
	}
	b.WriteString("}")
	return b.Bytes()
}
