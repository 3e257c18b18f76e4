// Package functions tests tools that are Go functions, from declarations in CUE to calls over each way in.
package functions

import (
	"testing"

	"github.com/catalogd/catalogd/test/internal/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
