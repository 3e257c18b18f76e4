package lockfile_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/internal/lockfile"
	"github.com/catalogd/catalogd/registry"
)

// checked is what becomes of a call of a discovered tool: the arguments that its server gets, or what is
// wrong with them.
func checked(t *testing.T, schema string, over registry.Override, args string) string {
	t.Helper()
	j := join(t, []registry.Server{server("up", "", registry.Discover{Tools: map[string]registry.Override{"t": over}})},
		fmt.Sprintf(`{"name":"t","inputSchema":%s}`, schema))
	if len(j.Tools) != 1 {
		return fmt.Sprintf("not offered: %v", j.Degraded)
	}
	c, err := contract.New(j.Tools[0].Args, nil)
	if err != nil {
		t.Fatal(err)
	}
	got, found, err := c.Check(t.Context(), []byte(args))
	if err != nil {
		return "undecided: " + err.Error()
	}
	if found != nil {
		return strings.Trim(fmt.Sprint(found), "[]")
	}
	return string(got.JSON())
}

// What a client sends is what the server gets: a default is what the server says of itself, unless the
// catalog fills it in.
func TestDefaults(t *testing.T) {
	t.Parallel()
	const (
		trash    = `{"type":"object","properties":{"id":{"type":"string"},"in_trash":{"type":"boolean","default":false}},"required":["id"]}`
		misfit   = `{"type":"object","properties":{"a":{"type":"integer","default":"none"}}}`
		either   = `{"type":"object","properties":{"a":{"default":1},"b":{"default":2}},"oneOf":[{"required":["a"]},{"required":["b"]}]}`
		counted  = `{"type":"object","properties":{"a":{"default":1},"b":{"default":2}},"maxProperties":1}`
		required = `{"type":"object","properties":{"a":{"type":"integer","default":1}},"required":["a"]}`
		nested   = `{"type":"object","properties":{"o":{"type":"object","properties":{"n":{"type":"integer","default":3},"r":{"default":1}},"required":["r"]}}}`
	)
	fill := registry.Override{Fill: true}
	for _, tc := range []struct {
		name, schema string
		over         registry.Override
		args, want   string
	}{
		{"a default is not sent", trash, registry.Override{}, `{"id":"x"}`, `{"id":"x"}`},
		{"but with fill", trash, fill, `{"id":"x"}`, `{"id":"x","in_trash":false}`},
		{"what is sent stays", trash, registry.Override{}, `{"id":"x","in_trash":true}`, `{"id":"x","in_trash":true}`},
		{"one that its own schema refuses", misfit, registry.Override{}, `{}`, `{}`},
		{"beside oneOf of required", either, registry.Override{}, `{"b":7}`, `{"b":7}`},
		{"beside maxProperties", counted, registry.Override{}, `{"a":7}`, `{"a":7}`},
		{"required stays required", required, registry.Override{}, `{}`, `/a: got nothing, expected an integer (required)`},
		{"deeper", nested, registry.Override{}, `{"o":{"r":1}}`, `{"o":{"r":1}}`},
		{"deeper with fill", nested, fill, `{"o":{"r":2}}`, `{"o":{"n":3,"r":2}}`},
		{"a whole number in the digits that came", required, registry.Override{}, `{"a":2.0}`, `{"a":2.0}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := checked(t, tc.schema, tc.over, tc.args); got != tc.want {
				t.Errorf("%s of %s: got %s, want %s", tc.args, tc.schema, got, tc.want)
			}
		})
	}
}

// A schema is read as its draft says: formats are annotations, whatever they are called; each reference
// within it resolves; a pattern is one of ECMA-262.
func TestDrafts(t *testing.T) {
	t.Parallel()
	args := func(x string, rest ...string) string {
		return `{"type":"object","properties":{"x":` + x + `}` + strings.Join(append([]string{""}, rest...), ",") + `}`
	}
	const d04, d07 = `"$schema":"http://json-schema.org/draft-04/schema#"`, `"$schema":"http://json-schema.org/draft-07/schema#"`
	type verdicts map[string]string // by the value of x: ok, or what is wrong
	for _, tc := range []struct {
		name, schema string
		want         verdicts
	}{
		{"an unknown format", args(`{"type":"integer","format":"int32"}`), verdicts{`5000000000`: "ok", `"a"`: `/x: got the string "a", expected an integer, in the format int32`}},
		{"a known format", args(`{"type":"string","format":"date-time"}`), verdicts{`"tomorrow"`: "ok"}},
		{"a known format in draft 07", args(`{"type":"string","format":"uri"}`, d07), verdicts{`"no uri"`: "ok"}},
		{"an encoding", args(`{"type":"string","contentEncoding":"base64"}`), verdicts{`"%"`: "ok"}},
		{"no format at all", args(`{"format":5}`), verdicts{`1`: "not offered"}},
		{"definitions", args(`{"$ref":"#/definitions/A"}`, `"definitions":{"A":{"type":"string"}}`), verdicts{`"a"`: "ok", `1`: `/x: got the number 1, expected a string`}},
		{"a property", `{"type":"object","properties":{"s":{"type":"string"},"x":{"$ref":"#/properties/s"}}}`, verdicts{`"a"`: "ok", `1`: `/x: got the number 1, expected a string`}},
		{"the whole", args(`{"$ref":"#"}`, `"required":["x"]`, `"minProperties":1`), verdicts{`{"x":1}`: `/x/x: got the number 1, expected an object, at least 1 key`}},
		{"an anchor", args(`{"$ref":"#A"}`, `"$defs":{"B":{"$anchor":"A","type":"string"}}`), verdicts{`"a"`: "ok", `1`: `/x: got the number 1, expected a string`}},
		{"draft 04", args(`{"type":"integer","minimum":0,"exclusiveMinimum":true}`, d04), verdicts{`1`: "ok", `0`: `/x: got the number 0, expected an integer, greater than 0`}},
		{"draft 04 that doesn't say so", args(`{"type":"integer","minimum":0,"exclusiveMinimum":true}`), verdicts{`1`: "ok", `0`: `/x: got the number 0, expected an integer, greater than 0`}},
		{"a tuple of draft 07", args(`{"type":"array","items":[{"type":"string"},{"type":"integer"}],"additionalItems":false}`, d07),
			verdicts{`["a",1]`: "ok", `[1,1]`: `/x/0: got the number 1, expected a string`, `["a",1,2]`: `/x/2: got the number 2, expected no further item`}},
		{"dependencies of draft 07", args(`{"type":"object","dependencies":{"a":["b"]}}`, d07), verdicts{`{"a":1,"b":2}`: "ok", `{"a":1}`: `/x/b: got nothing, expected it to be there (required where a is given)`}},
		{"an unknown dialect", args(`{"type":"integer","minimum":0,"exclusiveMinimum":true}`, `"$schema":"https://example.com/mine"`), verdicts{`1`: "ok", `0`: `/x: got the number 0, expected an integer, greater than 0`}},
		{"lookahead", args(`{"type":"string","pattern":"^(?=.*[0-9])(?!x).+$"}`), verdicts{`"a1"`: "ok", `"a"`: `/x: got the string "a", expected a string, matching ^(?=.*[0-9])(?!x).+$`}},
		{"a reference back", args(`{"type":"string","pattern":"^(a+)b\\1$"}`), verdicts{`"aabaa"`: "ok", `"aaba"`: `/x: got the string "aaba", expected a string, matching ^(a+)b\1$`}},
		{"escapes of ECMA-262", args(`{"type":"string","pattern":"^[\\u4e00-\\u9fff\\p{Script=Greek}]+$"}`), verdicts{`"中α"`: "ok", `"a"`: `/x: got the string "a", expected a string, matching ^[\u4e00-\u9fff\p{Script=Greek}]+$`}},
		{"lookahead in names", args(`{"type":"object","patternProperties":{"^(?!_)":{"type":"integer"}},"additionalProperties":false}`),
			verdicts{`{"a":1}`: "ok", `{"a":"b"}`: `/x/a: got the string "b", expected an integer`, `{"_":1}`: `/x/_: got an unexpected key with the number 1, expected only keys matching ^(?!_)`}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			for value, want := range tc.want {
				in := `{"x":` + value + `}`
				got := checked(t, tc.schema, registry.Override{}, in)
				if got == in {
					got = "ok"
				}
				if got != want && !(want == "not offered" && strings.HasPrefix(got, want)) {
					t.Errorf("%s of %s: got %s, want %s", in, tc.schema, got, want)
				}
			}
		})
	}
}

// A pattern that backtracks for ever costs a call no more than the limit, however often the call asks for it,
// and decides nothing.
func TestHostilePattern(t *testing.T) {
	t.Parallel()
	const schema = `{"type":"object","properties":{"x":{"type":"array","items":{"pattern":"^(?=a)(a+)+$"}}}}`
	evil := `"` + strings.Repeat("a", 60) + `!"`
	begin := time.Now()
	got := checked(t, schema, registry.Override{}, `{"x":[`+strings.Repeat(evil+",", 50)+evil+`]}`)
	if want := "undecided: matching the patterns of the schema takes longer than 500ms"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if took := time.Since(begin); took > 20*time.Second { // 50 times the limit would be more
		t.Errorf("got %s for one call", took)
	}
	if got := checked(t, schema, registry.Override{}, `{"x":["aaa","b"]}`); !strings.HasPrefix(got, "/x/1: ") {
		t.Errorf("a call after it: got %s", got)
	}
}

// Calls that run at the same time don't share a limit.
func TestPatternsOfCallsAtTheSameTime(t *testing.T) {
	t.Parallel()
	j := join(t, []registry.Server{server("up", "", registry.Discover{})},
		`{"name":"t","inputSchema":{"type":"object","properties":{"x":{"pattern":"^(?=a)(a+)+$"}}}}`)
	c, err := contract.New(j.Tools[0].Args, nil)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			args := `{"x":"aaa"}`
			if i%4 == 0 {
				args = `{"x":"` + strings.Repeat("a", 60) + `!"}`
			}
			_, found, err := c.Check(t.Context(), []byte(args))
			if (err != nil) != (i%4 == 0) || found != nil {
				t.Errorf("%s: got %v %v", args, found, err)
			}
		})
	}
	all.Wait()
}

// What can't be closed is not said to be.
func TestClosingAReference(t *testing.T) {
	t.Parallel()
	const schema = `{"type":"object","$schema":"http://json-schema.org/draft-07/schema#","$ref":"#/definitions/A","definitions":{"A":{"type":"object","properties":{"x":{"type":"integer"}}}}}`
	if got, want := checked(t, schema, registry.Override{}, `{"x":"a"}`), `/x: got the string "a", expected an integer`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := checked(t, schema, registry.Override{Strictness: contract.Closed}, `{"y":1}`); !strings.Contains(got, "a top level that can be closed") {
		t.Errorf("got %s, want a refusal", got)
	}
}

// Drift is reported in every draft, across drafts too, and a default is compared though nothing is filled in.
func TestDriftInEveryDraft(t *testing.T) {
	t.Parallel()
	const d04, d07 = `"$schema":"http://json-schema.org/draft-04/schema#",`, `"$schema":"http://json-schema.org/draft-07/schema#",`
	args := func(dialect, x string) string {
		return fmt.Sprintf(`{"name":"t","inputSchema":{%s"type":"object","properties":{"x":%s}}}`, dialect, x)
	}
	for _, tc := range []struct {
		name, was, is string
		want          lockfile.Kind
	}{
		{"draft 04 to 2020-12", args(d04, `{"minimum":0,"exclusiveMinimum":true}`), args("", `{"exclusiveMinimum":0}`), lockfile.ArgumentsWidened}, // the same
		{"a bound of draft 04", args(d04, `{"minimum":0,"exclusiveMinimum":true}`), args(d04, `{"minimum":0}`), lockfile.ArgumentsWidened},
		{"narrowed", args(d04, `{"minimum":0}`), args(d04, `{"minimum":0,"exclusiveMinimum":true}`), lockfile.ArgumentsNarrowed},
		{"a tuple", args(d07, `{"items":[{"type":"integer"}]}`), args(d07, `{"items":[{"type":"number"}]}`), lockfile.ArgumentsWidened},
		{"behind a reference", args(d07, `{"$ref":"#/definitions/A"},"y":{}},"definitions":{"A":{"type":"integer"}`),
			args(d07, `{"$ref":"#/definitions/A"},"y":{}},"definitions":{"A":{"type":"number"}`), lockfile.ArgumentsWidened},
		{"a pattern with lookahead", args("", `{"type":"string","pattern":"^(?=a)"}`), args("", `{"type":"string"}`), lockfile.ArgumentsWidened},
		{"a default", args("", `{"default":1}`), args("", `{"default":2}`), lockfile.ArgumentsNarrowed},
		{"a format", args("", `{"format":"int32"}`), args("", `{"format":"int64"}`), lockfile.ArgumentsWidened}, // the same
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s, _ := lockfile.Merge(lockfile.Server{Name: "up"}, offer(t, tc.was), every, none, noon)
			changes := lockfile.Compare(s, offer(t, tc.is), every)
			if len(changes) != 1 || changes[0].Kind != tc.want {
				t.Errorf("got %+v, want %s", changes, tc.want)
			}
		})
	}
}
