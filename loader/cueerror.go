package loader

import (
	"fmt"
	"slices"
	"strings"

	"cuelang.org/go/cue/errors"

	"github.com/catalogd/catalogd/problem"
)

// fromCUE makes a problem of one error of CUE. known, if there is one, gives the position of what stands at a path.
func fromCUE(e errors.Error, known func(path []string) problem.Position) problem.Problem {
	p := problem.Problem{Severity: problem.Error, Path: pathOf(e.Path()), Message: text(e)}
	var ours, schema []problem.Position
	for _, pos := range errors.Positions(e) {
		q := position(pos)
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

// code sorts an error of CUE into the closed list. CUE has no codes of its own, so its words have to do; the load cases
// in testdata hold each of them.
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
	case has("reference ", "undefined field", "undefined value", "unreferenced alias", "not found"):
		return problem.CUEReference
	case has("incomplete", "non-concrete", "unresolved disjunction"):
		return problem.CUEIncomplete
	case has("conflicting values", "mismatched types") && places > 1:
		return problem.CUEConflict
	}
	return problem.CUEValue
}

// explain puts an error of CUE in words that say what to do, where CUE's own don't.
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
		if name, ok := strings.CutPrefix(p.Message, "reference "); ok {
			return fmt.Sprintf("nothing is called %s; declare it, import it, or mend the name", strings.TrimSuffix(name, " not found"))
		}
	}
	return p.Message
}

// group makes problems of an error of CUE that may hold many, one for each path: a disjunction, such as a field with a
// few allowed values, has an error for each alternative, which together say one thing.
func group(err error, known func(path []string) problem.Position) problem.List {
	var order []string
	byPath := map[string][]errors.Error{}
	for _, e := range errors.Errors(err) {
		p := pathOf(e.Path())
		if _, ok := byPath[p]; !ok {
			order = append(order, p)
		}
		byPath[p] = append(byPath[p], e)
	}
	var out problem.List
	for _, path := range order {
		errs := byPath[path]
		if !strings.Contains(text(errs[0]), "errors in empty disjunction") {
			for _, e := range errs {
				out = append(out, fromCUE(e, known))
			}
			continue
		}
		out = append(out, alternatives(errs, known))
	}
	return out
}

// alternatives makes one problem of the errors of a disjunction.
func alternatives(errs []errors.Error, known func(path []string) problem.Position) problem.Problem {
	p := fromCUE(errs[0], known)
	if len(errs) == 1 {
		p.Message = "the value fits none of the alternatives"
		return p
	}
	var each []string
	for _, e := range errs[1:] {
		q := fromCUE(e, known)
		if !p.IsValid() || p.File == schemaPath {
			p.Position = q.Position
		}
		each = append(each, q.Message)
	}
	p.Code = problem.CUEValue
	p.Message = "the value fits none of the alternatives: " + strings.Join(each, "; ")
	return p
}

// pathOf writes a CUE path as the problems' paths are written: names joined by dots, as they are.
func pathOf(path []string) string {
	out := make([]string, len(path))
	for i, p := range path {
		out[i] = strings.Trim(p, `"`)
	}
	return strings.Join(out, ".")
}
