package compat

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/catalogd/catalogd/contract"
)

// maxSamples bounds the values that are tried for one direction.
const maxSamples = 4000

// findWitnesses looks for a value for each gap that sub accepts and super refuses because of it.
func findWitnesses(gaps []gap, sub, super *document) {
	steps := maxSteps
	s := &sampler{prover: &prover{steps: &steps}, left: maxSamples, memo: map[string]any{}}
	for i := range gaps {
		g := &gaps[i]
		for _, v := range s.around(g.container(), conjunction{sub.root}, conjunction{super.root}, s.at(g), 0) {
			if s.left--; s.left < 0 {
				return
			}
			if refusals, decided := sub.check(v); !decided || refusals != nil {
				continue
			}
			if refusals, decided := super.check(v); decided && g.explains(refusals) {
				g.witness = json.RawMessage(canonical(v))
				break
			}
		}
	}
}

// container is the path to the value that a sample for g stands for: the object where a key is required.
func (g *gap) container() []step {
	if g.kind == "required" && len(g.path) > 0 {
		return g.path[:len(g.path)-1]
	}
	return g.path
}

// at makes up values for the place of g that sub may accept there, and super may refuse.
func (s *sampler) at(g *gap) []any {
	values := s.candidates(g.sub, g.super, 0)
	if g.kind != "required" {
		return values
	}
	name := g.path[len(g.path)-1].key
	var out []any
	for _, v := range values {
		if m, ok := v.(map[string]any); ok {
			m = maps.Clone(m)
			delete(m, name)
			out = append(out, m)
		}
	}
	return out
}

// explains reports whether a value is refused because of g, and not only for something else that is wrong
// with it.
func (g *gap) explains(refusals []contract.Violation) bool {
	at := ""
	for _, s := range g.path {
		at += "/" + escape(s.token())
	}
	return slices.ContainsFunc(refusals, func(v contract.Violation) bool {
		missing := v.Got == "nothing"
		switch {
		case g.kind == "required":
			return missing && v.Pointer == at
		case missing:
			return strings.HasPrefix(v.Pointer, at+"/")
		}
		return strings.HasPrefix(v.Pointer+"/", at+"/") || strings.HasPrefix(at+"/", v.Pointer+"/")
	})
}

// unknownKey is a key that no schema is likely to declare.
const unknownKey = "a key of no schema"

// token is the step as a key, or as an index in digits; of any key, an example.
func (s step) token() string {
	switch {
	case s.array:
		return strconv.Itoa(s.index)
	case s.any && s.key != "":
		if name := matchFor(s.key); name != "" {
			return name
		}
		return unknownKey
	case s.any:
		return unknownKey
	}
	return s.key
}

// around builds values of sub that have one of the given values at a path, and are as super likes them
// elsewhere.
func (s *sampler) around(path []step, sub, super conjunction, values []any, depth int) []any {
	if len(path) == 0 {
		return values
	}
	const most = 400
	var out []any
	other := s.choices(super)[0]
	for _, one := range s.choices(sub) {
		if step := path[0]; step.array {
			for _, v := range s.around(path[1:], one.item(step.index), other.item(step.index), values, depth+1) {
				list := s.array(one, other, max(step.index+1, one.minItems()), depth)
				if step.index < len(list) {
					list[step.index] = v
				}
				out = append(out, list)
			}
			continue
		}
		token := path[0].token()
		inner := s.around(path[1:], one.member(token), other.member(token), values, depth+1)
		for _, object := range []map[string]any{s.object(one, other, depth), s.object(one, nil, depth)} {
			for _, v := range inner {
				m := maps.Clone(object)
				m[token] = v
				out = append(out, m)
			}
		}
	}
	return out[:min(len(out), most)]
}
