package upstream

import (
	"testing"

	"github.com/catalogd/catalogd/test/internal/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
