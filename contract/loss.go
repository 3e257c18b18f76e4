package contract

// The kinds of constraints that a schema can't express. The list is closed: programs switch over it, and
// docs/arguments.md has a row for each.
const (
	// LossCrossField is a bound or condition that depends on another argument: `end!: >start`.
	LossCrossField LossKind = "cross_field"
	// LossGuard is an `if` whose condition is more than a comparison of arguments with constants:
	// `if a > b {...}`.
	LossGuard LossKind = "guard"
	// LossExpression is a value that is computed, inside the arguments or from them, in a way that no keyword
	// expresses.
	LossExpression LossKind = "expression"
	// LossChoice is a disjunction whose alternatives JSON Schema distinguishes otherwise than CUE.
	LossChoice LossKind = "choice"
	// LossPattern is a regular expression with another meaning in ECMA-262, which clients read.
	LossPattern LossKind = "pattern"
	// LossValidator is a call of a builtin, such as list.IsSortedStrings(), that no keyword corresponds to.
	LossValidator LossKind = "validator"
	// LossFormat is a builtin such as time.Duration whose keyword, if there is one, accepts more.
	LossFormat LossKind = "format"
	// LossBound is a bound or an exclusion for which keywords exist only for other types: `>"a"`, `!=null`.
	LossBound LossKind = "bound"
	// LossNumber is the difference between 1 and 1.0, which JSON does not make: `float`.
	LossNumber LossKind = "number"
	// LossName is a rule over the names of fields: a pattern other than [string] and [=~"..."], or a name
	// that is computed.
	LossName LossKind = "name"
	// LossMessage is error("..."), whose alternative no call satisfies, and whose text only CUE reports.
	LossMessage LossKind = "message"
	// LossFixed is a rule of a tool's schema, such as an anyOf, that also mentions an argument that a branch
	// fixes. The tool's own contract enforces it.
	LossFixed LossKind = "fixed"
)

// LossKinds returns every kind, in the order of the documentation.
func LossKinds() []LossKind {
	return []LossKind{LossCrossField, LossGuard, LossExpression, LossChoice, LossPattern, LossValidator, LossFormat, LossBound, LossNumber, LossName, LossMessage, LossFixed}
}
