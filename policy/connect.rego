# May this command, URL or host be reached? Asked for every upstream server and every outward binding before anything
# is spawned or dialled. Driven by policy/trust/data.yaml: exactly one entry must cover the target, and its name goes
# with everything that is reached through it. A rule of your own goes here, as `deny contains "why" if { ... }`.
package catalogd.connect

import data.catalogd.lib.connect
import data.catalogd.lib.entries

# The one entry that covers the target allows it, and grants what it says.

default allow := false

allow if entries.name

trust := entries.name

env := object.get(entries.chosen, "env", [])

from_call := object.get(entries.chosen, "from_call", [])

stdin := object.get(entries.chosen, "stdin", false)

headers := object.get(entries.chosen, "headers", [])

secrets := object.get(entries.chosen, "secrets", [])

max_connections := object.get(entries.chosen, "max_connections", 0)

interpreter := object.get(entries.chosen, "interpreter", false)

unpinned := object.get(entries.chosen, "unpinned", false)

in_tree := object.get(entries.chosen, "in_tree", false)

addresses := object.get(entries.chosen, "addresses", [])

sha256 := object.get(entries.chosen, "sha256", "")

deny contains reason if some reason in connect.refusals
