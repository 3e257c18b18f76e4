package catalogd.check_test

import data.catalogd.check

test_shipped_data_is_well_formed if check.problems == set()

test_no_data_is_well_formed if {
	check.problems == set() with data.trust as {} with data.access as {} with data.adopt as {}
}

test_every_field_is_well_formed if {
	entries := {
		"a": {
			"command": ["x", ""], "dir": "tools", "exact": true, "env": ["HOME"], "interpreter": false, "unpinned": true, "max_connections": 2,
			"description": "x",
		},
		"b": {
			"host": "a.example", "scheme": "http", "port": 8080, "path": "/v1/", "headers": [], "addresses": ["10.0.0.0/8"],
			"max_connections": 0, "description": "",
		},
		"c": {"host": "::1"},
		"d": {"command": ["x"], "env": ["LC_*", "*", "_A1"], "in_tree": true, "sha256": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
	}
	branches := {"b": {
		"tools": ["*"], "deny": ["x"], "effects": ["read"],
		"relay": {"elicitation": ["x"], "logging": []}, "elicitation_hosts": ["login.example.com", "[::1]:8443"],
	}}
	hide := [{"labels": {}, "tags": ["x"], "reason": "why"}, {"labels": {"a": "b"}, "tags": []}]
	check.problems == set() with data.trust as {"entries": entries} with data.access as {"branches": branches, "hide": hide} with data.env as {"sensitive": ["KEY"]}
}

test_entries[case.message] if {
	some case in [
		{"at": [], "message": "a trust entry is a mapping of fields", "entry": "x"},
		{"at": [], "message": "a trust entry is a mapping of fields", "entry": ["a.example"]},
		{"at": [], "message": "a trust entry has either command or host, and this one has comand", "entry": {"comand": ["x"]}},
		{"at": [], "message": "a trust entry has either command or host, and this one has no field", "entry": {}},
		{"at": ["env"], "message": "env must be a list of names of variables, with * for any characters", "entry": {"command": ["x"], "env": ["A-B"]}},
		{"at": ["env"], "message": "env must be a list of names of variables, with * for any characters", "entry": {"command": ["x"], "env": [1]}},
		{"at": ["sha256"], "message": "sha256 must be a digest of 64 hexadecimal digits, quoted and in lower case", "entry": {"command": ["x"], "sha256": "AA"}},
		{"at": ["sha256"], "message": "sha256 must be a digest of 64 hexadecimal digits, quoted and in lower case", "entry": {"command": ["x"], "sha256": 12}},
		{"at": [], "message": "a trust entry has either command or host, and this one has both", "entry": {"command": ["x"], "host": "a"}},
		{"at": ["envs"], "message": "envs is no field here: command, description, dir, env, exact, in_tree, interpreter, max_connections, sha256, unpinned are", "entry": {"command": ["x"], "envs": []}},
		{"at": ["exact"], "message": "exact is no field here: addresses, description, headers, host, max_connections, path, port, scheme are", "entry": {"host": "a", "exact": true}},
		{"at": ["command"], "message": "command must be a list of the command and its first arguments", "entry": {"command": "x"}},
		{"at": ["command"], "message": "command must be a list of the command and its first arguments", "entry": {"command": ["x", 1]}},
		{"at": ["command"], "message": "command must be a list of the command and its first arguments", "entry": {"command": []}},
		{"at": ["command"], "message": "command must be a list of the command and its first arguments", "entry": {"command": [""]}},
		{"at": ["command"], "message": "command must be a list of the command and its first arguments", "entry": {"command": false}},
		{"at": ["dir"], "message": "dir must be a directory as the declaration's cwd has it", "entry": {"command": ["x"], "dir": ""}},
		{"at": ["dir"], "message": "dir must be a directory as the declaration's cwd has it", "entry": {"command": ["x"], "dir": ["x"]}},
		{"at": ["exact"], "message": "exact must be a true or false", "entry": {"command": ["x"], "exact": "yes"}},
		{"at": ["env"], "message": "env must be a list of names of variables, with * for any characters", "entry": {"command": ["x"], "env": "HOME"}},
		{"at": ["max_connections"], "message": "max_connections must be a whole number", "entry": {"command": ["x"], "max_connections": 1.5}},
		{"at": ["max_connections"], "message": "max_connections must be a whole number", "entry": {"command": ["x"], "max_connections": -1}},
		{"at": ["host"], "message": "host must be a host in lower case, without scheme and port", "entry": {"host": "A.example"}},
		{"at": ["host"], "message": "host must be a host in lower case, without scheme and port", "entry": {"host": "https://a.example"}},
		{"at": ["host"], "message": "host must be a host in lower case, without scheme and port", "entry": {"host": "*"}},
		{"at": ["scheme"], "message": "scheme must be a scheme, http or https", "entry": {"host": "a", "scheme": "file"}},
		{"at": ["port"], "message": "port must be a port number", "entry": {"host": "a", "port": "443"}},
		{"at": ["port"], "message": "port must be a port number", "entry": {"host": "a", "port": 0}},
		{"at": ["path"], "message": "path must be a path from the root, without dot segments", "entry": {"host": "a", "path": "v1"}},
		{"at": ["path"], "message": "path must be a path from the root, without dot segments", "entry": {"host": "a", "path": "/v1/../x"}},
		{"at": ["addresses"], "message": "addresses must be a list of ranges such as 10.1.0.0/16", "entry": {"host": "a", "addresses": ["127.0.0.1"]}},
		{"at": ["addresses"], "message": "addresses must be a list of ranges such as 10.1.0.0/16", "entry": {"host": "a", "addresses": ["localhost/8"]}},
		{"at": ["headers"], "message": "headers must be a list of names", "entry": {"host": "a", "headers": "x"}},
	]
	at := array.concat(["trust", "entries", "e"], case.at)
	check.problems == {{"path": at, "message": case.message}} with data.trust as {"entries": {"e": case.entry}}
}

test_access[case.message] if {
	some case in [
		{"at": ["branches", "b"], "message": "a branch's access is a mapping of tools, resources, prompts, deny, effects, relay and elicitation_hosts", "access": {"branches": {"b": ["*"]}}},
		{"at": ["branches", "b", "denny"], "message": "denny is no field here: deny, effects, elicitation_hosts, prompts, relay, resources, tools are", "access": {"branches": {"b": {"tools": ["*"], "denny": ["x"]}}}},
		{"at": ["branches", "b", "deny"], "message": "deny must be a list of names", "access": {"branches": {"b": {"deny": "admin_*"}}}},
		{"at": ["branches", "b", "effects"], "message": "effects must be a list of read and write", "access": {"branches": {"b": {"effects": ["reads"]}}}},
		{"at": ["branches", "b", "elicitation_hosts"], "message": "elicitation_hosts must be a list of hosts in lower case, with a port where that isn't 443", "access": {"branches": {"b": {"elicitation_hosts": ["https://login.example.com"]}}}},
		{"at": ["branches", "b", "elicitation_hosts"], "message": "elicitation_hosts must be a list of hosts in lower case, with a port where that isn't 443", "access": {"branches": {"b": {"elicitation_hosts": ["Login.example.com"]}}}},
		{"at": ["branches", "b", "relay"], "message": "relay must be a mapping of elicitation, sampling, roots and logging to lists of names", "access": {"branches": {"b": {"relay": {"tasks": ["*"]}}}}},
		{"at": ["branches", "b", "relay"], "message": "relay must be a mapping of elicitation, sampling, roots and logging to lists of names", "access": {"branches": {"b": {"relay": {"logging": "*"}}}}},
		{"at": ["branches", "b", "relay"], "message": "relay must be a mapping of elicitation, sampling, roots and logging to lists of names", "access": {"branches": {"b": {"relay": ["logging"]}}}},
		{"at": ["branches", "b", "resources"], "message": "resources must be a mapping of servers to lists of URIs", "access": {"branches": {"b": {"resources": ["*"]}}}},
		{"at": ["branches", "b", "prompts"], "message": "prompts must be a mapping of servers to lists of names", "access": {"branches": {"b": {"prompts": {"wiki": "*"}}}}},
		{"at": ["hide", "0"], "message": "a hide rule is a mapping of labels, tags and reason", "access": {"hide": ["internal"]}},
		{"at": ["hide", "0"], "message": "a hide rule needs both labels and tags", "access": {"hide": [{"label": {"a": "b"}, "tags": ["x"]}]}},
		{"at": ["hide", "1", "labels"], "message": "labels must be a mapping of texts", "access": {"hide": [{"labels": {}, "tags": []}, {"labels": {"a": true}, "tags": ["x"]}]}},
		{"at": ["hide", "0", "tags"], "message": "tags must be a list of names", "access": {"hide": [{"labels": {}, "tags": "internal"}]}},
		{"at": ["hide", "0", "reason"], "message": "reason must be a text", "access": {"hide": [{"labels": {}, "tags": [], "reason": 1}]}},
		{"at": ["hide"], "message": "hide must be a list", "access": {"hide": {}}},
		{"at": ["branches"], "message": "branches must be a mapping", "access": {"branches": ["b"]}},
		{"at": ["branch"], "message": "branch is no field here: branches, hide are", "access": {"branch": {}}},
	]
	check.problems == {{"path": array.concat(["access"], case.at), "message": case.message}} with data.access as case.access
}

test_adopt if {
	expected := {{"path": ["adopt", "may_empty"], "message": "may_empty must be a list of names"}}
	check.problems == expected with data.adopt as {"may_empty": "research"}
}
