package upstream_test

import (
	"testing"

	"github.com/catalogd/catalogd/decision/trust"
	"github.com/catalogd/catalogd/registry"
)

// row is one test under the number that the lists of bad inputs and threats give to what it holds against
// (docs/robustness.md).
type row struct {
	name string
	test func(*testing.T)
}

// TestBadInput has the row of declarations that their server knows nothing of.
func TestBadInput(t *testing.T) {
	t.Parallel()
	t.Run("A48/a tool that the server does not offer", notOffered)
}

// TestThreat has the threats that upstream connections hold against.
func TestThreat(t *testing.T) {
	for _, r := range []row{
		{"T7/no trust, no process", noTrustNoProcess},
		{"T7/process groups end", processGroupsEnd},
		{"T8/environment", childGetsExactlyItsEnvironment},
		{"T8/secrets of a server", serverDoesNotTellItsSecrets},
		{"T8/secrets in a refusal", refusalTellsNoSecret},
		{"T9/a server's requests", httpServersRequestsAreRefused},
		{"T9/a server that lies", httpLies},
	} {
		t.Run(r.name, r.test)
	}
}

// Calls say what the server says; the connection and its other tools go on.
func notOffered(t *testing.T) {
	t.Parallel()
	_, set := open(t, stdioServer(t, "good"), trust.Terms{})
	for range 2 {
		_, err := call(t, set, "refuse", `{}`)
		fails(t, err, registry.BindingFailed, "-32602", "Tool refuse not found")
		if got := text(t, set, "echo", `{"still":"there"}`); got != `{"still":"there"}` {
			t.Errorf("afterwards: %s", got)
		}
	}
}
