package docs

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/catalogd/catalogd/test/internal/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// usePrograms puts the program catalogd first on the PATH, and gives it a state directory of its own.
func usePrograms(t *testing.T) {
	t.Helper()
	t.Setenv("PATH", filepath.Dir(harness.Catalogd(t))+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Setenv("XDG_STATE_HOME", t.TempDir())
}
