package strictjson_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/internal/strictjson"
	"github.com/catalogd/catalogd/internal/strictjson/badjson"
)

// A caller that wants no more errors gets none, and the rest of the input is still read.
func TestDecodeMapsStopsNoting(t *testing.T) {
	for _, test := range []struct{ input, err string }{
		{`{"a":[1e999,1e999,1e999]}`, ""}, {`{"a":{"b":0,"b":0,"b":0,"c":1e999}}`, ""}, {`{"a":0,"a":0,"a":0,]`, "syntax"},
	} {
		noted := 0
		_, err := strictjson.DecodeMaps([]byte(test.input), strictjson.Options{Float64: true}, func(*strictjson.Error) bool { noted++; return false })
		if noted != 1 || (err == nil) != (test.err == "") {
			t.Errorf("%s: got %d notes and %v, want 1 and an error: %t", test.input, noted, err, test.err != "")
		}
	}
}

// Elements reads a list and nothing behind it: reading a file of many lists takes one pass.
func TestElementsReadsNothingBehind(t *testing.T) {
	got := strictjson.Elements([]byte("{\"a\": [1, [2], {}] \xff"), 6)
	if want := []int{7, 10, 15}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestBad holds each reader to the table of bad JSON: what is refused, and where.
func TestBad(t *testing.T) {
	for _, b := range badjson.Rows(t) {
		maps := func() error {
			var noted error
			note := func(e *strictjson.Error) bool { noted = e; return true }
			_, err := strictjson.DecodeMaps([]byte(b.Input), strictjson.Options{}, note)
			return errors.Join(noted, err)
		}
		_, decoded := strictjson.Decode([]byte(b.Input), strictjson.Options{})
		for name, err := range map[string]error{
			"Check": strictjson.Check([]byte(b.Input), strictjson.Options{}), "Decode": decoded, "DecodeMaps": maps(),
		} {
			var got *strictjson.Error
			if !errors.As(err, &got) || got.Problem != b.Problem || got.Offset != b.Offset {
				t.Errorf("%s(%q): got %v, want %s at %d", name, b.Input, err, b.Problem, b.Offset)
			}
		}
		lenient := strictjson.Check([]byte(b.Input), strictjson.Options{AllowDuplicates: true, AllowUnpaired: true})
		want := b.Problem == strictjson.Duplicate || b.Problem == strictjson.Surrogate
		if (lenient == nil) != want {
			t.Errorf("Check(%q) with all allowed: got %v", b.Input, lenient)
		}
		if valid := json.Valid([]byte(b.Input)); valid && lenient != nil && b.Problem != strictjson.UTF8 {
			t.Errorf("Check(%q) with all allowed: got %v, want what encoding/json takes", b.Input, lenient)
		}
	}
}

func TestUnambiguous(t *testing.T) {
	for input, want := range map[string]string{
		`{ "b": 1.0, "a": "\ud800" }`:       `{ "b": 1.0, "a": "\ud800" }`,
		`{"b":1.0,"a":[{"k":1,"k":1e400}]}`: `{"a":[{"k":1e400}],"b":1.0}`,
		`{"k":{"x":1},"\u006b":2}`:          `{"k":2}`,
		`{"k":1,"k":`:                       "error",
		`{"k":1,"k":2}{}`:                   "error",
		"{\"k\":\"\xff\"}":                  "error",
	} {
		got, err := strictjson.Unambiguous([]byte(input))
		if err != nil {
			got = []byte("error")
		}
		if string(got) != want {
			t.Errorf("%s: got %s, %v; want %s", input, got, err, want)
		}
	}
}

func TestLimits(t *testing.T) {
	nested := strings.Repeat(`[`, 3) + strings.Repeat(`]`, 3)
	for _, test := range []struct {
		input   string
		options strictjson.Options
		want    string
	}{
		{nested, strictjson.Options{MaxDepth: 3}, ""},
		{`[[[1]]]`, strictjson.Options{MaxDepth: 3}, ""},
		{nested, strictjson.Options{MaxDepth: 2}, "nested more than 2 levels deep at byte 2"},
		{`{"a":{"b":{}}}`, strictjson.Options{MaxDepth: 2}, "nested more than 2 levels deep at byte 10"},
		{strings.Repeat(`[`, 10_001), strictjson.Options{}, "nested more than 10000 levels deep at byte 10000"},
		{`1e308`, strictjson.Options{Float64: true}, ""},
		{`-0`, strictjson.Options{Float64: true}, ""},
		{`1e400`, strictjson.Options{}, ""},
		{`1e400`, strictjson.Options{Float64: true}, "expected a number that a 64-bit float can hold at byte 0"},
		{`[1e-401]`, strictjson.Options{Float64: true}, "expected a number that a 64-bit float can hold at byte 1"},
		{strings.Repeat("1", 401), strictjson.Options{Float64: true},
			"expected a number that a 64-bit float can hold at byte 0"},
	} {
		_, decoded := strictjson.Decode([]byte(test.input), test.options)
		for name, err := range map[string]error{
			"Check": strictjson.Check([]byte(test.input), test.options), "Decode": decoded,
		} {
			if got := fmt.Sprint(err); got != test.want && (err != nil || test.want != "") {
				t.Errorf("%s(%.40q, %+v): got %v, want %s", name, test.input, test.options, err, test.want)
			}
		}
	}
}

// TestPointers holds which value an error names.
func TestPointers(t *testing.T) {
	for _, test := range []struct{ input, want string }{
		{`{"a/b":{"c~":[0,"\ud800"]}}`, "/a~1b/c~0/1"},
		{`{"a":{"b":1,"b":2}}`, "/a/b"},
		{`{"a":{"b" 1}}`, "/a"},
		{`{"a":[1 2]}`, "/a"},
		{`{"a":012}`, "/a"},
	} {
		_, err := strictjson.Decode([]byte(test.input), strictjson.Options{})
		var got *strictjson.Error
		if !errors.As(err, &got) || got.Pointer != test.want {
			t.Errorf("%s: got %+v, want %q", test.input, err, test.want)
		}
	}
}

// TestDocument holds what a document is made of: order, digits and offsets.
func TestDocument(t *testing.T) {
	in := []byte(` {"b": 1.50, "a" :[true,null,"\u0041<"],"c":{ } } `)
	v, err := strictjson.Decode(in, strictjson.Options{})
	if err != nil {
		t.Fatal(err)
	}
	o := v.(*strictjson.Object)
	var got []string
	for _, m := range o.Members {
		got = append(got, fmt.Sprintf("%s %s", in[m.KeyAt:m.KeyAt+3], in[m.At:m.End]))
	}
	if want := []string{`"b" 1.50`, `"a" [true,null,"\u0041<"]`, `"c" { }`}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, test := range []struct{ got, want string }{
		{string(strictjson.Append(nil, o)), `{"b":1.50,"a":[true,null,"A<"],"c":{}}`},
		{string(strictjson.AppendSorted(nil, o)), `{"a":[true,null,"A<"],"b":1.50,"c":{}}`},
	} {
		if test.got != test.want {
			t.Errorf("got %s, want %s", test.got, test.want)
		}
	}
	o.Set("b", json.RawMessage("2"))
	o.Remove("a")
	o.Add("d", strictjson.New("e", "f"))
	if got, want := string(strictjson.Append(nil, o)), `{"b":2,"c":{},"d":{"e":"f"}}`; got != want {
		t.Errorf("changed: got %s, want %s", got, want)
	}
	if o.Object("d").Text("e") != "f" || o.Object("x").Has("y") || o.List("b") != nil {
		t.Error("a lookup finds what is not there, or nothing")
	}
}

func TestMembers(t *testing.T) {
	for _, test := range []struct{ input, want string }{
		{`{}`, ""},
		{` { "a" : [1, {"b":2,"b":3}] , "\u0061":"\ud800"} `, `a "a" [1, {"b":2,"b":3}];a "\u0061" "\ud800";`},
		{`[]`, "expected an object at byte 0"},
		{`{"a":1`, "expected a comma or } in an object, but the input ends at byte 6"},
		{`{} 1`, "expected nothing after the value at byte 3"},
	} {
		var got string
		err := strictjson.Members([]byte(test.input), func(name, key, value []byte) {
			got += fmt.Sprintf("%s %s %s;", name, key, value)
		})
		if err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("%s: got %s, want %s", test.input, got, test.want)
		}
	}
}

