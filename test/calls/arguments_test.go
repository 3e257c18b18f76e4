package calls

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/catalogd/catalogd"
	"github.com/catalogd/catalogd/registry"
	"github.com/catalogd/catalogd/test/internal/harness"
)

// scenarioCatalog is the starter with a few tools whose bindings show that, and with what, they ran.
func scenarioCatalog(t *testing.T) (r *harness.Daemon, ran string) {
	t.Helper()
	echo := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.Copy(w, r.Body) // a client that is gone
	}))
	t.Cleanup(echo.Close)
	u, err := url.Parse(echo.URL)
	if err != nil {
		t.Fatal(err)
	}
	dir := harness.Starter(t)
	ran = filepath.Join(t.TempDir(), "ran.json")
	harness.WriteFile(t, filepath.Join(dir, "catalog/scenarios.cue"), fmt.Sprintf(`package catalog

import "strings"

tools: orders: {
	description: "The orders of a customer."
	effect:      "read"
	args: {customer_id: string, limit: *10 | int}
	binding: exec: {command: "tee", argv: [%[1]q], stdin: "json", stdout: "json"}
}
tools: lenient: {
	description: "The same, for callers that get kinds wrong."
	effect:      "read"
	coerce:      true
	args: {customer_id: string, limit: *10 | int, tags?: [...string]}
	binding: exec: {command: "tee", argv: [%[1]q], stdin: "json", stdout: "json"}
}
tools: loose: {
	description: "Further keys pass."
	effect:      "read"
	strictness:  "open"
	args: customer_id!: string
	binding: jq: program: "."
}
_numbers: {n!: int, d!: number, w!: int, deep!: [...{n!: int}]}
tools: numbers_exec: {
	description: "Numbers through a command."
	effect:      "read"
	args:        _numbers
	result:      _numbers
	binding: exec: {command: "tee", argv: [%[1]q], stdin: "json", stdout: "json"}
}
tools: numbers_http: {
	description: "Numbers through a request."
	effect:      "read"
	args:        _numbers
	result:      _numbers
	binding: http: {method: "POST", url: "%[2]s/echo", body: kind: "json", output: "json"}
}
tools: numbers_jq: {
	description: "Numbers through jq, and one that jq computes."
	effect:      "read"
	args:        _numbers
	binding: jq: program: ". + {sum: (.w + 1)}"
}
tools: guarded: {
	description: "Secrets in a list."
	effect:      "read"
	args: {name!: string, keys!: [...{value!: strings.MaxRunes(12) @secret()}]}
	binding: exec: {command: "tee", argv: [%[1]q, "{name}"], stdin: "json"}
}
tools: warned: {
	description: "A result that does not fit, and is passed on."
	effect:      "read"
	result: {n!: int}
	resultCheck: "warn"
	binding: jq: program: "{n: \"x\"}"
}
tools: failed: {
	description: "A result that does not fit, and is withheld."
	effect:      "read"
	result: {n!: int}
	binding: jq: program: "{n: \"x\"}"
}
branches: shop: {}
branches: strict: strictness: loose: "exact"
`, ran, echo.URL))
	trust := filepath.Join(dir, "policy/trust/data.yaml")
	harness.WriteFile(t, trust, harness.ReadFile(t, trust)+fmt.Sprintf(`  tee: {command: [tee, %[1]q], stdin: true}
  tee-name: {command: [tee, %[1]q, "{name}"], from_call: [name], stdin: true}
  echo: {scheme: http, host: 127.0.0.1, port: %[2]s, addresses: [127.0.0.0/8]}
`, ran, u.Port()))
	access := filepath.Join(dir, "policy/access/data.yaml")
	harness.WriteFile(t, access, strings.Replace(harness.ReadFile(t, access), "branches:\n  default:", "branches:\n  shop: &all\n    tools: [\"*\"]\n  strict: *all\n  default:", 1))
	return harness.Serve(t, catalogd.Config{Dir: dir}), ran
}

