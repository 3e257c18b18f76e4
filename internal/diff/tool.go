package diff

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/contract/compat"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// ToolChange is one tool that both sides have and that differs.
type ToolChange struct {
	Name string           `json:"name"`
	Pos  problem.Position `json:"pos"`
	// Breaking reports that the new tool may break a client that relies on the old one.
	Breaking bool          `json:"breaking"`
	Class    Class         `json:"class"`
	Fields   []FieldChange `json:"fields"`
}

// FieldChange is one differing part of a tool, server, branch or target.
type FieldChange struct {
	// Field is the field of #Tool: arguments, result, description, effect, binding, ...; for anything else it
	// is the path of the value.
	Field string           `json:"field"`
	Pos   problem.Position `json:"pos"`
	// Old and New are its values as text; empty for arguments and result, which Contract compares.
	Old string `json:"old,omitempty"`
	New string `json:"new,omitempty"`
	// Contract describes how what is accepted, or returned, differs.
	Contract *compat.Comparison `json:"contract,omitempty"`
	Breaking bool               `json:"breaking"`
	Class    Class              `json:"class"`
}

// Summary returns the change in one line.
func (f FieldChange) Summary() string {
	if f.Contract != nil {
		if len(f.Contract.Differences) == 0 {
			return f.Field + ": the same values are accepted, said otherwise"
		}
		parts := make([]string, 0, len(f.Contract.Differences))
		for _, d := range f.Contract.Differences {
			parts = append(parts, d.String())
		}
		return fmt.Sprintf("%s %s: %s", f.Field, f.Contract.Verdict, strings.Join(parts, "; "))
	}
	old, now := differing(f.Old, f.New)
	switch {
	case f.Old == "":
		return fmt.Sprintf("%s: %s (none before)", f.Field, now)
	case f.New == "":
		return fmt.Sprintf("%s: none (before: %s)", f.Field, old)
	}
	return fmt.Sprintf("%s: %s (before: %s)", f.Field, now, old)
}

// maxShown caps the characters shown of a value that need not be read to judge a change; JSON has all of it.
const maxShown = 120

func clip(s string) string {
	s = inLine(s)
	if r := []rune(s); len(r) > maxShown {
		return string(r[:maxShown]) + " …"
	}
	return s
}

// inLine replaces every run of white space in s by one space.
func inLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// around is how many common characters of two long values are shown on either side of the difference.
const around = 40

// differing formats two values in one line each. The differing part is complete, however long; a long common
// prefix and suffix are truncated.
func differing(old, now string) (string, string) {
	if a, b := inLine(old), inLine(now); a != b || old == now {
		old, now = a, b
	} else { // only white space differs, which is significant in a text
		old, now = strconv.Quote(old), strconv.Quote(now)
	}
	a, b := []rune(old), []rune(now)
	if old == "" || now == "" || max(len(a), len(b)) <= maxShown {
		return old, now
	}
	shorter := min(len(a), len(b))
	var begin, end int
	for begin < shorter && a[begin] == b[begin] {
		begin++
	}
	for end < shorter-begin && a[len(a)-1-end] == b[len(b)-1-end] {
		end++
	}
	begin, end = max(0, begin-around), max(0, end-around)
	cut := func(r []rune) string {
		s := string(r[begin : len(r)-end])
		if begin > 0 {
			s = "… " + s
		}
		if end > 0 {
			s += " …"
		}
		return s
	}
	return cut(a), cut(b)
}

