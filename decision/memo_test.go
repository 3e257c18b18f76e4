package decision

import (
	"slices"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
	"pgregory.net/rapid"
)

// TestMemoIsTheEvaluatorsCache: a memo answers whatever is put into it as the evaluator's own cache does, and a memo that was
// used before as one that was not.
func TestMemoIsTheEvaluatorsCache(t *testing.T) {
	t.Parallel()
	terms := []*ast.Term{
		ast.StringTerm("a"), ast.StringTerm("b"), ast.IntNumberTerm(1), ast.NumberTerm("1.0"), ast.BooleanTerm(true), ast.NullTerm(),
		ast.ArrayTerm(ast.StringTerm("a")), ast.ObjectTerm(ast.Item(ast.StringTerm("a"), ast.IntNumberTerm(1))), ast.SetTerm(ast.StringTerm("a")),
	}
	rapid.Check(t, func(rt *rapid.T) {
		ref := func() ast.Ref {
			tail := rapid.SliceOfN(rapid.SampledFrom(terms), 0, 3).Draw(rt, "reference")
			return append(ast.Ref{ast.DefaultRootDocument}, tail...)
		}
		keys := func(c topdown.VirtualCache) ast.Set {
			all := ast.NewSet()
			for _, key := range c.Keys() {
				all.Add(ast.NewTerm(key))
			}
			return all
		}
		m := &memo{newest: map[int]int{}, frames: []int{0}}
		for range rapid.IntRange(1, 3).Draw(rt, "evaluations") {
			want, depth := topdown.NewVirtualCache(), 1
			var done []string
			for range rapid.IntRange(1, 40).Draw(rt, "steps") {
				switch step := rapid.SampledFrom([]string{"push", "pop", "put", "put", "put", "put nothing"}).Draw(rt, "step"); {
				case step == "push":
					m.Push()
					want.Push()
					depth++
				case step == "pop" && depth > 1:
					m.Pop()
					want.Pop()
					depth--
				case strings.HasPrefix(step, "put"):
					var value *ast.Term
					if step == "put" {
						value = rapid.SampledFrom(terms).Draw(rt, "value")
					}
					at := ref()
					want.Put(slices.Clone(at), value)
					m.Put(at, value)
					done = append(done, at.String())
					at[len(at)-1] = ast.StringTerm("reused") // as the evaluator does
				}
				at := ref()
				wantValue, wantUndefined := want.Get(at)
				value, undefined := m.Get(at)
				if wantUndefined != undefined || !wantValue.Equal(value) {
					rt.Fatalf("%v is %v, %v, want %v, %v; put %v", at, value, undefined, wantValue, wantUndefined, done)
				}
				if want, got := keys(want), keys(m); want.Compare(got) != 0 {
					rt.Fatalf("there are %v, want %v; put %v", got, want, done)
				}
			}
			m.reset()
			if len(m.newest) > 0 {
				rt.Fatalf("%d references are remembered for the next evaluation", len(m.newest))
			}
		}
	})
}
