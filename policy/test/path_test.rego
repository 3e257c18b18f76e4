package catalogd.lib.path_test

import data.catalogd.lib.path

# Lookalikes of /opt/tools (threat T25).
test_within[case.path] if {
	some case in [
		{"path": "/opt/tools", "want": true},
		{"path": "/opt/tools/x", "want": true},
		{"path": "/opt/tools/", "want": true},
		{"path": "/opt/tools-evil/x", "want": false},
		{"path": "/opt/toolsx", "want": false},
		{"path": "/opt", "want": false},
		{"path": "/opt/tools/../../bin/sh", "want": false},
		{"path": "/opt/tools/./x", "want": false},
		{"path": "/opt/tools//x", "want": false},
		{"path": "/opt/tools/%2e%2e/sh", "want": false},
		{"path": "/opt/tools/a%2Fb", "want": false},
		{"path": "/opt/tools\\x", "want": false},
		{"path": "opt/tools/x", "want": false},
		{"path": "/", "want": false},
	]
	within(case.path) == case.want
}

default within(_) := false

within(p) if path.within("/opt/tools", p)

test_everything_is_within_the_root if path.within("/", "/bin/sh")

test_a_relative_dir_holds_nothing if not path.within("opt", "/opt/x")

test_segments if path.segments("/a//b/") == ["a", "b"]
