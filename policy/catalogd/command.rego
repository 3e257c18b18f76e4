# Part of catalogd: do not edit. `catalogd init --upgrade` replaces it; rules of your own go in policy/*.rego.
# Which commands a command entry of policy/trust/data.yaml covers.
package catalogd.lib.command

import future.keywords.not

# covers(entry, cmd): cmd (input.target.command) is the entry's command line, in the entry's directory. More may follow only
# with rest: true, and then only what no call fills in.
covers(entry, cmd) if {
	begins(entry, cmd)
	count(cmd.args) == count(entry.command) - 1
}

covers(entry, cmd) if {
	entry.rest == true
	begins(entry, cmd)
	every arg in array.slice(cmd.args, count(entry.command) - 1, count(cmd.args)) {
		fixed(arg, cmd)
	}
}

# begins(entry, cmd): cmd begins with the entry's command line, in the entry's directory. The directory counts because what
# lies there is another program's to find elsewhere.
begins(entry, cmd) if {
	named(entry.command[0], cmd)
	cmd.dir == object.get(entry, "dir", "")
	every i, word in array.slice(entry.command, 1, count(entry.command)) {
		fits(word, cmd.args[i])
	}
}

# fits(word, arg): an element of an entry's command is the argument as it is declared, placeholders too, or a list of such.
fits(word, arg) if word == arg

fits(words, arg) if {
	is_array(words)
	arg in words
}

# fixed(arg, cmd): no call fills arg in. Where calls fill in none of cmd, a brace is text.
fixed(arg, _) if not contains(arg, "{")

fixed(_, cmd) if count(cmd.from_call) == 0

# A name with a leading slash is the file that runs, any other is the command as it is declared.
named(name, cmd) if {
	startswith(name, "/")
	name == cmd.path
}

named(name, cmd) if {
	not startswith(name, "/")
	name == cmd.declared
}

# conditions(cmd) are the fields beside command that an entry for cmd needs, in words.
conditions(cmd) := concat("", [words |
	some field, value in {"dir": cmd.dir, "env": cmd.env, "from_call": cmd.from_call}
	count(value) > 0
	words := sprintf(", %s: %s", [field, json.marshal(value)])
])

# digest(observed) says in words what the command's file was found to be.
digest(observed) := observed.sha256 if {
	observed.sha256 != ""
} else := "which can't be read"
