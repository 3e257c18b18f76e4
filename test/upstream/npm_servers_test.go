package upstream

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/catalogd/catalogd"
	"github.com/catalogd/catalogd/test/internal/harness"
)

// npmServers are pinned npm servers, each with calls whose results don't depend on when they are made: over stdio, and the
// one called web over streamable HTTP. In what they are given, DIR is a folder of the server's own.
var npmServers = []npmServerAt{
	{"everything", "server-everything", "", []string{"stdio"}, everythingCalls},
	{"web", "server-everything", "", []string{"stdio"}, everythingCalls},
	{"files", "server-filesystem", "", []string{"DIR"}, []npmCall{
		{"list_allowed_directories", `{}`},
		{"write_file", `{"path":"DIR/é.txt","content":"a <b>\n\"c\" \u2028 9007199254740993"}`},
		{"read_text_file", `{"path":"DIR/é.txt"}`},
		{"list_directory", `{"path":"DIR"}`},
		{"read_text_file", `{"path":"/etc/passwd"}`}, // outside: an error of the tool
		{"edit_file", `{"path":"DIR/é.txt","edits":[{"oldText":"<b>","newText":"<i>"}],"dryRun":false}`},
	}},
	{"memory", "server-memory", "MEMORY_FILE_PATH", nil, []npmCall{
		{"read_graph", `{}`},
		{"create_entities", `{"entities":[{"name":"é","entityType":"letter","observations":["<b>","1e3"]},{"name":"o","entityType":"letter","observations":[]}]}`},
		{"create_relations", `{"relations":[{"from":"é","to":"o","relationType":"before"}]}`},
		{"search_nodes", `{"query":"letter"}`},
		{"open_nodes", `{"names":["é"]}`},
	}},
	{"thinking", "server-sequential-thinking", "", nil, []npmCall{
		{"sequentialthinking", `{"thought":"one","nextThoughtNeeded":true,"thoughtNumber":1,"totalThoughts":2}`},
		{"sequentialthinking", `{"thought":"two","nextThoughtNeeded":false,"thoughtNumber":2,"totalThoughts":2}`},
	}},
}

// everythingCalls have text, images, annotations, resources, links to them and structured content in their results.
var everythingCalls = []npmCall{
	{"echo", `{"message":"é <b> \u2028 \"x\""}`},
	{"get-sum", `{"a":9007199254740991,"b":0.5}`},
	{"get-tiny-image", `{}`},
	{"get-annotated-message", `{"messageType":"error","includeImage":false}`},
	{"get-annotated-message", `{"messageType":"success","includeImage":true}`},
	{"get-structured-content", `{"location":"Los Angeles"}`},
	{"get-resource-links", `{"count":4}`},
	{"gzip-file-as-resource", `{"name":"x.gz","data":"data:text/plain;base64,aGVsbG8=","outputType":"resource"}`},
}

// npmServerAt is one of them. env names the variable that says where it keeps its data.
type npmServerAt struct {
	name, program, env string
	args               []string
	calls              []npmCall
}

type npmCall struct{ tool, args string }

// command is how the server is started for a folder of its own; env is NAME=VALUE, or empty.
func (s npmServerAt) command(dir string) (argv []string, env string) {
	argv = []string{"node", "node_modules/@modelcontextprotocol/" + s.program + "/dist/index.js"}
	for _, arg := range s.args {
		argv = append(argv, strings.ReplaceAll(arg, "DIR", dir))
	}
	if s.env != "" {
		env = s.env + "=" + filepath.Join(dir, "memory.jsonl")
	}
	return argv, env
}

// direct makes the server's calls at the server itself, one after the other, and returns what each answers.
func (s npmServerAt) direct(t *testing.T, dir string) []string {
	t.Helper()
	argv, env := s.command(dir)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = harness.Root(t), append(os.Environ(), env)
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
	ask := func(id int, method, params string) []byte {
		fmt.Fprintf(in, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`+"\n", id, method, params)
		for {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				t.Fatalf("%s ended: %v", s.program, err)
			}
			if bytes.Contains(line, fmt.Appendf(nil, `"id":%d`, id)) {
				return line
			}
		}
	}
	ask(1, "initialize", fmt.Sprintf(`{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"test","version":"1"}}`, harness.Legacy))
	fmt.Fprintln(in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	answers := make([]string, len(s.calls))
	for i, call := range s.calls {
		content, structured := harness.ResultOf(t, ask(1000+i, "tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s}`, call.tool, strings.ReplaceAll(call.args, "DIR", dir))))
		answers[i] = string(content) + string(structured)
	}
	return answers
}

