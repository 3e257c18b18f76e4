package invoke_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/secret/masktest"
	"github.com/catalogd/catalogd/invoke"
	"github.com/catalogd/catalogd/registry"
)

// release lets every result go as it is.
func release(context.Context, decision.ResultInput, func() decision.ToolResult) decision.Decision {
	return decision.Decision{Point: decision.Result, Allow: true, Code: decision.Allowed}
}

func released(d decision.Decision) func(context.Context, decision.ResultInput, func() decision.ToolResult) decision.Decision {
	return func(_ context.Context, _ decision.ResultInput, result func() decision.ToolResult) decision.Decision {
		result()
		return d
	}
}

// raw is a result of JSON blocks.
func raw(structured string, blocks ...string) *registry.Result {
	r := &registry.Result{}
	if structured != "" {
		r.Structured = json.RawMessage(structured)
	}
	for _, b := range blocks {
		r.Content = append(r.Content, json.RawMessage(b))
	}
	return r
}

// TestRedaction takes parts out of results by what the result decision says, and whatever repeats them. What
// has nothing of it keeps its bytes.
func TestRedaction(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		redact   []string
		patterns []string
		result   *registry.Result
		// structured and content are what leaves; withheld says that nothing does.
		structured string
		content    []string
		withheld   bool
	}{
		{
			name: "a text and its copy in the text", redact: []string{"/email"},
			result:     raw(`{"email":"ann@example.com","n":9007199254740993}`, `{"type":"text","text":"{\"email\":\"ann@example.com\",\"n\":9007199254740993}"}`),
			structured: `{"email":"REDACTED","n":9007199254740993}`, content: []string{`{"text":"{\"email\":\"REDACTED\",\"n\":9007199254740993}","type":"text"}`},
		},
		{
			name: "in prose, in a link, in another field", redact: []string{"/email"},
			result: raw(`{"email":"ann@example.com","note":"write to ann@example.com"}`, `{"type":"text","text":"Write to <ann@example.com>."}`,
				`{"type":"resource_link","uri":"mailto:ann@example.com","name":"ann@example.com"}`),
			structured: `{"email":"REDACTED","note":"write to REDACTED"}`,
			content:    []string{`{"text":"Write to <REDACTED>.","type":"text"}`, `{"name":"REDACTED","type":"resource_link","uri":"mailto:REDACTED"}`},
		},
		{
			name: "a number goes with its key, and where it stands alone", redact: []string{"/pin"},
			result:     raw(`{"pin":42,"total":420}`, `{"type":"text","text":"pin 42, total 420"}`),
			structured: `{"total":420}`, content: []string{`{"text":"pin REDACTED, total 420","type":"text"}`},
		},
		{
			name: "an object with all that is in it", redact: []string{"/card"},
			result:     raw(`{"card":{"holder":"Ann Smith","number":"4111 1111"},"ok":true}`, `{"type":"text","text":"Ann Smith has 4111 1111"}`),
			structured: `{"ok":true}`, content: []string{`{"text":"REDACTED has REDACTED","type":"text"}`},
		},
		{
			name: "every item", redact: []string{"/people/*/email", "/people/1/age"},
			result:     raw(`{"people":[{"email":"a@b.example","age":1},{"email":"c@d.example","age":2}]}`),
			structured: `{"people":[{"age":1,"email":"REDACTED"},{"email":"REDACTED"}]}`,
			content:    []string{`{"text":"{\"people\":[{\"age\":1,\"email\":\"REDACTED\"},{\"email\":\"REDACTED\"}]}","type":"text"}`},
		},
		{
			name: "items of a list go", redact: []string{"/list/0", "/list/2"},
			result: raw(`{"list":[1,2,3]}`, `{"type":"text","text":"done"}`), structured: `{"list":[2]}`, content: []string{`{"type":"text","text":"done"}`},
		},
		{
			name: "escapes of RFC 6901", redact: []string{"/a~1b/~0", "/a~1b/c d"},
			result: raw(`{"a/b":{"~":"tilde","c d":"space"}}`, `{"type":"text","text":"x"}`), structured: `{"a/b":{"c d":"REDACTED","~":"REDACTED"}}`, content: []string{`{"type":"text","text":"x"}`},
		},
		{
			name: "what is not there is no matter", redact: []string{"/none", "/a/b/c", "/list/9", "/list/01", "/list/-"},
			result: raw(`{"a":"text","list":[1]}`, `{"type":"text","text":"x"}`), structured: `{"a":"text","list":[1]}`, content: []string{`{"type":"text","text":"x"}`},
		},
		{
			name: "the whole", redact: []string{""},
			result: raw(`{"a":"secret text"}`, `{"type":"text","text":"a secret text"}`), structured: ``, content: []string{`{"text":"a REDACTED","type":"text"}`},
		},
		{
			name: "text that is JSON", redact: []string{"/email"},
			result: raw("", `{"type":"text","text":"{\"email\": \"ann@example.com\"}"}`), content: []string{`{"text":"{\"email\":\"REDACTED\"}","type":"text"}`},
		},
		{name: "text that is none", redact: []string{"/email"}, result: raw("", `{"type":"text","text":"ann@example.com"}`), withheld: true},
		{name: "no text at all", redact: []string{"/email"}, result: raw("", `{"type":"image","data":"QUJD","mimeType":"image/png"}`), withheld: true},
		{
			name: "data of an image stays, its notes don't", redact: []string{"/name"},
			result:     raw(`{"name":"QUJD"}`, `{"type":"image","data":"QUJD","mimeType":"image/png","annotations":{"title":"of QUJD"}}`),
			structured: `{"name":"REDACTED"}`, content: []string{`{"text":"{\"name\":\"REDACTED\"}","type":"text"}`, `{"annotations":{"title":"of REDACTED"},"data":"QUJD","mimeType":"image/png","type":"image"}`},
		},
		{
			name: "quotes in what is taken out", redact: []string{"/say"},
			result:     raw(`{"say":"he said \"no\" <b>"}`, `{"type":"text","text":"[\"he said \\\"no\\\" <b>\"]"}`, `{"type":"text","text":"he said \"no\" <b>!"}`),
			structured: `{"say":"REDACTED"}`, content: []string{`{"text":"[\"REDACTED\"]","type":"text"}`, `{"text":"REDACTED!","type":"text"}`},
		},
		{
			name: "escaped as other encoders do", redact: []string{"/name"},
			result: raw(`{"name":"Jörg <a/b>"}`, `{"type":"text","text":"[{\"n\": \"J\\u00f6rg \\u003Ca\\/b\\u003e\"}]"}`,
				`{"type":"text","text":"{\"json\":\"{\\\"n\\\":\\\"J\\\\u00f6rg <a/b>\\\"}\"}"}`, `{"type":"resource_link","uri":"https://x.example/?n=J%c3%b6rg%20%3Ca%2Fb%3E&x=1","name":"n"}`),
			structured: `{"name":"REDACTED"}`, content: []string{`{"text":"[{\"n\":\"REDACTED\"}]","type":"text"}`, `{"text":"{\"json\":\"{\\\"n\\\":\\\"REDACTED\\\"}\"}","type":"text"}`,
				`{"name":"n","type":"resource_link","uri":"https://x.example/?n=REDACTED&x=1"}`},
		},
		{
			name: "as keys", redact: []string{"/email", "/other"},
			result:     raw(`{"email":"ann@example.com","other":"bob@example.com","by":{"ann@example.com":1,"bob@example.com":2,"to:bob@example.com":3}}`, `{"type":"text","text":"x","_meta":{"ann@example.com":true}}`),
			structured: `{"by":{"REDACTED":1,"REDACTED 2":2,"to:REDACTED":3},"email":"REDACTED","other":"REDACTED"}`,
			content:    []string{`{"_meta":{"REDACTED":true},"text":"x","type":"text"}`},
		},
		{
			name: "a short text is no part of a key", redact: []string{"/role"},
			result: raw(`{"role":"user","user_name":"x","n":3}`, `{"type":"text","text":"x"}`), structured: `{"n":3,"role":"REDACTED","user_name":"x"}`, content: []string{`{"type":"text","text":"x"}`},
		},
		{
			name: "as numbers", redact: []string{"/ssn", "/pin", "/id"},
			result:     raw(`{"ssn":"123456789","pin":9876,"id":7,"more":[{"a":123456789,"b":9876.0,"c":7},"9876"]}`, `{"type":"text","text":"x","_meta":{"ssn":123456789}}`),
			structured: `{"more":[{"c":7},"REDACTED"],"ssn":"REDACTED"}`, content: []string{`{"_meta":{},"text":"x","type":"text"}`},
		},
		{
			name: "as base64", redact: []string{"/email"},
			result:     raw(`{"email":"ann@example.com"}`, `{"type":"text","text":"x"}`, `{"type":"resource","resource":{"uri":"a:b","blob":"dG8gYW5uQGV4YW1wbGUuY29t"}}`),
			structured: `{"email":"REDACTED"}`, content: []string{`{"type":"text","text":"x"}`, `{"type":"text","text":"REDACTED"}`},
		},
		{
			name: "a text within another, and within REDACTED", redact: []string{"/a", "/b", "/c"},
			result:     raw(`{"a":"secret","b":"secret code","c":"DACT"}`, `{"type":"text","text":"the secret code is secret"}`),
			structured: `{"a":"REDACTED","b":"REDACTED","c":"REDACTED"}`, content: []string{`{"text":"the REDACTED is REDACTED","type":"text"}`},
		},
		{
			name: "encoded in a text of the structure", redact: []string{"/name"},
			result:     raw(`{"name":"Ann Smith","more":["id QW5uIFNtaXRo.","416e6e20536d697468",{"x":"?n=ANN+SMITH&x=1"}],"n":1.50}`, `{"type":"text","text":"<b>ann&#32;smith</b>"}`),
			structured: `{"more":["id REDACTED.","REDACTED",{"x":"?n=REDACTED&x=1"}],"n":1.50,"name":"REDACTED"}`, content: []string{`{"text":"<b>REDACTED</b>","type":"text"}`},
		},
		{
			name: "each text that is JSON", redact: []string{"/email"},
			result:  raw("", `{"type":"text","text":"{\"email\":\"ann@example.com\"}"}`, `{"type":"text","text":"[\"ANN@example.com\", 1]"}`),
			content: []string{`{"text":"{\"email\":\"REDACTED\"}","type":"text"}`, `{"text":"[\"REDACTED\",1]","type":"text"}`},
		},
		{name: "one text of two is none", redact: []string{"/email"}, result: raw("", `{"type":"text","text":"{\"email\":\"ann@example.com\"}"}`, `{"type":"text","text":"Ann"}`), withheld: true},
		{name: "nothing at all", redact: []string{"/email"}, result: raw("")},
		{
			name: "an error in text", redact: []string{"/email"}, result: failed(raw("", `{"type":"text","text":"404: no such customer"}`)),
			content: []string{`{"type":"text","text":"404: no such customer"}`},
		},
		{
			name: "an error in JSON", redact: []string{"/email"}, result: failed(raw("", `{"type":"text","text":"{\"email\":\"ann@example.com\"}"}`, `{"type":"text","text":"ann@example.com is not known"}`)),
			content: []string{`{"text":"{\"email\":\"REDACTED\"}","type":"text"}`, `{"text":"REDACTED is not known","type":"text"}`},
		},
		{
			name: "an error with what a pattern matches", redact: []string{"/email"}, patterns: []string{`\b[0-9]{3}-[0-9]{2}-[0-9]{4}\b`},
			result:  failed(raw("", `{"type":"text","text":"404: no customer 123-45-6789, 9123-45-6789"}`)),
			content: []string{`{"text":"404: no customer REDACTED, 9123-45-6789","type":"text"}`},
		},
		{
			name: "patterns in texts, links, keys and numbers", patterns: []string{`\b[0-9]{3}-[0-9]{2}-[0-9]{4}\b`, `^4[0-9]{15}$`},
			result: raw(`{"123-45-6789":{"card":4111111111111111,"n":12},"note":"of 123-45-6789"}`, `{"type":"text","text":"ssn: 123-45-6789."}`,
				`{"type":"resource","resource":{"uri":"a:123-45-6789","text":"\t123-45-6789"}}`, `{"type":"text","text":"{ \"n\": 1 }"}`),
			structured: `{"REDACTED":{"n":12},"note":"of REDACTED"}`,
			content: []string{`{"text":"ssn: REDACTED.","type":"text"}`, `{"resource":{"text":"\tREDACTED","uri":"a:REDACTED"},"type":"resource"}`,
				`{"type":"text","text":"{ \"n\": 1 }"}`},
		},
		{
			name: "what a pattern matched is found in encodings", patterns: []string{`[a-z]+@example\.com`},
			result:     raw(`{"email":"ann@example.com","data":"YW5uQGV4YW1wbGUuY29t"}`, `{"type":"text","text":"J\u00f6rg"}`, `{"type":"resource","resource":{"uri":"a:b","blob":"dG8gYW5uQGV4YW1wbGUuY29t"}}`),
			structured: `{"data":"REDACTED","email":"REDACTED"}`, content: []string{`{"type":"text","text":"J\u00f6rg"}`, `{"type":"text","text":"REDACTED"}`},
		},
		{
			name: "a pattern that matches the marker", patterns: []string{`[A-Z]{3}`}, result: raw("", `{"type":"text","text":"{\"a\":\"ABCDEF REDACTED\"}"}`),
			content: []string{`{"text":"{\"a\":\"REDACTED REDACTED\"}","type":"text"}`},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := open(t, &script{answer: func(context.Context) (*registry.Result, error) { return c.result, nil }}, registry.Bound{}, nil)
			f.path.Judge = released(decision.Decision{Allow: true, Code: decision.Allowed, Redact: c.redact, RedactPatterns: c.patterns})
			call := f.call(`{"city":"Oslo"}`)
			if c.withheld {
				if call.Err == nil || call.Err.Code != registry.ResultDenied || !strings.Contains(call.Err.Msg, "The tool has run") {
					t.Errorf("not withheld: %+v", call)
				}
				return
			}
			if call.Err != nil {
				t.Fatal(call.Err)
			}
			var content []string
			for _, b := range call.Result.Content {
				content = append(content, string(b))
			}
			if string(call.Result.Structured) != c.structured || strings.Join(content, "\n") != strings.Join(c.content, "\n") {
				t.Errorf("got\n%s\n%s\nwant\n%s\n%s", call.Result.Structured, strings.Join(content, "\n"), c.structured, strings.Join(c.content, "\n"))
			}
		})
	}
}

