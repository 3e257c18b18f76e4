package upstream_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/decision/trust"
	"github.com/catalogd/catalogd/internal/upstream"
	"github.com/catalogd/catalogd/registry"
)

// serverDoesNotTellItsSecrets: what a server is given is not for the model, however the answer writes it; and an
// answer without it keeps its bytes.
func serverDoesNotTellItsSecrets(t *testing.T) {
	t.Setenv("UPSTREAM_SECRET", `s3c"ret`)
	t.Setenv("UPSTREAM_NUMBER", "12345")
	s := stdioServer(t, "good")
	s.Stdio.Env = map[string]registry.Value{
		"B": {Secret: "env:UPSTREAM_SECRET", Prefix: "t="}, "C": {Secret: "env:UPSTREAM_NUMBER"}, "D": {Literal: "shown"},
	}
	_, set := open(t, s, trust.Terms{})
	if got := text(t, set, "env", `{}`); !strings.Contains(got, "B=t=***") || !strings.Contains(got, "C=***") || !strings.Contains(got, "D=shown") {
		t.Errorf("the environment is told as %q", got)
	}
	r, err := call(t, set, "result", `{"content":[{"type":"text","text":"\u0073\u0033c\"ret \u00e9"},{"type":"text", "text":"\u00e9 <&>"}],"structuredContent":{"s3c\"ret":[12345,"x12345x"]},"_meta":{"a/b":"s3c\"ret"}}`)
	if err != nil {
		t.Fatal(err)
	}
	for got, want := range map[string]string{
		string(r.Content[0]): `{"type":"text","text":"*** é"}`,
		string(r.Content[1]): `{"type":"text","text":"\u00e9 <&>"}`,
		string(r.Structured): `{"***":["***","x***x"]}`,
		string(r.Meta):       `{"a/b":"***"}`,
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// refusalTellsNoSecret: a server that refuses the handshake, or a call, with what it was given.
func refusalTellsNoSecret(t *testing.T) {
	t.Setenv("UPSTREAM_TOKEN", "token-0123456789")
	echo := func(w http.ResponseWriter, r *http.Request, id string) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"bad key %s"}}`, id, r.Header.Get("X-Key"))
	}
	answers := func(code int, header, before string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set(header, before+r.Header.Get("X-Key"))
			w.WriteHeader(code)
		}
	}
	redirects := answers(307, "Location", "http://kestrel.example/")
	child := stdioServer(t, "tells-at-handshake")
	child.Stdio.Env = map[string]registry.Value{"KEY": {Secret: "env:UPSTREAM_TOKEN"}}
	servers := map[string]registry.Server{
		"handshake": serve(t, &script{handshake: func(w http.ResponseWriter, r *http.Request) { echo(w, r, r.Header.Get("Test-Id")) }}),
		"call":      serve(t, &script{call: echo}),
		"child":     child,

		"redirect at the handshake":  serve(t, &script{handshake: redirects}),
		"redirect":                   serve(t, &script{call: func(w http.ResponseWriter, r *http.Request, _ string) { redirects(w, r) }}),
		"challenge at the handshake": serve(t, &script{handshake: answers(401, "WWW-Authenticate", "Bearer realm=")}),
		"header at the handshake":    serve(t, &script{handshake: answers(429, "Retry-After", "")}),
	}
	for name, s := range servers {
		terms := trust.Terms{}
		if s.HTTP != nil {
			s.HTTP.Headers = map[string]registry.Value{"X-Key": {Secret: "env:UPSTREAM_TOKEN"}}
			terms = loopback
		}
		var log bytes.Buffer
		root := t.TempDir()
		pool := upstream.NewPool(upstream.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		_, err := call(t, pool.Open(root, []upstream.Upstream{trusted(t, s, root, terms)}), "echo", `{}`)
		status := fmt.Sprint(pool.Status())
		pool.Close() // writes the log to its end
		if told := fmt.Sprint(err, status, log.String()); err == nil || !strings.Contains(err.Error(), "***") || strings.Contains(told, "0123456789") {
			t.Errorf("%s: %s", name, told)
		}
	}
}
