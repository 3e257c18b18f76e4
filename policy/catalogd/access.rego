# Part of catalogd: do not edit. `catalogd init --upgrade` replaces it; rules of your own go in policy/*.rego.
# Which tools a branch may see, and so call: policy/access/data.yaml. list.rego, call.rego and release.rego all ask this
# package, so what is listed is what can be called and executed.
package catalogd.lib.access

import data.catalogd.lib.pattern
import future.keywords.not

grant := data.access.branches[input.branch.name]

# granted is the whole answer.
granted if {
	offered
	not denied
	not hidden
}

# offered: the branch's entry names the tool and its effect.
offered if {
	some p in grant.tools
	pattern.matches(p, input.tool.name)
	input.tool.effect in object.get(grant, "effects", ["read", "write"])
}

# A tool that the catalog declares and that only reads may also be named by declared_reads, whose patterns give no tool that
# a server offers and none with a side effect.
offered if {
	some p in grant.declared_reads
	pattern.matches(p, input.tool.name)
	input.tool.discovered == false
	input.tool.effect == "read"
	"read" in object.get(grant, "effects", ["read"])
}

# The built-in tools about a caller's own intents need no name: a branch that has an entry has them.
offered if {
	is_object(grant)
	input.tool.binding == "intent"
}

# relayed are the kinds that the branch's entry gives to the tool.
relayed contains kind if {
	some kind, patterns in grant.relay
	some p in patterns
	pattern.matches(p, input.tool.name)
}

# elicitation_hosts are those that the branch's entry names.
elicitation_hosts contains host if some host in grant.elicitation_hosts

denied if {
	some p in grant.deny
	pattern.matches(p, input.tool.name)
}

hidden if {
	some rule in data.access.hide
	hides(rule)
}

hides(rule) if {
	some tag in rule.tags
	tag in input.tool.tags
	object.subset(input.branch.labels, rule.labels)
}

# refusals say why it is not granted.
refusals contains sprintf("branch %s is not named in policy/access/data.yaml", [input.branch.name]) if not grant

refusals contains sprintf("policy/access/data.yaml offers branch %s no %s tool called %s", [input.branch.name, input.tool.effect, input.tool.name]) if {
	grant
	input.tool.name != "" # else it is about a resource or prompt: forward.rego
	not offered
}

refusals contains sprintf("policy/access/data.yaml denies branch %s the tool %s", [input.branch.name, input.tool.name]) if denied

refusals contains reason if {
	some rule in data.access.hide
	hides(rule)
	reason := object.get(rule, "reason", "the branch's labels hide the tool")
}
