# May this intent be executed now? Asked before each attempt of a tool with a side effect, with the principal as it is then.
# Access is decided again: it may have been taken away since the call. A rule that looks at input.intent (its age, which
# attempt it is, who approved it) goes here, as `deny contains "why" if { ... }`.
package catalogd.release

import data.catalogd.lib.access
import future.keywords.not

default allow := false

allow if access.granted

deny contains reason if {
	not access.granted
	some reason in access.refusals
}
