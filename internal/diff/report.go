package diff

import (
	"fmt"
	"slices"
	"strings"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/problem"
)

// line is one change in words, with its details.
type line struct {
	text    string
	details []string
}

// section is a heading with its lines.
type section struct {
	title string
	lines []line
}

// sections returns the sections of a report, the most severe first, without empty ones.
func (d *Difference) sections() []section {
	var all []section
	for _, class := range classes {
		all = append(all, section{"Policy: " + string(class), changeLines(d.Changes, class)})
	}
	all = append(all, []section{
		{"Not compared here: whether it is trusted and who sees it", notComparedLines(d.NotCompared)},
		{"Trust gained", trustLines(d.Trusted)},
		{"Trust changed", trustLines(d.Redirected)},
		{"Trust lost", trustLines(d.Distrusted)},
		{"Visibility gained", accessLines(d.Gained)},
		{"Visibility lost", accessLines(d.Lost)},
		{"Calls answered otherwise", accessLines(d.Altered)},
		{"Tools removed", declaredLines(d.ToolsRemoved)},
		{"Tools changed", toolLines(d.ToolsChanged)},
		{"Tools added", declaredLines(d.ToolsAdded)},
		{"Servers removed", declaredLines(d.ServersRemoved)},
		{"Servers changed", declaredLines(d.ServersChanged)},
		{"Servers added", declaredLines(d.ServersAdded)},
		{"Branches removed", declaredLines(d.BranchesRemoved)},
		{"Branches changed", declaredLines(d.BranchesChanged)},
		{"Branches added", declaredLines(d.BranchesAdded)},
	}...)
	return slices.DeleteFunc(all, func(s section) bool { return len(s.lines) == 0 })
}

// summary returns the difference in one line.
func (d *Difference) summary() string {
	if d.Empty() {
		return "nothing differs"
	}
	var parts []string
	for _, c := range []struct {
		n          int
		one, other string
	}{
		{len(d.Changes), "change of the policy", "changes of the policy"},
		{len(d.NotCompared), "not compared here", "not compared here"},
		{len(d.ToolsAdded), "tool added", "tools added"}, {len(d.ToolsRemoved), "tool removed", "tools removed"},
		{len(d.ToolsChanged), "tool changed", "tools changed"},
		{len(d.Gained), "visibility gained", "visibilities gained"}, {len(d.Lost), "visibility lost", "visibilities lost"},
		{len(d.Altered), "access changed", "accesses changed"},
		{len(d.Trusted), "trust gained", "trusts gained"}, {len(d.Redirected), "trust changed", "trusts changed"}, {len(d.Distrusted), "trust lost", "trusts lost"},
	} {
		if c.n == 1 {
			parts = append(parts, "1 "+c.one)
		} else if c.n > 1 {
			parts = append(parts, fmt.Sprintf("%d %s", c.n, c.other))
		}
	}
	if len(parts) == 0 {
		parts = []string{"servers or branches differ"}
	}
	if class := d.Class(); class.Widens() {
		parts = append(parts, strings.ToUpper(string(class)))
	}
	if d.Breaking() {
		parts = append(parts, "BREAKING")
	}
	return strings.Join(parts, ", ")
}

func declaredLines(all []Declared) (lines []line) {
	for _, d := range all {
		l := line{text: fmt.Sprintf("%s (%s)", d.Name, d.Pos)}
		for _, f := range d.Fields {
			l.details = append(l.details, fmt.Sprintf("%s (%s)", f.Summary(), f.Class))
		}
		lines = append(lines, l)
	}
	return lines
}

// changeLines returns the policy changes of a class.
func changeLines(all []Change, class Class) (lines []line) {
	for _, c := range all {
		if c.Class != class {
			continue
		}
		l := line{text: fmt.Sprintf("%s (%s)", c.What, places(c.OldAt, c.NewAt))}
		if c.Kind == "rule" || c.Kind == "test" {
			old, now := differing(c.Old, c.New)
			if old != "" {
				l.details = append(l.details, "- "+old)
			}
			if now != "" {
				l.details = append(l.details, "+ "+now)
			}
		}
		if points := joined(c.Points); points != "" {
			l.details = append(l.details, "asked at "+points)
		}
		for _, x := range c.Examples {
			l.details = append(l.details, x.String())
			if sameRules(x.OldRules, x.Rules) {
				continue // they still allow, with other terms
			}
			if rules := rulesText(x.OldRules); rules != "" {
				l.details = append(l.details, "  before, by "+rules)
			}
			if rules := rulesText(x.Rules); rules != "" {
				l.details = append(l.details, "  now, by "+rules)
			}
		}
		if c.Affected > 0 {
			l.details = append(l.details, fmt.Sprintf("declared and affected: %d", c.Affected))
		}
		lines = append(lines, l)
	}
	return lines
}

