package main

import (
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
			did, err := mergeFile(name, func(file []byte) ([]byte, string, error) {
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
