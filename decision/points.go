package decision

import (
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/catalogd/catalogd/decision/internal/shape"
)

// pointSpec is what the engine knows about a decision point.
type pointSpec struct {
	point Point
	// input is what the point is asked with; nil for the packages that are no decision points.
	input *shape.Shape
	// outputs are the rules that the package may have beside allow and deny.
	outputs []string
	// perCall are the fields of the input that differ from call to call; none at a point without calls.
	perCall []string
	// load marks a package that decides nothing, log or check: it has neither allow nor deny.
	load bool
	// optional marks a point whose package may be missing: it then denies.
	optional bool
}

// The outputs that allow: tools, and the resources and prompts of servers.
const (
	allowPlain    = "allow"
	allowResource = "allow_resource"
	allowPrompt   = "allow_prompt"
)

// inquiry is what the engine itself reads of an input.
type inquiry struct {
	// yes is the output that allows it.
	yes string
	// writes says that it is about a call of a tool with a side effect.
	writes bool
}

func inquiryOf(in any) inquiry {
	q := inquiry{yes: allowPlain}
	switch in := in.(type) {
	case ListInput:
		q.yes = allowName(in.Resource, in.Prompt)
	case CallInput:
		q.yes = allowName(in.Resource, in.Prompt)
		q.writes = q.yes == allowPlain && in.Tool.Effect == "write"
	}
	return q
}

func allowName(r *Resource, p *Prompt) string {
	switch {
	case r != nil:
		return allowResource
	case p != nil:
		return allowPrompt
	}
	return allowPlain
}

// checkSpec is data.catalogd.check, no decision point: its problems are what is wrong with the policy's data.
var checkSpec = pointSpec{point: "check", outputs: []string{"problems"}, load: true}

// points are the decision points, in the order of the documentation. A policy without the package of one does
// not load, unless it is optional.
var points = []pointSpec{
	{point: Connect, input: shape.Of[ConnectInput](), outputs: []string{"trust", "env", "from_call", "stdin", "headers", "secrets", "max_connections", "interpreter", "unpinned", "in_tree", "addresses", "sha256"}},
	{point: Discover, input: shape.Of[DiscoverInput](), outputs: []string{"quarantine"}, optional: true},
	{point: List, input: shape.Of[ListInput](), outputs: []string{allowResource, allowPrompt}},
	{point: Call, input: shape.Of[CallInput](), outputs: []string{allowResource, allowPrompt, "timeout", "require_approval", "rate_limit", "relay", "elicitation_hosts"}, perCall: []string{"arguments", "time", "rate"}},
	{point: Result, input: shape.Of[ResultInput](), outputs: []string{"redact", "redact_patterns", "max_bytes"}, perCall: []string{"arguments", "time", "result"}},
	{point: Release, input: shape.Of[ReleaseInput](), perCall: []string{"arguments", "intent", "time"}, optional: true},
	{point: Adopt, input: shape.Of[AdoptInput]()},
}

func specOf(point Point) (pointSpec, bool) {
	i := slices.IndexFunc(points, func(s pointSpec) bool { return s.point == point })
	if i < 0 {
		return pointSpec{}, false
	}
	return points[i], true
}

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

// Points are the decision points.
func Points() []Point {
	var all []Point
	for _, s := range points {
		all = append(all, s.point)
	}
	return all
}
