# Part of catalogd: do not edit. `catalogd init --upgrade` replaces it; rules of your own go in policy/*.rego.
# Paths by their segments. Comparing them as strings takes /opt/tools-evil for a part of /opt/tools.
package catalogd.lib.path

import future.keywords.not

# segments("/a//b/") is ["a", "b"].
segments(p) := [s | some s in split(p, "/"); s != ""]

# begins(want, have): the segments in `want` are the first of those in `have`.
begins(want, have) if array.slice(have, 0, count(want)) == want

# within(dir, p): the absolute path p is dir or lies below it. A path with dot segments, encoded separators or
# backslashes lies nowhere, because who opens it may read it otherwise; nor does what is no text.
default within(_, _) := false

within(dir, p) if {
	is_string(p)
	startswith(dir, "/")
	startswith(p, "/")
	plain(p)
	begins(segments(dir), segments(p))
}

# plain(p): p means the same to everyone who reads it.
plain(p) if {
	not contains(p, "\\")
	not contains(p, "//")
	not regex.match(`(?i)%(2e|2f|5c|00)`, p)
	every s in segments(p) {
		not s in {".", ".."}
	}
}
