package diff

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/decision/lint"
	"github.com/catalogd/catalogd/problem"
)

// Change is one difference between the policies: a rule, a value in the data, a test, or a file with any
// other difference.
type Change struct {
	Class Class `json:"class"`
	// Kind is trust, data, rule, test, file or policy (the effect of several changes only in combination).
	Kind string `json:"kind"`
	// Name is what differs: data.trust.entries.clock.env, catalogd.call.deny, the name of a test or file.
	Name string `json:"name"`
	// What describes what is granted or withdrawn.
	What string `json:"what"`
	// Old and New are the text of the rule, or the value as JSON, with the position; empty on a side that has
	// none.
	Old   string           `json:"old,omitempty"`
	New   string           `json:"new,omitempty"`
	OldAt problem.Position `json:"old_pos,omitzero"`
	NewAt problem.Position `json:"new_pos,omitzero"`
	// Points are the decision points whose answers may differ.
	Points []decision.Point `json:"points,omitempty"`
	// Examples are at most three decisions that this change alone answers differently, the most severe first.
	// Affected counts all declared branches, principals and tools (or outward connections) that are affected.
	Examples []Example `json:"examples,omitempty"`
	Affected int       `json:"affected,omitempty"`
}

// Example is one decision that is answered differently.
type Example struct {
	Class     Class           `json:"class"`
	Point     decision.Point  `json:"point"`
	Branch    string          `json:"branch,omitempty"`
	Tool      string          `json:"tool,omitempty"`
	Principal string          `json:"principal,omitempty"`
	Groups    []string        `json:"groups,omitempty"`
	Target    string          `json:"target,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Time      string          `json:"time,omitempty"`
	// Before and After describe the answers.
	Before string `json:"before"`
	After  string `json:"after"`
	// Input is the input of the decision, as `opa eval` takes it.
	Input json.RawMessage `json:"input"`
	// Declared reports that the catalog declares the subject of the example; otherwise it is made up, to show
	// the effect of the rule.
	Declared bool `json:"declared"`
	// OldRules are the rules of OLD that answered, and Rules those of NEW that answer.
	OldRules []decision.Rule `json:"old_rules,omitempty"`
	Rules    []decision.Rule `json:"rules,omitempty"`
}

const maxExamples = 3

// policyChanges returns the differences between the policies of both generations. Each is classified by its
// form and by its effect, alone, on the answers to a population of questions, which also shows who is
// affected.
func policyChanges(ctx context.Context, p *population) (changes []Change, err error) {
	old, now := p.from.Engine(), p.to.Engine()
	all := lint.Changes(old.Policy(), now.Policy())
	if len(all) == 0 {
		return nil, nil
	}
	news := map[decision.Point][]lint.Hint{}
	for _, point := range decision.Points() {
		news[point] = apartHints(old.Policy().Hints(string(point)), now.Policy().Hints(string(point)))
	}
	asked := decision.Points()
	var together seenDifferences
	if len(all) > 1 {
		if together, err = p.compare(ctx, now, asked, func(point decision.Point) []lint.Hint { return news[point] }); err != nil {
			return nil, err
		}
	}
	widens := false
	for _, pc := range all {
		points := slices.DeleteFunc(pointsOf(pc), func(p decision.Point) bool { return !slices.Contains(asked, p) })
		own := pc.Hints()
		seen, engine := together.of(points), now
		alone, failed := old.With(points, pc)
		if failed == nil {
			engine = alone
		}
		if failed == nil || len(all) == 1 {
			if seen, err = p.compare(ctx, engine, points, func(point decision.Point) []lint.Hint { return union(own, news[point]) }); err != nil {
				return nil, err
			}
		}
		c := p.describe(pc)
		c.Class = classed(pc.Effect, c.Class, seen.class)
		c.Examples, c.Affected = examples(ctx, seen, old, engine), seen.affected
		widens = widens || c.Class.Widens()
		changes = append(changes, c)
	}
	if together.class.Widens() && !widens {
		changes = append(changes, Change{
			Class: together.class, Kind: "policy", Name: "policy", What: "several changes together do what none of them does alone",
			Examples: examples(ctx, together, old, now), Affected: together.affected,
		})
	}
	return changes, nil
}

// classed returns the class of a change from the effect of its form, what is known of such data, and the
// observed effect. An observed widening always widens; an observed narrowing counts only if nothing else is
// known.
func classed(effect lint.Effect, known, seen Class) Class {
	byForm := effectClass(effect)
	switch {
	case seen == Widening, seen == Unclassified:
		return seen
	case byForm != Unclassified && known != Unclassified:
		return byForm.with(known).with(seen)
	case byForm != Unclassified:
		return byForm.with(seen)
	case known != Unclassified:
		return known.with(seen)
	case seen == Narrowing:
		return Narrowing
	}
	return Unclassified
}

// of returns the observed differences at some points.
func (s seenDifferences) of(points []decision.Point) seenDifferences {
	out := seenDifferences{class: Neutral}
	about := map[string]bool{}
	for _, f := range s.examples {
		if slices.Contains(points, f.point) {
			out.class = out.class.with(f.class)
			out.examples = append(out.examples, f)
			if f.real {
				about[f.about()] = true
			}
		}
	}
	out.affected = len(about)
	return out
}

func apartHints(a, b []lint.Hint) (out []lint.Hint) {
	count := map[string]int{}
	for _, h := range slices.Concat(a, b) {
		count[h.Key()]++
	}
	for _, h := range union(a, b) {
		if count[h.Key()] == 1 {
			out = append(out, h)
		}
	}
	return out
}

// examples selects a few observed differences: the most severe first, then declared ones, each about another
// subject.
func examples(ctx context.Context, seen seenDifferences, old, now *decision.Engine) (out []Example) {
	all := slices.Clone(seen.examples)
	rank := func(f found) int {
		n := 2 * slices.Index(classes, f.class)
		if !f.real {
			n++
		}
		return n
	}
	slices.SortStableFunc(all, func(a, b found) int { return rank(a) - rank(b) })
	shown := map[string]bool{}
	for _, f := range all {
		if len(out) == maxExamples {
			break
		}
		if shown[f.about()] || len(out) > 0 && !f.real {
			continue // one made-up example is enough
		}
		shown[f.about()] = true
		x := f.subject()
		x.Class, x.Declared = f.class, f.real
		if exact, err := decision.Document(f.point, f.input); err == nil {
			x.Input = json.RawMessage(jsonText(exact))
		}
		x.Before, x.After = f.old.words(f.terms, f.now), f.now.words(f.terms, f.old)
		x.OldRules, x.Rules = answering(ctx, old, f.question), answering(ctx, now, f.question)
		out = append(out, x)
	}
	return out
}

func answering(ctx context.Context, e *decision.Engine, q question) []decision.Rule {
	x, err := e.Explain(ctx, q.point, q.input)
	if err != nil {
		return nil
	}
	return x.Responsible()
}

// words describes an answer for people: denied with the reason, or allowed with the terms that differ from
// other. For a list it names only what this answer alone has.
func (a answer) words(differ []string, other answer) string {
	if !a.allow {
		return "denied: " + a.reasons
	}
	if len(differ) == 0 {
		return "allowed"
	}
	var parts []string
	for _, name := range differ {
		v, isList := a.terms[name].([]any)
		if beyond, ok := other.terms[name].([]any); isList && ok {
			parts = append(parts, name+" with "+shownValue(texts(beside(members(v), members(beyond)))))
			continue
		}
		parts = append(parts, name+" "+shown(name, a.terms[name]))
	}
	return "allowed, " + strings.Join(parts, ", ")
}

// describe returns the description of a change, and what is known of such data.
func (p *population) describe(pc lint.Change) Change {
	c := Change{Old: pc.Old, New: pc.New, OldAt: pc.OldAt, NewAt: pc.NewAt, Points: pointsOf(pc), Class: Unclassified}
	if pc.IsRule() {
		c.Kind, c.Name = "rule", pc.Package+"."+pc.Name
		c.What = "the rule " + c.Name + " " + action(pc.Old, pc.New)
		return c
	}
	c.Kind, c.Name = "data", "data."+strings.Join(pc.Path, ".")
	if len(pc.Path) >= 3 && pc.Path[0] == "trust" && pc.Path[1] == "entries" {
		c.Kind = "trust"
		c.Class, c.What = trustChange(pc)
		return c
	}
	c.What = c.Name + " " + valueWords(pc.Old, pc.New)
	return c
}

func pointsOf(pc lint.Change) (points []decision.Point) {
	for _, name := range pc.Points {
		points = append(points, decision.Point(name))
	}
	return points
}

func action(old, now string) string {
	switch {
	case old == "":
		return "is new"
	case now == "":
		return "is removed"
	}
	return "is changed"
}

// valueWords describes how a value differs: the elements that a list gained and lost, or the old and the new
// value.
func valueWords(old, now string) string {
	before, ok1 := decodedList(old)
	after, ok2 := decodedList(now)
	if ok1 && ok2 {
		added, removed := beside(after, before), beside(before, after)
		var parts []string
		if len(added) > 0 {
			parts = append(parts, "gains "+strings.Join(added, ", "))
		}
		if len(removed) > 0 {
			parts = append(parts, "loses "+strings.Join(removed, ", "))
		}
		if len(parts) == 0 {
			parts = []string{"is in another order"}
		}
		return strings.Join(parts, ", ")
	}
	was, is := differing(old, now)
	switch {
	case old == "":
		return "is new: " + is
	case now == "":
		return "is removed: " + was
	}
	return was + " -> " + is
}

func decodedList(text string) (out []string, ok bool) {
	if text == "" {
		return nil, false
	}
	v, err := decoded([]byte(text))
	l, isList := v.([]any)
	for _, x := range l {
		out = append(out, jsonText(x))
	}
	return out, err == nil && isList
}

func beside(all, others []string) (out []string) {
	for _, x := range all {
		if !slices.Contains(others, x) && !slices.Contains(out, x) {
			out = append(out, x)
		}
	}
	return out
}
