package binding_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/decision/trust"
	"github.com/catalogd/catalogd/internal/binding"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

var loopback = trust.Terms{Entry: "local", Addresses: []string{"127.0.0.0/8", "::1/128"}}

func service(spec contract.Spec, method, url string) registry.Tool {
	return registry.Tool{Name: "tool", Effect: registry.Read, Args: spec, Binding: registry.Binding{HTTP: &registry.HTTP{Method: method, URL: url, Output: "text"}}}
}

// telling answers what it was asked, as the server sees it.
func telling(t *testing.T) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		fmt.Fprintf(w, "%s %s", r.Method, r.RequestURI)
		if len(b) > 0 {
			fmt.Fprintf(w, "\n%s\n%s", r.Header.Get("Content-Type"), b)
		}
	}))
	t.Cleanup(server.Close)
	return server
}

func TestHTTPRequests(t *testing.T) {
	t.Parallel()
	server := telling(t)
	for _, tt := range []struct {
		method, url string
		body        *registry.Body
		args        []string
		raw, want   string
	}{
		{"GET", "/weather/{city}{?units,limit}", nil, []string{"city", "units?", "limit?:integer"}, `{"city":"São Paulo"}`, "GET /weather/S%C3%A3o%20Paulo"},
		{"GET", "/weather/{city}{?units,limit}", nil, []string{"city", "units?", "limit?:integer"}, `{"city":"a/b","limit":9007199254740993}`, "GET /weather/a%2Fb?limit=9007199254740993"},
		{"GET", "/s?fixed=1{&q,on}", nil, []string{"q", "on=true:boolean"}, `{"q":"a&b=c#d e+f%20"}`, "GET /s?fixed=1&q=a%26b%3Dc%23d%20e%2Bf%2520&on=true"},
		{"GET", "/s?k={q}", nil, []string{"q"}, `{"q":"?&"}`, "GET /s?k=%3F%26"},
		{"GET", "/s{?list*}", nil, []string{"list?:array"}, `{"list":["a",2]}`, "GET /s?list=a&list=2"},
		{"GET", "/s{?list}", nil, []string{"list?:array"}, `{"list":["a","b,c"]}`, "GET /s?list=a,b%2Cc"},
		{"GET", "/s{?list}", nil, []string{"list?:array"}, `{"list":[]}`, "GET /s"},
		{"GET", "/s{?filter*}", nil, []string{"filter?:object"}, `{"filter":{"b":1,"a":"x&y"}}`, "GET /s?a=x%26y&b=1"},
		{"GET", "/s{?filter*}", nil, []string{"filter?:object"}, `{"filter":{"x&admin":1}}`, "GET /s?x%26admin=1"},
		{"GET", "/s{?filter}", nil, []string{"filter?:object"}, `{"filter":{"b":1,"a":""}}`, "GET /s?filter=a,,b,1"},
		{"GET", "/s{;a,b}{?a,b}", nil, []string{"a", "b"}, `{"a":"1","b":"2"}`, "GET /s;a=1;b=2?a=1&b=2"},
		{"GET", "/s{?a}", nil, []string{"a"}, `{"a":""}`, "GET /s?a="},
		{"GET", "/v{.v}", nil, []string{"v"}, `{"v":"json"}`, "GET /v.json"},
		{"GET", "/v/{a,b}", nil, []string{"a", "b"}, `{"a":"1","b":"2"}`, "GET /v/1,2"},
		// What the library makes "%2E%2F", and nothing.
		{"GET", "/v/{v}", nil, []string{"v"}, `{"v":"\u2e2f\u012e"}`, "GET /v/%E2%B8%AF%C4%AE"},
		{"GET", "/v/{v}", nil, []string{"v"}, `{"v":"a\u0000b"}`, "GET /v/a%00b"},
		{"GET", "/été/{v}", nil, []string{"v"}, `{"v":"1"}`, "GET /%C3%A9t%C3%A9/1"},
		{"GET", "/s{?q}", nil, []string{"q?:null|string"}, `{"q":null}`, "GET /s"},
		{"GET", "/s{/a,b}", nil, []string{"a", "b"}, `{"a":"1","b":"2"}`, "GET /s/1/2"},
		{"GET", "{?q}", nil, []string{"q"}, `{"q":"x"}`, "GET /?q=x"},
		{"GET", "/@{v}", nil, []string{"v"}, `{"v":"@evil.example"}`, "GET /@%40evil.example"},
		{"GET", "/v/{v}", nil, []string{"v"}, `{"v":"#"}`, "GET /v/%23"},
		{"GET", "/v/{v}", nil, []string{"v"}, `{"v":"?admin=1"}`, "GET /v/%3Fadmin%3D1"},
		{"GET", "/v/{v}", nil, []string{"v"}, `{"v":"http://169.254.169.254/"}`, "GET /v/http%3A%2F%2F169.254.169.254%2F"},
		{"GET", "/v/{v}", nil, []string{"v"}, `{"v":"a\r\nHost: evil"}`, "GET /v/a%0D%0AHost%3A%20evil"},
		{"DELETE", "/v/{v}", nil, []string{"v"}, `{"v":"1"}`, "DELETE /v/1"},
		{"POST", "/v/{id}", &registry.Body{Kind: "json"}, []string{"id", "n:integer", "deep:object", "x?"}, `{"id":"7","n":9007199254740993,"deep":{"h":"<&>"}}`, "POST /v/7\napplication/json\n" + `{"deep":{"h":"<&>"},"n":9007199254740993}`},
		{"POST", "/v/{id}", &registry.Body{Kind: "json", Args: []string{"id"}}, []string{"id", "n?:integer"}, `{"id":"7","n":1}`, "POST /v/7\napplication/json\n" + `{"id":"7"}`},
		{"PUT", "/v", &registry.Body{Kind: "form"}, []string{"a", "list:array", "on:boolean", "none?:null|string"}, `{"a":"x y&z","list":[1,"b"],"on":false,"none":null}`, "PUT /v\napplication/x-www-form-urlencoded\na=x+y%26z&list=1&list=b&on=false"},
		{"POST", "/v", &registry.Body{Kind: "raw", Args: []string{"text"}}, []string{"text"}, `{"text":"{text}\n\"é"}`, "POST /v\ntext/plain; charset=utf-8\n{text}\n\"é"},
		{"PATCH", "/v", &registry.Body{Kind: "raw", Args: []string{"text"}, ContentType: "text/csv"}, []string{"text"}, `{"text":"a,b"}`, "PATCH /v\ntext/csv\na,b"},
	} {
		tool := service(args(t, tt.args...), tt.method, server.URL+tt.url)
		tool.Binding.HTTP.Body = tt.body
		invoker := bind(t, tool, loopback, binding.Deps{})
		in := checked(t, tool, tt.raw)
		r, err := invoker.Invoke(t.Context(), registry.Invocation{Args: in})
		if err != nil {
			t.Errorf("%s %s: %v", tt.url, tt.raw, err)
			continue
		}
		if diff := cmp.Diff(tt.want, content(t, r)); r.IsError || diff != "" {
			t.Errorf("%s %s: (-want +got)\n%s", tt.url, tt.raw, diff)
		}
		plan, err := invoker.Plan(in)
		if err != nil {
			t.Fatal(err)
		}
		told := strings.Replace(plan.Method+" "+strings.TrimPrefix(plan.URL, server.URL), " ?", " /?", 1)
		if plan.Body != "" {
			told += "\n" + plan.Headers["Content-Type"][0] + "\n" + plan.Body
		}
		if told != tt.want {
			t.Errorf("%s %s: planned %q", tt.url, tt.raw, told)
		}
	}
}

