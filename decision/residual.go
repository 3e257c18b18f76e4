package decision

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// residual is what is left of a point for one branch, tool and principal: its outputs as far as OPA's partial evaluation,
// with all unknown that a call brings, has a value for them, and queries for the others.
type residual struct {
	// settled are the outputs that no call changes; one without a value is not among them.
	settled ast.Object
	open    []openOutput
	// needs are parts of the input without which the queries may find what the policy doesn't: where q := input.arguments.q
	// stands before not q == "x", the policy goes no further without a q, and what OPA leaves of it is the negation alone,
	// which is then true.
	needs []ast.Ref
}

// openOutput is an output that a call decides: what it holds is what is known, and what its queries find for the variable
// result.
type openOutput struct {
	name string
	// set: what is found are its elements. Else it is its one value.
	set     bool
	known   ast.Set
	queries []ast.Body
}

// insert puts what was found for the output into the value of its package; false where that is no one value.
func (o openOutput) insert(document ast.Object, found ast.Set) bool {
	switch {
	case o.set:
		document.Insert(ast.StringTerm(o.name), ast.NewTerm(found))
	case found.Len() == 1:
		document.Insert(ast.StringTerm(o.name), found.Slice()[0])
	}
	return o.set || found.Len() <= 1
}

// unknowns are what each call brings anew.
func (s pointSpec) unknowns() []*ast.Term {
	terms := make([]*ast.Term, len(s.brings))
	for i, name := range s.brings {
		terms[i] = ast.NewTerm(ast.InputRootRef.Append(ast.StringTerm(name)))
	}
	return terms
}

// residual evaluates each output of the point as far as in tells, of which counts nothing that a call brings. It is nil
// where what is left can't be had as queries, or where data stands beside the rules of the package; an error of an
// evaluation says no more than that.
func (e *Engine) residual(ctx context.Context, p *asked, in reflect.Value) (*residual, error) {
	input, err := p.spec.input.value(in)
	if err != nil {
		return nil, err
	}
	if beside, err := e.data.exists([]string{"catalogd", string(p.spec.point)}); beside || err != nil {
		return nil, err
	}
	names, plain := outputRules(p)
	if !plain {
		return nil, nil
	}
	rest := &residual{settled: ast.NewObject()}
	err = e.within(ctx, func(ctx context.Context, ask asking) error {
		for _, name := range names {
			output := p.spec.path().Append(ast.StringTerm(name))
			open := openOutput{name: name, set: setOutput(p, output), known: ast.NewSet()}
			if open.set {
				// Asked for its elements, a set is left as queries rather than as a module of rules. They are what is equal to
				// an element: a query that were an element alone would not find false.
				output = output.Append(ast.VarTerm("element"))
			}
			query := ast.Equality.Expr(ast.NewTerm(result), ast.NewTerm(output))
			left, support, err := ask(p, ast.NewBody(query), input).WithUnknowns(p.spec.unknowns()).PartialRun(ctx)
			if err != nil {
				return err
			}
			if len(support) > 0 {
				rest = nil
				return nil
			}
			for _, body := range left {
				if value := ground(body); value != nil {
					open.known.Add(value)
					continue
				}
				query, err := p.compiler.QueryCompiler().Compile(body)
				if err != nil {
					return fmt.Errorf("compiling what is left of %s: %w", output, err)
				}
				open.queries = append(open.queries, query)
				rest.needs = append(rest.needs, negated(body)...)
			}
			if len(open.queries) > 0 {
				rest.open = append(rest.open, open)
			} else if !open.insert(rest.settled, open.known) {
				rest = nil
				return nil
			}
		}
		return nil
	})
	return rest, err
}

// outputRules are the outputs that the package has rules for, in order. They are not plain where a rule makes a part of
// an output by itself (rate_limit.calls := 5), or something that is no output.
func outputRules(p *asked) (names []string, plain bool) {
	length := len(p.spec.path()) + 1
	for _, rule := range p.compiler.GetRulesWithPrefix(p.spec.path()) {
		ref := rule.Ref().GroundPrefix()
		if rule.Head.RuleKind() == ast.MultiValue && len(ref) > length {
			ref = ref[:length] // deny["why"] if ... is an element of a set
		}
		if len(ref) != length || rule.Head.RuleKind() != ast.MultiValue && len(rule.Ref()) != length {
			return nil, false
		}
		name, ok := ref[length-1].Value.(ast.String)
		if !ok || !p.spec.hasOutput(string(name)) {
			return nil, false
		}
		names = append(names, string(name))
	}
	slices.Sort(names)
	return slices.Compact(names), true
}

// ground is the value that the query gives the variable result whatever is unknown; nil where that depends.
func ground(query ast.Body) *ast.Term {
	if len(query) != 1 || !query[0].IsEquality() {
		return nil
	}
	a, b := query[0].Operand(0), query[0].Operand(1)
	if b.Value.Compare(result) == 0 {
		a, b = b, a
	}
	if a.Value.Compare(result) != 0 || !ast.IsConstant(b.Value) {
		return nil
	}
	return b
}

// negated are the parts of the input that stand in a negation anywhere in the query. One with a variable in it never came
// there from before the negation.
func negated(query ast.Body) (parts []ast.Ref) {
	refs := ast.NewGenericVisitor(func(x any) bool {
		if ref, ok := x.(ast.Ref); ok && ref.HasPrefix(ast.InputRootRef) && ref.IsGround() {
			parts = append(parts, ref)
		}
		return false
	})
	ast.NewGenericVisitor(func(x any) bool {
		switch x := x.(type) {
		case *ast.Expr:
			if x.Negated {
				refs.Walk(x)
				return true
			}
		case *ast.Not:
			refs.Walk(x.Body)
			return true
		}
		return false
	}).Walk(query)
	return parts
}

// setOutput reports whether the output's rules make a set.
func setOutput(p *asked, output ast.Ref) bool {
	for _, rule := range p.compiler.GetRulesExact(output) {
		if rule.Head.RuleKind() != ast.MultiValue {
			return false
		}
	}
	return true
}

// finish decides a call by what is left. It is not ok where that does not give each output one value, or fails: the policy
// itself then says what is wrong.
func (e *Engine) finish(ctx context.Context, p *asked, rest *residual, in reflect.Value) (d Decision, ok bool) {
	defer func() {
		if recover() != nil {
			ok = false // decide meets it again, and logs it
		}
	}()
	input, err := p.spec.input.value(in)
	if err != nil {
		return Decision{}, false
	}
	for _, part := range rest.needs {
		if _, err := input.Value.Find(part[1:]); err != nil {
			return Decision{}, false
		}
	}
	document := ast.NewObject()
	rest.settled.Foreach(document.Insert)
	single := true
	err = e.within(ctx, func(ctx context.Context, ask asking) error {
		for _, open := range rest.open {
			found := open.known.Copy()
			for _, query := range open.queries {
				err := ask(p, query, input).Iter(ctx, func(r topdown.QueryResult) error {
					if term := r[result]; term != nil {
						found.Add(term)
					}
					return nil
				})
				if err != nil {
					return err
				}
			}
			single = open.insert(document, found) && single
		}
		return nil
	})
	if err != nil || !single {
		return Decision{}, false
	}
	d, _ = answer(p.spec, allowedBy(in.Interface()), document)
	return d, true
}
