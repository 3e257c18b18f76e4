package compat

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/contract/internal/quote"
)

const maxDifferences = 100

func compare(old, new contract.Spec, arguments bool) Comparison {
	before, after := readDocument(old, arguments && !old.NoFill), readDocument(new, arguments && !new.NoFill)
	sameSchema := before.text != "" && before.text == after.text
	var c comparer
	switch {
	case sameSchema && (before.upstream == after.upstream || !dependsOnOrigin(before.text)) &&
		(!arguments || old.NoFill == new.NoFill || !strings.Contains(before.text, `"default"`)):
	case before.broken != "":
		c.both("schema", "the old schema can't be compared: "+before.broken)
	case after.broken != "":
		c.both("schema", "the new schema can't be compared: "+after.broken)
	default:
		steps := maxSteps
		c.forward = (&prover{steps: &steps, forward: true}).prove(conjunction{before.root}, after.root)
		steps = maxSteps
		c.backward = (&prover{steps: &steps}).prove(conjunction{after.root}, before.root)
		if !before.validator.Decided() || !after.validator.Decided() {
			// A matcher that has run out of time matches everything, which proves nothing.
			c.both("work", "matching the patterns takes too long")
		}
		if !arguments || !old.Coerce && !new.Coerce { // else the schemas alone don't say what is accepted
			if old.Remainder == nil { // else CUE decides whether the old contract accepts a value
				findWitnesses(c.forward, before, after)
			}
			if new.Remainder == nil {
				findWitnesses(c.backward, after, before)
			}
		}
		c.defaults(before, after)
	}
	if arguments && (old.Coerce || new.Coerce) {
		c.coerced(old.Coerce, new.Coerce, sameSchema)
	}
	c.remainders(old.Remainder, new.Remainder)
	return c.answer()
}

// comparer collects the gaps in the proofs of old ⊆ new (forward) and new ⊆ old (backward).
type comparer struct {
	forward, backward []gap
	extra             []Difference
}

func (c *comparer) both(kind, what string) {
	c.forward = append(c.forward, gap{kind: kind, what: what})
	c.backward = append(c.backward, gap{kind: kind, what: what})
}

func (c *comparer) remainders(old, new *contract.Remainder) {
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

// coerced adds what coercion does to a comparison. What a value is coerced to depends on the whole schema, so
// nothing is shown where the schema has changed too.
func (c *comparer) coerced(old, new, sameSchema bool) {
	const kind = "coerce"
	switch {
	case !sameSchema:
		const what = "values of other kinds are turned into the declared ones, which can't be compared across schemas"
		c.both(kind, what)
	case old && !new:
		const what = "values of other kinds are no longer turned into the declared ones"
		c.forward = append(c.forward, gap{kind: kind, what: what})
	case new && !old:
		const what = "values of other kinds are turned into the declared ones"
		c.backward = append(c.backward, gap{kind: kind, what: what})
	}
}

// defaults adds the places that both sides declare with another default.
func (c *comparer) defaults(old, new *document) {
	before, after := old.defaults(), new.defaults()
	for place, was := range before {
		if is, ok := after[place]; ok && was != is {
			d := Difference{Pointer: place, Kind: "default", What: beforeAndNow(was, is), Verdict: Identical}
			c.extra = append(c.extra, d)
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
		if forward {
			d.Refused = firstOf(d.Refused, g.witness)
			d.Verdict = d.with(Narrowed)
		} else {
			d.Added = firstOf(d.Added, g.witness)
			d.Verdict = d.with(Widened)
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

// with is the verdict of d once it is also known to be in a direction, Narrowed or Widened.
func (d *Difference) with(direction Verdict) Verdict {
	switch {
	case d.Verdict == "" || d.Verdict == direction:
		return direction
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

// beforeAndNow is `OLD before, NEW now`; an empty one is "none".
func beforeAndNow(old, new string) string {
	return fmt.Sprintf("%s before, %s now", quote.Clip(cmp.Or(old, "none")), quote.Clip(cmp.Or(new, "none")))
}
