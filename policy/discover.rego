# May this tool of an upstream server be used, as it is locked in catalog.lock.json? `input.change` says how what the
# server offers differs from that. What is exactly as a person has reviewed it may be used, while the server says that it
# is who it was; anything else waits in quarantine, where nobody sees or calls it, until `catalogd lock --accept` takes it.
package catalogd.discover

import future.keywords.not

default allow := false

allow if {
	input.change == "identical"
	input.server.locked.name == input.server.offered.name
}

quarantine if not allow
