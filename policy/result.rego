# May this result leave, and with what taken out? It may to who may see the tool, which has run by then. Rules of your own:
# `redact contains "/customer/email" if ...` takes a part of a structured result out, with the text that repeats it;
# `redact_patterns contains "[0-9]{16}" if ...` what a regular expression matches; `max_bytes := 65536 if ...` limits the
# size of a result; `deny contains "why" if ...` withholds it.
package catalogd.result

import data.catalogd.lib.access
import future.keywords.not

default allow := false

allow if access.granted

deny contains reason if {
	not access.granted
	some reason in access.refusals
}
