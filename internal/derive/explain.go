package derive

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	cueerrors "cuelang.org/go/cue/errors"
	"cuelang.org/go/cue/literal"
	"cuelang.org/go/cue/token"

	"github.com/catalogd/catalogd/contract"
)

// explanation collects what is wrong with one call, one violation for each place.
type explanation struct {
	*Remainder
	value  cue.Value // the call, joined with what is declared
	object map[string]any
	found  []contract.Violation
	at     map[string]int // found by pointer
}

// explain makes violations of an error of CUE: one for each place, with all that is expected there as the author wrote it.
// No words of CUE are passed on, for they hold values. A value that CUE can't be asked about further is refused all the same.
func (r *Remainder) explain(v cue.Value, object map[string]any, err error) (found []contract.Violation) {
	x := explanation{r, v, object, nil, map[string]int{}}
	defer func() {
		if recover() != nil {
			found = append(x.found, contract.Violation{Got: contract.Describe(object, r.secrets), Expected: r.whole()})
		}
	}()
	for _, e := range cueerrors.Errors(err) {
		x.error(e)
	}
	for i, f := range x.found {
		if f.Expected == "" {
			x.found[i].Expected = r.whole()
		}
	}
	return x.found
}

// whole is what is expected of arguments of which nothing closer can be said.
func (r *Remainder) whole() string {
	if written := conjuncts(cue.Dereference(r.value)); len(written) == 1 && structLit(meant(written[0])) == nil {
		return read(written[0]).text
	}
	return "other values: these contradict the constraints between the tool's arguments"
}

func (x *explanation) add(path []string, got, expected string) {
	const most = 100
	p := pointer(path)
	if i, ok := x.at[p]; ok {
		if len(x.found[i].Expected) < 2*maxConstraint {
			x.found[i].Expected = both(x.found[i].Expected, expected)
		}
		return
	}
	if len(x.found) < most {
		if got == "" {
			got = x.got(path, hidden(x.value, path))
		}
		x.at[p] = len(x.found)
		x.found = append(x.found, contract.Violation{Pointer: p, Got: got, Expected: expected})
	}
}

// error adds what one error of CUE says.
func (x *explanation) error(e cueerrors.Error) {
	path := x.path(e)
	format, arguments := e.Msg()
	switch {
	case strings.HasPrefix(format, "field not allowed"):
		x.add(path, x.got(path, x.secrets || hidden(x.value, path)), x.undeclared(path)) // a secret may be misspelt
		return
	case strings.HasPrefix(format, "cannot reference optional field"), strings.HasPrefix(format, "required field missing"):
		if x.optional(path, e, arguments) {
			return
		}
	}
	if said := x.refusal(e); said != "" {
		x.add(path, "", said)
		return
	}
	if i := slices.IndexFunc(path, func(step string) bool { return strings.HasPrefix(step, "_") || strings.HasPrefix(step, "#") }); i >= 0 && x.hiddenStep(path, i) {
		x.hiddenCheck(path[:i], path[i], e)
		return
	}
	missing := false
	var expected string
	for _, c := range x.own(path, append([]token.Pos{e.Position()}, e.InputPositions()...)) {
		missing = x.needs(path, c) || missing
		expected = both(expected, x.worded(path, c))
	}
	if expected == "" && !missing {
		// CUE does not say which constraint it was: the place's own.
		for _, at := range []cue.Value{declared(x.Remainder.value, path), first(walkTo(x.value, path))} {
			if expected == "" && !missing && at.Exists() && at.Source() != nil {
				c := x.constraint(at.Source().Pos())
				missing = x.needs(path, c)
				expected = x.worded(path, c)
			}
		}
	}
	if !missing {
		x.add(path, "", expected)
	}
}

func first(v cue.Value, _ bool) cue.Value { return v }

// own are the constraints at positions, of several those of the place itself.
func (x *explanation) own(path []string, positions []token.Pos) (out []constraint) {
	var mine []constraint
	for _, pos := range positions {
		c := x.constraint(pos)
		if c.text == "" {
			continue
		}
		out = append(out, c)
		if len(path) > 0 && c.field == path[len(path)-1] && c.text != "an object" {
			mine = append(mine, c)
		}
	}
	if len(mine) > 0 {
		return mine
	}
	if texts := slices.DeleteFunc(slices.Clone(out), func(c constraint) bool { return c.text == "an object" }); len(texts) > 0 {
		return texts
	}
	return out
}

