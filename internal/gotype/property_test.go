package gotype_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/netip"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/internal/gotype"
)

type nested struct {
	Deep  []map[string]*nestedMore `json:"deep"`
	Times [2]time.Time             `json:"times"`
}

type nestedMore struct {
	F32  float32 `json:"f32"`
	Text string
	U8s  [3]uint8 `json:"u8s"`
}

type everything struct {
	base
	I    int             `json:"i"`
	I8   int8            `json:"i8"`
	I64  *int64          `json:"i64"`
	U    uint            `json:"u"`
	U16  uint16          `json:"u16,omitempty"`
	F    float64         `json:"f"`
	B    bool            `json:"b,omitzero"`
	S    units           `json:"s" default:"celsius"`
	List []string        `json:"list"`
	PL   *[]int32        `json:"pl,omitempty"`
	M    map[units]uint8 `json:"m"`
	Raw  json.RawMessage `json:"raw"`
	Any  any             `json:"any"`
	Num  json.Number     `json:"num"`
	Data []byte          `json:"data"`
	Addr netip.Addr      `json:"addr"`
	At   time.Time       `json:"at"`
	Nest nested          `json:"nest"`
	Skip chan int        `json:"-"`
}

func everythingContract(t *testing.T) *contract.Contract {
	spec, err := gotype.Input(reflect.TypeFor[everything](), nil)
	if err != nil {
		t.Fatal(err)
	}
	c, err := contract.New(spec, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestValuesSurvive: a random value of a type encodes to what its contract accepts, and that decodes to the value.
func TestValuesSurvive(t *testing.T) {
	t.Parallel()
	c := everythingContract(t)
	rapid.Check(t, func(t *rapid.T) {
		var in, out everything
		fill(t, reflect.ValueOf(&in).Elem())
		raw, err := gotype.Encode(in)
		if err != nil {
			t.Fatalf("%+v: %v", in, err)
		}
		args, found, err := c.Check(context.Background(), raw)
		if err != nil || found != nil {
			t.Fatalf("%s is refused: %v, %v", raw, found, err)
		}
		if err := gotype.Decode(args.JSON(), &out); err != nil {
			t.Fatalf("%s: %v", args.JSON(), err)
		}
		again, err := gotype.Encode(out)
		if err != nil || string(again) != string(raw) || !reflect.DeepEqual(in, out) {
			t.Fatalf("got\n%#v, want\n%#v\n%s\n%s", out, in, again, raw)
		}
	})
}

// TestAcceptedDecodes: whatever the contract accepts of wild values, Decode reads.
func TestAcceptedDecodes(t *testing.T) {
	t.Parallel()
	c := everythingContract(t)
	var valid everything
	valid.Addr, valid.Num, valid.Raw = netip.MustParseAddr("::1"), "1", json.RawMessage(`null`)
	raw, err := gotype.Encode(valid)
	if err != nil {
		t.Fatal(err)
	}
	accepted := 0
	wild := []string{
		`null`, `true`, `"x"`, `""`, `"YQ=="`, `"YQ"`, `"2026-01-02t03:04:05z"`, `"2016-12-31T23:59:60Z"`, `"2026-01-02T3:04:05,5+24:00"`,
		`0`, `-0`, `5.0`, `1e2`, `-1`, `127`, `128`, `255.0`, `256`, `1.5`, `2147483648`, `9223372036854775807`, `9223372036854775808`,
		`-9223372036854775808`, `18446744073709551615`, `18446744073709551616`, `1e30`, `1e300`, `3.5e38`, `[]`, `[1]`, `["a"]`, `[1,2,3]`, `{}`, `{"a":1}`, `{"A":"x"}`,
		`[{"a":null}]`, `[{"a":{"f32":1e39,"Text":"x","u8s":[1,2,3]}}]`, `[{"a":{"f32":1e38,"Text":"x","u8s":[1.0,2,255]}}]`, `[{"a":{"f32":1,"text":"x","u8s":[1,2,3]}}]`,
	}
	rapid.Check(t, func(t *rapid.T) {
		var doc map[string]json.RawMessage
		if err := json.Unmarshal(raw, &doc); err != nil {
			t.Fatal(err)
		}
		spec := c.Spec()
		for range rapid.IntRange(1, 3).Draw(t, "changes") {
			f := rapid.SampledFrom(spec.Fields).Draw(t, "field")
			if f.Name == "addr" { // a text of its own, which the schema does not state
				continue
			}
			value := rapid.SampledFrom(wild).Draw(t, "value")
			if f.Name == "nest" {
				value = `{"deep":` + value + `,"times":["2026-01-02T03:04:05Z","2026-01-02T03:04:05Z"]}`
			}
			doc[f.Name] = json.RawMessage(value)
		}
		changed, err := json.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		args, found, err := c.Check(context.Background(), changed)
		if err != nil {
			t.Fatal(err)
		}
		if found != nil {
			return
		}
		accepted++
		if err := gotype.Decode(args.JSON(), new(everything)); err != nil {
			t.Fatalf("%s is accepted and can't be read: %v", args.JSON(), err)
		}
	})
	if accepted == 0 {
		t.Error("no wild value was accepted, so nothing was tested")
	}
}

// fill draws a value. Slices, maps and what an any holds are as Decode makes them: never nil.
func fill(t *rapid.T, v reflect.Value) {
	label := fmt.Sprint(v.Type())
	switch v.Interface().(type) {
	case time.Time:
		at := rapid.Int64Range(-62135596800, 253402300799).Draw(t, label)
		v.Set(reflect.ValueOf(time.Unix(at, rapid.Int64Range(0, 999999999).Draw(t, label)).UTC()))
		return
	case json.RawMessage:
		v.Set(reflect.ValueOf(json.RawMessage(rapid.SampledFrom([]string{`null`, `{"a":[9007199254740993,"é"]}`, `"x"`}).Draw(t, label))))
		return
	case json.Number:
		v.SetString(rapid.SampledFrom([]string{"0", "9007199254740993", "-1.25", "1e+100"}).Draw(t, label))
		return
	case netip.Addr:
		v.Set(reflect.ValueOf(netip.AddrFrom4([4]byte{10, 0, 0, rapid.Byte().Draw(t, label)})))
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, label))
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		bits := v.Type().Bits()
		v.SetInt(rapid.Int64Range(-1<<(bits-1), 1<<(bits-1)-1).Draw(t, label))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(rapid.Uint64Range(0, math.MaxUint64>>(64-v.Type().Bits())).Draw(t, label))
	case reflect.Float32:
		v.SetFloat(float64(rapid.Float32().Filter(func(f float32) bool { return !math.IsInf(float64(f), 0) && f == f }).Draw(t, label)))
	case reflect.Float64:
		v.SetFloat(rapid.Float64().Filter(func(f float64) bool { return !math.IsInf(f, 0) && f == f }).Draw(t, label))
	case reflect.String:
		v.SetString(rapid.String().Draw(t, label))
	case reflect.Pointer:
		if rapid.Bool().Draw(t, label) {
			v.Set(reflect.New(v.Type().Elem()))
			fill(t, v.Elem())
		}
	case reflect.Interface:
		v.Set(reflect.ValueOf(rapid.SampledFrom([]any{"x", true, json.Number("9007199254740993"), []any{json.Number("1.5")}, map[string]any{"a": nil}}).Draw(t, label)))
	case reflect.Slice:
		n := rapid.IntRange(0, 3).Draw(t, label)
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			fill(t, v.Index(i))
		}
	case reflect.Array:
		for i := range v.Len() {
			fill(t, v.Index(i))
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range rapid.IntRange(0, 3).Draw(t, label) {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			fill(t, key)
			fill(t, value)
			v.SetMapIndex(key, value)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.Tag.Get("json") != "-" {
				fillField(t, v.Field(i), f)
			}
		}
	}
}

func fillField(t *rapid.T, v reflect.Value, f reflect.StructField) {
	if f.Anonymous && !f.IsExported() { // its fields are promoted and exported
		for i := range v.NumField() {
			fill(t, v.Field(i))
		}
		return
	}
	fill(t, v)
}