func failed(r *registry.Result) *registry.Result {
	r.IsError = true
	return r
}

// A value that is taken out of one place is nowhere in the result, however it is written there; a result
// without it is the same bytes.
func TestNothingRedactedSurvives(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 9))
	for i := range 400 {
		secret := masktest.Value(r)
		if strings.Trim(secret, "+ ") == "" {
			continue
		}
		var random func(depth int, with string) any
		random = func(depth int, with string) any {
			switch n := r.IntN(6); {
			case n == 0 && depth < 3:
				return map[string]any{"a": random(depth+1, with), "b": random(depth+1, with)}
			case n == 1 && depth < 3:
				return []any{random(depth+1, with), r.IntN(1e9), true}
			default:
				return masktest.Filler(r, r.IntN(30)) + with + masktest.Filler(r, r.IntN(30))
			}
		}
		encode := func(v any) string {
			b, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			return string(b)
		}
		hidden := masktest.Hide(r, secret, 2)
		answers := []*registry.Result{
			raw(encode(map[string]any{"secret": secret, "more": random(0, hidden)}), encode(map[string]any{"type": "text", "text": random(9, hidden)}),
				encode(map[string]any{"type": "resource", "resource": map[string]any{"uri": "a:b", "text": random(9, hidden)}})),
			raw("", encode(map[string]any{"type": "text", "text": encode(map[string]any{"secret": secret, "more": random(0, hidden)})})),
			raw(encode(map[string]any{"more": random(0, "")}), encode(map[string]any{"type": "text", "text": random(9, "")})),
		}
		for k, answer := range answers {
			before := fmt.Sprintf("%s %s", answer.Structured, answer.Content)
			f := open(t, &script{answer: func(context.Context) (*registry.Result, error) { return answer, nil }}, registry.Bound{}, nil)
			f.path.Judge = released(decision.Decision{Allow: true, Code: decision.Allowed, Redact: []string{"/secret"}})
			call := f.call(`{"city":"Oslo"}`)
			if call.Err != nil {
				t.Fatal(call.Err)
			}
			after := fmt.Sprintf("%s %s", call.Result.Structured, call.Result.Content)
			if k == 2 {
				if after != before {
					t.Errorf("round %d: %q is not in\n%s\ngot\n%s", i, secret, before, after)
				}
				continue
			}
			if masktest.Finds(after, secret) {
				t.Errorf("round %d: %q in\n%s\nleft\n%s", i, secret, before, after)
			}
		}
	}
}

