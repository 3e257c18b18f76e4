package upstream

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/catalogd/catalogd"
	"github.com/catalogd/catalogd/test/internal/harness"
)

// servePassthrough serves servers with the trust and access that are given.
func servePassthrough(t *testing.T, servers, trust, access string) *harness.Daemon {
	t.Helper()
	dir := harness.Assemble(t, "testdata/conformance")
	if err := os.Remove(filepath.Join(dir, "catalog/conformance.cue")); err != nil {
		t.Fatal(err)
	}
	harness.WriteFile(t, filepath.Join(dir, "catalog/servers.cue"), "package catalog\n\n"+servers)
	harness.WriteFile(t, filepath.Join(dir, "policy/trust/data.yaml"), "entries:\n"+trust)
	harness.WriteFile(t, filepath.Join(dir, "policy/access/data.yaml"), "branches:\n"+access+"hide: []\n")
	return harness.Serve(t, catalogd.Config{Dir: dir})
}

// request sends one request of 2026-07-28 to a branch; exactly one of result and failure is set.
func request(t *testing.T, r *harness.Daemon, branch, method, params string) (result, failure json.RawMessage) {
	t.Helper()
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s"_meta":{"io.modelcontextprotocol/protocolVersion":%q,"io.modelcontextprotocol/clientCapabilities":{}}}}`,
		method, params, harness.Modern)
	req, err := http.NewRequest(http.MethodPost, r.URL+"/branches/"+branch+"/mcp", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	var named struct{ Name, URI string }
	if err := json.Unmarshal([]byte("{"+strings.TrimSuffix(params, ",")+"}"), &named); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"Mcp-Protocol-Version": harness.Modern, "Mcp-Method": method, "Mcp-Name": named.Name + named.URI,
	} {
		if value != "" {
			req.Header.Set(name, value)
		}
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
	var answer struct{ Result, Error json.RawMessage }
	if err := json.Unmarshal(raw, &answer); err != nil || (answer.Result == nil) == (answer.Error == nil) {
		t.Fatalf("%v in %s", err, raw)
	}
	return answer.Result, answer.Error
}

// member is one member of an object as it came.
func member(t *testing.T, object json.RawMessage, name string) string {
	t.Helper()
	var members map[string]json.RawMessage
	if err := json.Unmarshal(object, &members); err != nil {
		t.Fatalf("%v in %s", err, object)
	}
	return string(members[name])
}

// askDirectly asks the npm server over its standard streams.
func askDirectly(t *testing.T, asked [][2]string) (answers []json.RawMessage) {
	t.Helper()
	cmd := exec.Command("node", harness.EverythingServer, "stdio")
	cmd.Dir = harness.Root(t)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it is killed
	}()
	lines := bufio.NewReaderSize(out, 1<<20)
	for id, a := range append([][2]string{{"initialize", fmt.Sprintf(`"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"test","version":"1"}`, harness.Legacy)}}, asked...) {
		fmt.Fprintf(in, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":{%s}}`+"\n", id, a[0], strings.TrimSuffix(a[1], ","))
		for {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				t.Fatal(err)
			}
			var answer struct {
				ID     *int
				Method string
				Result json.RawMessage
			}
			if json.Unmarshal(line, &answer) != nil || answer.ID == nil || *answer.ID != id || answer.Method != "" {
				continue
			}
			if id == 0 {
				fmt.Fprintln(in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
			} else {
				answers = append(answers, answer.Result)
			}
			break
		}
	}
	return answers
}

