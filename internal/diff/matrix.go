package diff

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/catalogd/catalogd/internal/generation"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// row formats one matrix entry as the cells of a row, under branch, principal, tool, access and why.
func row(s generation.AccessCell) []string {
	tool := s.Tool
	if s.Shown != "" {
		tool += " (as " + s.Shown + ")"
	}
	return []string{s.Branch, s.Principal, tool, string(s.Access), s.Why}
}

// Pick filters the entries by patterns of branches and of tools; an empty list keeps all. A pattern that matches
// nothing is an error.
func Pick(all []generation.AccessCell, branches, tools []string) ([]generation.AccessCell, error) {
	used := map[string]bool{}
	var branchNames, toolNames []string
	picked := []generation.AccessCell{}
	for _, s := range all {
		inBranch := len(branches) == 0
		for _, pattern := range branches {
			if registry.MatchName(pattern, s.Branch) {
				inBranch, used["branch "+pattern] = true, true
			}
		}
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

// CSV writes a matrix in the format of RFC 4180, with a line of headings. A cell that a spreadsheet would
// interpret as a formula is prefixed with an apostrophe.
func CSV(w io.Writer, all []generation.AccessCell) error {
	out := csv.NewWriter(w)
	out.UseCRLF = true
	if err := out.Write([]string{"branch", "principal", "tool", "access", "why"}); err != nil {
		return err
	}
	for _, s := range all {
		cells := row(s)
		for i, cell := range cells {
			if strings.HasPrefix(cell, "=") || strings.HasPrefix(cell, "+") || strings.HasPrefix(cell, "-") || strings.HasPrefix(cell, "@") {
				cells[i] = "'" + cell
			}
		}
		if err := out.Write(cells); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// MarkdownTable formats a matrix as a table, with text from the catalog escaped.
func MarkdownTable(all []generation.AccessCell) string {
	var b strings.Builder
	b.WriteString("| branch | principal | tool | access | why |\n|---|---|---|---|---|\n")
	for _, s := range all {
		b.WriteString("|")
		for _, cell := range row(s) {
			if cell = strings.ReplaceAll(problem.Printable(cell), "|", `\|`); cell != "" {
				cell = code(cell)
			}
			b.WriteString(" " + cell + " |")
		}
		b.WriteString("\n")
	}
	return b.String()
}
