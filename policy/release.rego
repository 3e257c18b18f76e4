# May this intent be executed now? Not asked by this version. The input will hold branch, tool, principal and `intent`.
# Access is decided again when the side effect is about to happen: it may have been taken away since the call.
package catalogd.release

import data.catalogd.lib.access

default allow := false

allow if access.granted

deny contains reason if {
	not access.granted
	some reason in access.refusals
}
