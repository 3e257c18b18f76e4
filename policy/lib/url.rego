# Which URLs an address entry of policy/trust/data.yaml covers: by parts, never by a prefix of the text.
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
