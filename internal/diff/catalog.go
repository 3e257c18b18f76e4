package diff

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/generation"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// catalog sets the differences in the declarations.
func (d *Difference) catalog(from, to *generation.Generation) {
	reads := func(path ...string) bool {
		return slices.ContainsFunc([]decision.Point{decision.Call, decision.Result, decision.Release}, func(p decision.Point) bool {
			return from.Engine().Reads(p, path...) || to.Engine().Reads(p, path...)
		})
	}
	d.ToolsAdded, d.ToolsRemoved = apart(tools(from), tools(to))
	for i, added := range d.ToolsAdded {
		if e, ok := to.Registry().Lookup(added.Name); ok && e.Declared().EffectNote != "" {
			note := e.Declared().EffectNote
			d.ToolsAdded[i].Class = noteClass("", note)
			d.ToolsAdded[i].Fields = []FieldChange{{
				Field: "effectNote", Pos: e.Declared().At("effectNote"), New: note, Class: noteClass("", note),
			}}
		}
	}
	d.ToolsChanged = []ToolChange{}
	for _, e := range to.Registry().Entries() {
		if before, ok := from.Registry().Lookup(e.Name()); ok {
			c := changeOf(before.Declared(), e.Declared(), func(field string) bool { return reads("tool", field) })
			if len(c.Fields) > 0 {
				d.ToolsChanged = append(d.ToolsChanged, c)
			}
		}
	}
	server := func(s registry.Server) (string, registry.Source) { return s.Name, s.Source }
	oldServers, servers := index(from.Registry().Servers(), server), index(to.Registry().Servers(), server)
	d.ServersAdded, d.ServersRemoved = apart(oldServers, servers)
	d.ServersChanged = altered(oldServers, servers, serverFields, func(string) bool { return true })
	branch := func(b registry.Branch) (string, registry.Source) { return b.Name, b.Source }
	oldBranches, branches := index(from.Registry().Branches(), branch), index(to.Registry().Branches(), branch)
	d.BranchesAdded, d.BranchesRemoved = apart(oldBranches, branches)
	d.BranchesChanged = altered(oldBranches, branches, branchFields, func(field string) bool { return reads("branch", field) })
	narrowings(d.BranchesChanged, from.Registry().Branches(), to.Registry().Branches())
}

// serverFields and branchFields describe what a changed value of a declaration's field does: change a limit,
// or nothing by itself (what is reached, and who sees what, is compared by evaluating decisions). Any other
// field is Unclassified.
var (
	serverFields = map[string]termKind{
		"connectTimeout": limits, "initializeTimeout": limits, "callTimeout": limits, "maxConnections": limits, "isolate": pins,
		"eager": informs, "prefix": informs,
	}
	branchFields = map[string]termKind{"description": informs, "select": informs, "hide": informs, "narrow": informs, "strictness": informs}
)

// declared is a declaration as data, with its position.
type declared struct {
	data   map[string]any
	source registry.Source
}

func index[T any](all []T, of func(T) (string, registry.Source)) map[string]declared {
	m := make(map[string]declared, len(all))
	for _, x := range all {
		name, source := of(x)
		m[name] = declared{mapping(asData(x)), source}
	}
	return m
}

func tools(g *generation.Generation) map[string]declared {
	all := make(map[string]declared, g.Registry().Len())
	for _, e := range g.Registry().Entries() {
		all[e.Name()] = declared{source: e.Declared().Source}
	}
	return all
}

func apart(from, to map[string]declared) (added, removed []Declared) {
	return without(to, from, Neutral), without(from, to, Narrowing)
}

func without(all, others map[string]declared, class Class) []Declared {
	out := []Declared{}
	for _, name := range keys(all) {
		if _, ok := others[name]; !ok {
			out = append(out, Declared{Name: name, Pos: all[name].source.Pos, Class: class})
		}
	}
	return out
}

func altered(from, to map[string]declared, fields map[string]termKind, reads func(string) bool) []Declared {
	out := []Declared{}
	for _, name := range keys(to) {
		before, ok := from[name]
		if !ok || before.source.Digest == to[name].source.Digest {
			continue
		}
		d := Declared{Name: name, Pos: to[name].source.Pos, Class: Neutral, Fields: fieldChanges(before.data, to[name].data, to[name].source.Pos)}
		for i, f := range d.Fields {
			field, _, _ := strings.Cut(f.Field, ".")
			class := Unclassified
			switch kind, known := fields[field]; {
			case known && kind == limits:
				class = limitClass(number(value(f.Old)), number(value(f.New)))
			case known && kind == pins && f.New == "":
				class = Widening
			case known && kind == pins && f.Old == "":
				class = Narrowing
			case known && kind == informs, !known && !reads(field):
				class = Neutral
			}
			d.Fields[i].Class = class
			d.Class = d.Class.with(class)
		}
		if len(d.Fields) > 0 {
			out = append(out, d)
		}
	}
	return out
}

// fieldChanges returns the values that differ, by their path. The positions of declarations are ignored.
func fieldChanges(from, to any, at problem.Position) (changes []FieldChange) {
	var walk func(path []string, old, now any)
	walk = func(path []string, old, now any) {
		before, ok1 := old.(map[string]any)
		after, ok2 := now.(map[string]any)
		if (ok1 || old == nil) && (ok2 || now == nil) && (ok1 || ok2) {
			for _, key := range keys(before, after) {
				if len(path) == 0 && slices.Contains(positional, key) {
					continue
				}
				walk(append(slices.Clip(path), key), before[key], after[key])
			}
			return
		}
		if jsonText(old) == jsonText(now) {
			return
		}
		f := FieldChange{Field: strings.Join(path, "."), Pos: at, Class: Unclassified}
		if old != nil {
			f.Old = word(old)
		}
		if now != nil {
			f.New = word(now)
		}
		changes = append(changes, f)
	}
	walk(nil, from, to)
	return changes
}

// positional are the fields of registry.Source, which give the position of a declaration.
var positional = func() (names []string) {
	var m map[string]json.RawMessage
	if err := json.Unmarshal([]byte(jsonText(registry.Source{Fields: map[string]problem.Position{"x": {}}})), &m); err != nil {
		panic("diff: a source is an object")
	}
	return keys(m)
}()

func refusal(d decision.Decision) string {
	return cmp.Or(strings.Join(d.Reasons[:min(1, len(d.Reasons))], ""), string(d.Code))
}
