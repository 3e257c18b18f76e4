package contract

import (
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strings"
)

// kinds are the kinds of values that a meet may have; what is not among them, it has none of.
func (p *prover) kinds(m meet, depth int) kinds {
	all := kinds(allKinds)
	for _, n := range m {
		if n.never {
			return 0
		}
		all &= n.kinds
		if n.multipleOf != nil && n.multipleOf.IsInt() {
			all &^= fractionKind
		}
		if n.finite {
			var some kinds
			for _, v := range n.enum {
				some |= kindsOf(v)
			}
			all &= some
		}
	}
	if lower, upper := m.lower(), m.upper(); lower != nil && upper != nil {
		if c := lower.at.Cmp(upper.at); c > 0 || c == 0 && (lower.open || upper.open) {
			all &^= numberKinds
		}
	}
	if longest := m.least(func(n *node) int { return n.maxLength }); longest >= 0 && m.most(func(n *node) int { return n.minLength }) > longest {
		all &^= stringKind
	}
	if all&arrayKind != 0 {
		if longest := p.longest(m, depth); longest >= 0 && m.most(func(n *node) int { return n.minItems }) > longest {
			all &^= arrayKind
		}
	}
	if all&objectKind != 0 && depth < 4 {
		for _, name := range m.required() {
			if p.empty(m.member(name), depth+1) {
				all &^= objectKind
				break
			}
		}
	}
	return all
}

func kindsOf(v any) kinds {
	if n, ok := v.(json.Number); ok {
		if r, ok := new(big.Rat).SetString(string(n)); ok && r.IsInt() {
			return wholeKind
		}
		return fractionKind
	}
	return kindNames[kindOf(v)]
}

// empty reports whether a meet surely has no value. depth bounds how far it looks into objects and alternatives.
func (p *prover) empty(m meet, depth int) bool {
	if *p.budget--; *p.budget < 0 || depth > 4 {
		return false
	}
	m = flatten(m)
	if p.kinds(m, depth) == 0 {
		return true
	}
	for _, n := range m {
		if n.finite {
			for _, v := range n.enum {
				if p.possible(m, v) {
					return false
				}
			}
			return true
		}
		if n.not != nil && n.not.any() {
			return true
		}
	}
	alternatives := m.alternatives()
	for _, a := range alternatives {
		if !p.empty(a, depth+1) {
			return false
		}
	}
	return alternatives != nil
}

// most is the strictest of the minima, least that of the maxima (-1: none).
func (m meet) most(of func(*node) int) (out int) {
	for _, n := range m {
		out = max(out, of(n))
	}
	return out
}

func (m meet) least(of func(*node) int) int {
	out := -1
	for _, n := range m {
		if v := of(n); v >= 0 && (out < 0 || v < out) {
			out = v
		}
	}
	return out
}

func (m meet) lower() (out *limit) {
	for _, n := range m {
		if n.lower != nil && (out == nil || stricter(n.lower, out, 1)) {
			out = n.lower
		}
	}
	return out
}

func (m meet) upper() (out *limit) {
	for _, n := range m {
		if n.upper != nil && (out == nil || stricter(n.upper, out, -1)) {
			out = n.upper
		}
	}
	return out
}

func wholeBelow(r *big.Rat) *big.Int { // Div rounds down for a positive denominator
	return new(big.Int).Div(r.Num(), r.Denom())
}

func wholeAbove(r *big.Rat) *big.Int {
	return new(big.Int).Neg(wholeBelow(new(big.Rat).Neg(r)))
}

// rounded is a limit for whole numbers: closed, and whole itself.
func rounded(l *limit, up bool) *limit {
	if l == nil {
		return nil
	}
	var i *big.Int
	one := big.NewInt(1)
	if up {
		if i = wholeAbove(l.at); l.open && l.at.IsInt() {
			i.Add(i, one)
		}
	} else if i = wholeBelow(l.at); l.open && l.at.IsInt() {
		i.Sub(i, one)
	}
	return &limit{at: new(big.Rat).SetInt(i)}
}

func (p *prover) numbers(sub meet, super *node, common kinds) (found []gap) {
	note := func(kind, sub_, super_ string) {
		found = append(found, gap{kind: kind, what: p.changed(sub_, super_), sub: sub, super: super})
	}
	lower, upper, askedLower, askedUpper := sub.lower(), sub.upper(), super.lower, super.upper
	if common&fractionKind == 0 {
		lower, upper, askedLower, askedUpper = rounded(lower, true), rounded(upper, false), rounded(askedLower, true), rounded(askedUpper, false)
	}
	if askedLower != nil && (lower == nil || stricter(askedLower, lower, 1)) {
		note("minimum", sub.lower().words("above"), super.lower.words("above"))
	}
	if askedUpper != nil && (upper == nil || stricter(askedUpper, upper, -1)) {
		note("maximum", sub.upper().words("below"), super.upper.words("below"))
	}
	if asked := super.multipleOf; asked != nil {
		fits := func(of *big.Rat) bool { return new(big.Rat).Quo(of, asked).IsInt() }
		ok := common&fractionKind == 0 && fits(big.NewRat(1, 1))
		for _, n := range sub {
			ok = ok || n.multipleOf != nil && fits(n.multipleOf)
		}
		if !ok {
			word := sub.first(func(n *node) string {
				if n.multipleOf == nil {
					return ""
				}
				return n.multipleOf.RatString()
			})
			note("multipleOf", word, asked.RatString())
		}
	}
	return found
}

func (l *limit) words(open string) string {
	if l == nil {
		return ""
	}
	text := l.at.RatString()
	if len(text) < 20 && !l.at.IsInt() {
		text = strings.TrimRight(l.at.FloatString(12), "0")
	}
	if l.open {
		return open + " " + text
	}
	return text
}

func (p *prover) strings(sub meet, super *node) (found []gap) {
	note := func(kind, what string) {
		found = append(found, gap{kind: kind, what: what, sub: sub, super: super})
	}
	if has := sub.most(func(n *node) int { return n.minLength }); has < super.minLength {
		note("minLength", p.changed(sizeWords(has, 0), fmt.Sprint(super.minLength)))
	}
	if has := sub.least(func(n *node) int { return n.maxLength }); super.maxLength >= 0 && (has < 0 || has > super.maxLength) {
		note("maxLength", p.changed(sizeWords(has, -1), fmt.Sprint(super.maxLength)))
	}
	if super.content != "" && !slices.ContainsFunc(sub, func(n *node) bool { return n.content == super.content }) {
		note("contentEncoding", p.changed(sub.first(func(n *node) string { return n.content }), super.content))
	}
	if super.pattern != "" {
		for _, n := range sub {
			if n.pattern == super.pattern {
				return found
			}
		}
		note("pattern", p.changed(sub.first(func(n *node) string { return n.pattern }), super.pattern))
	}
	return found
}

func sizeWords(n, none int) string {
	if n == none {
		return ""
	}
	return fmt.Sprint(n)
}
