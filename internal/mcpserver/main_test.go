package mcpserver_test

import (
	"os"
	"testing"
)

// TestMain is also the upstream on stdio that tests call: the test binary with -upstream, the revision that it speaks,
// and the file that it makes when a call is cancelled.
func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == "-upstream" {
		exactOverStdio(os.Args[2], os.Args[3])
		os.Exit(0)
	}
	os.Exit(m.Run())
}
