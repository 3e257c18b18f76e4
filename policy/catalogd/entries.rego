# Part of catalogd: do not edit. `catalogd init --upgrade` replaces it; rules of your own go in policy/*.rego.
# The trust entries of policy/trust/data.yaml that cover input.target, for connect.rego.
package catalogd.lib.entries

import data.catalogd.lib.command
import data.catalogd.lib.url

# matching holds the names of the entries that cover the target, looked for among those for its program or its host.
matching contains name if {
	some program in {input.target.command.declared, input.target.command.path}
	some name, entry in data.trust.entries
	entry.command[0] == program
	command.covers(entry, input.target.command)
}

matching contains name if {
	host := input.target.url.host
	some name, entry in data.trust.entries
	entry.host == host
	url.covers(entry, input.target.url)
}

# name and chosen are the one entry that answers; without a value unless there is exactly one.
name := n if {
	count(matching) == 1
	some n in matching
}

chosen := data.trust.entries[name]

# should(line) says what the chosen entry lacks.
should(line) := sprintf("trust entry %s in policy/trust/data.yaml would have to say %s", [name, line])

# base_headers may be sent to every address, whatever its entry says: they say in what form and language the two sides
# write and which program asks, and not who may do what. catalogd grants the same ones, and no others, under every policy.
base_headers := {"Accept", "Accept-Language", "Content-Type", "User-Agent"}

# lacks(key, names) is the line that the chosen entry lacks for the names to be in its list; no value where they are. An item
# NAME=value has NAME, and the case of a header does not count.
lacks(key, names) := should(sprintf("%s: %s", [key, json.marshal(array.concat(object.get(chosen, key, []), sort(missing)))])) if {
	missing := [n | some n in names; not has(key, n)]
	missing != []
}

has(key, name) if name in object.get(chosen, key, [])

has("env", name) if strings.any_prefix_match(object.get(chosen, "env", []), concat("", [name, "="]))

has("headers", name) if name in base_headers

has("headers", name) if {
	some header in object.get(chosen, "headers", [])
	lower(header) == lower(name)
}
