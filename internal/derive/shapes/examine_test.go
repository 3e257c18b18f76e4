package shapes_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/problem"
)

// TestExamine changes a contract, or refuses it, in each way that TestShapes is there to notice.
func TestExamine(t *testing.T) {
	args, _ := structOf(d(`a!: int`, fa), d(`b: *2 | int`, fb), d(`n?: int`, fn))
	s := shape{number: 0, args: args, strictness: contract.Closed}
	cat := newCatalog(t)
	all, release, err := cat.compile(t.Context(), []shape{s})
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	sound := all[0].spec
	schema := func(old, new string) func(*contract.Spec) {
		return func(spec *contract.Spec) {
			if !bytes.Contains(spec.Schema, []byte(old)) {
				t.Fatalf("no %s in %s", old, spec.Schema)
			}
			spec.Schema = bytes.ReplaceAll(spec.Schema, []byte(old), []byte(new))
		}
	}
	elsewhere := problem.Position{File: "schema.cue", Line: 40, Col: 8}
	at := problem.Position{File: s.tool() + "/x.cue", Line: 3, Col: 1}
	for name, test := range map[string]struct {
		change   func(*contract.Spec)
		problems problem.List
		want     []string
	}{
		"sound": {},
		"wider": {change: schema(`"integer"`, `["integer","string"]`), want: []string{runsRefused, schemaWider}},
		"narrower": {change: schema(`"integer"`, `"integer","maximum":2`),
			want: []string{refusesAllowed, schemaNarrower}},
		"default": {change: schema(`"default":2`, `"default":3`), want: []string{fillsOtherwise}},
		"types": {change: func(spec *contract.Spec) { spec.Fields[0].Types = []string{"string"} },
			want: []string{fieldsOtherwise}},
		"bad schema": {change: schema(`"integer"`, `7`), want: []string{badContract}},
		"undecided": {change: func(spec *contract.Spec) { spec.Remainder = &contract.Remainder{Digest: "none"} },
			want: []string{undecided}},
		"in schema.cue": {problems: problem.List{{Code: problem.BadAttribute, Position: elsewhere}},
			want: []string{refusedNowhere}},
		"no line":     {problems: problem.List{{Code: problem.BadAttribute}}, want: []string{refusedNowhere}},
		"no reason":   {problems: problem.List{{Code: problem.CUECycle, Position: at}}, want: []string{refusedAll}},
		"for a cause": {problems: problem.List{{Code: problem.BadAttribute, Position: at}}},
	} {
		t.Run(name, func(t *testing.T) {
			c := compiled{spec: sound.Clone(), problems: test.problems}
			if test.change != nil {
				test.change(&c.spec)
			}
			var rest contract.Rest
			if c.spec.Remainder != nil {
				rest = cat.checker.Rest(*c.spec.Remainder, false)
			}
			c.contract, c.err = contract.New(c.spec, rest)
			o, err := examine(t.Context(), s, c)
			if err != nil || len(o.contradictions) > 0 {
				t.Fatal(err, o.contradictions)
			}
			var got []string
			if o.finding != nil {
				got = append([]string{o.finding.fault}, o.finding.also...)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("%s: got %q, want %q", c.spec.Schema, got, test.want)
			}
		})
	}
}

// TestCanonical: equal numbers have one form, and so have equal objects.
func TestCanonical(t *testing.T) {
	for in, want := range map[string]string{
		`1.50`: `15e-1`, `-0.25`: `-25e-2`, `15e-1`: `15e-1`, `1e-30`: `1e-30`, `2.0`: `2`, `1e2`: `100`, `0.000`: `0`,
		`-1.5E+1`: `-15`, `{"b":1.0,"a":[12.5e1]}`: `{"a":[125],"b":1}`, `x`: `not JSON: x`,
	} {
		if got := canonical(in); got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
}

// TestOrder: every number comes once.
func TestOrder(t *testing.T) {
	for _, size := range []int{1, 2, 10, 961, 4096} {
		nth, seen := order(size), map[int]bool{}
		for i := range size {
			seen[nth(i)] = true
		}
		if len(seen) != size {
			t.Errorf("%d: got %d numbers", size, len(seen))
		}
	}
}