func TestElements(t *testing.T) {
	in := []byte(`{"a": [1 , [2,{"b":[]}], "\ud800",null ]}, 1`)
	if got, want := strictjson.Elements(in, 6), []int{7, 11, 25, 34}; !reflect.DeepEqual(got, want) {
		t.Errorf("%s: got %v, want %v", in, got, want)
	}
	if got := strictjson.Elements(in, 0); got != nil {
		t.Errorf("an object: got %v, want none", got)
	}
}

func TestUnpaired(t *testing.T) {
	for input, want := range map[string]int{
		`{"a":"\ud83d\ude00"}`: 0, `"\\ud800"`: 0, `["\ud800\ud800","\udc00"]`: 2,
		`{"\ud800":{"\u0041":"x\udc00"}}`: 2,
	} {
		if got := strictjson.Unpaired([]byte(input)); got != want {
			t.Errorf("%s: got %d, want %d", input, got, want)
		}
	}
}

func TestStandardize(t *testing.T) {
	for _, test := range []struct{ input, want string }{
		{"[1,// a\n2,/* b\n */]", "[1,    \n2     \n   ]"},
		{`{"a":"//,]",}`, `{"a":"//,]" }`},
		{`[,]`, `[,]`},
		{`[1,,]`, `[1,,]`},
		{`{"a":"\",]`, `{"a":"\",]`},
		{"[\"a\n,]", "[\"a\n,]"},
	} {
		if got, err := strictjson.Standardize([]byte(test.input)); string(got) != test.want || err != nil {
			t.Errorf("%q: got %q %v, want %q", test.input, got, err, test.want)
		}
	}
	if _, err := strictjson.Standardize([]byte(`{ /* }`)); !strictjson.Is(err, strictjson.ClosingComment) {
		t.Errorf("an open comment: got %v", err)
	}
}

