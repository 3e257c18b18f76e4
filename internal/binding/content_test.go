package binding_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/catalogd/catalogd/decision/trust"
	"github.com/catalogd/catalogd/internal/binding"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// contentKinds are tools of each kind of binding that answer with out, declared as content.
func contentKinds(t *testing.T, out string) map[string]func() (*registry.Result, error) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Accept") != "application/json" {
			t.Errorf("Accept is %q", r.Header.Get("Accept"))
		}
		io.WriteString(w, out)
	}))
	t.Cleanup(server.Close)
	run := command(t, args(t), "print", out)
	run.Binding.Exec.Stdout = "content"
	get := service(args(t), "GET", server.URL+"/")
	get.Binding.HTTP.Output = "content"
	tools := map[string]func() (*registry.Result, error){}
	call := func(tool registry.Tool, terms trust.Terms) func() (*registry.Result, error) {
		return func() (*registry.Result, error) {
			return bind(t, tool, terms, binding.Deps{}).Invoke(t.Context(), registry.Invocation{Args: checked(t, tool, "{}")})
		}
	}
	tools["exec"], tools["http"] = call(run, trust.Terms{}), call(get, loopback)
	if json.Valid([]byte(out)) { // a program's output always is
		tools["jq"] = call(registry.Tool{Name: "tool", Args: args(t), Binding: registry.Binding{JQ: &registry.JQ{Program: out, Output: "content"}}}, trust.Terms{})
	}
	return tools
}

// Every block of MCP passes as it is declared, over each kind of binding, and its texts drive no terminal.
func TestContent(t *testing.T) {
	t.Parallel()
	const out = `{"content":[{"type":"text","text":"a\u001b[2Jb"},{"type":"image","data":"iVBORw0KGgo=","mimeType":"image/png","annotations":{"audience":["user"],"priority":0.5,"lastModified":"2026-01-02T03:04:05Z"}},` +
		`{"type":"audio","data":"UklGRg==","mimeType":"audio/ogg; codecs=opus"},{"type":"resource","resource":{"uri":"test://a","mimeType":"text/plain","text":"a\u0000b"}},` +
		`{"type":"resource","resource":{"uri":"file:///b","blob":""}},{"type":"resource_link","uri":"https://example.com/","name":"n","title":"t","description":"d","mimeType":"text/html","size":7}],` +
		`"structuredContent":{"n":1.50},"isError":true}`
	want := []string{
		`{"type":"text","text":"ab"}`,
		`{"type":"image","data":"iVBORw0KGgo=","mimeType":"image/png","annotations":{"audience":["user"],"priority":0.5,"lastModified":"2026-01-02T03:04:05Z"}}`,
		`{"type":"audio","data":"UklGRg==","mimeType":"audio/ogg; codecs=opus"}`,
		`{"type":"resource","resource":{"uri":"test://a","mimeType":"text/plain","text":"ab"}}`,
		`{"type":"resource","resource":{"uri":"file:///b","blob":""}}`,
		`{"type":"resource_link","uri":"https://example.com/","name":"n","title":"t","description":"d","mimeType":"text/html","size":7}`,
	}
	for kind, call := range contentKinds(t, out) {
		r, err := call()
		if err != nil {
			t.Errorf("%s: %v", kind, err)
			continue
		}
		var got []string
		for _, block := range r.Content {
			got = append(got, string(block))
		}
		if kind == "jq" { // which sorts the keys
			for i := range got {
				if !sameJSON(t, []byte(got[i]), []byte(want[i])) {
					t.Errorf("jq: %s, want %s", got[i], want[i])
				}
			}
		} else if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", kind, diff)
		}
		if !r.IsError || !strings.HasPrefix(string(r.Structured), `{"n":1.5`) {
			t.Errorf("%s: isError %v, structured %s", kind, r.IsError, r.Structured)
		}
	}
}

