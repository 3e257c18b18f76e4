# May this branch and principal see this tool, resource or prompt? Driven by policy/access/data.yaml.
package catalogd.list

import data.catalogd.lib.access
import future.keywords.not

default allow := false

allow if access.granted

deny contains reason if {
	not access.granted
	some reason in access.refusals
}

# Resources and prompts that a server passes on (`forward`) have answers of their own.
default allow_resource := false

allow_resource if data.catalogd.lib.forward.granted_resource

default allow_prompt := false

allow_prompt if data.catalogd.lib.forward.granted_prompt

deny contains reason if some reason in data.catalogd.lib.forward.refusals
