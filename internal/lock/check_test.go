package lock_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/registry"
)

// checked is what becomes of a call of a discovered tool: the arguments that its server gets, or what is wrong with them.
func checked(t *testing.T, schema string, over registry.Override, args string) string {
	t.Helper()
	j := join(t, []registry.Server{server("up", "", registry.Discover{Tools: map[string]registry.Override{"t": over}})},
		fmt.Sprintf(`{"name":"t","inputSchema":%s}`, schema))
	if len(j.Tools) != 1 {
		return fmt.Sprintf("not offered: %v", j.Degraded)
	}
	c, err := contract.New(j.Tools[0].Args, nil)
	if err != nil {
		t.Fatal(err)
	}
	got, found, err := c.Check(t.Context(), []byte(args))
	if err != nil {
		return "undecided: " + err.Error()
	}
	if found != nil {
		return strings.Trim(fmt.Sprint(found), "[]")
	}
	return string(got.JSON())
}

// What a client sends is what the server gets: a default is what the server says of itself, unless the catalog fills it in.
func TestDefaults(t *testing.T) {
	t.Parallel()
	const (
		trash    = `{"type":"object","properties":{"id":{"type":"string"},"in_trash":{"type":"boolean","default":false}},"required":["id"]}`
		misfit   = `{"type":"object","properties":{"a":{"type":"integer","default":"none"}}}`
		either   = `{"type":"object","properties":{"a":{"default":1},"b":{"default":2}},"oneOf":[{"required":["a"]},{"required":["b"]}]}`
		counted  = `{"type":"object","properties":{"a":{"default":1},"b":{"default":2}},"maxProperties":1}`
		required = `{"type":"object","properties":{"a":{"type":"integer","default":1}},"required":["a"]}`
		nested   = `{"type":"object","properties":{"o":{"type":"object","properties":{"n":{"type":"integer","default":3},"r":{"default":1}},"required":["r"]}}}`
	)
	fill := registry.Override{Fill: true}
	for _, tc := range []struct {
		name, schema string
		over         registry.Override
		args, want   string
	}{
		{"a default is not sent", trash, registry.Override{}, `{"id":"x"}`, `{"id":"x"}`},
		{"but with fill", trash, fill, `{"id":"x"}`, `{"id":"x","in_trash":false}`},
		{"what is sent stays", trash, registry.Override{}, `{"id":"x","in_trash":true}`, `{"id":"x","in_trash":true}`},
		{"one that its own schema refuses", misfit, registry.Override{}, `{}`, `{}`},
		{"beside oneOf of required", either, registry.Override{}, `{"b":7}`, `{"b":7}`},
		{"beside maxProperties", counted, registry.Override{}, `{"a":7}`, `{"a":7}`},
		{"required stays required", required, registry.Override{}, `{}`, `/a: got nothing, expected an integer (required)`},
		{"deeper", nested, registry.Override{}, `{"o":{"r":1}}`, `{"o":{"r":1}}`},
		{"deeper with fill", nested, fill, `{"o":{"r":2}}`, `{"o":{"n":3,"r":2}}`},
		{"a whole number in the digits that came", required, registry.Override{}, `{"a":2.0}`, `{"a":2.0}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := checked(t, tc.schema, tc.over, tc.args); got != tc.want {
				t.Errorf("%s of %s: got %s, want %s", tc.args, tc.schema, got, tc.want)
			}
		})
	}
}
