package decision

import (
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// perCallTracer traces one evaluation, made without rule indexes, for expressions that read fields that
// differ from call to call. An evaluation that evaluates no such expression would take the same steps to the
// same answer whatever these fields are.
//
// OPA's partial evaluation with these fields unknown would find more such answers, but the queries that it
// leaves are not equivalent to the policy: `q := input.arguments.q` becomes a condition that q is true, and a
// rule with a negation can vanish (TestCachedIsEvaluated has such rules).
type perCallTracer struct {
	fields  []string
	touched bool
	known   map[*ast.Expr]bool
}

func (b *perCallTracer) Enabled() bool               { return !b.touched }
func (b *perCallTracer) Config() topdown.TraceConfig { return topdown.TraceConfig{} }

func (b *perCallTracer) TraceEvent(event topdown.Event) {
	expr, ok := event.Node.(*ast.Expr)
	if !ok || event.Op != topdown.EvalOp {
		return
	}
	reads, known := b.known[expr]
	if !known {
		reads = b.mentions(expr)
		b.known[expr] = reads
	}
	b.touched = b.touched || reads
}

// mentions reports whether the expression mentions one of the fields anywhere in it, or the input as a whole.
func (b *perCallTracer) mentions(expr *ast.Expr) bool {
	read := newReadSet()
	read.collect(expr)
	return read.whole || slices.ContainsFunc(b.fields, func(name string) bool { return read.fields[name] != nil })
}
