# May this result leave, and with what removed? Not asked by this version. The input will hold branch, tool, principal
# and `result`; `redact contains "/pointer"` removes parts. A result may leave to who may see the tool.
package catalogd.result

import data.catalogd.lib.access

default allow := false

allow if access.granted

deny contains reason if {
	not access.granted
	some reason in access.refusals
}
