package contract_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/contract"
)

// search is a contract as internal/derive writes one.
var search = contract.Spec{
	Strictness: contract.Closed,
	Schema: json.RawMessage(`{"type":"object","properties":{"q":{"type":"string","description":"What to find."},` +
		`"tenant":{"type":"string","minLength":1},"limit":{"type":"integer","minimum":1,"maximum":100,"default":10},` +
		`"sort":{"type":"string","enum":["new","old","best"],"default":"best"},` +
		`"opts":{"type":"object","properties":{"mode":{"type":"string","default":"slow"},"depth":{"type":"integer"}},"additionalProperties":false,"default":{"mode":"slow"}},` +
		`"rows":{"type":"array","items":{"$ref":"#/$defs/row"}}},"required":["q","tenant"],"additionalProperties":false,` +
		`"$defs":{"row":{"type":"object","properties":{"kind":{"type":"string"},"n":{"type":"integer","maximum":9},"rows":{"type":"array","items":{"$ref":"#/$defs/row"}}},` +
		`"required":["kind"],"additionalProperties":false}}}`),
	Fields: []contract.Field{
		{Name: "q", Types: []string{"string"}, Required: true}, {Name: "tenant", Types: []string{"string"}, Required: true},
		{Name: "limit", Types: []string{"integer"}, Default: json.RawMessage("10")}, {Name: "sort", Types: []string{"string"}, Default: json.RawMessage(`"best"`)},
		{Name: "opts", Types: []string{"object"}, Default: json.RawMessage(`{"mode":"slow"}`)}, {Name: "rows", Types: []string{"array"}},
	},
}

func narrowed(t *testing.T, base contract.Spec, fragment string) (contract.Spec, *contract.Contract) {
	t.Helper()
	s, err := base.Narrow(contract.Narrowing{Schema: json.RawMessage(fragment)})
	if err != nil {
		t.Fatalf("%s: %v", fragment, err)
	}
	c, err := contract.New(s, nil)
	if err != nil {
		t.Fatalf("%s: %v\n%s", fragment, err, s.Schema)
	}
	return s, c
}

