package decisionlog_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/decisionlog"
)

// TestArguments: a policy may ask for the arguments of calls, never gets what is declared as a secret, and
// can take out more, of every item of a list too. Without being asked for, or with a policy that fails, none
// are logged.
func TestArguments(t *testing.T) {
	t.Parallel()
	const (
		raw   = `{"pin":"hunter2","n":9007199254740993,"a/b":{"key":"hunter2","shown":true},"items":[{"ssn":"1-2","name":"x"},{"ssn":"3-4"},7],"keys":["hunter2","y"],"named":{"x hunter2":1}}`
		shown = `{"pin":"REDACTED","n":9007199254740993,"a/b":{"key":"REDACTED","shown":true},"items":[{"ssn":"1-2","name":"x"},{"ssn":"3-4"},7],"keys":["REDACTED","y"],"named":{"x REDACTED":1}}`
	)
	secrets := []string{"/input/arguments/a~1b/key", "/input/arguments/keys/0", "/input/arguments/named", "/input/arguments/pin"}
	for _, c := range []struct {
		name, rules    string
		want           string // empty for none
		erased, masked []string
	}{
		{"not asked for", `mask contains "/input/arguments/n"`, "", []string{"/input/arguments"}, nil},
		{"asked for", `arguments := true`, `{"a/b":{"shown":true},"items":[{"name":"x","ssn":"1-2"},{"ssn":"3-4"},7],"keys":[null,"y"],"n":9007199254740993}`, secrets, nil},
		{"not of this call", `arguments if input.input.tool.name == "other"`, "", []string{"/input/arguments"}, nil},
		{"by what they are", `arguments if not input.input.arguments.n`, "", []string{"/input/arguments"}, nil},
		{"false", `arguments := false`, "", []string{"/input/arguments"}, nil},
		{
			"without parts", "arguments := true\n\nmask contains \"/input/arguments/items/*/ssn\"\n\nmask contains \"/input/arguments/a~1b/*\"\n\nmask contains \"/input/arguments/keys/*\"\n\nmask contains \"/input/arguments/n/*\"",
			`{"a/b":{"shown":true},"items":[{"name":"x"},{},7],"keys":[null,null],"n":9007199254740993}`, secrets,
			[]string{"/input/arguments/items/*/ssn", "/input/arguments/keys/*"},
		},
		{"a wrong type", `arguments := "yes"`, "", []string{"/input/arguments"}, []string{"/input", "/result/reasons"}},
		{"a policy that fails", "arguments := true\n\nmask contains \"/x\"", "", []string{"/input/arguments"}, []string{"/input", "/result/reasons"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			engine := policy(t, map[string]string{"policy/log.rego": "package catalogd.log\n\n" + c.rules + "\n"})
			e := call(engine, "one", "eve")
			in := e.Input.(decision.CallInput)
			in.Arguments = json.RawMessage(raw)
			e.Input, e.Shown = in, func() json.RawMessage { return json.RawMessage(shown) }
			var out bytes.Buffer
			log := decisionlog.New(decisionlog.Config{Sink: decisionlog.Stream{W: &out}})
			log.Add(e)
			if err := log.Close(); err != nil {
				t.Fatal(err)
			}
			line := strings.Split(out.String(), "\n")[1]
			var got struct {
				Input struct{ Arguments json.RawMessage }
			}
			if err := json.Unmarshal([]byte(line), &got); err != nil {
				t.Fatal(err)
			}
			logged := read(t, line)[0]
			slices.Sort(logged.Erased)
			if string(got.Input.Arguments) != c.want || !slices.Equal(logged.Erased, c.erased) || !slices.Equal(logged.Masked, c.masked) {
				t.Errorf("got %s, erased %q, masked %q\nwant %s, %q, %q", got.Input.Arguments, logged.Erased, logged.Masked, c.want, c.erased, c.masked)
			}
			if strings.Contains(line, "hunter2") || strings.Contains(line, "REDACTED") {
				t.Errorf("a secret is in the log: %s", line)
			}
		})
	}
}
