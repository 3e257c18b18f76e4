# May this discovered or changed tool definition of an upstream server be used? Not asked by this version. The input
# will hold `server`, `tool` and `change`: "new", "unchanged", or what differs from the pinned definition. What is not
# exactly as pinned waits in quarantine until a person accepts it.
package catalogd.discover

default allow := false

allow if input.change == "unchanged"

quarantine if input.change != "unchanged"
