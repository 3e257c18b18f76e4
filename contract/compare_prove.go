package contract

import (
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strings"
)

// maxSteps bounds what proving one direction costs, in pairs of schemas looked at.
const maxSteps = 20_000

// meet is a conjunction of schemas: a value is in it if all of them accept it.
type meet []*node

// gap is one reason for which an inclusion could not be shown: what super asks for at a place, and sub doesn't promise.
type gap struct {
	path    []step
	kind    string
	what    string
	sub     meet
	super   *node
	value   any // a value at the place that is known to make the difference; with known
	known   bool
	witness json.RawMessage
}

// step is one step down into a value. any stands for every key or item without a name of its own, for which key and
// index are an example.
type step struct {
	key   string
	index int
	array bool
	any   bool
}

func (g gap) pointer() string {
	var b strings.Builder
	for _, s := range g.path {
		b.WriteByte('/')
		switch {
		case s.any:
			b.WriteByte('*')
		case s.array:
			fmt.Fprint(&b, s.index)
		default:
			b.WriteString(escapePointer(s.key))
		}
	}
	return b.String()
}

// prover shows that every value of a meet is one of a schema, or says what stands in the way. All its rules are sound:
// no gap means inclusion. A gap means only that none of the rules showed it.
//
// Recursive schemas are compared coinductively: a pair that is met again below itself holds if all else does, provided
// that the way there led down into the value, since a value has an end.
type prover struct {
	budget  *int
	forward bool // sub is the old schema
	depth   int  // steps down into the value
	open    map[string]opened
	done    map[string][]gap
	lowest  int // of the open pairs that were relied on, by their place in the order of opening
}

type opened struct{ depth, order int }

func (p *prover) prove(sub meet, super *node) []gap {
	if *p.budget--; *p.budget < 0 {
		return []gap{{kind: "work", what: "too much to compare"}}
	}
	sub = flatten(sub)
	if super.any() || slices.ContainsFunc(sub, func(n *node) bool { return same(n, super) }) {
		return nil
	}
	key := sub.key() + ">" + super.key()
	if found, ok := p.done[key]; ok {
		return found
	}
	if o, ok := p.open[key]; ok {
		if p.depth > o.depth {
			p.lowest = min(p.lowest, o.order)
			return nil
		}
		return []gap{{kind: "recursion", what: "a recursion that can't be followed", sub: sub, super: super}}
	}
	if p.open == nil {
		p.open, p.done, p.lowest = map[string]opened{}, map[string][]gap{}, maxSteps
	}
	order, before := len(p.open), p.lowest
	p.open[key], p.lowest = opened{p.depth, order}, maxSteps
	found := slices.Clip(p.split(sub, super)) // it is kept, and others append to it
	delete(p.open, key)
	if len(found) > 0 || p.lowest >= order { // what relied on an open pair holds only if that pair does
		p.done[key] = found
		p.lowest = before
	} else {
		p.lowest = min(before, p.lowest)
	}
	return found
}

// below proves for a place below the current one.
func (p *prover) below(s step, sub meet, super *node) []gap {
	p.depth++
	found := p.prove(sub, super)
	p.depth--
	out := make([]gap, len(found))
	for i, g := range found {
		g.path = append([]step{s}, g.path...)
		out[i] = g
	}
	return out
}

// holds is prove for those who want no reasons.
func (p *prover) holds(sub meet, super *node) bool { return len(p.prove(sub, super)) == 0 }

func (n *node) key() string {
	key := n.pointer + "\x00"
	if n.filled {
		key += "f"
	}
	if n.role != "" {
		key += n.role
	}
	return fmt.Sprintf("%p%s", n.doc, key)
}

func (m meet) key() string {
	keys := make([]string, len(m))
	for i, n := range m {
		keys[i] = n.key()
	}
	slices.Sort(keys)
	return strings.Join(keys, "&")
}

// flatten takes references and allOf apart.
func flatten(m meet) (out meet) {
	var add func(n *node)
	add = func(n *node) {
		if slices.Contains(out, n) {
			return
		}
		out = append(out, n)
		if n.ref != nil {
			add(n.ref)
		}
		for _, part := range n.allOf {
			add(part)
		}
	}
	for _, n := range m {
		add(n)
	}
	return out
}

// split proves for the whole meet, and where that doesn't succeed for each of its alternatives.
func (p *prover) split(sub meet, super *node) []gap {
	if p.empty(sub, 0) {
		return nil
	}
	if values, finite := p.values(sub); finite {
		return p.each(sub, values, super)
	}
	found := p.keywords(sub, super)
	if len(found) == 0 {
		return nil
	}
	alternatives := sub.alternatives()
	if alternatives == nil && (super.anyOf != nil || super.oneOf != nil || super.not != nil || super.when != nil || super.ref != nil || super.allOf != nil) {
		alternatives = p.byKind(sub)
	}
	if alternatives == nil {
		return found
	}
	var apart []gap
	for _, a := range alternatives {
		apart = append(apart, p.prove(a, super)...)
	}
	if len(apart) == 0 || len(apart) < len(found) {
		return apart[:min(len(apart), maxDifferences)]
	}
	return found
}

