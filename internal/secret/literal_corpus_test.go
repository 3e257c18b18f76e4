package secret_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/catalogd/catalogd/internal/secret"
)

// TestRealDefinitions: none of the texts of the tools of real servers is taken for a secret.
func TestRealDefinitions(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../testdata/tool-lists/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no lists: %v", err)
	}
	texts := 0
	var look func(file, name string, v any)
	look = func(file, name string, v any) {
		switch v := v.(type) {
		case string:
			texts++
			if f, ok := secret.FindInField(name, v); ok {
				t.Errorf("%s: %s: %q is taken for %s", file, name, f.Secret, f.Rule)
			}
		case []any:
			for _, e := range v {
				look(file, name, e)
			}
		case map[string]any:
			for name, e := range v {
				look(file, name, e)
			}
		}
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var v any
		if err := json.Unmarshal(data, &v); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		look(filepath.Base(file), "", v)
	}
	if texts < 1000 {
		t.Errorf("only %d texts", texts)
	}
}
