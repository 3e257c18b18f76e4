package diff

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/catalogd/catalogd/internal/generation"
	"github.com/catalogd/catalogd/problem"
)

// Table is an access matrix for people: a row for each tool, and a column for each branch or principal.
type Table struct {
	// ByPrincipal makes a table for each branch, with the principals as columns; otherwise there is one for
	// each principal, with the branches as columns.
	ByPrincipal bool
	// Visible leaves out the rows whose tool is hidden in every column, and counts them.
	Visible bool
	// Width is how many terminal columns a line may take; 0 means any number, and less than narrowest is
	// that. Columns that don't fit follow in another block of the same rows, and longer names continue on the
	// next line.
	Width int
}

// Legend explains the marks in the cells of a Table, in one line of 78 terminal columns.
const Legend = "call: runs; if: it depends; ask: after approval; list: no call runs; -: hidden"

// whyNot says where the reasons are, if a mark is anything but call.
const whyNot = "why: --format csv, or catalogd explain BRANCH TOOL --principal NAME"

var marks = map[generation.Access]string{
	generation.Callable: "call",
	generation.Depends:  "if",
	generation.Approval: "ask",
	generation.Refused:  "list",
	generation.Hidden:   "-",
}

// narrowest is the least width for which a table is laid out, and gap the spaces between two of its columns.
const (
	narrowest = 40
	gap       = 2
)

// Write writes the tables of a matrix, a legend, and where the reasons are. Text from the catalog can neither
// start a line of its own nor affect the terminal.
func (t Table) Write(w io.Writer, all []generation.AccessCell) error {
	if t.Width > 0 {
		t.Width = max(t.Width, narrowest)
	}
	var b strings.Builder
	var titles []string
	tables := map[string][]generation.AccessCell{}
	for _, s := range all {
		title := "principal " + s.Principal
		if t.ByPrincipal {
			title = "branch " + s.Branch
		}
		if tables[title] == nil {
			titles = append(titles, title)
		}
		tables[title] = append(tables[title], s)
	}
	for _, title := range titles {
		t.line(&b, problem.Printable(title))
		b.WriteString("\n")
		t.table(&b, tables[title])
	}
	notes := []string{Legend}
	if slices.ContainsFunc(all, func(s generation.AccessCell) bool { return s.Why != "" }) {
		notes = append(notes, whyNot)
	}
	for _, note := range notes {
		t.line(&b, note)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// line writes a printable text, in several lines if it does not fit.
func (t Table) line(b *strings.Builder, text string) {
	for _, line := range wrap(text, t.Width) {
		b.WriteString(line + "\n")
	}
}

// table writes the blocks of one table, each with an empty line after it.
func (t Table) table(b *strings.Builder, cells []generation.AccessCell) {
	var heads, tools []string
	marked := map[[2]string]string{}
	seen := map[string]bool{}
	for _, s := range cells {
		head := s.Branch
		if t.ByPrincipal {
			head = s.Principal
		}
		if !slices.Contains(heads, head) {
			heads = append(heads, head)
		}
		mark := marks[s.Access]
		if s.Shown != "" && s.Visible() {
			mark += " as " + problem.Printable(s.Shown)
		}
		marked[[2]string{s.Tool, head}] = mark
		if _, ok := seen[s.Tool]; !ok {
			tools = append(tools, s.Tool)
		}
		seen[s.Tool] = seen[s.Tool] || s.Visible()
	}
	left := 0
	if t.Visible {
		before := len(tools)
		tools = slices.DeleteFunc(tools, func(tool string) bool { return !seen[tool] })
		left = before - len(tools)
	}
	slices.Sort(tools)
	columns := [][]string{{"TOOL"}}
	for _, tool := range tools {
		columns[0] = append(columns[0], problem.Printable(tool))
	}
	for _, head := range heads {
		column := []string{problem.Printable(head)}
		for _, tool := range tools {
			column = append(column, marked[[2]string{tool, head}])
		}
		columns = append(columns, column)
	}
	if len(tools) > 0 {
		t.blocks(b, columns)
	}
	if left > 0 {
		const rest = "left out: %d of %d tools, hidden in every column; shown without --visible"
		t.line(b, fmt.Sprintf(rest, left, left+len(tools)))
		b.WriteString("\n")
	}
}

// blocks writes as many columns side by side as fit, after the first, and then the next ones.
func (t Table) blocks(b *strings.Builder, columns [][]string) {
	widths := make([]int, len(columns))
	for i, column := range columns {
		for _, cell := range column {
			widths[i] = max(widths[i], columnsOf(cell))
		}
	}
	if t.Width > 0 {
		others := 0
		for _, w := range widths[1:] {
			others += gap + w
		}
		widths[0] = min(widths[0], max(t.Width/2, t.Width-others)) // a tool's name goes on below only to make room
		for i := range widths[1:] {
			widths[1+i] = min(widths[1+i], t.Width-widths[0]-gap)
		}
	}
	for next := 1; next < len(columns); {
		block, used := []int{0}, widths[0]
		for next < len(columns) && (len(block) == 1 || t.Width == 0 || used+gap+widths[next] <= t.Width) {
			block, used = append(block, next), used+gap+widths[next]
			next++
		}
		for row := range columns[0] {
			var lines [][]string
			for _, i := range block {
				lines = append(lines, wrap(columns[i][row], widths[i]))
			}
			join(b, lines, block, widths)
		}
		b.WriteString("\n")
	}
}

// join writes one row: the lines of its cells beside each other.
func join(b *strings.Builder, cells [][]string, block, widths []int) {
	for n, more := 0, true; more; n++ {
		more = false
		var line strings.Builder
		for i, cell := range cells {
			text := ""
			if n < len(cell) {
				text = cell[n]
			}
			more = more || n+1 < len(cell)
			line.WriteString(text + strings.Repeat(" ", widths[block[i]]-columnsOf(text)+gap))
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
}
