package envelope_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/catalogd/catalogd/internal/envelope"
	"github.com/catalogd/catalogd/registry"
)

// The messages are those of the providers' published examples, with our tools.
var messages = map[string]struct {
	message string
	format  envelope.Format
	calls   []string // id, name, arguments
	results string   // where the first call answers "fine", and the others fail
}{
	"openai: a response": {
		message: `{"id":"chatcmpl-1","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[
			{"id":"call_1","type":"function","function":{"name":"get_weather","arguments":"{\n\"location\": \"Paris\"\n}"}}]},"finish_reason":"tool_calls"}]}`,
		format: envelope.OpenAI, calls: []string{"call_1 get_weather {\n\"location\": \"Paris\"\n}"},
		results: `[{"role":"tool","tool_call_id":"call_1","content":"fine"}]`,
	},
	"openai: a message": {
		message: `{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"x","arguments":""}},{"id":"b","function":{"name":"y","arguments":"{\"n\":"}}]}`,
		format:  envelope.OpenAI, calls: []string{"a x {}", `b y {"n":`},
		results: `[{"role":"tool","tool_call_id":"a","content":"fine"},{"role":"tool","tool_call_id":"b","content":"it failed"}]`,
	},
	"openai: a list": {
		message: `[{"id":"a","type":"function","function":{"name":"x","arguments":"{\"n\":9007199254740993}"}}]`,
		format:  envelope.OpenAI, calls: []string{`a x {"n":9007199254740993}`},
		results: `[{"role":"tool","tool_call_id":"a","content":"fine"}]`,
	},
	"openai: one call, arguments as an object": {
		message: `{"id":"a","type":"function","function":{"name":"x","arguments":{"n":1.50}}}`,
		format:  envelope.OpenAI, calls: []string{`a x {"n":1.50}`},
		results: `{"role":"tool","tool_call_id":"a","content":"fine"}`,
	},
	"responses: a response": {
		message: `{"object":"response","output":[{"id":"rs_1","type":"reasoning","summary":[]},{"id":"fc_1","type":"function_call","status":"completed","call_id":"call_1","name":"x","arguments":"{}"},{"type":"message","content":[]}]}`,
		format:  envelope.Responses, calls: []string{"call_1 x {}"},
		results: `[{"type":"function_call_output","call_id":"call_1","output":"fine"}]`,
	},
	"responses: one": {
		message: `{"type":"function_call","call_id":"call_1","name":"x","arguments":"{}"}`,
		format:  envelope.Responses, calls: []string{"call_1 x {}"},
		results: `{"type":"function_call_output","call_id":"call_1","output":"fine"}`,
	},
	"anthropic: a message": {
		message: `{"id":"msg_1","type":"message","role":"assistant","content":[{"type":"text","text":"Hm."},{"type":"tool_use","id":"toolu_1","name":"x","input":{"a":[1]}},{"type":"tool_use","id":"toolu_2","name":"y","input":{}}],"stop_reason":"tool_use"}`,
		format:  envelope.Anthropic, calls: []string{`toolu_1 x {"a":[1]}`, "toolu_2 y {}"},
		results: `{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":[{"type":"text","text":"fine"}]},{"type":"tool_result","tool_use_id":"toolu_2","content":[{"type":"text","text":"it failed"}],"is_error":true}]}`,
	},
	"anthropic: one block": {
		message: `{"type":"tool_use","id":"toolu_1","name":"x","input":{}}`,
		format:  envelope.Anthropic, calls: []string{"toolu_1 x {}"},
		results: `{"type":"tool_result","tool_use_id":"toolu_1","content":[{"type":"text","text":"fine"}]}`,
	},
	"gemini: a response": {
		message: `{"candidates":[{"content":{"role":"model","parts":[{"text":"Hm."},{"functionCall":{"name":"x","args":{"a":1}}},{"functionCall":{"id":"7","name":"x"}}]},"finishReason":"STOP"}]}`,
		format:  envelope.Gemini, calls: []string{` x {"a":1}`, "7 x {}"},
		results: `{"role":"user","parts":[{"functionResponse":{"name":"x","response":{"output":"fine"}}},{"functionResponse":{"id":"7","name":"x","response":{"error":"it failed"}}}]}`,
	},
	"gemini: a message of the Python SDK with its nulls": {
		message: `{"role":"model","parts":[{"text":"Hm.","function_call":null,"function_response":null},{"text":null,"function_call":{"id":null,"name":"x","args":{"a":1}},"function_response":null}]}`,
		format:  envelope.Gemini, calls: []string{` x {"a":1}`},
		results: `{"role":"user","parts":[{"functionResponse":{"name":"x","response":{"output":"fine"}}}]}`,
	},
	"gemini: parts": {
		message: `[{"text":"Hm."},{"function_call":{"name":"x","args":{}}}]`,
		format:  envelope.Gemini, calls: []string{" x {}"},
		results: `[{"functionResponse":{"name":"x","response":{"output":"fine"}}}]`,
	},
	"plain: one": {
		message: `{"function":"x"}`,
		format:  envelope.Plain, calls: []string{" x {}"},
		results: `{"function":"x","status":"succeeded","call":"c0","content":[{"type":"text","text":"fine"}]}`,
	},
	"plain: a list": {
		message: `[{"id":"1","function":"x","arguments":{"a":"<&>"}},{"function":"y","arguments":null}]`,
		format:  envelope.Plain, calls: []string{`1 x {"a":"<&>"}`, " y {}"},
		results: `[{"id":"1","function":"x","status":"succeeded","call":"c0","content":[{"type":"text","text":"fine"}]},{"function":"y","status":"failed","call":"c1","error":{"code":"unavailable","message":"it failed"}}]`,
	},
}

