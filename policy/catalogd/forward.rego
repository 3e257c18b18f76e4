# Part of catalogd: do not edit. `catalogd init --upgrade` replaces it; rules of your own go in policy/*.rego.
# Which resources and prompts a branch may see, and so read and get: policy/access/data.yaml. list.rego and call.rego both
# ask this package, as they ask access.rego about tools.
package catalogd.lib.forward

import data.catalogd.lib.pattern
import future.keywords.not

grant := data.access.branches[input.branch.name]

granted if granted_resource

granted if granted_prompt

# granted_resource: the branch's entry names the resource by its server and URI, and nothing takes it away. A template
# goes by its text, and so does a URI that fits it and that the server doesn't list.
granted_resource if {
	offered_resource
	not denied_resource
}

offered_resource if {
	some p in grant.resources[input.resource.server]
	pattern.matches(p, resource)
}

resource := input.resource.template if input.resource.template != ""

else := input.resource.uri

denied_resource if {
	some p in grant.deny
	some named in [input.resource.name, input.resource.uri, input.resource.template]
	pattern.matches(p, named)
}

# granted_prompt: the branch's entry names the prompt by its server and its name in the catalog.
granted_prompt if {
	offered_prompt
	not denied_prompt
}

offered_prompt if {
	some p in grant.prompts[input.prompt.server]
	pattern.matches(p, input.prompt.name)
}

denied_prompt if {
	some p in grant.deny
	pattern.matches(p, input.prompt.name)
}

# relayed are the kinds that the branch's entry gives to the resource or prompt, by its name in the catalog.
relayed contains kind if {
	some kind, patterns in grant.relay
	some p in patterns
	pattern.matches(p, name)
}

name := input.resource.name

name := input.prompt.name

# refusals say why it is not granted.
refusals contains sprintf("policy/access/data.yaml offers branch %s no resource %s of server %s", [input.branch.name, resource, input.resource.server]) if {
	grant
	not offered_resource
}

refusals contains sprintf("policy/access/data.yaml denies branch %s the resource %s", [input.branch.name, resource]) if denied_resource

refusals contains sprintf("policy/access/data.yaml offers branch %s no prompt %s of server %s", [input.branch.name, input.prompt.name, input.prompt.server]) if {
	grant
	not offered_prompt
}

refusals contains sprintf("policy/access/data.yaml denies branch %s the prompt %s", [input.branch.name, input.prompt.name]) if denied_prompt
