# The trust entries of policy/trust/data.yaml that cover input.target, for connect.rego.
package catalogd.lib.entries

import data.catalogd.lib.command
import data.catalogd.lib.url

# matching holds the names of the entries that cover the target.
matching contains name if {
	some name, entry in data.trust.entries
	command.covers(entry, input.target.command)
	count(faults(entry)) == 0
}

matching contains name if {
	some name, entry in data.trust.entries
	url.covers(entry, input.target.url)
	count(faults(entry)) == 0
}

# name and chosen are the one entry that answers; without a value unless there is exactly one.
name := n if {
	count(matching) == 1
	some n in matching
}

chosen := data.trust.entries[name]

# field(key, otherwise) is a field of the chosen entry.
field(key, otherwise) := object.get(chosen, key, otherwise)

# malformed says what is wrong with entries that can cover nothing.
malformed contains sprintf("trust entry %s covers nothing: %s", [n, fault]) if {
	some n, entry in data.trust.entries
	some fault in faults(entry)
}

common := {"description", "max_connections"}

for_commands := common | {"command", "exact", "env", "interpreter", "unpinned"}

for_addresses := common | {"scheme", "host", "port", "path", "headers", "addresses"}

# faults(entry) says what is wrong with one entry.
faults(entry) := {"it is no mapping of fields"} if {
	not is_object(entry)
} else := {"it needs either command or host"} if {
	count({"command", "host"} & object.keys(entry)) != 1
} else := unknown(entry, for_commands) | command_faults(entry) if {
	entry.command
} else := unknown(entry, for_addresses) | address_faults(entry)

unknown(entry, known) := {sprintf("%s is no field of such an entry", [key]) | some key in (object.keys(entry) - known)}

command_faults(entry) := {"command must be a list that begins with a name"} if {
	not is_command(entry.command)
} else := {sprintf("%s must be true or false", [key]) |
	some key in {"exact", "interpreter", "unpinned"}
	not is_boolean(object.get(entry, key, false))
}

is_command(list) if {
	is_array(list)
	list[0] != ""
	every word in list {
		is_string(word)
	}
}

address_faults(entry) := {m |
	some m, broken in {
		"host must be a name or address in lower case, without scheme or port": not_host(entry.host),
		"scheme must be http or https": not_in(object.get(entry, "scheme", "https"), {"http", "https"}),
		"port must be a number": not_number(object.get(entry, "port", 443)),
		"path must begin with / and hold no dot segments": not_path(object.get(entry, "path", "/")),
		"headers must be a list": not_list(object.get(entry, "headers", [])),
	}
	broken
}

default not_host(_) := true

not_host(host) := false if {
	is_string(host)
	host == lower(host)
	regex.match(`^([a-z0-9._-]+|\[?[0-9a-f:.]+\]?)$`, host)
}

not_in(value, known) := count({value} & known) == 0

not_number(value) := type_name(value) != "number"

not_list(value) := type_name(value) != "array"

default not_path(_) := true

not_path(p) := false if {
	startswith(p, "/")
	every s in split(p, "/") {
		not s in {".", ".."}
	}
}
