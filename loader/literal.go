package loader

import (
	"slices"
	"strconv"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/literal"
	"cuelang.org/go/cue/token"

	"github.com/catalogd/catalogd/internal/derive"
	"github.com/catalogd/catalogd/internal/secret"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// literals searches a file for literal secrets: in every string, comment, label and attribute of its syntax,
// whether or not it is used, each under the names that lead to it. f is nil if the file has a syntax error;
// then its lines are searched.
func (s *source) literals(f *ast.File) {
	if f == nil || s.broken {
		n := 0
		for line := range strings.Lines(string(s.data)) {
			n++
			if found, ok := secret.FindInLine(line); ok {
				s.literal(found, problem.Position{File: s.place, Line: n, Col: found.At + 1}, "")
			}
		}
		return
	}
	w := &literalWalk{source: s, tests: fixtures(s.name)}
	ast.Walk(f, w.enter, w.leave)
}

func (s *source) literal(found secret.Literal, pos problem.Position, path string) {
	s.secrets = append(s.secrets, found.Secret)
	if slices.ContainsFunc(s.secrets, func(secret string) bool { return strings.Contains(path, secret) }) {
		path = "" // a label is a path
	}
	literalProblem(&s.problems, found, pos, path)
}

func literalProblem(l *problem.List, found secret.Literal, pos problem.Position, path string) {
	l.Errorf(problem.LiteralSecret, pos, printable(path), "a secret is written out (%s); refer to it by {secret: \"env:NAME\"} or "+
		"{secret: \"file:PATH\"} in headers and env, remove it elsewhere, and revoke it, because everybody who read the file has it", found.Shown())
}

// literalWalk is the state of a walk through the syntax of one file.
type literalWalk struct {
	*source
	names []string // the labels that lead here
	tests bool     // test inputs are made up, so a name alone is no evidence
	done  map[ast.Node]bool
}

func (w *literalWalk) enter(n ast.Node) bool {
	if w.done[n] {
		return false
	}
	switch n := n.(type) {
	case *ast.ImportDecl, *ast.Package:
		return false
	case *ast.Field:
		if text := constant(n.Label); text != "" {
			w.found(secret.FindInText(text))(n.Label, "")
			w.skip(n.Label)
		}
		name, _, err := ast.LabelName(n.Label)
		if err != nil {
			name = ""
		}
		w.names = append(w.names, name)
	case *ast.LetClause:
		w.names = append(w.names, n.Ident.Name)
	case *ast.ListLit:
		w.list(n)
	case *ast.BasicLit, *ast.Interpolation:
		w.value(n, constant(n))
		if n, ok := n.(*ast.Interpolation); ok {
			for i := 1; i < len(n.Elts); i += 2 { // the interpolated expressions
				ast.Walk(n.Elts[i], w.enter, w.leave)
			}
		}
		return false
	case *ast.UnaryExpr:
		if n.Op == token.MAT || n.Op == token.NMAT {
			w.pattern(n.X)
		}
	case *ast.BinaryExpr:
		if n.Op == token.MAT || n.Op == token.NMAT {
			w.pattern(n.Y)
		}
		if n.Op == token.ADD {
			if text := constant(n); text != "" { // concatenated from parts
				w.value(n, text)
				return false
			}
		}
	case *ast.Comment:
		w.found(secret.FindInText(n.Text))(n, "")
	case *ast.Attribute:
		w.found(secret.FindInText(n.Text))(n, "")
	}
	return true
}

func (w *literalWalk) leave(n ast.Node) {
	switch n.(type) {
	case *ast.Field, *ast.LetClause:
		w.names = w.names[:len(w.names)-1]
	}
}

func (w *literalWalk) skip(n ast.Node) {
	if w.done == nil {
		w.done = map[ast.Node]bool{}
	}
	w.done[n] = true
}

// found returns a function that reports l, if ok, at a node, below the names that lead there.
func (w *literalWalk) found(found secret.Literal, ok bool) func(at ast.Node, below string) {
	return func(at ast.Node, below string) {
		if ok {
			path := strings.Join(w.names, ".")
			if below != "" {
				path = join(path, below)
			}
			w.literal(found, positionOr(derive.Position(at.Pos()), w.place), path)
		}
	}
}

// value checks a string under the last of the names.
func (w *literalWalk) value(n ast.Node, text string) {
	last := ""
	if len(w.names) > 0 {
		last = w.names[len(w.names)-1]
	}
	look := secret.FindInField
	if w.tests {
		look = func(_, text string) (secret.Literal, bool) { return secret.FindInText(text) }
	} else if len(w.names) > 1 && sent(w.names[len(w.names)-2]) {
		look = secret.FindInSetting
	}
	w.found(look(last, text))(n, "")
}

// sent reports whether the fields of a struct of that name are sent to a server or passed to a program.
func sent(name string) bool { return name == "headers" || name == "env" }

// pattern checks a regular expression, which can look like a secret under any name.
func (w *literalWalk) pattern(x ast.Expr) {
	if text := constant(x); text != "" {
		w.found(secret.FindInText(text))(x, "")
		w.skip(x)
	}
}

// list checks the arguments of a command, each together with its predecessor.
func (w *literalWalk) list(n *ast.ListLit) {
	if w.tests || len(w.names) == 0 || !slices.Contains([]string{"argv", "args", "command", shortCommand}, w.names[len(w.names)-1]) {
		return
	}
	before := ""
	for i, e := range n.Elts {
		text := constant(e)
		if text != "" {
			below := strconv.Itoa(i)
			if w.names[len(w.names)-1] == shortCommand {
				below = commandPart(i)
			}
			w.found(secret.FindInArgument(before, text))(e, below)
			w.skip(e)
		}
		before = text
	}
}

// constant returns the text of a constant string expression, with {} for each interpolated value; it is empty
// for any other expression.
func constant(n ast.Node) string {
	switch n := n.(type) {
	case *ast.BasicLit:
		if n.Kind == token.STRING {
			if text, err := literal.Unquote(n.Value); err == nil {
				return text
			}
			return n.Value
		}
	case *ast.ParenExpr:
		return constant(n.X)
	case *ast.Interpolation:
		var b strings.Builder
		for i, e := range n.Elts { // strings and expressions alternate
			if part, ok := e.(*ast.BasicLit); ok && i%2 == 0 {
				text := strings.TrimSuffix(part.Value, `\(`)
				if i == 0 {
					text = strings.TrimLeft(text, `#"'`)
				} else {
					text = strings.TrimPrefix(text, ")")
				}
				if i == len(n.Elts)-1 {
					text = strings.TrimRight(text, `#"'`)
				}
				b.WriteString(text)
			} else {
				b.WriteString("{}")
			}
		}
		return strings.NewReplacer(`\"`, `"`, `\\`, `\`).Replace(b.String())
	case *ast.BinaryExpr:
		x, y := constant(n.X), constant(n.Y)
		if n.Op == token.ADD && x != "" && y != "" {
			return x + y
		}
	}
	return ""
}

// computed searches for secrets that no string of the files contains and that evaluation assembles, in the
// fields where they would be sent.
func (r *result) computed() {
	report := func(src registry.Source, at, field string) func(secret.Literal, bool) {
		return func(found secret.Literal, ok bool) {
			if ok {
				literalProblem(&r.problems, found, src.At(field), join(at, field))
			}
		}
	}
	values := func(src registry.Source, at, field string, all map[string]registry.Value) {
		for name, v := range all {
			report(src, at, join(field, name))(secret.FindInSetting(name, v.Literal+v.Prefix))
		}
	}
	arguments := func(src registry.Source, at, field string, all []string) {
		before := ""
		for i, arg := range all {
			report(src, at, join(field, strconv.Itoa(i)))(secret.FindInArgument(before, arg))
			before = arg
		}
	}
	for _, t := range r.tools {
		at := join(toolsField, t.Name)
		if exec := t.Binding.Exec; exec != nil {
			values(t.Source, at, "binding.exec.env", exec.Env)
			arguments(t.Source, at, "binding.exec.argv", exec.Argv)
		}
		if http := t.Binding.HTTP; http != nil {
			values(t.Source, at, "binding.http.headers", http.Headers)
			values(t.Source, at, "binding.http.query", http.Query)
			report(t.Source, at, "binding.http.url")(secret.FindInText(http.URL))
			report(t.Source, at, "binding.http.select")(secret.FindInText(http.Select))
			report(t.Source, at, "binding.http.error")(secret.FindInText(http.Error))
			if pages := http.Pages; pages != nil {
				report(t.Source, at, "binding.http.pages.items")(secret.FindInText(pages.Items))
				report(t.Source, at, "binding.http.pages.url")(secret.FindInText(pages.URL))
				report(t.Source, at, "binding.http.pages.cursor")(secret.FindInText(pages.Cursor))
			}
		}
		for _, text := range []struct{ field, text string }{{"description", t.Description}, {"effectNote", t.EffectNote}, {"pre", t.Pre}, {"post", t.Post}} {
			report(t.Source, at, text.field)(secret.FindInText(text.text))
		}
	}
	for _, s := range r.servers {
		at := join(serversField, s.Name)
		if stdio := s.Stdio; stdio != nil {
			values(s.Source, at, "transport.stdio.env", stdio.Env)
			arguments(s.Source, at, "transport.stdio.args", stdio.Args)
		}
		if http := s.HTTP; http != nil {
			values(s.Source, at, "transport.http.headers", http.Headers)
			report(s.Source, at, "transport.http.url")(secret.FindInText(http.URL))
		}
	}
}
