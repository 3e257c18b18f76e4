package decision

import (
	"maps"
	"path"
	"slices"

	"github.com/catalogd/catalogd/problem"
)

// ToolGrant is where the data of the shipped policy (policy/access/data.yaml) would give tools to a branch.
type ToolGrant struct {
	// Under is what the names of the tools belong to: "tools" if the branch has that field, else "branch", or
	// "branches" if the data has no such branch.
	Under string
	// At is where that is written; the zero Position if no file has it.
	At problem.Position
	// Indent is the number of spaces before the field of a branch ("branches"), before tools ("branch"), or
	// before the dash of a name ("tools").
	Indent int
	// Inline says that the names stand in brackets, or will.
	Inline bool
}

// WithTools returns the policy with these tools added to data.access.branches.<branch>.tools, and where that
// is written. It has only the points List and Call. ok is false if the data has not the form of the shipped
// policy's.
func (e *Engine) WithTools(branch string, tools []string) (with Hypothetical, grant ToolGrant, ok bool) {
	access, ok := e.policy.Data.Value["access"].(map[string]any)
	if !ok {
		return with, grant, false
	}
	branches, ok := access["branches"].(map[string]any)
	if !ok {
		return with, grant, false
	}
	at := []string{"access", "branches"}
	grant = ToolGrant{Under: "branches", Indent: e.indentBelow(at, branches)}
	entry, named := map[string]any{}, []any{}
	if value, has := branches[branch]; has {
		if entry, ok = value.(map[string]any); !ok {
			return with, grant, false
		}
		at = append(at, branch)
		grant = ToolGrant{Under: "branch", Indent: e.indentBelow(at, entry)}
	}
	if value, has := entry["tools"]; has {
		if named, ok = value.([]any); !ok {
			return with, grant, false
		}
		at = append(at, "tools")
		first := e.policy.Data.Position(append(slices.Clone(at), "0")...)
		grant = ToolGrant{Under: "tools", Indent: max(0, first.Col-3), Inline: len(named) == 0}
		grant.Inline = grant.Inline || first.Line == e.policy.Data.Position(at...).Line
	}
	grant.At = e.policy.Data.Position(at...)
	grant.Inline = grant.Inline || path.Ext(grant.At.File) == ".json"
	for _, tool := range tools {
		named = append(slices.Clip(named), tool)
	}
	access, branches, entry = maps.Clone(access), maps.Clone(branches), maps.Clone(entry)
	entry["tools"], branches[branch], access["branches"] = named, entry, branches
	return e.withData("access", access, List, Call), grant, true
}

// indentBelow returns the number of spaces before the fields of the mapping at a path, or those that a first one
// would have.
func (e *Engine) indentBelow(at []string, fields map[string]any) int {
	for name := range fields {
		if pos := e.policy.Data.Position(append(slices.Clone(at), name)...); pos.Col > 0 {
			return pos.Col - 1
		}
	}
	return max(1, e.policy.Data.Position(at...).Col) + 1
}
