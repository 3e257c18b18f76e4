package contract

import (
	"encoding/json"
	"errors"
	"maps"
	"math/big"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// witness looks for a value for every gap that one document accepts and the other refuses. A side with a remainder can't
// be asked what it accepts, since CUE has a say in it; that its schema refuses is enough for it to refuse.
func (c *comparer) witness(old, new *document, oldAlone, newAlone bool) {
	if oldAlone {
		witnesses(c.forward, old, new)
	}
	if newAlone {
		witnesses(c.backward, new, old)
	}
}

// witnesses fills in what sub accepts and super refuses because of each gap.
func witnesses(gaps []gap, sub, super *document) {
	steps := maxSteps
	s := &sampler{prover: &prover{budget: &steps}, budget: maxSamples, samples: map[string]any{}}
	for i := range gaps {
		g := &gaps[i]
		var any json.RawMessage
		for _, v := range s.whole(g, sub, super) {
			if s.budget--; s.budget < 0 {
				return
			}
			accepted, sure := sub.check(v)
			if !sure || accepted != nil {
				continue
			}
			refused, sure := super.check(v)
			if !sure || refused == nil {
				continue
			}
			if about(refused, g) {
				g.witness = appendJSON(nil, v)
				break
			}
			if any == nil {
				any = appendJSON(nil, v)
			}
		}
		if g.witness == nil && len(gaps) == 1 {
			g.witness = any // the only reason there is
		}
	}
}

const (
	// maxSamples bounds the values that one direction is asked about.
	maxSamples = 4000
	// maxDeep bounds how deep a value that is made up goes.
	maxDeep = 6
)

// about reports whether a refusal is for what a gap is about, not for something else that is wrong with the value too.
func about(err error, g *gap) bool {
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		return false
	}
	path := make([]string, len(g.path))
	for i, s := range g.path {
		path[i] = s.token()
	}
	var walk func(*jsonschema.ValidationError) bool
	walk = func(e *jsonschema.ValidationError) bool {
		if slices.ContainsFunc(e.Causes, walk) {
			return true
		}
		at := e.InstanceLocation
		switch k := e.ErrorKind.(type) {
		case *kind.Required:
			return g.kind == "required" && len(path) == len(at)+1 && slices.Equal(path[:len(at)], at) && slices.Contains(k.Missing, path[len(at)])
		case *kind.AdditionalProperties:
			return len(path) > len(at) && slices.Equal(path[:len(at)], at) && slices.Contains(k.Properties, path[len(at)])
		}
		if len(e.Causes) > 0 && len(at) < len(path) {
			return false
		}
		shared := min(len(at), len(path))
		return g.kind != "required" && slices.Equal(at[:shared], path[:shared])
	}
	return walk(invalid)
}

// freshKey is a key that no schema is likely to declare.
const freshKey = "a key of no schema"

func (s step) token() string {
	switch {
	case s.array:
		return text(json.Number(big.NewInt(int64(s.index)).String()))
	case s.any:
		if s.key != "" {
			if name := matching(s.key); name != "" {
				return name
			}
		}
		return freshKey
	}
	return s.key
}

// sampler makes up values: a few for every schema, at its borders and just outside.
type sampler struct {
	*prover
	budget  int // of values
	samples map[string]any
}

// whole makes up values that differ at the gap's place from what both documents like.
func (s *sampler) whole(g *gap, sub, super *document) (out []any) {
	leaf := g.path
	if g.kind == "required" && len(leaf) > 0 {
		leaf = leaf[:len(leaf)-1]
	}
	var leaves []any
	if g.known {
		leaves = append(leaves, g.value)
	}
	mine := g.sub
	leaves = append(leaves, s.borders(mine, g.super, 0)...)
	if g.kind == "required" {
		name := g.path[len(g.path)-1].key
		for _, v := range leaves {
			if m, ok := v.(map[string]any); ok {
				m = maps.Clone(m)
				delete(m, name)
				out = append(out, m)
			}
		}
		leaves = out
	}
	return s.around(leaf, meet{sub.root}, meet{super.root}, leaves, 0)
}

// around builds the values that have leaves at a place below values of sub.
func (s *sampler) around(path []step, sub, super meet, leaves []any, depth int) []any {
	if len(path) == 0 {
		return leaves
	}
	var out []any
	for _, one := range s.resolved(sub) {
		theirs := meet{}
		for _, other := range s.resolved(super) {
			theirs = other
			if !s.empty(slices.Concat(one, other), 0) {
				break
			}
		}
		step, token := path[0], path[0].token()
		if step.array {
			inner := s.around(path[1:], one.item(step.index), theirs.item(step.index), leaves, depth+1)
			for _, v := range inner {
				out = append(out, s.array(one, theirs, max(step.index+1, one.most(func(n *node) int { return n.minItems })), step.index, v, depth))
			}
			continue
		}
		inner := s.around(path[1:], one.member(token), theirs.member(token), leaves, depth+1)
		for _, base := range []map[string]any{s.object(one, theirs, depth), s.object(one, nil, depth)} {
			for _, v := range inner {
				m := maps.Clone(base)
				m[token] = v
				out = append(out, m)
			}
		}
	}
	return out[:min(len(out), 400)]
}

