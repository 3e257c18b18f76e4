package catalogd.connect_test

import data.catalogd.connect

exec(declared, args) := {
	"subject": {"kind": "tool", "name": "t", "effect": "read", "pos": {"file": "catalog/t.cue", "line": 1, "col": 1}},
	"target": {
		"kind": "exec", "headers": [],
		"command": {"declared": declared, "path": concat("", ["/usr/bin/", declared]), "args": args, "dir": "", "env": []},
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

machine := {"clock": {"command": ["date", "-u"]}, "system": {"command": ["uname"]}, "count": {"command": ["wc"]}}

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
	entries := {"e": {"command": ["x"], "env": ["HOME"], "max_connections": 2, "interpreter": true}}
	decide(exec("x", []), entries) == {
		"allow": true, "trust": "e", "env": ["HOME"], "max_connections": 2, "interpreter": true, "addresses": [],
	}
}

test_addresses if {
	entries := {"e": {"host": "a.example", "addresses": ["10.0.0.0/8"]}}
	decide(http("a.example", "/", []), entries).addresses == ["10.0.0.0/8"]
}

test_the_reason_shows_the_words_to_enter if {
	reasons(exec("curl", ["-s"]), {}) == {"no trust entry covers the command [\"curl\",\"-s\"]: add one to policy/trust/data.yaml"}
}

test_the_reason_shows_the_address if {
	reasons(http("a.example", "/v1", []), {}) == {"no trust entry covers https://a.example:443/v1: add one to policy/trust/data.yaml"}
}

test_another_directory_must_be_meant if {
	q := json.patch(exec("node", ["server.js"]), [{"op": "replace", "path": "/target/command/dir", "value": "evil"}])
	reasons(q, {"e": {"command": ["node", "server.js"]}}) == {"no trust entry covers the command [\"node\",\"server.js\"] in dir \"evil\": add one to policy/trust/data.yaml"}
	decide(q, {"e": {"command": ["node", "server.js"], "dir": "evil"}}).trust == "e"
}

# Two directories are two entries, not one that covers twice.
test_entries_differ_by_directory if {
	entries := {"a": {"command": ["node", "s.js"]}, "b": {"command": ["node", "s.js"], "dir": "b"}}
	decide(exec("node", ["s.js"]), entries).trust == "a"
}

test_two_entries_are_none if {
	entries := {"a": {"command": ["x"]}, "b": {"command": ["x", "1"]}}
	q := exec("x", ["1"])
	not connect.allow with input as q with data.trust.entries as entries
	reasons(q, entries) == {"trust entries a, b all cover it: make one of them narrower"}
}

test_an_interpreter_must_be_meant if {
	q := exec("sh", ["-c", "date"])
	count(reasons(q, {"e": {"command": ["sh"]}})) == 1
	decide(q, {"e": {"command": ["sh"], "interpreter": true}}).trust == "e"
}

test_an_unpinned_package_must_be_meant if {
	q := exec("npx", ["-y", "server"])
	count(reasons(q, {"e": {"command": ["npx"]}})) == 1
	decide(q, {"e": {"command": ["npx"], "unpinned": true}}).trust == "e"
}

test_an_installed_package_is_fine if {
	q := exec("npx", ["--no-install", "mcp-server-everything"])
	decide(q, {"e": {"command": ["npx", "--no-install", "mcp-server-everything"]}}).trust == "e"
}

test_steering_variables_must_be_meant if {
	q := with_env(exec("x", []), ["API_KEY", "LD_PRELOAD"])
	count(reasons(q, {"e": {"command": ["x"]}})) == 1
	decide(q, {"e": {"command": ["x"], "env": ["LD_PRELOAD"]}}).allow
}

test_headers if {
	q := http("a.example", "/", ["Authorization"])
	decide(q, {"e": {"host": "a.example"}}).allow
	decide(q, {"e": {"host": "a.example", "headers": ["Authorization"]}}).allow
	count(reasons(q, {"e": {"host": "a.example", "headers": []}})) == 1
}
