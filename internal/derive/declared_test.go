package derive_test

import (
	"context"
	"encoding/json"
	"testing"

	"cuelang.org/go/cue"
	gocmp "github.com/google/go-cmp/cmp"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/internal/derive"
	"github.com/catalogd/catalogd/problem"
)

// declared is one tool's arguments: its contract, with CUE for what the schema can't say, and what CUE says by itself.
type declared struct {
	spec      contract.Spec
	positions map[string]problem.Position
	problems  problem.List
	whole     *contract.Contract
	closed    cue.Value // the arguments as CUE closes them
}

// deriveTool derives the arguments of the tool x in the value of a package.
func deriveTool(root cue.Value, strictness contract.Strictness) (contract.Spec, map[string]problem.Position, problem.List) {
	return derive.Args(derive.NewPackage(root, nil), root.LookupPath(cue.ParsePath("tools.x.args")), root.LookupPath(cue.ParsePath("tools.x.#Args")), strictness, "tools.x.args")
}

func newDeclared(t testing.TB, definitions, args string, strictness contract.Strictness) *declared {
	t.Helper()
	text := "package catalog\n\n" + imports(definitions+args) + "\n" + definitions + "\ntools: x: args: {\n" + args + "\n}\n"
	remainder := "package catalog\n\n#Remainder: tools.x.args\n"
	if strictness == contract.Open {
		remainder = "package catalog\n\n#Remainder: {tools.x.args, ...}\n"
	}
	root := build(t, map[string]string{"tools.cue": text, "z.cue": remainder})
	d := &declared{closed: root.LookupPath(cue.ParsePath("#Remainder"))}
	d.spec, d.positions, d.problems = deriveTool(root, strictness)
	if d.problems.HasErrors() {
		return d
	}
	r, err := derive.NewRemainder(root, "#Remainder")
	if err != nil {
		t.Fatal(err)
	}
	d.whole, err = contract.New(d.spec, func(_ context.Context, args json.RawMessage) (json.RawMessage, []contract.Violation, error) {
		filled, found, err := r.Check(args)
		if filled == nil {
			filled = args
		}
		return filled, found, err
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, d.spec.Schema)
	}
	return d
}

// truth is what CUE says of a call by itself.
func (d *declared) truth(call string) (string, error) { return accepted(d.closed, call) }

func same(a, b string) bool {
	var x, y any
	return json.Unmarshal([]byte(a), &x) == nil && json.Unmarshal([]byte(b), &y) == nil && gocmp.Equal(x, y)
}
