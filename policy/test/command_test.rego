package catalogd.lib.command_test

import data.catalogd.lib.command

cmd(declared, args) := {"declared": declared, "path": concat("", ["/usr/bin/", declared]), "args": args, "dir": "", "env": [], "from_call": []}

test_command_lines[case.note] if {
	some case in [
		{"note": "equal", "entry": ["date", "-u"], "args": ["-u"], "want": true},
		{"note": "more follow", "entry": ["date", "-u"], "args": ["-u", "+%Y"], "want": false},
		{"note": "fewer", "entry": ["date", "-u"], "args": [], "want": false},
		{"note": "other", "entry": ["date", "-u"], "args": ["-s", "-u"], "want": false},
		{"note": "glued", "entry": ["date", "-u"], "args": ["-us"], "want": false},
		{"note": "none asked", "entry": ["date"], "args": ["-s"], "want": false},
		{"note": "none", "entry": ["date"], "args": [], "want": true},
		{"note": "the file", "entry": ["/usr/bin/date"], "args": [], "want": true},
		{"note": "another file", "entry": ["/bin/date"], "args": [], "want": false},
		{"note": "longer name", "entry": ["dat"], "args": [], "want": false},
		{"note": "an empty argument", "entry": ["date", ""], "args": [""], "want": true},
		{"note": "an alternative", "entry": ["date", ["-u", "-R"], "x"], "args": ["-R", "x"], "want": true},
		{"note": "no alternative", "entry": ["date", ["-u", "-R"]], "args": ["-s"], "want": false},
		{"note": "two alternatives", "entry": ["date", ["-u", "-R"]], "args": ["-u", "-R"], "want": false},
		{"note": "no alternative at all", "entry": ["date", []], "args": [""], "want": false},
		{"note": "a pattern is text", "entry": ["date", "*"], "args": ["-u"], "want": false},
	]
	covers({"command": case.entry}, cmd("date", case.args)) == case.want
}

# What calls fill in is covered as it is declared.
test_placeholders[case.note] if {
	some case in [
		{"note": "as declared", "entry": {"command": ["grep", "-e", "{pattern}"]}, "args": ["-e", "{pattern}"], "want": true},
		{"note": "another one", "entry": {"command": ["grep", "-e", "{pattern}"]}, "args": ["-e", "{file}"], "want": false},
		{"note": "in place of a text", "entry": {"command": ["grep", "-e", "x"]}, "args": ["-e", "{pattern}"], "want": false},
		{"note": "inside an element", "entry": {"command": ["grep", "--regexp={pattern}"]}, "args": ["--regexp={pattern}"], "want": true},
		{"note": "more than declared", "entry": {"command": ["grep", "{pattern}"]}, "args": ["--{pattern}"], "want": false},
		{"note": "behind", "entry": {"command": ["grep", "-e"]}, "args": ["-e", "{pattern}"], "want": false},
		{"note": "behind, with rest", "entry": {"command": ["grep", "-e"], "rest": true}, "args": ["-e", "{pattern}"], "want": false},
		{"note": "behind, named", "entry": {"command": ["grep", "-e"], "rest": true, "from_call": ["pattern"]}, "args": ["-e", "{pattern}"], "want": false},
		{"note": "behind an option, with rest", "entry": {"command": ["grep"], "rest": true}, "args": ["{pattern?-e}"], "want": false},
		{"note": "as declared, with a mark", "entry": {"command": ["grep", "{pattern*-e}"]}, "args": ["{pattern*-e}"], "want": true},
		{"note": "another mark", "entry": {"command": ["grep", "{pattern}"]}, "args": ["{pattern*}"], "want": false},
		{"note": "fixed, behind", "entry": {"command": ["grep", "-e", "{pattern}"], "rest": true}, "args": ["-e", "{pattern}", "-i", "x"], "want": true},
		{"note": "fixed, before", "entry": {"command": ["grep", "-e", "{pattern}"], "rest": true}, "args": ["-i", "-e", "{pattern}"], "want": false},
	]
	covers(case.entry, object.union(cmd("grep", case.args), {"from_call": ["pattern"]})) == case.want
}

test_rest[case.note] if {
	some case in [
		{"note": "nothing", "rest": true, "args": ["-u"], "want": true},
		{"note": "fixed ones", "rest": true, "args": ["-u", "-a", ""], "want": true},
		{"note": "braces are text where no call fills them in", "rest": true, "args": ["-u", "{}", "{x}"], "want": true},
		{"note": "not granted", "rest": false, "args": ["-u", "-a"], "want": false},
		{"note": "no boolean", "rest": "true", "args": ["-u", "-a"], "want": false},
		{"note": "fewer", "rest": true, "args": [], "want": false},
	]
	covers({"command": ["date", "-u"], "rest": case.rest}, cmd("date", case.args)) == case.want
}

default covers(_, _) := false

covers(entry, c) if command.covers(entry, c)

# A relative script is another one in another directory.
test_dir[case.note] if {
	some case in [
		{"note": "none at all", "entry": {}, "dir": "", "want": true},
		{"note": "not named", "entry": {}, "dir": "evil", "want": false},
		{"note": "the root, not named", "entry": {}, "dir": ".", "want": false},
		{"note": "named", "entry": {"dir": "tools"}, "dir": "tools", "want": true},
		{"note": "named and not declared", "entry": {"dir": "tools"}, "dir": "", "want": false},
		{"note": "another spelling", "entry": {"dir": "tools"}, "dir": "tools/", "want": false},
		{"note": "below", "entry": {"dir": "tools"}, "dir": "tools/evil", "want": false},
		{"note": "above", "entry": {"dir": "tools"}, "dir": "tools/..", "want": false},
		{"note": "longer", "entry": {"dir": "/opt/tools"}, "dir": "/opt/tools-evil", "want": false},
		{"note": "no text", "entry": {"dir": false}, "dir": "", "want": false},
	]
	entry := object.union({"command": ["node", "server.js"]}, case.entry)
	covers(entry, object.union(cmd("node", ["server.js"]), {"dir": case.dir})) == case.want
}

test_a_command_without_a_directory_is_no_command if {
	not command.covers({"command": ["x"]}, {"declared": "x", "path": "/usr/bin/x", "args": [], "env": []})
}

test_a_declared_path_is_not_its_name if {
	not command.covers({"command": ["date"]}, {"declared": "./date", "path": "/srv/date", "args": [], "dir": ""})
}
