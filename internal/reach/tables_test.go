package reach_test

import (
	"fmt"
	"testing"

	"github.com/open-policy-agent/opa/v1/rego"

	"github.com/catalogd/catalogd/decision/trust"
	"github.com/catalogd/catalogd/internal/reach"
)

// TestPolicyKnowsNoInterpreterThatReachDoesNot keeps the two tables together: a command that the shipped policy takes for
// one that runs what it is given is one here too.
func TestPolicyKnowsNoInterpreterThatReachDoesNot(t *testing.T) {
	t.Parallel()
	const query = `data.catalogd.lib.command.launchers | object.keys(data.catalogd.lib.command.interpreters)`
	answer, err := rego.New(rego.Query(query), rego.Load([]string{"../../policy"}, nil)).Eval(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(answer) != 1 {
		t.Fatalf("%s: %v", query, answer)
	}
	names, ok := answer[0].Expressions[0].Value.([]any)
	if !ok || len(names) < 50 {
		t.Fatalf("%s: %v", query, answer)
	}
	for _, name := range names {
		name := fmt.Sprint(name)
		for _, args := range [][]string{nil, {"-x"}, {"{script}"}} {
			if reach.InlineCode(trust.Command{Declared: name, Path: "/usr/bin/" + name, Args: args}) == "" {
				t.Errorf("%s %v", name, args)
			}
		}
	}
}
