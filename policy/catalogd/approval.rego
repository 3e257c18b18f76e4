# Part of catalogd: do not edit. `catalogd init --upgrade` replaces it; rules of your own go in policy/*.rego.
# Which calls of tools with a side effect have to be approved first, and by whom: `approve` in policy/access/data.yaml. For
# call.rego.
package catalogd.lib.approval

import data.catalogd.lib.pattern
import future.keywords.not

# fitting are the entries of the branch that fit the tool.
fitting[p] := entry if {
	input.tool.effect == "write"
	some p, entry in data.access.branches[input.branch.name].approve
	pattern.matches(p, input.tool.name)
}

# asked is what the entry asks for; without a value unless exactly one fits.
asked := object.union(entry, own) if {
	count(fitting) == 1
	some entry in fitting
}

# own: the operator of this machine may approve its own calls, since without tokens there is nobody else.
default own := {}

own := {"self": true} if input.principal.local

# refusals say that nobody knows who has to approve.
refusals contains sprintf("several entries of approve in policy/access/data.yaml fit the tool %s: %s; make one narrower", [input.tool.name, concat(", ", object.keys(fitting))]) if {
	count(fitting) > 1
}
