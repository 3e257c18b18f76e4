package contract

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Verdict says how what a contract accepts has changed. The words speak of the set of accepted values, of arguments and
// of results alike.
type Verdict string

const (
	// Identical: both accept the same values.
	Identical Verdict = "identical"
	// Widened: all that the old one accepts the new one accepts, and that the reverse holds could not be shown.
	Widened Verdict = "widened"
	// Narrowed: all that the new one accepts the old one accepts, and that the reverse holds could not be shown.
	Narrowed Verdict = "narrowed"
	// Incompatible: each accepts a value that the other refuses.
	Incompatible Verdict = "incompatible"
	// Undecided: none of these could be shown.
	Undecided Verdict = "undecided"
)

// Difference is one place where two contracts differ.
type Difference struct {
	// Pointer is the JSON pointer of the place in the arguments or the result; a step * is every item or every key that
	// has no name of its own. Empty for the whole.
	Pointer string `json:"pointer"`
	// Kind is what differs there: the JSON Schema keyword, or one of property (a declared key is not taken by the
	// other), default, coerce, remainder, recursion (of a kind that can't be followed), work (too much to compare) and schema
	// (one that can't be read).
	Kind string `json:"kind"`
	// What says it in plain words: `100 before, 50 now`. It quotes the schemas.
	What string `json:"what"`
	// Verdict is of this difference alone. One of kind default is Identical: the same calls are accepted, and one that
	// leaves the argument out runs with another value.
	Verdict Verdict `json:"verdict"`
	// Refused is a value (the whole arguments or result) that the old contract accepts and the new one refuses, and
	// Added one that only the new one accepts. Both validators have said so. Nil where none was found.
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

// Comparison is what Compare and CompareResults answer.
type Comparison struct {
	Verdict Verdict `json:"verdict"`
	// Differences are sorted by pointer, the first 100 of more. Titles, descriptions, examples and other annotations are
	// no differences; defaults are.
	Differences []Difference `json:"differences,omitempty"`
	// Results: what was compared are results, not arguments.
	Results bool `json:"results,omitempty"`
}

// Breaking reports whether somebody who relies on the old contract may be disappointed by the new one: a caller whose
// arguments are refused now, a reader of results that never came before. What is undecided counts as breaking.
func (c Comparison) Breaking() bool {
	if c.Results {
		return c.Verdict != Identical && c.Verdict != Narrowed
	}
	return c.Verdict != Identical && c.Verdict != Widened
}

// Compare compares what two contracts accept as a call's arguments, as Check does: defaults are filled in before the
// schema is asked, unless NoFill. It never fails, needs no more of a Spec than Schema, Upstream, NoFill, Coerce and
// Remainder, and takes any JSON Schema that an
// upstream server sends: what it can't read or compare is undecided, never guessed. Its work is bounded.
//
// A verdict is shown, not estimated: that one contract includes the other by rules that hold for every value, that it
// doesn't by a value that both validators were asked about. What CUE enforces beside a schema counts too: the same
// Remainder is the same constraint, one that came can only narrow, one that went can only widen, and two that differ
// are undecided.
func Compare(old, new Spec) Comparison {
	return compare(old, new, true)
}

// CompareResults is Compare for what a tool gives back: nothing is filled in, and an empty Schema is one that accepts
// everything. Its verdict speaks of the same sets, but Breaking reads it the other way round.
func CompareResults(old, new Spec) Comparison {
	for _, s := range []*Spec{&old, &new} {
		if len(bytes.TrimSpace(s.Schema)) == 0 {
			s.Schema = json.RawMessage("true")
		}
	}
	c := compare(old, new, false)
	c.Results = true
	return c
}

const maxDifferences = 100

func compare(old, new Spec, filled bool) Comparison {
	before, after := readDocument(old, filled && !old.NoFill), readDocument(new, filled && !new.NoFill)
	var c comparer
	switch {
	case before.canonical != "" && before.canonical == after.canonical &&
		(before.upstream == after.upstream || !readTwoWays(before.canonical)):
	case before.broken != "":
		c.both("schema", "the old schema can't be compared: "+before.broken)
	case after.broken != "":
		c.both("schema", "the new schema can't be compared: "+after.broken)
	default:
		budget := maxSteps
		c.forward = (&prover{budget: &budget, forward: true}).prove(meet{before.root}, after.root)
		budget = maxSteps
		c.backward = (&prover{budget: &budget}).prove(meet{after.root}, before.root)
		if !filled || !old.Coerce && !new.Coerce { // else the validators alone don't say what is accepted
			c.witness(before, after, old.Remainder == nil, new.Remainder == nil)
		}
		c.defaults(before, after)
	}
	if filled && (old.Coerce || new.Coerce) {
		c.coerced(old.Coerce, new.Coerce, before.canonical != "" && before.canonical == after.canonical)
	}
	c.remainders(old.Remainder, new.Remainder)
	return c.answer()
}

// comparer gathers what stands in the way of old ⊆ new (forward) and of new ⊆ old (backward).
type comparer struct {
	forward, backward []gap
	extra             []Difference
}

func (c *comparer) both(kind, what string) {
	c.forward = append(c.forward, gap{kind: kind, what: what})
	c.backward = append(c.backward, gap{kind: kind, what: what})
}

func (c *comparer) remainders(old, new *Remainder) {
	const kind = "remainder"
	switch {
	case old == nil && new == nil, old != nil && new != nil && *old == *new:
	case old == nil:
		c.forward = append(c.forward, gap{kind: kind, what: "CUE checks more than the schema says now"})
	case new == nil:
		c.backward = append(c.backward, gap{kind: kind, what: "CUE no longer checks more than the schema says"})
	default:
		c.both(kind, "what CUE checks beside the schema may have changed")
	}
}

// coerced says what coercion does to a comparison. What it turns a value into depends on the whole schema: where that has
// changed too, nothing is shown.
func (c *comparer) coerced(old, new, sameSchema bool) {
	const kind = "coerce"
	switch {
	case !sameSchema:
		c.both(kind, "values of other kinds are turned into the declared ones, which can't be compared across schemas")
	case old && !new:
		c.forward = append(c.forward, gap{kind: kind, what: "values of other kinds are no longer turned into the declared ones"})
	case new && !old:
		c.backward = append(c.backward, gap{kind: kind, what: "values of other kinds are turned into the declared ones"})
	}
}

// defaults reports the places that both have and whose default differs.
func (c *comparer) defaults(old, new *document) {
	before, after := old.defaults(), new.defaults()
	for place, was := range before {
		if is, ok := after[place]; ok && was != is {
			c.extra = append(c.extra, Difference{Pointer: place, Kind: "default", What: fmt.Sprintf("%s before, %s now", clip(orNone(was)), clip(orNone(is))), Verdict: Identical})
		}
	}
}

func (c *comparer) answer() Comparison {
	var out Comparison
	witnessed := func(g gap) bool { return g.witness != nil }
	switch forward, backward := len(c.forward) == 0, len(c.backward) == 0; {
	case forward && backward:
		out.Verdict = Identical
	case forward:
		out.Verdict = Widened
	case backward:
		out.Verdict = Narrowed
	case slices.ContainsFunc(c.forward, witnessed) && slices.ContainsFunc(c.backward, witnessed):
		out.Verdict = Incompatible
	default:
		out.Verdict = Undecided
	}
	type place struct{ pointer, kind string }
	at := map[place]*Difference{}
	note := func(g gap, forward bool) {
		p := place{g.pointer(), g.kind}
		d := at[p]
		if d == nil {
			d = &Difference{Pointer: p.pointer, Kind: p.kind}
			at[p] = d
		}
		if !slices.Contains(strings.Split(d.What, "; "), g.what) {
			d.What = strings.TrimPrefix(d.What+"; "+g.what, "; ")
		}
		switch one, other := Narrowed, Widened; {
		case forward:
			d.Refused = firstOf(d.Refused, g.witness)
			d.Verdict = joined(d, one, other)
		default:
			d.Added = firstOf(d.Added, g.witness)
			d.Verdict = joined(d, other, one)
		}
	}
	for _, g := range c.forward {
		note(g, true)
	}
	for _, g := range c.backward {
		note(g, false)
	}
	for _, d := range at {
		out.Differences = append(out.Differences, *d)
	}
	out.Differences = append(out.Differences, c.extra...)
	slices.SortFunc(out.Differences, func(a, b Difference) int {
		return cmp.Or(cmp.Compare(a.Pointer, b.Pointer), cmp.Compare(a.Kind, b.Kind))
	})
	out.Differences = out.Differences[:min(len(out.Differences), maxDifferences)]
	return out
}

// joined is the verdict of a difference that is now known to be of a direction too.
func joined(d *Difference, direction, other Verdict) Verdict {
	switch {
	case d.Verdict == "" || d.Verdict == direction:
		return direction
	case d.Verdict == other && (d.Refused == nil || d.Added == nil):
		return Undecided
	case d.Refused != nil && d.Added != nil:
		return Incompatible
	}
	return Undecided
}

func firstOf(a, b json.RawMessage) json.RawMessage {
	if a != nil {
		return a
	}
	return b
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}
