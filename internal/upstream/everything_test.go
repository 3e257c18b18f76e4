package upstream_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/upstream"
	"github.com/catalogd/catalogd/loader"
	"github.com/catalogd/catalogd/registry"
)

const program = "node_modules/@modelcontextprotocol/server-everything/dist/index.js"

// repository is the root of the checkout, with the npm packages in it.
func repository(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(root, program)); err != nil {
		t.Fatalf("the npm server is not installed: run `npm ci` in %s", root)
	}
	return root
}

// everything puts testdata/everything together, as its README says, and returns the folder and its tags.
func everything(t *testing.T, port string) (string, []string) {
	t.Helper()
	root, dir := repository(t), t.TempDir()
	// What lies in testdata/everything comes last, over the repository's own.
	for _, part := range []struct{ from, to string }{
		{"schema.cue", "schema.cue"}, {"policy", "policy"}, {"testdata/everything", "."},
	} {
		copyAll(t, filepath.Join(root, part.from), filepath.Join(dir, part.to))
	}
	entries := filepath.Join(dir, "policy/trust/data.yaml")
	data, err := os.ReadFile(entries)
	if err != nil {
		t.Fatal(err)
	}
	data = bytes.ReplaceAll(data, []byte("port: 3001"), []byte("port: "+port))
	data = bytes.ReplaceAll(data, []byte("dir: ."), []byte("dir: "+root))
	if err := os.WriteFile(entries, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir, []string{"root=" + root, "port=" + port}
}

func copyAll(t *testing.T, from, to string) {
	t.Helper()
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		if d.IsDir() {
			return os.MkdirAll(target, 0o755)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(target, data, 0o644)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// everythingOverHTTP starts the npm server behind HTTP and returns its port.
func everythingOverHTTP(t *testing.T) string {
	t.Helper()
	// None of the ports that a kernel gives to whoever asks for any, so that no other test takes it meanwhile.
	port := ""
	for port == "" {
		free := strconv.Itoa(10_000 + rand.IntN(20_000))
		if l, err := net.Listen("tcp", "127.0.0.1:"+free); err == nil {
			l.Close()
			port = free
		}
	}
	var out bytes.Buffer
	cmd := exec.Command("node", program, "streamableHttp")
	cmd.Dir = repository(t)
	cmd.Env = append(os.Environ(), "PORT="+port)
	cmd.Stdout, cmd.Stderr = &out, &out
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
	for range 18000 {
		conn, err := net.Dial("tcp", "127.0.0.1:"+port)
		if err == nil {
			conn.Close()
			return port
		}
		select {
		case <-ended:
			t.Fatalf("the npm server ended: %s", out.String())
		case <-time.After(10 * time.Millisecond):
		}
	}
	t.Fatal("the npm server doesn't listen")
	return ""
}

// TestEverything calls the real npm server over both transports: declared in CUE, trusted by the policy.
func TestEverything(t *testing.T) {
	t.Parallel()
	port := everythingOverHTTP(t)
	dir, tags := everything(t, port)
	snapshot, problems := loader.Dir{Root: dir, Tags: tags}.Snapshot(t.Context())
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	schema, err := os.ReadFile(filepath.Join(dir, "schema.cue"))
	if err != nil {
		t.Fatal(err)
	}
	build, problems := loader.NewCompiler(loader.Config{Schema: schema}).Compile(t.Context(), snapshot)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	engine, problems := decision.Load(t.Context(), snapshot.FS(), decision.Config{Deadline: 10 * time.Second})
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	var ups []upstream.Upstream
	for _, s := range build.Servers {
		target, problems := upstream.Target(s, dir)
		if err := problems.Err(); err != nil {
			t.Fatal(err)
		}
		tr, d := engine.Connect(t.Context(), decision.ConnectInput{Subject: decision.Subject{Kind: "server", Name: s.Name, Pos: s.Pos}, Target: target})
		if !d.Allow {
			t.Fatalf("%s: %v", s.Name, d.Reasons)
		}
		// The machine that runs the tests may be busy.
		s.ConnectTimeout = time.Minute
		ups = append(ups, upstream.Upstream{Server: s, Trust: tr})
	}
	var logged bytes.Buffer
	pool := upstream.NewPool(upstream.Config{Version: "test", Logger: slog.New(slog.NewTextHandler(&logged, nil))})
	set := pool.Open(dir, ups)

	bindings := map[string]*registry.MCP{}
	for _, tool := range build.Tools {
		bindings[tool.Name] = tool.Binding.MCP
	}
	call := func(t *testing.T, tool, args string) *registry.Result {
		t.Helper()
		b := bindings[tool]
		if b == nil {
			t.Fatalf("no tool %s", tool)
		}
		r, err := set.Call(t.Context(), b.Server, b.Tool, json.RawMessage(args), registry.Listener{})
		if err != nil {
			t.Fatalf("%s: %v", tool, err)
		}
		return r
	}
	for _, prefix := range []string{"everything_", "web_"} {
		t.Run(prefix, func(t *testing.T) {
			if r := call(t, prefix+"echo", `{"message":"<é> \"x\""}`); string(r.Content[0]) != `{"type":"text","text":"Echo: <é> \"x\""}` {
				t.Errorf("echo: %s", r.Content)
			}
			if r := call(t, prefix+"get-sum", `{"a":1,"b":2.5}`); !strings.Contains(string(r.Content[0]), "3.5") {
				t.Errorf("get-sum: %s", r.Content)
			}
			r := call(t, prefix+"get-structured-content", `{"location":"Chicago"}`)
			if string(r.Structured) != `{"temperature":36,"conditions":"Light rain / drizzle","humidity":82}` || len(r.Content) != 1 {
				t.Errorf("get-structured-content: %s %s", r.Structured, r.Content)
			}
			if r := call(t, prefix+"get-sum", `{"a":"x"}`); !r.IsError {
				t.Errorf("wrong arguments: %s", r.Content)
			}
			var images int
			for _, block := range call(t, prefix+"get-tiny-image", ``).Content {
				var image struct{ Type, Data, MimeType string }
				if err := json.Unmarshal(block, &image); err != nil {
					t.Fatal(err)
				}
				if image.Type != "image" {
					continue
				}
				images++
				if png, err := base64.StdEncoding.DecodeString(image.Data); err != nil || !bytes.HasPrefix(png, []byte("\x89PNG")) || image.MimeType != "image/png" {
					t.Errorf("the image: %v, %.20q, %s", err, png, image.MimeType)
				}
			}
			if images != 1 {
				t.Errorf("%d images", images)
			}
			var calls sync.WaitGroup
			for i := range 20 {
				calls.Go(func() {
					r, err := set.Call(t.Context(), bindings[prefix+"echo"].Server, "echo", json.RawMessage(fmt.Sprintf(`{"message":"n%d."}`, i)), registry.Listener{})
					if err != nil || !strings.Contains(string(r.Content[0]), fmt.Sprintf("n%d.", i)) {
						t.Errorf("call %d: %v, %v", i, r, err)
					}
				})
			}
			calls.Wait()
		})
	}
	// The child has the base, for its entry names nothing; node sets nothing by itself.
	if r := call(t, "everything_get-env", ``); !strings.Contains(string(r.Content[0]), `HOME`) || strings.Contains(string(r.Content[0]), "PWD") {
		t.Errorf("get-env: %s", r.Content)
	}
	for _, st := range pool.Status() {
		if st.State != upstream.Ready || st.Protocol == "" || st.LastError != "" || !strings.HasPrefix(st.Trust, "everything") {
			t.Errorf("status %+v", st)
		}
		t.Logf("%s over %s speaks %s", st.Server, st.Transport, st.Protocol)
	}
	pid := pool.Status()[0].Pid
	set.Close()
	if pid == 0 || !gone(pid) {
		t.Errorf("the npm server %d is still there", pid)
	}
	pool.Close()
	for _, line := range []string{"trust=everything ", "trust=everything-http ", "upstream connected"} {
		if !strings.Contains(logged.String(), line) {
			t.Errorf("%q is not in the log:\n%s", line, &logged)
		}
	}
}