// TestPassthroughEverything passes on what the npm server has, over both transports: the same bytes as directly, to the
// branches that the policy names, and nothing to the others.
func TestPassthroughEverything(t *testing.T) {
	t.Parallel()
	port, root := harness.EverythingOverHTTP(t), harness.Root(t)
	r := servePassthrough(t, fmt.Sprintf(`
servers: ev: {
	transport: stdio: {command: "node", args: [%q, "stdio"], cwd: %q}
	prefix: "ev_"
	initializeTimeout: "60s"
	forward: ["resources", "prompts"]
}
servers: web: {
	transport: http: url: "http://127.0.0.1:%s/mcp"
	prefix: "web_"
	initializeTimeout: "60s"
	forward: ["resources", "prompts"]
}
branches: {ev: {}, web: {}, both: {}, none: {}}
`, harness.EverythingServer, root, port), fmt.Sprintf(`  ev: {command: [node, %s, stdio], dir: %s}
  web: {scheme: http, host: 127.0.0.1, port: %s, path: /mcp, addresses: [127.0.0.0/8]}
`, harness.EverythingServer, root, port), `  ev: {resources: {ev: ["*"]}, prompts: {ev: ["*"]}}
  web: {resources: {web: ["*"]}, prompts: {web: ["*"]}, deny: ["*features.md"]}
  both: {resources: {ev: ["*"], web: ["*"]}, prompts: {ev: ["*"], web: ["*"]}}
  none: {tools: ["*"]}
`)
	const document = `"uri":"demo://resource/static/document/features.md",`
	asked := [][2]string{
		{"resources/list", ""}, {"resources/templates/list", ""}, {"prompts/list", ""},
		{"resources/read", document},
		{"prompts/get", `"name":"args-prompt","arguments":{"city":"Zürich <b>","state":"ZH"},`},
		{"completion/complete", `"ref":{"type":"ref/prompt","name":"completable-prompt"},"argument":{"name":"department","value":"E"},`},
	}
	members := []string{"resources", "resourceTemplates", "prompts", "contents", "messages", "completion"}
	for n, direct := range askDirectly(t, asked) {
		want := member(t, direct, members[n])
		if len(want) < 10 {
			t.Fatalf("%s directly: %s", asked[n][0], direct)
		}
		var items []struct{ Name string }
		if n < 3 {
			if err := json.Unmarshal([]byte(want), &items); err != nil || len(items) == 0 {
				t.Fatalf("%v in %s", err, want)
			}
		}
		for _, server := range []string{"ev", "web"} {
			if server == "web" && (n == 0 || n == 3) {
				continue // one document is denied there
			}
			prefixed := want
			for _, i := range items {
				prefixed = strings.Replace(prefixed, fmt.Sprintf(`"name":%q`, i.Name), fmt.Sprintf(`"name":%q`, server+"_"+i.Name), 1)
			}
			params := strings.NewReplacer(`"name":"args-`, `"name":"`+server+`_args-`, `"name":"completable-`, `"name":"`+server+`_completable-`).Replace(asked[n][1])
			got, failure := request(t, r, server, asked[n][0], params)
			if failure != nil {
				t.Errorf("%s of %s: %s", asked[n][0], server, failure)
				continue
			}
			if diff := cmp.Diff(prefixed, member(t, got, members[n])); diff != "" {
				t.Errorf("%s of %s: direct and through catalogd differ:\n%s", asked[n][0], server, diff)
			}
		}
	}
	// A template's URIs are read, though they are not listed.
	if got, failure := request(t, r, "ev", "resources/read", `"uri":"demo://resource/dynamic/text/7",`); failure != nil || !strings.Contains(string(got), "Resource 7") {
		t.Errorf("a URI of a template: %s %s", got, failure)
	}
	// Hidden by the policy, hidden because two servers have it, and not there at all are answered alike.
	missing := func(branch, method, params, name string) string {
		t.Helper()
		got, failure := request(t, r, branch, method, fmt.Sprintf(params, name))
		if failure == nil {
			t.Errorf("%s of %s in %s: %s", method, name, branch, got)
		}
		return strings.ReplaceAll(string(failure), name, "NAME")
	}
	never := missing("none", "resources/read", `"uri":%q,`, "demo://never")
	for _, branch := range []string{"none", "web", "both"} {
		if got := missing(branch, "resources/read", `"uri":%q,`, "demo://resource/static/document/features.md"); got != never {
			t.Errorf("hidden in %s: %s; never there: %s", branch, got, never)
		}
	}
	for _, c := range [][2]string{{"prompts/get", `"name":%q,`}, {"completion/complete", `"ref":{"type":"ref/prompt","name":%q},"argument":{"name":"a","value":""},`}} {
		never := missing("none", c[0], c[1], "never")
		for branch, hidden := range map[string]string{"none": "ev_simple-prompt", "web": "ev_simple-prompt", "ev": "simple-prompt"} {
			if got := missing(branch, c[0], c[1], hidden); got != never {
				t.Errorf("%s hidden in %s: %s; never there: %s", c[0], branch, got, never)
			}
		}
	}
	for branch, want := range map[string]bool{"ev": true, "none": false} {
		discovered, failure := request(t, r, branch, "server/discover", "")
		if failure != nil {
			t.Fatal(string(failure))
		}
		capabilities := member(t, discovered, "capabilities")
		for _, what := range []string{"resources", "prompts", "completions"} {
			if strings.Contains(capabilities, `"`+what+`"`) != want {
				t.Errorf("%s declares %s", branch, capabilities)
			}
		}
	}
	// Both servers have the same URIs: the branch that would see both sees neither, and the operator is notified. Prompts
	// differ by their prefix.
	resources, _ := request(t, r, "both", "resources/list", "")
	prompts, _ := request(t, r, "both", "prompts/list", "")
	if list := member(t, resources, "resources"); list != "[]" {
		t.Errorf("both lists %s", list)
	}
	if list := member(t, prompts, "prompts"); !strings.Contains(list, `"ev_simple-prompt"`) || !strings.Contains(list, `"web_simple-prompt"`) {
		t.Errorf("both lists %s", list)
	}
	for _, s := range r.Status().Servers {
		if s.Forward == nil || !s.Forward.Known || s.Forward.Resources == 0 || len(s.Forward.Colliding["both"]) == 0 ||
			!strings.Contains(s.Forward.Colliding["both"][0].Reason, "has it as well") || len(s.Forward.Colliding["ev"]) > 0 {
			t.Errorf("the status of %s: %+v", s.Name, s.Forward)
		}
	}
	if !strings.Contains(r.Log.String(), "could be of two servers") {
		t.Error("the log says nothing of the collision")
	}
}

