# Part of catalogd: do not edit. `catalogd init --upgrade` replaces it; rules of your own go in policy/*.rego.
# URLs by their parts, never by a prefix of the text: which of them an address entry of policy/trust/data.yaml covers, and
# the parts of one that is an argument of a call.
package catalogd.lib.url

import data.catalogd.lib.path
import future.keywords.not

default_ports := {"http": 80, "https": 443}

# covers(entry, u): u (input.target.url, or parts of a text) has the entry's scheme, host and port, and its path lies within
# the entry's.
default covers(_, _) := false

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

# host_in(text, hosts): the text is an http or https URL of one of the hosts, whatever its port and path:
#
#   deny contains "that address is not for this branch" if not url.host_in(input.arguments.url, {"api.example.com"})
default host_in(_, _) := false

host_in(text, hosts) if parts(text).host in hosts

# parts(text) are those of a URL in a text, as input.target.url has them: scheme and host in lower case, the host without a
# final dot, the port always set. It is false for what is no http or https URL, and for what its readers may take apart
# otherwise: a user in front of the host, backslashes, dot segments. So allow what parts says, and deny the rest.
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
} else := false

# Scheme, host (a name or an address), port, path; then a query and a fragment, which are no parts.
text_form := `(?i)^(https?)://([a-z0-9._-]+|\[[0-9a-f:.]+\])(?::([1-9][0-9]{0,4}))?(/[^?#\\\x00-\x20\x7f]*)?(?:\?[^#\x00-\x20\x7f]*)?(?:#[^\x00-\x20\x7f]*)?$`

number("", otherwise) := otherwise

number(text, _) := to_number(text) if text != ""

default loopback(_) := false

# loopback(host): the host is this machine, by its address or by the name that is kept for it.
loopback(host) if host in {"localhost", "::1", "[::1]"}

loopback(host) if endswith(host, ".localhost")

loopback(host) if regex.match(`^127(\.[0-9]{1,3}){3}$`, host)
