package catalogd.connect_test

import data.catalogd.connect

exec(declared, args) := {
	"subject": {"kind": "tool", "name": "t", "effect": "read", "pos": {"file": "catalog/t.cue", "line": 1, "col": 1}},
	"target": {
		"kind": "exec", "headers": [],
		"command": {"declared": declared, "path": concat("", ["/usr/bin/", declared]), "args": args, "dir": "", "env": [], "from_call": []},
	},
}

http(host, path, headers) := {
	"subject": {"kind": "server", "name": "s", "effect": "", "pos": {"file": "catalog/s.cue", "line": 1, "col": 1}},
	"target": {
		"kind": "http", "headers": headers,
		"url": {"scheme": "https", "host": host, "port": 443, "path": path, "segments": [s | some s in split(path, "/"); s != ""], "template": false},
	},
}

decide(q, entries) := object.remove(answer, {"deny"}) if {
	answer := connect with input as q with data.trust.entries as entries
	count(answer.deny) == 0
}

reasons(q, entries) := r if {
	r := connect.deny with input as q with data.trust.entries as entries
}

with_env(q, names) := json.patch(q, [{"op": "replace", "path": "/target/command/env", "value": names}])

machine := {"clock": {"command": ["date", "-u", "+%Y-%m-%dT%H:%M:%SZ"]}, "system": {"command": ["uname"], "rest": true}, "count": {"command": ["wc", ["-w", "-l"]]}}

test_entries[case.trust] if {
	some case in [
		{"trust": "clock", "q": exec("date", ["-u", "+%Y-%m-%dT%H:%M:%SZ"])},
		{"trust": "system", "q": exec("uname", ["-sm"])},
		{"trust": "count", "q": exec("wc", ["-w"])},
	]
	answer := connect with input as case.q with data.trust.entries as machine
	answer.allow
	count(answer.deny) == 0
	answer.trust == case.trust
}

test_nothing_else[declared] if {
	some declared in ["date", "sh", "curl", "npx", "cat", "wcx", "DATE"]
	not allowed(exec(declared, ["-s"]))
}

allowed(q) if connect.allow with input as q with data.trust.entries as machine

test_no_url if not allowed(http("example.com", "/", []))

test_nothing_without_data if {
	not connect.allow with input as exec("date", ["-u"]) with data.trust as {}
}

test_terms if {
	entries := {"e": {"command": ["x"], "env": ["HOME", "A=1"], "from_call": ["a"], "secrets": ["env:B"], "max_connections": 2, "interpreter": true}}
	decide(exec("x", []), entries) == {
		"allow": true, "trust": "e", "env": ["HOME", "A=1"], "from_call": ["a"], "stdin": false, "headers": [], "secrets": ["env:B"], "max_connections": 2, "interpreter": true, "unpinned": false, "in_tree": false, "addresses": [],
		"sha256": "",
	}
}

test_addresses if {
	entries := {"e": {"host": "a.example", "addresses": ["10.0.0.0/8"]}}
	decide(http("a.example", "/", []), entries).addresses == ["10.0.0.0/8"]
}

test_the_reason_shows_the_words_to_enter if {
	reasons(exec("curl", ["-s"]), {}) == {"no trust entry covers the command [\"curl\",\"-s\"]"}
}

test_the_reason_shows_the_address if {
	reasons(http("a.example", "/v1", []), {}) == {"no trust entry covers https://a.example:443/v1"}
}

test_the_reason_shows_all_that_an_entry_needs if {
	q := json.patch(exec("grep", ["-e", "{p}"]), [
		{"op": "replace", "path": "/target/command/dir", "value": "logs"},
		{"op": "replace", "path": "/target/command/env", "value": ["A"]},
		{"op": "replace", "path": "/target/command/from_call", "value": ["p"]},
	])
	reasons(q, {}) == {"no trust entry covers the command [\"grep\",\"-e\",\"{p}\"], dir: \"logs\", env: [\"A\"], from_call: [\"p\"]"}
	decide(q, {"e": {"command": ["grep", "-e", "{p}"], "dir": "logs", "env": ["A"], "from_call": ["p"]}}).trust == "e"
}

