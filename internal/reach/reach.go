// Package reach is the only room of catalogd that spawns processes and dials addresses. Nothing in it decides: every
// way out takes a trust.Trust, the answer of the policy's connect decision, beside the trust.Target that it was asked
// about, and refuses what that Trust does not cover. (Self starts catalogd's own program, which is no way out.)
//
// What runs is what was decided. A command is resolved to one absolute path before the decision (Resolve) and again
// when it starts; its fixed arguments, the names of its environment and its directory come from the target. A child
// gets the declared variables and the ones that the decision names, no descriptor but its three streams, and a process
// group of its own that ends as a whole. An HTTP client reaches one origin below one path, and only addresses that are
// public or named by the decision, checked on the address that is connected to, so no DNS answer gets around it.
//
// Secrets are references until the moment of use (Value.Resolve); no function here logs.
package reach

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/catalogd/catalogd/decision/trust"
)

// Check is nil when tr is enough to reach target: it covers it, says so where the command may run code that its arguments
// hold, and names the ranges that are needed where the host is an address and not a name. Start and Client ask it themselves; whoever wants to know before the first
// call asks it too.
func Check(tr trust.Trust, target trust.Target) error {
	if err := tr.Covers(target); err != nil {
		return err
	}
	switch {
	case target.Command != nil:
		if why := InlineCode(*target.Command); why != "" && !tr.Interpreter() {
			return fmt.Errorf("%s; trust entry %q would have to say interpreter: true", why, tr.Name())
		}
		return nil
	case target.URL != nil:
		fence, err := newFence(tr.Name(), target.URL.Host, tr.Addresses())
		if err != nil {
			return err
		}
		if ip, err := netip.ParseAddr(strings.Trim(target.URL.Host, "[]")); err == nil {
			return fence.allow(ip)
		}
		return nil
	}
	return fmt.Errorf("a target of kind %q names neither a command nor a URL", target.Kind)
}
