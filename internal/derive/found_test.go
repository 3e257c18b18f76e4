package derive_test

import (
	"encoding/json"
	"testing"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/internal/derive"
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
	// A bound decides between alternatives that CUE would else leave open.
	{"a bound decides a choice", "a: null | [...string] & list.MinItems(1)", `{}`, true, true},
}

func TestFound(t *testing.T) {
	t.Parallel()
	for _, f := range found {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			value := toolValue(t, f.args)
			spec, _, problems := derive.Args(value, contract.Closed, "tools.x.args")
			if problems.HasErrors() {
				t.Fatal(problems)
			}
			c, err := contract.New(spec, nil)
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
