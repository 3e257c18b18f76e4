package registry_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// order is a write tool with arguments of each kind, and a key.
func order(key string, change ...func(*registry.Tool)) registry.Tool {
	return tool("order", append([]func(*registry.Tool){func(t *registry.Tool) {
		t.Effect, t.IdempotencyKey = registry.Write, key
		t.Args = contract.Spec{
			Schema: json.RawMessage(`{"type":"object","properties":{"order_id":{"type":"string"},"line":{"type":"integer"},` +
				`"rush":{"type":"boolean","default":false},"note":{"type":"string"},"items":{"type":"array"}},` +
				`"required":["order_id","line","items"],"additionalProperties":false}`),
			Strictness: contract.Closed,
			Fields: []contract.Field{
				{Name: "order_id", Types: []string{"string"}, Required: true}, {Name: "line", Types: []string{"integer"}, Required: true},
				{Name: "rush", Types: []string{"boolean"}, Default: json.RawMessage("false")}, {Name: "note", Types: []string{"string"}},
				{Name: "items", Types: []string{"array"}, Required: true},
			},
		}
		t.Fields = map[string]problem.Position{
			"idempotencyKey": {File: "catalog/order.cue", Line: 11}, "idempotent": {File: "catalog/order.cue", Line: 12},
			"args.order_id": {File: "catalog/order.cue", Line: 13}, "result": {File: "catalog/order.cue", Line: 14},
		}
	}}, change...)...)
}

// What only a tool with a side effect may declare, and what none may, is reported at its place.
func TestWhatAWriteToolDeclares(t *testing.T) {
	t.Parallel()
	reads := func(t *registry.Tool) { t.Effect = registry.Read }
	idempotent := func(t *registry.Tool) { t.Idempotent = true }
	retried := func(t *registry.Tool) {
		t.Binding = registry.Binding{HTTP: &registry.HTTP{Method: "POST", URL: "https://a.example/", Retry: &registry.Retry{Max: 1}}}
	}
	discovered := func(t *registry.Tool) {
		t.Binding = registry.Binding{MCP: &registry.MCP{Server: "shop", Tool: "order"}}
		t.Annotations = json.RawMessage(`{}`)
	}
	secret := func(t *registry.Tool) { t.Args.Fields[0].Secret = true }
	secretResult := func(t *registry.Tool) {
		s := spec()
		s.Schema = json.RawMessage(`{"type":"object","properties":{"city":{"type":"string","writeOnly":true}},"required":["city"],"additionalProperties":false}`)
		t.Result = &s
	}
	for name, tc := range map[string]struct {
		tool registry.Tool
		want string // of no problem nothing
	}{
		"all that it may":                      {order("order-{order_id}/{line} {rush}", idempotent), ""},
		"nothing":                              {order(""), ""},
		"braces":                               {order("{order_id}{{line}}{ }"), ""},
		"idempotent of a read tool":            {order("", reads, idempotent), `catalog/order.cue:12: contradictory_field: tools.order.idempotent: idempotent is for tools with effect: "write", and this one has effect: "read"; leave it out, or say effect: "write"`},
		"a key of a read tool":                 {order("{order_id}", reads), `catalog/order.cue:11: contradictory_field: tools.order.idempotencyKey: idempotencyKey is for tools with effect: "write"`},
		"idempotent of a read that is retried": {order("", reads, idempotent, retried), ""},
		"of one that is discovered":            {order("", reads, idempotent, discovered), "or say `catalogd lock --effect write order`"},
		"a misspelt argument":                  {order("{order_di}"), `catalog/order.cue:11: bad_placeholder: tools.order.idempotencyKey: there is no argument "order_di"; did you mean "order_id"?`},
		"an optional argument":                 {order("{order_id}{note}"), `argument "note" is optional and has no default, so an idempotency key could miss it; make it required (note!:) or give it a default`},
		"a list":                               {order("{items}"), `argument "items" can be an array, which is not a part of an idempotency key; use string, int, number or bool`},
		"no argument":                          {order("order_id"), `the idempotency key "order_id" has no argument in it`},
		"no argument but in braces":            {order("{{order_id}}"), `the idempotency key "{order_id}" has no argument in it`},
		"too long":                             {order(strings.Repeat("k", 256) + "{order_id}"), `the idempotency key can't be 257 bytes long: it may have 256`},
		"a line break":                         {order("a\n{order_id}"), `can't be a text with a control character`},
		"a blank in front":                     {order(" {order_id}"), `can't be a text that begins or ends with a blank`},
		"a secret argument":                    {order("", secret), `catalog/order.cue:13: stored_secret: tools.order.args.order_id: args.order_id is declared as a secret`},
		"a secret result":                      {order("", secretResult), `catalog/order.cue:14: stored_secret: tools.order.result.city: result.city is declared as a secret`},
		"a secret of a tool that only reads":   {order("", reads, secret, secretResult), ""},
	} {
		_, problems := registry.New(&registry.Build{Tools: []registry.Tool{tc.tool}}, bindEcho, nil, nil)
		if got := fmt.Sprint(problems); len(problems) > 1 || (tc.want == "") != (len(problems) == 0) || !strings.Contains(got, tc.want) {
			t.Errorf("%s: got %v, want %s", name, problems, tc.want)
		}
		if _, err := open(t).With(tc.tool, registry.Bound{Invoker: echo{}}, nil, false); (err == nil) != (tc.want == "") {
			t.Errorf("%s: added to a registry: %v", name, err)
		}
	}
}

