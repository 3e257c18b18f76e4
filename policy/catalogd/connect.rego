# Part of catalogd: do not edit. `catalogd init --upgrade` replaces it; rules of your own go in policy/*.rego.
# Why a command, URL or host may not be reached: what no trust entry covers, and what the one that does lacks. For
# connect.rego.
package catalogd.lib.connect

import data.catalogd.lib.command
import data.catalogd.lib.entries
import data.catalogd.lib.url
import future.keywords.not

refusals contains sprintf("no trust entry covers the command %s%s", [json.marshal(words), command.conditions(input.target.command)]) if {
	words := array.concat([input.target.command.declared], input.target.command.args)
	entries.matching == set()
}

refusals contains sprintf("trust entry %s covers %s, and what follows is not covered", [name, json.marshal(entry.command)]) if {
	cmd := input.target.command
	entries.matching == set()
	some name, entry in data.trust.entries
	command.begins(entry, cmd)
}

refusals contains sprintf("no trust entry covers %s://%s:%d%s", [u.scheme, u.host, u.port, u.path]) if {
	u := input.target.url
	entries.matching == set()
}

refusals contains sprintf("trust entries %s all cover it: make one of them narrower", [concat(", ", sort(entries.matching))]) if {
	count(entries.matching) > 1
}

refusals contains sprintf("the declaration hands over secrets: %s", [entries.lacks("secrets", input.target.secrets)])

refusals contains sprintf("calls fill in a part of the command line: %s", [entries.lacks("from_call", input.target.command.from_call)])

refusals contains sprintf("calls fill in headers: %s", [entries.lacks("from_call", input.target.from_call)])

refusals contains sprintf("calls write to the command's standard input: %s", [entries.should("stdin: true")]) if {
	input.target.command.stdin
	not object.get(entries.chosen, "stdin", false)
}

refusals contains sprintf("the declaration sets variables: %s", [entries.lacks("env", input.target.command.env)])

refusals contains sprintf("the declaration sends headers: %s", [entries.lacks("headers", input.target.headers)])

refusals contains sprintf("%s: %s", [input.observed.runs_code, entries.should("interpreter: true")]) if {
	input.observed.runs_code != ""
	not object.get(entries.chosen, "interpreter", false)
}

refusals contains sprintf("%s: name an exact version or digest, or %s", [input.observed.unpinned, entries.should("unpinned: true")]) if {
	input.observed.unpinned != ""
	not object.get(entries.chosen, "unpinned", false)
}

refusals contains sprintf("what %s runs, or the directory that it works in, lies in the catalog's own tree, so whoever edits the catalog edits what runs: %s", [input.target.command.declared, entries.should("in_tree: true")]) if {
	input.observed.in_tree
	not object.get(entries.chosen, "in_tree", false)
}

refusals contains sprintf("trust entry %s pins %s to another sha256 than it has, %s: review it, then renew the pin", [entries.name, input.target.command.path, command.digest(input.observed)]) if {
	pinned := object.get(entries.chosen, "sha256", "")
	pinned != ""
	pinned != input.observed.sha256
}

refusals contains sprintf("http://%s would send everything in the clear: http reaches loopback only, take https", [input.target.url.host]) if {
	input.target.url.scheme == "http"
	not url.loopback(input.target.url.host)
}