// TestNarrow: what is advertised, what a call gets, and what its error says.
func TestNarrow(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, fragment, lists, not, call, want, refused string
	}{
		{
			name: "a fixed argument vanishes and is filled in", fragment: `{"properties":{"tenant":{"const":"acme"}}}`,
			lists: `"required":["q"]`, not: "tenant",
			call: `{"q":"x"}`, want: `{"limit":10,"opts":{"mode":"slow"},"q":"x","sort":"best","tenant":"acme"}`,
		},
		{
			name: "a call can't have a fixed argument", fragment: `{"properties":{"tenant":{"const":"acme"}}}`,
			call: `{"q":"x","tenant":"acme"}`, refused: `/tenant: got an unexpected key with the string "acme", expected only limit, opts, q, rows, sort`,
		},
		{
			name: "a bound is restricted and a default replaced", fragment: `{"properties":{"limit":{"maximum":50,"default":5}}}`,
			lists: `"limit":{"type":"integer","minimum":1,"default":5,"maximum":50}`,
			call:  `{"q":"x","tenant":"t"}`, want: `{"limit":5,"opts":{"mode":"slow"},"q":"x","sort":"best","tenant":"t"}`,
		},
		{
			name: "a restricted bound refuses", fragment: `{"properties":{"limit":{"maximum":50}}}`,
			call: `{"q":"x","tenant":"t","limit":51}`, refused: `/limit: got the number 51, expected an integer, at least 1, at most 50`,
		},
		{
			name: "a description is replaced", fragment: `{"properties":{"q":{"description":"A name."}}}`,
			lists: `"q":{"type":"string","description":"A name."}`, call: `{"q":"x","tenant":"t","limit":1}`,
			want: `{"limit":1,"opts":{"mode":"slow"},"q":"x","sort":"best","tenant":"t"}`,
		},
		{
			name: "an enumeration loses values", fragment: `{"properties":{"sort":{"enum":["new","best"]}}}`,
			lists: `"enum":["new","best"]`, not: `"old"`, call: `{"q":"x","tenant":"t","sort":"old"}`, refused: `/sort: got the string "old"`,
		},
		{
			name: "an optional argument becomes required", fragment: `{"required":["limit"]}`,
			lists: `"limit":{"type":"integer","minimum":1,"maximum":100}`, call: `{"q":"x","tenant":"t"}`, refused: "/limit: got nothing",
		},
		{
			name: "a required argument gets a default", fragment: `{"properties":{"tenant":{"default":"t"}}}`,
			lists: `"required":["q"]`, call: `{"q":"x"}`, want: `{"limit":10,"opts":{"mode":"slow"},"q":"x","sort":"best","tenant":"t"}`,
		},
		{
			name: "a nested fixed argument, whose object has a default", fragment: `{"properties":{"opts":{"properties":{"mode":{"const":"fast"}}}}}`,
			not: "mode", lists: `"opts":{"type":"object","properties":{"depth":{"type":"integer"}},"additionalProperties":false,"default":{}}`,
			call: `{"q":"x","tenant":"t"}`, want: `{"limit":10,"opts":{"mode":"fast"},"q":"x","sort":"best","tenant":"t"}`,
		},
		{
			name: "a nested fixed argument can't be sent", fragment: `{"properties":{"opts":{"properties":{"mode":{"const":"fast"}}}}}`,
			call: `{"q":"x","tenant":"t","opts":{"mode":"slow"}}`, refused: `/opts/mode: got an unexpected key`,
		},
		{
			name: "the items of a list, behind a reference", fragment: `{"properties":{"rows":{"items":{"properties":{"kind":{"const":"k"},"n":{"maximum":3}}}}}}`,
			lists: `"rows":{"type":"array","items":{"type":"object","properties":{"n":{"type":"integer","maximum":3}`,
			call:  `{"q":"x","tenant":"t","rows":[{"n":1},{"n":2,"rows":[{"kind":"z","n":9}]}]}`,
			want:  `{"limit":10,"opts":{"mode":"slow"},"q":"x","rows":[{"kind":"k","n":1},{"kind":"k","n":2,"rows":[{"kind":"z","n":9}]}],"sort":"best","tenant":"t"}`,
		},
		{
			name: "an item's fixed argument can't be sent", fragment: `{"properties":{"rows":{"items":{"properties":{"kind":{"const":"k"}}}}}}`,
			call: `{"q":"x","tenant":"t","rows":[{},{"kind":"k"}]}`, refused: "/rows/1/kind: got an unexpected key",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s, c := narrowed(t, search, tc.fragment)
			if !strings.Contains(string(s.Schema), tc.lists) || tc.not != "" && strings.Contains(string(s.Schema), tc.not) {
				t.Errorf("got the schema %s, want one with %s and without %q", s.Schema, tc.lists, tc.not)
			}
			args, found, err := c.Check(t.Context(), json.RawMessage(tc.call))
			if err != nil {
				t.Fatal(err)
			}
			if tc.refused != "" {
				if len(found) != 1 || !strings.HasPrefix(found[0].String(), tc.refused) {
					t.Errorf("%s: got %v, want %s", tc.call, found, tc.refused)
				}
				return
			}
			if found != nil || string(args.JSON()) != tc.want {
				t.Errorf("%s: got %s %v, want %s", tc.call, args.JSON(), found, tc.want)
			}
			again, found, err := c.Recheck(t.Context(), args.JSON())
			if err != nil || found != nil || again.Digest() != args.Digest() {
				t.Errorf("again: got %s %v %v, want the same", again.JSON(), found, err)
			}
		})
	}
}

// TestNarrowedNote: a constraint that internal/derive wrote into a description doesn't name what is fixed.
func TestNarrowedNote(t *testing.T) {
	t.Parallel()
	base := contract.Spec{
		Schema: json.RawMessage(`{"type":"object","properties":{"start":{"type":"integer"},"end":{"type":"integer","description":"The end.\nAlso: >start"}},` +
			`"required":["start","end"],"additionalProperties":false}`),
		Strictness: contract.Closed, Fields: []contract.Field{{Name: "start", Required: true}, {Name: "end", Required: true}},
	}
	s, _ := narrowed(t, base, `{"properties":{"start":{"const":3}}}`)
	if got := string(s.Schema); strings.Contains(got, "start") || !strings.Contains(got, `"The end."`) {
		t.Errorf("got %s, want no mention of start", got)
	}
	if !strings.Contains(string(base.Schema), "Also: >start") {
		t.Errorf("the base has changed to %s", base.Schema)
	}
}

