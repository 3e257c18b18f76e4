package calls

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/catalogd/catalogd"
	"github.com/catalogd/catalogd/test/internal/harness"
)

// TestEnvelopesOverHTTP posts what providers return to a branch, and what they don't. docs/agents.md has the forms.
func TestEnvelopesOverHTTP(t *testing.T) {
	t.Parallel()
	dir := harness.Starter(t)
	r := harness.Serve(t, catalogd.Config{Dir: dir, Intents: catalogd.Intents{Dir: filepath.Join(t.TempDir(), "intents")}})
	const plain = `{"function":"slugify","arguments":{"title":"A"}}`
	for _, tt := range []struct {
		name, query, body string
		header            map[string]string
		status            int
		want              string // a regular expression
	}{
		{name: "a result", body: plain, status: 200, want: `^\{"function":"slugify","status":"succeeded","call":"[0-9a-f]{32}","content":\[\{"type":"text","text":"a"\}\]\}\n$`},
		{name: "two of one provider", body: `[{"type":"tool_use","id":"1","name":"slugify","input":{"title":"A"}},{"type":"tool_use","id":"2","name":"gone","input":{}}]`, status: 200,
			want: `"tool_use_id":"1","content":\[\{"type":"text","text":"a"\}\]\},\{"type":"tool_result","tool_use_id":"2",.*unknown tool.*"is_error":true`},
		{name: "arguments that are no JSON", body: `{"id":"1","function":{"name":"slugify","arguments":"{\"title\": "}}`, status: 200, want: `"role":"tool".*not valid`},
		{name: "arguments with a key twice", body: `{"id":"1","function":{"name":"slugify","arguments":"{\"title\":\"a\",\"title\":\"b\"}"}}`, status: 200, want: `the key twice`},
		{name: "null left out", query: "?dialect=openai-strict", body: `{"id":"1","function":{"name":"convert_temperature","arguments":"{\"value\":212,\"from\":\"fahrenheit\",\"to\":null}"}}`, status: 200, want: `100`},
		{name: "null as such", body: `{"id":"1","function":{"name":"convert_temperature","arguments":"{\"value\":212,\"from\":\"fahrenheit\",\"to\":null}"}}`, status: 200, want: `not valid`},
		{name: "a side effect", body: `{"function":"write_note","arguments":{"name":"a","text":"b"}}`, status: 200, want: `"status":"succeeded","call":"[0-9a-f]+","intent":"[0-9a-z-]+".*"structuredContent"`},
		{name: "one after the other", query: "?strategy=sequential&onError=stop", body: `[{"function":"gone"},` + plain + `]`, status: 200, want: `unknown_tool.*was not run, because call 1 \(gone\) failed`},

		{name: "no call", body: `{"role":"assistant","content":"hello"}`, status: 400, want: `there is no tool call in it`},
		{name: "no JSON", body: `{`, status: 400, want: `not JSON`},
		{name: "a misspelt parameter", query: "?onerror=stop", body: plain, status: 400, want: `unknown parameter ..onerror`},
		{name: "a parameter twice", query: "?onError=stop&onError=continue", body: plain, status: 400, want: `more than once`},
		{name: "an unknown strategy", query: "?strategy=fast", body: plain, status: 400, want: `concurrent or sequential`},
		{name: "another provider's dialect", query: "?dialect=gemini", body: `{"id":"1","function":{"name":"slugify"}}`, status: 400, want: `dialect gemini`},
		{name: "no JSON by its header", body: plain, header: map[string]string{"Content-Type": "text/plain"}, status: 415, want: `application/json`},
		{name: "a bad key", body: plain, header: map[string]string{"Idempotency-Key": strings.Repeat("k", 257)}, status: 400, want: `Idempotency-Key can't be 257 bytes`},
		{name: "a key too long for its numbers", body: "[" + plain + "," + plain + "]", header: map[string]string{"Idempotency-Key": strings.Repeat("k", 255)}, status: 400, want: `Idempotency-Key can't be 257 bytes`},
		{name: "a long key of one call", body: plain, header: map[string]string{"Idempotency-Key": strings.Repeat("k", 256)}, status: 200, want: `succeeded`},
		{name: "too large", body: `{"function":"` + strings.Repeat("x", 4<<20) + `"}`, status: 413, want: `4 MiB`},
	} {
		if status, got := post(t, r.URL+"/branches/default/calls"+tt.query, tt.body, tt.header); status != tt.status || !regexp.MustCompile(tt.want).MatchString(got) {
			t.Errorf("%s: got %d, %s\nwant %d, %s", tt.name, status, got, tt.status, tt.want)
		}
	}
	for path, want := range map[string]int{"/branches/gone/calls": 404, "/branches/default/calls/": 404, "/branches/a%2Fb/calls": 404} {
		if status, got := post(t, r.URL+path, plain, nil); status != want {
			t.Errorf("%s: got %d, %s; want %d", path, status, got, want)
		}
	}
	resp, err := http.Get(r.URL + "/branches/default/calls")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusMethodNotAllowed || resp.Header.Get("Allow") != http.MethodPost {
		t.Errorf("GET: got %d, Allow %q; want 405, POST", resp.StatusCode, resp.Header.Get("Allow"))
	}
}

