# May this branch and principal see this tool? Driven by policy/access/data.yaml.
package catalogd.list

import data.catalogd.lib.access

default allow := false

allow if access.granted

deny contains reason if {
	not access.granted
	some reason in access.refusals
}
