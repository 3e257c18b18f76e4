package lock

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/catalogd/catalogd/contract"
)

// Kind says how a tool that a server offers differs from the locked one.
type Kind string

// The kinds, the gravest last: a tool that differs in several ways is of the gravest of them.
const (
	Identical          Kind = "identical"
	DescriptionOnly    Kind = "description_only" // title, description, icons, other annotations, _meta
	Renamed            Kind = "renamed"          // same shape, other name
	New                Kind = "new"
	Removed            Kind = "removed"
	ArgumentsWidened   Kind = "arguments_widened"
	ResultChanged      Kind = "result_changed"
	ArgumentsNarrowed  Kind = "arguments_narrowed" // or not comparable: some call that was accepted may be refused
	AnnotationLowered  Kind = "annotation_lowered" // a hint says less good of the tool than the locked one
	DefinitionUnusable Kind = "unusable"           // offered twice, or can't be read
)

// Change is what became of one tool.
type Change struct {
	Server string `json:"server"`
	// Tool is the name at the server: the locked one, or the offered one of a tool that is not locked.
	Tool string `json:"tool"`
	Kind Kind   `json:"change"`
	// From is the locked name of a tool that was renamed.
	From string `json:"from,omitempty"`
	// Details say in words what differs.
	Details []string `json:"details"`
	// Findings are what is suspicious in the texts of what is offered.
	Findings []string `json:"findings"`
	// Locked and Offered are the digests; empty where there is none.
	Locked  string `json:"locked,omitempty"`
	Offered string `json:"offered,omitempty"`
}

// Compare says of every tool that is locked or offered, and chosen, how it changed, in the order of the names.
func Compare(locked Server, offered Offer, chosen func(tool string) bool) []Change {
	var out []Change
	names := NewNames(maps.Keys(offered.Tools))
	for _, t := range locked.Tools {
		c := Change{Server: locked.Name, Tool: t.Name, Locked: t.Digest}
		now, ok := offered.Tools[t.Name]
		switch {
		case ok:
			c = difference(t.Definition, now)
			c.Server = locked.Name
			c.Findings = Findings(now, names)
		case offered.Bad[t.Name] != "":
			c.Kind, c.Details = DefinitionUnusable, []string{offered.Bad[t.Name]}
		default:
			c.Kind = Removed
		}
		out = append(out, c)
	}
	gone := map[string]int{} // where the first tool of a shape stands that is no longer offered
	for i, c := range out {
		if c.Kind == Removed {
			before, _ := locked.Tool(c.Tool)
			if _, ok := gone[shape(before.Definition)]; !ok {
				gone[shape(before.Definition)] = i
			}
		}
	}
	for name, d := range offered.Tools {
		if _, ok := locked.Tool(name); ok || !chosen(name) {
			continue
		}
		c := Change{Server: locked.Name, Tool: name, Kind: New, Offered: d.Digest, Findings: Findings(d, names)}
		if len(gone) > 0 {
			if i, ok := gone[shape(d)]; ok {
				c.Kind, c.From, c.Details = Renamed, out[i].Tool, []string{fmt.Sprintf("%q is called %q now", out[i].Tool, name)}
				out[i].Details = []string{fmt.Sprintf("a tool of the same shape is called %q", name)}
			}
		}
		out = append(out, c)
	}
	for name, why := range offered.Bad {
		if _, ok := locked.Tool(name); !ok && chosen(name) {
			out = append(out, Change{Server: locked.Name, Tool: name, Kind: DefinitionUnusable, Details: []string{why}})
		}
	}
	for i := range out {
		if out[i].Details == nil {
			out[i].Details = []string{}
		}
		if out[i].Findings == nil {
			out[i].Findings = []string{}
		}
	}
	slices.SortFunc(out, func(a, b Change) int { return cmp.Compare(a.Tool, b.Tool) })
	return out
}

// shape is the same for two tools that take and give the same. One that takes nothing is like any other such, so its
// description counts too.
func shape(d Definition) string {
	var b bytes.Buffer
	parts := d.open()
	for _, name := range []string{"inputSchema", "outputSchema", "description"} {
		part, _ := parts.get(name)
		canonical(&b, part)
		b.WriteByte('\n')
	}
	return b.String()
}