func httpRefusesValues(t *testing.T) {
	t.Parallel()
	server := telling(t)
	for _, tt := range []struct{ url, arg, raw, want string }{
		{"/v/{v}", "v", `""`, "a segment of a URL's path"},
		{"/v/{v}", "v", `"."`, "a segment of a URL's path"},
		{"/v/{v}/x", "v", `".."`, "a segment of a URL's path"},
		{"/v/{v}", "v", `"../admin"`, "changes the URL's path"},
		{"/v/{v}", "v", `"a/../../admin"`, "changes the URL's path"},
		{"/v/{v}", "v", `"..%2fadmin"`, "changes the URL's path"},
		{"/v/{v}", "v", `"%2e%2e"`, "changes the URL's path"},
		{"/v/{v}", "v", `"..\\admin"`, "changes the URL's path"},
		{"/v{/v}", "v", `".."`, "a segment of a URL's path"},
		{"/v/{.v}", "v", `"."`, "a segment of a URL's path"},
		{"/v{?v}", "v?:array", `[[1]]`, "a list of them"},
		{"/v{?v*}", "v?:object", `{"a":{}}`, "a list of them"},
	} {
		tool := service(args(t, tt.arg), "GET", server.URL+tt.url)
		_, err := bind(t, tool, loopback, binding.Deps{}).Invoke(t.Context(), registry.Invocation{Args: checked(t, tool, `{"v":`+tt.raw+`}`)})
		if code(err) != registry.InvalidArguments || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "/v") {
			t.Errorf("%s with %s: %v", tt.url, tt.raw, err)
		}
	}
}

