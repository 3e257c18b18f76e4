package lockfile

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/contract/compat"
	"github.com/catalogd/catalogd/internal/strictjson"
)

// Kind classifies how an offered tool differs from the locked one.
type Kind string

// The kinds, the most severe last: a tool that differs in several ways has the most severe of them.
const (
	Identical          Kind = "identical"
	DescriptionOnly    Kind = "description_only" // title, description, icons, other annotations, _meta
	Renamed            Kind = "renamed"          // same shape, other name
	New                Kind = "new"
	Removed            Kind = "removed"
	ArgumentsWidened   Kind = "arguments_widened"
	ResultChanged      Kind = "result_changed"
	ArgumentsNarrowed  Kind = "arguments_narrowed" // or not comparable: a call accepted before may be refused
	AnnotationLowered  Kind = "annotation_lowered" // a hint promises less than the locked one
	DefinitionUnusable Kind = "unusable"           // a duplicate, or not readable
)

// Change describes how one tool changed.
type Change struct {
	// Server is the server's name in the catalog.
	Server string `json:"server"`
	// Tool is the name at the server: the locked one, or the offered one of a tool that is not locked.
	Tool string `json:"tool"`
	// Kind is which difference it is.
	Kind Kind `json:"change"`
	// From is the locked name of a tool that was renamed.
	From string `json:"from,omitempty"`
	// Details describe the differences.
	Details []string `json:"details"`
	// Findings are the suspicious parts of the offered texts.
	Findings []string `json:"findings"`
	// Locked and Offered are the digests; empty where there is none.
	Locked  string `json:"locked,omitempty"`
	Offered string `json:"offered,omitempty"`
}

// Compare returns the change of each chosen tool that is locked or offered, in the order of the names.
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
	removed := map[string]int{} // the index of the first tool of a shape that is no longer offered
	for i, c := range out {
		if c.Kind == Removed {
			before, _ := locked.Tool(c.Tool)
			if _, ok := removed[signature(before.Definition)]; !ok {
				removed[signature(before.Definition)] = i
			}
		}
	}
	for name, d := range offered.Tools {
		if _, ok := locked.Tool(name); ok || !chosen(name) {
			continue
		}
		c := Change{Server: locked.Name, Tool: name, Kind: New, Offered: d.Digest, Findings: Findings(d, names)}
		if len(removed) > 0 {
			if i, ok := removed[signature(d)]; ok {
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

// signature is equal for two tools with the same arguments and results. All tools without arguments would look
// alike, so for them the description counts too.
func signature(d Definition) string {
	var out []byte
	parts := d.open()
	for _, name := range []string{"inputSchema", "outputSchema", "description"} {
		out = append(strictjson.AppendSorted(out, parts.Get(name)), '\n')
	}
	return string(out)
}

// difference classifies the change between two definitions of the same tool.
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
	for _, m := range slices.Concat(before.parts.Members, now.parts.Members) {
		names[m.Key] = true
	}
	for _, name := range sortedKeys(names) {
		if same(before.parts.Get(name), now.parts.Get(name)) {
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

// arguments compares what two versions of a tool accept. A change that is not provably wider counts as
// narrower.
func arguments(before, now Definition) (Kind, []string) {
	compared := compat.Compare(upstream(before.part("inputSchema")), upstream(now.part("inputSchema")))
	details := []string{}
	for _, d := range compared.Differences {
		details = append(details, "arguments: "+d.String())
	}
	switch compared.Verdict {
	case compat.Identical:
		if len(details) == 0 {
			x, y := before.parts.Get("inputSchema"), now.parts.Get("inputSchema")
			if same(withoutTexts(x), withoutTexts(y)) {
				return DescriptionOnly, []string{"the texts in the schema of its arguments are others"}
			}
			// An open schema accepts undeclared arguments, but the model only sees declared ones.
			return ArgumentsWidened, []string{"the schema of its arguments says something else, and accepts the same"}
		}
		return ArgumentsNarrowed, details // another default: the same call does something else
	case compat.Widened:
		return ArgumentsWidened, details
	}
	return ArgumentsNarrowed, details
}

// upstream reads a schema of arguments as a contract, for comparison.
func upstream(schema json.RawMessage) contract.Spec {
	return contract.Spec{Schema: schema, Upstream: true, NoFill: true}
}

// withoutTexts returns a schema without the members that only people and models read. Below properties and
// definitions every key is a name and is kept.
func withoutTexts(schema any) any {
	switch v := schema.(type) {
	case []any:
		list := make([]any, len(v))
		for i, item := range v {
			list[i] = withoutTexts(item)
		}
		return list
	case *strictjson.Object:
		out := &strictjson.Object{}
		for _, m := range v.Members {
			switch m.Key {
			case "title", "description", "$comment", "examples":
				continue
			case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas":
				if named, ok := m.Value.(*strictjson.Object); ok {
					below := &strictjson.Object{}
					for _, n := range named.Members {
						below.Add(n.Key, withoutTexts(n.Value))
					}
					out.Add(m.Key, below)
					continue
				}
			}
			out.Add(m.Key, withoutTexts(m.Value))
		}
		return out
	}
	return schema
}

// same reports whether two values are equal except for the order of keys.
func same(a, b any) bool {
	return bytes.Equal(strictjson.AppendSorted(nil, a), strictjson.AppendSorted(nil, b))
}

// lowered lists the hints that promise less than before; a missing hint has MCP's default.
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

// Summary returns the change on one line.
func (c Change) Summary() string {
	parts := slices.Concat(c.Details, c.Findings)
	if len(parts) == 0 {
		return string(c.Kind)
	}
	return string(c.Kind) + ": " + strings.Join(parts, "; ")
}
