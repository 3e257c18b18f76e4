package derive

import (
	"math/big"
	"regexp"
	"slices"
	"strings"
)

// witnesses returns values at the limits of what n accepts of scalars, and one of another type.
func (n *node) witnesses() (out []witness) {
	if len(n.anyOf) > 0 {
		for _, a := range n.anyOf {
			if raw, ok := a.sample(0); ok {
				out = append(out, witness{raw, true})
			}
		}
		return append(out, n.foreign()...)
	}
	if len(n.also) > 0 || len(n.not) > 0 || len(n.contains) > 0 || n.unique || n.multipleOf != nil {
		return n.foreign()
	}
	switch {
	case len(n.enum) > 0:
		out = append(out, witness{n.enum[0], true}, witness{n.enum[len(n.enum)-1], true})
		if slices.Equal(n.types, []string{"string"}) {
			out = append(out, witness{jsonRaw(`"no such value"`), slices.ContainsFunc(n.enum, func(e jsonRaw) bool { return string(e) == `"no such value"` })})
		}
		return append(out, n.foreign()...)
	case len(n.types) != 1:
		for _, t := range n.types {
			out = append(out, witness{plainOf[t], true})
		}
		return append(out, n.foreign()...)
	}
	switch n.types[0] {
	case "integer", "number":
		out = n.numbers()
	case "string":
		out = n.texts()
	case "array":
		out = n.lists()
	default:
		if raw, ok := n.sample(0); ok {
			out = append(out, witness{raw, true})
		}
	}
	return append(out, n.foreign()...)
}

// plainOf has one value of each type.
var plainOf = map[string]jsonRaw{
	"null": jsonRaw("null"), "boolean": jsonRaw("true"), "integer": jsonRaw("3"), "number": jsonRaw("2.5"), "string": jsonRaw(`"text"`),
	"array": jsonRaw("[]"), "object": jsonRaw("{}"),
}

// foreign returns a value of a type that n does not accept.
func (n *node) foreign() []witness {
	kinds := n.kindsBelow()
	if len(kinds) == 0 {
		return nil
	}
	for _, t := range []string{"string", "boolean", "object"} {
		if !slices.Contains(kinds, t) {
			return []witness{{plainOf[t], false}}
		}
	}
	return nil
}

func (n *node) kindsBelow() (kinds []string) {
	if len(n.anyOf) == 0 {
		return n.types
	}
	for _, a := range n.anyOf {
		below := a.kindsBelow()
		if a.ref != nil || len(below) == 0 {
			return nil
		}
		kinds = append(kinds, below...)
	}
	return kinds
}

// numbers returns the bounds of n and values just outside them.
func (n *node) numbers() (out []witness) {
	one := big.NewRat(1, 1)
	for _, limit := range []struct {
		raw   jsonRaw
		step  int64
		taken bool
	}{{n.minimum, -1, true}, {n.exclusiveMinimum, 1, false}, {n.maximum, 1, true}, {n.exclusiveMaximum, -1, false}} {
		r, ok := new(big.Rat).SetString(string(limit.raw))
		if limit.raw == nil || !ok || !r.IsInt() {
			continue
		}
		beyond := new(big.Rat).Add(r, new(big.Rat).Mul(one, big.NewRat(limit.step, 1)))
		at, next := jsonRaw(r.Num().String()), jsonRaw(beyond.Num().String())
		out = append(out, witness{at, limit.taken && n.within(at)})
		if limit.taken {
			out = append(out, witness{next, false})
		} else if n.within(next) {
			out = append(out, witness{next, true})
		}
	}
	if len(out) == 0 {
		if raw, ok := n.sample(0); ok {
			out = append(out, witness{raw, true})
		}
	}
	if n.types[0] == "integer" {
		out = append(out, witness{jsonRaw("0.5"), false})
	}
	return out
}

// texts returns strings of the limiting lengths of n, or one that its patterns match.
func (n *node) texts() (out []witness) {
	if len(n.patterns) > 0 || n.format != "" {
		if raw, ok := n.sample(0); ok {
			out = append(out, witness{raw, true})
		}
		if len(n.patterns) == 1 {
			if re, err := regexp.Compile(n.patterns[0]); err == nil && !re.MatchString("\x01") {
				out = append(out, witness{quote("\x01"), false})
			}
		}
		return out
	}
	const longest = 256
	if n.minLength != nil && *n.minLength > 0 && *n.minLength < longest {
		out = append(out, witness{quote(strings.Repeat("é", int(*n.minLength)-1)), false})
	}
	if n.maxLength != nil && *n.maxLength < longest {
		out = append(out, witness{quote(strings.Repeat("é", int(*n.maxLength)+1)), false})
	}
	if raw, ok := n.sample(0); ok {
		out = append(out, witness{raw, true})
	}
	return out
}

