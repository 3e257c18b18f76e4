package binding_test

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/catalogd/catalogd/decision/trust"
	"github.com/catalogd/catalogd/internal/binding"
	"github.com/catalogd/catalogd/registry"
)

// FuzzRequest: whatever the arguments hold, the request goes to the same place with the same method, the declared headers, one segment
// and one value for each argument, and its body is of the declared form.
func FuzzRequest(f *testing.F) {
	for _, v := range []string{"x", "..", "../a", "@evil", "..%2f", "%2e%2e", "#", "a?b=c&d", "\u2e2f", "\x00", "http://evil/", "\\..\\", ";a=b", "a\r\nHost: evil", "a\u0085b", " ", ","} {
		f.Add(v, v)
	}
	tool := service(args(f, "v", "q", "list?:array"), "POST", "https://x.example:8443/in/{v}/end{?q}")
	h := tool.Binding.HTTP
	h.Headers = map[string]registry.Value{"X-Fixed": {Literal: "1"}, "X-Value": {Literal: "v={v}; q"}, "X-List": {Literal: "{list}"}}
	h.Query = map[string]registry.Value{"repeated": {Literal: "{list}"}, "one[v]": {Literal: "a {v}"}}
	h.Join = map[string]string{"list": ","}
	h.Body = &registry.Body{Kind: "form", Args: []string{"v", "q", "list"}}
	repeats := *h
	repeats.Join, repeats.Headers = nil, map[string]registry.Value{"X-Fixed": {Literal: "1"}}
	invokers := map[bool]registry.Invoker{}
	for joined, h := range map[bool]*registry.HTTP{true: h, false: &repeats} {
		tool := tool
		tool.Binding.HTTP = h
		c, problems := binding.Compile(tool, "")
		if problems.HasErrors() {
			f.Fatal(problems.Err())
		}
		invokers[joined] = c.Bind(trust.Trust{}, binding.Deps{})
	}
	f.Fuzz(func(t *testing.T, v, q string) {
		raw, err := json.Marshal(map[string]any{"v": v, "q": q, "list": []string{v, q}})
		if err != nil {
			t.Fatal(err)
		}
		in := checked(t, tool, string(raw))
		sent := func(name string) string { v, _ := in.Lookup(name); return v.(string) }
		list := []string{sent("v"), sent("q")}
		for joined, invoker := range invokers {
			plan, err := invoker.Plan(in)
			if err != nil {
				if code(err) != registry.InvalidArguments {
					t.Fatal(err)
				}
				continue
			}
			u, err := url.Parse(plan.URL)
			if err != nil {
				t.Fatal(err)
			}
			segments := strings.Split(u.EscapedPath(), "/")
			if plan.Method != "POST" || u.Scheme != "https" || u.Host != "x.example:8443" || u.User != nil || u.Fragment != "" || len(segments) != 4 || segments[1] != "in" || segments[3] != "end" {
				t.Fatalf("%q became %s %s", v, plan.Method, plan.URL)
			}
			if got, err := url.PathUnescape(segments[2]); err != nil || got != sent("v") {
				t.Errorf("%q became the segment %q", sent("v"), segments[2])
			}
			one := list
			if joined {
				one = []string{strings.Join(list, ",")}
			}
			query := u.Query()
			if len(query) != 3 || !slices.Equal(query["q"], list[1:]) || !slices.Equal(query["one[v]"], []string{"a " + list[0]}) || !slices.Equal(query["repeated"], one) {
				t.Errorf("%q became the query %q", list, u.RawQuery)
			}
			form, err := url.ParseQuery(plan.Body)
			if err != nil || len(form) != 3 || !slices.Equal(form["v"], list[:1]) || !slices.Equal(form["q"], list[1:]) || !slices.Equal(form["list"], one) {
				t.Errorf("%q became the form %q, %v", list, plan.Body, err)
			}
			names := []string{"Content-Type", "User-Agent", "X-Fixed"}
			if joined {
				names = append(names, "X-List", "X-Value")
				if got := plan.Headers["X-Value"]; !slices.Equal(got, []string{"v=" + list[0] + "; q"}) {
					t.Errorf("%q became the header %q", list[0], got)
				}
			}
			for _, name := range names {
				if got := plan.Headers[name]; len(got) != 1 || strings.ContainsFunc(got[0], unicode.IsControl) {
					t.Errorf("%q became the header %s: %q", list, name, got)
				}
			}
			if len(plan.Headers) != len(names) {
				t.Errorf("%q became the headers %v", list, plan.Headers)
			}
		}
	})
}