// alternatives splits a meet by its first anyOf or oneOf; nil without one.
func (m meet) alternatives() (out []meet) {
	for i, n := range m {
		branches := n.anyOf
		if branches == nil {
			branches = n.oneOf
		}
		if branches == nil {
			continue
		}
		rest := append(slices.Clone(m[:i]), m[i+1:]...)
		for _, branch := range branches {
			out = append(out, append(slices.Clone(rest), n.without(), branch))
		}
		return out
	}
	return nil
}

// without is n without its alternatives, one of which is looked at instead.
func (n *node) without() *node {
	if n.rest == nil {
		rest := *n
		rest.rest, rest.text = nil, n.text+" without"
		if n.anyOf != nil {
			rest.anyOf, rest.role = nil, n.role+"a"
		} else {
			rest.oneOf, rest.role = nil, n.role+"o"
		}
		n.rest = &rest
	}
	return n.rest
}

// byKind splits a meet by the kinds of its values; nil where there is but one.
func (p *prover) byKind(m meet) (out []meet) {
	all := p.kinds(m, 0)
	for _, k := range []kinds{nullKind, booleanKind, numberKinds, stringKind, arrayKind, objectKind} {
		if all&k == all {
			return nil
		}
		if all&k != 0 {
			only := &node{role: "kind " + (all & k).String(), text: "kind", kinds: all & k,
				maxLength: -1, maxItems: -1, maxProps: -1, maxContains: -1, synthetic: true}
			out = append(out, append(slices.Clone(m), only))
		}
	}
	return out
}

// values are all values of a meet, if they are few and known.
func (p *prover) values(m meet) (out []any, finite bool) {
	var all []any
	for _, n := range m {
		if n.finite && (!finite || len(n.enum) < len(all)) {
			all, finite = n.enum, true
		}
	}
	if !finite {
		all, finite = p.enumerate(m)
	}
	for _, v := range all {
		if p.possible(m, v) {
			out = append(out, v)
		}
	}
	return out, finite
}

// possible reports whether a value may be in a meet: false is certain.
func (p *prover) possible(m meet, v any) bool {
	kind := kindOf(v)
	for _, n := range m {
		if *p.budget--; *p.budget < 0 {
			return true
		}
		if n.synthetic {
			if n.kinds&kindsOf(v) == 0 {
				return false
			}
			continue
		}
		if n.filled && (kind == "object" || kind == "array") {
			continue // what is filled in might make it acceptable
		}
		if accepted, sure := n.accepts(v); sure && !accepted {
			return false
		}
	}
	return true
}

func (p *prover) enumerate(m meet) (out []any, finite bool) {
	const most = 64
	all := p.kinds(m, 0)
	if all&^(nullKind|booleanKind|wholeKind) != 0 {
		return nil, false
	}
	if all&nullKind != 0 {
		out = append(out, nil)
	}
	if all&booleanKind != 0 {
		out = append(out, false, true)
	}
	if all&wholeKind != 0 {
		lower, upper := m.lower(), m.upper()
		if lower == nil || upper == nil {
			return nil, false
		}
		from, to := wholeAbove(lower.at), wholeBelow(upper.at)
		span := new(big.Int).Sub(to, from)
		if !span.IsInt64() || span.Int64() > most {
			return nil, false
		}
		for i := from; i.Cmp(to) <= 0; i = new(big.Int).Add(i, big.NewInt(1)) {
			out = append(out, json.Number(i.String()))
		}
	}
	return out, true
}

// each proves for a list of values.
func (p *prover) each(sub meet, values []any, super *node) []gap {
	var refused []any
	for _, v := range values {
		*p.budget--
		if accepted, sure := super.accepts(v); !sure || !accepted {
			refused = append(refused, v)
		}
	}
	if len(refused) == 0 {
		return nil
	}
	kind := "enum"
	if left := p.kinds(sub, 0) &^ p.kinds(meet{super}, 0); left != 0 && len(refused) == len(values) {
		kind = "type"
	}
	return []gap{{kind: kind, what: p.words("no longer takes %s", "takes %s too", enumeration(refused)), sub: sub, super: super, value: refused[0], known: true}}
}

// words says the same thing from either side.
func (p *prover) words(forward, backward string, args ...any) string {
	if p.forward {
		return fmt.Sprintf(forward, args...)
	}
	return fmt.Sprintf(backward, args...)
}

// changed says what stood and what stands.
func (p *prover) changed(sub, super string) string {
	if !p.forward {
		sub, super = super, sub
	}
	return fmt.Sprintf("%s before, %s now", clip(orNone(sub)), clip(orNone(super)))
}