// places formats the position of something, and its old position if that differs.
func places(old, now problem.Position) string {
	switch {
	case !old.IsValid():
		return now.String()
	case !now.IsValid():
		return "before at " + old.String()
	case old == now:
		return now.String()
	}
	return now.String() + ", before at " + old.String()
}

// joined formats the points, without the check of the data if there are others.
func joined(points []decision.Point) string {
	var names []string
	for _, p := range points {
		if p != "check" || len(points) == 1 {
			names = append(names, string(p))
		}
	}
	return strings.Join(names, ", ")
}

// sameRules reports whether rules are equal, whatever their positions.
func sameRules(a, b []decision.Rule) bool {
	return slices.EqualFunc(a, b, func(a, b decision.Rule) bool { return a.Package == b.Package && a.Name == b.Name && a.Text == b.Text })
}

// maxRules caps the rules of an answer that are named in text; JSON has them all.
const maxRules = 3

func rulesText(rules []decision.Rule) string {
	var parts []string
	for _, r := range rules[:min(maxRules, len(rules))] {
		parts = append(parts, r.String())
	}
	if more := len(rules) - maxRules; more > 0 {
		parts = append(parts, fmt.Sprintf("%d more", more))
	}
	return strings.Join(parts, "; ")
}

// String returns the example in one line.
func (x Example) String() string {
	var b strings.Builder
	b.WriteString("e.g. ")
	if !x.Declared {
		b.WriteString("(made up) ")
	}
	b.WriteString(string(x.Point))
	for _, part := range []struct{ name, value string }{
		{"branch", x.Branch}, {"", x.Tool}, {"", clip(x.Target)}, {"principal", x.Principal}, {"groups", strings.Join(x.Groups, " ")},
		{"arguments", clip(string(x.Arguments))}, {"at", x.Time},
	} {
		switch {
		case part.value == "":
		case part.name == "":
			b.WriteString(" " + part.value + ",")
		default:
			b.WriteString(" " + part.name + " " + part.value + ",")
		}
	}
	return fmt.Sprintf("%s: %s, before: %s", strings.TrimSuffix(b.String(), ","), clip(x.After), clip(x.Before))
}

func toolLines(all []ToolChange) (lines []line) {
	for _, c := range all {
		l := line{text: fmt.Sprintf("%s (%s)", c.Name, c.Pos)}
		if c.Breaking {
			l.text += " BREAKING"
		}
		for _, f := range c.Fields {
			detail := f.Summary()
			if f.Class != Neutral && f.Contract == nil {
				detail += " (" + string(f.Class) + ")"
			}
			l.details = append(l.details, detail)
		}
		lines = append(lines, l)
	}
	return lines
}

// maxNamed caps the tools that a line of text names; JSON has them all.
const maxNamed = 20

// accessLines groups differences with the same cause: a rule that opens a hundred tools to three principals
// is one line.
func accessLines(all []AccessChange) (lines []line) {
	type group struct {
		first             AccessChange
		principals, tools []string
	}
	key := func(c AccessChange, more ...string) string {
		return strings.Join(append(more, c.Branch, string(c.From), string(c.To), c.Effect, c.Why, rulePlaces(c.Rules), rulePlaces(c.OldRules)), "\x00")
	}
	byTools := gathered(all, func(c AccessChange) string { return key(c, c.Principal) })
	var groups []*group
	byKey := map[string]*group{}
	for _, of := range byTools {
		var tools []string
		for _, c := range of {
			tools = append(tools, c.Tool)
		}
		k := key(of[0], tools...)
		if byKey[k] == nil {
			byKey[k] = &group{first: of[0], tools: tools}
			groups = append(groups, byKey[k])
		}
		byKey[k].principals = append(byKey[k].principals, of[0].Principal)
	}
	for _, g := range groups {
		c, names := g.first, strings.Join(g.tools[:min(len(g.tools), maxNamed)], ", ")
		if more := len(g.tools) - maxNamed; more > 0 {
			names += fmt.Sprintf(" and %d more", more)
		}
		who := "principal "
		if len(g.principals) > 1 {
			who = "principals "
		}
		who += strings.Join(g.principals, ", ")
		l := line{text: fmt.Sprintf("branch %s, %s: %s (%s): %s, before: %s", c.Branch, who, names, c.Effect, c.To, c.From)}
		if c.Why != "" {
			l.details = append(l.details, c.Why)
		}
		for _, r := range c.Rules {
			l.details = append(l.details, "by "+r.String())
		}
		for _, r := range c.OldRules {
			if !sameRules(c.OldRules, c.Rules) {
				l.details = append(l.details, "before, by "+r.String())
			}
		}
		lines = append(lines, l)
	}
	return lines
}

