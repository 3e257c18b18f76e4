package derive_test

import (
	"encoding/json"
	"testing"

	"github.com/catalogd/catalogd/contract"
)

// found are what the oracle has found and shrunk: args, a call, and what CUE and the schema say to it.
var found = []struct {
	name, args, call string
	cue, schema      bool
}{
	// CUE v0.17.1 forgets that structs inside are closed once a guard asks for the list that holds them. Read as a
	// definition, they are closed, and so says the schema.
	{"a guard opens a list's structs", "mode!: \"fast\" | \"slow\"\ng?: [...{a?: int} & {b?: string}]\nif mode == \"fast\" {g!: _}", `{"mode":"fast","g":[{"c":1}]}`, true, false},
	{"the same without the guard", "mode!: \"fast\" | \"slow\"\ng?: [...{a?: int} & {b?: string}]", `{"mode":"fast","g":[{"c":1}]}`, false, false},
	// A choice inside of a choice is one more way in which a call may be ambiguous to CUE.
	{"a choice in a choice", "#U: null | {a?: int}\nx?: #U | {b?: int}", `{"x":{}}`, false, true},
	{"a choice that a call has to fill, joined", "m!: string\ng?: int | {a?: int} & struct.MinFields(1)\nif m == \"f\" {g!: _}", `{"m":"f","g":{}}`, false, false},
	{"the same, filled", "m!: string\ng?: int | {a?: int} & struct.MinFields(1)\nif m == \"f\" {g!: _}", `{"m":"f","g":{"a":1}}`, true, true},
	// A bound decides between alternatives that CUE would else leave open.
	{"a bound decides a choice", "a: null | [...string] & list.MinItems(1)", `{}`, true, true},
}

func TestFound(t *testing.T) {
	t.Parallel()
	for _, f := range found {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			value := toolValue(t, f.args)
			spec, _, problems := deriveTool(value, contract.Closed)
			if problems.HasErrors() {
				t.Fatal(problems)
			}
			if f.schema && !f.cue && len(spec.Losses) == 0 {
				t.Errorf("the schema is wider than CUE and declares no loss: %s", spec.Schema)
			}
			alone := spec
			alone.Losses, alone.Remainder = nil, nil
			c, err := contract.New(alone, nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := accepted(value, f.call); (err == nil) != f.cue {
				t.Errorf("CUE: %v", err)
			}
			if _, wrong := check(c, json.RawMessage(f.call)); (len(wrong) == 0) != f.schema {
				t.Errorf("schema %s: %v", spec.Schema, wrong)
			}
		})
	}
}