test_an_entry_that_is_too_short_is_named if {
	some_reasons := reasons(exec("uname", ["-sm"]), {"e": {"command": ["uname"]}})
	"trust entry e covers [\"uname\"], and what follows is not covered" in some_reasons
}

test_what_calls_fill_in_must_be_named if {
	q := json.patch(exec("sed", ["-n", "{expr}", "{file}"]), [{"op": "replace", "path": "/target/command/from_call", "value": ["expr", "file"]}])
	entry := {"command": ["sed", "-n", "{expr}", "{file}"]}
	reasons(q, {"e": entry}) == {"calls fill in a part of the command line: trust entry e in policy/trust/data.yaml would have to say from_call: [\"expr\",\"file\"]"}
	reasons(q, {"e": object.union(entry, {"from_call": ["file", "x"]})}) == {"calls fill in a part of the command line: trust entry e in policy/trust/data.yaml would have to say from_call: [\"file\",\"x\",\"expr\"]"}
	decide(q, {"e": object.union(entry, {"from_call": ["file", "expr"]})}).from_call == ["file", "expr"]
}

test_another_directory_must_be_meant if {
	q := json.patch(exec("node", ["server.js"]), [{"op": "replace", "path": "/target/command/dir", "value": "evil"}])
	reasons(q, {"e": {"command": ["node", "server.js"]}}) == {"no trust entry covers the command [\"node\",\"server.js\"], dir: \"evil\""}
	decide(q, {"e": {"command": ["node", "server.js"], "dir": "evil"}}).trust == "e"
}

# Two directories are two entries, not one that covers twice.
test_entries_differ_by_directory if {
	entries := {"a": {"command": ["node", "s.js"]}, "b": {"command": ["node", "s.js"], "dir": "b"}}
	decide(exec("node", ["s.js"]), entries).trust == "a"
}

test_two_entries_are_none if {
	entries := {"a": {"command": ["x"], "rest": true}, "b": {"command": ["x", "1"]}}
	q := exec("x", ["1"])
	not connect.allow with input as q with data.trust.entries as entries
	reasons(q, entries) == {"trust entries a, b all cover it: make one of them narrower"}
}

test_an_interpreter_must_be_meant if {
	q := observing(exec("sh", ["-c", "date"]), {"runs_code": "sh -c runs code", "unpinned": ""})
	reasons(q, {"e": {"command": ["sh", "-c", "date"]}}) == {"sh -c runs code: trust entry e in policy/trust/data.yaml would have to say interpreter: true"}
	decide(q, {"e": {"command": ["sh", "-c", "date"], "interpreter": true}}).trust == "e"
}

test_an_unpinned_package_must_be_meant if {
	q := observing(exec("npx", ["-y", "server"]), {"runs_code": "", "unpinned": "npx fetches server"})
	reasons(q, {"e": {"command": ["npx", "-y", "server"]}}) == {"npx fetches server: name an exact version or digest, or trust entry e in policy/trust/data.yaml would have to say unpinned: true"}
	decide(q, {"e": {"command": ["npx", "-y", "server"], "unpinned": true}}) == {
		"allow": true, "trust": "e", "env": [], "from_call": [], "stdin": false, "headers": [], "secrets": [], "max_connections": 0, "interpreter": false, "unpinned": true,
		"in_tree": false, "addresses": [], "sha256": "",
	}
}

# A declaration sets what the entry names, and nothing else, whatever its name.
test_declared_variables_must_be_named[name] if {
	some name in ["COLOR", "HOME", "PATH", "LANG", "LD_PRELOAD", "API_KEY", "GIT_DIR", "A"]
	q := with_env(exec("x", []), [name, "Z"])
	entry := {"command": ["x"], "env": ["B=1", "Z"]}
	reasons(q, {"e": entry}) == {sprintf("the declaration sets variables: trust entry e in policy/trust/data.yaml would have to say env: [\"B=1\",\"Z\",\"%s\"]", [name])}
	decide(q, {"e": object.union(entry, {"env": ["Z", name]})}).allow
	decide(q, {"e": object.union(entry, {"env": ["Z", concat("", [name, "=x"])]})}).allow
}

