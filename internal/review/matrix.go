package review

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/catalogd/catalogd/internal/serve"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// Columns are the headings of a matrix, in the order of Row.
var Columns = []string{"BRANCH", "PRINCIPAL", "TOOL", "ACCESS", "WHY"}

// Row is a standing as the cells of a matrix.
func Row(s serve.Standing) []string {
	return []string{s.Branch, s.Principal, s.Tool, string(s.Access), s.Why}
}

// Pick leaves the standings of the named branches and of the tools that a pattern names; no names leave all. A branch that
// is not there, or a pattern that no tool matches, is an error.
func Pick(all []serve.Standing, branches, tools []string) ([]serve.Standing, error) {
	used := map[string]bool{}
	var branchNames, toolNames []string
	picked := []serve.Standing{}
	for _, s := range all {
		inBranch := len(branches) == 0 || slices.Contains(branches, s.Branch)
		used["branch "+s.Branch] = true
		branchNames, toolNames = append(branchNames, s.Branch), append(toolNames, s.Tool)
		named := len(tools) == 0
		for _, pattern := range tools {
			if registry.MatchName(pattern, s.Tool) {
				named, used["tool "+pattern] = true, true
			}
		}
		if inBranch && named {
			picked = append(picked, s)
		}
	}
	for _, b := range branches {
		if !used["branch "+b] {
			return nil, noneCalled("branch", b, branchNames)
		}
	}
	for _, pattern := range tools {
		if !used["tool "+pattern] {
			return nil, noneCalled("tool", pattern, toolNames)
		}
	}
	return picked, nil
}

func noneCalled(what, name string, known []string) error {
	slices.Sort(known)
	if near := registry.Nearest(name, slices.Compact(known)); len(near) > 0 {
		return fmt.Errorf("there is no %s %q; did you mean %s?", what, name, strings.Join(near, " or "))
	}
	return fmt.Errorf("there is no %s %q", what, name)
}

// CSV writes a matrix as RFC 4180 has it, headings in lower case. A cell that a spreadsheet would take for a formula begins
// with an apostrophe.
func CSV(w io.Writer, all []serve.Standing) error {
	out := csv.NewWriter(w)
	out.UseCRLF = true
	if err := out.Write(strings.Split(strings.ToLower(strings.Join(Columns, ",")), ",")); err != nil {
		return err
	}
	for _, s := range all {
		row := Row(s)
		for i, cell := range row {
			if strings.HasPrefix(cell, "=") || strings.HasPrefix(cell, "+") || strings.HasPrefix(cell, "-") || strings.HasPrefix(cell, "@") {
				row[i] = "'" + cell
			}
		}
		if err := out.Write(row); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// MarkdownTable is a matrix as a table, with the text of the catalog escaped.
func MarkdownTable(all []serve.Standing) string {
	var b strings.Builder
	b.WriteString("| branch | principal | tool | access | why |\n|---|---|---|---|---|\n")
	for _, s := range all {
		b.WriteString("|")
		for _, cell := range Row(s) {
			if cell = strings.ReplaceAll(problem.Printable(cell), "|", `\|`); cell != "" {
				cell = code(cell)
			}
			b.WriteString(" " + cell + " |")
		}
		b.WriteString("\n")
	}
	return b.String()
}
