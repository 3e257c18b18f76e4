// Package compat compares contracts: whether the new version of a tool still accepts what the old one
// accepted. `catalogd lock` and `catalogd diff` use it; no call does.
//
// A Verdict is about two sets of JSON values, those that the old and the new schema accept. It is shown,
// never estimated:
//
//   - That one set includes the other is proved, keyword by keyword (prover). Each rule holds for every
//     value. Where no rule applies there is a gap in the proof.
//   - That one set does not include the other is shown by a witness: a value that the validators of both
//     sides were asked about, the same that check calls.
//
// What neither a proof nor a witness shows is Undecided, and counts as breaking. A missing rule therefore
// costs a question to a person and never a broken caller, and only rules that decide comparisons of real
// schemas are worth their lines; rules.go lists them with the measurement.
//
// A document is one schema, read into subschemas: one for each place in it, with what its keywords say. A
// conjunction is a list of subschemas that all hold for a value, such as both parts of an allOf, or a $ref
// and the keywords beside it. The prover shows that every value of a conjunction is valid against one
// subschema; for objects and arrays it goes down into members and items.
package compat

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/catalogd/catalogd/contract"
)

// Verdict says how what a contract accepts has changed. It is about the set of accepted values, for arguments
// and results alike.
type Verdict string

const (
	// Identical: both accept the same values.
	Identical Verdict = "identical"
	// Widened: the new contract accepts all that the old one accepts; the reverse could not be shown.
	Widened Verdict = "widened"
	// Narrowed: the old contract accepts all that the new one accepts; the reverse could not be shown.
	Narrowed Verdict = "narrowed"
	// Incompatible: each accepts a value that the other refuses.
	Incompatible Verdict = "incompatible"
	// Undecided: none of these could be shown.
	Undecided Verdict = "undecided"
)

// Difference is one place where two contracts differ.
type Difference struct {
	// Pointer is the JSON pointer of the place in the arguments or the result; a step * is every item, or
	// every key that has no name of its own. Empty for the whole.
	Pointer string `json:"pointer"`
	// Kind is what differs there: a JSON Schema keyword, or one of property (one side refuses a key that the
	// other accepts), default, coerce, remainder, recursion (one that can't be followed), work (too much to
	// compare) and schema (one that can't be read).
	Kind string `json:"kind"`
	// What says it in plain words: `100 before, 50 now`. It quotes the schemas.
	What string `json:"what"`
	// Verdict is of this difference alone. One of kind default is Identical: the same calls are accepted, and
	// a call that leaves the argument out runs with another value.
	Verdict Verdict `json:"verdict"`
	// Refused is a value (the whole arguments or result) that the old contract accepts and the new one
	// refuses, Added one that only the new one accepts. Both validators have said so. Nil where none was
	// found.
	Refused json.RawMessage `json:"refused,omitempty"`
	Added   json.RawMessage `json:"added,omitempty"`
}

// String is one line: pointer, kind, words and verdict.
func (d Difference) String() string {
	where := d.Pointer
	if where == "" {
		where = "the whole"
	}
	return fmt.Sprintf("%s: %s: %s (%s)", where, d.Kind, d.What, d.Verdict)
}

// Comparison is the result of Compare and CompareResults.
type Comparison struct {
	Verdict Verdict `json:"verdict"`
	// Differences are sorted by pointer, the first 100 of more. Titles, descriptions, examples and other
	// annotations are no differences; defaults are.
	Differences []Difference `json:"differences,omitempty"`
	// Results: results were compared, not arguments.
	Results bool `json:"results,omitempty"`
}

// Breaking reports whether the new contract may break somebody who relies on the old one: a caller whose
// arguments are refused now, or a reader of results that never came before. Undecided counts as breaking.
func (c Comparison) Breaking() bool {
	if c.Results {
		return c.Verdict != Identical && c.Verdict != Narrowed
	}
	return c.Verdict != Identical && c.Verdict != Widened
}

// Compare compares what two contracts accept as the arguments of a call, as Contract.Check does: defaults are
// filled in before the schema is applied, unless NoFill. It needs no more of a Spec than Schema, Upstream,
// NoFill, Coerce and Remainder. It never fails, and its work is bounded: a schema that it can't read or
// compare is undecided.
//
// What CUE checks beside a schema counts too: an equal Remainder is an equal constraint, one that was added
// can only narrow, one that was removed can only widen, and two that differ are undecided.
func Compare(old, new contract.Spec) Comparison { return compare(old, new, true) }

// CompareResults compares what two contracts promise of the result of a call: no default is filled in, and an
// empty Schema accepts everything.
func CompareResults(old, new contract.Spec) Comparison {
	for _, s := range []*contract.Spec{&old, &new} {
		if len(bytes.TrimSpace(s.Schema)) == 0 {
			s.Schema = json.RawMessage("true")
		}
	}
	c := compare(old, new, false)
	c.Results = true
	return c
}
