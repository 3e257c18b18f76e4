package intent_test

import "testing"

// TestBadInputEffector finds the tests of the effector by the rows of the list of bad inputs (docs/robustness.md).
func TestBadInputEffector(t *testing.T) {
	t.Parallel()
	t.Run("F4/one key fifty times", keys)
}
