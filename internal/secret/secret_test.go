package secret_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/internal/secret"
)

// Read returns the value of a reference, or an error that names the reference and never a value.
func TestRead(t *testing.T) {
	root := t.TempDir()
	for name, content := range map[string]string{"plain": "value", "newline": "value\n", "crlf": "value\r\n", "two": "value\n\n", "empty": "\n", "big": strings.Repeat("x", secret.MaxSize+1), "full": strings.Repeat("x", secret.MaxSize)} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("SECRET_TEST_SET", "from the environment")
	t.Setenv("SECRET_TEST_EMPTY", "")
	for _, tt := range []struct{ ref, value, err string }{
		{"env:SECRET_TEST_SET", "from the environment", ""},
		{"file:plain", "value", ""},
		{"file:newline", "value", ""},
		{"file:crlf", "value", ""},
		{"file:two", "value\n", ""},
		{"file:" + filepath.Join(root, "plain"), "value", ""},
		{"file:full", strings.Repeat("x", secret.MaxSize), ""},
		{"env:SECRET_TEST_UNSET", "", "has no SECRET_TEST_UNSET"},
		{"env:SECRET_TEST_EMPTY", "", "has no SECRET_TEST_EMPTY"},
		{"file:empty", "", "empty"},
		{"file:big", "", "larger than"},
		{"file:none", "", "no such file"},
		{"file:.", "", "not a regular file"},
		{"hunter2", "", "never the value itself"},
		{"env:", "", "a reference"},
		{"env:A B", "", "a reference"},
		{"file:", "", "a reference"},
		{"", "", "a reference"},
	} {
		value, err := secret.Read(tt.ref, root)
		switch {
		case tt.err == "" && (err != nil || value != tt.value):
			t.Errorf("Read(%q) = %.20q, %v, want %.20q", tt.ref, value, err, tt.value)
		case tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)):
			t.Errorf("Read(%q) = %v, want an error with %q", tt.ref, err, tt.err)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("the error tells what may be a secret: %v", err)
		}
	}
	if _, err := secret.Read("file:plain", ""); err == nil {
		t.Error("a relative path without a root was read")
	}
	v := secret.Value{Secret: "file:plain", Prefix: "Bearer "}
	if got, err := v.Resolve(root); err != nil || got != "Bearer value" || v.Masked() != "Bearer ***" {
		t.Errorf("got %q, %v, masked %q", got, err, v.Masked())
	}
}
