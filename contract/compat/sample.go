package compat

import (
	"encoding/json"
	"maps"
	"math/big"
	"slices"
	"strings"

	"github.com/catalogd/catalogd/contract/internal/jsontype"
)

// maxSampleDepth bounds how deep the values are that a sampler makes up.
const maxSampleDepth = 6

// sampler makes up values for subschemas: a few for each, at its bounds and just outside. They are guesses,
// which only a validator's answer turns into a witness.
type sampler struct {
	*prover
	left int            // values that may still be made up or tried
	memo map[string]any // what sample returned
}

// choices are the conjunctions that choosing alternatives leads to, the first few of them, at least one.
func (s *sampler) choices(c conjunction) []conjunction {
	const most, rounds = 8, 3
	out := []conjunction{flatten(c)}
	for range rounds {
		var next []conjunction
		for _, c := range out {
			alternatives := c.alternatives()
			if alternatives == nil {
				next = append(next, c)
			}
			for _, a := range alternatives {
				if a = flatten(a); !s.empty(a, 0) {
					next = append(next, a)
				}
			}
		}
		if len(next) == 0 {
			break
		}
		out = next[:min(len(next), most)]
	}
	return out
}

// sample is a value that both conjunctions accept; nil where none was found.
func (s *sampler) sample(one, other conjunction, depth int) any {
	both := slices.Concat(one, other)
	if both.acceptsAll() {
		return "a"
	}
	key := one.key() + ">" + other.key()
	if v, ok := s.memo[key]; ok {
		return v
	}
	for _, v := range s.candidates(both, nil, depth) {
		if s.fits(both, v) {
			s.memo[key] = v
			return v
		}
	}
	return nil
}

func (c conjunction) acceptsAll() bool {
	return !slices.ContainsFunc(c, func(s *subschema) bool { return !s.acceptsAll() })
}

func (s *sampler) fits(c conjunction, v any) bool {
	return !slices.ContainsFunc(c, func(s *subschema) bool {
		if s.typesOnly {
			return s.types&jsontype.Of(v) == 0
		}
		valid, _ := s.accepts(v)
		return !valid
	})
}

// candidates are values worth a try: members of enums, lengths and numbers at and beside every bound, one
// value of every type, and objects and arrays of such. beside, which may be nil, is another subschema whose
// bounds are of interest.
func (s *sampler) candidates(c conjunction, beside *subschema, depth int) (out []any) {
	if s.left--; s.left < 0 {
		return nil
	}
	const mostSubschemas, mostListed = 40, 50
	near := flatten(c)
	if beside != nil {
		near = flatten(append(slices.Clone(near), beside))
	}
	for i := 0; i < len(near) && len(near) < mostSubschemas; i++ { // whether alternatives and conditions hold or not
		for _, n := range near[i].inPlace() {
			if !slices.Contains(near, n) {
				near = append(near, n)
			}
		}
	}
	for _, n := range near {
		out = append(out, n.enum[:min(len(n.enum), mostListed)]...)
		out = append(out, n.numberSamples()...)
		out = append(out, n.textSamples()...)
	}
	out = append(out, "a", json.Number("1"), true, nil, json.Number("0.5"), []any{}, map[string]any{}, "",
		json.Number("0"), json.Number("-1"), json.Number("1000000007"), false, "no such value")
	if depth >= maxSampleDepth || depth > 0 && near.acceptsAll() {
		return out
	}
	for _, one := range s.choices(c) {
		types := s.types(one, 0)
		if types&jsontype.Object != 0 {
			out = append(out, s.objects(one, beside, depth)...)
		}
		if types&jsontype.Array != 0 {
			for _, length := range lengths(one, near) {
				out = append(out, s.array(one, nil, length, depth))
			}
		}
	}
	return out
}