// Every row of docs/bindings.md is refused with its words, which quote nothing of the output, over each kind of binding.
func TestContentRefused(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("../../docs/bindings.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(doc), "| output | error |\n|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	rows := strings.Split(strings.TrimSpace(table), "\n")
	if len(rows) < 20 {
		t.Fatalf("%d rows", len(rows))
	}
	for _, row := range rows {
		cells := strings.Split(strings.Trim(row, "| "), " | ")
		out, want := strings.Trim(cells[0], "`"), cells[1]
		for kind, call := range contentKinds(t, out) {
			if kind == "jq" && strings.Contains(want, "strict JSON") {
				continue // jq has read it
			}
			_, err := call()
			if code(err) != registry.ResultInvalid || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %s: %v, want %s", kind, out, err, want)
			}
		}
	}
	for _, c := range []struct{ out, want string }{
		{`{"content": [` + strings.Repeat(`{"type":"text","text":""},`, 1000) + `{"type":"text","text":""}]}`, "at /content: expected at most 1000 blocks"},
		{`{"content": [], "structuredContent": {"a":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}}`, "less nesting"},
		{`{"content": [{"type": "image", "mimeType": "image/png", "data": "iVBO\nRw0K"}]}`, "base64"},
		{`{"content": [{"type": "image", "mimeType": "image/png", "data": "iVB="}]}`, "base64"}, // bits that are dropped
		{`{"content": [{"type": "text", "text": "\ud800"}]}`, "surrogate"},
		{"{\"content\": [{\"type\": \"text\", \"text\": \"a\xff\"}]}", "UTF-8"},
	} {
		_, err := contentKinds(t, c.out)["http"]()
		if code(err) != registry.ResultInvalid || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.80s: %v, want %s", c.out, err, c.want)
		}
	}
}

// A secret that stands in an image, as base64 too, is not passed on.
func TestContentMasksSecrets(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("hunter2-hunter2"), 0o600); err != nil {
		t.Fatal(err)
	}
	for out, want := range map[string]string{
		`{"content":[{"type":"image","mimeType":"image/png","data":"aHVudGVyMi1odW50ZXIy"}]}`:       "no secret of the tool",
		`{"content":[{"type":"resource","resource":{"uri":"a:b","text":"it is hunter2-hunter2"}}]}`: "",
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, out) }))
		defer server.Close()
		get := service(args(t), "GET", server.URL+"/")
		get.Binding.HTTP.Output = "content"
		get.Binding.HTTP.Headers = map[string]registry.Value{"X-Token": {Secret: "file:" + file}}
		terms := loopback
		terms.Headers, terms.Secrets = []string{"X-Token"}, []string{"file:" + file}
		r, err := bind(t, get, terms, binding.Deps{}).Invoke(t.Context(), registry.Invocation{Args: checked(t, get, "{}")})
		switch {
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v", out, err)
		case want == "" && (err != nil || strings.Contains(string(r.Content[0]), "hunter2")):
			t.Errorf("%s: %v %v", out, r, err)
		}
	}
}

// What post makes has no blocks, and no kind of output is called otherwise.
func TestContentDeclarations(t *testing.T) {
	t.Parallel()
	run, get := command(t, args(t), "print"), service(args(t), "GET", "http://127.0.0.1/")
	program := registry.Tool{Name: "tool", Args: args(t), Binding: registry.Binding{JQ: &registry.JQ{Program: "."}}}
	for _, c := range []struct{ output, post, want string }{
		{"content", ".", "post makes a result of its own"},
		{"contents", "", `"contents" is not one of`},
	} {
		run.Binding.Exec.Stdout, get.Binding.HTTP.Output, program.Binding.JQ.Output = c.output, c.output, c.output
		for _, tool := range []registry.Tool{run, get, program} {
			tool.Post = c.post
			_, problems := binding.Compile(tool, "")
			if len(problems) != 1 || problems[0].Code != problem.BadBinding || !strings.Contains(problems[0].Message, c.want) {
				t.Errorf("%s: %v, want %s", tool.Binding.Kind(), problems, c.want)
			}
		}
	}
}
