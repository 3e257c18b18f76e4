# May this call with these arguments run? What a branch sees it may call; a rule that looks at input.arguments,
# input.principal or input.time goes here, as `deny contains "why" if { ... }`. `timeout := "5s"` caps a call.
package catalogd.call

import data.catalogd.lib.access
import data.catalogd.lib.approval
import future.keywords.not

default allow := false

allow if access.granted

deny contains reason if {
	not access.granted
	some reason in access.refusals
}

# Who has to approve a call of a tool with a side effect before it runs; nobody unless the data says so.
require_approval := approval.asked if access.granted

deny contains reason if some reason in approval.refusals

# What the tool's server may send to the client, or ask of it, during the call; nothing unless the data says so.
relay contains kind if {
	access.granted
	some kind in access.relayed
}

# The hosts whose pages an elicitation may ask the person to open, by https; none unless the data says so.
elicitation_hosts contains host if {
	access.granted
	some host in access.elicitation_hosts
}

# Resources and prompts that a server passes on (`forward`) have answers of their own.
default allow_resource := false

allow_resource if data.catalogd.lib.forward.granted_resource

default allow_prompt := false

allow_prompt if data.catalogd.lib.forward.granted_prompt

deny contains reason if some reason in data.catalogd.lib.forward.refusals

relay contains kind if {
	data.catalogd.lib.forward.granted
	some kind in data.catalogd.lib.forward.relayed
}

elicitation_hosts contains host if {
	data.catalogd.lib.forward.granted
	some host in access.elicitation_hosts
}