func TestHTTPAnswers(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	answer := func(path string, status int, header, body string) {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			if name, value, ok := strings.Cut(header, ": "); ok {
				w.Header().Set(name, value)
			}
			w.WriteHeader(status)
			io.WriteString(w, body)
		})
	}
	answer("/ok", 200, "", "fine\x1b[31m\xff")
	answer("/created", 201, "", `{"id": 9007199254740993}`)
	answer("/empty", 204, "", "")
	answer("/html", 200, "Content-Type: text/html", "<p>")
	answer("/missing", 404, "", "no such city")
	answer("/busy", 429, "Retry-After: 7", "slow down")
	answer("/broken", 500, "", strings.Repeat("x", 2<<20))
	answer("/away", 302, "", "")
	answer("/unchanged", 304, "", "")
	for path, line := range map[string]string{"/words": "404 kestrel", "/unknown": "599 kestrel"} {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			conn, out, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			fmt.Fprintf(out, "HTTP/1.1 %s\r\nContent-Length: 4\r\n\r\nlost", line)
			if err := out.Flush(); err != nil {
				t.Error(err)
			}
		})
	}
	answer("/long", 200, "Content-Length: 1000001", strings.Repeat("x", 1000001))
	server := httptest.NewServer(mux)
	defer server.Close()
	for _, tt := range []struct {
		path, output string
		want         string
		isError      bool
		structured   string
		code         registry.ErrorCode
	}{
		{"/ok", "text", "fine\uFFFD", false, "", ""},
		{"/created", "json", `{"id":9007199254740993}`, false, `{"id":9007199254740993}`, ""},
		{"/created", "text", `{"id": 9007199254740993}`, false, "", ""},
		{"/empty", "json", "", false, "", ""},
		{"/html", "json", "the service's answer was to be one JSON value, and is not. It begins:\n<p>", true, "", ""},
		{"/missing", "json", "the service answered HTTP 404 Not Found\nno such city", true, "", ""},
		{"/busy", "text", "the service answered HTTP 429 Too Many Requests\nRetry-After: 7\nslow down", true, "", ""},
		{"/broken", "text", "the service answered HTTP 500 Internal Server Error\n" + strings.Repeat("x", 4096) + "\n[cut: 1000001 bytes in all]", true, "", ""},
		{"/words", "text", "the service answered HTTP 404 Not Found\nlost", true, "", ""},
		{"/unknown", "text", "the service answered HTTP 599\nlost", true, "", ""},
		{"/away", "text", "the service answered HTTP 302 Found", true, "", ""},
		{"/unchanged", "text", "the service answered HTTP 304 Not Modified", true, "", ""},
		{"/long", "text", "", false, "", registry.OutputTooLarge},
	} {
		tool := service(args(t), "GET", server.URL+tt.path)
		tool.Binding.HTTP.Output, tool.Binding.HTTP.MaxOutput = tt.output, 1_000_000
		r, err := bind(t, tool, loopback, binding.Deps{}).Invoke(t.Context(), registry.Invocation{Args: checked(t, tool, "{}")})
		if err != nil {
			if code(err) != tt.code {
				t.Errorf("%s: %v", tt.path, err)
			}
			continue
		}
		if got := content(t, r); tt.code != "" || got != tt.want || r.IsError != tt.isError || string(r.Structured) != tt.structured {
			t.Errorf("%s: got %.200q, error %v, structured %s", tt.path, got, r.IsError, r.Structured)
		}
	}
}

