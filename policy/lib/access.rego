# Which tools a branch may see, and so call: policy/access/data.yaml. list.rego and call.rego both ask this package, so
# what is listed is what can be called.
package catalogd.lib.access

grant := data.access.branches[input.branch.name]

# granted: the branch's entry names the tool and its effect.
granted if {
	some pattern in grant.tools
	matches(pattern, input.tool.name)
	input.tool.effect in object.get(grant, "effects", ["read", "write"])
}

# refusals say what stands against it, whatever is granted.
refusals contains sprintf("branch %s is not named in policy/access/data.yaml", [input.branch.name]) if not grant

refusals contains sprintf("the entry of branch %s has a field %s, which does not exist", [input.branch.name, key]) if {
	some key in (object.keys(grant) - {"tools", "deny", "effects"})
}

refusals contains sprintf("branch %s is denied %s", [input.branch.name, input.tool.name]) if {
	some pattern in grant.deny
	matches(pattern, input.tool.name)
}

refusals contains sprintf("deny in the entry of branch %s must be a list", [input.branch.name]) if {
	not is_array(object.get(grant, "deny", []))
}

refusals contains object.get(rule, "reason", "the branch's labels hide the tool") if {
	some rule in data.access.hide
	object.subset(input.branch.labels, rule.labels)
	some tag in rule.tags
	tag in input.tool.tags
}

# A hide rule that can't be read would hide nothing, so it hides everything.
refusals contains "hide in policy/access/data.yaml must be a list of rules, each with labels (texts) and tags (a list)" if {
	some rule in object.get(data.access, "hide", [])
	not is_hide_rule(rule)
}

refusals contains "hide in policy/access/data.yaml must be a list" if {
	not is_array(object.get(data.access, "hide", []))
}

is_hide_rule(rule) if {
	object.keys(rule) - {"reason"} == {"labels", "tags"}
	every value in rule.labels {
		is_string(value)
	}
	is_array(rule.tags)
	every tag in rule.tags {
		is_string(tag)
	}
	is_string(object.get(rule, "reason", ""))
}

# matches(pattern, name): * stands for any characters, everything else for itself.
matches("*", _)

matches(pattern, name) if pattern == name

matches(pattern, name) if {
	contains(pattern, "*")
	parts := [glob.quote_meta(p) | some p in split(pattern, "*")]
	glob.match(concat("*", parts), null, name)
}
