package binding_test

import "testing"

// row is one test under the number that the lists of bad inputs and threats give to what it holds against
// (docs/robustness.md).
type row struct {
	name string
	test func(*testing.T)
}

// TestBadInput has the rows of bindings.
func TestBadInput(t *testing.T) {
	for _, r := range []row{
		{"A43/exec", execBad},
		{"A43/exec/missing command", execMissing},
		{"A45/http", httpBad},
		{"E7/digits", execNumbersAndBooleans},
		{"E10/NUL in argv", execRefusesValues},
		{"E10/line breaks in the header", httpRefusesValues},
		{"F14/what a command's end says", outcomesOfCommands},
		{"E11/a call ends with its context", everyBindingEndsWithItsContext},
	} {
		t.Run(r.name, r.test)
	}
}

// TestThreat has the threats that bindings hold against.
func TestThreat(t *testing.T) {
	for _, r := range []row{
		{"T7/hostile arguments", execHostileValues},
		{"T7/options", execRefusesValues},
		{"T7/interpreters", execInterpreterNeedsSaying},
		{"T7/what calls write", execFromCallNeedsNaming},
		{"T8/environment and plan", execEnvironmentAndPlan},
		{"T8/secrets of http", httpSecrets},
		{"T9/arguments", httpRefusesValues},
		{"T9/other hosts", httpStaysOnItsHost},
		{"T9/declarations", httpBad},
		{"T19/text", execResults},
		{"T19/raw", raw},
		{"T19/output is capped", everyBindingCapsItsOutput},
	} {
		t.Run(r.name, r.test)
	}
}