func httpStaysOnItsHost(t *testing.T) {
	t.Parallel()
	var canary atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { canary.Add(1) }))
	defer other.Close()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL+r.URL.Path, http.StatusTemporaryRedirect)
	}))
	defer server.Close()
	tool := service(args(t, "v"), "POST", server.URL+"/v/{v}")
	tool.Binding.HTTP.Body = &registry.Body{Kind: "json", Args: []string{"v"}}
	in := checked(t, tool, `{"v":"x"}`)
	_, err := bind(t, tool, loopback, binding.Deps{}).Invoke(t.Context(), registry.Invocation{Args: in})
	if code(err) != registry.BindingFailed || !strings.Contains(err.Error(), "not the trusted origin") {
		t.Errorf("redirected: %v", err)
	}
	_, err = bind(t, tool, trust.Terms{Entry: "public-only"}, binding.Deps{}).Invoke(t.Context(), registry.Invocation{Args: in})
	if code(err) != registry.BindingFailed || !strings.Contains(err.Error(), `trust entry "public-only" would have to name it, addresses: ["127.0.0.1/32"]`) {
		t.Errorf("loopback without leave: %v", err)
	}
	if n := canary.Load(); n != 0 {
		t.Errorf("%d requests got away", n)
	}
	server.Close()
	if _, err := bind(t, tool, loopback, binding.Deps{}).Invoke(t.Context(), registry.Invocation{Args: in}); code(err) != registry.Unavailable {
		t.Errorf("a closed port: %v", err)
	}
}