// BenchmarkRelease is a result of 64 KiB without obligations, and with five values taken out of it.
func BenchmarkRelease(b *testing.B) {
	people := make([]map[string]any, 400)
	for i := range people {
		people[i] = map[string]any{"id": i, "note": strings.Repeat("The quick brown fox jumps over the lazy dog. ", 3)}
	}
	structured, err := json.Marshal(map[string]any{"a": "ann@example.com", "b": "4111111111111111", "c": "hunter2-of-this", "d": "Jörg Smith", "e": "d1b2c3d4", "people": people})
	if err != nil {
		b.Fatal(err)
	}
	for name, answer := range map[string]decision.Decision{
		"none":   {Allow: true, Code: decision.Allowed},
		"five":   {Allow: true, Code: decision.Allowed, Redact: []string{"/a", "/b", "/c", "/d", "/e"}},
		"absent": {Allow: true, Code: decision.Allowed, Redact: []string{"/x"}},
		"ssn":    {Allow: true, Code: decision.Allowed, RedactPatterns: []string{`\b[0-9]{3}-[0-9]{2}-[0-9]{4}\b`}},
	} {
		b.Run(name, func(b *testing.B) {
			f := open(b, &script{answer: func(context.Context) (*registry.Result, error) {
				return &registry.Result{Structured: structured, Content: []json.RawMessage{registry.Text("done")}}, nil
			}}, registry.Bound{}, nil)
			f.path.Judge = func(context.Context, decision.ResultInput, func() decision.ToolResult) decision.Decision {
				return answer
			}
			for b.Loop() {
				f.call(`{"city":"Oslo"}`)
			}
		})
	}
}

