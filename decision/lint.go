package decision

import (
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/catalogd/catalogd/problem"
)

// lint warns of what compiles and mostly does not mean what it says: comparing by a part of the text what lookalikes fit
// too (https://mcp.example.com.evil begins with https://mcp.example.com, /opt/tools-evil with /opt/tools), and using a
// rule that is true or nothing as if it could be false.
func lint(modules map[string]*ast.Module, data *document) problem.List {
	l := linter{follower: newFollower(modules, data)}
	l.each(func(sc *scope) {
		eachCall(sc.rule, func(terms []*ast.Term) {
			l.parts(sc, terms)
			l.expression(sc, terms)
		})
		l.missingDefault(sc)
	})
	return l.problems
}

type linter struct {
	*follower
	problems problem.List
}

// The functions that compare by a part of a text: by its ends, and by anything in it.
var (
	byEnd  = []string{"startswith", "endswith", "strings.any_prefix_match", "strings.any_suffix_match"}
	within = []string{"contains", "indexof", "indexof_n", "strings.count"}
)

// parts warns of comparing parts of what is to be reached, of URLs and paths, and of looking for a text within a part of
// the input.
func (l *linter) parts(sc *scope, terms []*ast.Term) {
	name, operands := terms[0].String(), terms[1:]
	if !slices.Contains(byEnd, name) && !slices.Contains(within, name) {
		return
	}
	warn := func(what, remedy string) {
		l.problems.Warnf(problem.SuspectMatch, position(terms[0].Location), sc.pkg, "%s on %s lets lookalikes through: %s", name, what, remedy)
	}
	some := func(holds func(*ast.Term) bool) bool { return slices.ContainsFunc(operands, holds) }
	switch {
	case some(func(t *ast.Term) bool { return l.mentions(sc, t, isTarget) }):
		warn("a part of input.target", "compare parts with == or in, paths with data.catalogd.lib.path.within")
	case slices.Contains(byEnd, name):
		if some(func(t *ast.Term) bool { return l.isAddress(sc, t) }) {
			warn("a URL or a path", "compare data.catalogd.lib.url.parts(url) by its parts, paths with data.catalogd.lib.path.within")
		}
	case l.mentions(sc, operands[0], isInput):
		warn("a part of the input", "compare with == or in, or with a regular expression that begins with ^ and ends with $")
	}
}

// expression warns of regular expressions that match a part of a text of the input.
func (l *linter) expression(sc *scope, terms []*ast.Term) {
	if terms[0].String() != "regex.match" || len(terms) < 3 || !l.mentions(sc, terms[2], isInput) {
		return
	}
	for _, s := range l.of(sc, terms[1]) {
		for _, written := range l.texts(s) {
			if !anchored(written.value) {
				what := "the input"
				if l.mentions(sc, terms[2], isTarget) {
					what = "input.target"
				}
				l.problems.Warnf(problem.SuspectMatch, position(terms[0].Location), sc.pkg,
					"regex.match on a part of %s lets lookalikes through: begin the expression with ^ and end it with $, around all of its alternatives", what)
				return
			}
		}
	}
}

// isInput reports whether s is a part of the input. What a tool answered is no name of anything, and is there to be searched.
func isInput(s stands) bool {
	return s.root == ast.InputRootDocument.Value && len(s.path) > 0 && s.path[0].name != "result"
}

func isTarget(s stands) bool { return isInput(s) && s.path[0].name == "target" }

// isAddress reports whether a term is written like a URL or an absolute path, or is an argument that is called like one.
func (l *linter) isAddress(sc *scope, t *ast.Term) bool {
	for _, s := range l.of(sc, t) {
		if isInput(s) && s.path[0].name == "arguments" && isAddressName(s.path[len(s.path)-1].name) {
			return true
		}
		if slices.ContainsFunc(l.texts(s), func(t text) bool {
			return strings.Contains(t.value, "://") || len(t.value) > 1 && strings.HasPrefix(t.value, "/")
		}) {
			return true
		}
	}
	return false
}

func isAddressName(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc([]string{"url", "uri", "href", "path", "file", "dir", "folder", "host", "origin", "domain"}, func(part string) bool {
		return strings.Contains(name, part)
	})
}

// mentions reports whether a term, or what its variables are made of, has a part for which holds is true.
func (f *follower) mentions(sc *scope, t *ast.Term, holds func(stands) bool) bool {
	return f.mention(sc, t, holds, map[ast.Var]bool{})
}

