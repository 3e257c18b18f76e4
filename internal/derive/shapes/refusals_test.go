package shapes_test

import (
	"regexp"

	"github.com/catalogd/catalogd/problem"
)

// refusals are the problems that a shape may be refused for although CUE accepts some call and has nothing against
// the args alone, each with the reason. Every other refusal of a shape that has a meaning is a fault.
var refusals = []struct {
	code    problem.Code
	message *regexp.Regexp
	reason  string
}{
	{problem.UnsupportedConstr, regexp.MustCompile(`^CUE applies list\.(MatchN|Contains) before`),
		"a required list begins as the empty list for CUE too, once #Args stands for the args"},
	{problem.UnsupportedConstr, regexp.MustCompile(`is a number that no call can send`), "JSON has no such number"},
	{problem.UnsupportedConstr, regexp.MustCompile(`^\.\.\. contradicts strictness`), "one of the two is a mistake"},
	{problem.CUEValue, regexp.MustCompile(`^Addition of lists is superseded`), "CUE has removed it"},
	{problem.CUEReference, regexp.MustCompile(`^there is no field`), "a field that only some calls bring about"},
	{problem.BadDefault, regexp.MustCompile(`^the default does not satisfy`), "it would never be filled in"},
	{problem.CUEValue, regexp.MustCompile(`^args must be a struct`), "arguments are one object"},
	{problem.BadAttribute, regexp.MustCompile(``), "it would say nothing"},
	{problem.CUEConflict, regexp.MustCompile(
		`^no value can be given here: (.*conflicting values|.*empty disjunction|explicit error|no$|invalid value)`),
		"a field that no call can bring"},
}

// mayRefuse reports whether a shape with a meaning may be refused for the problem.
func mayRefuse(p problem.Problem) bool {
	for _, r := range refusals {
		if r.code == p.Code && r.message.MatchString(p.Message) {
			return true
		}
	}
	return false
}