func httpSecrets(t *testing.T) {
	t.Setenv("HTTP_TOKEN", "s3cr3t/value")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		told, _ := json.Marshal(r.Header.Get("Authorization"))
		fmt.Fprintf(w, `{"auth":%s,"basic":"czNjcjN0L3ZhbHVl","lang":%q}`, told, r.Header.Get("Accept-Language"))
	}))
	defer server.Close()
	tool := service(args(t), "GET", server.URL+"/")
	tool.Binding.HTTP.Output = "json"
	tool.Binding.HTTP.Headers = map[string]registry.Value{"authorization": {Secret: "env:HTTP_TOKEN", Prefix: "Bearer "}, "accept-language": {Literal: "pt"}}
	invoker := bind(t, tool, loopback, binding.Deps{})
	in := checked(t, tool, "{}")
	r, err := invoker.Invoke(t.Context(), registry.Invocation{Args: in})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(r.Structured), `{"auth":"Bearer ***","basic":"***","lang":"pt"}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	plan, err := invoker.Plan(in)
	if err != nil || plan.Headers["Authorization"][0] != "Bearer ***" || plan.Headers["Accept-Language"][0] != "pt" {
		t.Errorf("plan %+v, %v", plan, err)
	}
	// What net/http and the guard quote of an answer.
	for _, answer := range []string{
		"HTTP/1.1 200 OK\r\ns3cr3t/value\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: s3cr3t/value\r\n\r\n",
		"HTTP/1.1 302 Found\r\nLocation: http://kestrel.example/s3cr3t/value\r\nContent-Length: 0\r\n\r\n",
	} {
		broken := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			conn, out, err := w.(http.Hijacker).Hijack()
			if err == nil {
				defer conn.Close()
				_, err = out.WriteString(answer)
				err = errors.Join(err, out.Flush())
			}
			if err != nil {
				t.Error(err)
			}
		}))
		tool.Binding.HTTP.URL = broken.URL + "/"
		_, err := bind(t, tool, loopback, binding.Deps{}).Invoke(t.Context(), registry.Invocation{Args: in})
		broken.Close()
		if err == nil || !strings.Contains(err.Error(), "***") || strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("%q: the log has %v", answer, err)
		}
	}
	t.Setenv("HTTP_TOKEN", "two\nlines")
	if _, err := invoker.Invoke(t.Context(), registry.Invocation{Args: in}); code(err) != registry.BindingFailed || strings.Contains(err.Error(), "lines") {
		t.Errorf("a secret with a line break: %v", err)
	}
}

func httpBad(t *testing.T) {
	t.Parallel()
	base := func() registry.Tool {
		tool := service(args(t, "city", "units?", "list?:array", "o?:object"), "GET", "https://api.example.com/weather/{city}{?units,list,o}")
		tool.Binding.HTTP.Headers = map[string]registry.Value{"X-A": {Literal: "1"}}
		return tool
	}
	urlIs := func(s string) func(*registry.Tool) { return func(t *registry.Tool) { t.Binding.HTTP.URL = s } }
	header := func(name string, v registry.Value) func(*registry.Tool) {
		return func(t *registry.Tool) { t.Binding.HTTP.Headers[name] = v }
	}
	bodyIs := func(b registry.Body) func(*registry.Tool) {
		return func(t *registry.Tool) { t.Binding.HTTP.Method, t.Binding.HTTP.Body = "POST", &b }
	}
	const at = "binding.http.url"
	testBad(t, base, []bad{
		{"no scheme", urlIs("api.example.com/{city}"), problem.BadBinding, at, "must begin with http"},
		{"file", urlIs("file:///etc/passwd"), problem.BadBinding, at, "not http or https"},
		{"templated scheme", urlIs("{city}://x/"), problem.BadBinding, at, "must begin with http"},
		{"templated host", urlIs("https://{city}.example.com/"), problem.BadBinding, at, "are fixed"},
		{"templated port", urlIs("https://x.example:{city}/"), problem.BadBinding, at, "are fixed"},
		{"user information", urlIs("https://u:p@x.example/"), problem.BadBinding, at, "user information"},
		{"fragment", urlIs("https://x.example/#a"), problem.BadBinding, at, "fragment"},
		{"reserved expansion", urlIs("https://x.example/{+city}"), problem.BadBinding, at, "write {city}"},
		{"fragment expansion", urlIs("https://x.example/a{#city}"), problem.BadBinding, at, "write {city}"},
		{"prefix", urlIs("https://x.example/{city:3}"), problem.BadBinding, at, "prefix"},
		{"unclosed", urlIs("https://x.example/{city"), problem.BadBinding, at, "not closed"},
		{"bad name", urlIs("https://x.example/{ci-ty}"), problem.BadBinding, at, "RFC 6570"},
		{"second query", urlIs("https://x.example/?a=1{?city}"), problem.BadBinding, at, "{&city}"},
		{"no query", urlIs("https://x.example/a{&city}"), problem.BadBinding, at, "{?city}"},
		{"path in query", urlIs("https://x.example/?a{/city}"), problem.BadBinding, at, "belongs into the path"},
		{"dots", urlIs("https://x.example/a/../{city}"), problem.BadBinding, at, ". or .."},
		{"dots behind", urlIs("https://x.example/{city}/../a"), problem.BadBinding, at, ". or .."},
		{"unknown argument", urlIs("https://x.example/{cty}"), problem.BadPlaceholder, at, `did you mean "city"?`},
		{"optional in the path", urlIs("https://x.example/{units}"), problem.BadPlaceholder, at, "{?units}"},
		{"optional in a value", urlIs("https://x.example/?u={units}"), problem.BadPlaceholder, at, "{&units}"},
		{"list in the path", urlIs("https://x.example/{list}"), problem.BadPlaceholder, at, "can be an array"},
		{"method", func(t *registry.Tool) { t.Binding.HTTP.Method = "CONNECT" }, problem.BadBinding, "binding.http.method", "not one of"},
		{"output", func(t *registry.Tool) { t.Binding.HTTP.Output = "xml" }, problem.BadBinding, "binding.http.output", "not one of"},
		{"GET with a body", func(t *registry.Tool) { t.Binding.HTTP.Body = &registry.Body{Kind: "json"} }, problem.BadBinding, "binding.http.body", "has no body"},
		{"header's name", header("X A", registry.Value{}), problem.BadBinding, "binding.http.headers.X A", "not a header's name"},
		{"header's name with a break", header("X\r\nA", registry.Value{}), problem.BadBinding, "binding.http.headers.X\r\nA", "not a header's name"},
		{"header's value", header("X-A", registry.Value{Literal: "a\r\nHost: b"}), problem.BadBinding, "binding.http.headers.X-A", "line break"},
		{"header's prefix", header("X-A", registry.Value{Secret: "env:A", Prefix: "a\n"}), problem.BadBinding, "binding.http.headers.X-A", "line break"},
		{"reserved header", header("host", registry.Value{Literal: "x"}), problem.BadBinding, "binding.http.headers.host", "transport's own"},
		{"proxy header", header("Proxy-Authorization", registry.Value{Literal: "x"}), problem.BadBinding, "binding.http.headers.Proxy-Authorization", "transport's own"},
		{"header twice", header("x-a", registry.Value{Literal: "x"}), problem.BadBinding, "binding.http.headers.x-a", "twice"},
		{"argument before a secret", header("X-B", registry.Value{Secret: "env:A", Prefix: "a {city}"}), problem.BadPlaceholder, "binding.http.headers.X-B", "takes no arguments"},
		{"pasted secret", header("X-B", registry.Value{Secret: "hunter2"}), problem.BadSecret, "binding.http.headers.X-B", "never the value itself"},
		{"body's kind", bodyIs(registry.Body{Kind: "xml"}), problem.BadBinding, "binding.http.body.kind", "not one of json, form, multipart, raw"},
		{"body's argument", bodyIs(registry.Body{Kind: "json", Args: []string{"city", "unit"}}), problem.BadPlaceholder, "binding.http.body.args.1", `did you mean "units"?`},
		{"body's argument twice", bodyIs(registry.Body{Kind: "json", Args: []string{"city", "city"}}), problem.BadPlaceholder, "binding.http.body.args.1", "twice"},
		{"form with an object", bodyIs(registry.Body{Kind: "form", Args: []string{"o"}}), problem.BadPlaceholder, "binding.http.body", "can be an object"},
		{"raw of none", bodyIs(registry.Body{Kind: "raw"}), problem.BadBinding, "binding.http.body.args", "exactly one"},
		{"raw list", bodyIs(registry.Body{Kind: "raw", Args: []string{"list"}}), problem.BadPlaceholder, "binding.http.body.args.0", "not always a string"},
		{"raw optional", bodyIs(registry.Body{Kind: "raw", Args: []string{"units"}}), problem.BadPlaceholder, "binding.http.body.args.0", "optional"},
		{"content type of json", bodyIs(registry.Body{Kind: "json", ContentType: "a/b"}), problem.BadBinding, "binding.http.body.contentType", "has its own"},
		{"content type", bodyIs(registry.Body{Kind: "raw", Args: []string{"city"}, ContentType: "a\r\nb"}), problem.BadBinding, "binding.http.body.contentType", "not a media type"},
	})
	tool := base()
	tool.Binding.HTTP.Method = "POST"
	tool.Binding.HTTP.URL = "https://x.example/{city}"
	_, problems := binding.Compile(tool, "")
	told := fmt.Sprint(problems)
	// That a tool which only reads sends a POST is the loader's to say, and said once.
	if problems.HasErrors() || strings.Contains(told, string(problem.SuspectEffect)) || !strings.Contains(told, `argument "units" goes nowhere`) {
		t.Errorf("warnings: %v", problems)
	}
}

func TestHTTPTarget(t *testing.T) {
	t.Parallel()
	tool := service(args(t, "city"), "GET", "https://API.example.com/v1/weather/{city}")
	tool.Binding.HTTP.Headers = map[string]registry.Value{"x-b": {Literal: "1"}, "authorization": {Secret: "env:A"}}
	c, problems := binding.Compile(tool, "")
	if problems.HasErrors() {
		t.Fatal(problems.Err())
	}
	got, ok := c.Target()
	want := trust.Target{Kind: trust.HTTP, Headers: []string{"Authorization", "X-B"}, Secrets: []string{"env:A"}, URL: &trust.URL{
		Scheme: "https", Host: "api.example.com", Port: 443, Path: "/v1/weather/", Segments: []string{"v1", "weather"}, Template: true,
		TLS: &trust.TLS{MinVersion: "1.2", ServerName: "api.example.com", Verified: true},
	}}
	if diff := cmp.Diff(want, got); !ok || diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
