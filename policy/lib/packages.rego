# Commands that fetch what they run. Without an exact version, what was trusted today is something else tomorrow.
package catalogd.lib.packages

import data.catalogd.lib.command

# unpinned(cmd): the command fetches a package or image and does not say exactly which.
unpinned(cmd) if {
	words := npm_words(cmd)
	not stays_local(words)
	not all_match(wanted(words, {"-p", "--package"}), npm_version)
}

unpinned(cmd) if {
	words := python_words(cmd)
	not all_match(wanted(words, {"--from", "--spec"}), python_version)
}

unpinned(cmd) if {
	some name in command.bases(cmd)
	name in {"docker", "podman", "nerdctl"}
	i := min({i | some i, w in cmd.args; w in {"run", "create"}})
	not regex.match(`@sha256:[0-9a-f]{64}$`, first_positional(tail(cmd.args, i + 1), container_flags))
}

# An exact version, or a file of this machine.
npm_version := `^((@[^/@]+/)?[^/@]+@[0-9]+\.[0-9]+\.[0-9]+([-+].*)?|\.{0,2}/.*)$`

python_version := `^([^=@]+(==|@)[0-9]+(\.[0-9]+)+([a-z0-9.+]*)?|\.{0,2}/.*)$`

# The words behind the part that says "fetch and run".
npm_words(cmd) := cmd.args if {
	some name in command.bases(cmd)
	name in {"npx", "bunx", "pnpx"}
} else := tail(cmd.args, 1) if {
	some name in command.bases(cmd)
	[name, cmd.args[0]] in [["npm", "exec"], ["npm", "x"], ["pnpm", "dlx"], ["yarn", "dlx"], ["bun", "x"]]
}

python_words(cmd) := cmd.args if {
	"uvx" in command.bases(cmd)
} else := tail(cmd.args, 1) if {
	"pipx" in command.bases(cmd)
	cmd.args[0] == "run"
} else := tail(cmd.args, 2) if {
	"uv" in command.bases(cmd)
	array.slice(cmd.args, 0, 2) == ["tool", "run"]
}

# --no-install counts only in front of the package; behind it, it is the package's own.
stays_local(words) if {
	some i, w in words
	w in {"--no-install", "--no"}
	every before in array.slice(words, 0, i) {
		startswith(before, "-")
	}
}

# wanted(words, flags): the packages that are named by flags, else the first word that is no flag; "" where there is
# none, which matches no version.
wanted(words, flags) := named if {
	named := by_flag(words, flags)
	count(named) > 0
} else := {first_positional(words, flags)}

by_flag(words, flags) := {w | some i, f in words; f in flags; w := word(words, i + 1)} | {w | some f in words; some flag in flags; startswith(f, concat("", [flag, "="])); w := substring(f, count(flag) + 1, -1)}

first_positional(words, valued) := found[0] if {
	found := [w |
		some i, w in words
		not startswith(w, "-")
		not word(words, i - 1) in valued
	]
	count(found) > 0
} else := ""

all_match(found, pattern) if {
	every w in found {
		regex.match(pattern, w)
	}
}

# word(words, i) is "" outside of the list.
default word(_, _) := ""

word(words, i) := words[i]

tail(list, from) := array.slice(list, from, count(list))

# Flags of docker run that take the next word.
container_flags := {
	"-e", "--env", "--env-file", "-v", "--volume", "--mount", "--name", "--network", "--net", "-p", "--publish", "-w",
	"--workdir", "-u", "--user", "--entrypoint", "-l", "--label", "-m", "--memory", "--cpus", "--pull", "--platform",
	"--tmpfs", "--cap-add", "--cap-drop", "--security-opt", "--add-host", "-h", "--hostname",
}
