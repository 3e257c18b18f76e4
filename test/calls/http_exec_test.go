package calls

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/catalogd/catalogd"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/test/internal/harness"
)

// testServer is the service of testdata/http. It answers what it was asked, and counts who came under another name.
type testServer struct {
	*httptest.Server
	mu      sync.Mutex
	foreign int
	flaky   map[string]int // requests by key
}

func newTestServer(t testing.TB, token string) *testServer {
	s := &testServer{flaky: map[string]int{}}
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
	mux.HandleFunc("/upload", func(w http.ResponseWriter, r *http.Request) {
		file, head, err := r.FormFile("image")
		if err != nil {
			t.Error(err)
			return
		}
		data, err := io.ReadAll(file)
		if err != nil {
			t.Error(err)
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"caption": r.FormValue("caption"), "name": head.Filename, "type": head.Header.Get("Content-Type"), "data": string(data)})
	})
	mux.HandleFunc("/pages", func(w http.ResponseWriter, r *http.Request) {
		var page, last int
		fmt.Sscan(r.URL.Query().Get("page"), &page)
		fmt.Sscan(r.URL.Query().Get("last"), &last)
		if page+1 < last {
			w.Header().Set("Link", fmt.Sprintf("</pages?last=%d&page=%d>; rel=\"next\"", last, page+1))
		}
		fmt.Fprintf(w, `{"numbers": [%d, %d]}`, 2*page, 2*page+1)
	})
	mux.HandleFunc("/flaky/{key}", func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		key := r.PathValue("key")
		if s.flaky[key]++; key == "never" || s.flaky[key] <= 2 {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, `{"detail": "the index is rebuilt"}`)
			return
		}
		_, _ = io.WriteString(w, "ready") // the client reads it or the test fails
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
	dir := harness.Assemble(t, "testdata/http", "port: 3002", "port: "+u.Port())
	r := harness.Serve(t, catalogd.Config{Dir: dir, Tags: []string{"port=" + u.Port()}})
	for _, w := range r.Status().Warnings {
		if w.Code != problem.SuspectEffect { // a POST that only reads
			t.Error(w)
		}
	}
	for _, era := range []string{harness.Modern, harness.Legacy} {
		l := harness.Connect(t, r.URL, "default", era)
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
			{tool: "find_items", args: map[string]any{"tags": []string{"a b", "c"}, "tenant": "acme", "where": map[string]any{"city": "x&y"}}, want: map[string]any{
				"query": "key=***&tag=a%20b&tag=c&where=x%26y%2FC", "client": "acme",
			}},
			{tool: "find_items", args: map[string]any{"tags": []string{}}, want: map[string]any{"query": "key=***", "client": ""}},
			{tool: "find_items", args: map[string]any{"tags": []string{}, "tenant": "a\r\nX-Client: b"}, says: []string{"/tenant", "line break"}},
			{tool: "search_json", args: map[string]any{"index": "i", "query": "q", "deep": map[string]any{"a": 9007199254740991}}, want: map[string]any{
				"method": "POST", "path": "/json/i", "type": "application/json", "body": `{"deep":{"a":9007199254740991,"b":[1,2]},"query":"q"}`, "authorized": false,
			}},
			{tool: "search_form", args: map[string]any{"query": "a b&c"}, want: map[string]any{"type": "application/x-www-form-urlencoded", "body": "page=1&query=a+b%26c"}},
			{tool: "search_raw", args: map[string]any{"text": "# Hé\n"}, want: map[string]any{"type": "text/markdown", "body": "# Hé\n"}},
			{tool: "get_status", args: map[string]any{"code": 200}, text: "this is why: 200"},
			{tool: "get_status", args: map[string]any{"code": 404}, says: []string{"HTTP 404", "this is why: 404"}},
			{tool: "get_status", args: map[string]any{"code": 500}, says: []string{"HTTP 500", "this is why: 500"}},
			{tool: "upload_image", args: map[string]any{"caption": "é", "image": "iVBORw0="}, want: map[string]any{
				"caption": "é", "name": "image.png", "type": "image/png", "data": "\ufffdPNG\r",
			}},
			{tool: "upload_image", args: map[string]any{"caption": "é", "image": "é"}, says: []string{"/image", "base64"}},
			{tool: "list_pages", want: map[string]any{"items": []any{0.0, 1.0, 2.0, 3.0, 4.0, 5.0}, "more": false}},
			{tool: "list_pages", args: map[string]any{"last": 99}, want: map[string]any{"more": true}},
			{tool: "get_flaky", args: map[string]any{"key": era}, text: "ready"},
			{tool: "get_flaky", args: map[string]any{"key": "never"}, says: []string{"HTTP 503", "the index is rebuilt"}},
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
			got := l.Answer(t.Context(), test.tool, args)
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
		env := slices.DeleteFunc(strings.Split(strings.TrimSpace(l.Answer(t.Context(), "show_env", nil)), "\n"), func(variable string) bool {
			name, _, _ := strings.Cut(variable, "=") // of the base
			return name == "HOME" || name == "LANG" || strings.HasPrefix(name, "LC_") || name == "PATH" || name == "TMPDIR" || name == "TZ"
		})
		slices.Sort(env)
		if len(env) != 3 || env[0] != "CATALOGD_TEST_PASSED=passed" || env[1] != "GIVEN=yes" || !strings.HasPrefix(env[2], "TOKEN=") || strings.Contains(env[2], token) {
			t.Errorf("the command's environment: %q", env)
		}
	}
	if log := r.Log.String(); strings.Count(log, `"retries":2`) != 2 || strings.Count(log, `"retries":3`) != 2 {
		t.Errorf("the log doesn't have each retry: %s", log)
	}
	const counted = `catalogd_call_retries_total{branch="default",tool="get_flaky"} 10`
	if metrics := get(t, r.URL+"/metrics"); !strings.Contains(metrics, counted) {
		t.Errorf("/metrics has no %s", counted)
	}
	s.mu.Lock()
	if s.foreign > 0 {
		t.Errorf("%d requests followed a redirect to another host", s.foreign)
	}
	s.mu.Unlock()
	var seen []any
	for _, tool := range []string{"get_item", "find_items", "show_env"} {
		args := map[string]string{"get_item": `{"id":"a"}`, "find_items": `{"tags":["a"],"tenant":"acme"}`}[tool]
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
	shown, err := json.Marshal([]any{seen, r.Status(), r.ConnectDecisions()})
	if err != nil {
		t.Fatal(err)
	}
	for where, text := range map[string]string{"plans, explanations, status and reaches": string(shown), "the log": r.Log.String()} {
		if strings.Contains(text, token) {
			t.Errorf("the secret is in %s", where)
		}
	}
}
