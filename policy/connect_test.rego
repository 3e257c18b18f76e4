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
	answer := connect with input as q with data.trust.entries as entries with data.env.sensitive as ["KEY", "token"]
	count(answer.deny) == 0
}

reasons(q, entries) := r if {
	r := connect.deny with input as q with data.trust.entries as entries with data.env.sensitive as ["KEY", "token"]
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
		"allow": true, "trust": "e", "env": {"HOME"}, "withheld": set(), "max_connections": 2, "interpreter": true, "addresses": [],
		"sha256": "",
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
	q := with_env(exec("x", []), ["COLOR", "LD_PRELOAD"])
	count(reasons(q, {"e": {"command": ["x"]}})) == 1
	decide(q, {"e": {"command": ["x"], "env": ["LD_PRELOAD"]}}).allow
}

test_secrets_in_the_declaration_must_be_meant if {
	q := with_env(exec("x", []), ["API_KEY", "COLOR"])
	reasons(q, {"e": {"command": ["x"], "env": ["*"]}}) == {"the declaration sets API_KEY, and by its name that may be a secret (policy/env/data.yaml): trust entry e would have to name it in env"}
	decide(q, {"e": {"command": ["x"], "env": ["API_KEY"]}}).allow
}

test_patterns_pass_ordinary_names if {
	q := observing(exec("x", []), {}, ["API_KEY", "LC_ALL", "LC_TIME", "LC_Tokens", "PATH", "SSH_KEY"])
	answer := decide(q, {"e": {"command": ["x"], "env": ["LC_*", "API_KEY", "*H*K*", "UNSET"]}})
	answer.env == {"API_KEY", "LC_ALL", "LC_TIME", "UNSET"}
	answer.withheld == {"LC_Tokens", "SSH_KEY"}
}

test_no_pattern_passes_anything_without_the_list if {
	q := observing(exec("x", []), {}, ["HOME", "LANG"])
	entries := {"e": {"command": ["x"], "env": ["*", "LANG"]}}
	answer := connect with input as q with data.trust.entries as entries with data.env as {}
	answer.env == {"LANG"}
	answer.withheld == {"HOME"}
}

test_the_catalogs_own_tree_must_be_meant if {
	q := observing(exec("x", []), {"in_tree": true}, [])
	reasons(q, {"e": {"command": ["x"]}}) == {"what x runs lies in the catalog's own tree, so whoever edits the catalog edits it: trust entry e would have to say in_tree: true"}
	decide(q, {"e": {"command": ["x"], "in_tree": true}}).allow
}

test_a_pin_holds if {
	entries := {"e": {"command": ["x"], "sha256": "aa"}}
	decide(observing(exec("x", []), {"sha256": "aa"}, []), entries).sha256 == "aa"
	reasons(observing(exec("x", []), {"sha256": "bb"}, []), entries) == {"trust entry e pins /usr/bin/x to another sha256 than it has, bb: review it, then renew the pin"}
	reasons(observing(exec("x", []), {"sha256": ""}, []), entries) == {"trust entry e pins /usr/bin/x to another sha256 than it has, which can't be read: review it, then renew the pin"}
}

test_http_reaches_loopback_only if {
	q := json.patch(http("a.example", "/", []), [{"op": "replace", "path": "/target/url/scheme", "value": "http"}])
	reasons(q, {"e": {"host": "a.example", "scheme": "http", "port": 443}}) == {"http://a.example would send everything in the clear: http reaches loopback only, take https"}
	near := json.patch(q, [{"op": "replace", "path": "/target/url/host", "value": "127.0.0.1"}])
	decide(near, {"e": {"host": "127.0.0.1", "scheme": "http", "port": 443}}).allow
}

observing(q, observed, environment) := object.union(q, {"observed": observed, "environment": environment})

test_headers if {
	q := http("a.example", "/", ["Authorization"])
	decide(q, {"e": {"host": "a.example"}}).allow
	decide(q, {"e": {"host": "a.example", "headers": ["Authorization"]}}).allow
	count(reasons(q, {"e": {"host": "a.example", "headers": []}})) == 1
}