test_standard_input_must_be_meant if {
	q := json.patch(exec("jq", ["-f", "/dev/stdin"]), [{"op": "add", "path": "/target/command/stdin", "value": true}])
	entry := {"command": ["jq", "-f", "/dev/stdin"]}
	reasons(q, {"e": entry}) == {"calls write to the command's standard input: trust entry e in policy/trust/data.yaml would have to say stdin: true"}
	decide(q, {"e": object.union(entry, {"stdin": true})}).allow
}

test_secrets_must_be_named if {
	q := json.patch(http("a.example", "/", ["Authorization"]), [{"op": "add", "path": "/target/secrets", "value": ["env:A", "file:b"]}])
	entry := {"host": "a.example", "headers": ["Authorization"]}
	reasons(q, {"e": object.union(entry, {"secrets": ["env:A"]})}) == {"the declaration hands over secrets: trust entry e in policy/trust/data.yaml would have to say secrets: [\"env:A\",\"file:b\"]"}
	decide(q, {"e": object.union(entry, {"secrets": ["env:A", "file:b"]})}).allow
}

test_the_catalogs_own_tree_must_be_meant if {
	q := observing(exec("x", []), {"in_tree": true})
	reasons(q, {"e": {"command": ["x"]}}) == {"what x runs, or the directory that it works in, lies in the catalog's own tree, so whoever edits the catalog edits what runs: trust entry e in policy/trust/data.yaml would have to say in_tree: true"}
	decide(q, {"e": {"command": ["x"], "in_tree": true}}).in_tree
	decide(q, {"e": {"command": ["x"], "in_tree": true}}).allow
}

test_a_pin_holds if {
	entries := {"e": {"command": ["x"], "sha256": "aa"}}
	decide(observing(exec("x", []), {"sha256": "aa"}), entries).sha256 == "aa"
	reasons(observing(exec("x", []), {"sha256": "bb"}), entries) == {"trust entry e pins /usr/bin/x to another sha256 than it has, bb: review it, then renew the pin"}
	reasons(observing(exec("x", []), {"sha256": ""}), entries) == {"trust entry e pins /usr/bin/x to another sha256 than it has, which can't be read: review it, then renew the pin"}
}

test_http_reaches_loopback_only if {
	q := json.patch(http("a.example", "/", []), [{"op": "replace", "path": "/target/url/scheme", "value": "http"}])
	reasons(q, {"e": {"host": "a.example", "scheme": "http", "port": 443}}) == {"http://a.example would send everything in the clear: http reaches loopback only, take https"}
	near := json.patch(q, [{"op": "replace", "path": "/target/url/host", "value": "127.0.0.1"}])
	decide(near, {"e": {"host": "127.0.0.1", "scheme": "http", "port": 443}}).allow
}

observing(q, observed) := object.union(q, {"observed": observed})

test_headers_of_the_base_may_be_sent if {
	q := http("a.example", "/", ["Accept", "Accept-Language", "Content-Type", "User-Agent"])
	decide(q, {"e": {"host": "a.example"}}).headers == []
	decide(q, {"e": {"host": "a.example", "headers": ["X-Team"]}}).headers == ["X-Team"]
}

test_arguments_in_headers_must_be_named if {
	q := {"subject": {"kind": "tool", "name": "x"}, "target": object.union(http("a.example", "/", ["X-Team"]).target, {"from_call": ["team"]})}
	entry := {"host": "a.example", "headers": ["X-Team"], "from_call": ["tema"]}
	reasons(q, {"e": entry}) == {"calls fill in headers: trust entry e in policy/trust/data.yaml would have to say from_call: [\"tema\",\"team\"]"}
	decide(q, {"e": object.union(entry, {"from_call": ["team"]})}).allow
}

test_headers_must_be_named if {
	q := http("a.example", "/", ["Accept", "Authorization", "X-Http-Method-Override", "X-Team"])
	entry := {"host": "a.example", "headers": ["x-team"]}
	reasons(q, {"e": entry}) == {"the declaration sends headers: trust entry e in policy/trust/data.yaml would have to say headers: [\"x-team\",\"Authorization\",\"X-Http-Method-Override\"]"}
	count(reasons(q, {"e": object.remove(entry, ["headers"])})) == 1
	decide(q, {"e": object.union(entry, {"headers": ["X-TEAM", "authorization", "X-HTTP-Method-Override"]})}).allow
}