// What is left of a result must be what the tool declares; else nothing leaves.
func TestRedactionKeepsTheContract(t *testing.T) {
	t.Parallel()
	declared := contract.Spec{Schema: json.RawMessage(`{"type":"object","properties":{"pin":{"type":"integer"},"name":{"type":"string"}},"required":["pin"]}`), Strictness: contract.Open, Fields: []contract.Field{{Name: "pin", Required: true}, {Name: "name"}}}
	answer := func(context.Context) (*registry.Result, error) { return raw(`{"pin":42,"name":"Ann"}`), nil }
	for pointer, kept := range map[string]bool{"/name": true, "/pin": false} {
		f := open(t, &script{answer: answer}, registry.Bound{}, func(tool *registry.Tool) { tool.Result = &declared })
		f.path.Judge = released(decision.Decision{Allow: true, Code: decision.Allowed, Redact: []string{pointer}})
		call := f.call(`{"city":"Oslo"}`)
		if kept != (call.Err == nil) {
			t.Errorf("%s: %+v", pointer, call.Err)
		}
		if !kept && (call.Err.Code != registry.ResultDenied || strings.Contains(call.Err.Msg, "42")) {
			t.Errorf("%s: %v", pointer, call.Err)
		}
	}
}

// Members of a result that no revision names go with the first redaction: what they repeat, nobody knows. They count for
// the size of a result, too.
func TestRedactionTakesUnknownMembers(t *testing.T) {
	t.Parallel()
	answer := func(context.Context) (*registry.Result, error) {
		r := raw(`{"pin":42,"name":"Ann"}`)
		r.Fields = map[string]json.RawMessage{"copy": json.RawMessage(`["4","2"]`)}
		return r, nil
	}
	for _, c := range []struct {
		redact []string
		most   int
		kept   int
		code   registry.ErrorCode
	}{
		{nil, 0, 1, ""}, {[]string{"/pin"}, 0, 0, ""}, {nil, 30, 0, registry.OutputTooLarge},
	} {
		f := open(t, &script{answer: answer}, registry.Bound{}, nil)
		f.path.Judge = released(decision.Decision{Allow: true, Code: decision.Allowed, Redact: c.redact, MaxBytes: c.most})
		call := f.call(`{"city":"Oslo"}`)
		switch {
		case c.code != "":
			if call.Err == nil || call.Err.Code != c.code {
				t.Errorf("%+v: %+v", c, call.Err)
			}
		case call.Err != nil || len(call.Result.Fields) != c.kept:
			t.Errorf("%+v: %v %+v", c, call.Err, call.Result)
		}
	}
}

