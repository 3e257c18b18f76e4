package catalogd.check_test

import data.catalogd.check

test_shipped_data_is_well_formed if check.problems == set()

test_no_data_is_well_formed if {
	check.problems == set() with data.trust as {} with data.access as {} with data.adopt as {}
}

test_every_field_is_well_formed if {
	entries := {
		"a": {
			"command": ["x", "", ["a", "{b}"]], "dir": "tools", "rest": true, "from_call": ["b"], "env": ["HOME"], "interpreter": false, "unpinned": true, "max_connections": 2,
			"description": "x",
		},
		"b": {
			"host": "a.example", "scheme": "http", "port": 8080, "path": "/v1/", "headers": ["x-Team_1"], "from_call": ["team"], "addresses": ["10.0.0.0/8"],
			"max_connections": 0, "description": "",
		},
		"c": {"host": "::1"},
		"d": {"command": ["x"], "env": ["LC_ALL", "_A1", "A=", "B=x=y\nz"], "in_tree": true, "sha256": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
	}
	branches := {"b": {
		"tools": ["*"], "declared_reads": ["*"], "deny": ["x"], "effects": ["read"],
		"approve": {
			"x": {"groups": ["ops"], "self": false, "reason": "why", "expires": "1h30m"},
			"y": {"self": true, "expires": "720h"},
			"z": {"self": true, "groups": [], "expires": "2592000s"},
		},
		"relay": {"elicitation": ["x"], "logging": []}, "elicitation_hosts": ["login.example.com", "[::1]:8443"],
	}}
	hide := [{"labels": {}, "tags": ["x"], "reason": "why"}, {"labels": {"a": "b"}, "tags": []}]
	check.problems == set() with data.trust as {"entries": entries} with data.access as {"branches": branches, "hide": hide}
}

test_entries[case.message] if {
	some case in [
		{"at": [], "message": "a trust entry is a mapping of fields", "entry": "x"},
		{"at": [], "message": "a trust entry is a mapping of fields", "entry": ["a.example"]},
		{"at": [], "message": "a trust entry has either command or host, and this one has comand", "entry": {"comand": ["x"]}},
		{"at": [], "message": "a trust entry has either command or host, and this one has no field", "entry": {}},
		{"at": ["env"], "message": "env must be a list of names of variables, each alone or as NAME=value", "entry": {"command": ["x"], "env": ["A-B"]}},
		{"at": ["env"], "message": "env must be a list of names of variables, each alone or as NAME=value", "entry": {"command": ["x"], "env": [1]}},
		{"at": ["env"], "message": "env must be a list of names of variables, each alone or as NAME=value", "entry": {"command": ["x"], "env": ["APP_*"]}},
		{"at": ["env"], "message": "env must be a list of names of variables, each alone or as NAME=value", "entry": {"command": ["x"], "env": ["=x"]}},
		{"at": ["env"], "message": "env must be a list of names of variables, each alone or as NAME=value", "entry": {"command": ["x"], "env": {"A": "1"}}},
		{"at": ["sha256"], "message": "sha256 must be a digest of 64 hexadecimal digits, quoted and in lower case", "entry": {"command": ["x"], "sha256": "AA"}},
		{"at": ["sha256"], "message": "sha256 must be a digest of 64 hexadecimal digits, quoted and in lower case", "entry": {"command": ["x"], "sha256": 12}},
		{"at": [], "message": "a trust entry has either command or host, and this one has both", "entry": {"command": ["x"], "host": "a"}},
		{"at": ["envs"], "message": "envs is no field here: did you mean env?", "entry": {"command": ["x"], "envs": []}},
		{"at": ["rest"], "message": "rest is no field here: addresses, description, from_call, headers, host, max_connections, path, port, scheme, secrets are", "entry": {"host": "a", "rest": true}},
		{"at": ["command"], "message": "command must be a list of the command and its arguments, of which each but the first may be a list of alternatives", "entry": {"command": "x"}},
		{"at": ["command"], "message": "command must be a list of the command and its arguments, of which each but the first may be a list of alternatives", "entry": {"command": ["x", 1]}},
		{"at": ["command"], "message": "command must be a list of the command and its arguments, of which each but the first may be a list of alternatives", "entry": {"command": []}},
		{"at": ["command"], "message": "command must be a list of the command and its arguments, of which each but the first may be a list of alternatives", "entry": {"command": [""]}},
		{"at": ["command"], "message": "command must be a list of the command and its arguments, of which each but the first may be a list of alternatives", "entry": {"command": false}},
		{"at": ["dir"], "message": "dir must be a directory as the declaration's cwd has it", "entry": {"command": ["x"], "dir": ""}},
		{"at": ["dir"], "message": "dir must be a directory as the declaration's cwd has it", "entry": {"command": ["x"], "dir": ["x"]}},
		{"at": ["rest"], "message": "rest must be a true or false", "entry": {"command": ["x"], "rest": "yes"}},
		{"at": ["from_call"], "message": "from_call must be a list of names", "entry": {"command": ["x", "{a}"], "from_call": "a"}},
		{"at": ["from_call"], "message": "from_call must be a list of names", "entry": {"command": ["x", "{a}"], "from_call": true}},
		{"at": ["command"], "message": "command must be a list of the command and its arguments, of which each but the first may be a list of alternatives", "entry": {"command": [["x", "y"]]}},
		{"at": ["command"], "message": "command must be a list of the command and its arguments, of which each but the first may be a list of alternatives", "entry": {"command": ["x", []]}},
		{"at": ["command"], "message": "command must be a list of the command and its arguments, of which each but the first may be a list of alternatives", "entry": {"command": ["x", ["a", ["b"]]]}},
		{"at": ["env"], "message": "env must be a list of names of variables, each alone or as NAME=value", "entry": {"command": ["x"], "env": "HOME"}},
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
		{"at": ["headers"], "message": "headers must be a list of names of headers", "entry": {"host": "a", "headers": "x"}},
		{"at": ["headers"], "message": "headers must be a list of names of headers", "entry": {"host": "a", "headers": ["X-Team: a"]}},
	]
	at := array.concat(["trust", "entries", "e"], case.at)
	check.problems == {{"path": at, "message": case.message}} with data.trust as {"entries": {"e": case.entry}}
}

test_access[case.message] if {
	some case in [
		{"at": ["branches", "b"], "message": "a branch's access is a mapping of tools, declared_reads, resources, prompts, deny, effects, approve, relay and elicitation_hosts", "access": {"branches": {"b": ["*"]}}},
		{"at": ["branches", "b", "denny"], "message": "denny is no field here: approve, declared_reads, deny, effects, elicitation_hosts, prompts, relay, resources, tools are", "access": {"branches": {"b": {"tools": ["*"], "denny": ["x"]}}}},
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
		{"at": ["branch"], "message": "branch is no field here: did you mean branches?", "access": {"branch": {}}},
	]
	check.problems == {{"path": array.concat(["access"], case.at), "message": case.message}} with data.access as case.access
}

test_approve[case.message] if {
	some case in [
		{"at": [], "message": "approve must be a mapping", "approve": ["delete_*"]},
		{"at": ["x"], "message": "an entry of approve is a mapping of groups, self, reason and expires", "approve": {"x": ["ops"]}},
		{"at": ["x"], "message": "nobody could approve this: name groups, or say self: true", "approve": {"x": {"reason": "why"}}},
		{"at": ["x"], "message": "nobody could approve this: name groups, or say self: true", "approve": {"x": {"groups": [], "self": false}}},
		{"at": ["x", "group"], "message": "group is no field here: did you mean groups?", "approve": {"x": {"group": ["ops"]}}},
		{"at": ["x", "groups"], "message": "groups must be a list of names", "approve": {"x": {"groups": "ops"}}},
		{"at": ["x", "groups"], "message": "groups must be a list of names", "approve": {"x": {"groups": [""]}}},
		{"at": ["x", "self"], "message": "self must be a true or false", "approve": {"x": {"groups": ["ops"], "self": "yes"}}},
		{"at": ["x", "reason"], "message": "reason must be a text", "approve": {"x": {"groups": ["ops"], "reason": 1}}},
	]
	expected := {{"path": array.concat(["access", "branches", "b", "approve"], case.at), "message": case.message}}
	check.problems == expected with data.access as {"branches": {"b": {"approve": case.approve}}}
}

test_expires[sprintf("%v", [text])] if {
	some text in ["", "0s", "4", "-1h", "721h", "720h1s", "1d", "1.5h", "999h", "9999999999999h", 4]
	at := ["access", "branches", "b", "approve", "x", "expires"]
	expected := {{"path": at, "message": "expires must be a time such as 4h, of at most 720h"}}
	check.problems == expected with data.access as {"branches": {"b": {"approve": {"x": {"self": true, "expires": text}}}}}
}

test_adopt if {
	expected := {{"path": ["adopt", "may_empty"], "message": "may_empty must be a list of names"}}
	check.problems == expected with data.adopt as {"may_empty": "research"}
}
