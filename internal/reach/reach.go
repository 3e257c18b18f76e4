// Package reach is the only room of catalogd that spawns processes and dials addresses. Nothing in it decides: every
// way out takes a trust.Trust, the answer of the policy's connect decision, beside the trust.Target that it was asked
// about, and refuses what that Trust does not cover.
//
// What runs is what was decided. A command is resolved to one absolute path before the decision (Resolve) and again
// when it starts; its fixed arguments, the names of its environment and its directory come from the target. A child
// gets the declared variables and the ones that the decision names, no descriptor but its three streams, and a process
// group of its own that ends as a whole. An HTTP client reaches one origin below one path, and only addresses that are
// public or named by the decision, checked on the address that is connected to, so no DNS answer gets around it.
//
// Secrets are references until the moment of use (Value.Resolve); no function here logs.
package reach
