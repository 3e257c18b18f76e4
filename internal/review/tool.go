package review

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// ToolChange is one tool that both sides have, and that is not the same.
type ToolChange struct {
	Name string           `json:"name"`
	Pos  problem.Position `json:"pos"`
	// Breaking says that a client which relies on the old tool may be disappointed by the new one.
	Breaking bool          `json:"breaking"`
	Fields   []FieldChange `json:"fields"`
}

// FieldChange is one part of a tool that differs.
type FieldChange struct {
	// Field is the field of #Tool: arguments, result, description, effect, binding, ...
	Field string           `json:"field"`
	Pos   problem.Position `json:"pos"`
	// Old and New are its values as text; empty for arguments and result, which Contract compares.
	Old string `json:"old,omitempty"`
	New string `json:"new,omitempty"`
	// Contract says how what is accepted, or given, differs.
	Contract *contract.Comparison `json:"contract,omitempty"`
	Breaking bool                 `json:"breaking"`
}

// Summary is the change in one line.
func (f FieldChange) Summary() string {
	if f.Contract != nil {
		if len(f.Contract.Differences) == 0 {
			return f.Field + ": the same values are accepted, said otherwise"
		}
		said := make([]string, 0, len(f.Contract.Differences))
		for _, d := range f.Contract.Differences {
			said = append(said, d.String())
		}
		return fmt.Sprintf("%s %s: %s", f.Field, f.Contract.Verdict, strings.Join(said, "; "))
	}
	if f.Old == "" {
		return fmt.Sprintf("%s: %s (none before)", f.Field, clip(f.New))
	}
	if f.New == "" {
		return fmt.Sprintf("%s: none (before: %s)", f.Field, clip(f.Old))
	}
	return fmt.Sprintf("%s: %s (before: %s)", f.Field, clip(f.New), clip(f.Old))
}

// maxShown is how many characters of a value are shown to people; JSON has all of it.
const maxShown = 120

func clip(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > maxShown {
		return string(r[:maxShown]) + " …"
	}
	return s
}

// changeOf compares two declarations of a tool. What is only written elsewhere or otherwise is no change.
func changeOf(from, to *registry.Tool) ToolChange {
	c := ToolChange{Name: to.Name, Pos: to.Pos}
	if from.Digest == to.Digest {
		return c
	}
	add := func(f FieldChange, at string) {
		f.Pos = to.At(at)
		c.Breaking = c.Breaking || f.Breaking
		c.Fields = append(c.Fields, f)
	}
	value := func(field string, from, to any, breaking bool) {
		if old, now := text(from), text(to); old != now {
			add(FieldChange{Field: field, Old: old, New: now, Breaking: breaking}, field)
		}
	}
	value("title", from.Title, to.Title, false)
	value("description", from.Description, to.Description, false)
	if text(from.Args) != text(to.Args) {
		compared := contract.Compare(from.Args, to.Args)
		add(FieldChange{Field: "arguments", Contract: &compared, Breaking: compared.Breaking()}, "args")
	}
	switch {
	case from.Result == nil || to.Result == nil:
		// A client that reads structured results misses them; one that never had them does not mind.
		value("result", schema(from.Result), schema(to.Result), to.Result == nil)
	case text(from.Result) != text(to.Result):
		compared := contract.CompareResults(*from.Result, *to.Result)
		add(FieldChange{Field: "result", Contract: &compared, Breaking: compared.Breaking()}, "result")
	}
	value("resultCheck", from.ResultCheck, to.ResultCheck, false)
	value("effect", from.Effect, to.Effect, true)
	value("binding", from.Binding, to.Binding, false)
	value("pre", from.Pre, to.Pre, false)
	value("post", from.Post, to.Post, false)
	value("tags", strings.Join(from.Tags, ", "), strings.Join(to.Tags, ", "), false)
	value("timeout", from.Timeout.String(), to.Timeout.String(), false)
	value("examples", from.Examples, to.Examples, false)
	value("deprecated", from.Deprecated, to.Deprecated, false)
	value("annotations", from.Annotations, to.Annotations, false)
	value("icons", from.Icons, to.Icons, false)
	value("_meta", from.Meta, to.Meta, false)
	if len(c.Fields) == 0 {
		// The digest covers what none of these show, such as where a generated contract's sources stand.
		return c
	}
	slices.SortStableFunc(c.Fields, func(a, b FieldChange) int { return rank(b) - rank(a) })
	return c
}

// rank puts what breaks first.
func rank(f FieldChange) int {
	if f.Breaking {
		return 1
	}
	return 0
}

func schema(s *contract.Spec) json.RawMessage {
	if s == nil {
		return nil
	}
	return s.Schema
}

// text is a value as it is shown and compared: a string as it is, all else as JSON.
func text(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case registry.Effect:
		return string(v)
	case registry.ResultCheck:
		return string(v)
	case json.RawMessage:
		return string(v)
	}
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("review: a declaration is plain data: %v", err))
	}
	if string(b) == "null" {
		return ""
	}
	return string(b)
}
