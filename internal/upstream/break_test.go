package upstream_test

import (
	"strings"
	"testing"

	"github.com/catalogd/catalogd/decision/trust"
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
		string(r.Structured): `{"***":[12345,"x***x"]}`,
		string(r.Meta):       `{"a/b":"***"}`,
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