func TestMessages(t *testing.T) {
	t.Parallel()
	for name, tt := range messages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, err := envelope.Read([]byte(tt.message))
			if err != nil {
				t.Fatal(err)
			}
			if b.Format != tt.format {
				t.Errorf("got the format %s, want %s", b.Format, tt.format)
			}
			var calls []string
			var ended []registry.Call
			for i, c := range b.Calls {
				calls = append(calls, fmt.Sprintf("%s %s %s", c.ID, c.Name, c.Arguments))
				call := registry.Call{ID: fmt.Sprint("c", i), Status: registry.Succeeded, Result: &registry.Result{Content: []json.RawMessage{registry.Text("fine")}}}
				if i > 0 {
					call = registry.Call{ID: call.ID, Status: registry.Failed, Err: &registry.Error{Code: registry.Unavailable, Msg: "it failed"}}
				}
				ended = append(ended, call)
			}
			if diff := cmp.Diff(tt.calls, calls); diff != "" {
				t.Errorf("calls, want - and got +:\n%s", diff)
			}
			if got := string(b.Results(ended)); got != tt.results {
				t.Errorf("results:\ngot  %s\nwant %s", got, tt.results)
			}
		})
	}
}

func TestRefusedMessages(t *testing.T) {
	t.Parallel()
	many := strings.TrimSuffix(strings.Repeat(`{"function":"x"},`, envelope.MaxCalls+1), ",")
	for message, want := range map[string]string{
		``:                                "not JSON",
		`{"function":"x"`:                 "not JSON",
		`{"function":"x"} {}`:             "not JSON",
		`{"function":"x","function":"y"}`: "duplicate",
		`"x"`:                             "not an object",
		`[1]`:                             "item 0 of the list: it is not an object",
		`[]`:                              "no tool call",
		`{}`:                              "no tool call",
		`{"name":"x"}`:                    "no tool call",
		`{"role":"assistant","content":"Hello."}`:                                     "no tool call",
		`{"role":"assistant","tool_calls":null}`:                                      "no tool call",
		`{"choices":[{"message":{"role":"assistant","content":"Hello."}}]}`:           "no tool call",
		`{"type":"message","role":"assistant","content":[{"type":"text","text":""}]}`: "no tool call",
		`[{"function":"x"},{"functoin":"y"}]`:                                         "item 1 of the list is not a tool call",
		`{"function":"x","arguments":[1]}`:                                            "arguments is not an object",
		`{"function":"x","arguments":"{}"}`:                                           "arguments is not an object",
		`{"function":""}`:                                                             "names no function",
		`{"id":7,"function":{"name":"x","arguments":"{}"}}`:                           "id is not a string",
		`{"function":{"name":"x","arguments":"{}"}}`:                                  "has no id",
		`{"type":"tool_use","name":"x","input":{}}`:                                   "has no id",
		`[{"type":"tool_use","id":"a","name":"x","input":{}},{"type":"tool_use","id":"a","name":"y","input":{}}]`: `the id "a"`,
		`[{"type":"tool_use","id":"a","name":"x","input":{}},{"function":"y"}]`:                                   "send them apart",
		"[" + many + "]": "more than 128 calls",

		// OpenAI's deprecated form looks like the Python spelling of Gemini's, whose arguments are args.
		`{"role":"assistant","function_call":{"name":"x","arguments":"{\"n\":1}"}}`: "no args",
		`[{"function_call":{"name":"x","arguments":"{\"n\":1}"}}]`:                  "no args",
		// A conversation, whose calls have been run.
		`[{"role":"user","content":"?"},{"type":"function_call","call_id":"a","name":"x","arguments":"{}"},{"type":"function_call_output","call_id":"a","output":"1"},{"type":"function_call","call_id":"b","name":"x","arguments":"{}"}]`: "item 2 of the list is a result",
		`[{"type":"tool_use","id":"a","name":"x","input":{}},{"type":"tool_result","tool_use_id":"a"}]`:                                                                                                                                    "item 1 of the list is a result",
		`[{"id":"a","function":{"name":"x"}},{"role":"tool","tool_call_id":"a","content":"1"}]`:                                                                                                                                            "item 1 of the list is a result",
		`{"role":"model","parts":[{"functionCall":{"name":"x","args":{}}},{"functionResponse":{"name":"x","response":{}}}]}`:                                                                                                               "item 1 of the message is a result",
		// A message that two providers would read differently.
		`{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"x"}}],"content":[{"type":"tool_use","id":"a","name":"y","input":{}}]}`: "in the form openai and in the form anthropic",
		`{"output":[{"type":"function_call","call_id":"a","name":"x"}],"parts":[{"functionCall":{"name":"y"}}]}`:                                "in the form openai-responses and in the form gemini",
	} {
		b, err := envelope.Read([]byte(message))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s: got %v, %v; want an error with %q", message, b, err, want)
		}
	}
}

