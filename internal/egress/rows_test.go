package egress_test

import "testing"

// row is one test under the number that the lists of bad inputs and threats give to what it holds against
// (docs/robustness.md).
type row struct {
	name string
	test func(*testing.T)
}

// TestBadInput has the rows of commands and addresses.
func TestBadInput(t *testing.T) {
	for _, r := range []row{
		{"A43/commands", resolve},
		{"A45/addresses", parseURL},
		{"E11/the whole group ends", cancelEndsTheWholeGroup},
	} {
		t.Run(r.name, r.test)
	}
}

// TestThreatNames has the threats that come with what names resolve to. Its tests put a resolver of their own in the place of
// the system's, so none runs beside another.
func TestThreatNames(t *testing.T) {
	for _, r := range []row{
		{"T9/every range behind a name", everyRangeBehindAName},
		{"T9/an answer that flips", answerThatFlips},
		{"T9/localhost is loopback", localhostIsLoopback},
		{"T9/what is observed", observedAddresses},
	} {
		t.Run(r.name, r.test)
	}
}

// TestThreat has the threats that the only way out holds against.
func TestThreat(t *testing.T) {
	for _, r := range []row{
		{"T7/arguments", argumentsArriveAsTheyAre},
		{"T7/only what is trusted", runNeedsTrust},
		{"T7/only what is named", onlyWhatIsNamedIsFilledIn},
		{"T7/commands", resolve},
		{"T7/inline code", inlineCodeNeedsSaying},
		{"T7/ways around", waysAroundTheInterpreterGuard},
		{"T23/packages", unpinnedMustBeMeant},
		{"T7/swapped", swappedCommand},
		{"T7/the catalog's own tree", ownTree},
		{"T7/pinned", pinnedCommand},
		{"T7/swapped while it starts", pinnedSwaps},
		{"T7/the group ends", stopKillsAfterTheGrace},
		{"T7/output", runCapsOutput},
		{"T8/environment", environmentIsGranted},
		{"T8/declared secrets", declaredSecretsArrive},
		{"T8/descriptors", noDescriptorIsInherited},
		{"T8/how a secret is written", maskKnowsHowASecretIsWritten},
		{"T9/addresses in a declaration", parseURL},
		{"T9/only what is trusted", clientNeedsTrust},
		{"T9/below the trusted path", within},
		{"T9/dialled addresses", clientReachesOnlyNamedAddresses},
		{"T9/public addresses", publicAddresses},
		{"T9/redirects", redirectsStay},
		{"T9/redirects are decided anew", redirectsAreDecidedAnew},
		{"T9/no proxy, no old TLS", noProxyAndOldTLS},
		{"T25/paths", within},
		{"T25/hosts", parseURL},
	} {
		t.Run(r.name, r.test)
	}
}
