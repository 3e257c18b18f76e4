package catalogd_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/catalogd/catalogd"
	"github.com/catalogd/catalogd/problem"
)

// npmServer is the program of the npm server-everything, below the repository's root.
const npmServer = "node_modules/@modelcontextprotocol/server-everything/dist/index.js"

// repoRoot is the root of the checkout, with the npm packages in it.
func repoRoot(t testing.TB) string {
	t.Helper()
	root, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(root, npmServer)); err != nil {
		t.Fatalf("the npm server is not installed: run `npm ci` in %s", root)
	}
	return root
}

// assemble puts a catalog of testdata together as its README says: the starter's schema and policy, and over them what
// lies there. replace are the pairs of old and new in its trust data.
func assemble(t testing.TB, from string, replace ...string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "catalog")
	for _, source := range []struct {
		fsys  fs.FS
		parts []string
	}{{catalogd.Starter(), []string{"schema.cue", "policy"}}, {os.DirFS(from), []string{"."}}} {
		for _, part := range source.parts {
			err := fs.WalkDir(source.fsys, part, func(name string, d fs.DirEntry, err error) error {
				if err != nil || d.IsDir() {
					return err
				}
				data, err := fs.ReadFile(source.fsys, name)
				write(t, filepath.Join(dir, filepath.FromSlash(name)), string(data))
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	trust := filepath.Join(dir, "policy/trust/data.yaml")
	write(t, trust, strings.NewReplacer(replace...).Replace(read(t, trust)))
	return dir
}

// everythingOverHTTP starts the npm server behind HTTP and returns its port.
func everythingOverHTTP(t testing.TB) string {
	t.Helper()
	return listening(t, "the npm server", func(port string) *exec.Cmd {
		cmd := exec.Command("node", npmServer, "streamableHttp")
		cmd.Dir, cmd.Env = repoRoot(t), append(os.Environ(), "PORT="+port)
		return cmd
	})
}

// listening starts a program that listens on a free port of 127.0.0.1 until the test ends, and returns the port.
func listening(t testing.TB, what string, command func(port string) *exec.Cmd) (port string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if _, port, err = net.SplitHostPort(l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	l.Close()
	cmd := command(port)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // it is killed
		close(ended)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // or has ended by itself
		<-ended
	})
	await(t, what+" to listen", func() bool {
		conn, err := net.Dial("tcp", "127.0.0.1:"+port)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	return port
}

// everything serves testdata/everything.
func everything(t testing.TB) *running {
	t.Helper()
	port := everythingOverHTTP(t)
	dir := assemble(t, "testdata/everything", "port: 3001", "port: "+port, "dir: .", "dir: "+repoRoot(t))
	// The machine that runs the tests may be busy.
	servers := filepath.Join(dir, "catalog/servers.cue")
	write(t, servers, read(t, servers)+"servers: [string]: initializeTimeout: \"60s\"\n")
	r := run(t, catalogd.Config{Dir: dir, Tags: []string{"root=" + repoRoot(t), "port=" + port}})
	for _, w := range r.Status().Warnings {
		t.Error(w)
	}
	return r
}

// rawCall is tools/call with nothing between the test and the bytes: what stands in the response's result.
func rawCall(t testing.TB, base, branch, tool, args string) (content, structured json.RawMessage) {
	t.Helper()
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s,"_meta":{"io.modelcontextprotocol/protocolVersion":%q,"io.modelcontextprotocol/clientCapabilities":{}}}}`,
		tool, args, modernEra)
	req, err := http.NewRequest(http.MethodPost, base+"/branches/"+branch+"/mcp", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"Mcp-Protocol-Version": modernEra, "Mcp-Method": "tools/call", "Mcp-Name": tool,
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
	return resultOf(t, raw)
}

func resultOf(t testing.TB, raw []byte) (content, structured json.RawMessage) {
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

// directCall is the same call at the npm server itself, over its standard streams.
func directCall(t testing.TB, tool, args string) (content, structured json.RawMessage) {
	t.Helper()
	cmd := exec.Command("node", npmServer, "stdio")
	cmd.Dir = repoRoot(t)
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
	fmt.Fprintf(in, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`+"\n", legacyEra)
	fmt.Fprintf(in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n")
	fmt.Fprintf(in, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":%q,"arguments":%s}}`+"\n", tool, args)
	lines := bufio.NewReaderSize(out, 1<<20)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(line, []byte(`"id":2`)) {
			return resultOf(t, line)
		}
	}
}

// TestEverything calls the npm server-everything through the whole product, over both transports and in both eras:
// what comes back is what the server says, byte by byte.
func TestEverything(t *testing.T) {
	t.Parallel()
	r := everything(t)
	for _, c := range []struct{ branch, era, prefix string }{
		{"default", modernEra, "everything_"}, {"default", legacyEra, "everything_"},
		{"default", legacyEra, "web_"}, {"web", modernEra, "web_"},
	} {
		l := connect(t, r.url, c.branch, c.era)
		t.Run(fmt.Sprintf("%v of %s", l, c.prefix), func(t *testing.T) {
			if got := l.answer(t.Context(), c.prefix+"echo", map[string]any{"message": "a <b> \"é\" \u2028"}); got != "Echo: a <b> \"é\" \u2028" {
				t.Errorf("echo: %q", got)
			}
			if got := l.answer(t.Context(), c.prefix+"get-sum", map[string]any{"a": 1, "b": 2.5}); got != "The sum of 1 and 2.5 is 3.5." {
				t.Errorf("sum: %q", got)
			}
			result, err := l.CallTool(t.Context(), mcp.CallToolRequest{Params: mcp.CallToolParams{
				Name: c.prefix + "get-structured-content", Arguments: map[string]any{"location": "Chicago"},
			}})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(map[string]any{"temperature": 36.0, "conditions": "Light rain / drizzle", "humidity": 82.0}, result.StructuredContent); diff != "" {
				t.Errorf("structured content: %s", diff)
			}
			for tool, want := range map[string]string{"echo": "/message", "get-sum": "/a", "get-structured-content": "/location"} {
				if got := l.answer(t.Context(), c.prefix+tool, nil); !strings.HasPrefix(got, "failed: ") || !strings.Contains(got, want) {
					t.Errorf("%s without arguments: %s", tool, got)
				}
			}
			if got := l.answer(t.Context(), c.prefix+"nothing", nil); got != absent {
				t.Errorf("no such tool: %s", got)
			}
		})
	}
	for _, call := range []struct{ tool, args string }{
		{"get-tiny-image", `{}`}, {"echo", `{"message":"\u00e9<>&"}`}, {"get-structured-content", `{"location":"New York"}`},
	} {
		content, structured := directCall(t, call.tool, call.args)
		for branch, prefix := range map[string]string{"default": "everything_", "web": "web_"} {
			gotContent, gotStructured := rawCall(t, r.url, branch, prefix+call.tool, call.args)
			if !bytes.Equal(gotContent, content) || !bytes.Equal(gotStructured, structured) {
				t.Errorf("%s%s:\n%.300s %s\nwant\n%.300s %s", prefix, call.tool, gotContent, gotStructured, content, structured)
			}
		}
	}
	for _, s := range r.Status().Servers {
		if !s.Trusted || s.State != "ready" || s.Error != "" {
			t.Errorf("%+v", s)
		}
	}
	for _, trust := range []string{`"trust":"everything"`, `"trust":"everything-http"`} {
		if !strings.Contains(r.log.String(), trust) {
			t.Errorf("%s is not in the log", trust)
		}
	}
}

// server waits for the child process that is the stdio server, and returns its id.
func (r *running) server(t testing.TB) (pid int) {
	t.Helper()
	await(t, "the server's process", func() bool {
		for _, child := range childrenOf(os.Getpid()) {
			args, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", child))
			cwd, _ := os.Readlink(fmt.Sprintf("/proc/%d/cwd", child)) // empty for one that has just ended
			if err == nil && strings.Contains(string(args), "stdio") && strings.HasPrefix(cwd, filepath.Dir(r.dir)) {
				pid = child
			}
		}
		return pid != 0
	})
	return pid
}

// gone reports whether a process has ended.
func gone(pid int) bool { return syscall.Kill(pid, 0) != nil }

// wrapped makes the stdio server of an everything catalog a program of its own: one that has a child itself, in a
// folder by which server finds it. It returns how to find the grandchild.
func (r *running) wrapped(t testing.TB) {
	t.Helper()
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("processes are found in /proc")
	}
	home := filepath.Join(filepath.Dir(r.dir), "home")
	write(t, filepath.Join(home, "server.mjs"), fmt.Sprintf(`import { spawn } from "node:child_process";
spawn("sleep", ["1000"], { stdio: "ignore" });
await import(%q);
`, filepath.Join(repoRoot(t), npmServer)))
	trust := filepath.Join(r.dir, "policy/trust/data.yaml")
	write(t, trust, strings.NewReplacer(npmServer, "server.mjs", "dir: "+repoRoot(t), "dir: "+home).Replace(read(t, trust)))
	file := filepath.Join(r.dir, "catalog/servers.cue")
	write(t, file, strings.Replace(read(t, file), `args: [_program, "stdio"], cwd: _root`, fmt.Sprintf(`args: ["server.mjs", "stdio"], cwd: %q`, home), 1))
	if !r.settled(t) {
		t.Fatalf("%+v", r.Status().Failed)
	}
}

// family starts the wrapped server and returns its process and the child of that.
func (r *running) family(t testing.TB, l *listener) []int {
	t.Helper()
	if got := l.answer(t.Context(), "everything_echo", map[string]any{"message": "x"}); got != "Echo: x" {
		t.Fatalf("echo: %s", got)
	}
	pid := r.server(t)
	var children []int
	await(t, "the server's own child", func() bool { children = childrenOf(pid); return len(children) > 0 })
	return append(children, pid)
}

func awaitGone(t testing.TB, when string, pids []int) {
	t.Helper()
	await(t, "the processes to end "+when, func() bool { return !slices.ContainsFunc(pids, func(pid int) bool { return !gone(pid) }) })
}

// TestServerIsKilled: a server that dies fails its own calls, which say so, and comes back.
func TestServerIsKilled(t *testing.T) {
	t.Parallel()
	r := everything(t)
	r.wrapped(t)
	l := connect(t, r.url, "default", modernEra)
	pids := r.family(t, l)
	pid := pids[len(pids)-1]
	waiting := make(chan string, 1)
	go func() { waiting <- l.answer(context.Background(), "everything_wait", map[string]any{"duration": 300}) }()
	got := ""
	await(t, "the call that is under way to fail", func() bool {
		// Should the call come late, it meets a new process, which is killed too.
		_ = syscall.Kill(r.server(t), syscall.SIGKILL) // or it has just ended
		select {
		case got = <-waiting:
			return true
		case <-time.After(500 * time.Millisecond):
			return false
		}
	})
	if !strings.HasPrefix(got, "failed: ") || !strings.Contains(got, "everything") {
		t.Errorf("the call that was under way: %s", got)
	}
	if got := l.answer(t.Context(), "web_echo", map[string]any{"message": "y"}); got != "Echo: y" {
		t.Errorf("another server's: %s", got)
	}
	if _, listed := l.listing(t)["everything_echo"]; !listed {
		t.Error("the tools of a server that is down are not listed")
	}
	await(t, "the server to come back", func() bool {
		return l.answer(t.Context(), "everything_echo", map[string]any{"message": "z"}) == "Echo: z"
	})
	if again := r.server(t); again == pid {
		t.Error("it is the same process")
	}
	awaitGone(t, "with the one that was killed", pids)
	r.end()
}

// TestServersEnd: a server's process and its children end when its declaration goes, when its trust does, and with the
// daemon.
func TestServersEnd(t *testing.T) {
	t.Parallel()
	r := everything(t)
	r.wrapped(t)
	l := connect(t, r.url, "default", legacyEra)
	trust, servers, tools := filepath.Join(r.dir, "policy/trust/data.yaml"), filepath.Join(r.dir, "catalog/servers.cue"), filepath.Join(r.dir, "catalog/stdio.cue")
	for _, test := range []struct {
		name string
		edit func()
	}{
		{"with their declaration", func() {
			if err := os.Remove(tools); err != nil {
				t.Fatal(err)
			}
			text := read(t, servers)
			from, to := strings.Index(text, "servers: everything: {"), strings.Index(text, "servers: everything_http: {")
			write(t, servers, text[:from]+text[to:])
		}},
		{"with their trust", func() { write(t, trust, strings.Replace(read(t, trust), "server.mjs", "other.mjs", 1)) }},
	} {
		before := map[string]string{trust: read(t, trust), servers: read(t, servers), tools: read(t, tools)}
		pids := r.family(t, l)
		test.edit()
		if !r.settled(t) {
			t.Fatalf("%s: %+v", test.name, r.Status().Failed)
		}
		for name := range l.listing(t) {
			if strings.HasPrefix(name, "everything_") {
				t.Errorf("%s: %s is listed", test.name, name)
			}
		}
		if got := l.answer(t.Context(), "everything_echo", map[string]any{"message": "x"}); got != absent {
			t.Errorf("%s: a call comes to %s", test.name, got)
		}
		if got := l.answer(t.Context(), "web_echo", map[string]any{"message": "x"}); got != "Echo: x" {
			t.Errorf("%s: the other server's answers %s", test.name, got)
		}
		awaitGone(t, test.name, pids)
		for name, text := range before {
			write(t, name, text)
		}
		if !r.settled(t) {
			t.Fatalf("%s, taken back: %+v", test.name, r.Status().Failed)
		}
	}
	pids := r.family(t, l)
	l.close()
	r.end()
	awaitGone(t, "with the daemon", pids)
}

// testServer is the service of testdata/http. It answers what it was asked, and counts who came under another name.
type testServer struct {
	*httptest.Server
	mu      sync.Mutex
	foreign int
}

func newTestServer(t testing.TB, token string) *testServer {
	s := &testServer{}
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{ // the client reads it or the test fails
			"method": r.Method, "path": r.URL.EscapedPath(), "query": r.URL.RawQuery, "body": string(body),
			"type": r.Header.Get("Content-Type"), "client": r.Header.Get("X-Client"), "authorized": r.Header.Get("Authorization") == "Bearer "+token,
		})
	})
	mux.HandleFunc("/status/{code}", func(w http.ResponseWriter, r *http.Request) {
		var code int
		fmt.Sscan(r.PathValue("code"), &code)
		w.WriteHeader(code)
		fmt.Fprintf(w, "this is why: %d", code)
	})
	mux.HandleFunc("/elsewhere", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, strings.Replace("http://"+r.Host, "127.0.0.1", "localhost", 1)+"/stolen", http.StatusFound)
	})
	mux.HandleFunc("/moved/here", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/moved/there", http.StatusFound) })
	mux.HandleFunc("/stolen", func(http.ResponseWriter, *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.foreign++
	})
	mux.HandleFunc("/much/{n}", func(w http.ResponseWriter, r *http.Request) {
		var n int
		fmt.Sscan(r.PathValue("n"), &n)
		w.Header().Set("Content-Type", "text/plain")
		_, _ = io.WriteString(w, strings.Repeat("x", n)) // the client may stop reading
	})
	s.Server = httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

// TestHTTPAndExecTools calls the tools of testdata/http through the whole product.
func TestHTTPAndExecTools(t *testing.T) {
	const token = "s3cret-t0ken-of-this-test"
	t.Setenv("CATALOGD_TEST_TOKEN", token)
	t.Setenv("CATALOGD_TEST_PASSED", "passed")
	t.Setenv("CATALOGD_TEST_KEPT", "kept")
	s := newTestServer(t, token)
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	dir := assemble(t, "testdata/http", "port: 3002", "port: "+u.Port())
	r := run(t, catalogd.Config{Dir: dir, Tags: []string{"port=" + u.Port()}})
	for _, w := range r.Status().Warnings {
		if w.Code != problem.SuspectEffect { // a POST that only reads
			t.Error(w)
		}
	}
	for _, era := range []string{modernEra, legacyEra} {
		l := connect(t, r.url, "default", era)
		for _, test := range []struct {
			tool string
			args map[string]any
			want map[string]any // members of the JSON that comes back
			text string         // or text
			says []string       // or parts of a failure
		}{
			{tool: "get_item", args: map[string]any{"id": "a/b c?d", "q": "x&y=é"}, want: map[string]any{
				"method": "GET", "path": "/items/a%2Fb%20c%3Fd", "query": "q=x%26y%3D%C3%A9&limit=10", "client": "catalogd", "authorized": true,
			}},
			{tool: "get_item", args: map[string]any{"id": "a", "limit": 5}, want: map[string]any{"query": "limit=5"}},
			{tool: "search_json", args: map[string]any{"index": "i", "query": "q", "deep": map[string]any{"a": 9007199254740991}}, want: map[string]any{
				"method": "POST", "path": "/json/i", "type": "application/json", "body": `{"deep":{"a":9007199254740991,"b":[1,2]},"query":"q"}`, "authorized": false,
			}},
			{tool: "search_form", args: map[string]any{"query": "a b&c"}, want: map[string]any{"type": "application/x-www-form-urlencoded", "body": "page=1&query=a+b%26c"}},
			{tool: "search_raw", args: map[string]any{"text": "# Hé\n"}, want: map[string]any{"type": "text/markdown", "body": "# Hé\n"}},
			{tool: "get_status", args: map[string]any{"code": 200}, text: "this is why: 200"},
			{tool: "get_status", args: map[string]any{"code": 404}, says: []string{"HTTP 404", "this is why: 404"}},
			{tool: "get_status", args: map[string]any{"code": 500}, says: []string{"HTTP 500", "this is why: 500"}},
			{tool: "get_moved", want: map[string]any{"path": "/moved/there"}},
			{tool: "get_elsewhere", says: []string{"may not reach"}},
			{tool: "get_much", args: map[string]any{"n": 1000}, text: strings.Repeat("x", 1000)},
			{tool: "get_much", args: map[string]any{"n": 1001}, says: []string{"1000"}},
			{tool: "put_item", args: map[string]any{"id": "a"}, says: []string{"put_item", "side effect"}},
			{tool: "copy_json", args: map[string]any{"name": "é \"$(x)\"", "list": []string{"a"}}, want: map[string]any{"name": "é \"$(x)\"", "n": 3.0, "list": []any{"a"}}},
			{tool: "echo_word", args: map[string]any{"word": "$(id) `id`; *"}, text: "$(id) `id`; *|label=x"},
			{tool: "count_files", args: map[string]any{"path": "missing"}, says: []string{"missing"}},
			{tool: "count_files", args: map[string]any{"path": "-la"}, says: []string{"/path"}},
		} {
			var args any // absent, not null
			if test.args != nil {
				args = test.args
			}
			got := l.answer(t.Context(), test.tool, args)
			what := fmt.Sprintf("%s: %s %v", era, test.tool, test.args)
			switch {
			case test.says != nil:
				for _, part := range test.says {
					if !strings.HasPrefix(got, "failed: ") || !strings.Contains(got, part) {
						t.Errorf("%s: %s; want a failure with %q", what, got, part)
					}
				}
			case test.want != nil:
				var members map[string]any
				if err := json.Unmarshal([]byte(got), &members); err != nil {
					t.Errorf("%s: %v in %s", what, err, got)
				}
				for name, want := range test.want {
					if diff := cmp.Diff(want, members[name]); diff != "" {
						t.Errorf("%s: %s: %s", what, name, diff)
					}
				}
			case got != test.text:
				t.Errorf("%s: %q, want %q", what, got, test.text)
			}
		}
		env := strings.Split(strings.TrimSpace(l.answer(t.Context(), "show_env", nil)), "\n")
		slices.Sort(env)
		if len(env) != 3 || env[0] != "CATALOGD_TEST_PASSED=passed" || env[1] != "GIVEN=yes" || !strings.HasPrefix(env[2], "TOKEN=") || strings.Contains(env[2], token) {
			t.Errorf("the command's environment: %q", env)
		}
	}
	s.mu.Lock()
	if s.foreign > 0 {
		t.Errorf("%d requests followed a redirect to another host", s.foreign)
	}
	s.mu.Unlock()
	var seen []any
	for _, tool := range []string{"get_item", "show_env"} {
		args := map[string]string{"get_item": `{"id":"a"}`}[tool]
		plan, call, err := r.Branch("default").Plan(t.Context(), tool, json.RawMessage(args))
		if err != nil || call.Err != nil {
			t.Fatal(err, call.Err)
		}
		x, err := r.Branch("default").Explain(t.Context(), tool, json.RawMessage(args))
		if err != nil {
			t.Fatal(err)
		}
		seen = append(seen, plan, call, x)
	}
	shown, err := json.Marshal([]any{seen, r.Status(), r.Reaches()})
	if err != nil {
		t.Fatal(err)
	}
	for where, text := range map[string]string{"plans, explanations, status and reaches": string(shown), "the log": r.log.String()} {
		if strings.Contains(text, token) {
			t.Errorf("the secret is in %s", where)
		}
	}
}