// keywords proves each keyword of super in turn.
func (p *prover) keywords(sub meet, super *node) (found []gap) {
	note := func(kind, what string) {
		found = append(found, gap{kind: kind, what: what, sub: sub, super: super})
	}
	mine := p.kinds(sub, 0)
	if super.never {
		note("property", p.words("taken before, refused now", "refused before, taken now"))
		return found
	}
	if mine&^super.kinds != 0 {
		note("type", p.changed(mine.String(), super.kinds.String()))
	}
	if super.finite {
		note("enum", p.changed("other values", "only "+enumeration(super.enum)))
	}
	for _, keyword := range super.opaque {
		note(keyword, "a keyword that can't be compared")
	}
	common := mine & super.kinds
	if common&numberKinds != 0 {
		found = append(found, p.numbers(sub, super, common)...)
	}
	if common&stringKind != 0 {
		found = append(found, p.strings(sub, super)...)
	}
	if super.format != "" && common != 0 && !slices.ContainsFunc(sub, func(n *node) bool { return n.format == super.format }) {
		if common&stringKind != 0 || !stringFormat(super.format) {
			note("format", p.changed(sub.first(func(n *node) string { return n.format }), super.format))
		}
	}
	if common&arrayKind != 0 {
		found = append(found, p.arrays(sub, super)...)
	}
	if common&objectKind != 0 {
		found = append(found, p.objects(sub, super)...)
	}
	if super.ref != nil {
		found = append(found, p.prove(sub, super.ref)...)
	}
	for _, part := range super.allOf {
		found = append(found, p.prove(sub, part)...)
	}
	if super.anyOf != nil {
		found = append(found, p.oneFits(sub, super, super.anyOf, "anyOf", false)...)
	}
	if super.oneOf != nil && !p.sameChoice(sub, super) {
		found = append(found, p.oneFits(sub, super, super.oneOf, "oneOf", true)...)
	}
	if super.not != nil && !p.excluded(sub, super.not) {
		note("not", p.changed("nothing of it", "values excluded"))
	}
	if super.when != nil {
		found = append(found, p.conditional(sub, super)...)
	}
	return found[:min(len(found), maxDifferences)]
}

// stringFormat reports whether a format is known to say nothing of other values than strings.
func stringFormat(name string) bool { return name != "regex" }

// first is the first word that says something.
func (m meet) first(word func(*node) string) string {
	for _, n := range m {
		if w := word(n); w != "" {
			return w
		}
	}
	return ""
}

// oneFits proves that all of sub fits into one branch, and where it must be just one, into no other.
func (p *prover) oneFits(sub meet, super *node, branches []*node, kind string, alone bool) []gap {
	var near [][]gap
	mine := p.kinds(sub, 0)
	for i, branch := range branches {
		found := p.prove(sub, branch)
		if len(found) == 0 && alone {
			for j, other := range branches {
				if i != j && !p.excluded(sub, other) {
					found = append(found, gap{kind: kind, what: "alternatives that may overlap", sub: sub, super: super})
					break
				}
			}
		}
		if len(found) == 0 {
			return nil
		}
		if mine&p.kinds(meet{branch}, 0) == mine {
			near = append(near, found)
		}
	}
	if len(near) == 1 {
		return near[0]
	}
	return []gap{{kind: kind, what: p.words("some of its values fit no alternative that is there now", "some of its values fit no alternative that was there before"), sub: sub, super: super}}
}

// sameChoice reports whether sub chooses between the same alternatives as super.oneOf.
func (p *prover) sameChoice(sub meet, super *node) bool {
	return slices.ContainsFunc(sub, func(n *node) bool {
		if len(n.oneOf) != len(super.oneOf) {
			return false
		}
		for i, branch := range n.oneOf {
			if !p.equal(branch, super.oneOf[i]) {
				return false
			}
		}
		return true
	})
}

func (p *prover) equal(a, b *node) bool { return p.holds(meet{a}, b) && p.holds(meet{b}, a) }

// excluded reports whether no value of sub is one of other.
func (p *prover) excluded(sub meet, other *node) bool {
	if p.empty(flatten(append(slices.Clone(sub), other)), 0) {
		return true
	}
	return slices.ContainsFunc(sub, func(n *node) bool { return n.not != nil && p.holds(meet{other}, n.not) })
}

func (p *prover) conditional(sub meet, super *node) (found []gap) {
	with, without := slices.Clone(sub), slices.Clone(sub)
	for _, n := range sub {
		if n.when == nil || !p.equal(n.when, super.when) {
			continue
		}
		if n.then != nil {
			with = append(with, n.then)
		}
		if n.otherwise != nil {
			without = append(without, n.otherwise)
		}
	}
	if super.then != nil && !p.excluded(sub, super.when) {
		found = p.prove(append(with, super.when), super.then)
	}
	if super.otherwise != nil && !p.holds(sub, super.when) {
		found = append(found, p.prove(without, super.otherwise)...)
	}
	return found
}