// TestScenarios has what every caller of a tool relies on, through a real catalog and the whole product.
func TestScenarios(t *testing.T) {
	r, ran := scenarioCatalog(t)
	call := func(t *testing.T, tool, args string) registry.Call {
		t.Helper()
		if err := os.RemoveAll(ran); err != nil {
			t.Fatal(err)
		}
		call, err := r.Branch("shop").Call(t.Context(), tool, json.RawMessage(args))
		if err != nil {
			t.Fatal(err)
		}
		return call
	}
	rejected := func(t *testing.T, args string, says ...string) {
		t.Helper()
		c := call(t, "orders", args)
		if c.Err == nil || c.Err.Code != registry.InvalidArguments || c.Status != registry.Rejected {
			t.Fatalf("%s: %+v", args, c)
		}
		for _, part := range says {
			if !strings.Contains(c.Err.Msg, part) {
				t.Errorf("%s: %q does not say %q", args, c.Err.Msg, part)
			}
		}
		if _, err := os.Stat(ran); !os.IsNotExist(err) {
			t.Errorf("%s: the binding has run", args)
		}
	}
	reached := func(t *testing.T, tool, args, want string) {
		t.Helper()
		c := call(t, tool, args)
		if c.Err != nil {
			t.Fatalf("%s: %v", args, c.Err)
		}
		if got := harness.ReadFile(t, ran); got != want || string(c.Arguments.JSON()) != want {
			t.Errorf("%s: the binding got %s, decided on %s, want %s", args, got, c.Arguments.JSON(), want)
		}
	}
	t.Run("schema reflects parameter types and requiredness", func(t *testing.T) {
		for _, era := range []string{harness.Modern, harness.Legacy} {
			var tool struct {
				InputSchema struct {
					Properties map[string]struct {
						Type    string
						Default json.RawMessage
					}
					Required []string
				}
			}
			if err := json.Unmarshal([]byte(shownTool(t, harness.Connect(t, r.URL, "shop", era), "orders")), &tool); err != nil {
				t.Fatal(err)
			}
			s := tool.InputSchema
			if got := fmt.Sprint(s.Required); got != "[customer_id]" {
				t.Errorf("%s: required: %s", era, got)
			}
			if s.Properties["customer_id"].Type != "string" || s.Properties["limit"].Type != "integer" || string(s.Properties["limit"].Default) != "10" {
				t.Errorf("%s: properties: %+v", era, s.Properties)
			}
		}
	})
	t.Run("invalid arguments are rejected before the binding runs", func(t *testing.T) {
		rejected(t, `{}`, "/customer_id")
		rejected(t, `{"customer_id":7,"limit":"many"}`, "/customer_id", "the number 7", "a string", "/limit", `the string "many"`, "an integer")
	})
	t.Run("valid arguments reach the binding with their coerced values", func(t *testing.T) {
		reached(t, "orders", `{"customer_id":"c1","limit":5.0}`, `{"customer_id":"c1","limit":5}`)
		reached(t, "lenient", `{"customer_id":71,"limit":"5","tags":"new"}`, `{"customer_id":"71","limit":5,"tags":["new"]}`)
	})
	t.Run("a missing argument is named", func(t *testing.T) {
		rejected(t, `{"limit":1}`, "/customer_id", "got nothing", "required")
	})
	t.Run("an unexpected argument is named", func(t *testing.T) {
		rejected(t, `{"customer_id":"c1","limt":1}`, "/limt", "unexpected key", `did you mean "limit"?`)
	})
	t.Run("a call with the defaults omitted works", func(t *testing.T) {
		reached(t, "orders", `{"customer_id":"c1"}`, `{"customer_id":"c1","limit":10}`)
	})
	t.Run("a branch asks for stricter keys, in what it lists as in what it takes", func(t *testing.T) {
		for _, b := range []struct {
			branch string
			closed bool
		}{{"strict", true}, {"shop", false}} {
			shown := shownTool(t, harness.Connect(t, r.URL, b.branch, harness.Modern), "loose")
			c, err := r.Branch(b.branch).Call(t.Context(), "loose", json.RawMessage(`{"customer_id":"c1","more":1}`))
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(shown, `"additionalProperties":false`) != b.closed || (c.Err != nil) != b.closed {
				t.Errorf("%s: lists %s, answers %v", b.branch, shown, c.Err)
			}
		}
	})
	t.Run("a secret is not told", func(t *testing.T) {
		// The values have letters that no digest, time or id has, or more digits than could stand there by chance.
		secret := regexp.MustCompile("quokka|jumps|4711471147")
		for _, args := range []string{`{"keys":[{"value":4711471147}]}`, `{"name":"n","keys":[{"value":"quokka-jumps-quokka"}]}`, `{"name":"n","keys":[{"valeu":"quokka-jumps"}]}`, `{"name":"n","keys":["quokka-jumps"]}`} {
			c := call(t, "guarded", args)
			if c.Err == nil || secret.MatchString(fmt.Sprint(c.Err, c.Err.Violations)) {
				t.Errorf("%s: %v", args, c.Err)
			}
		}
		plan, c, err := r.Branch("shop").Plan(t.Context(), "guarded", json.RawMessage(`{"name":"n","keys":[{"value":"quokka-jumps"}]}`))
		if shown := fmt.Sprintf("%+v %s", plan, plan.Args); err != nil || c.Err != nil || secret.MatchString(shown) {
			t.Errorf("%v %v: %s", err, c.Err, shown)
		}
		if line := firstLine(r.Log.String(), secret); line != "" {
			t.Errorf("the log has a secret: %s", line)
		}
	})
	t.Run("a result that does not fit", func(t *testing.T) {
		for _, era := range []string{harness.Modern, harness.Legacy} {
			l := harness.Connect(t, r.URL, "shop", era)
			for tool, advertised := range map[string]bool{"failed": true, "warned": false, "numbers_exec": true} {
				if shown := shownTool(t, l, tool); strings.Contains(shown, `"outputSchema"`) != advertised {
					t.Errorf("%s: %s", era, shown)
				}
			}
			if got := l.Answer(t.Context(), "failed", nil); !strings.HasPrefix(got, "failed: ") || !strings.Contains(got, "/n: got something else, expected an integer") {
				t.Errorf("%s: %s", era, got)
			}
			if got := l.Answer(t.Context(), "warned", nil); !strings.HasPrefix(got, "Note: ") || !strings.Contains(got, "/n: got the string") {
				t.Errorf("%s: %s", era, got)
			}
		}
	})
	t.Run("numbers keep their digits", func(t *testing.T) {
		const in = `{"n":123456789012345678901234567890,"d":0.10000000000000000000000000001,"w":5.0,"deep":[{"n":9007199254740993}]}`
		const exact = `"n":123456789012345678901234567890`
		for _, tool := range []string{"numbers_exec", "numbers_http"} {
			_, got := harness.RawCall(t, r.URL, "shop", tool, in)
			if want := `{"d":0.10000000000000000000000000001,"deep":[{"n":9007199254740993}],` + exact + `,"w":5}`; string(got) != want {
				t.Errorf("%s: %s, want %s", tool, got, want)
			}
		}
		_, got := harness.RawCall(t, r.URL, "shop", "numbers_jq", in)
		for _, part := range []string{exact, `"n":9007199254740993`, `"w":5`, `"sum":6`} {
			if !strings.Contains(string(got), part) {
				t.Errorf("jq: %s lacks %s", got, part)
			}
		}
	})
}

// firstLine is the first line of a log that a pattern matches, or "".
func firstLine(log string, pattern *regexp.Regexp) string {
	for line := range strings.Lines(log) {
		if pattern.MatchString(line) {
			return line
		}
	}
	return ""
}

// shownTool is a tool as a client is shown it, as JSON.
func shownTool(t *testing.T, l *harness.Client, name string) string {
	t.Helper()
	result, err := l.ListTools(t.Context(), mcp.ListToolsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range result.Tools {
		if tool.Name == name {
			shown, err := json.Marshal(tool)
			if err != nil {
				t.Fatal(err)
			}
			return string(shown)
		}
	}
	t.Fatalf("%v lists no %s", l, name)
	return ""
}
