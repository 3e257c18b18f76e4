// Package doctor looks at the machine that a daemon is to run on: its state directory, its limits and its clock.
// Each check returns findings; an error is something that keeps a daemon from starting or from working, a warning
// something that costs it a part of that. Nothing is written and nothing is dialled.
package doctor

import (
	"fmt"

	"github.com/catalogd/catalogd/problem"
)

// Finding is what a check found out.
type Finding struct {
	// Check names the check, such as "state".
	Check string `json:"check"`
	// Severity is "ok", "warning" or "error".
	Severity string `json:"severity"`
	// Where is the directory, address, file or setting that was looked at.
	Where string `json:"where"`
	// Message says what was found, Fix what to do; Fix is empty if there is nothing to do.
	Message string `json:"message"`
	Fix     string `json:"fix,omitempty"`
}

// OK, Warning and Error are the severities of findings.
const (
	OK      = "ok"
	Warning = "warning"
	Error   = "error"
)

// Lines returns the finding as text: a line, and another with what to do.
func (f Finding) Lines() []string {
	lines := []string{problem.Printable(fmt.Sprintf("%-7s  %-8s  %s: %s", f.Severity, f.Check, f.Where, f.Message))}
	if f.Fix != "" {
		lines = append(lines, problem.Printable(fmt.Sprintf("%19sfix: %s", "", f.Fix)))
	}
	return lines
}

// bytesText formats a number of bytes in MiB.
func bytesText(n uint64) string { return fmt.Sprintf("%d MiB", n>>20) }
