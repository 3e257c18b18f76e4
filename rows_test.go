package catalogd_test

import "testing"

// TestBadInput finds the tests of files that change under a daemon by the rows of the list of bad inputs
// (docs/robustness.md); the packages have the others.
func TestBadInput(t *testing.T) {
	for _, row := range []struct {
		name string
		test func(*testing.T)
	}{
		{"C5/git checkout", gitCheckout},
		{"C6/what leaves a file leaves the lists", editReachesClients},
		{"C7/the root is deleted", rootIsDeleted},
		{"C9/a ConfigMap's links", configMap},
		{"C11/broken, then mended", brokenEdit},
		{"C17/reloads under callers", reloadWhileCalling},
	} {
		t.Run(row.name, row.test)
	}
}
