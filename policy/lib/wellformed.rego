# What is wrong with the data that people edit: each a path below data and what to say about it. For check.rego.
package catalogd.lib.wellformed

import data.catalogd.lib.path

# areas are the data files, with what each of their fields must be.
areas := {
	"trust": {"entries": "mapping"},
	"access": {"branches": "mapping", "hide": "list"},
	"env": {"sensitive": "list of names"},
	"adopt": {"may_empty": "list of names"},
}

# documents are the data files that are there.
documents["trust"] := data.trust

documents["access"] := data.access

documents["env"] := data.env

documents["adopt"] := data.adopt

# entry(at, e) are the faults of one trust entry.
entry(at, e) := {fault(at, "a trust entry is a mapping of fields")} if {
	not is_object(e)
} else := {fault(at, "a trust entry has either command or host, and this one has both")} if {
	count({"command", "host"} - object.keys(e)) == 0
} else := {fault(at, sprintf("a trust entry has either command or host, and this one has %s", [given(e)]))} if {
	count({"command", "host"} & object.keys(e)) == 0
} else := fields(at, e, object.union(common, for_commands)) if {
	"command" in object.keys(e)
} else := fields(at, e, object.union(common, for_addresses))

# given(e) lists the fields that an entry has.
given(e) := concat(", ", sort(object.keys(e))) if {
	count(e) > 0
} else := "no field"

# The fields of entries, with what each must be.
common := {"description": "text", "max_connections": "whole number"}

for_commands := {
	"command": "list of the command and its first arguments", "exact": "true or false", "env": "list of names of variables, with * for any characters",
	"interpreter": "true or false", "unpinned": "true or false", "in_tree": "true or false", "sha256": "digest of 64 hexadecimal digits, quoted and in lower case", "dir": "directory as the declaration's cwd has it",
}

for_addresses := {
	"host": "host in lower case, without scheme and port", "scheme": "scheme, http or https", "port": "port number",
	"path": "path from the root, without dot segments", "headers": "list of names", "addresses": "list of ranges such as 10.1.0.0/16",
}

# grant(at, g) are the faults of one branch's access.
grant(at, g) := {fault(at, "a branch's access is a mapping of tools, resources, prompts, deny, effects, relay and elicitation_hosts")} if {
	not is_object(g)
} else := fields(at, g, {
	"tools": "list of names", "deny": "list of names", "effects": "list of read and write",
	"resources": "mapping of servers to lists of URIs", "prompts": "mapping of servers to lists of names",
	"relay": "mapping of elicitation, sampling, roots and logging to lists of names",
	"elicitation_hosts": "list of hosts in lower case, with a port where that isn't 443",
})

# hide(at, rule) are the faults of one hide rule.
hide(at, rule) := {fault(at, "a hide rule is a mapping of labels, tags and reason")} if {
	not is_object(rule)
} else := {fault(at, "a hide rule needs both labels and tags")} if {
	count({"labels", "tags"} - object.keys(rule)) > 0
} else := fields(at, rule, {"labels": "mapping of texts", "tags": "list of names", "reason": "text"})

# fields(at, object, known) are the fields that are not known, or not what they must be.
fields(at, object, known) := {f |
	some key, value in object
	f := field_fault(array.concat(at, [key]), key, value, known)
}

field_fault(at, key, _, known) := fault(at, message) if {
	not known[key]
	message := sprintf("%s is no field here: %s are", [key, concat(", ", sort(object.keys(known)))])
}

field_fault(at, key, value, known) := fault(at, sprintf("%s must be a %s", [key, known[key]])) if not is(known[key], value)

# is(kind, value): value is what kind says.
is("mapping", value) if is_object(value)

is("list", value) if is_array(value)

is("text", value) if is_string(value)

is("true or false", value) if is_boolean(value)

is("whole number", value) if whole(value)

is("port number", value) if {
	whole(value)
	value > 0
	value < 65536
}

is("directory as the declaration's cwd has it", value) if {
	is_string(value)
	value != ""
}

is("list of names", value) if is_names(value)

is("list of names of variables, with * for any characters", value) if {
	is_array(value)
	every name in value {
		is_string(name)
		regex.match(`^[A-Za-z_*][A-Za-z0-9_*]*$`, name)
	}
}

is("digest of 64 hexadecimal digits, quoted and in lower case", value) if {
	is_string(value)
	regex.match(`^[0-9a-f]{64}$`, value)
}

is("list of read and write", value) if {
	is_names(value)
	count({name | some name in value} - {"read", "write"}) == 0
}

is("mapping of elicitation, sampling, roots and logging to lists of names", value) if {
	is_object(value)
	every kind, patterns in value {
		kind in {"elicitation", "sampling", "roots", "logging"}
		is_names(patterns)
	}
}

is("list of hosts in lower case, with a port where that isn't 443", value) if {
	is_names(value)
	every host in value {
		regex.match(`^([a-z0-9._-]+|\[[0-9a-f:.]+\])(:[0-9]+)?$`, host)
	}
}

is("mapping of servers to lists of URIs", value) if is_lists(value)

is("mapping of servers to lists of names", value) if is_lists(value)

is("list of ranges such as 10.1.0.0/16", value) if {
	is_names(value)
	every range in value {
		regex.match(`^[0-9a-f.:]+/[0-9]{1,3}$`, range)
	}
}

is("mapping of texts", value) if {
	is_object(value)
	every v in value {
		is_string(v)
	}
}

is("list of the command and its first arguments", value) if {
	is_array(value)
	count(value) > 0
	value[0] != ""
	every word in value {
		is_string(word)
	}
}

is("host in lower case, without scheme and port", value) if {
	is_string(value)
	regex.match(`^([a-z0-9._-]+|[0-9a-f:.]+)$`, value)
}

is("scheme, http or https", value) if value in {"http", "https"}

is("path from the root, without dot segments", value) if {
	is_string(value)
	startswith(value, "/")
	path.plain(value)
}

whole(value) if {
	is_number(value)
	value >= 0
	value == floor(value)
}

is_lists(value) if {
	is_object(value)
	every patterns in value {
		is_names(patterns)
	}
}

is_names(value) if {
	is_array(value)
	every name in value {
		is_string(name)
		name != ""
	}
}

fault(at, message) := {"path": at, "message": message}
