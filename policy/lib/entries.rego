# The trust entries of policy/trust/data.yaml that cover input.target, for connect.rego.
package catalogd.lib.entries

import data.catalogd.lib.command
import data.catalogd.lib.url

# matching holds the names of the entries that cover the target.
matching contains name if {
	some name, entry in data.trust.entries
	command.covers(entry, input.target.command)
}

matching contains name if {
	some name, entry in data.trust.entries
	url.covers(entry, input.target.url)
}

# name and chosen are the one entry that answers; without a value unless there is exactly one.
name := n if {
	count(matching) == 1
	some n in matching
}

chosen := data.trust.entries[name]

# field(key, otherwise) is a field of the chosen entry.
field(key, otherwise) := object.get(chosen, key, otherwise)
