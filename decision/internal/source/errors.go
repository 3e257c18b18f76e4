package source

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/agnivade/levenshtein"
	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/catalogd/catalogd/problem"
)

// Problems converts OPA's errors to problems. file is the position of an error that has none.
func Problems(err error, file, pkg string) problem.List {
	var problems problem.List
	var errs ast.Errors
	if !errors.As(err, &errs) {
		var one *ast.Error
		if !errors.As(err, &one) {
			problems.Errorf(problem.RegoCompile, problem.Position{File: file}, pkg, "%v", err)
			return problems
		}
		errs = ast.Errors{one}
	}
	for i, e := range errs {
		if i > 0 && follows(e, errs[i-1]) {
			continue
		}
		code, pos := problem.RegoCompile, Position(e.Location)
		if e.Code == ast.ParseErr {
			code = problem.RegoSyntax
		}
		if !pos.IsValid() {
			pos.File = file
		}
		problems.Errorf(code, pos, pkg, "%s", Explain(e))
	}
	return problems
}

// Explain is an error's message and details in one line, with remedies for Rego v0 and other common mistakes.
func Explain(e *ast.Error) string {
	message := e.Message
	switch {
	case strings.Contains(message, "`if` keyword is required"):
		return message + ": this is Rego v0; add `if` in front of the body"
	case strings.Contains(message, "`contains` keyword is required"):
		return message + ": this is Rego v0; write `deny contains reason if { ... }`"
	case e.Code == ast.UnsafeVarErr:
		if meant, ok := e.Details.(Meant); ok {
			return message + ": nothing gives it a value; " + string(meant)
		}
		return message + ": nothing gives it a value; fix the name, import it, declare it with `some ... in`, or quote it where it is a text"
	case strings.Contains(message, "unexpected eof token"):
		return message + ": the file ends inside a rule; close what is open, mostly with a }"
	case e.Code == ast.ParseErr:
		return message + misread(e)
	case strings.Contains(message, "undefined ref: input.time."):
		return message + ": input.time is a text, and time.clock(time.parse_rfc3339_ns(input.time)) is [hour, minute, second] in UTC"
	case e.Details == nil:
		return message
	}
	var details []string
	for _, line := range e.Details.Lines() {
		if line = strings.TrimSpace(line); line != "" && strings.Trim(line, "^") != "" && !strings.HasSuffix(message, line) {
			details = append(details, line)
		}
	}
	if len(details) == 0 {
		return message
	}
	return message + " (" + strings.Join(details, "; ") + ")" + cmp.Or(meant(e.Details), mistyped(message, details))
}

// DidYouMean is the end of a message about an unknown name: the most similar known ones, or empty.
func DidYouMean(written string, known map[string]bool) string {
	near := nearest(written, known)
	if len(near) == 0 {
		return ""
	}
	return fmt.Sprintf("; did you mean %s?", strings.Join(near, " or "))
}

// Position is the position of a location; the zero Position for nil.
func Position(l *ast.Location) problem.Position {
	if l == nil {
		return problem.Position{}
	}
	return problem.Position{File: l.File, Line: l.Row, Col: l.Col}
}

// nearest are the known names with the least edit distance, quoted, at most three; none where none is close.
func nearest(written string, known map[string]bool) (best []string) {
	least := max(2, len(written)/4)
	for _, name := range SortedKeys(known) {
		d := levenshtein.ComputeDistance(strings.ToLower(written), strings.ToLower(name))
		if name == "" || d > least || d >= len(name) {
			continue
		}
		if d < least {
			best = nil
		}
		if least = d; len(best) < 3 {
			best = append(best, strconv.Quote(name))
		}
	}
	return best
}