// TestNpmServers discovers and locks the tools of pinned npm servers, and calls them through catalogd and directly: both
// answer the same bytes.
func TestNpmServers(t *testing.T) {
	t.Parallel()
	root := harness.Root(t)
	var servers, entries strings.Builder
	servers.WriteString("package catalog\n\n")
	entries.WriteString("entries:\n")
	ours := map[string]string{}
	for _, s := range npmServers {
		ours[s.name] = t.TempDir()
		if s.name == "web" {
			port := harness.EverythingOverHTTP(t)
			fmt.Fprintf(&servers, "servers: web: {\n\ttransport: http: url: \"http://127.0.0.1:%s/mcp\"\n\tprefix: \"web_\"\n\tinitializeTimeout: \"60s\"\n\tdiscover: {}\n}\n", port)
			fmt.Fprintf(&entries, "  web: {scheme: http, host: 127.0.0.1, port: %s, path: /mcp, addresses: [127.0.0.0/8]}\n", port)
			continue
		}
		argv, env := s.command(ours[s.name])
		quoted, err := json.Marshal(argv[1:])
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&servers, "servers: %s: {\n\ttransport: stdio: {command: \"node\", args: %s, cwd: %q", s.name, quoted, root)
		fmt.Fprintf(&entries, "  %s: {command: [node, %s, dir: %s", s.name, strings.TrimPrefix(string(quoted), "["), root)
		if env != "" {
			name, value, _ := strings.Cut(env, "=")
			fmt.Fprintf(&servers, ", env: %s: %q", name, value)
			fmt.Fprintf(&entries, ", env: [%s]", name)
		}
		entries.WriteString("}\n")
		fmt.Fprintf(&servers, "}\n\tprefix: \"%s_\"\n\tinitializeTimeout: \"60s\"\n\tdiscover: {}\n}\n", s.name)
	}
	servers.WriteString("branches: default: {}\n")
	dir := harness.Assemble(t, "testdata/conformance")
	if err := os.Remove(filepath.Join(dir, "catalog/conformance.cue")); err != nil {
		t.Fatal(err)
	}
	harness.WriteFile(t, filepath.Join(dir, "catalog/servers.cue"), servers.String())
	harness.WriteFile(t, filepath.Join(dir, "policy/trust/data.yaml"), entries.String())
	program := harness.Catalogd(t)
	for _, args := range [][]string{{"lock"}, {"lock", "--effect", "read", "*"}, {"lock", "--check"}} {
		cmd := exec.Command(program, args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("catalogd %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	served := harness.Serve(t, catalogd.Config{Dir: dir})
	for _, s := range npmServers {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			mine, own := ours[s.name], t.TempDir()
			direct := s.direct(t, own)
			for n, call := range s.calls {
				content, structured := harness.RawCall(t, served.URL, "default", s.name+"_"+call.tool, strings.ReplaceAll(call.args, "DIR", mine))
				// What is said of the folder differs with the folder.
				got := strings.ReplaceAll(string(content)+string(structured), mine, "DIR")
				want := strings.ReplaceAll(direct[n], own, "DIR")
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s(%s): direct and through catalogd differ:\n%s", call.tool, call.args, diff)
				}
			}
		})
	}
	// What a server says while it works comes to who waits for it, from each of several calls at once.
	for _, prefix := range []string{"everything", "web"} {
		for c := range 3 {
			t.Run(fmt.Sprintf("progress of %s/%d", prefix, c), func(t *testing.T) {
				t.Parallel()
				name := prefix + "_trigger-long-running-operation"
				body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":{"duration":0.2,"steps":%d},"_meta":{"progressToken":"of the client","io.modelcontextprotocol/protocolVersion":%q,"io.modelcontextprotocol/clientCapabilities":{}}}}`, name, 3+c, harness.Modern)
				a := readAnswer(t, served.Post(t, "/mcp", body, "Mcp-Protocol-Version", harness.Modern, "Mcp-Method", "tools/call", "Mcp-Name", name))
				var want []string
				for i := range 3 + c {
					want = append(want, fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"of the client","progress":%d,"total":%d}}`, i+1, 3+c))
				}
				if diff := cmp.Diff(want, a.heard); diff != "" || a.code != "" || !strings.Contains(a.text, "completed") {
					t.Errorf("%s: %s", a.raw, diff)
				}
			})
		}
	}
}
