# May this command, URL or host be reached? Asked for every upstream server and every outward binding before anything
# is spawned or dialled. Driven by policy/trust/data.yaml: exactly one entry must cover the target, and its name goes
# with everything that is reached through it.
package catalogd.connect

import data.catalogd.lib.command
import data.catalogd.lib.entries
import data.catalogd.lib.environment
import data.catalogd.lib.packages
import data.catalogd.lib.url

default allow := false

allow if entries.name

trust := entries.name

env := environment.passed

withheld := environment.withheld

max_connections := entries.field("max_connections", 0)

interpreter := entries.field("interpreter", false)

addresses := entries.field("addresses", [])

sha256 := entries.field("sha256", "")

deny contains sprintf("no trust entry covers the command %s%s: add one to policy/trust/data.yaml", [json.marshal(words), place]) if {
	count(entries.matching) == 0
	words := array.concat([input.target.command.declared], input.target.command.args)
	place := command.place(input.target.command)
}

deny contains sprintf("no trust entry covers %s://%s:%d%s: add one to policy/trust/data.yaml", [u.scheme, u.host, u.port, u.path]) if {
	count(entries.matching) == 0
	u := input.target.url
}

deny contains sprintf("trust entries %s all cover it: make one of them narrower", [concat(", ", sort(entries.matching))]) if {
	count(entries.matching) > 1
}

deny contains sprintf("%s runs code that it is given: trust entry %s would have to say interpreter: true", [input.target.command.declared, entries.name]) if {
	command.runs_code(input.target.command)
	not entries.field("interpreter", false)
}

deny contains sprintf("%s fetches what it runs: name an exact version or digest, or let trust entry %s say unpinned: true", [input.target.command.declared, entries.name]) if {
	packages.unpinned(input.target.command)
	not entries.field("unpinned", false)
}

deny contains sprintf("the declaration sets %s, which makes a command run other code: trust entry %s would have to name it in env", [name, entries.name]) if {
	some name in input.target.command.env
	command.steering(name)
	not name in entries.field("env", [])
}

deny contains sprintf("the declaration sets %s, and by its name that may be a secret (policy/env/data.yaml): trust entry %s would have to name it in env", [name, entries.name]) if {
	some name in input.target.command.env
	not environment.ordinary(name)
	not name in entries.field("env", [])
}

deny contains sprintf("what %s runs lies in the catalog's own tree, so whoever edits the catalog edits it: trust entry %s would have to say in_tree: true", [input.target.command.declared, entries.name]) if {
	input.observed.in_tree
	not entries.field("in_tree", false)
}

deny contains sprintf("trust entry %s pins %s to another sha256 than it has, %s: review it, then renew the pin", [entries.name, input.target.command.path, command.digest(input.observed)]) if {
	pinned := entries.field("sha256", "")
	pinned != ""
	pinned != input.observed.sha256
}

deny contains sprintf("http://%s would send everything in the clear: http reaches loopback only, take https", [input.target.url.host]) if {
	input.target.url.scheme == "http"
	not url.loopback(input.target.url.host)
}

deny contains sprintf("trust entry %s does not let the header %s be sent", [entries.name, header]) if {
	some header in input.target.headers
	not header in entries.field("headers", input.target.headers)
}
