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
