package registry_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/registry"
)

// The members of an object are those that any parser reads, in their order and as they are spelled.
func TestSplit(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		object string
		want   []string // name, key and value in turn
	}{
		{`{}`, nil},
		{" {\n} ", nil},
		{`{"a":1}`, []string{"a", `"a"`, "1"}},
		{"{ \"b\" : [ 1 , {\"x\":\"}\"} ] ,\n\t\"a\":-1.50E+3 , \"b\" : \"\\\\\" }", []string{"b", `"b"`, `[ 1 , {"x":"}"} ]`, "a", `"a"`, "-1.50E+3", "b", `"b"`, `"\\"`}},
		{`{"\u0061\"":"\"{[","":null,"t":true}`, []string{`a"`, `"\u0061\""`, `"\"{["`, "", `""`, "null", "t", `"t"`, "true"}},
		{`{"\ud800":"\udc00","é":{}}`, []string{"\uFFFD", `"\ud800"`, `"\udc00"`, "é", `"é"`, "{}"}},
	} {
		members, ok := registry.Split(json.RawMessage(test.object))
		var got []string
		for _, m := range members {
			got = append(got, m.Name, string(m.Key), string(m.Value))
		}
		if !ok || strings.Join(got, "|") != strings.Join(test.want, "|") {
			t.Errorf("%s: got %q, want %q", test.object, got, test.want)
		}
	}
	for _, none := range []string{``, ` `, `null`, `[]`, `"{}"`, `1`} {
		if members, ok := registry.Split(json.RawMessage(none)); ok || members != nil {
			t.Errorf("%q has the members %v", none, members)
		}
	}
}

// FuzzSplit holds the members of whatever is valid JSON to what the standard library reads.
func FuzzSplit(f *testing.F) {
	for _, seed := range []string{`{"a":[1,"]",{"b":"\\"}],"a":{}}`, ` { "x" : "\"" } `, `[{}]`, `{"":""}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if !json.Valid(data) {
			t.Skip("not JSON")
		}
		var want map[string]json.RawMessage
		object := json.Unmarshal(data, &want) == nil && want != nil
		members, ok := registry.Split(data)
		got := map[string]json.RawMessage{}
		for _, m := range members {
			got[m.Name] = m.Value
		}
		if ok != object || len(got) != len(want) {
			t.Fatalf("%q: got %q, want %q", data, got, want)
		}
		for name, value := range want {
			if string(got[name]) != string(value) {
				t.Errorf("%q: %q is %q, want %q", data, name, got[name], value)
			}
		}
	})
}
