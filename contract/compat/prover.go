package compat

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/catalogd/catalogd/contract/internal/jsontype"
	"github.com/catalogd/catalogd/contract/internal/quote"
)

// maxSteps bounds the proof of one direction, in pairs of a conjunction and a subschema.
const maxSteps = 20_000

// conjunction is a list of subschemas that hold together: a value is valid if it is valid against each.
type conjunction []*subschema

// gap is one reason why an inclusion could not be proved: something that super asks for at a place, and sub
// does not ensure.
type gap struct {
	path    []step
	kind    string
	what    string
	sub     conjunction
	super   *subschema
	witness json.RawMessage
}

// unproved is a gap at the place that sub and super are about.
func unproved(kind, what string, sub conjunction, super *subschema) gap {
	return gap{kind: kind, what: what, sub: sub, super: super}
}

// step is one step down into a value. any is every key or item without a name of its own, for which key and
// index are an example; the key is then a pattern that it matches, or empty.
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
			b.WriteString(escape(s.key))
		}
	}
	return b.String()
}

// prover proves that every value of a conjunction is valid against a subschema, or says what is missing in
// the proof. Every rule is sound: no gap means inclusion. A gap means only that no rule applied.
//
// Recursive schemas are compared by coinduction: a pair that comes up again below itself holds if everything
// else does, as long as there was a step down into the value in between, since values are finite.
type prover struct {
	steps   *int // left
	forward bool // sub is the old schema
	depth   int  // steps down into the value
	open    map[string]assumption
	done    map[string][]gap
	lowest  int // the outermost assumption that was used, by its order
}

// assumption is a pair that is being proved, and which pairs below may rely on.
type assumption struct{ depth, order int }

func (p *prover) prove(sub conjunction, super *subschema) []gap {
	if *p.steps--; *p.steps < 0 {
		return []gap{{kind: "work", what: "too much to compare"}}
	}
	sub = flatten(sub)
	if super.acceptsAll() || slices.ContainsFunc(sub, func(s *subschema) bool { return sameText(s, super) }) {
		return nil
	}
	key := sub.key() + ">" + super.key()
	if found, ok := p.done[key]; ok {
		return found
	}
	if a, ok := p.open[key]; ok {
		if p.depth > a.depth {
			p.lowest = min(p.lowest, a.order)
			return nil
		}
		return []gap{unproved("recursion", "a recursion that can't be followed", sub, super)}
	}
	if p.open == nil {
		p.open, p.done, p.lowest = map[string]assumption{}, map[string][]gap{}, maxSteps
	}
	order, before := len(p.open), p.lowest
	p.open[key], p.lowest = assumption{p.depth, order}, maxSteps
	found := slices.Clip(p.split(sub, super)) // it is kept, and callers append to it
	delete(p.open, key)
	if len(found) > 0 || p.lowest >= order { // else it holds only if the assumptions do that it used
		p.done[key] = found
		p.lowest = before
	} else {
		p.lowest = min(before, p.lowest)
	}
	return found
}

// proves is prove for callers that need no reasons.
func (p *prover) proves(sub conjunction, super *subschema) bool { return len(p.prove(sub, super)) == 0 }