// gathered groups the elements by key, in the order in which each key first occurs.
func gathered[T any](all []T, key func(T) string) (out [][]T) {
	at := map[string]int{}
	for _, x := range all {
		k := key(x)
		i, ok := at[k]
		if !ok {
			i = len(out)
			at[k], out = i, append(out, nil)
		}
		out[i] = append(out[i], x)
	}
	return out
}

func rulePlaces(rules []decision.Rule) string {
	var b strings.Builder
	for _, r := range rules {
		b.WriteString(r.Position.String() + " ")
	}
	return b.String()
}

func trustLines(all []TrustChange) (lines []line) {
	for _, c := range all {
		l := line{text: fmt.Sprintf("%s %s (%s)", c.Kind, c.Name, c.Pos)}
		if c.To != "" {
			l.details = append(l.details, fmt.Sprintf("may reach %s by trust entry %s (%s)", c.To, c.ToEntry, c.Written))
		}
		if c.From != "" {
			l.details = append(l.details, fmt.Sprintf("before: %s by trust entry %s", c.From, c.FromEntry))
		}
		if c.Why != "" {
			l.details = append(l.details, c.Why)
		}
		for _, f := range c.Fields {
			l.details = append(l.details, f.Summary())
		}
		lines = append(lines, l)
	}
	return lines
}

// Text formats the difference for a terminal. Text from a catalog can't affect it.
func (d *Difference) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s -> %s: %s\n", d.Old, d.New, d.summary())
	for _, s := range d.sections() {
		fmt.Fprintf(&b, "\n%s\n", s.title)
		for _, l := range s.lines {
			fmt.Fprintf(&b, "  %s\n", problem.Printable(l.text))
			for _, detail := range l.details {
				fmt.Fprintf(&b, "    %s\n", problem.Printable(detail))
			}
		}
	}
	return b.String()
}

// String returns the side's name, with the commit's hash if that adds information.
func (s Side) String() string {
	if s.Commit != "" && !strings.HasPrefix(s.Commit, s.Name) {
		return fmt.Sprintf("%s (%.8s)", s.Name, s.Commit)
	}
	return s.Name
}

// maxComment caps the characters of a Markdown report, because hosts of pull requests limit comments (65,536
// characters is the lowest limit of the usual ones).
const maxComment = 60_000

// Markdown formats the difference as a comment on a pull request: a heading with the summary, and a list for
// each section. Text from the catalog is formatted as code, so that it is not markup and notifies nobody. A
// truncated comment ends with the number of omitted lines.
func (d *Difference) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "## catalogd: %s\n\n%s → %s\n", d.summary(), code(d.Old.String()), code(d.New.String()))
	left := 0
	for _, s := range d.sections() {
		fmt.Fprintf(&b, "\n### %s\n\n", s.title)
		for _, l := range s.lines {
			var item strings.Builder
			fmt.Fprintf(&item, "- %s\n", code(l.text))
			for _, detail := range l.details {
				fmt.Fprintf(&item, "  - %s\n", code(detail))
			}
			if left > 0 || b.Len()+item.Len() > maxComment {
				left++
				continue
			}
			b.WriteString(item.String())
		}
	}
	if left > 0 {
		fmt.Fprintf(&b, "\n%d more changes are left out here; `catalogd diff --format json` has them all.\n", left)
	}
	return b.String()
}

// code formats a text as a code span (CommonMark 6.1), whatever backticks it contains.
func code(s string) string {
	s = strings.Join(strings.Fields(problem.Printable(s)), " ")
	longest, run := 0, 0
	for _, r := range s {
		if r == '`' {
			run++
			longest = max(longest, run)
		} else {
			run = 0
		}
	}
	fence := strings.Repeat("`", longest+1)
	if longest > 0 {
		return fence + " " + s + " " + fence
	}
	return fence + s + fence
}
