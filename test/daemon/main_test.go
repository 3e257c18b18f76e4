package daemon

import (
	"os"
	"testing"

	"github.com/catalogd/catalogd/test/internal/harness"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == soakUpstream {
		echoServer(os.Stdin, os.Stdout)
		return
	}
	harness.Main(m)
}
