package dialect_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/catalogd/catalogd"
	"github.com/catalogd/catalogd/contract/dialect"
	"github.com/catalogd/catalogd/internal/generation"
	"github.com/catalogd/catalogd/registry"
)

var update = flag.Bool("update", false, "write testdata/dialect/golden again")

// shapes opens the catalog of testdata/dialect, which has one tool a shape.
func shapes(t *testing.T) *catalogd.Catalog {
	t.Helper()
	dir := t.TempDir()
	for _, part := range []string{"schema.cue", "cue.mod", "policy"} {
		sub, err := fs.Sub(catalogd.Starter(), ".")
		if err != nil {
			t.Fatal(err)
		}
		copyInto(t, sub, part, dir)
	}
	copyInto(t, os.DirFS("../../testdata/dialect"), "catalog", dir)
	access := "branches:\n  default:\n    tools: [\"*\"]\n  some:\n    tools: [\"*\"]\n"
	if err := os.WriteFile(filepath.Join(dir, "policy", "access", "data.yaml"), []byte(access), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := catalogd.New(context.Background(), catalogd.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func copyInto(t *testing.T, from fs.FS, part, dir string) {
	t.Helper()
	err := fs.WalkDir(from, part, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(from, name)
		if err != nil {
			return err
		}
		to := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			return err
		}
		return os.WriteFile(to, data, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestGolden holds every shape of tool in every dialect to its golden file, with losses and refusals, and what is offered
// to the provider's published rules. Twice the same question gives the same bytes.
func TestGolden(t *testing.T) {
	t.Parallel()
	c := shapes(t)
	for _, d := range dialect.All() {
		t.Run(string(d), func(t *testing.T) {
			offers, err := c.Branch("default").In(d).Offer(registry.All())
			if err != nil {
				t.Fatal(err)
			}
			if n := len(offers.Tools) + len(offers.Refused); n < 40 {
				t.Errorf("%d tools, want 40 shapes", n)
			}
			again, err := c.Branch("default").In(d).Offer(registry.All())
			if err != nil || !bytes.Equal(golden(t, offers), golden(t, again)) {
				t.Errorf("not the same bytes again (%v)", err)
			}
			for _, tool := range offers.Tools {
				for _, broken := range rules[d](tool) {
					t.Errorf("%s\nbreaks the provider's rules: %s", tool, broken)
				}
			}
			file := filepath.Join("..", "..", "testdata", "dialect", "golden", string(d)+".json")
			if *update {
				if err := os.WriteFile(file, golden(t, offers), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(golden(t, offers))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// golden is one line a tool, a loss and a refusal, so that a difference shows where it is.
func golden(t *testing.T, o *generation.Offers) []byte {
	t.Helper()
	var b bytes.Buffer
	line := func(v any) {
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		if err := e.Encode(v); err != nil {
			t.Fatal(err)
		}
	}
	for _, tool := range o.Tools {
		b.Write(tool)
		b.WriteByte('\n')
	}
	for _, l := range o.Losses {
		line(l)
	}
	for _, f := range o.Fallbacks {
		line(map[string]any{"fallback": f})
	}
	for _, r := range o.Refused {
		line(r)
	}
	return b.Bytes()
}
