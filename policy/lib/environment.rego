# Which of catalogd's own variables a command is given: what env of its trust entry in policy/trust/data.yaml names, and of
# what it has patterns for, the variables that hold no secret by their name (policy/env/data.yaml).
package catalogd.lib.environment

import data.catalogd.lib.entries
import data.catalogd.lib.pattern

# passed are the names that the command is given, where catalogd has them.
passed contains name if {
	some name in entries.field("env", [])
	not contains(name, "*")
}

passed contains name if {
	some name in matched
	ordinary(name)
}

# withheld are the names that a pattern matches and that have to be written out to be passed.
withheld contains name if {
	some name in matched
	not name in passed
}

matched contains name if {
	some p in entries.field("env", [])
	contains(p, "*")
	some name in input.environment
	pattern.matches(p, name)
}

# ordinary(name): nothing in the name says that it holds a secret. Without the list no name is ordinary.
ordinary(name) if {
	every word in data.env.sensitive {
		not contains(upper(name), upper(word))
	}
}