// TestWider: whatever takes nothing away, or adds something, is an error at its argument.
func TestWider(t *testing.T) {
	t.Parallel()
	for fragment, want := range map[string]string{
		`{"properties":{"limit":{"maximum":500}}}`:                     "/limit: maximum 500 is wider than the tool's own maximum 100",
		`{"properties":{"limit":{"minimum":0}}}`:                       "/limit: minimum 0 is wider than the tool's own minimum 1",
		`{"properties":{"limit":{"exclusiveMinimum":0.5}}}`:            "/limit: exclusiveMinimum 0.5 is wider than the tool's own minimum 1",
		`{"properties":{"limit":{"maximum":100}}}`:                     "/limit: this takes nothing away",
		`{"properties":{"limit":{"type":"number"}}}`:                   "/limit: this takes nothing away",
		`{"properties":{"limit":{"type":"string"}}}`:                   "/limit: this is string, and the tool accepts integer here",
		`{"properties":{"limit":{"minLength":1}}}`:                     "/limit: minLength is about string, and the tool accepts integer here",
		`{"properties":{"limit":{"maximum":5}}}`:                       "/limit: the tool's own default 10 is outside what the branch accepts",
		`{"properties":{"limit":{"maximum":50,"default":60}}}`:         "/limit: the default 60 is not what the branch accepts",
		`{"properties":{"limit":{"default":101}}}`:                     "/limit: the tool does not accept the default 101",
		`{"properties":{"limit":{"default":10}}}`:                      "/limit: this takes nothing away",
		`{"properties":{"limit":{"const":101}}}`:                       "/limit: the tool does not accept 101",
		`{"properties":{"limit":{"minimum":60,"maximum":50}}}`:         "/limit: nothing is left",
		`{"properties":{"sort":{"enum":["new","newest"]}}}`:            `/sort: the tool does not accept "newest"`,
		`{"properties":{"sort":{"enum":["old","best","new"]}}}`:        "/sort: this takes nothing away",
		`{"properties":{"sort":{"pattern":"^z"}}}`:                     "/sort: none of the values",
		`{"properties":{"tenent":{"const":"x"}}}`:                      "/tenent: the tool has no such argument; did you mean tenant?",
		`{"properties":{"tenant":{"const":""}}}`:                       `/tenant: the tool does not accept "" here`,
		`{"properties":{"tenant":{"const":"x","minLength":2}}}`:        "/tenant: the argument is fixed, so minLength says nothing more",
		`{"properties":{"q":{"anyOf":[{"type":"string"}]}}}`:           `/q: a narrowing can't have "anyOf"`,
		`{"additionalProperties":true}`:                                `arguments: a narrowing can't have "additionalProperties"`,
		`{"properties":{"rows":{"items":{"properties":{"x":{}}}}}}`:    "/rows/*/x: the tool has no such argument",
		`{"properties":{"opts":{"properties":{"depht":{"const":1}}}}}`: "/opts/depht: the tool has no such argument; did you mean depth?",
		`{"required":["q"]}`:                                           "/q: the tool requires the argument already",
		`{"properties":{"limit":{"default":5}},"required":["limit"]}`:  "/limit: the argument has a default, so no call needs it",
		`{}`:                                   "arguments: this takes nothing away",
		`{"properties":{"q":true}}`:            "/q: this must be an object of keywords",
		`{"properties":{"q":{"pattern":"("}}}`: "arguments: the narrowing is not a valid schema",
		`{"properties":{"q":{"maxLength":3},"q":{"maxLength":4}}}`:                           "arguments: the narrowing can't be read",
		`{"properties":{"rows":{"items":{"default":{"kind":"k"}}}}}`:                         "/rows/*: an item of a list has no default",
		`{"properties":{"opts":{"properties":{"mode":{"const":"f"}}},"tenant":{"const":7}}}`: "/tenant: the tool does not accept 7",
	} {
		_, err := search.Narrow(contract.Narrowing{Schema: json.RawMessage(fragment)})
		var wrong *contract.NarrowingError
		if !errors.As(err, &wrong) || !slices.ContainsFunc(wrong.Faults, func(f contract.NarrowingFault) bool { return strings.HasPrefix(f.String(), want) }) {
			t.Errorf("%s: got %v, want %s", fragment, err, want)
		}
	}
}