// refusal is what the author says where a call meets error("...") or _|_: the text, or the condition that must not hold.
// A text that is put together may hold values, and is not told.
func (x *explanation) refusal(e cueerrors.Error) (said string) {
	for _, pos := range append([]token.Pos{e.Position()}, e.InputPositions()...) {
		f := x.files[pos.Filename()]
		if f == nil {
			continue
		}
		condition := ""
		ast.Walk(f, func(n ast.Node) bool {
			if n.Pos().Filename() != pos.Filename() || pos.Offset() < n.Pos().Offset() || pos.Offset() >= n.End().Offset() {
				_, file := n.(*ast.File)
				return file
			}
			switch n := n.(type) {
			case *ast.Comprehension:
				condition = strings.TrimPrefix(clauses(n), "if ")
			case *ast.BottomLit:
				if condition != "" {
					said = "arguments for which " + condition + " is not true"
				}
			case *ast.CallExpr:
				if id, ok := n.Fun.(*ast.Ident); ok && id.Name == "error" && id.Node == nil && len(n.Args) == 1 {
					if lit, ok := n.Args[0].(*ast.BasicLit); ok {
						if text, err := literal.Unquote(lit.Value); err == nil {
							said = "what the tool demands: " + clip(text)
						}
					} else if condition != "" {
						said = "arguments for which " + condition + " is not true"
					}
				}
			}
			return said == ""
		}, nil)
		if said != "" {
			return said
		}
	}
	return ""
}

// needs adds the arguments that a constraint at path refers to and the call leaves out, and reports whether there are any.
func (x *explanation) needs(path []string, c constraint) (missing bool) {
	for _, name := range x.absent(x.value, path, c) {
		missing = true
		x.add(name, "", fmt.Sprintf("a value, which %s needs", c.text))
	}
	return missing
}

// undeclared is what is expected at a key that is none of this call's: the condition under which it would be one.
func (x *explanation) undeclared(path []string) string {
	if len(path) == 0 {
		return ""
	}
	var conditions []string
	for _, f := range x.files {
		for _, c := range guardsOf(f, path[len(path)-1]) {
			if !slices.Contains(conditions, c) {
				conditions = append(conditions, c)
			}
		}
	}
	slices.Sort(conditions)
	if len(conditions) == 0 || len(conditions) > 3 {
		return "nothing: with the other arguments of this call there is no such argument"
	}
	return "nothing: it is an argument only " + strings.Join(conditions, ", or ")
}

// guardsOf are the conditions under which a file declares a name.
func guardsOf(f *ast.File, name string) (out []string) {
	ast.Walk(f, func(n ast.Node) bool {
		c, ok := n.(*ast.Comprehension)
		if !ok {
			return true
		}
		if lit, ok := c.Value.(*ast.StructLit); ok {
			for _, e := range lit.Elts {
				if field, ok := e.(*ast.Field); ok {
					if label, _, err := ast.LabelName(field.Label); err == nil && label == name {
						out = append(out, clauses(c))
					}
				}
			}
		}
		return true
	}, nil)
	return out
}

// optional adds an argument that a condition or constraint asks for and the call leaves out.
func (x *explanation) optional(path []string, e cueerrors.Error, arguments []any) bool {
	if len(arguments) == 0 {
		return false
	}
	name := fmt.Sprint(arguments[0])
	if text, err := literal.Unquote(name); err == nil {
		name = text
	}
	full, ok := x.resolve(x.value, append(slices.Clone(path), ""), []string{name})
	if !ok {
		if full, ok = x.resolve(x.value, path, []string{name}); !ok {
			return false
		}
	}
	needs := "which another argument of this tool needs"
	for _, pos := range append([]token.Pos{e.Position()}, e.InputPositions()...) {
		if text := x.around(pos); text != "" {
			needs = "which " + text + " needs"
			break
		}
	}
	x.add(full, "", "a value, "+needs)
	return true
}

