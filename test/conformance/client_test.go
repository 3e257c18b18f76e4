package conformance

import (
	"fmt"
	"testing"

	"github.com/catalogd/catalogd/test/internal/harness"
)

// TestConformanceClient runs the client scenarios of the conformance suite against the Go SDK's own test
// client by itself, and against catalogd with the same client before it: what passes by itself passes through
// catalogd, but for what the list of expected failures gives a reason for.
func TestConformanceClient(t *testing.T) {
	t.Parallel()
	s, expected := newSuite(t), readExpected(t)
	client := harness.Program(t, "github.com/modelcontextprotocol/go-sdk/conformance/everything-client")
	driver := fmt.Sprintf("%q %q %q %q", harness.Program(t, "./testdata/conformance/driver"), harness.Catalogd(t),
		harness.Assemble(t, "testdata/conformance"), client)
	var all []measured
	for _, revision := range []string{sessionEra, harness.Modern} {
		m := measured{"client", revision, map[string]check{}, map[string]check{}}
		scenarios := clientScenarios(t, revision)
		t.Run(revision, func(t *testing.T) {
			for _, scenario := range scenarios {
				for command, into := range map[string]map[string]check{client: m.direct, driver: m.through} {
					for name, c := range s.client(t, command, scenario, revision) {
						into[name] = c
					}
				}
			}
			m.assert(t, expected)
		})
		all = append(all, m)
	}
	assertPasses(t, all)
}
