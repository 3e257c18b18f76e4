package secret_test

import (
	"testing"

	"github.com/catalogd/catalogd/internal/secret"
)

func TestMask(t *testing.T) {
	t.Setenv("MASK_TOKEN", `pass"word`)
	t.Setenv("MASK_SHORT", "abc")
	t.Setenv("MASK_KEY", "-----BEGIN KEY-----\nMIIEvQIBADAN\nshort\n-----END KEY-----\n")
	mask := secret.MaskerFor(map[string]secret.Value{
		"A": {Secret: "env:MASK_TOKEN", Prefix: "Bearer "},
		"B": {Literal: "literal"},
		"C": {Secret: "env:MASK_SHORT"},
		"D": {Secret: "env:MASK_UNSET"},
		"E": {Secret: "env:MASK_KEY"},
	}, "", "passed-on", "to")
	for in, want := range map[string]string{
		`Bearer pass"word`:       "Bearer ***",
		`{"token":"pass\"word"}`: `{"token":"***"}`,
		"cGFzcyJ3b3Jk":           "***", // base64
		"70617373 22 776F7264":   "***", // hex
		"PASS&quot;WORD":         "***",
		"key MIIEvQIBADAN.":      "key ***.",
		"short of it":            "short of it",
		"-----BEGIN KEY-----\nMIIEvQIBADAN\nshort\n-----END KEY-----\n": "***\n",
		"literal abc to":    "literal abc to",
		"/home/passed-on/x": "/home/***/x",
	} {
		if got := mask.Replace(in); got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
}
