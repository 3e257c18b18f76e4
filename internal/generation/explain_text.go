package generation

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/catalogd/catalogd/decision"
)

// String returns the explanation as text for people.
func (x *Explanation) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s through branch %s", x.Tool, x.Branch)
	if x.Principal.Name != decision.Local().Name {
		fmt.Fprintf(&b, " for %s", x.Principal.Name)
	}
	fmt.Fprintf(&b, ": %s", x.Outcome)
	if x.Why != "" && len(x.Violations) == 0 {
		fmt.Fprintf(&b, ": %s", x.Why)
	}
	if x.AddedTo != "" {
		fmt.Fprintf(&b, "\nGo function that the program has added to branch %s (effect: %s)", x.AddedTo, x.Effect)
	} else if x.tool.Binding.Intent != "" {
		fmt.Fprintf(&b, "\nbuilt-in tool (effect: %s)", x.Effect)
	} else {
		fmt.Fprintf(&b, "\ntool declared at %s (effect: %s)", x.Declared, x.Effect)
	}
	if n := x.EffectNote; n != nil {
		fmt.Fprintf(&b, "\neffect note at %s: %s", n.Pos, n)
	}
	fmt.Fprintf(&b, "\nbranch declared at %s", x.BranchAt)
	if !x.Admitted && x.Lineage == nil { // else the lineage says which branch does
		b.WriteString(", which leaves the tool out")
	}
	if x.Server != "" {
		fmt.Fprintf(&b, "\nserver %s declared at %s", x.Server, x.ServerAt)
	}
	for _, above := range x.Lineage {
		fmt.Fprintf(&b, "\n%s", above)
	}
	if n := x.Narrowed; n != nil {
		fmt.Fprintf(&b, "\nnarrowed at %s", n.Pos)
		if n.Name != "" {
			fmt.Fprintf(&b, ": the branch shows it as %s", n.Name)
		}
		for _, name := range slices.Sorted(maps.Keys(n.Fields)) {
			if arg, ok := strings.CutPrefix(name, "args."); ok {
				fmt.Fprintf(&b, "\nargument %s narrowed at %s", arg, n.Fields[name])
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(x.Fields)) {
		if strings.HasPrefix(name, "args.") {
			fmt.Fprintf(&b, "\nargument %s declared at %s", name[len("args."):], x.Fields[name])
		}
	}
	if x.Lock != nil {
		if x.Lock.Tool != x.Tool {
			fmt.Fprintf(&b, "\nit is %q of server %q", x.Lock.Tool, x.Lock.Server)
		}
		fmt.Fprintf(&b, "\nlocked at %s (effect: %s) on %s from version %s of the server: %s",
			x.Lock.Pos, x.Lock.Effect, x.Lock.At, x.Lock.Version, x.Lock.Locked)
		if x.Lock.Quarantined != "" {
			fmt.Fprintf(&b, "\nquarantined: %s", x.Lock.Quarantined)
		}
	}
	for _, v := range x.Violations {
		fmt.Fprintf(&b, "\nargument %s", v)
	}
	for _, step := range x.Steps {
		fmt.Fprintf(&b, "\n%s", step)
	}
	return b.String()
}
