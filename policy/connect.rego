# May this command, URL or host be reached? Asked for every upstream server and every outward binding before anything
# is spawned or dialled. Driven by policy/trust/data.yaml: exactly one entry must cover the target, and its name goes
# with everything that is reached through it.
package catalogd.connect

import data.catalogd.lib.command
import data.catalogd.lib.entries
import data.catalogd.lib.url
import future.keywords.not

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

deny contains sprintf("no trust entry covers the command: add one to policy/trust/data.yaml that says command: %s%s", [json.marshal(words), command.conditions(input.target.command)]) if {
	words := array.concat([input.target.command.declared], input.target.command.args)
	entries.matching == set()
}

deny contains sprintf("trust entry %s covers %s, and what follows is not covered", [name, json.marshal(entry.command)]) if {
	cmd := input.target.command
	entries.matching == set()
	some name, entry in data.trust.entries
	command.begins(entry, cmd)
}

deny contains sprintf("no trust entry covers %s://%s:%d%s: add one to policy/trust/data.yaml", [u.scheme, u.host, u.port, u.path]) if {
	u := input.target.url
	entries.matching == set()
}

deny contains sprintf("trust entries %s all cover it: make one of them narrower", [concat(", ", sort(entries.matching))]) if {
	count(entries.matching) > 1
}

deny contains sprintf("the declaration hands over secrets: %s", [entries.lacks("secrets", input.target.secrets)])

deny contains sprintf("calls fill in a part of the command line: %s", [entries.lacks("from_call", input.target.command.from_call)])

deny contains sprintf("calls fill in headers: %s", [entries.lacks("from_call", input.target.from_call)])

deny contains sprintf("calls write to the command's standard input: %s", [entries.should("stdin: true")]) if {
	input.target.command.stdin
	not object.get(entries.chosen, "stdin", false)
}

deny contains sprintf("the declaration sets variables: %s", [entries.lacks("env", input.target.command.env)])

deny contains sprintf("the declaration sends headers: %s", [entries.lacks("headers", input.target.headers)])

deny contains sprintf("%s: %s", [input.observed.runs_code, entries.should("interpreter: true")]) if {
	input.observed.runs_code != ""
	not object.get(entries.chosen, "interpreter", false)
}

deny contains sprintf("%s: name an exact version or digest, or %s", [input.observed.unpinned, entries.should("unpinned: true")]) if {
	input.observed.unpinned != ""
	not object.get(entries.chosen, "unpinned", false)
}

deny contains sprintf("what %s runs, or the directory that it works in, lies in the catalog's own tree, so whoever edits the catalog edits what runs: %s", [input.target.command.declared, entries.should("in_tree: true")]) if {
	input.observed.in_tree
	not object.get(entries.chosen, "in_tree", false)
}

deny contains sprintf("trust entry %s pins %s to another sha256 than it has, %s: review it, then renew the pin", [entries.name, input.target.command.path, command.digest(input.observed)]) if {
	pinned := object.get(entries.chosen, "sha256", "")
	pinned != ""
	pinned != input.observed.sha256
}

deny contains sprintf("http://%s would send everything in the clear: http reaches loopback only, take https", [input.target.url.host]) if {
	input.target.url.scheme == "http"
	not url.loopback(input.target.url.host)
}
