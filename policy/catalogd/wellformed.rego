# Part of catalogd: do not edit. `catalogd init --upgrade` replaces it; rules of your own go in policy/*.rego.
# What is wrong with the data that people edit: each a path below data and what to say about it. For check.rego.
package catalogd.lib.wellformed

import data.catalogd.lib.path
import future.keywords.not

# areas are the data files, with what each of their fields must be.
areas := {
	"trust": {"entries": "mapping"},
	"access": {"branches": "mapping", "hide": "list"},
	"adopt": {"may_empty": "list of names"},
}

# documents are the data files that are there.
documents["trust"] := data.trust

documents["access"] := data.access

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
common := {"description": "text", "from_call": "list of names", "max_connections": "whole number", "secrets": "list of names"}

for_commands := {
	"command": "list of the command and its arguments, of which each but the first may be a list of alternatives",
	"rest": "true or false",
	"stdin": "true or false",
	"dir": "directory as the declaration's cwd has it",
	"env": "list of names of variables, each alone or as NAME=value",
	"interpreter": "true or false",
	"unpinned": "true or false",
	"in_tree": "true or false",
	"sha256": "digest of 64 hexadecimal digits, quoted and in lower case",
}

for_addresses := {
	"host": "host in lower case, without scheme and port",
	"scheme": "scheme, http or https",
	"port": "port number",
	"path": "path from the root, without dot segments",
	"headers": "list of names of headers",
	"addresses": "list of ranges such as 10.1.0.0/16",
}

# grant(at, g) are the faults of one branch's access.
grant(at, g) := {fault(at, "a branch's access is a mapping of tools, declared_reads, resources, prompts, deny, effects, approve, relay and elicitation_hosts")} if {
	not is_object(g)
} else := fields(at, g, {
	"tools": "list of names", "declared_reads": "list of names", "deny": "list of names", "effects": "list of read and write",
	"resources": "mapping of servers to lists of URIs", "prompts": "mapping of servers to lists of names",
	"approve": "mapping",
	"relay": "mapping of elicitation, sampling, roots and logging to lists of names",
	"elicitation_hosts": "list of hosts in lower case, with a port where that isn't 443",
}) | {problem |
	is_object(g.approve)
	some tool, entry in g.approve
	some problem in approval(array.concat(at, ["approve", tool]), entry)
}

# approval(at, e) are the faults of what one entry of approve asks for.
approval(at, e) := {fault(at, "an entry of approve is a mapping of groups, self, reason and expires")} if {
	not is_object(e)
} else := faults if {
	faults := fields(at, e, {"groups": "list of names", "self": "true or false", "reason": "text", "expires": "time such as 4h, of at most 720h"})
	count(faults) > 0
} else := {fault(at, "nobody could approve this: name groups, or say self: true")} if {
	count(object.get(e, "groups", [])) == 0
	not object.get(e, "self", false)
} else := set()

# hide(at, rule) are the faults of one hide rule.
hide(at, rule) := {fault(at, "a hide rule is a mapping of labels, tags and reason")} if {
	not is_object(rule)
} else := {fault(at, "a hide rule needs both labels and tags")} if {
	count({"labels", "tags"} - object.keys(rule)) > 0
} else := fields(at, rule, {"labels": "mapping of texts", "tags": "list of names", "reason": "text"})

# fields(at, object, known) are the fields that are not known, or not what they must be.
fields(at, object, known) := {fault(array.concat(at, [key]), message) |
	some key, value in object
	message := wrong(key, value, known)
}

wrong(key, value, known) := sprintf("%s is no field here: %s", [key, instead(key, object.keys(known))]) if {
	not known[key]
} else := sprintf("%s must be a %s", [key, known[key]]) if not is(known[key], value)

# instead(key, names) is what to write in place of a key: a name that begins like it, or any.
instead(key, names) := sprintf("did you mean %s?", [meant]) if {
	some meant in names
	count({name | some name in names; alike(key, name)}) == 1
	alike(key, meant)
} else := concat(" ", [concat(", ", sort(names)), "are"])

alike(key, name) if startswith(key, name)

alike(key, name) if {
	count(key) > 2
	startswith(name, key)
}

fault(at, message) := {"path": at, "message": message}

# is(kind, value): value is what kind says.
is("true or false", value) if is_boolean(value)

is("whole number", value) if whole(value)

is("port number", value) if {
	whole(value)
	value > 0
	value < 65536
}

is("time such as 4h, of at most 720h", value) if {
	matches(`^[0-9]`, value)
	matches(`^([0-9]{1,3}h)?([0-9]{1,5}m)?([0-9]{1,7}s)?$`, value) # no more, so that it can be read
	nanoseconds := time.parse_duration_ns(value)
	nanoseconds > 0
	nanoseconds <= ((720 * 60) * 60) * 1000000000
}

is("path from the root, without dot segments", value) if path.within("/", value)

is("list", value) if is_array(value)

is("list of the command and its arguments, of which each but the first may be a list of alternatives", value) if {
	is_array(value)
	matches(something, value[0])
	every word in value {
		is_word(word)
	}
}

is("mapping", value) if is_object(value)

is("mapping of texts", value) if {
	is_object(value)
	every text in value {
		is_string(text)
	}
}

is(kind, value) if matches(texts[kind], value)

is(kind, value) if are(lists[kind], value)

is(kind, value) if {
	key_pattern := mappings[kind]
	is_object(value)
	every key, list in value {
		regex.match(key_pattern, key)
		are(something, list)
	}
}

# What texts, the items of lists, and the keys of mappings to lists of names have to match.
texts := {
	"text": "",
	"directory as the declaration's cwd has it": something,
	"digest of 64 hexadecimal digits, quoted and in lower case": `^[0-9a-f]{64}$`,
	"host in lower case, without scheme and port": `^([a-z0-9._-]+|[0-9a-f:.]+)$`,
	"scheme, http or https": `^https?$`,
}

lists := {
	"list of names": something,
	"list of names of variables, each alone or as NAME=value": `^[A-Za-z_][A-Za-z0-9_]*(=(?s:.*))?$`,
	"list of names of headers": "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$",
	"list of read and write": `^(read|write)$`,
	"list of hosts in lower case, with a port where that isn't 443": `^([a-z0-9._-]+|\[[0-9a-f:.]+\])(:[0-9]+)?$`,
	"list of ranges such as 10.1.0.0/16": `^[0-9a-f.:]+/[0-9]{1,3}$`,
}

mappings := {
	"mapping of servers to lists of URIs": "",
	"mapping of servers to lists of names": "",
	"mapping of elicitation, sampling, roots and logging to lists of names": `^(elicitation|sampling|roots|logging)$`,
}

# something is matched by every text but the empty one.
something := `(?s).`

matches(pattern, value) if {
	is_string(value)
	regex.match(pattern, value)
}

are(pattern, list) if {
	is_array(list)
	every item in list {
		matches(pattern, item)
	}
}

is_word(word) if is_string(word)

is_word(alternatives) if {
	are("", alternatives)
	count(alternatives) > 0
}

whole(value) if {
	is_number(value)
	value >= 0
	value == floor(value)
}