// A result is withheld by any answer but yes, and where it is too large; what is said does not repeat it.
func TestResultIsWithheld(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		answer decision.Decision
		code   registry.ErrorCode
		says   string
	}{
		{"the zero decision", decision.Decision{}, registry.ResultDenied, "withholds the result"},
		{"a reason", decision.Decision{Code: decision.Denied, Reasons: []string{"not on Sundays"}}, registry.ResultDenied, "not on Sundays. The tool has run"},
		{"a failure", decision.Decision{Code: decision.PolicyError, Reasons: []string{"too odd"}}, registry.ResultDenied, "policy_error; too odd"},
		{"no answer in time", decision.Decision{Code: decision.PolicyTimeout, Reasons: []string{"too slow"}}, registry.Timeout, "(policy_timeout): too slow. The tool has run"},
		{"too large", decision.Decision{Allow: true, Code: decision.Allowed, MaxBytes: 20}, registry.OutputTooLarge, "allows 20"},
	} {
		f := open(t, &script{answer: func(context.Context) (*registry.Result, error) {
			return raw(`{"secret":"hunter2 is the word"}`), nil
		}}, registry.Bound{}, nil)
		f.path.Judge = released(c.answer)
		call := f.call(`{"city":"Oslo"}`)
		if call.Err == nil || call.Err.Code != c.code || call.Result != nil || !strings.Contains(call.Err.Msg, c.says) {
			t.Errorf("%s: %+v", c.name, call.Err)
			continue
		}
		if call.Status != registry.Failed || strings.Contains(call.Err.Msg+f.log.String(), "hunter2") {
			t.Errorf("%s: %s: %s\n%s", c.name, call.Status, call.Err.Msg, f.log)
		}
	}
}