func key(t testing.TB, template, args string) (string, *registry.Error) {
	t.Helper()
	e, _ := open(t, order(template)).Lookup("order")
	checked, violations, err := e.Contract().Check(t.Context(), json.RawMessage(args))
	if violations != nil || err != nil {
		t.Fatal(violations, err)
	}
	got, err := e.IdempotencyKey(checked)
	var refused *registry.Error
	if err != nil && !errors.As(err, &refused) {
		t.Fatalf("%T is no *registry.Error", err)
	}
	return got, refused
}

// The key of a call is made of its checked arguments, defaults and digits as they are.
func TestIdempotencyKey(t *testing.T) {
	t.Parallel()
	const args = `{"order_id":"a-1","line":7,"items":[]}`
	for template, want := range map[string]string{
		"": "", "{order_id}": "a-1", "order-{order_id}-{line}": "order-a-1-7", "{rush}": "false", "{{line}}{line}": "{line}7",
	} {
		if got, err := key(t, template, args); err != nil || got != want {
			t.Errorf("%s: got %q %v, want %q", template, got, err, want)
		}
	}
	for name, tc := range map[string]struct{ template, args, want string }{
		"empty":            {"order-{order_id}", `{"order_id":"","line":7,"items":[]}`, "/order_id: got an empty string, expected a string that is not empty, because it is a part of the tool's idempotency key"},
		"too long":         {"{line}-{order_id}", `{"order_id":"` + strings.Repeat("é", 128) + `","line":7,"items":[]}`, "/order_id: got 256 bytes, expected 2 bytes less"},
		"a line break":     {"{line}-{order_id}", `{"order_id":"a\r\nHost: x","line":7,"items":[]}`, "/order_id: got a string with a control character"},
		"a blank in front": {"{order_id}{line}", `{"order_id":" a","line":7,"items":[]}`, "/order_id: got a string that begins with a blank"},
		"a blank behind":   {"{line}{order_id}", `{"order_id":"a\u00a0","line":7,"items":[]}`, "/order_id: got a string that ends with a blank"},
	} {
		got, err := key(t, tc.template, tc.args)
		if err == nil || err.Code != registry.InvalidArguments || len(err.Violations) != 1 || !strings.Contains(err.Msg, tc.want) {
			t.Errorf("%s: got %q %v, want %s", name, got, err, tc.want)
		}
	}
	longest := strings.Repeat("é", 128)
	if got, err := key(t, "{order_id}", `{"order_id":"`+longest+`","line":7,"items":[]}`); err != nil || got != longest {
		t.Errorf("256 bytes: got %q %v", got, err)
	}
}

// Whatever the arguments are: what comes out is a key by CheckIdempotencyKey, or an error that names one of them.
func TestIdempotencyKeyOfAnyArguments(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		template := rapid.SampledFrom([]string{"{order_id}", "{order_id}-{line}", "x {order_id}", "{order_id}{order_id}"}).Draw(r, "template")
		runes := append([]rune("a- \t\n\u0000\u0085\u00a0\u2028é"), unicode.MaxRune)
		id := rapid.StringOfN(rapid.SampledFrom(runes), 0, 70, -1).Draw(r, "order_id")
		args, err := json.Marshal(map[string]any{"order_id": id, "line": rapid.IntRange(-9, 9).Draw(r, "line"), "items": []int{}})
		if err != nil {
			r.Fatal(err)
		}
		got, refused := key(t, template, string(args))
		if refused != nil {
			if refused.Code != registry.InvalidArguments || refused.Violations[0].Pointer == "/" {
				r.Fatalf("got %v", refused)
			}
		} else if err := registry.CheckIdempotencyKey(got); err != nil || !strings.Contains(got, id) {
			r.Fatalf("%q of %q can't be %v", got, id, err)
		}
	})
}