// around is the condition or constraint at a position of the package.
func (x *explanation) around(pos token.Pos) (text string) {
	f := x.files[pos.Filename()]
	if f == nil || pos.Filename() == "schema.cue" {
		return ""
	}
	ast.Walk(f, func(n ast.Node) bool {
		if c, ok := n.(*ast.IfClause); ok && c.Pos().Offset() <= pos.Offset() && pos.Offset() < c.End().Offset() {
			text = "if " + clip(sourceText(c.Condition))
		}
		return true
	}, nil)
	if text == "" {
		text = x.constraint(pos).text
	}
	return text
}

// hiddenStep reports whether a step of a path is a hidden field's and no key of the call.
func (x *explanation) hiddenStep(path []string, i int) bool {
	var at any = x.object
	for _, step := range path[:i] {
		m, ok := at.(map[string]any)
		if !ok {
			return true
		}
		at = m[step]
	}
	m, ok := at.(map[string]any)
	if !ok {
		return true
	}
	_, sent := m[path[i]]
	return !sent
}

// hiddenCheck adds a check in a hidden field, which no call can give: what is wrong is in the arguments that it reads.
func (x *explanation) hiddenCheck(above []string, name string, e cueerrors.Error) {
	for _, pos := range append([]token.Pos{e.Position()}, e.InputPositions()...) {
		c := x.constraint(pos)
		if c.text == "" || len(c.refers) == 0 {
			continue
		}
		var got []string
		for _, ref := range c.refers {
			full, ok := x.resolve(x.value, append(slices.Clone(above), ""), ref)
			if !ok {
				continue
			}
			if _, present := walkTo(x.value, full); !present {
				x.add(full, "", fmt.Sprintf("a value, which %s needs", c.text))
				return
			}
			got = append(got, strings.Join(ref, ".")+" "+x.said(full))
		}
		if len(got) > 0 {
			text := strings.TrimPrefix(c.text, "true & ")
			if strings.HasPrefix(text, "(") && strings.HasSuffix(text, ")") && strings.Count(text, "(") == 1 {
				text = text[1 : len(text)-1]
			}
			x.add(above, strings.Join(got, ", "), text)
			return
		}
	}
	x.add(above, "", "arguments that satisfy "+name)
}

// said is an argument's value in this call, and of a secret only that it is one.
func (x *explanation) said(full []string) string {
	value, _ := walkTo(x.value, full)
	if text := x.untold(full); text != "" {
		return text
	}
	data, err := value.MarshalJSON()
	if err != nil {
		return "incomplete"
	}
	return clip(string(data))
}

// both joins two expectations of one place.
func both(a, b string) string {
	switch {
	case a == "":
		return b
	case b == "" || strings.Contains(a, b):
		return a
	}
	return a + " and " + b
}

// path is where an error is, below the arguments.
func (r *Remainder) path(e cueerrors.Error) []string {
	path := e.Path()
	if len(path) >= 3 && path[0] == "tools" { // CUE found it where the arguments stand, and not in their definition
		path = path[2:]
	}
	if len(path) < r.depth {
		return nil
	}
	path = slices.Clone(path[r.depth:])
	for i, name := range path {
		if text, err := literal.Unquote(name); err == nil {
			path[i] = text
		}
	}
	return path
}

// got says what came at a path: of a secret, or of what holds one, no more than its kind.
func (x *explanation) got(path []string, secret bool) string {
	came, ok := sent(x.object, path)
	if !ok {
		return "nothing"
	}
	return contract.Describe(came, secret)
}

// sent is what came at a path.
func sent(object map[string]any, path []string) (came any, ok bool) {
	came = object
	for _, name := range path {
		switch below := came.(type) {
		case map[string]any:
			if came, ok = below[name]; !ok {
				return nil, false
			}
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(below) {
				return nil, false
			}
			came = below[i]
		default:
			return nil, false
		}
	}
	return came, true
}

// untold is what is said instead of the value at a path where that is a secret, or CUE may have made it of one.
func (x *explanation) untold(path []string) string {
	if hidden(x.value, path) {
		return "a secret"
	}
	if _, ok := sent(x.object, path); !ok && x.secrets {
		return "filled in"
	}
	return ""
}
