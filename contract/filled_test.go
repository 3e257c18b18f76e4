package contract_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/contract"
)

// TestFilledNumberTooLarge: a number that CUE computes and JSON can't hand on refuses the arguments, which would come to the
// same at every try.
func TestFilledNumberTooLarge(t *testing.T) {
	t.Parallel()
	spec := contract.Spec{
		Schema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}`), Strictness: contract.Closed,
		Fields:    []contract.Field{{Name: "n", Types: []string{"integer"}, Required: true}, {Name: "p", Types: []string{"number"}, Computed: true}},
		Remainder: &contract.Remainder{Path: "tools.x.args"},
	}
	c, err := contract.New(spec, func(context.Context, json.RawMessage) (json.RawMessage, []contract.Violation, error) {
		return json.RawMessage(`{"n":1,"p":1` + strings.Repeat("0", 400) + `}`), nil, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	_, found, err := c.Check(t.Context(), json.RawMessage(`{"n":1}`))
	const want = "/p: got nothing, expected arguments of which CUE computes a number that a 64-bit float can hold"
	if err != nil || len(found) != 1 || found[0].String() != want {
		t.Errorf("got %v, %v, want %s", found, err, want)
	}
}

// TestRedactFilled: what CUE fills in beside a secret, and is not declared to the contract, is not shown.
func TestRedactFilled(t *testing.T) {
	t.Parallel()
	spec := contract.Spec{
		Schema: json.RawMessage(`{"type":"object","properties":{"pw":{"type":"string","writeOnly":true},"n":{"type":"integer"}},"required":["pw"]}`), Strictness: contract.Closed,
		Fields:    []contract.Field{{Name: "pw", Types: []string{"string"}, Required: true, Secret: true}, {Name: "n", Types: []string{"integer"}}},
		Remainder: &contract.Remainder{Path: "tools.x.args"},
	}
	c, err := contract.New(spec, func(context.Context, json.RawMessage) (json.RawMessage, []contract.Violation, error) {
		return json.RawMessage(`{"pw":"hunter2","n":1,"header":"HUNTER2"}`), nil, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	args, found, err := c.Check(t.Context(), json.RawMessage(`{"pw":"hunter2","n":1}`))
	if err != nil || len(found) > 0 {
		t.Fatal(found, err)
	}
	const want = `{"header":"REDACTED","n":1,"pw":"REDACTED"}`
	if got := string(c.Redact(args).JSON()); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
