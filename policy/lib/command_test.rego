package catalogd.lib.command_test

import data.catalogd.lib.command

cmd(declared, args) := {"declared": declared, "path": concat("", ["/usr/bin/", declared]), "args": args, "dir": "", "env": []}

test_leading_arguments[case.note] if {
	some case in [
		{"note": "equal", "entry": ["date", "-u"], "args": ["-u"], "want": true},
		{"note": "more follow", "entry": ["date", "-u"], "args": ["-u", "+%Y"], "want": true},
		{"note": "fewer", "entry": ["date", "-u"], "args": [], "want": false},
		{"note": "other", "entry": ["date", "-u"], "args": ["-s", "-u"], "want": false},
		{"note": "glued", "entry": ["date", "-u"], "args": ["-us"], "want": false},
		{"note": "none asked", "entry": ["date"], "args": ["-s"], "want": true},
		{"note": "the file", "entry": ["/usr/bin/date"], "args": [], "want": true},
		{"note": "another file", "entry": ["/bin/date"], "args": [], "want": false},
		{"note": "longer name", "entry": ["dat"], "args": [], "want": false},
	]
	covers({"command": case.entry}, cmd("date", case.args)) == case.want
}

default covers(_, _) := false

covers(entry, c) if command.covers(entry, c)

test_exact_takes_nothing_behind if {
	entry := {"command": ["date", "-u"], "exact": true}
	command.covers(entry, cmd("date", ["-u"]))
	not command.covers(entry, cmd("date", ["-u", "-s"]))
}

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
	entry := object.union({"command": ["node", "server.js"], "exact": true}, case.entry)
	covers(entry, object.union(cmd("node", ["server.js"]), {"dir": case.dir})) == case.want
}

test_a_command_without_a_directory_is_no_command if {
	not command.covers({"command": ["x"]}, {"declared": "x", "path": "/usr/bin/x", "args": [], "env": []})
}

test_a_declared_path_is_not_its_name if {
	not command.covers({"command": ["date"]}, {"declared": "./date", "path": "/srv/date", "args": [], "dir": ""})
}

test_runs_code[case.note] if {
	some case in [
		{"note": "sh", "cmd": cmd("sh", ["-c", "x"]), "want": true},
		{"note": "sh with a file", "cmd": cmd("sh", ["-eu", "x.sh"]), "want": false},
		{"note": "sh +c", "cmd": cmd("sh", ["+c", "x"]), "want": true},
		{"note": "bash -u +ec", "cmd": cmd("bash", ["-u", "+ec", "x"]), "want": true},
		{"note": "sh /dev/stdin", "cmd": cmd("sh", ["/dev/stdin"]), "want": true},
		{"note": "sh //dev/./stdin", "cmd": cmd("sh", ["//dev/./stdin"]), "want": true},
		{"note": "sh /dev/../dev/stdin", "cmd": cmd("sh", ["/dev/../dev/stdin"]), "want": true},
		{"note": "sh dev/stdin", "cmd": cmd("sh", ["../../dev/stdin"]), "want": true},
		{"note": "python /proc/self/fd/0", "cmd": cmd("python3", ["/proc/self/fd/0"]), "want": true},
		{"note": "python /dev/fd/0", "cmd": cmd("python3", ["-u", "/dev/fd/0"]), "want": true},
		{"note": "a script in dev", "cmd": cmd("node", ["/home/dev/server.js"]), "want": false},
		{"note": "a script in fd", "cmd": cmd("node", ["fd/server.js"]), "want": false},
		{"note": "deno run data:", "cmd": cmd("deno", ["run", "data:text/javascript,x"]), "want": true},
		{"note": "deno run https:", "cmd": cmd("deno", ["run", "https://evil.example/x.ts"]), "want": true},
		{"note": "deno run a file", "cmd": cmd("deno", ["run", "./x.ts"]), "want": false},
		{"note": "node inspect", "cmd": cmd("node", ["inspect"]), "want": true},
		{"note": "npx -yc", "cmd": cmd("npx", ["-yc", "x"]), "want": true},
		{"note": "npx --cal=", "cmd": cmd("npx", ["--cal=x"]), "want": true},
		{"note": "pwsh -e", "cmd": cmd("pwsh", ["-e", "ZQBjAGgAbwA="]), "want": true},
		{"note": "uv run", "cmd": cmd("uv", ["run", "x"]), "want": true},
		{"note": "the dynamic linker", "cmd": {"declared": "x", "path": "/lib64/ld-linux-x86-64.so.2", "args": ["/bin/sh", "-c", "x"]}, "want": true},
		{"note": "taskset", "cmd": cmd("taskset", ["1", "sh", "-c", "x"]), "want": true},
		{"note": "sh -ec", "cmd": cmd("sh", ["-ec", "x"]), "want": true},
		{"note": "python -u with a file", "cmd": cmd("python3", ["-u", "server.py"]), "want": false},
		{"note": "perl -e", "cmd": cmd("perl", ["-w", "-e", "x"]), "want": true},
		{"note": "a link to a shell", "cmd": {"declared": "tool", "path": "/usr/bin/dash", "args": ["-c", "x"]}, "want": true},
		{"note": "env", "cmd": cmd("env", ["date"]), "want": true},
		{"note": "xargs", "cmd": cmd("xargs", []), "want": true},
		{"note": "python -c", "cmd": cmd("python3", ["-c", "x"]), "want": true},
		{"note": "python -Ic", "cmd": cmd("python3.12", ["-Ic", "x"]), "want": true},
		{"note": "python from stdin", "cmd": cmd("python3", []), "want": true},
		{"note": "python with a file of the caller", "cmd": cmd("python3", ["{file}"]), "want": true},
		{"note": "python with a file", "cmd": cmd("python3", ["server.py", "-c"]), "want": false},
		{"note": "python -m", "cmd": cmd("python3", ["-m", "server"]), "want": false},
		{"note": "node -e", "cmd": cmd("node", ["-e", "x"]), "want": true},
		{"note": "node with a file", "cmd": cmd("node", ["server.js"]), "want": false},
		{"note": "deno eval", "cmd": cmd("deno", ["eval", "x"]), "want": true},
		{"note": "npx -c", "cmd": cmd("npx", ["-c", "x"]), "want": true},
		{"note": "npx", "cmd": cmd("npx", ["--no-install", "x"]), "want": false},
		{"note": "date", "cmd": cmd("date", []), "want": false},
		{"note": "busybox's date", "cmd": {"declared": "date", "path": "/usr/bin/date", "args": []}, "want": false},
	]
	runs_code(case.cmd) == case.want
}

default runs_code(_) := false

runs_code(c) if command.runs_code(c)

test_steering[name] if {
	some name in [
		"LD_PRELOAD", "DYLD_INSERT_LIBRARIES", "NODE_OPTIONS", "PYTHONPATH", "BASH_ENV", "PATH", "GIT_SSH_COMMAND",
		"npm_config_script_shell", "Npm_Config_Script_Shell", "PYTHONBREAKPOINT", "_JAVA_OPTIONS", "LUA_INIT_5_4", "ZDOTDIR", "OPENSSL_CONF",
	]
	command.steering(name)
}

test_not_steering[name] if {
	some name in ["HOME", "API_KEY", "LANG", "MY_LD_PATH", "NODE_ENV", "PYTHONUNBUFFERED", "TZ", "RUN_ID", "MY_npm_token"]
	not command.steering(name)
}
