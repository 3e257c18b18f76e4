package httpapi

import (
	"bytes"
	"net/http"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestDescriptionIsConstant checks that the description depends on nothing but the version: it is public.
func TestDescriptionIsConstant(t *testing.T) {
	t.Parallel()
	one, other := writeDescription((&API{}).table()), writeDescription((&API{}).table())
	if !bytes.Equal(one, other) {
		t.Errorf("two descriptions differ: %s", cmp.Diff(string(one), string(other)))
	}
}

// TestRoutesAreWellFormed checks what the dispatcher and the description take for granted of the table.
func TestRoutesAreWellFormed(t *testing.T) {
	t.Parallel()
	ids := map[string]bool{}
	for _, to := range (&API{}).table() {
		if len(to.names) > 2 || !regexp.MustCompile(`^/$|^(/([a-z.-]+|\{[a-z]+\}))+$`).MatchString(to.path) {
			t.Errorf("path %s: two variables at most, and lower-case segments", to.path)
		}
		for _, name := range to.names {
			if aboutVariables[name] == "" {
				t.Errorf("path %s: aboutVariables has no %s", to.path, name)
			}
		}
		for _, o := range to.operations {
			if ids[o.id] || o.id == "" {
				t.Errorf("%s %s: operationId %q is empty or used twice", o.method, to.path, o.id)
			}
			ids[o.id] = true
			if o.method == http.MethodHead || o.method == http.MethodOptions || o.summary == "" || len(o.answers) == 0 || o.handle == nil {
				t.Errorf("%s %s: incomplete, or a method that the dispatcher answers", o.method, to.path)
			}
			for _, p := range o.params {
				if p.about == "" || p.schema == nil || p.in != inQuery && p.in != inHeader {
					t.Errorf("%s %s: the parameter %s is not described", o.method, to.path, p.name)
				}
			}
			seen := map[int]bool{}
			for _, a := range o.all() {
				if seen[a.status] || a.about == "" {
					t.Errorf("%s %s: status %d is described twice, or by nothing", o.method, to.path, a.status)
				}
				seen[a.status] = true
				for _, h := range a.headers {
					if aboutHeaders[h] == "" {
						t.Errorf("%s %s: aboutHeaders has no %s", o.method, to.path, h)
					}
				}
			}
		}
	}
}

// TestRouteMatching checks which paths have a route, and the values of their variables.
func TestRouteMatching(t *testing.T) {
	t.Parallel()
	a := &API{}
	a.routes = a.table()
	for _, test := range []struct{ path, want, values string }{
		{"/mcp", "/mcp", ""}, {"/mcp/", "/mcp", ""}, {"/mcp//", "", ""}, {"//mcp", "", ""}, {"/mcp/x", "", ""},
		{"/branches/a/mcp", "/branches/{branch}/mcp", "a"}, {"/branches/a/mcp/", "/branches/{branch}/mcp", "a"},
		{"/branches/mcp/mcp", "/branches/{branch}/mcp", "mcp"}, {"/branches//mcp", "", ""}, {"/branches/../mcp", "", ""},
		{"/branches/a%2fb/mcp", "", ""}, {"/branches/a/b/mcp", "", ""}, {"/branches/a/tools/", "", ""},
		{"/branches/a/tools", "/branches/{branch}/tools", "a"}, {"/branches", "/branches", ""}, {"/branches/", "", ""},
		{"/intents/x/approve", "/intents/{id}/approve", "x"}, {"/intents/approve", "/intents/{id}", "approve"},
		{"/intents/x/y", "", ""}, {"", "", ""}, {"/healthz/", "", ""}, {"/./healthz", "", ""},
		{"/", "/", ""}, {"/.", "", ""}, {"//", "", ""},
		{"/-/intents/pause", "/-/intents/pause", ""}, {"/{branch}", "", ""},
	} {
		r, err := http.NewRequest(http.MethodGet, "http://localhost"+test.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		to, values := a.find(r)
		got := ""
		if to != nil {
			got = to.path
		}
		if got != test.want || values[0] != test.values {
			t.Errorf("%q: got %q %q, want %q %q", test.path, got, values[0], test.want, test.values)
		}
	}
}
