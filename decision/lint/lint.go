// Package lint analyses policies without running them: it reads parsed Rego modules and the policy's data.
// Package decision imports it, and hands in the little that needs an evaluation (ArgumentCheck.Evaluate,
// Coverage).
//
// # Model
//
// A Policy holds the modules, the data and the decision points that ask them. Four analyses build on each
// other:
//
//   - dataflow (scope.go, origins.go) says where the value of a term may come from: a path of the input, a
//     path of the data, a literal or a partial rule. It follows local variables, some and every, imports,
//     parameters and rules, to a fixed depth. What it can't follow has no origins, and a check that needs one
//     stays silent: it may miss a mistake, and does not report one that is none.
//   - definedness says which terms have a value for every input. What it can't follow may be undefined, so a
//     check that asks for defined terms reports too much rather than too little.
//   - polarity says in which direction a rule moves decisions: where it holds, more is allowed (permits),
//     less is allowed (restricts), or either (mixed: its value is counted, compared or handed to a function).
//     Negation swaps the first two.
//   - effects says the same of one more rule or value, for Changes: only uses that are certainly monotone
//     count, any other leaves the effect Undecided.
//
// # Checks at every load
//
//   - Check, suspect_match: a part of a text is compared (startswith, contains, a regular expression without
//     ^ and $) where a match permits something, so that lookalikes pass. It needs the origin of an operand,
//     and can miss one.
//   - Check, missing_default: a rule that is true or undefined, never false, is used as a value. Exact but
//     for rules that are only reached by computed names.
//   - Check, suspect_negation: `not` over a term that may be undefined. The compiler evaluates such a term
//     before the negation, and the whole rule is undefined where it has no value. That is an error where the
//     undefined rule would let something through, a warning where that is not clear. It follows definedness,
//     and can report a term that is always defined.
//   - UnconditionalAllows: a rule that allows depends on nothing of the input. It follows rules,
//     packages and functions, and stays silent where any of them may read the input.
//   - SchemaArguments: the schema of json.match_schema and json.verify_schema is a constant, refers to
//     nothing but itself and is small (SchemaTermSize). What can't be followed is refused, so nothing else
//     passes.
//   - References: a rule, package or function that doesn't exist, and data that no file gives. Exact but for
//     computed references, which it doesn't follow.
//   - UnreadData: no module reads a top-level key of the data. A computed reference to data silences it.
//
// # Checks against a catalog
//
//   - CheckNames: a name of the input is compared with a text that the catalog doesn't have. Silent where the
//     origin is unknown.
//   - CheckArguments: rules about arguments are type-checked by OPA against the schemas of the tools that
//     they can be about. Which tools those are is evaluated, and never too few.
//   - Coverage: rules that were true for nothing that is declared. It counts what evaluations reached, and
//     judges only rules that something needs to be true; see Policy.NewCoverage.
//   - UnusedTrust: a trust entry through which nothing is reached.
//
// # Changes
//
// Changes pairs the rules and values of two policies and classifies each difference by its form, for any
// input. Hints are inputs on both sides of the conditions of a policy, for whoever compares two policies by
// asking them.
package lint

import (
	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/catalogd/catalogd/problem"
)

// Check reports expressions that compile and mostly don't mean what they say: suspect_match, missing_default
// and suspect_negation. An error refuses the policy.
func (p *Policy) Check() problem.List {
	l := linter{dataflow: newDataflow(p.Modules, p.Data)}
	polarities := l.polarities(p.Points)
	l.each(func(sc *scope) {
		l.visitRule(sc.rule, polarities[sc.rule], visitor{call: func(terms []*ast.Term, s polarity) {
			if s&(permits|mixed) != 0 {
				l.partialMatch(sc, terms)
				l.regexMatch(sc, terms)
			}
		}})
		l.missingDefault(sc)
	})
	return append(l.problems, p.negations(polarities)...)
}

type linter struct {
	*dataflow
	problems problem.List
}
