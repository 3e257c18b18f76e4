# Part of catalogd: do not edit. `catalogd init --upgrade` replaces it; rules of your own go in policy/*.rego.
# What is wrong with the data that people edit? Asked once when the policy is loaded: every answer is a problem at the
# place of its path below data, and refuses the policy, as a syntax error does. So a misspelt `deny` is not a `deny` that
# nobody reads.
package catalogd.check

import data.catalogd.lib.wellformed
import future.keywords.not

problems contains problem if {
	is_object(data.trust.entries)
	some name, entry in data.trust.entries
	some problem in wellformed.entry(["trust", "entries", name], entry)
}

problems contains problem if {
	is_object(data.access.branches)
	some name, grant in data.access.branches
	some problem in wellformed.grant(["access", "branches", name], grant)
}

problems contains problem if {
	some i, rule in data.access.hide
	some problem in wellformed.hide(["access", "hide", sprintf("%d", [i])], rule)
}

problems contains problem if {
	some area, known in wellformed.areas
	some problem in wellformed.fields([area], wellformed.documents[area], known)
}
