package contract

import (
	"fmt"
	"maps"
	"slices"
)

// required lists the keys that every object of a meet has.
func (m meet) required() (out []string) {
	for _, n := range m {
		for _, name := range n.required {
			if !slices.Contains(out, name) {
				out = append(out, name)
			}
		}
	}
	return out
}

// member is what a meet says of the value of a key.
func (m meet) member(name string) (out meet) {
	for _, n := range m {
		out = append(out, n.member(name)...)
	}
	return out
}

// unnamed is what a meet surely says of the values of keys that none of its properties declares: those that match
// pattern, or where that is empty those that match no pattern of any of its schemas.
func (m meet) unnamed(pattern string) (out meet) {
	for _, n := range m {
		switch p := n.patterns[pattern]; {
		case p != nil:
			out = append(out, p)
		case n.additional != nil && (pattern == "" || len(n.patterns) == 0):
			out = append(out, n.additional)
		}
	}
	return out
}

func (m meet) item(i int) (out meet) {
	for _, n := range m {
		if item := n.item(i); item != nil {
			out = append(out, item)
		}
	}
	return out
}

// longest is the most items that an array of a meet can have; -1 without an end.
func (p *prover) longest(m meet, depth int) int {
	out := m.least(func(n *node) int { return n.maxItems })
	for i := 0; i <= m.most(func(n *node) int { return len(n.prefix) }); i++ {
		if out >= 0 && i >= out {
			break
		}
		if slices.ContainsFunc(m.item(i), func(n *node) bool { return n.never }) {
			return i
		}
	}
	return out
}

func (p *prover) objects(sub meet, super *node) (found []gap) {
	note := func(kind, what string) {
		found = append(found, gap{kind: kind, what: what, sub: sub, super: super})
	}
	required := sub.required()
	for _, name := range super.required {
		if !slices.Contains(required, name) {
			found = append(found, gap{path: []step{{key: name}}, kind: "required", sub: sub, super: super,
				what: p.words("required now", "no longer required")})
		}
	}
	if has := max(len(required), sub.most(func(n *node) int { return n.minProps })); has < super.minProps {
		note("minProperties", p.changed(sizeWords(has, 0), fmt.Sprint(super.minProps)))
	}
	if has := sub.mostKeys(); super.maxProps >= 0 && (has < 0 || has > super.maxProps) {
		note("maxProperties", p.changed(sizeWords(has, -1), fmt.Sprint(super.maxProps)))
	}
	found = append(found, p.members(sub, super)...)
	if super.names != nil && !p.namesFit(sub, super.names) {
		note("propertyNames", "names that may not be allowed by the other")
	}
	for name, needs := range super.dependent {
		have := slices.Clone(required)
		for _, n := range sub {
			have = append(have, n.dependent[name]...)
		}
		if slices.ContainsFunc(needs, func(need string) bool { return !slices.Contains(have, need) }) && !p.empty(sub.member(name), 1) {
			note("dependentRequired", p.changed("", clip(name)+" needs "+enumerateNames(needs)))
		}
	}
	return found
}

// mostKeys is the most keys that an object of a meet can have; -1 without an end.
func (m meet) mostKeys() int {
	return m.least(func(n *node) int {
		if n.additional != nil && n.additional.never && len(n.patterns) == 0 {
			if n.maxProps >= 0 {
				return min(n.maxProps, len(n.properties))
			}
			return len(n.properties)
		}
		return n.maxProps
	})
}

// members proves for the value of every key: those that either side names, those of patterns, and all others.
func (p *prover) members(sub meet, super *node) (found []gap) {
	names, patterns := map[string]bool{}, map[string]bool{}
	for name := range super.properties {
		names[name] = true
	}
	for pattern := range super.patterns {
		patterns[pattern] = true
	}
	for _, n := range sub {
		for name := range n.properties {
			names[name] = true
		}
		for pattern := range n.patterns {
			patterns[pattern] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		for _, want := range super.member(name) {
			found = append(found, p.below(step{key: name}, sub.member(name), want)...)
		}
	}
	for _, pattern := range slices.Sorted(maps.Keys(patterns)) {
		want := super.patterns[pattern]
		if want == nil {
			want = super.additional
		}
		if want != nil {
			found = append(found, p.below(step{key: pattern, any: true}, sub.unnamed(pattern), want)...)
		}
	}
	if super.additional != nil {
		found = append(found, p.below(step{any: true}, sub.unnamed(""), super.additional)...)
	}
	return found
}

// namesFit proves that all keys of sub are names that want accepts.
func (p *prover) namesFit(sub meet, want *node) bool {
	var names []string
	known := false
	for _, n := range sub {
		if n.names != nil && p.holds(meet{n.names}, want) {
			return true
		}
		if n.additional != nil && n.additional.never && len(n.patterns) == 0 && !known {
			names, known = slices.Collect(maps.Keys(n.properties)), true
		}
	}
	return known && !slices.ContainsFunc(names, func(name string) bool {
		accepted, sure := want.accepts(name)
		return !accepted || !sure
	})
}

func (p *prover) arrays(sub meet, super *node) (found []gap) {
	note := func(kind, what string) {
		found = append(found, gap{kind: kind, what: what, sub: sub, super: super})
	}
	longest, shortest := p.longest(sub, 0), sub.most(func(n *node) int { return n.minItems })
	if shortest < super.minItems {
		note("minItems", p.changed(sizeWords(shortest, 0), fmt.Sprint(super.minItems)))
	}
	if super.maxItems >= 0 && (longest < 0 || longest > super.maxItems) {
		note("maxItems", p.changed(sizeWords(longest, -1), fmt.Sprint(super.maxItems)))
	}
	if super.unique && !(longest >= 0 && longest <= 1) && !slices.ContainsFunc(sub, func(n *node) bool { return n.unique }) {
		note("uniqueItems", p.words("no item twice now", "an item may be there twice now"))
	}
	named := max(len(super.prefix), sub.most(func(n *node) int { return len(n.prefix) }))
	for i := 0; i <= named; i++ {
		if longest >= 0 && i >= longest {
			break
		}
		if want := super.item(i); want != nil {
			found = append(found, p.below(step{index: i, array: true, any: i == named}, sub.item(i), want)...)
		}
	}
	if super.contains != nil && !p.contains(sub, super, shortest, longest) {
		note("contains", "what an array must contain can't be compared")
	}
	return found
}

func (p *prover) contains(sub meet, super *node, shortest, longest int) bool {
	enough := super.minContains == 0
	notTooMany := super.maxContains < 0 || longest >= 0 && longest <= super.maxContains
	for _, n := range sub {
		if n.contains == nil {
			continue
		}
		enough = enough || n.minContains >= super.minContains && p.holds(meet{n.contains}, super.contains)
		notTooMany = notTooMany || n.maxContains >= 0 && n.maxContains <= super.maxContains && p.holds(meet{super.contains}, n.contains)
	}
	return enough && notTooMany
}