// lists returns lists of lengths that n accepts and refuses.
func (n *node) lists() (out []witness) {
	raw, ok := n.sample(0)
	if !ok {
		return nil
	}
	out = append(out, witness{raw, true})
	if n.minItems != nil && *n.minItems > 0 {
		out = append(out, witness{jsonRaw("[]"), false})
	}
	return out
}

// sample returns a value that n accepts; false if none is found easily.
func (n *node) sample(depth int) (jsonRaw, bool) {
	const deepest, longest = 4, 16
	if depth > deepest {
		return nil, false
	}
	switch {
	case n.ref != nil:
		if n.ref.node == nil {
			return nil, false
		}
		return n.ref.node.sample(depth + 1)
	case n.never || len(n.also) > 0 || len(n.contains) > 0 || n.multipleOf != nil || n.encoding != "":
		return nil, false
	case len(n.enum) > 0:
		return n.enum[0], true
	case len(n.anyOf) > 0:
		for _, a := range n.anyOf {
			if raw, ok := a.sample(depth + 1); ok {
				return raw, true
			}
		}
		return nil, false
	case len(n.types) == 0:
		return jsonRaw(`"text"`), len(n.not) == 0
	}
	var candidates []string
	switch n.types[0] {
	case "null", "boolean":
		return plainOf[n.types[0]], true
	case "string":
		candidates = []string{`"text"`, `"a"`, `""`, `"x"`, `"AB"`, `"A"`, `"b1"`, `"1"`, `"12"`, `"/a"`, `"x-a"`, `"a@b.c"`, `"https://a.b"`, `"2026-07-28T12:00:00Z"`}
		if n.minLength != nil && *n.minLength < 256 {
			candidates = append(candidates, string(quote(strings.Repeat("a", int(*n.minLength)))))
		}
	case "integer", "number":
		for _, limit := range []jsonRaw{n.minimum, n.maximum, n.exclusiveMinimum, n.exclusiveMaximum} {
			if r, ok := new(big.Rat).SetString(string(limit)); ok && limit != nil && r.IsInt() {
				one := big.NewInt(1)
				candidates = append(candidates, r.Num().String(), new(big.Int).Add(r.Num(), one).String(), new(big.Int).Sub(r.Num(), one).String())
			}
		}
		candidates = append(candidates, "3", "0")
		if n.types[0] == "number" {
			candidates = append(candidates, "2.5")
			if len(n.not) > 0 {
				candidates = []string{"2.5"}
			}
		}
	case "array":
		var items []string
		for _, p := range n.prefix {
			raw, ok := p.sample(depth + 1)
			if !ok {
				return nil, false
			}
			items = append(items, string(raw))
		}
		for n.minItems != nil && int64(len(items)) < *n.minItems {
			if n.noItems || n.unique || len(items) > longest {
				return nil, false
			}
			item := jsonRaw(`"text"`)
			if n.items != nil {
				var ok bool
				if item, ok = n.items.sample(depth + 1); !ok {
					return nil, false
				}
			}
			items = append(items, string(item))
		}
		return jsonRaw("[" + strings.Join(items, ",") + "]"), true
	case "object":
		return n.sampleObject(depth)
	}
	for _, c := range candidates {
		if n.scalarTakes(jsonRaw(c)) {
			return jsonRaw(c), true
		}
	}
	return nil, false
}

// scalarTakes reports whether n, including its excluded constants, accepts a constant.
func (n *node) scalarTakes(raw jsonRaw) bool {
	if n.format != "" && n.format != "date-time" {
		return false
	}
	for _, not := range n.not {
		if len(not.enum) == 0 && !slices.Equal(not.types, []string{"integer"}) || slices.ContainsFunc(not.enum, func(e jsonRaw) bool { return string(e) == string(raw) }) {
			return false
		}
	}
	bare := *n
	bare.not, bare.format = nil, ""
	return bare.admits(raw)
}

// sampleObject returns an object with the required fields.
func (n *node) sampleObject(depth int) (jsonRaw, bool) {
	if len(n.guards) > 0 || n.minProperties != nil {
		return nil, false
	}
	fields, ok := n.sampleFields(depth)
	return jsonObject(fields), ok
}

// sampleFields returns values of the required fields.
func (n *node) sampleFields(depth int) (map[string]jsonRaw, bool) {
	fields := map[string]jsonRaw{}
	for _, p := range n.properties {
		if !p.required {
			continue
		}
		raw, ok := p.node.sample(depth + 1)
		if !ok {
			return nil, false
		}
		fields[p.name] = raw
	}
	return fields, true
}
