# May this result leave, and with what taken out? A result may leave to who may see the tool. What a tool answers that not
# everybody may read goes here: `redact contains "/customer/email" if ...` takes a part of a structured result out, with the
# text that repeats it; `max_bytes := 65536 if ...` limits how large a result may be; `deny contains "why" if ...` withholds
# it. The tool has run by then.
package catalogd.result

import data.catalogd.lib.access

default allow := false

allow if access.granted

deny contains reason if {
	not access.granted
	some reason in access.refusals
}