// Anthropic refuses a block of text that is empty, and a result with is_error and no content.
func TestAnthropicEmptyContent(t *testing.T) {
	t.Parallel()
	b, err := envelope.Read([]byte(`{"type":"tool_use","id":"a","name":"x","input":{}}`))
	if err != nil {
		t.Fatal(err)
	}
	empty := []json.RawMessage{registry.Text("")}
	for want, result := range map[string]registry.Result{
		`{"type":"tool_result","tool_use_id":"a"}`:                                                                                        {Content: empty},
		`{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"x"}]}`:                                                 {Content: append(empty, registry.Text("x"))},
		`{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"the tool failed, and said nothing"}],"is_error":true}`: {Content: empty, IsError: true},
	} {
		if got := string(b.Results([]registry.Call{{Result: &result}})); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// Results are UTF-8, whatever a server sends.
func TestResultsAreUTF8(t *testing.T) {
	t.Parallel()
	for _, message := range []string{`{"function":"x"}`, `{"functionCall":{"name":"x"}}`, `{"type":"tool_use","id":"a","name":"x"}`} {
		b, err := envelope.Read([]byte(message))
		if err != nil {
			t.Fatal(err)
		}
		result := registry.Result{Content: []json.RawMessage{json.RawMessage("{\"type\":\"text\",\"text\":\"a\xffb\"}")}, Structured: json.RawMessage("{\"a\":\"a\xffb\"}")}
		if got := b.Results([]registry.Call{{Result: &result}}); !utf8.Valid(got) || !strings.Contains(string(got), "a\ufffdb") && !strings.Contains(string(got), `a\ufffdb`) {
			t.Errorf("%s: got %q", message, got)
		}
	}
}

// No call is begun for a caller that is gone.
func TestRunEndsWithItsContext(t *testing.T) {
	t.Parallel()
	for _, o := range []envelope.Order{{}, {Sequential: true}} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		begun := make(chan struct{}, 20)
		out := envelope.Run(ctx, make([]envelope.Call, 20), o, func(context.Context, int, envelope.Call) registry.Call {
			begun <- struct{}{}
			cancel()
			return registry.Call{Status: registry.Succeeded, Result: &registry.Result{}}
		})
		if n := len(begun); n > 8 || o.Sequential && n != 1 {
			t.Errorf("%+v: %d calls were begun", o, n)
		}
		if last := out[19]; last.Err == nil || last.Err.Code != registry.Cancelled || last.Status != registry.Rejected {
			t.Errorf("%+v: the last one ended with %+v", o, last)
		}
	}
}

// What a form can't carry is said in its place, and images go where there is a place for them.
func TestContent(t *testing.T) {
	t.Parallel()
	content := []json.RawMessage{
		registry.Text("see"),
		json.RawMessage(`{"type":"image","mimeType":"image/png","data":"AAAA"}`),
		json.RawMessage(`{"type":"image","mimeType":"image/svg+xml","data":"AAAA"}`),
		json.RawMessage(`{"type":"resource","resource":{"uri":"file:///a","text":"inside"}}`),
		json.RawMessage(`{"type":"resource_link","uri":"file:///b","name":"b"}`),
	}
	texts := `see\n[image image/png, which this form can't carry]\n[image image/svg+xml, which this form can't carry]\ninside\n[resource file:///b b]`
	for message, want := range map[string]string{
		`{"id":"a","function":{"name":"x"}}`: `{"role":"tool","tool_call_id":"a","content":"` + texts + `"}`,
		`{"type":"tool_use","id":"a","name":"x"}`: `{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"see"},` +
			`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}},` +
			`{"type":"text","text":"[image image/svg+xml, which this form can't carry]"},{"type":"text","text":"inside"},{"type":"text","text":"[resource file:///b b]"}]}`,
		`{"functionCall":{"name":"x"}}`: `{"functionResponse":{"name":"x","response":{"output":{"n":1}}}}`,
	} {
		b, err := envelope.Read([]byte(message))
		if err != nil {
			t.Fatal(err)
		}
		got := string(b.Results([]registry.Call{{Status: registry.Succeeded, Result: &registry.Result{Content: content, Structured: json.RawMessage(`{"n":1}`)}}}))
		if got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", message, got, want)
		}
	}
}

