package harness

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// RawCall calls a tool as a client of Modern, and returns the bytes of its result as they are.
func RawCall(t testing.TB, base, branch, tool, args string) (content, structured json.RawMessage) {
	t.Helper()
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s,"_meta":{"io.modelcontextprotocol/protocolVersion":%q,"io.modelcontextprotocol/clientCapabilities":{}}}}`,
		tool, args, Modern)
	req, err := http.NewRequest(http.MethodPost, base+"/branches/"+branch+"/mcp", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"Mcp-Protocol-Version": Modern, "Mcp-Method": "tools/call", "Mcp-Name": tool,
	} {
		req.Header.Set(name, value)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return ResultOf(t, raw)
}

// ResultOf returns the members of the result of a response to tools/call.
func ResultOf(t testing.TB, raw []byte) (content, structured json.RawMessage) {
	t.Helper()
	var answer struct {
		Result struct{ Content, StructuredContent json.RawMessage }
		Error  json.RawMessage
	}
	if err := json.Unmarshal(raw, &answer); err != nil || answer.Error != nil {
		t.Fatalf("%v in %s", err, raw)
	}
	return answer.Result.Content, answer.Result.StructuredContent
}

// Post sends one message to a path, with headers in pairs of name and value, and returns the body of the response.
func (r *Daemon) Post(t *testing.T, path, body string, headers ...string) string {
	t.Helper()
	_, raw := r.Exchange(t, path, body, headers...)
	return raw
}

// Exchange is Post that returns the response too; its body has been read.
func (r *Daemon) Exchange(t *testing.T, path, body string, headers ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	headers = append([]string{"Content-Type", "application/json", "Accept", "application/json, text/event-stream"}, headers...)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(raw)
}
