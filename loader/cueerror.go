package loader

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"cuelang.org/go/cue/errors"

	"github.com/catalogd/catalogd/internal/derive"
	"github.com/catalogd/catalogd/problem"
)

// fromCUE converts one CUE error to a problem. known, if not nil, returns the position of the declaration at
// a path.
func fromCUE(e errors.Error, known func(path []string) problem.Position) problem.Problem {
	p := problem.Problem{Severity: problem.Error, Path: pathOf(e.Path()), Message: text(e)}
	var ours, schema []problem.Position
	for _, pos := range errors.Positions(e) {
		q := derive.Position(pos)
		switch {
		case !q.IsValid():
		case q.File == schemaPath:
			schema = append(schema, q)
		case !slices.Contains(ours, q):
			ours = append(ours, q)
		}
	}
	p.Code = code(p.Message, len(ours))
	switch {
	case p.Code == problem.MissingField && known != nil, len(ours) == 0 && known != nil:
		p.Position = known(e.Path())
	case len(ours) > 0:
		p.Position = ours[0]
		if p.Code == problem.CUEConflict || p.Code == problem.CUECycle {
			p.Also = ours[1:]
		}
	case len(schema) > 0:
		p.Position = schema[0]
	}
	p.Message = explain(p, e)
	return p
}

// code maps a CUE error to a code of the closed list. CUE has no error codes, so the text of the message is
// matched; the load cases in testdata cover each form.
func code(text string, places int) problem.Code {
	has := func(parts ...string) bool {
		return slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(text, p) })
	}
	switch {
	case has("field not allowed"):
		return problem.UnknownField
	case has("field is required but not present"):
		return problem.MissingField
	case has("imported and not used", "import failed", "builtin package", "cannot find package"):
		return problem.CUEImport
	case has("cycle", "cyclic"):
		return problem.CUECycle
	case strings.HasPrefix(text, "reference "), has("undefined field", "undefined value", "not found"):
		return problem.CUEReference
	case has("incomplete", "non-concrete", "unresolved disjunction"):
		return problem.CUEIncomplete
	case has("conflicting values", "mismatched types") && places > 1:
		return problem.CUEConflict
	}
	return problem.CUEValue
}

// explain rewrites a CUE error as a message that says what to do, where CUE's own does not.
func explain(p problem.Problem, e errors.Error) string {
	path := e.Path()
	last := "this"
	if len(path) > 0 {
		last = path[len(path)-1]
	}
	switch p.Code {
	case problem.MissingField:
		return fmt.Sprintf("%s is missing; write %s: ...", last, last)
	case problem.CUEIncomplete:
		return fmt.Sprintf("%s; give it a value", p.Message)
	case problem.CUEReference:
		if name, ok := strings.CutPrefix(p.Message, "undefined field: "); ok {
			return fmt.Sprintf("there is no field %q in what this refers to; declare it, or fix the name", name)
		}
	case problem.CUEValue:
		if rest, ok := strings.CutPrefix(p.Message, "invalid value [] (does not satisfy list."); ok {
			name := "list." + rest[:strings.IndexAny(rest+"(", "()")]
			return fmt.Sprintf("CUE applies %s before a call has filled the list, and then refuses every call: make the argument optional, or check it in a hidden field, as in _check: true & %s(%s, ...)",
				name, name, last)
		}
		if strings.HasPrefix(p.Message, "incompatible list lengths (0 and ") {
			return "the list is empty"
		}
		if name, ok := strings.CutPrefix(p.Message, "unreferenced alias or let clause "); ok {
			return fmt.Sprintf("nothing uses %s; remove it", name)
		}
	case problem.CUEImport:
		if name, ok := strings.CutPrefix(p.Message, "imported and not used: "); ok {
			return fmt.Sprintf("nothing uses %s; remove the import", name)
		}
		if name, ok := strings.CutPrefix(p.Message, "builtin package "); ok {
			name = strings.TrimSuffix(name, " undefined")
			return fmt.Sprintf("CUE has no standard package %s; %s", name, otherPackage(strings.Trim(name, `"`)))
		}
	}
	return p.Message
}

// fault is a problem with the CUE path that it concerns.
type fault struct {
	problem problem.Problem
	path    []string
	// alternatives: the problem covers a whole disjunction.
	alternatives bool
}

// group converts a CUE error, which may hold many errors, to problems. A disjunction, such as a field with a
// few allowed values, has one error for each alternative; they become one problem.
func group(err error, known func(path []string) problem.Position) []fault {
	var out []fault
	all := errors.Errors(err)
	for i := 0; i < len(all); i++ {
		e := all[i]
		f := fault{problem: fromCUE(e, known), path: unquoted(e.Path())}
		if strings.Contains(text(e), "errors in empty disjunction") {
			var each []errors.Error
			for i+1 < len(all) && strings.HasPrefix(pathOf(all[i+1].Path())+".", f.problem.Path+".") {
				i++
				each = append(each, all[i])
			}
			f.problem, f.alternatives = alternatives(f.problem, each), true
		}
		out = append(out, f)
	}
	return out
}

// alternatives words the errors of a disjunction as one problem.
func alternatives(p problem.Problem, each []errors.Error) problem.Problem {
	var texts []string
	placed := false
	for _, e := range each {
		q := fromCUE(e, nil)
		if !placed && q.IsValid() && q.File != schemaPath {
			p.Position, placed = q.Position, true
		}
		texts = append(texts, q.Message)
	}
	p.Code = problem.CUEValue
	p.Message = "it fits none of the alternatives"
	if len(texts) > 0 {
		p.Message += ": " + strings.Join(texts, "; ")
	}
	return p
}

// pathOf formats a CUE path in the form of problem paths: unquoted names joined by dots.
func pathOf(path []string) string { return strings.Join(unquoted(path), ".") }

func unquoted(path []string) []string {
	out := make([]string, len(path))
	for i, p := range path {
		out[i] = p
		if s, err := strconv.Unquote(p); err == nil {
			out[i] = s
		}
	}
	return out
}