func TestCheckIdempotencyKey(t *testing.T) {
	t.Parallel()
	for key, fits := range map[string]bool{
		"a": true, "a b": true, "天気": true, strings.Repeat("k", 256): true,
		"": false, strings.Repeat("k", 257): false, "a\nb": false, "a\x00": false, "a\u0085b": false, "\xff": false, " a": false, "a ": false, "\u00a0": false,
	} {
		if err := registry.CheckIdempotencyKey(key); (err == nil) != fits {
			t.Errorf("%q: got %v", key, err)
		}
	}
}

// A write tool with a result promises its result or a handle, and both fit; no other tool promises a handle.
func TestOutputIsResultOrHandle(t *testing.T) {
	t.Parallel()
	handle := registry.Handle{ID: "0123", State: "staged", Tool: "order", Message: "Wait."}.Result()
	if got, want := string(handle.Structured), `{"intent":{"id":"0123","state":"staged","tool":"order","message":"Wait."}}`; got != want || handle.IsError {
		t.Errorf("got %s, want %s", got, want)
	}
	if diff := cmp.Diff([]json.RawMessage{json.RawMessage(`{"type":"text","text":"Wait."}`)}, handle.Content); diff != "" {
		t.Error(diff)
	}
	with := func(change ...func(*registry.Tool)) json.RawMessage {
		e, _ := open(t, tool("t", append([]func(*registry.Tool){func(t *registry.Tool) { s := spec(); t.Result = &s }}, change...)...)).Lookup("t")
		return e.Output()
	}
	write := func(t *registry.Tool) { t.Effect = registry.Write }
	if got := string(with()); got != string(spec().Schema) {
		t.Errorf("of a read tool: %s", got)
	}
	if got, want := string(with(write)), `{"type":"object","anyOf":[`+string(spec().Schema)+`,`+registry.HandleSchema+`]}`; got != want {
		t.Errorf("of a write tool: got %s, want %s", got, want)
	}
	for name, change := range map[string]func(*registry.Tool){
		"no result": func(t *registry.Tool) { t.Result = nil },
		"warn":      func(t *registry.Tool) { t.ResultCheck = registry.WarnResult },
		"off":       func(t *registry.Tool) { t.ResultCheck = registry.IgnoreResult },
	} {
		if got := with(write, change); got != nil {
			t.Errorf("%s: %s", name, got)
		}
	}
	if got := string(with(write, func(t *registry.Tool) {
		t.Result = &contract.Spec{Schema: json.RawMessage(`{"type":"array"}`), Upstream: true, NoFill: true, Strictness: contract.Open, Value: true}
	})); got != `{"anyOf":[{"type":"array"},`+registry.HandleSchema+`]}` {
		t.Errorf("of any value: %s", got)
	}
}

// What a client is shown differs where the output schema or a hint does.
func TestListedCoversWhatWriteToolsAdd(t *testing.T) {
	t.Parallel()
	listed := func(change func(*registry.Tool)) string {
		e, _ := open(t, order("", func(t *registry.Tool) { s := spec(); t.Result = &s; t.Digest = "" }, change)).Lookup("order")
		return e.Listed()
	}
	same := listed(func(*registry.Tool) {})
	for name, change := range map[string]func(*registry.Tool){
		"effect":     func(t *registry.Tool) { t.Effect = registry.Read },
		"idempotent": func(t *registry.Tool) { t.Idempotent = true },
		"result":     func(t *registry.Tool) { t.Result = nil },
	} {
		if listed(change) == same {
			t.Errorf("%s: listed alike", name)
		}
	}
	if listed(func(t *registry.Tool) { t.IdempotencyKey = "{order_id}" }) != same {
		t.Error("the key, which no client is shown, changes the list")
	}
}

// What is taken over from the registry before has its key and its output schema too.
func TestUnchangedWriteToolKeepsItsKey(t *testing.T) {
	t.Parallel()
	declared := order("{order_id}", func(t *registry.Tool) { s := spec(); t.Result = &s })
	first := open(t, declared)
	second, problems := registry.New(&registry.Build{Tools: []registry.Tool{declared}}, bindEcho, nil, first)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	e, _ := second.Lookup("order")
	args, _, _ := e.Contract().Check(t.Context(), json.RawMessage(`{"order_id":"a","line":1,"items":[]}`))
	if got, err := e.IdempotencyKey(args); err != nil || got != "a" || !strings.Contains(string(e.Output()), "anyOf") {
		t.Errorf("got %q %v %s", got, err, e.Output())
	}
}
