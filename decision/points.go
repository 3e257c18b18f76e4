package decision

import (
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
)

// pointSpec is what the engine knows about a decision point.
type pointSpec struct {
	point Point
	// input is nil for the points that this version doesn't ask.
	input *shape
	// outputs are the rules that the package may have beside allow and deny.
	outputs []string
	// brings are the fields of the input that each call brings anew; what is asked without a call has none.
	brings []string
	// load marks the package that is asked when a policy is loaded; it has neither allow nor deny.
	load bool
	// optional marks an enforced point whose package may be missing: its answer is then no.
	optional bool
}

// The outputs that say yes: allow of what the point is about, the others of what servers pass on beside their tools.
const (
	allowPlain    = "allow"
	allowResource = "allow_resource"
	allowPrompt   = "allow_prompt"
)

// allowedBy is the output that answers an input.
func allowedBy(in any) string {
	if passed, ok := in.(interface{ allowedBy() string }); ok {
		return passed.allowedBy()
	}
	return allowPlain
}

// checkSpec is data.catalogd.check, no decision point: its problems are what is wrong with the policy's data.
var checkSpec = pointSpec{point: "check", outputs: []string{"problems"}, load: true}

// points holds every decision point, in the order of the documentation. A point with an input is enforced: without its
// package nothing loads, unless it is optional.
var points = []pointSpec{
	{point: Connect, input: shapeOf[ConnectInput](), outputs: []string{"trust", "env", "max_connections", "interpreter", "addresses", "sha256", "withheld"}},
	{point: Discover, input: shapeOf[DiscoverInput](), outputs: []string{"quarantine"}, optional: true},
	{point: List, input: shapeOf[ListInput](), outputs: []string{allowResource, allowPrompt}},
	{point: Call, input: shapeOf[CallInput](), outputs: []string{allowResource, allowPrompt, "timeout", "require_approval", "rate_limit", "relay", "elicitation_hosts"}, brings: []string{"arguments", "time", "rate"}},
	{point: Result, input: shapeOf[ResultInput](), outputs: []string{"redact", "max_bytes"}, brings: []string{"arguments", "time", "result"}},
	{point: Release},
	{point: Adopt, input: shapeOf[AdoptInput]()},
}

func specOf(point Point) (pointSpec, bool) {
	i := slices.IndexFunc(points, func(s pointSpec) bool { return s.point == point })
	if i < 0 {
		return pointSpec{}, false
	}
	return points[i], true
}

func (s pointSpec) enforced() bool { return s.input != nil }

func (s pointSpec) allOutputs() []string {
	if s.load {
		return s.outputs
	}
	return append([]string{allowPlain, "deny"}, s.outputs...)
}

func (s pointSpec) hasOutput(name string) bool {
	return !s.load && (name == allowPlain || name == "deny") || slices.Contains(s.outputs, name)
}

// path is the point's package, data.catalogd.<point>.
func (s pointSpec) path() ast.Ref {
	return ast.Ref{ast.DefaultRootDocument, ast.StringTerm("catalogd"), ast.StringTerm(string(s.point))}
}

// Points are the points that this version asks.
func Points() []Point {
	var asked []Point
	for _, s := range points {
		if s.enforced() {
			asked = append(asked, s.point)
		}
	}
	return asked
}