// resolved are the ways to choose alternatives, a few of them.
func (s *sampler) resolved(m meet) []meet {
	out := []meet{flatten(m)}
	for range 3 {
		var next []meet
		for _, m := range out {
			alternatives := m.alternatives()
			if alternatives == nil {
				next = append(next, m)
			}
			for _, a := range alternatives {
				if a = flatten(a); !s.empty(a, 0) {
					next = append(next, a)
				}
			}
		}
		out = next[:min(len(next), 8)]
	}
	return out
}

func (s *sampler) array(one, theirs meet, length, index int, v any, depth int) any {
	list := make([]any, min(length, 64))
	for i := range list {
		list[i] = s.sample(one.item(i), theirs.item(i), depth+1)
	}
	if index >= 0 && index < len(list) {
		list[index] = v
	}
	return list
}

// object is one with the keys that both ask for.
func (s *sampler) object(one, theirs meet, depth int) map[string]any {
	out := map[string]any{}
	for _, name := range slices.Concat(one.required(), theirs.required()) {
		if _, ok := out[name]; !ok && len(out) < 100 {
			out[name] = s.sample(one.member(name), theirs.member(name), depth+1)
		}
	}
	return out
}

// sample is a value that both accept; failing that one that the first accepts; failing that any. It is made up once for
// a pair.
func (s *sampler) sample(one, theirs meet, depth int) any {
	both := slices.Concat(one, theirs)
	if !slices.ContainsFunc(both, func(n *node) bool { return !n.any() }) {
		return "a"
	}
	key := one.key() + ">" + theirs.key()
	if v, ok := s.samples[key]; ok {
		return v
	}
	candidates := s.borders(both, nil, depth)
	for _, m := range []meet{both, one} {
		for _, v := range candidates {
			if s.fits(m, v) {
				s.samples[key] = v
				return v
			}
		}
	}
	return nil
}

func (s *sampler) fits(m meet, v any) bool {
	for _, n := range m {
		if n.synthetic {
			if n.kinds&kindsOf(v) == 0 {
				return false
			}
			continue
		}
		if accepted, _ := n.accepts(v); !accepted {
			return false
		}
	}
	return true
}

// borders are values worth a try: examples and members of enums, lengths and numbers at and beside every bound, one
// value of every kind, and objects and arrays of such.
func (s *sampler) borders(m meet, beside *node, depth int) (out []any) {
	if s.budget--; s.budget < 0 {
		return nil
	}
	all := flatten(m)
	if beside != nil {
		all = flatten(append(slices.Clone(all), beside))
	}
	for i := 0; i < len(all) && len(all) < 40; i++ { // alternatives too, whether they are chosen or not
		for _, c := range slices.Concat(all[i].anyOf, all[i].oneOf, []*node{all[i].not, all[i].when, all[i].then, all[i].otherwise}) {
			if c != nil && !slices.Contains(all, c) {
				all = append(all, c)
			}
		}
	}
	for _, n := range all {
		out = append(out, n.example...)
		out = append(out, n.enum[:min(len(n.enum), 50)]...)
		out = append(out, n.numbers()...)
		out = append(out, n.strings()...)
	}
	out = append(out, "a", json.Number("1"), true, nil, json.Number("0.5"), []any{}, map[string]any{}, "", json.Number("0"), json.Number("-1"), json.Number("1000000007"), false, "no such value")
	if depth >= maxDeep {
		return out
	}
	if depth > 0 && !slices.ContainsFunc(all, func(n *node) bool { return !n.any() }) {
		return out
	}
	for _, one := range s.resolved(m) {
		if s.kinds(one, 0)&objectKind != 0 {
			out = append(out, s.objectsOf(one, beside, depth)...)
		}
		if s.kinds(one, 0)&arrayKind != 0 {
			out = append(out, s.arraysOf(one, all, depth)...)
		}
	}
	return out
}

func (s *sampler) objectsOf(one meet, beside *node, depth int) (out []any) {
	var theirs meet
	if beside != nil {
		theirs = flatten(meet{beside})
	}
	least := s.object(one, theirs, depth)
	bare := s.object(one, nil, depth)
	out = append(out, least, bare)
	full, extra := maps.Clone(least), maps.Clone(least)
	for _, n := range slices.Concat(one, theirs) {
		for name := range n.properties {
			if _, ok := full[name]; !ok && len(full) < 60 {
				full[name] = s.sample(one.member(name), theirs.member(name), depth+1)
				alone := maps.Clone(least)
				alone[name] = full[name]
				out = append(out, alone)
			}
		}
	}
	extra[freshKey] = s.sample(one.unnamed(""), theirs.unnamed(""), depth+1)
	return append(out, full, extra)
}