// changeOf compares two declarations of a tool. Other positions or notation are not a change. reads reports
// whether the policy looks at a field of the tool at a call, so that a change of the field may change its
// decisions.
func changeOf(from, to *registry.Tool, reads func(field string) bool) ToolChange {
	c := ToolChange{Name: to.Name, Pos: to.Pos, Class: Neutral}
	if from.Digest == to.Digest {
		return c
	}
	add := func(f FieldChange, at string) {
		f.Pos = to.At(at)
		c.Breaking, c.Class = c.Breaking || f.Breaking, c.Class.with(f.Class)
		c.Fields = append(c.Fields, f)
	}
	value := func(field string, from, to any, breaking bool, class Class) {
		if old, now := text(from), text(to); old != now {
			add(FieldChange{Field: field, Old: old, New: now, Breaking: breaking, Class: class}, field)
		}
	}
	read := func(field string) Class {
		if reads(field) {
			return Unclassified
		}
		return Neutral
	}
	value("title", from.Title, to.Title, false, Neutral)
	value("description", from.Description, to.Description, false, Neutral)
	if text(from.Args) != text(to.Args) {
		compared := compat.Compare(from.Args, to.Args)
		add(FieldChange{Field: "arguments", Contract: &compared, Breaking: compared.Breaking(), Class: argumentsClass(compared.Verdict)}, "args")
	}
	switch {
	case from.Result == nil || to.Result == nil:
		// A client that reads structured results depends on them; one that never had them does not.
		value("result", schema(from.Result), schema(to.Result), to.Result == nil, Neutral)
	case text(from.Result) != text(to.Result):
		compared := compat.CompareResults(*from.Result, *to.Result)
		add(FieldChange{Field: "result", Contract: &compared, Breaking: compared.Breaking(), Class: Neutral}, "result")
	}
	value("resultCheck", from.ResultCheck, to.ResultCheck, false, Unclassified)
	effect := Narrowing // only the effector executes it
	if to.Effect == registry.Read {
		effect = Widening
	}
	value("effect", from.Effect, to.Effect, true, effect)
	if from.EffectNote != "" || to.EffectNote != "" {
		value("effectNote", from.EffectNote, to.EffectNote, false, noteClass(from.EffectNote, to.EffectNote))
	}
	repeated := Narrowing
	if to.Idempotent {
		repeated = Widening // it may be executed again without a person's decision
	}
	value("idempotent", from.Idempotent, to.Idempotent, false, repeated)
	value("idempotencyKey", from.IdempotencyKey, to.IdempotencyKey, false, Unclassified)
	binding := Unclassified
	if from.Binding.Kind() == "jq" && to.Binding.Kind() == "jq" {
		binding = Neutral // it reaches nothing
	}
	value("binding", from.Binding, to.Binding, false, binding)
	value("pre", from.Pre, to.Pre, false, Unclassified)
	value("post", from.Post, to.Post, false, Unclassified)
	value("tags", strings.Join(from.Tags, ", "), strings.Join(to.Tags, ", "), false, read("tags"))
	value("timeout", from.Timeout.String(), to.Timeout.String(), false, limitClass(float64(from.Timeout), float64(to.Timeout)))
	value("examples", from.Examples, to.Examples, false, Neutral)
	value("deprecated", from.Deprecated, to.Deprecated, false, read("deprecated"))
	value("annotations", from.Annotations, to.Annotations, false, Neutral)
	value("icons", from.Icons, to.Icons, false, Neutral)
	value("_meta", from.Meta, to.Meta, false, Neutral)
	// There may be no such field: the digest also covers, for example, the position of a generated contract's
	// sources.
	slices.SortStableFunc(c.Fields, func(a, b FieldChange) int { return rank(b) - rank(a) })
	return c
}

// noteClass returns the class of a change of the reason why a tool only reads, which exempts the tool from a
// check (suspect_effect).
func noteClass(from, to string) Class {
	switch {
	case from == "":
		return Widening
	case to == "":
		return Narrowing
	}
	return Unclassified
}

// rank sorts breaking changes first.
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

// text formats a value for display and comparison: a string unchanged, anything else as JSON.
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
		panic(fmt.Sprintf("diff: a declaration is plain data: %v", err))
	}
	if string(b) == "null" {
		return ""
	}
	return string(b)
}