func (f *follower) mention(sc *scope, t *ast.Term, holds func(stands) bool, seen map[ast.Var]bool) bool {
	found := false
	ast.WalkTerms(t, func(part *ast.Term) bool {
		switch v := part.Value.(type) {
		case ast.Ref:
			found = found || slices.ContainsFunc(f.of(sc, part), holds)
		case ast.Var:
			found = found || slices.ContainsFunc(f.of(sc, part), holds)
			if b, ok := sc.vars[v]; ok && b.term != nil && !seen[v] {
				seen[v] = true
				found = found || f.mention(sc, b.term, holds, seen)
			}
		}
		return found
	})
	return found
}

// anchored reports whether an expression matches whole texts only. What is no expression is the compiler's to refuse.
func anchored(expression string) bool {
	re, err := syntax.Parse(expression, syntax.Perl)
	return err != nil || bounded(re, syntax.OpBeginText, 0) && bounded(re, syntax.OpEndText, 1)
}

// bounded reports whether every match of re begins (end 0) or ends (end 1) with op.
func bounded(re *syntax.Regexp, op syntax.Op, end int) bool {
	switch re.Op {
	case op:
		return true
	case syntax.OpCapture:
		return bounded(re.Sub[0], op, end)
	case syntax.OpConcat:
		return bounded(re.Sub[end*(len(re.Sub)-1)], op, end)
	case syntax.OpAlternate:
		return !slices.ContainsFunc(re.Sub, func(sub *syntax.Regexp) bool { return !bounded(sub, op, end) })
	}
	return false
}

// missingDefault warns where a rule that is true or has no value is used as a value: a comparison with false is never
// true, and what holds it has no value either.
func (l *linter) missingDefault(sc *scope) {
	warn := func(t *ast.Term, name string) {
		l.problems.Warnf(problem.MissingDefault, position(t.Location), sc.pkg,
			"%s is true or has no value, never false: write `default %s := false`, or `not %s` where that is meant", t, name, t)
	}
	eachCall(sc.rule, func(terms []*ast.Term) {
		if len(terms) != 3 || !isOperator(terms[0], ast.Equal) && !isOperator(terms[0], ast.Equality) && !isOperator(terms[0], ast.NotEqual) {
			return
		}
		for i, t := range terms[1:] {
			other := terms[2-i]
			truth, written := other.Value.(ast.Boolean)
			if name, ok := l.trueOrNothing(sc, t); ok && written && bool(truth) == isOperator(terms[0], ast.NotEqual) {
				warn(t, name)
			}
		}
	})
	collected := func(elem *ast.Term) {
		if name, ok := l.trueOrNothing(sc, elem); ok {
			warn(elem, name)
		}
	}
	ast.WalkTerms(sc.rule, func(t *ast.Term) bool {
		switch v := t.Value.(type) {
		case ast.Object:
			v.Foreach(func(_, value *ast.Term) { collected(value) })
		case *ast.Array:
			v.Foreach(collected)
		}
		return false
	})
	hasDefault := slices.ContainsFunc(l.rules[sc.pkg][ruleName(sc.rule)], func(r *ast.Rule) bool { return r.Default })
	if value := sc.rule.Head.Value; value != nil && !hasDefault {
		collected(value)
	}
}

// trueOrNothing reports whether a term is a rule or a call of a function of the policy of which every definition says
// true, under a condition, and none says what else it is. It returns the name to write a default for.
func (l *linter) trueOrNothing(sc *scope, t *ast.Term) (name string, ok bool) {
	var rules []*ast.Rule
	var head string
	switch v := t.Value.(type) {
	case ast.Var:
		if _, local := sc.vars[v]; !local {
			rules, head = l.rules[sc.pkg][string(v)], string(v)
		}
	case ast.Ref:
		if path, ok := l.function(sc, t); ok {
			rules, head = l.byPath(path)
		}
	case ast.Call:
		if path, ok := l.function(sc, v[0]); ok {
			rules, head = l.byPath(path)
			head += "(" + strings.TrimSuffix(strings.Repeat("_, ", len(v)-1), ", ") + ")"
		}
	}
	conditional := false
	for _, rule := range rules {
		value := rule.Head.Value
		if rule.Default || rule.Head.Key != nil || rule.Else != nil || value == nil || value.Value.Compare(ast.Boolean(true)) != 0 {
			return "", false
		}
		conditional = conditional || len(rule.Head.Args) > 0 || !rule.Body.Equal(ast.NewBody(ast.NewExpr(ast.BooleanTerm(true))))
	}
	return head, conditional
}
