// Package egress is the only package of catalogd that starts processes or opens outbound connections.
//
// A Trust goes in, and a process or a connection comes out. A trust.Trust is a capability: the answer of the
// policy's connect decision, which covers one trust.Target, a command line or a URL. Nothing here decides.
// Start and Run start a command, Client returns an HTTP client, and both refuse what the Trust does not
// cover. What is checked, and where:
//
//   - Before anything starts (Check): that the Trust covers the target, and grants each secret, variable, header and argument
//     that the declaration hands over, standard input, code in arguments, unpinned packages and the catalog's own tree.
//   - When a process starts: that its path is still what was decided on (Resolve), its arguments those of the target, its
//     digest the pinned one, and its environment a small base and what the Trust names. It gets a HOME and a working
//     directory of its own, no descriptor but its three streams, and a process group that ends as a whole.
//   - On each request: that it goes to the target's origin and path, as must each redirect.
//   - On each connection: that the address is public or named by the Trust. This is checked on the address that is connected
//     to, after DNS, so that no DNS answer gets around it.
//
// Two functions take no Trust, because nothing in a catalog leads there: Self starts catalogd's own program,
// and OperatorClient reaches an address that the operator has named.
//
// Secrets are references until the moment of use (package secret). No function here logs.
package egress

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/catalogd/catalogd/decision/trust"
)

// Check returns nil when tr is enough to reach target. tr must cover it, and grant the secrets, variables and
// headers (beyond a small base) that the declaration hands over and the arguments that a call puts on the
// command line. It must also say stdin where calls write to standard input, interpreter where the command may
// run code that its arguments hold, unpinned where it fetches what is not pinned, in_tree where what runs
// lies in the catalog's tree (inTree: Observed.InTree, or InTree), and name the ranges of a host that is an
// address. Start and Client call it; callers may do so earlier.
func Check(tr trust.Trust, target trust.Target, inTree bool) error {
	if err := tr.Covers(target); err != nil {
		return err
	}
	if refs := without(target.Secrets, tr.Secrets()); len(refs) > 0 {
		return fmt.Errorf("the declaration hands over the values of %s; trust entry %q would have to name them in secrets", strings.Join(refs, ", "), tr.Name())
	}
	switch {
	case target.Command != nil:
		if names := without(target.Command.Env, tr.Env()); len(names) > 0 {
			return fmt.Errorf("the declaration sets %s; trust entry %q would have to name it in env", strings.Join(names, ", "), tr.Name())
		}
		if names := without(target.Command.FromCall, tr.FromCall()); len(names) > 0 {
			return fmt.Errorf("a call puts %s on the command line; trust entry %q would have to name it in from_call", strings.Join(names, ", "), tr.Name())
		}
		if target.Command.Stdin && !tr.Stdin() {
			return fmt.Errorf("calls write to the command's standard input; trust entry %q would have to say stdin: true", tr.Name())
		}
		runs := Recognise(*target.Command)
		if runs.RunsCode != "" && !tr.Interpreter() {
			return fmt.Errorf("%s; trust entry %q would have to say interpreter: true", runs.RunsCode, tr.Name())
		}
		if runs.Unpinned != "" && !tr.Unpinned() {
			return fmt.Errorf("%s; trust entry %q would have to say unpinned: true", runs.Unpinned, tr.Name())
		}
		if inTree && !tr.InTree() {
			return fmt.Errorf("what %s runs, or the directory that it works in, lies in the catalog's own tree; trust entry %q would have to say in_tree: true", target.Command.Declared, tr.Name())
		}
		return nil
	case target.URL != nil:
		if names := unnamedHeaders(tr, target); len(names) > 0 {
			return fmt.Errorf("the declaration sends the headers %s; trust entry %q would have to name them in headers", strings.Join(names, ", "), tr.Name())
		}
		if names := without(target.FromCall, tr.FromCall()); len(names) > 0 {
			return fmt.Errorf("a call puts %s into headers; trust entry %q would have to name it in from_call", strings.Join(names, ", "), tr.Name())
		}
		filter, err := newAddressFilter(tr.Name(), target.URL.Host, tr.Addresses())
		if err != nil {
			return err
		}
		if ip, err := netip.ParseAddr(strings.Trim(target.URL.Host, "[]")); err == nil {
			return filter.allow(ip)
		}
		return nil
	}
	return fmt.Errorf("a target of kind %q names neither a command nor a URL", target.Kind)
}

// without returns the names that are not among granted.
func without(names, granted []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(granted, name) })
}
