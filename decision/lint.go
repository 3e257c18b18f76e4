package decision

import (
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/catalogd/catalogd/problem"
)

// partial are the functions that compare by a part of the text.
var partial = []string{
	"startswith", "endswith", "contains", "indexof", "strings.any_prefix_match", "strings.any_suffix_match",
}

// suspectMatches warns of rules that compare what is to be reached by a part of its text. Lookalikes fit such rules:
// https://mcp.example.com.evil begins with https://mcp.example.com, /opt/tools-evil with /opt/tools.
func suspectMatches(modules map[string]*ast.Module) problem.List {
	var problems problem.List
	for _, file := range sortedKeys(modules) {
		module := modules[file]
		warn := func(operator *ast.Term, name, remedy string) {
			problems.Warnf(problem.SuspectMatch, position(operator.Location), module.Package.Path.String(),
				"%s on a part of input.target lets lookalikes through: %s", name, remedy)
		}
		check := func(terms []*ast.Term) {
			if len(terms) < 3 {
				return
			}
			switch name := terms[0].String(); {
			case slices.Contains(partial, name) && slices.ContainsFunc(terms[1:], isTarget):
				warn(terms[0], name, "compare parts with == or in, paths with data.catalogd.lib.path.within")
			case name == "regex.match" && isTarget(terms[2]) && !anchored(terms[1]):
				warn(terms[0], name, "begin the expression with ^ and end it with $")
			}
		}
		ast.WalkExprs(module, func(x *ast.Expr) bool {
			if terms, ok := x.Terms.([]*ast.Term); ok && x.IsCall() {
				check(terms)
			}
			return false
		})
		ast.WalkTerms(module, func(t *ast.Term) bool {
			if call, ok := t.Value.(ast.Call); ok {
				check(call)
			}
			return false
		})
	}
	return problems
}

var targetRef = ast.MustParseRef("input.target")

// isTarget reports whether the term is a part of input.target.
func isTarget(t *ast.Term) bool {
	ref, ok := t.Value.(ast.Ref)
	return ok && ref.HasPrefix(targetRef)
}

// anchored reports whether an expression that is written out matches whole texts only. One that is computed may.
func anchored(t *ast.Term) bool {
	s, ok := t.Value.(ast.String)
	return !ok || strings.HasPrefix(string(s), "^") && strings.HasSuffix(string(s), "$")
}
