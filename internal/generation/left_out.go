package generation

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/catalogd/catalogd/problem"
)

// leaveOut removes from the branches of the build what they say of tools that are left out: locked ones that can't
// be served, and those of servers of which nothing is locked. Each is a warning, because the tool is shown nowhere
// until it can be served, and then what the branch says of it is checked and counts.
func (in *inputs) leaveOut() (problems problem.List) {
	known := make(map[string]bool, len(in.build.Tools))
	for _, t := range in.build.Tools {
		known[t.Name] = true
	}
	branches := slices.Clone(in.build.Branches)
	for i, b := range branches {
		strictness, narrow := maps.Clone(b.Strictness), maps.Clone(b.Narrow)
		drop := func(field, tool string, remove func()) {
			why := ""
			if !known[tool] {
				why = in.whyLeftOut(tool)
			}
			if why == "" {
				return // registry.New checks it
			}
			remove()
			at := field + "." + tool
			problems.Warnf(problem.UnknownTool, b.At(at), "branches."+b.Name+"."+at,
				"tool %q is left out, so that this changes nothing for now: %s", tool, why)
		}
		for _, tool := range slices.Sorted(maps.Keys(b.Strictness)) {
			drop("strictness", tool, func() { delete(strictness, tool) })
		}
		for _, tool := range slices.Sorted(maps.Keys(b.Narrow)) {
			drop("narrow", tool, func() { delete(narrow, tool) })
		}
		branches[i].Strictness, branches[i].Narrow = strictness, narrow
	}
	if problems != nil {
		all := *in.build
		all.Branches = branches
		in.build = &all
	}
	return problems
}

// whyLeftOut returns why a tool that the build doesn't have is left out; empty if no server has a tool of that name,
// as far as is known.
func (in *inputs) whyLeftOut(tool string) string {
	for _, d := range in.degraded {
		if d.Name == tool {
			return fmt.Sprintf("%q of server %q: %s", d.Tool, d.Server, d.Reason)
		}
	}
	for _, s := range in.declared.Servers {
		if s.Discover == nil {
			continue
		}
		if _, locked := in.locked.Server(s.Name); locked {
			continue
		}
		renamed := false
		for _, over := range s.Discover.Tools {
			renamed = renamed || over.Rename == tool
		}
		if renamed || strings.HasPrefix(tool, s.Prefix) {
			return fmt.Sprintf("nothing of server %q is locked; run `catalogd lock`", s.Name)
		}
	}
	return ""
}
