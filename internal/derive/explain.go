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

// explanation collects the errors of one call, one violation for each position.
type explanation struct {
	*Remainder
	value  cue.Value // the call, unified with the declaration
	object map[string]any
	found  []contract.Violation
	at     map[string]int // index in found, by pointer
}

// explain converts an error of CUE to violations: one for each position, with everything that is expected
// there as the author wrote it. The text of CUE's messages is not used, because it contains values. A value
// about which CUE can give no details is still refused.
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

// whole describes the arguments in general, for when nothing more precise is known.
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

// error adds the violations of one CUE error.
func (x *explanation) error(e cueerrors.Error) {
	path := x.path(e)
	format, arguments := e.Msg()
	switch {
	case strings.HasPrefix(format, "field not allowed"):
		x.add(path, x.got(path, x.secrets || hidden(x.value, path)), x.undeclared(path)) // the key may be a misspelt secret
		return
	case strings.HasPrefix(format, "cannot reference optional field"), strings.HasPrefix(format, "required field missing"):
		if x.optional(path, e, arguments) {
			return
		}
	}
	if reason := x.refusal(e); reason != "" {
		x.add(path, "", reason)
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
		// CUE does not report which constraint failed: use the position's own.
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

// own returns the constraints at positions, or, if there are several, those of the path itself.
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

// refusal returns the author's text where a call reaches error("...") or _|_: the message, or the condition
// that must not hold. An interpolated message may contain values, and is not shown.
func (x *explanation) refusal(e cueerrors.Error) (reason string) {
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
					reason = "arguments for which " + condition + " is not true"
				}
			case *ast.CallExpr:
				if id, ok := n.Fun.(*ast.Ident); ok && id.Name == "error" && id.Node == nil && len(n.Args) == 1 {
					if lit, ok := n.Args[0].(*ast.BasicLit); ok {
						if text, err := literal.Unquote(lit.Value); err == nil {
							reason = "what the tool demands: " + clip(text)
						}
					} else if condition != "" {
						reason = "arguments for which " + condition + " is not true"
					}
				}
			}
			return reason == ""
		}, nil)
		if reason != "" {
			return reason
		}
	}
	return ""
}

// needs adds the arguments to which a constraint at path refers and which the call omits, and reports whether
// there are any.
func (x *explanation) needs(path []string, c constraint) (missing bool) {
	for _, name := range x.absent(x.value, path, c) {
		missing = true
		x.add(name, "", fmt.Sprintf("a value, which %s needs", c.text))
	}
	return missing
}

// undeclared describes what is expected at a key that this call must not have: the condition under which it
// is allowed.
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

// guardsOf returns the conditions under which a file declares a name.
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

// optional adds an argument that a condition or constraint requires and the call omits.
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

// around returns the text of the condition or constraint at a position of the package.
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

// hiddenStep reports whether a step of a path is a hidden field and not a key of the call.
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

// hiddenCheck adds a check in a hidden field, which no call can send: the error is in the arguments that it
// reads.
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
			got = append(got, strings.Join(ref, ".")+" "+x.describeArgument(full))
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

// describeArgument describes an argument's value in this call, and a secret only as such.
func (x *explanation) describeArgument(full []string) string {
	value, _ := walkTo(x.value, full)
	if text := x.replacement(full); text != "" {
		return text
	}
	data, err := value.MarshalJSON()
	if err != nil {
		return "incomplete"
	}
	return clip(string(data))
}

// both joins two expectations of one position.
func both(a, b string) string {
	switch {
	case a == "":
		return b
	case b == "" || strings.Contains(a, b):
		return a
	}
	return a + " and " + b
}

// path returns the path of an error, below the arguments.
func (r *Remainder) path(e cueerrors.Error) []string {
	path := e.Path()
	if len(path) >= 3 && path[0] == "tools" { // CUE found it at the arguments, and not in their definition
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

// got describes the value received at a path: of a secret, or of a value that contains one, only the type.
func (x *explanation) got(path []string, secret bool) string {
	came, ok := sent(x.object, path)
	if !ok {
		return "nothing"
	}
	return contract.Describe(came, secret)
}

// sent returns the value received at a path.
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

// replacement returns the replacement for the value at a path if that is a secret, or CUE may have derived it from
// one.
func (x *explanation) replacement(path []string) string {
	if hidden(x.value, path) {
		return "a secret"
	}
	if _, ok := sent(x.object, path); !ok && x.secrets {
		return "filled in"
	}
	return ""
}
