package binding_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/catalogd/catalogd/internal/binding"
	"github.com/catalogd/catalogd/registry"
)

// FuzzNextPage: whatever a service names as its next page, the tool asks its own service only, below the fixed
// part of its path, with the same method and headers; and a cursor is one value of its parameter.
func FuzzNextPage(f *testing.F) {
	for _, next := range []string{
		"?p=2", "/in/8", "../admin", "/in/../admin", "/in/%2e%2e/admin", "/in/..%2fadmin", `/in/..\admin`, "//evil.example/in/8", "https://evil.example/in/8",
		"http://127.0.0.1@evil.example/in/8", "/in/8#x", "/in/8\r\nHost: evil", "\x00", "javascript:1", "a&after=b", "", "/in/8>; rel=\"next\", </admin", "%", "http:", "?a=%zz",
	} {
		f.Add(next)
	}
	var mu sync.Mutex
	var next string
	var seen []*http.Request
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if seen = append(seen, r); len(seen) > 1 {
			w.Write([]byte(`{"items": []}`))
			return
		}
		w.Header().Set("Link", "<"+strings.Map(func(r rune) rune {
			if r < ' ' || r == 0x7f {
				return -1
			}
			return r
		}, next)+`>; rel="next"`)
		if err := json.NewEncoder(w).Encode(map[string]any{"items": []int{1}, "next": next}); err != nil {
			f.Error(err)
		}
	}))
	f.Cleanup(server.Close)
	invokers := map[string]registry.Invoker{}
	tool := declaredHTTP(f, `url: "/in/{id}", headers: {"X-Fixed": "1"}, output: "json"`)
	tool.Binding.HTTP.URL = server.URL + "/in/{id}"
	for way, pages := range map[string]registry.Pages{
		"link": {Link: true}, "url": {URL: ".next"}, "cursor": {Cursor: ".next", Parameter: "after"},
	} {
		tool := tool
		declared := *tool.Binding.HTTP
		pages.Items, pages.Max = ".items", 2
		declared.Pages = &pages
		tool.Binding.HTTP = &declared
		invokers[way] = bind(f, tool, loopback, binding.Deps{})
	}
	in := checked(f, tool, `{"id": "7"}`)
	host := strings.TrimPrefix(server.URL, "http://")
	f.Fuzz(func(t *testing.T, named string) {
		for way, invoker := range invokers {
			mu.Lock()
			next, seen = named, nil
			mu.Unlock()
			_, err := invoker.Invoke(t.Context(), registry.Invocation{Args: in})
			if err != nil && code(err) != registry.BindingFailed && code(err) != registry.ResultInvalid {
				t.Errorf("%s %q: %v", way, named, err)
			}
			mu.Lock()
			for _, r := range seen {
				path, decodeErr := url.PathUnescape(r.URL.EscapedPath())
				dots := slices.ContainsFunc(strings.FieldsFunc(path, func(r rune) bool { return r == '/' || r == '\\' }), func(s string) bool { return s == ".." })
				if decodeErr != nil || dots || r.Method != "GET" || r.Host != host || !strings.HasPrefix(r.URL.Path, "/in/") || len(r.Header) > 4 || !slices.Equal(r.Header["X-Fixed"], []string{"1"}) {
					t.Errorf("%s %q: asked for %s %s of %s with %v", way, named, r.Method, r.RequestURI, r.Host, r.Header)
				}
			}
			if way == "cursor" && len(seen) == 2 {
				sent, err := json.Marshal(seen[1].URL.Query())
				var text string // as JSON carried it
				raw, _ := json.Marshal(named)
				_ = json.Unmarshal(raw, &text) // it was marshalled just now
				want, _ := json.Marshal(url.Values{"after": {text}})
				if err != nil || string(sent) != string(want) || seen[1].URL.Path != "/in/7" {
					t.Errorf("%q became %s?%s", named, seen[1].URL.Path, seen[1].URL.RawQuery)
				}
			}
			mu.Unlock()
		}
	})
}