// TestPassthroughScripted holds what no well-behaved server shows: pages are followed, digits stay, a server's own error
// passes, its secrets don't, a bad item costs nothing but itself, and what a down server had stays listed.
func TestPassthroughScripted(t *testing.T) {
	t.Setenv("FORWARD_SECRET", "hush-hush-hush")
	answers := map[string]string{
		"initialize":   `"result":{"protocolVersion":"2025-11-25","capabilities":{"resources":{},"prompts":{}},"serverInfo":{"name":"s","version":"1"}}`,
		"prompts/list": `"result":{"prompts":[{"name":"greet"},{"name":"bad\u202ename"}]}`,
		"prompts/get":  `"result":{"messages":[{"role":"user","content":{"type":"text","text":"hush-hush-hush"},"x":9007199254740993.0}],"more":1.50,"_meta":{"a/b":1e2,"catalogd/call":"forged"}}`,
		"resources/":   `"result":{"resources":[{"name":"one","uri":"x:1"}],"nextCursor":"b"}`,
		"resources/b":  `"result":{"resources":[{"name":"two","uri":"x:2","size":9007199254740993}]}`,
		"x:1":          `"error":{"code":-32002,"message":"gone since hush-hush-hush","data":{"uri":"x:1","why":"hush-hush-hush"}}`,
		"x:2":          `"result":{"contents":"none"}`,
	}
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct{ Cursor, URI string }
		}
		if err := json.NewDecoder(req.Body).Decode(&m); err != nil || m.ID == nil {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		key := m.Method
		switch m.Method {
		case "resources/list":
			key = "resources/" + m.Params.Cursor
		case "resources/read":
			key = m.Params.URI
		}
		answer, ok := answers[key]
		if !ok {
			answer = `"error":{"code":-32601,"message":"no such method"}`
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,%s}`, m.ID, answer)
	}))
	defer upstream.Close()
	port := upstream.URL[strings.LastIndexByte(upstream.URL, ':')+1:]
	r := servePassthrough(t, fmt.Sprintf(`
servers: s: {
	transport: http: {url: "http://127.0.0.1:%s/mcp", headers: "X-Key": secret: "env:FORWARD_SECRET"}
	initializeTimeout: "60s"
	forward: ["resources", "prompts"]
}
branches: {default: {}, other: {}}
`, port), fmt.Sprintf(`  s: {scheme: http, host: 127.0.0.1, port: %s, path: /mcp, addresses: [127.0.0.0/8], headers: [X-Key], secrets: ["env:FORWARD_SECRET"]}
`, port), `  default: {resources: {s: ["*"]}, prompts: {s: ["*"]}}
  other: {resources: {s: ["*"]}, prompts: {s: ["*"]}}
`)
	want := func(method, params, in, of string) {
		t.Helper()
		result, failure := request(t, r, "default", method, params)
		if got := string(result) + string(failure); !strings.Contains(got, in) || of != "" && strings.Contains(got, of) {
			t.Errorf("%s: got %s, want %s, and not %q", method, got, in, of)
		}
	}
	const both = `"resources":[{"name":"one","uri":"x:1"},{"name":"two","uri":"x:2","size":9007199254740993}]`
	want("resources/list", "", both, "")
	want("resources/templates/list", "", `"resourceTemplates":[]`, "")
	want("prompts/list", "", `"prompts":[{"name":"greet"}]`, "")
	want("prompts/get", `"name":"greet",`, `"x":9007199254740993.0}],"more":1.50,"resultType":"complete","_meta":{"a/b":1e2,"io.modelcontextprotocol/serverInfo"`, "hush")
	want("resources/read", `"uri":"x:1",`, `"code":-32602,"message":"gone since`, "hush")
	want("resources/read", `"uri":"x:2",`, `"catalogd/error":{"code":"result_invalid"}`, "")
	want("completion/complete", `"ref":{"type":"ref/prompt","name":"greet"},"argument":{"name":"a","value":""},`, `"completion":{"values":[]}`, "")
	want("prompts/list", `"cursor":"b",`, `"code":-32602`, "")
	promptsListChanged(t, r)
	if f := r.Status().Servers[0].Forward; f == nil || len(f.Withheld) != 1 || !strings.Contains(f.Withheld[0].Reason, "U+202E") {
		t.Errorf("the status: %+v", f)
	}
	upstream.CloseClientConnections()
	upstream.Close()
	want("resources/list", "", both, "")
	want("resources/read", `"uri":"x:2",`, `"catalogd/error":{"code":"unavailable"}`, "")
}

