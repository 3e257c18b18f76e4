package calls

import (
	"os"
	"testing"

	"github.com/catalogd/catalogd"
	"github.com/catalogd/catalogd/test/internal/harness"
)

// compileWorker makes this program the process that evaluates CUE for catalogd.
const compileWorker = "compile-worker"

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == compileWorker {
		os.Exit(catalogd.CompileWorker(os.Stdin, os.Stdout))
	}
	harness.Main(m)
}
