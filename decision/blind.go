package decision

import (
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// blind watches one evaluation, made without rule indexes, for an expression that reads what a call brings. An evaluation
// that has met none has not looked at it: it would have gone the same way, to the same answer, whatever that is.
//
// OPA's own partial evaluation would find more of these answers, whatever the order of a rule's conditions, and leaves
// queries where there is none. But what it leaves is not what the policy says: of `q := input.arguments.q` it leaves a
// condition that q is true, and before a negation nothing at all (TestSettledIsEvaluated has such rules).
type blind struct {
	brings  []string
	touched bool
	known   map[*ast.Expr]bool
}

func (b *blind) Enabled() bool               { return !b.touched }
func (b *blind) Config() topdown.TraceConfig { return topdown.TraceConfig{} }

func (b *blind) TraceEvent(event topdown.Event) {
	expr, ok := event.Node.(*ast.Expr)
	if !ok || event.Op != topdown.EvalOp {
		return
	}
	reads, known := b.known[expr]
	if !known {
		reads = b.reads(expr)
		b.known[expr] = reads
	}
	b.touched = b.touched || reads
}

// reads reports whether the expression mentions what a call brings anywhere in it, or the input as a whole.
func (b *blind) reads(expr *ast.Expr) (found bool) {
	input := ast.InputRootDocument.Value
	var visitor *ast.GenericVisitor
	visitor = ast.NewGenericVisitor(func(x any) bool {
		switch x := x.(type) {
		case ast.Ref:
			if len(x) == 0 || x[0].Value.Compare(input) != 0 {
				return found
			}
			if len(x) == 1 {
				found = true
				return true
			}
			name, ok := x[1].Value.(ast.String)
			found = found || !ok || slices.Contains(b.brings, string(name))
			for _, term := range x[2:] { // input.branch.labels[input.arguments.q]
				visitor.Walk(term)
			}
			return true
		case ast.Var:
			found = found || x.Compare(input) == 0
		}
		return found
	})
	visitor.Walk(expr)
	return found
}