// The same message with the same key again has one effect.
func TestEnvelopeKeys(t *testing.T) {
	t.Parallel()
	dir, notes := harness.Starter(t), t.TempDir()
	harness.WriteFile(t, filepath.Join(dir, "catalog/append.cue"), `package catalog

tools: append: {
	description: "Append a line."
	args: line!: string
	effect: "write"
	tags: ["everyday"]
	binding: exec: {command: "tee", argv: ["-a", "`+filepath.Join(notes, "lines")+`"], stdin: "json"}
}
`)
	harness.Edit(t, dir, "policy/trust/data.yaml", "entries:", "entries:\n  append: {command: [\"tee\", \"-a\", \""+filepath.Join(notes, "lines")+"\"], stdin: true}")
	r := harness.Serve(t, catalogd.Config{Dir: dir, Intents: catalogd.Intents{Dir: filepath.Join(t.TempDir(), "intents")}})
	body := `[{"function":"append","arguments":{"line":"one"}},{"function":"append","arguments":{"line":"two"}}]`
	for range 3 {
		status, got := post(t, r.URL+"/branches/default/calls?strategy=sequential", body, map[string]string{"Idempotency-Key": "k"})
		if status != 200 || strings.Count(got, `"status":"succeeded"`) != 2 {
			t.Fatalf("got %d, %s; want two that succeeded", status, got)
		}
	}
	lines, err := os.ReadFile(filepath.Join(notes, "lines"))
	if want := `{"line":"one"}{"line":"two"}`; err != nil || strings.ReplaceAll(string(lines), "\n", "") != want {
		t.Errorf("got %q, %v; want %q", lines, err, want)
	}
}

// TestDeepResult: a result as deep as a tool may answer is a result in every form, beside the others of its envelope.
func TestDeepResult(t *testing.T) {
	t.Parallel()
	dir, deep := harness.Starter(t), filepath.Join(t.TempDir(), "deep")
	const levels = 9_999
	harness.WriteFile(t, deep, strings.Repeat(`{"a":`, levels)+"1"+strings.Repeat("}", levels))
	harness.WriteFile(t, filepath.Join(dir, "catalog/deep.cue"), `package catalog

tools: deep: {
	description: "Answer deeply."
	args: {}
	effect: "read"
	tags: ["everyday"]
	binding: exec: {command: "cat", argv: ["`+deep+`"], stdout: "json"}
}
`)
	harness.Edit(t, dir, "policy/trust/data.yaml", "entries:", "entries:\n  deep: {command: [\"cat\", \""+deep+"\"]}")
	r := harness.Serve(t, catalogd.Config{Dir: dir})
	for body, begins := range map[string]string{
		`{"role":"model","parts":[{"functionCall":{"name":"slugify","args":{"title":"A"}}},{"functionCall":{"name":"deep","args":{}}}]}`: `{"role":"user","parts":[{"functionResponse":{"name":"slugify","response":{"output":"a"}}},`,
		`[{"function":"deep"},{"function":"slugify","arguments":{"title":"A"}}]`:                                                         `[{"function":"deep","status":"succeeded",`,
	} {
		if status, got := post(t, r.URL+"/branches/default/calls", body, nil); status != 200 || !strings.HasPrefix(got, begins) || strings.Count(got, `{\"a\":`) != levels {
			t.Errorf("got %d, %.300s", status, got)
		}
	}
}

func post(t *testing.T, url, body string, header map[string]string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for name, value := range header {
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(fmt.Errorf("%s: %w", url, err))
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(got)
}
