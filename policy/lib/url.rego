# URLs by their parts, never by a prefix of the text: which of them an address entry of policy/trust/data.yaml covers, and
# the parts of one that is an argument of a call.
package catalogd.lib.url

import data.catalogd.lib.path

default_ports := {"http": 80, "https": 443}

# covers(entry, u): u (input.target.url) has the entry's scheme, host and port, and its path lies within the entry's.
covers(entry, u) if {
	u.scheme == object.get(entry, "scheme", "https")
	u.host == entry.host
	u.port == object.get(entry, "port", default_ports[u.scheme])
	path.plain(u.path)
	path.begins(path.segments(object.get(entry, "path", "/")), whole(u))
}

# whole(u) are the segments that are complete before any template is filled in: the last one of /api{rest} may become
# /api-of-others.
whole(u) := array.slice(u.segments, 0, count(u.segments) - 1) if {
	u.template
	not endswith(u.path, "/")
} else := u.segments

# parts(text) are those of a URL in a text, as input.target.url has them: scheme and host in lower case, the host without a
# final dot, the port always set. It has no value for what is no http or https URL, and for what its readers may take
# apart otherwise: a user in front of the host, backslashes, dot segments. So allow what parts says, and deny the rest:
#
#   deny contains "that address is not for this branch" if not url.parts(input.arguments.url).host in {"api.example.com"}
parts(text) := {
	"scheme": scheme, "host": host, "port": port, "path": whole_path, "segments": path.segments(whole_path), "template": false,
} if {
	is_string(text)
	[_, written_scheme, written_host, written_port, written_path] := regex.find_all_string_submatch_n(text_form, text, 1)[0]
	scheme := lower(written_scheme)
	host := trim_right(lower(written_host), ".")
	host != ""
	port := number(written_port, default_ports[scheme])
	port < 65536
	whole_path := concat("", ["/", trim_prefix(written_path, "/")])
	path.plain(whole_path)
}

# Scheme, host (a name or an address), port, path; then a query and a fragment, which are no parts.
text_form := `(?i)^(https?)://([a-z0-9._-]+|\[[0-9a-f:.]+\])(?::([1-9][0-9]{0,4}))?(/[^?#\\\x00-\x20\x7f]*)?(?:\?[^#\x00-\x20\x7f]*)?(?:#[^\x00-\x20\x7f]*)?$`

number("", otherwise) := otherwise

number(text, _) := to_number(text) if text != ""

# loopback(host): the host is this machine, by its address or by the name that is kept for it.
loopback(host) if host in {"localhost", "::1", "[::1]"}

loopback(host) if endswith(host, ".localhost")

loopback(host) if regex.match(`^127(\.[0-9]{1,3}){3}$`, host)