func (s *sampler) arraysOf(one, all meet, depth int) (out []any) {
	lengths := []int{one.most(func(n *node) int { return n.minItems }), 1, 2}
	for _, n := range all {
		for _, l := range []int{n.minItems, n.minItems - 1, n.maxItems, n.maxItems + 1, len(n.prefix), n.maxContains + 1} {
			if l > 0 && l <= 64 && !slices.Contains(lengths, l) {
				lengths = append(lengths, l)
			}
		}
	}
	for _, l := range lengths {
		list := s.array(one, nil, l, -1, nil, depth)
		out = append(out, list, distinct(list.([]any)))
	}
	return out
}

// distinct makes the strings and numbers of a list differ.
func distinct(list []any) any {
	out := slices.Clone(list)
	for i, v := range out {
		switch v := v.(type) {
		case string:
			out[i] = v + strings.Repeat("a", i)
		case json.Number:
			if r, ok := new(big.Rat).SetString(string(v)); ok && r.IsInt() {
				out[i] = json.Number(new(big.Int).Add(r.Num(), big.NewInt(int64(i))).String())
			}
		}
	}
	return out
}

func (n *node) numbers() (out []any) {
	for _, l := range []*limit{n.lower, n.upper} {
		if l == nil {
			continue
		}
		for _, away := range []*big.Rat{new(big.Rat), big.NewRat(1, 1), big.NewRat(-1, 1), big.NewRat(1, 2), big.NewRat(-1, 2)} {
			if v, ok := number(new(big.Rat).Add(l.at, away)); ok {
				out = append(out, v)
			}
		}
		for _, r := range []*big.Int{wholeAbove(l.at), wholeBelow(l.at)} {
			if v, ok := number(new(big.Rat).SetInt(r)); ok {
				out = append(out, v)
			}
		}
	}
	if n.multipleOf != nil {
		for _, times := range []int64{1, 2, 3, 5} {
			if v, ok := number(new(big.Rat).Mul(n.multipleOf, big.NewRat(times, 1))); ok {
				out = append(out, v)
			}
		}
	}
	return out
}

// number writes a rational as JSON, if that is short and exact.
func number(r *big.Rat) (json.Number, bool) {
	s := r.RatString()
	if !r.IsInt() {
		places, exact := r.FloatPrec()
		if s = r.FloatString(places); !exact {
			return "", false
		}
	}
	return json.Number(s), len(s) < 100
}

// samples of the formats that the validator knows.
var formatSamples = map[string]string{
	"date-time": "2024-01-02T03:04:05Z", "date": "2024-01-02", "time": "03:04:05Z", "duration": "P1D", "email": "a@example.com",
	"hostname": "example.com", "ipv4": "192.0.2.1", "ipv6": "2001:db8::1", "uri": "https://example.com/a", "uri-reference": "/a",
	"iri": "https://example.com/a", "iri-reference": "/a", "uuid": "123e4567-e89b-42d3-a456-426614174000", "json-pointer": "/a",
	"relative-json-pointer": "1/a", "uri-template": "https://example.com/{a}", "regex": "^a$", "semver": "1.2.3", "period": "P1D",
}

func (n *node) strings() (out []any) {
	for _, l := range []int{n.minLength, n.minLength - 1, n.maxLength, n.maxLength + 1} {
		if l > 0 && l <= 5000 {
			out = append(out, strings.Repeat("a", l))
		}
	}
	if s := formatSamples[n.format]; s != "" {
		out = append(out, s)
	}
	if n.pattern != "" {
		if s := matching(n.pattern); s != "" {
			out = append(out, s, s+"\n", s+s)
		}
	}
	return out
}

// matching is a short string that a pattern probably matches; empty where none was found. It is a suggestion: who uses
// it asks the validator.
func matching(pattern string) string {
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return ""
	}
	var b strings.Builder
	spell(&b, re.Simplify())
	return b.String()
}

func spell(b *strings.Builder, re *syntax.Regexp) {
	if b.Len() > 200 {
		return
	}
	switch re.Op {
	case syntax.OpLiteral:
		b.WriteString(string(re.Rune))
	case syntax.OpCharClass:
		if len(re.Rune) > 0 {
			b.WriteRune(classRune(re.Rune))
		}
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		b.WriteByte('a')
	case syntax.OpConcat, syntax.OpCapture, syntax.OpPlus:
		for _, sub := range re.Sub {
			spell(b, sub)
		}
	case syntax.OpAlternate:
		spell(b, re.Sub[0])
	case syntax.OpRepeat:
		for range re.Min {
			spell(b, re.Sub[0])
		}
	}
}

// classRune is a rune of a class: a plain letter or digit where it has one.
func classRune(ranges []rune) rune {
	for _, want := range "a1A-_" {
		for i := 0; i+1 < len(ranges); i += 2 {
			if ranges[i] <= want && want <= ranges[i+1] {
				return want
			}
		}
	}
	return ranges[0]
}