// The result decision sees what leaves: behind post, with arguments and principal.
func TestResultDecisionSees(t *testing.T) {
	t.Parallel()
	f := open(t, &script{answer: func(context.Context) (*registry.Result, error) {
		r := raw(`{"n":9007199254740993}`, `{"type":"text","text":"one"}`, `{"type":"image","data":"QQ==","mimeType":"image/png"}`)
		r.IsError = true
		return r, nil
	}}, registry.Bound{}, nil)
	var in decision.ResultInput
	var seen decision.ToolResult
	f.path.Judge = func(_ context.Context, asked decision.ResultInput, result func() decision.ToolResult) decision.Decision {
		in, seen = asked, result()
		return decision.Decision{Allow: true, Code: decision.Allowed}
	}
	f.call(`{"city":"Oslo"}`)
	if in.Branch.Name != "research" || in.Tool.Name != "forecast" || in.Principal.Name != "local" || string(in.Arguments) != `{"city":"Oslo","days":3}` || in.Time.IsZero() {
		t.Errorf("%+v", in)
	}
	if !seen.IsError || string(seen.Structured) != `{"n":9007199254740993}` || strings.Join(seen.Text, "|") != "one" ||
		strings.Join(seen.Types, "|") != "image|text" || seen.Bytes < 90 {
		t.Errorf("%+v", seen)
	}
}