// object has the keys that either conjunction requires.
func (s *sampler) object(one, other conjunction, depth int) map[string]any {
	const most = 100
	out := map[string]any{}
	for _, name := range slices.Concat(one.required(), other.required()) {
		if _, ok := out[name]; !ok && len(out) < most {
			out[name] = s.sample(one.member(name), other.member(name), depth+1)
		}
	}
	return out
}

// objects are those with the required keys, with one property more, with all properties, and with a key that
// nobody declares.
func (s *sampler) objects(one conjunction, beside *subschema, depth int) (out []any) {
	const most = 60
	var other conjunction
	if beside != nil {
		other = flatten(conjunction{beside})
	}
	least := s.object(one, other, depth)
	out = append(out, least, s.object(one, nil, depth))
	full, extra := maps.Clone(least), maps.Clone(least)
	for _, n := range slices.Concat(one, other) {
		for name := range n.properties {
			if _, ok := full[name]; !ok && len(full) < most {
				full[name] = s.sample(one.member(name), other.member(name), depth+1)
				more := maps.Clone(least)
				more[name] = full[name]
				out = append(out, more)
			}
		}
	}
	extra[unknownKey] = s.sample(one.unmatched(), other.unmatched(), depth+1)
	return append(out, full, extra)
}

const maxLength = 64

func (s *sampler) array(one, other conjunction, length, depth int) []any {
	list := make([]any, min(length, maxLength))
	for i := range list {
		list[i] = s.sample(one.item(i), other.item(i), depth+1)
	}
	return list
}

// lengths are the lengths of arrays worth a try.
func lengths(one, near conjunction) []int {
	out := []int{one.minItems(), 1, 2}
	for _, n := range near {
		for _, l := range []int{n.minItems, n.minItems - 1, n.maxItems, n.maxItems + 1, len(n.prefix)} {
			if l > 0 && l <= maxLength && !slices.Contains(out, l) {
				out = append(out, l)
			}
		}
	}
	return out
}

func (s *subschema) numberSamples() (out []any) {
	add := func(r *big.Rat) {
		places, exact := r.FloatPrec()
		if text := r.FloatString(places); exact && len(text) < 100 {
			out = append(out, json.Number(text))
		}
	}
	for _, b := range []*bound{s.lower, s.upper} {
		if b == nil {
			continue
		}
		for _, away := range []*big.Rat{new(big.Rat), big.NewRat(1, 1), big.NewRat(-1, 1), big.NewRat(1, 2), big.NewRat(-1, 2)} {
			add(new(big.Rat).Add(b.at, away))
		}
		add(new(big.Rat).SetInt(ceiling(b.at)))
		add(new(big.Rat).SetInt(floor(b.at)))
	}
	if s.multipleOf != nil {
		add(s.multipleOf)
	}
	return out
}

// formatSamples are values of the formats that a validator asserts.
var formatSamples = map[string]string{
	"date-time": "2024-01-02T03:04:05Z", "date": "2024-01-02", "time": "03:04:05Z", "duration": "P1D", "email": "a@example.com",
	"hostname": "example.com", "ipv4": "192.0.2.1", "ipv6": "2001:db8::1", "uri": "https://example.com/a", "uri-reference": "/a",
	"iri": "https://example.com/a", "iri-reference": "/a", "uuid": "123e4567-e89b-42d3-a456-426614174000", "json-pointer": "/a",
	"relative-json-pointer": "1/a", "uri-template": "https://example.com/{a}", "regex": "^a$", "semver": "1.2.3", "period": "P1D",
}

func (s *subschema) textSamples() (out []any) {
	const most = 5000
	for _, l := range []int{s.minLength, s.minLength - 1, s.maxLength, s.maxLength + 1} {
		if l > 0 && l <= most {
			out = append(out, strings.Repeat("a", l))
		}
	}
	if v := formatSamples[s.equal["format"]]; v != "" {
		out = append(out, v)
	}
	if pattern := s.equal["pattern"]; pattern != "" {
		if v := matchFor(pattern); v != "" {
			out = append(out, v, v+"\n", v+v)
		}
	}
	return out
}
