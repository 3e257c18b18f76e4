package compat

import (
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/catalogd/catalogd/contract/internal/jsontype"
	"github.com/catalogd/catalogd/contract/internal/quote"
)

// equalKeywords are the keywords that are compared by their text alone, with the types of the values that
// they are about.
var equalKeywords = map[string]jsontype.Set{
	"contentEncoding": jsontype.String, "dependentRequired": jsontype.Object, "format": jsontype.String,
	"pattern": jsontype.String, "uniqueItems": jsontype.Array,
}

// keywords proves each keyword of super in turn.
func (p *prover) keywords(sub conjunction, super *subschema) (found []gap) {
	note := func(kind, what string) { found = append(found, unproved(kind, what, sub, super)) }
	types := p.types(sub, 0)
	if super.never {
		note("property", p.words("taken before, refused now", "refused before, taken now"))
		return found
	}
	if types&^super.types != 0 {
		note("type", p.changed(types.String(), super.types.String()))
	}
	if super.finite {
		list := make([]string, len(super.enum))
		for i, v := range super.enum {
			list[i] = canonical(v)
		}
		note("enum", p.changed("other values", "only "+quote.List(list)))
	}
	for _, keyword := range super.opaque {
		note(keyword, "a keyword that can't be compared")
	}
	common := types & super.types
	if common&jsontype.Number != 0 {
		found = append(found, p.numbers(sub, super, common)...)
	}
	if common&jsontype.String != 0 {
		found = append(found, p.lengths(sub, super)...)
	}
	for _, keyword := range slices.Sorted(maps.Keys(super.equal)) {
		if common&equalKeywords[keyword] != 0 && !sub.has(keyword, super) {
			note(keyword, p.changed(sub.firstEqual(keyword), super.equal[keyword]))
		}
	}
	if common&jsontype.Array != 0 {
		found = append(found, p.arrays(sub, super)...)
	}
	if common&jsontype.Object != 0 {
		found = append(found, p.objects(sub, super)...)
	}
	found = append(found, p.applicators(sub, super)...)
	return found[:min(len(found), maxDifferences)]
}

// has reports whether a subschema of c has a keyword with the text that it has in super.
func (c conjunction) has(keyword string, super *subschema) bool {
	if keyword == "pattern" && super.equal[keyword] == "" {
		return true // it matches everything
	}
	return slices.ContainsFunc(c, func(s *subschema) bool {
		text, ok := s.equal[keyword] // one that the prover made has no keywords, and no document
		return ok && text == super.equal[keyword] && (keyword != "pattern" || s.doc.upstream == super.doc.upstream)
	})
}

func (c conjunction) firstEqual(keyword string) string {
	for _, s := range c {
		if s.equal[keyword] != "" {
			return s.equal[keyword]
		}
	}
	return ""
}

// most is the strictest minimum of a conjunction, least its strictest maximum (-1: none).
func (c conjunction) most(of func(*subschema) int) (out int) {
	for _, s := range c {
		out = max(out, of(s))
	}
	return out
}

func (c conjunction) least(of func(*subschema) int) int {
	out := -1
	for _, s := range c {
		if v := of(s); v >= 0 && (out < 0 || v < out) {
			out = v
		}
	}
	return out
}

func (c conjunction) lower() (out *bound) {
	for _, s := range c {
		out = stricter(out, s.lower, 1)
	}
	return out
}

func (c conjunction) upper() (out *bound) {
	for _, s := range c {
		out = stricter(out, s.upper, -1)
	}
	return out
}

// floor is the largest integer that is not above r, ceiling the smallest that is not below it.
func floor(r *big.Rat) *big.Int { return new(big.Int).Div(r.Num(), r.Denom()) } // Div rounds down: Denom is positive

func ceiling(r *big.Rat) *big.Int { return new(big.Int).Neg(floor(new(big.Rat).Neg(r))) }

// integerBound is the bound that b is for integers: inclusive, and an integer itself.
func integerBound(b *bound, lower bool) *bound {
	if b == nil {
		return nil
	}
	i, inward := floor(b.at), big.NewInt(-1)
	if lower {
		i, inward = ceiling(b.at), big.NewInt(1)
	}
	if b.exclusive && b.at.IsInt() {
		i.Add(i, inward)
	}
	return &bound{at: new(big.Rat).SetInt(i)}
}

func (p *prover) numbers(sub conjunction, super *subschema, types jsontype.Set) (found []gap) {
	note := func(kind, was, is string) {
		found = append(found, unproved(kind, p.changed(was, is), sub, super))
	}
	lower, upper, wantLower, wantUpper := sub.lower(), sub.upper(), super.lower, super.upper
	if types&jsontype.Fraction == 0 {
		lower, wantLower = integerBound(lower, true), integerBound(wantLower, true)
		upper, wantUpper = integerBound(upper, false), integerBound(wantUpper, false)
	}
	if !implies(lower, wantLower, 1) {
		note("minimum", sub.lower().words("above"), super.lower.words("above"))
	}
	if !implies(upper, wantUpper, -1) {
		note("maximum", sub.upper().words("below"), super.upper.words("below"))
	}
	if want := super.multipleOf; want != nil {
		multiple := func(s *subschema) bool {
			return s.multipleOf != nil && new(big.Rat).Quo(s.multipleOf, want).IsInt()
		}
		if !slices.ContainsFunc(sub, multiple) {
			was := ""
			for _, s := range sub {
				if s.multipleOf != nil && was == "" {
					was = s.multipleOf.RatString()
				}
			}
			note("multipleOf", was, want.RatString())
		}
	}
	return found
}

// implies reports whether b excludes all that want excludes; sign is as for stricter.
func implies(b, want *bound, sign int) bool {
	if b == nil || want == nil {
		return want == nil
	}
	c := b.at.Cmp(want.at) * sign
	return c > 0 || c == 0 && (b.exclusive || !want.exclusive)
}

// words is the bound as a number, with a word before it where it is exclusive; empty for none.
func (b *bound) words(exclusive string) string {
	if b == nil {
		return ""
	}
	text := b.at.RatString()
	if len(text) < 20 && !b.at.IsInt() {
		text = strings.TrimRight(b.at.FloatString(12), "0")
	}
	if b.exclusive {
		return exclusive + " " + text
	}
	return text
}

func (p *prover) lengths(sub conjunction, super *subschema) (found []gap) {
	length := sub.most(func(s *subschema) int { return s.minLength })
	found = p.atLeast("minLength", length, super.minLength, sub, super)
	length = sub.least(func(s *subschema) int { return s.maxLength })
	return append(found, p.atMost("maxLength", length, super.maxLength, sub, super)...)
}

// atLeast proves a keyword such as minLength, of which sub ensures has.
func (p *prover) atLeast(kind string, has, want int, sub conjunction, super *subschema) []gap {
	if has >= want {
		return nil
	}
	return []gap{unproved(kind, p.changed(orNothing(has, 0), strconv.Itoa(want)), sub, super)}
}

// atMost proves a keyword such as maxLength, of which sub ensures has; -1 is no limit.
func (p *prover) atMost(kind string, has, want int, sub conjunction, super *subschema) []gap {
	if want < 0 || has >= 0 && has <= want {
		return nil
	}
	return []gap{unproved(kind, p.changed(orNothing(has, -1), strconv.Itoa(want)), sub, super)}
}

func orNothing(n, nothing int) string {
	if n == nothing {
		return ""
	}
	return strconv.Itoa(n)
}
