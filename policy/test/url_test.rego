package catalogd.lib.url_test

import data.catalogd.lib.path
import data.catalogd.lib.url

entry := {"host": "mcp.example.com", "path": "/v1"}

parsed(scheme, host, port, p, template) := {
	"scheme": scheme, "host": host, "port": port, "path": p, "segments": path.segments(p), "template": template,
}

# Lookalikes of https://mcp.example.com/v1 (threat T25).
test_covers[case.note] if {
	some case in [
		{"note": "itself", "url": parsed("https", "mcp.example.com", 443, "/v1", false), "want": true},
		{"note": "below", "url": parsed("https", "mcp.example.com", 443, "/v1/mcp", false), "want": true},
		{"note": "longer host", "url": parsed("https", "mcp.example.com.evil", 443, "/v1", false), "want": false},
		{"note": "userinfo host", "url": parsed("https", "evil", 443, "/v1", false), "want": false},
		{"note": "subdomain", "url": parsed("https", "x.mcp.example.com", 443, "/v1", false), "want": false},
		{"note": "trailing dot", "url": parsed("https", "mcp.example.com.", 443, "/v1", false), "want": false},
		{"note": "upper case", "url": parsed("https", "MCP.example.com", 443, "/v1", false), "want": false},
		{"note": "punycode", "url": parsed("https", "xn--mp-example-abc.com", 443, "/v1", false), "want": false},
		{"note": "other port", "url": parsed("https", "mcp.example.com", 444, "/v1", false), "want": false},
		{"note": "plain http", "url": parsed("http", "mcp.example.com", 80, "/v1", false), "want": false},
		{"note": "http on 443", "url": parsed("http", "mcp.example.com", 443, "/v1", false), "want": false},
		{"note": "sibling path", "url": parsed("https", "mcp.example.com", 443, "/v10", false), "want": false},
		{"note": "parent path", "url": parsed("https", "mcp.example.com", 443, "/", false), "want": false},
		{"note": "dot segments", "url": parsed("https", "mcp.example.com", 443, "/v1/../admin", false), "want": false},
		{"note": "encoded dots", "url": parsed("https", "mcp.example.com", 443, "/v1/%2E%2e/admin", false), "want": false},
		{"note": "empty segment", "url": parsed("https", "mcp.example.com", 443, "/v1//admin", false), "want": false},
		{"note": "template below", "url": parsed("https", "mcp.example.com", 443, "/v1/", true), "want": true},
		{"note": "template in the last segment", "url": parsed("https", "mcp.example.com", 443, "/v1", true), "want": false},
		{"note": "template in the segment behind", "url": parsed("https", "mcp.example.com", 443, "/v1/x", true), "want": true},
	]
	covers(case.url) == case.want
}

default covers(_) := false

covers(u) if url.covers(entry, u)

test_a_port_of_its_own if {
	url.covers({"scheme": "http", "host": "127.0.0.1", "port": 8080}, parsed("http", "127.0.0.1", 8080, "/", false))
}

test_http_default_port if {
	url.covers({"scheme": "http", "host": "a.example"}, parsed("http", "a.example", 80, "/x", true))
}

test_parts[text] if {
	some text, want in {
		"https://api.example.com": ["https", "api.example.com", 443, "/", []],
		"HTTPS://API.Example.com.:8443/v1/x?q=/#f": ["https", "api.example.com", 8443, "/v1/x", ["v1", "x"]],
		"http://127.0.0.1/": ["http", "127.0.0.1", 80, "/", []],
		"http://[::1]:8080/a%20b": ["http", "[::1]", 8080, "/a%20b", ["a%20b"]],
		"https://api.example.com?x": ["https", "api.example.com", 443, "/", []],
	}
	u := url.parts(text)
	[u.scheme, u.host, u.port, u.path, u.segments] == want
	not u.template
}

# What begins with https://api.example.com, and is somewhere else or nowhere.
lookalikes := [
	"https://api.example.com.evil", "https://api.example.com@evil", "https://api.example.com:443@evil", "https://api.example.com:pw@evil/",
	"https://api.example.com\\@evil", "https://api.example.com\\.evil", "https://api.example.com%2eevil", "https://api.example.com-evil",
	"https://api.example.com:0", "https://api.example.com:99999", "https://api.example.com:0443", "https://api.example.com/../x",
	"https://api.example.com/%2e%2e/x", "https://api.example.com/a//b", "https://api.example.com/\\evil", "https://api.example.com /x",
	"https://api.example.com/\u0000", "https://api.example.com\n.evil", "https:api.example.com", "https:///api.example.com", "//api.example.com",
	"file://api.example.com/etc", "javascript://api.example.com/%0aalert(1)", "https://\u0430pi.example.com", " https://api.example.com", "", 7, null,
]

test_parts_of_lookalikes[text] if {
	some text in lookalikes
	not url.parts(text).host == "api.example.com"
	not url.covers({"host": "api.example.com"}, url.parts(text))
}

test_parts_of_no_url_are_false if {
	some text in ["file:///etc/passwd", "", 7, null, {}]
	url.parts(text) == false
}

# What is no URL of the host is refused by `not`, and allowed by nothing.
test_host_in[text] if {
	some text, want in object.union(
		{text: true | some text in ["https://api.example.com", "HTTPS://API.EXAMPLE.COM./x", "http://api.example.com:8080/x?y#z"]},
		{text: false | some text in lookalikes},
	)
	url.host_in(text, {"api.example.com"}) == want
	url.host_in(text, ["api.example.com"]) == want
	not url.host_in(text, {"example.com"})
	not url.host_in(text, "api.example.com")
	not url.host_in(text, null)
}

test_parts_are_covered_by_entries if {
	api := {"host": "api.example.com", "path": "/v1"}
	url.covers(api, url.parts("https://api.example.com/v1/x"))
	not url.covers(api, url.parts("https://api.example.com/v10"))
	not url.covers(api, url.parts("http://api.example.com/v1"))
}

test_loopback[host] if {
	some host in ["127.0.0.1", "127.255.0.3", "::1", "localhost", "mcp.localhost"]
	url.loopback(host)
}

test_not_loopback[host] if {
	some host in ["127.0.0.1.example", "a.127.0.0.1", "1127.0.0.1", "128.0.0.1", "localhost.example", "notlocalhost", "::2", ""]
	not url.loopback(host)
}
