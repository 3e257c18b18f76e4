package binding_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/decision/trust"
	"github.com/catalogd/catalogd/internal/binding"
	"github.com/catalogd/catalogd/registry"
)

// Terminal sequences leave the text of exec and http, and stay where the tool declares raw: true; UTF-8 it is in any
// case (T19).
func raw(t *testing.T) {
	t.Parallel()
	const sent, kept, plain = "a\xffb\x1b]52;c;ZXZpbA==\x07c\x1b[2Jd\x00e\tf\n\u009bg", "a\uFFFDb\x1b]52;c;ZXZpbA==\x07c\x1b[2Jd\x00e\tf\n\u009bg", "a\uFFFDbcde\tf\ng"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, sent) }))
	defer server.Close()
	for raw, want := range map[bool]string{true: kept, false: plain} {
		run := command(t, args(t), "raw")
		run.Binding.Exec.Raw = raw
		get := service(args(t), "GET", server.URL+"/")
		get.Binding.HTTP.Raw = raw
		for _, tt := range []struct {
			tool  registry.Tool
			terms trust.Terms
		}{{run, trust.Terms{}}, {get, loopback}} {
			r, err := bind(t, tt.tool, tt.terms, binding.Deps{}).Invoke(t.Context(), registry.Invocation{Args: checked(t, tt.tool, "{}")})
			if err != nil {
				t.Fatal(err)
			}
			if got := content(t, r); got != want {
				t.Errorf("%s with raw %t: %q", tt.tool.Binding.Kind(), raw, got)
			}
		}
		run.Binding.Exec.Stdout, get.Binding.HTTP.Output = "json", "json"
		_, ofExec := binding.Compile(run, "")
		_, ofHTTP := binding.Compile(get, "")
		if ofExec.HasErrors() != raw || ofHTTP.HasErrors() != raw {
			t.Errorf("raw %t beside json: %v %v", raw, ofExec, ofHTTP)
		}
		for _, p := range append(ofExec, ofHTTP...) {
			if !strings.Contains(p.Message, "raw is for text") {
				t.Errorf("%v", p)
			}
		}
	}
}
