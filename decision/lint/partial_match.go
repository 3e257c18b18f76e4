package lint

import (
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/catalogd/catalogd/decision/internal/source"
	"github.com/catalogd/catalogd/problem"
)

// The built-ins that compare the ends of a text, and those that search in it.
var (
	byEnd  = []string{"startswith", "endswith", "strings.any_prefix_match", "strings.any_suffix_match"}
	within = []string{"contains", "indexof", "indexof_n", "strings.count"}
)

// partialMatch warns of comparing a part of the connection target, of a URL or a path, and of searching in a
// part of the input.
func (l *linter) partialMatch(sc *scope, terms []*ast.Term) {
	name, operands := terms[0].String(), terms[1:]
	if !slices.Contains(byEnd, name) && !slices.Contains(within, name) {
		return
	}
	warn := func(what, remedy string) {
		l.problems.Warnf(problem.SuspectMatch, source.Position(terms[0].Location), sc.pkg, "%s on %s lets lookalikes through: %s", name, what, remedy)
	}
	some := func(is func(*ast.Term) bool) bool { return slices.ContainsFunc(operands, is) }
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

// regexMatch warns of regular expressions on the input that are not anchored at both ends.
func (l *linter) regexMatch(sc *scope, terms []*ast.Term) {
	if terms[0].String() != "regex.match" || len(terms) < 3 || !l.mentions(sc, terms[2], isInput) {
		return
	}
	for _, s := range l.origins(sc, terms[1]) {
		for _, written := range l.texts(s) {
			if !anchored(written.value) {
				what := "the input"
				if l.mentions(sc, terms[2], isTarget) {
					what = "input.target"
				}
				l.problems.Warnf(problem.SuspectMatch, source.Position(terms[0].Location), sc.pkg,
					"regex.match on a part of %s lets lookalikes through: begin the expression with ^ and end it with $, around all of its alternatives", what)
				return
			}
		}
	}
}

// isInput reports whether s is a part of the input, the result apart: a result names nothing, and searching
// in it is fine.
func isInput(s origin) bool {
	return s.root == ast.InputRootDocument.Value && len(s.path) > 0 && s.path[0].name != "result"
}

func isTarget(s origin) bool { return isInput(s) && s.path[0].name == "target" }

// isAddress reports whether a term looks like a URL or an absolute path, or is an argument with such a name.
func (l *linter) isAddress(sc *scope, t *ast.Term) bool {
	for _, s := range l.origins(sc, t) {
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

// anchored reports whether a regular expression matches whole texts only. The compiler refuses invalid ones.
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