// promptsListChanged takes a prompt from one of two branches: its clients learn of prompts alone, and others of nothing.
func promptsListChanged(t *testing.T, r *harness.Daemon) {
	t.Helper()
	heard := map[string]chan string{}
	for _, branch := range []string{"default", "other"} {
		heard[branch] = make(chan string, 100)
		body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"promptsListChanged":true,"resourcesListChanged":true},"_meta":{"io.modelcontextprotocol/protocolVersion":%q,"io.modelcontextprotocol/clientCapabilities":{}}}}`, harness.Modern)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.URL+"/branches/"+branch+"/mcp", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header = http.Header{
			"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"},
			"Mcp-Protocol-Version": {harness.Modern}, "Mcp-Method": {"subscriptions/listen"},
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		go func() {
			for lines := bufio.NewScanner(res.Body); lines.Scan(); {
				if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
					heard[branch] <- data
				}
			}
		}()
		if ack := <-heard[branch]; !strings.Contains(ack, `"promptsListChanged":true`) || !strings.Contains(ack, `"resourcesListChanged":true`) {
			t.Fatalf("%s acknowledges %s", branch, ack)
		}
		request(t, r, branch, "prompts/list", "")
	}
	access := filepath.Join(r.Dir, "policy/access/data.yaml")
	harness.WriteFile(t, access, strings.Replace(harness.ReadFile(t, access), `default: {resources: {s: ["*"]}, prompts: {s: ["*"]}}`, `default: {resources: {s: ["*"]}, prompts: {s: ["no"]}}`, 1))
	if said := <-heard["default"]; !strings.Contains(said, `"notifications/prompts/list_changed"`) {
		t.Errorf("the branch heard %s", said)
	}
	if list, _ := request(t, r, "default", "prompts/list", ""); member(t, list, "prompts") != "[]" {
		t.Errorf("the branch lists %s", list)
	}
	for branch, said := range heard {
		if len(said) > 0 {
			t.Errorf("%s heard %s, too", branch, <-said)
		}
	}
}