// descend proves for a place below the current one.
func (p *prover) descend(s step, sub conjunction, super *subschema) []gap {
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

func (s *subschema) key() string {
	key := s.pointer + "\x00" + s.variant
	if s.fills {
		key += "f"
	}
	return fmt.Sprintf("%p%s", s.doc, key)
}

func (c conjunction) key() string {
	keys := make([]string, len(c))
	for i, s := range c {
		keys[i] = s.key()
	}
	slices.Sort(keys)
	return strings.Join(keys, "&")
}

// flatten adds the subschemas that $ref and allOf lead to.
func flatten(c conjunction) (out conjunction) {
	var add func(s *subschema)
	add = func(s *subschema) {
		if slices.Contains(out, s) {
			return
		}
		out = append(out, s)
		if s.ref != nil {
			add(s.ref)
		}
		for _, part := range s.allOf {
			add(part)
		}
	}
	for _, s := range c {
		add(s)
	}
	return out
}

// split proves for the whole conjunction; where that fails, for each of its alternatives, or each of its
// types.
func (p *prover) split(sub conjunction, super *subschema) []gap {
	if p.empty(sub, 0) {
		return nil
	}
	if values, few := p.values(sub); few {
		return p.each(sub, values, super)
	}
	found := p.keywords(sub, super)
	if len(found) == 0 {
		return nil
	}
	alternatives := sub.alternatives()
	if alternatives == nil && len(super.inPlace()) > 0 {
		alternatives = p.byType(sub)
	}
	if alternatives == nil {
		return found
	}
	var apart []gap
	for _, a := range alternatives {
		apart = append(apart, p.prove(a, super)...)
	}
	if len(apart) < len(found) { // the shorter list says better what is missing
		return apart
	}
	return found
}

// alternatives splits a conjunction by its first anyOf or oneOf; nil without one.
func (c conjunction) alternatives() (out []conjunction) {
	for i, s := range c {
		branches := s.anyOf
		if branches == nil {
			branches = s.oneOf
		}
		if branches == nil {
			continue
		}
		others := append(slices.Clone(c[:i]), c[i+1:]...)
		for _, branch := range branches {
			out = append(out, append(slices.Clone(others), s.withoutAlternatives(), branch))
		}
		return out
	}
	return nil
}

// withoutAlternatives is s without the anyOf or oneOf that alternatives splits by.
func (s *subschema) withoutAlternatives() *subschema {
	if s.rest == nil {
		rest := *s
		rest.rest, rest.text = nil, s.text+" without"
		if s.anyOf != nil {
			rest.anyOf, rest.variant = nil, s.variant+"a"
		} else {
			rest.oneOf, rest.variant = nil, s.variant+"o"
		}
		s.rest = &rest
	}
	return s.rest
}

// byType splits a conjunction by the types of its values; nil where there is only one.
func (p *prover) byType(c conjunction) (out []conjunction) {
	all := p.types(c, 0)
	for _, t := range []jsontype.Set{
		jsontype.Null, jsontype.Boolean, jsontype.Number, jsontype.String, jsontype.Array, jsontype.Object,
	} {
		if all&t == all {
			return nil
		}
		if all&t != 0 {
			only := &subschema{
				variant: "type " + (all & t).String(), text: "type", types: all & t, typesOnly: true,
				maxLength: -1, maxItems: -1, maxProperties: -1,
			}
			out = append(out, append(slices.Clone(c), only))
		}
	}
	return out
}

// values lists the values of a conjunction, where they are few and known: those of an enum, null, true and
// false.
func (p *prover) values(c conjunction) (out []any, few bool) {
	var all []any
	for _, s := range c {
		if s.finite && (!few || len(s.enum) < len(all)) {
			all, few = s.enum, true
		}
	}
	if types := p.types(c, 0); !few && types&^(jsontype.Null|jsontype.Boolean) == 0 {
		few = true
		if types&jsontype.Null != 0 {
			all = append(all, nil)
		}
		if types&jsontype.Boolean != 0 {
			all = append(all, false, true)
		}
	}
	for _, v := range all {
		if p.possible(c, v) {
			out = append(out, v)
		}
	}
	return out, few
}

// possible reports whether a value may be valid against a conjunction. False is certain.
func (p *prover) possible(c conjunction, v any) bool {
	t := jsontype.Of(v)
	for _, s := range c {
		if *p.steps--; *p.steps < 0 {
			return true
		}
		switch {
		case s.typesOnly:
			if s.types&t == 0 {
				return false
			}
		case s.fills && t&(jsontype.Object|jsontype.Array) != 0: // a default may make it valid
		default:
			if valid, decided := s.accepts(v); decided && !valid {
				return false
			}
		}
	}
	return true
}

// each proves for a list of values, one by one.
func (p *prover) each(sub conjunction, values []any, super *subschema) []gap {
	var refused []string
	for _, v := range values {
		*p.steps--
		if valid, decided := super.accepts(v); !decided || !valid {
			refused = append(refused, canonical(v))
		}
	}
	if len(refused) == 0 {
		return nil
	}
	kind := "enum"
	if p.types(sub, 0)&^p.types(conjunction{super}, 0) != 0 && len(refused) == len(values) {
		kind = "type"
	}
	what := p.words("no longer takes "+quote.List(refused), "takes "+quote.List(refused)+" too")
	return []gap{unproved(kind, what, sub, super)}
}

// words says the same from either side.
func (p *prover) words(forward, backward string) string {
	if p.forward {
		return forward
	}
	return backward
}

// changed says what was and what is, from what stands on either side.
func (p *prover) changed(sub, super string) string {
	if !p.forward {
		sub, super = super, sub
	}
	return beforeAndNow(sub, super)
}
