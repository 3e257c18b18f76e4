package calls

import (
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/catalogd/catalogd"
	"github.com/catalogd/catalogd/test/internal/harness"
)

// TestOneIDForEachCall joins the answer to a client, the line of the log, the events of the decision log and the event of
// GET /calls/{id} by the id of the call.
func TestOneIDForEachCall(t *testing.T) {
	t.Parallel()
	decisions := &harness.Log{}
	r := harness.Serve(t, catalogd.Config{Dir: harness.Starter(t), DecisionLog: catalogd.DecisionLog{Writer: decisions}})
	mcp := func(tool, args string) string {
		return r.Post(t, "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"`+tool+`","arguments":`+args+
			`,"_meta":{"io.modelcontextprotocol/protocolVersion":"`+harness.Modern+`","io.modelcontextprotocol/clientCapabilities":{}}}}`,
			"Mcp-Protocol-Version", harness.Modern, "Mcp-Method", "tools/call", "Mcp-Name", tool)
	}
	envelope := func(body string) string {
		res, _ := r.Exchange(t, "/branches/default/calls", body)
		return res.Header.Get("Catalogd-Calls")
	}
	for name, test := range map[string]struct {
		answer string
		points []string // of the decision log
	}{
		"MCP":          {mcp("slugify", `{"title":"Hello"}`), []string{"call", "result"}},
		"MCP, invalid": {mcp("slugify", `{}`), []string{"attempt"}},
		"MCP, unknown": {mcp("slugfy", `{}`), []string{"attempt"}},
		"OpenAI": {
			envelope(`{"id":"1","type":"function","function":{"name":"slugify","arguments":"{\"title\":\"x\"}"}}`),
			[]string{"call", "result"},
		},
		"OpenAI, no tool": {envelope(`{"id":"1","type":"function","function":{"name":"slugfy","arguments":"{}"}}`), []string{"attempt"}},
	} {
		id := test.answer // of the header
		if m := regexp.MustCompile(`"catalogd/call":\{[^}]*"id":"([0-9a-f]{32})"`).FindStringSubmatch(test.answer); m != nil {
			id = m[1]
		}
		if len(id) != 32 {
			t.Errorf("%s: no id in %s", name, test.answer)
			continue
		}
		if !strings.Contains(r.Log.String(), `"msg":"call","id":"`+id+`"`) {
			t.Errorf("%s: the log has no line of call %s", name, id)
		}
		for _, point := range test.points {
			harness.Await(t, name+": the decision log has "+point+" of call "+id, func() bool {
				return slices.Contains(pointsOf(decisions.String(), id), point)
			})
		}
		if body := get(t, r.URL+"/calls/"+id); !strings.Contains(body, `"id":"`+id+`"`) {
			t.Errorf("%s: GET /calls/%s: %s", name, id, body)
		}
	}
	metrics := get(t, r.URL+"/metrics")
	for _, line := range []string{
		`catalogd_decisions_total{code="allowed",point="call"} 2`, `catalogd_decisions_total{code="allowed",point="result"} 2`,
		`catalogd_decisions_total{code="allowed",point="adopt"} 1`,
	} {
		if !strings.Contains(metrics, line+"\n") {
			t.Errorf("/metrics has no %s", line)
		}
	}
}

// get returns the body of an answer that is 200.
func get(t *testing.T, url string) string {
	t.Helper()
	res, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Errorf("%s: %d %s %v", url, res.StatusCode, body, err)
	}
	return string(body)
}

// pointsOf are the points of the events of a call in a decision log.
func pointsOf(log, call string) (points []string) {
	for line := range strings.Lines(log) {
		var e struct {
			Path   string
			Custom struct{ Call string }
		}
		if json.Unmarshal([]byte(line), &e) == nil && e.Custom.Call == call {
			points = append(points, strings.TrimPrefix(e.Path, "catalogd/"))
		}
	}
	return points
}