// A rate limit counts what was allowed, a principal, tool and branch at a time, and says how long to wait.
func TestRateLimit(t *testing.T) {
	t.Parallel()
	f := open(t, &script{}, registry.Bound{}, nil)
	f.path.Decide = func(_ context.Context, in decision.CallInput) decision.Decision {
		if in.Principal.Name == "nobody" {
			return decision.Decision{}
		}
		return decision.Decision{Allow: true, Code: decision.Allowed, RateLimit: decision.RateLimit{Calls: 3, Per: time.Hour}}
	}
	call := func(principal string) registry.Call {
		return f.path.Call(context.Background(), invoke.Request{Tool: "forecast", Arguments: json.RawMessage(`{"city":"Oslo"}`), Principal: decision.Principal{Name: principal}})
	}
	for i := range 5 {
		c := call("ann")
		if limited := i >= 3; limited != (c.Err != nil) {
			t.Fatalf("call %d: %v", i, c.Err)
		}
		call("nobody")
	}
	f.script.got = ""
	c := call("ann")
	if c.Err.Code != registry.RateLimited || c.Status != registry.Rejected || f.script.got != "" || !strings.Contains(c.Err.Msg, "3 times in 1h0m0s") || !strings.Contains(c.Err.Msg, "Try again in 3") {
		t.Errorf("%v, ran %q", c.Err, f.script.got)
	}
	if c := call("bob"); c.Err != nil {
		t.Errorf("another's calls are counted: %v", c.Err)
	}
}

// A policy can look at the counts of calls that were allowed before.
func TestRateSoFar(t *testing.T) {
	t.Parallel()
	f := open(t, &script{}, registry.Bound{}, nil)
	f.path.Counted = true
	var seen []int
	f.path.Decide = func(_ context.Context, in decision.CallInput) decision.Decision {
		seen = append(seen, in.Rate.Minute*10+in.Rate.Hour)
		return decision.Decision{Allow: len(seen) != 2, Code: decision.Allowed}
	}
	for range 4 {
		f.call(`{"city":"Oslo"}`)
	}
	if want := []int{0, 11, 11, 22}; len(seen) != 4 || seen[0] != want[0] || seen[1] != want[1] || seen[2] != want[2] || seen[3] != want[3] {
		t.Errorf("counts %v, want %v", seen, want)
	}
}

// Counts are bounded, however many principals there are.
func TestRatesAreBounded(t *testing.T) {
	t.Parallel()
	f := open(t, &script{}, registry.Bound{}, nil)
	f.path.Counted = true
	for i := range 10_000 {
		f.path.Call(context.Background(), invoke.Request{Tool: "forecast", Arguments: json.RawMessage(`{"city":"Oslo"}`), Principal: decision.Principal{Name: string(rune('a'+i%26)) + time.Duration(i).String()}})
	}
	if n := f.path.Rates.Len(); n != 8192 {
		t.Errorf("%d counts are kept", n)
	}
}

// What is withheld because the tool does not declare it is not told by the error, which no result decision sees.
func TestWithheldResultIsNotTold(t *testing.T) {
	t.Parallel()
	declared := contract.Spec{Schema: json.RawMessage(`{"type":"object","properties":{"pin":{"type":"string"}},"required":["pin"]}`), Strictness: contract.Open, Fields: []contract.Field{{Name: "pin", Required: true}}}
	f := open(t, &script{answer: func(context.Context) (*registry.Result, error) { return raw(`{"pin":123456789}`), nil }}, registry.Bound{}, func(tool *registry.Tool) { tool.Result = &declared })
	call := f.call(`{"city":"Oslo"}`)
	if call.Err == nil || call.Err.Code != registry.ResultInvalid || strings.Contains(call.Err.Msg+f.log.String(), "123456789") || !strings.Contains(call.Err.Msg, "/pin: got something else, expected a string") {
		t.Errorf("%+v", call.Err)
	}
}