// FuzzCheck holds the readers to each other and to encoding/json.
func FuzzCheck(f *testing.F) {
	for _, b := range badjson.Rows(f) {
		f.Add([]byte(b.Input))
	}
	f.Add([]byte(`{"a":["\ud83d\ude00",1e3,-0,{"A":true,"n":null}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		strict := strictjson.Options{MaxDepth: 100}
		before := bytes.Clone(data)
		err := strictjson.Check(data, strict)
		v, decoded := strictjson.Decode(data, strict)
		if fmt.Sprint(err) != fmt.Sprint(decoded) {
			t.Errorf("%q: Check says %v, Decode %v", data, err, decoded)
		}
		var noted *strictjson.Error
		maps, mapped := strictjson.DecodeMaps(data, strict, func(e *strictjson.Error) bool { noted = e; return true })
		if (mapped != nil || noted != nil) != (err != nil) {
			t.Errorf("%q: Check says %v, DecodeMaps %v %v", data, err, mapped, noted)
		}
		lenient := strictjson.Options{AllowDuplicates: true, AllowUnpaired: true}
		got := strictjson.Check(data, lenient)
		if got == nil != json.Valid(data) && !strictjson.Is(got, strictjson.UTF8) {
			t.Errorf("%q: got %v with all allowed, encoding/json takes it: %t", data, got, json.Valid(data))
		}
		if !bytes.Equal(data, before) {
			t.Errorf("%q became %q", before, data)
		}
		if err != nil {
			return
		}
		var want any
		d := json.NewDecoder(bytes.NewReader(data))
		d.UseNumber()
		if err := d.Decode(&want); err != nil || !reflect.DeepEqual(maps, want) {
			t.Errorf("%q: got %v, encoding/json %v %v", data, maps, want, err)
		}
		again, err := strictjson.Decode(strictjson.Append(nil, v), strict)
		if err != nil || !bytes.Equal(strictjson.AppendSorted(nil, again), strictjson.AppendSorted(nil, v)) {
			t.Errorf("%q is not the same once written: %v", data, err)
		}
		if strictjson.Unpaired(data) > 0 {
			t.Errorf("%q: unpaired surrogates were accepted", data)
		}
	})
}
