package review

import (
	"fmt"
	"slices"
	"strings"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/problem"
)

// line is one change in words, and what belongs below it.
type line struct {
	text    string
	details []string
}

// section is a heading with its lines.
type section struct {
	title string
	lines []line
}

// sections are what a person reads of a difference, the gravest first. Empty ones are left out.
func (d *Difference) sections() []section {
	all := []section{
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
	}
	return slices.DeleteFunc(all, func(s section) bool { return len(s.lines) == 0 })
}

// summary is the difference in one line.
func (d *Difference) summary() string {
	if d.Empty() {
		return "nothing differs"
	}
	var parts []string
	for _, c := range []struct {
		n          int
		one, other string
	}{
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
	if d.PolicyChanged {
		parts = append(parts, "the policy differs")
	}
	if len(parts) == 0 {
		parts = []string{"servers or branches differ"}
	}
	if d.Breaking() {
		parts = append(parts, "BREAKING")
	}
	return strings.Join(parts, ", ")
}

func declaredLines(all []Declared) (lines []line) {
	for _, d := range all {
		lines = append(lines, line{text: fmt.Sprintf("%s (%s)", d.Name, d.Pos)})
	}
	return lines
}

func toolLines(all []ToolChange) (lines []line) {
	for _, c := range all {
		l := line{text: fmt.Sprintf("%s (%s)", c.Name, c.Pos)}
		if c.Breaking {
			l.text += " BREAKING"
		}
		for _, f := range c.Fields {
			l.details = append(l.details, f.Summary())
		}
		lines = append(lines, l)
	}
	return lines
}

// maxNamed is how many tools a line names for people; JSON has them all.
const maxNamed = 20

// accessLines puts together what differs for the same reason: a rule that opens a hundred tools is one line.
func accessLines(all []AccessChange) (lines []line) {
	type group struct {
		first AccessChange
		tools []string
	}
	var groups []*group
	byKey := map[string]*group{}
	for _, c := range all {
		key := strings.Join([]string{c.Branch, c.Principal, string(c.From), string(c.To), c.Effect, c.Why, rulePlaces(c.Rules)}, "\x00")
		g, ok := byKey[key]
		if !ok {
			g = &group{first: c}
			byKey[key] = g
			groups = append(groups, g)
		}
		g.tools = append(g.tools, c.Tool)
	}
	for _, g := range groups {
		c, names := g.first, strings.Join(g.tools[:min(len(g.tools), maxNamed)], ", ")
		if more := len(g.tools) - maxNamed; more > 0 {
			names += fmt.Sprintf(" and %d more", more)
		}
		l := line{text: fmt.Sprintf("branch %s, principal %s: %s (%s): %s, before: %s", c.Branch, c.Principal, names, c.Effect, c.To, c.From)}
		if c.Why != "" {
			l.details = append(l.details, c.Why)
		}
		for _, r := range c.Rules {
			l.details = append(l.details, "by "+r.String())
		}
		lines = append(lines, l)
	}
	return lines
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
		lines = append(lines, l)
	}
	return lines
}

// Text is the difference for a terminal. What a catalog wrote can do nothing to it.
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

// String is the side's name, and the commit's where that says more.
func (s Side) String() string {
	if s.Commit != "" && !strings.HasPrefix(s.Commit, s.Name) {
		return fmt.Sprintf("%s (%.8s)", s.Name, s.Commit)
	}
	return s.Name
}

// maxComment is how many characters a Markdown report has at most, because hosts of pull requests take no longer comment
// (65,536 characters is the least that any of the usual ones takes).
const maxComment = 60_000

// Markdown is the difference as a comment on a pull request: a heading with the summary, and a list a section. Text of the
// catalog stands there as code, so that it is no markup and notifies nobody. What is too long for a comment ends with how
// many lines are left out.
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

// code is a text as a code span (CommonMark 6.1), whatever backticks it holds.
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