// difference classifies what changed from one definition to the next of the same tool.
func difference(before, now Definition) Change {
	c := Change{Tool: before.Name, Kind: Identical, Locked: before.Digest, Offered: now.Digest}
	if before.Digest == now.Digest {
		return c
	}
	before, now = before.opened(), now.opened()
	c.Kind = DescriptionOnly
	graver := func(k Kind) {
		if slices.Index(gravity, k) > slices.Index(gravity, c.Kind) {
			c.Kind = k
		}
	}
	names := map[string]bool{}
	for _, m := range slices.Concat(before.parts, now.parts) {
		names[m.name] = true
	}
	for _, name := range sortedKeys(names) {
		x, _ := before.parts.get(name)
		y, _ := now.parts.get(name)
		if same(x, y) {
			continue
		}
		switch name {
		case "inputSchema":
			k, details := arguments(before, now)
			graver(k)
			c.Details = append(c.Details, details...)
		case "outputSchema":
			graver(ResultChanged)
			c.Details = append(c.Details, "the schema of its results is another")
		case "annotations":
			details := lowered(before, now)
			if len(details) > 0 {
				graver(AnnotationLowered)
			} else {
				details = []string{"annotations are others"}
			}
			c.Details = append(c.Details, details...)
		default:
			c.Details = append(c.Details, name+" is another")
		}
	}
	return c
}

var gravity = []Kind{Identical, DescriptionOnly, ArgumentsWidened, ResultChanged, ArgumentsNarrowed, AnnotationLowered}

// arguments compares what two versions of a tool accept. What can't be told to be wider counts as narrower.
func arguments(before, now Definition) (Kind, []string) {
	compared := contract.Compare(upstream(before.part("inputSchema")), upstream(now.part("inputSchema")))
	details := []string{}
	for _, d := range compared.Differences {
		details = append(details, "arguments: "+d.String())
	}
	switch compared.Verdict {
	case contract.Identical:
		if len(details) == 0 {
			x, _ := before.parts.get("inputSchema")
			y, _ := now.parts.get("inputSchema")
			if same(withoutTexts(x), withoutTexts(y)) {
				return DescriptionOnly, []string{"the texts in the schema of its arguments are others"}
			}
			// An open schema accepts an argument that it doesn't declare, but only a declared one is asked of the model.
			return ArgumentsWidened, []string{"the schema of its arguments says something else, and accepts the same"}
		}
		return ArgumentsNarrowed, details // another default: the same call does something else
	case contract.Widened:
		return ArgumentsWidened, details
	}
	return ArgumentsNarrowed, details
}

// upstream is what a schema says of arguments, for comparing.
func upstream(schema json.RawMessage) contract.Spec {
	return contract.Spec{Schema: schema, Upstream: true, NoFill: true}
}

// withoutTexts is a schema without what only people and models read in it. Below properties and definitions every key is a
// name.
func withoutTexts(schema node) node {
	switch v := schema.value.(type) {
	case []node:
		list := make([]node, len(v))
		for i, item := range v {
			list[i] = withoutTexts(item)
		}
		return node{value: list}
	case object:
		var out object
		for _, m := range v {
			switch m.name {
			case "title", "description", "$comment", "examples":
				continue
			case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas":
				named, ok := m.value.value.(object)
				if !ok {
					break
				}
				below := object{}
				for _, n := range named {
					below = append(below, member{name: n.name, value: withoutTexts(n.value)})
				}
				out = append(out, member{name: m.name, value: node{value: below}})
				continue
			}
			out = append(out, member{name: m.name, value: withoutTexts(m.value)})
		}
		return node{value: out}
	}
	return schema
}

// lowered says which hints promise less than before; what is missing has the value that MCP gives it.
func lowered(before, now Definition) (details []string) {
	for _, h := range []struct {
		name           string
		fallback, good bool
	}{
		{"readOnlyHint", false, true}, {"destructiveHint", true, false}, {"idempotentHint", false, true}, {"openWorldHint", true, false},
	} {
		if was, is := before.hint(h.name, h.fallback), now.hint(h.name, h.fallback); was != is && was == h.good {
			details = append(details, fmt.Sprintf("%s was %t and is %t", h.name, was, is))
		}
	}
	return details
}

// Summary is a change in one line.
func (c Change) Summary() string {
	parts := slices.Concat(c.Details, c.Findings)
	if len(parts) == 0 {
		return string(c.Kind)
	}
	return string(c.Kind) + ": " + strings.Join(parts, "; ")
}
