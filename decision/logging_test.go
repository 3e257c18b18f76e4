package decision_test

import (
	"fmt"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/open-policy-agent/opa/v1/util"
	"pgregory.net/rapid"
)

// TestLoggingIsEvaluated: whatever was asked before, an engine says of an event what an evaluation says,
// whichever parts of events the policy reads.
func TestLoggingIsEvaluated(t *testing.T) {
	t.Parallel()
	shipped := fstest.MapFS{}
	if err := fillFrom(shipped, "../policy"); err != nil {
		t.Fatal(err)
	}
	for name, rules := range map[string]string{
		"path":            "mask contains \"/input\" if input.path == \"catalogd/call\"",
		"a name":          "mask contains \"/input/principal/name\" if input.input.principal.name == \"ann\"",
		"the whole name":  "mask contains concat(\"\", [\"/input/\", input.input.principal.name])",
		"items":           "mask contains sprintf(\"/input/tags/%d\", [i]) if { some i, tag in input.input.tags; tag == \"b\" }",
		"an item":         "arguments if input.input.tags[0] == \"a\"",
		"a computed name": "arguments if { some key in [\"tags\", \"principal\"]; count(input.input[key]) > 1 }",
		"all":             "mask contains \"/input\" if contains(json.marshal(input), \"bob\")",
		"absent":          "arguments if not input.input.principal",
		"an object":       "arguments if { r := input.result; r.code == \"denied\" }",
		"an error":        "arguments if to_number(input.result.code) > 0",
		"nothing":         "arguments := true",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fsys := fstest.MapFS{"policy/log.rego": file("package catalogd.log\n\n" + rules + "\n")}
			for name, f := range shipped {
				fsys[name] = f
			}
			engine := load(t, fsys)
			rapid.Check(t, func(rt *rapid.T) {
				var event any
				text := fmt.Sprintf(`{"path":%s,"input":%s,"result":{"code":%s}}`,
					rapid.SampledFrom([]string{`"catalogd/call"`, `"catalogd/list"`}).Draw(rt, "path"),
					rapid.SampledFrom([]string{
						`{}`, `{"principal":{"name":"ann"},"tags":["a","b"]}`, `{"principal":{"name":"bob"},"tags":["b"]}`, `{"principal":"ann","tags":{"0":"a"}}`,
						`{"principal":null,"tags":[]}`, `{"principal":{},"tags":["a"]}`, `null`, `[]`,
					}).Draw(rt, "input"),
					rapid.SampledFrom([]string{`"denied"`, `"allowed"`, `"1"`, `1`, `null`}).Draw(rt, "code"))
				if err := util.UnmarshalJSON([]byte(text), &event); err != nil {
					rt.Fatal(err)
				}
				got, gotErr := engine.Log(t.Context(), event)
				want, wantErr := engine.LogAnew(t.Context(), event)
				if diff := cmp.Diff(want, got, whole) + cmp.Diff(fmt.Sprint(wantErr), fmt.Sprint(gotErr)); diff != "" {
					rt.Fatalf("%s\n%s", text, diff)
				}
			})
		})
	}
}
