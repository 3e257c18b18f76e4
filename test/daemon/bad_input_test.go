package daemon

import "testing"

// TestBadInput groups the tests of files that change under a daemon by the rows of docs/robustness.md.
func TestBadInput(t *testing.T) {
	for _, row := range []struct {
		name string
		test func(*testing.T)
	}{
		{"C5/git checkout of a hundred files", gitCheckout},
		{"C6/tools removed from a file leave the lists", editReachesClients},
		{"C7/the catalog's directory is deleted", rootIsDeleted},
		{"C9/a ConfigMap's symlinks are swapped", configMap},
		{"C11/a broken file is repaired", brokenEdit},
		{"C17/reloads under callers", reloadWhileCalling},
	} {
		t.Run(row.name, row.test)
	}
}