// With onError stop, no call begins once one has failed, whichever strategy runs them.
func TestRun(t *testing.T) {
	t.Parallel()
	calls := make([]envelope.Call, 20)
	for i := range calls {
		calls[i].Name = fmt.Sprint("tool", i)
	}
	fails := func(i int) registry.Call {
		if i == 3 {
			return registry.Call{Status: registry.Failed, Err: &registry.Error{Code: registry.Timeout}}
		}
		return registry.Call{Status: registry.Succeeded, Result: &registry.Result{}}
	}
	for _, o := range []envelope.Order{{}, {Sequential: true}, {StopOnError: true}, {Sequential: true, StopOnError: true}} {
		var mu sync.Mutex
		var begun []int
		out := envelope.Run(t.Context(), calls, o, func(_ context.Context, i int, c envelope.Call) registry.Call {
			mu.Lock()
			defer mu.Unlock()
			begun = append(begun, i)
			return fails(i)
		})
		for i, c := range out {
			notRun := c.Err != nil && c.Err.Code == registry.Cancelled
			if notRun && (!o.StopOnError || i < 4 || !strings.Contains(c.Err.Msg, "call 4 (tool3)")) {
				t.Errorf("%+v: call %d ended with %v", o, i, c.Err)
			}
			if !notRun && o.StopOnError && o.Sequential && i > 3 {
				t.Errorf("%+v: call %d was run", o, i)
			}
		}
		if o.Sequential {
			for i, n := range begun {
				if i != n {
					t.Errorf("%+v: begun in the order %v", o, begun)
					break
				}
			}
		}
		if want := len(calls); !o.StopOnError && len(begun) != want {
			t.Errorf("%+v: %d calls were run, want %d", o, len(begun), want)
		}
	}
}

func TestParseOrder(t *testing.T) {
	t.Parallel()
	if o, err := envelope.ParseOrder("", ""); err != nil || o != (envelope.Order{}) {
		t.Errorf("got %+v, %v", o, err)
	}
	if o, err := envelope.ParseOrder("sequential", "stop"); err != nil || o != (envelope.Order{Sequential: true, StopOnError: true}) {
		t.Errorf("got %+v, %v", o, err)
	}
	for _, tt := range [][2]string{{"parallel", ""}, {"", "ignore"}} {
		if o, err := envelope.ParseOrder(tt[0], tt[1]); err == nil {
			t.Errorf("%q: got %+v, want an error", tt, o)
		}
	}
}

// Whatever a message is, reading it ends in an error or in calls whose results are JSON, one a call.
func FuzzMessages(f *testing.F) {
	for _, tt := range messages {
		f.Add([]byte(tt.message))
	}
	f.Fuzz(func(t *testing.T, message []byte) {
		b, err := envelope.Read(message)
		if err != nil {
			return
		}
		ended := make([]registry.Call, len(b.Calls))
		for i := range ended {
			ended[i] = registry.Call{Status: registry.Succeeded, Result: &registry.Result{Content: []json.RawMessage{registry.Text("fine")}}}
		}
		if got := b.Results(ended); !json.Valid(got) || strings.Count(string(got), `fine`) < len(b.Calls) {
			t.Errorf("%d calls of %s are answered %s", len(b.Calls), message, got)
		}
	})
}
