package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// TestMergesTakeTurns: of several that edit one file at once, none undoes what another has written.
func TestMergesTakeTurns(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "mcp.json")
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	const merges = 20
	var all sync.WaitGroup
	for i := range merges {
		all.Go(func() {
			did, err := mergeFile(t.Context(), name, func(file []byte) ([]byte, string, error) {
				return fmt.Appendf(file, "entry %d;", i), "added", nil
			})
			if did != "added" || err != nil {
				t.Errorf("%d: %q, %v", i, did, err)
			}
		})
	}
	all.Wait()
	file, err := os.ReadFile(name)
	if n := strings.Count(string(file), ";"); err != nil || n != merges {
		t.Errorf("%d of %d entries are left: %q, %v", n, merges, file, err)
	}
}

// TestMergeWaits: a merge that never gets its turn ends with the command, and writes nothing.
func TestMergeWaits(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "mcp.json")
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	other, err := lockFolder(t.Context(), filepath.Dir(name))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	did, err := mergeFile(ctx, name, func([]byte) ([]byte, string, error) { return []byte("x"), "added", nil })
	if did != "" || err == nil || !strings.Contains(err.Error(), "another process keeps "+filepath.Dir(name)+" locked") {
		t.Errorf("%q, %v", did, err)
	}
}
